/* A provider in which one tensor has other values. All else is that of the provider behind it. */
#include <string.h>

#include "base/mem.h"
#include "files/weights/provider.h"

struct replaced {
    struct ak_provider provider;
    struct ak_provider_format format; /* that of the source, with the functions below */
    const struct ak_provider *source;
    const char *name;
    const float *values;
};

static const struct replaced *cast(const struct ak_provider *p)
{
    return (const struct replaced *)p;
}

static const struct ak_provider *source_of(const struct ak_provider *p)
{
    return cast(p)->source;
}

static void close_replaced(struct ak_provider *p)
{
    ak_free(p);
}

static ak_status check_weights(const struct ak_provider *p, struct ak_error *error)
{
    return ak_provider_check_weights(source_of(p), error);
}

static bool is_replaced(const struct replaced *r, const char *name)
{
    return r->name && strcmp(r->name, name) == 0;
}

static bool replaced_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                          struct ak_view *out)
{
    const struct replaced *r = cast(p);
    if (!ak_provider_find(r->source, role, layer, hf, out))
        return false;
    if (!is_replaced(r, out->name))
        return true;
    out->type = AK_QUANT_F32;
    memset(out->plane, 0, sizeof out->plane);
    out->plane[0] = (struct ak_plane){ r->values, (uint64_t)out->rows * out->cols * sizeof(float) };
    out->composed_tensor = NULL;
    return true;
}

static size_t replaced_n_tensors(const struct ak_provider *p)
{
    return ak_provider_n_tensors(source_of(p));
}

static bool replaced_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    const struct replaced *r = cast(p);
    if (!ak_provider_tensor(r->source, i, out))
        return false;
    if (!is_replaced(r, out->name))
        return true;
    out->type = AK_QUANT_F32;
    out->data = r->values;
    out->composed_tensor = NULL;
    out->bytes = sizeof(float);
    for (unsigned d = 0; d < out->n_dims; d++)
        out->bytes *= out->shape[d];
    return true;
}

static size_t replaced_n_metas(const struct ak_provider *p)
{
    return ak_provider_n_metas(source_of(p));
}

static bool replaced_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    return ak_provider_meta(source_of(p), i, out);
}

static const char *null_meta(const struct ak_provider *p, size_t i)
{
    return ak_provider_null(source_of(p), i);
}

static bool replaced_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    return ak_provider_find_meta(source_of(p), key, out);
}

static bool replaced_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                             struct ak_meta *out)
{
    return ak_provider_element(source_of(p), array, i, out);
}

static ak_status replaced_vocab(const struct ak_provider *p, struct ak_vocab *out,
                                struct ak_error *error)
{
    return ak_provider_vocab(source_of(p), out, error);
}

static bool file(const struct ak_provider *p, const char *name, struct ak_text *out)
{
    return ak_provider_file(source_of(p), name, out);
}

static uint64_t replaced_bytes(const struct ak_provider *p)
{
    return ak_provider_bytes(source_of(p));
}

static const struct ak_file *replaced_part(const struct ak_provider *p, size_t i)
{
    return ak_provider_part(source_of(p), i);
}

static void replaced_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    ak_provider_fingerprint(source_of(p), out);
}

static void replaced_advise(const struct ak_provider *p, const void *data, uint64_t n,
                            enum ak_file_advice use)
{
    if (data != cast(p)->values)
        ak_provider_advise(source_of(p), data, n, use);
}

ak_status ak_provider_replace(const struct ak_provider *source, const char *name,
                              const float *values, struct ak_provider **out, struct ak_error *error)
{
    struct replaced *r = ak_alloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return ak_fail_memory(error, "a provider", sizeof *r);
    *r = (struct replaced){
        .format = *source->format, .source = source, .name = name, .values = values
    };
    r->format.close = close_replaced;
    r->format.check_weights = check_weights;
    r->format.find = replaced_find;
    r->format.n_tensors = replaced_n_tensors;
    r->format.tensor = replaced_tensor;
    r->format.n_metas = replaced_n_metas;
    r->format.meta = replaced_meta;
    r->format.find_meta = replaced_find_meta;
    r->format.null_meta = null_meta;
    r->format.element = replaced_element;
    r->format.vocab = replaced_vocab;
    r->format.file = file;
    r->format.bytes = replaced_bytes;
    r->format.part = replaced_part;
    r->format.fingerprint = replaced_fingerprint;
    r->format.advise = replaced_advise;
    r->provider.format = &r->format;
    *out = &r->provider;
    return AKUNU_OK;
}

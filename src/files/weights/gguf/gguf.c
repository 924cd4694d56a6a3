/* The provider's functions for GGUF files. */
#include "files/weights/gguf/gguf.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/composed.h"
#include "files/weights/formats.h"

static const struct ak_gguf *gguf(const struct ak_provider *p)
{
    return (const struct ak_gguf *)p;
}

static bool probe(const char *path)
{
    struct ak_file file;
    if (ak_file_open(path, &file, NULL) != AKUNU_OK)
        return false;
    bool found = file.bytes >= 4 && memcmp(file.data, "GGUF", 4) == 0;
    ak_file_close(&file);
    return found;
}

static void close_provider(struct ak_provider *p)
{
    struct ak_gguf *g = (struct ak_gguf *)p;
    ak_gguf_vocab_free(g->vocab);
    ak_gguf_metadata_free(&g->metadata);
    ak_name_index_free(&g->index);
    ak_free(g->names.bytes);
    for (size_t i = 0; i < g->n_tensors; i++)
        ak_composed_free(g->tensors[i].composed_tensor);
    ak_free(g->tensors);
    for (uint32_t i = 0; i < g->n_parts; i++)
        ak_file_close(&g->parts[i].file);
    ak_free(g->parts);
    ak_free(g);
}

static ak_status index_tensors(struct ak_gguf *g, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    AK_TRY(ak_name_index_alloc(&g->index, g->n_tensors, error));
    for (uint32_t i = 0; i < g->index.n; i++)
        g->index.entries[i] =
            (struct ak_name_index_entry){ g->names.bytes + g->tensors[i].name, i };
    const char *duplicate = ak_name_index_sort(&g->index);
    if (duplicate)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s is there twice",
                       ak_show(duplicate, strlen(duplicate), shown));
    return AKUNU_OK;
}

static ak_status open_gguf_file(const char *path, int fd, struct ak_provider **out,
                                struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    *out = NULL;
    struct ak_gguf *g = ak_alloc(1, sizeof *g);
    if (!g)
        return ak_fail_memory(error, "a GGUF file", sizeof *g);
    g->provider.format = &ak_gguf_format;

    ak_status status = ak_gguf_open_parts(g, path, fd, error);
    if (status == AKUNU_OK)
        status = index_tensors(g, error);
    if (status == AKUNU_OK)
        status = ak_gguf_compose_nvfp4(g, error);
    if (status == AKUNU_OK)
        status = ak_gguf_vocab_create(&g->vocab, error);
    if (status != AKUNU_OK) {
        if (!path && g->n_parts > 0) /* with a path, the caller names the file */
            ak_error_prefix(error, ak_show_path(g->parts[0].file.path, shown));
        close_provider(&g->provider);
        return status;
    }
    *out = &g->provider;
    return AKUNU_OK;
}

static ak_status open_gguf(const char *path, struct ak_provider **out, struct ak_error *error)
{
    return open_gguf_file(path, -1, out, error);
}

ak_status ak_provider_open_fd(int fd, struct ak_provider **out, struct ak_error *error)
{
    return open_gguf_file(NULL, fd, out, error);
}

const void *ak_gguf_data(const struct ak_gguf *g, const struct ak_gguf_tensor *t)
{
    return g->parts[t->part].file.data + t->offset;
}

static enum ak_quant_type type_of(const struct ak_gguf_tensor *t)
{
    return t->composed_tensor ? t->composed_tensor->type : t->type;
}

static bool find_pattern(const struct ak_gguf *g, const char *pattern, int layer, uint32_t *i)
{
    char name[AK_ROLE_NAME_BYTES];
    return pattern && ak_name_index_find(&g->index, ak_role_expand(pattern, layer, name), i);
}

static bool gguf_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                      struct ak_view *out)
{
    (void)hf; /* names follow from roles */
    const struct ak_gguf *g = gguf(p);
    uint32_t i;
    if (ak_role_has_layer(role) != (layer >= 0) ||
        (!find_pattern(g, ak_gguf_name(role), layer, &i) &&
         !find_pattern(g, ak_whisper_name(role), layer, &i)))
        return false;

    const struct ak_gguf_tensor *t = &g->tensors[i];
    uint32_t rows = 1;
    unsigned n_dims = 1;
    for (unsigned d = 1; d < t->n_dims; d++) {
        rows *= t->dims[d];
        n_dims += t->dims[d] != 1;
    }
    *out = (struct ak_view){
        .type = type_of(t),
        .rows = rows,
        .cols = t->dims[0],
        .plane = { { ak_gguf_data(g, t), t->bytes } },
        .name = g->names.bytes + t->name,
        .n_dims = n_dims,
        .composed_tensor = t->composed_tensor,
    };
    return true;
}

static size_t gguf_n_tensors(const struct ak_provider *p)
{
    return gguf(p)->n_tensors;
}

static bool gguf_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    const struct ak_gguf *g = gguf(p);
    if (i >= g->n_tensors)
        return false;
    const struct ak_gguf_tensor *t = &g->tensors[i];
    *out = (struct ak_tensor){
        .name = g->names.bytes + t->name,
        .type = type_of(t),
        .n_dims = t->n_dims,
        .bytes = t->bytes,
        .offset = t->offset,
        .data = ak_gguf_data(g, t),
        .composed_tensor = t->composed_tensor,
        .has_role = t->has_role,
        .role = t->role,
        .layer = t->layer,
    };
    for (unsigned d = 0; d < t->n_dims; d++)
        out->shape[d] = t->dims[t->n_dims - 1 - d];
    return true;
}

static size_t gguf_n_metas(const struct ak_provider *p)
{
    return gguf(p)->metadata.n;
}

static bool gguf_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    const struct ak_gguf *g = gguf(p);
    if (i >= g->metadata.n)
        return false;
    ak_gguf_meta(&g->metadata, i, out);
    return true;
}

static bool gguf_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    return ak_gguf_find_meta(&gguf(p)->metadata, key, out);
}

static bool gguf_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                         struct ak_meta *out)
{
    return ak_gguf_element(&gguf(p)->metadata, array, i, out);
}

static ak_status gguf_vocab(const struct ak_provider *p, struct ak_vocab *out,
                            struct ak_error *error)
{
    return ak_gguf_vocab_get(gguf(p)->vocab, p, out, error);
}

static uint64_t gguf_bytes(const struct ak_provider *p)
{
    const struct ak_gguf *g = gguf(p);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n_parts; i++)
        sum += g->parts[i].file.bytes;
    return sum;
}

static const struct ak_file *gguf_part(const struct ak_provider *p, size_t i)
{
    return i < gguf(p)->n_parts ? &gguf(p)->parts[i].file : NULL;
}

static void gguf_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    const struct ak_gguf *g = gguf(p);
    ak_provider_fingerprint_begin(out, &g->parts[0].file);
    for (uint32_t i = 0; i < g->n_parts; i++)
        ak_provider_fingerprint_add(out, &g->parts[i].file, g->parts[i].data);
}

static void gguf_advise(const struct ak_provider *p, const void *data, uint64_t n,
                        enum ak_file_advice use)
{
    const struct ak_gguf *g = gguf(p);
    for (uint32_t i = 0; i < g->n_parts; i++)
        ak_file_advise_at(&g->parts[i].file, data, n, use);
}

const struct ak_provider_format ak_gguf_format = {
    .name = "gguf",
    .about = "GGUF of versions 2 and 3, little-endian, in one file or split",
    .naming = AK_PROVIDER_NAMING_GGUF,
    .probe = probe,
    .open = open_gguf,
    .close = close_provider,
    .find = gguf_find,
    .n_tensors = gguf_n_tensors,
    .tensor = gguf_tensor,
    .n_metas = gguf_n_metas,
    .meta = gguf_meta,
    .find_meta = gguf_find_meta,
    .element = gguf_element,
    .vocab = gguf_vocab,
    .bytes = gguf_bytes,
    .part = gguf_part,
    .fingerprint = gguf_fingerprint,
    .advise = gguf_advise,
};

/* A single .npy file as a model of one array, for inspection and comparison. It has no roles, so
 * it cannot run. */
#include <string.h>

#include "base/mem.h"
#include "files/weights/formats.h"
#include "files/weights/npy/npy.h"

struct npy_file {
    struct ak_provider provider;
    struct ak_file file;
    struct ak_npy array;
    char *name; /* file name without its suffix */
};

static const struct npy_file *npy(const struct ak_provider *p)
{
    return (const struct npy_file *)p;
}

static bool probe(const char *path)
{
    struct ak_file file;
    if (ak_file_open(path, &file, NULL) != AKUNU_OK)
        return false;
    bool found = ak_npy_probe(&file);
    ak_file_close(&file);
    return found;
}

static void close_provider(struct ak_provider *p)
{
    struct npy_file *n = (struct npy_file *)p;
    ak_file_close(&n->file);
    ak_free(n->name);
    ak_free(n);
}

static ak_status read_array(struct npy_file *n, const char *path, struct ak_error *error)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
               *end = strrchr(name, '.');
    AK_TRY(ak_file_open(path, &n->file, error));
    AK_TRY(ak_npy_read(&n->file, &n->array, error));
    n->name = ak_strndup(name, end && end > name ? (size_t)(end - name) : strlen(name));
    return n->name ? AKUNU_OK : ak_fail_memory(error, "a file's name", strlen(name));
}

static ak_status open_npy(const char *path, struct ak_provider **out, struct ak_error *error)
{
    *out = NULL;
    struct npy_file *n = ak_alloc(1, sizeof *n);
    if (!n)
        return ak_fail_memory(error, "an array", sizeof *n);
    n->provider.format = &ak_npy_format;
    ak_status status = read_array(n, path, error);
    if (status != AKUNU_OK) {
        close_provider(&n->provider);
        return status;
    }
    *out = &n->provider;
    return AKUNU_OK;
}

/* An array has no role. */
static bool npy_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                     struct ak_view *out)
{
    (void)p, (void)role, (void)layer, (void)hf, (void)out;
    return false;
}

static size_t npy_n_tensors(const struct ak_provider *p)
{
    (void)p;
    return 1;
}

static bool npy_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    const struct npy_file *n = npy(p);
    if (i > 0)
        return false;
    *out = (struct ak_tensor){
        .name = n->name,
        .type = n->array.type,
        .n_dims = n->array.n_dims,
        .bytes = n->array.bytes,
        .offset = n->array.offset,
        .data = n->file.data + n->array.offset,
    };
    memcpy(out->shape, n->array.shape, sizeof out->shape);
    return true;
}

static size_t npy_n_metas(const struct ak_provider *p)
{
    (void)p;
    return 0;
}

static bool npy_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    (void)p, (void)i, (void)out;
    return false;
}

static bool npy_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    (void)p, (void)key, (void)out;
    return false;
}

static bool npy_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                        struct ak_meta *out)
{
    (void)p, (void)array, (void)i, (void)out;
    return false;
}

static uint64_t npy_bytes(const struct ak_provider *p)
{
    return npy(p)->file.bytes;
}

static const struct ak_file *npy_part(const struct ak_provider *p, size_t i)
{
    return i == 0 ? &npy(p)->file : NULL;
}

static void npy_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    ak_provider_fingerprint_begin(out, &npy(p)->file);
    ak_provider_fingerprint_add(out, &npy(p)->file, npy(p)->array.offset);
}

static void npy_advise(const struct ak_provider *p, const void *data, uint64_t n,
                       enum ak_file_advice use)
{
    ak_file_advise_at(&npy(p)->file, data, n, use);
}

const struct ak_provider_format ak_npy_format = {
    .name = "npy",
    .about = "a single NumPy array, to look into",
    .naming = AK_PROVIDER_NAMING_GGUF,
    .probe = probe,
    .open = open_npy,
    .close = close_provider,
    .find = npy_find,
    .n_tensors = npy_n_tensors,
    .tensor = npy_tensor,
    .n_metas = npy_n_metas,
    .meta = npy_meta,
    .find_meta = npy_find_meta,
    .element = npy_element,
    .bytes = npy_bytes,
    .part = npy_part,
    .fingerprint = npy_fingerprint,
    .advise = npy_advise,
};

/* The provider's functions for Hugging Face checkpoints, of SafeTensors and of NumPy arrays: lookup
 * of tensors under the names that different model classes give them. */
#include "files/weights/hf/hf.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/formats.h"

static const struct ak_hf *hf(const struct ak_provider *p)
{
    return (const struct ak_hf *)p;
}

static void close_provider(struct ak_provider *p)
{
    struct ak_hf *h = (struct ak_hf *)p;
    ak_provider_close(h->gguf);
    ak_tensor_copies_end(&h->copies);
    ak_name_index_free(&h->index);
    ak_name_index_free(&h->tensor_index);
    ak_hf_free_weights(h);
    ak_hf_tensor_list_free(&h->list);
    ak_hf_metadata_free(&h->metadata);
    ak_hf_close_files(h);
    ak_free(h);
}

static ak_status read_parts(struct ak_hf *h, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    for (uint32_t i = 0; i < h->n_parts; i++) {
        struct ak_hf_part *part = &h->parts[i];
        ak_status status = ak_hf_safetensors_read(&part->file, i, &h->list, &part->data, error);
        if (status != AKUNU_OK) {
            ak_error_prefix(error, ak_show(part->name, strlen(part->name), shown));
            return status;
        }
    }
    return AKUNU_OK;
}

static ak_status index_tensors(struct ak_hf *h, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    AK_TRY(ak_name_index_alloc(&h->tensor_index, h->list.n, error));
    for (uint32_t i = 0; i < h->tensor_index.n; i++)
        h->tensor_index.entries[i] = (struct ak_name_index_entry){ h->list.tensors[i].name, i };
    const char *duplicate = ak_name_index_sort(&h->tensor_index);
    if (duplicate)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s is in two files",
                       ak_show(duplicate, strlen(duplicate), shown));
    return AKUNU_OK;
}

static ak_status read_checkpoint(struct ak_hf *h, const char *path, const char *manifest,
                                 struct ak_error *error)
{
    (void)manifest; /* arrays have one */
    AK_TRY(ak_hf_open_files(h, path, error));
    AK_TRY(ak_hf_read_metadata(h, error));
    AK_TRY(read_parts(h, error));
    AK_TRY(index_tensors(h, error));
    AK_TRY(ak_tensor_copies_begin(&h->copies, h->list.n, error));
    AK_TRY(ak_hf_check_index(h, error));
    return ak_hf_list_weights(h, error);
}

typedef ak_status read_fn(struct ak_hf *h, const char *path, const char *manifest,
                          struct ak_error *error);

static ak_status open_as(const struct ak_provider_format *format, read_fn *read_all,
                         const char *path, const char *manifest, struct ak_provider **out,
                         struct ak_error *error)
{
    *out = NULL;
    struct ak_hf *h = ak_alloc(1, sizeof *h);
    if (!h)
        return ak_fail_memory(error, "a checkpoint", sizeof *h);
    h->provider.format = format;
    ak_status status = read_all(h, path, manifest, error);
    if (status != AKUNU_OK) {
        close_provider(&h->provider);
        return status;
    }
    *out = &h->provider;
    return AKUNU_OK;
}

static ak_status open_hf(const char *path, struct ak_provider **out, struct ak_error *error)
{
    return open_as(&ak_hf_format, read_checkpoint, path, NULL, out, error);
}

static ak_status open_npy_dir(const char *path, struct ak_provider **out, struct ak_error *error)
{
    return open_as(&ak_hf_npy_format, ak_hf_npy_read, path, AK_HF_MANIFEST, out, error);
}

ak_status ak_hf_npy_open_draft(const char *path, const char *manifest, struct ak_provider **out,
                               struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    ak_status status = open_as(&ak_hf_npy_format, ak_hf_npy_read, path, manifest, out, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, ak_show_path(path, shown));
    return status;
}

static const void *data_of(const struct ak_hf *h, const struct ak_hf_tensor *t)
{
    return h->parts[t->part].file.data + t->offset;
}

/* Finds a name under any prefix. Checkpoints of the same model differ in their prefixes: the class
 * that was saved may be the decoder itself or one of several around it. */
static bool find_any_prefix(const struct ak_hf *h, const char *name, uint32_t *i)
{
    char other[2 * AK_ROLE_NAME_BYTES];
    if (ak_name_index_find(&h->index, name, i))
        return true;
    const char *stem = ak_hf_stem(name);
    for (size_t k = 0; ak_hf_roots[k]; k++) {
        snprintf(other, sizeof other, "%s%s", ak_hf_roots[k], stem);
        if (ak_name_index_find(&h->index, other, i))
            return true;
    }
    return ak_name_index_find(&h->index, stem, i);
}

/* Early checkpoints name a norm's vectors as TensorFlow did: gamma and beta. */
static bool find_norm(const struct ak_hf *h, const char *name, uint32_t *i)
{
    static const struct {
        const char *suffix, *old;
    } suffixes[] = { { ".LayerNorm.weight", ".gamma" }, { ".LayerNorm.bias", ".beta" } };
    char other[AK_ROLE_NAME_BYTES];
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
        size_t n = strlen(name), n_suffix = strlen(suffixes[k].suffix);
        if (n <= n_suffix || strcmp(name + n - n_suffix, suffixes[k].suffix) != 0)
            continue;
        snprintf(other, sizeof other, "%.*s.LayerNorm%s", (int)(n - n_suffix), name,
                 suffixes[k].old);
        return find_any_prefix(h, other, i);
    }
    return false;
}

/* Number of dimensions without leading ones. A norm keeps them: a norm of two dimensions is an
 * error that the caller must see. */
static unsigned dims_of(enum ak_role role, unsigned n, const uint64_t *shape)
{
    unsigned n_dims = 1;
    for (unsigned d = 0; d + 1 < n; d++)
        n_dims += shape[d] != 1 || ak_role_is_norm(role);
    return n_dims;
}

static void view_composed_tensor(enum ak_role role, const struct ak_hf_weight *w,
                                 struct ak_view *out)
{
    const struct ak_composed_tensor *composed = w->composed_tensor;
    *out = (struct ak_view){
        .type = composed->type,
        .rows = composed->rows,
        .cols = composed->cols,
        .name = w->name,
        .n_dims = dims_of(role, composed->n_dims, composed->shape),
        .composed_tensor = composed,
    };
    memcpy(out->plane, composed->plane, sizeof out->plane);
}

/* A tensor of a type that akunu lacks is a vector of bytes, whose use is an error. */
static void view_unknown(const struct ak_hf *h, const struct ak_hf_weight *w,
                         const struct ak_hf_tensor *t, struct ak_view *out)
{
    *out = (struct ak_view){
        .type = t->type,
        .rows = 1,
        .cols = t->bytes < UINT32_MAX ? (uint32_t)t->bytes : UINT32_MAX,
        .plane = { { data_of(h, t), t->bytes } },
        .name = w->name,
        .type_name = t->dtype,
        .n_dims = 1,
    };
}

static bool hf_find(const struct ak_provider *p, enum ak_role role, int layer, const char *pattern,
                    struct ak_view *out)
{
    const struct ak_hf *h = hf(p);
    char name[AK_ROLE_NAME_BYTES];
    uint32_t i;
    if (!pattern || ak_role_has_layer(role) != (layer >= 0))
        return false;
    ak_role_expand(pattern, layer, name);
    if (!find_any_prefix(h, name, &i) && !find_norm(h, name, &i))
        return false;

    const struct ak_hf_weight *w = &h->weights[i];
    if (w->composed_tensor) {
        view_composed_tensor(role, w, out);
        return true;
    }
    const struct ak_hf_tensor *t = &h->list.tensors[w->position];
    if (t->dtype) {
        view_unknown(h, w, t, out);
        return true;
    }
    uint64_t rows = 1;
    for (unsigned d = 0; d + 1 < t->n_dims; d++)
        rows *= t->shape[d];
    *out = (struct ak_view){
        .type = t->type,
        .rows = (uint32_t)rows, /* safetensors.c has checked that both fit */
        .cols = (uint32_t)t->shape[t->n_dims - 1],
        .plane = { { ak_tensor_copies_align(p, (struct ak_tensor_copies *)(uintptr_t)&h->copies,
                                            w->position, t->type, data_of(h, t), t->bytes),
                     t->bytes } },
        .name = w->name,
        .n_dims = dims_of(role, t->n_dims, t->shape),
    };
    return true;
}

static size_t hf_n_tensors(const struct ak_provider *p)
{
    return hf(p)->n_weights;
}

/* Describes the composed tensor; `bytes` is the sum of its planes. */
static void describe_composed_tensor(const struct ak_composed_tensor *composed,
                                     struct ak_tensor *out)
{
    out->type = composed->type;
    out->n_dims = composed->n_dims;
    memcpy(out->shape, composed->shape, sizeof out->shape);
    out->bytes = 0;
    for (int i = 0; i < AK_VIEW_PLANES_MAX; i++)
        out->bytes += composed->plane[i].bytes;
}

static bool hf_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    const struct ak_hf *h = hf(p);
    if (i >= h->n_weights)
        return false;
    const struct ak_hf_weight *w = &h->weights[i];
    const struct ak_hf_tensor *t = &h->list.tensors[w->position];
    *out = (struct ak_tensor){
        .name = w->name,
        .type = t->type,
        .type_name = t->dtype,
        .n_dims = t->n_dims,
        .bytes = t->bytes,
        .offset = t->offset,
        .data = data_of(h, t),
        .composed_tensor = w->composed_tensor,
    };
    memcpy(out->shape, t->shape, sizeof out->shape);
    if (w->composed_tensor)
        describe_composed_tensor(w->composed_tensor, out);
    return true;
}

/* Entries of the GGUF file follow those of the JSON files, which come first where both have a
 * key. */
static size_t hf_n_metas(const struct ak_provider *p)
{
    return hf(p)->metadata.n + (hf(p)->gguf ? ak_provider_n_metas(hf(p)->gguf) : 0);
}

static bool hf_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    const struct ak_hf *h = hf(p);
    if (i >= h->metadata.n)
        return h->gguf && ak_provider_meta(h->gguf, i - h->metadata.n, out);
    ak_hf_meta(&h->metadata, i, out);
    return true;
}

static const char *null_meta(const struct ak_provider *p, size_t i)
{
    return ak_hf_null(&hf(p)->metadata, i);
}

static bool hf_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    const struct ak_hf *h = hf(p);
    return ak_hf_find_meta(&h->metadata, key, out) ||
           (h->gguf && ak_provider_find_meta(h->gguf, key, out));
}

static bool hf_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                       struct ak_meta *out)
{
    struct ak_meta other;
    bool is_gguf = hf(p)->gguf && array->key[0] &&
                   ak_provider_find_meta(hf(p)->gguf, array->key, &other) &&
                   other.kind == AK_META_ARRAY && other.as.elements == array->as.elements;
    return is_gguf ? ak_provider_element(hf(p)->gguf, array, i, out) : ak_hf_element(array, i, out);
}

/* A tokenizer beside the arrays counts before that of the GGUF file. */
static ak_status hf_vocab(const struct ak_provider *p, struct ak_vocab *out, struct ak_error *error)
{
    const struct ak_hf *h = hf(p);
    return h->gguf && !ak_provider_has_vocab_file(p) ? ak_provider_vocab(h->gguf, out, error) :
                                                       AKUNU_OK;
}

static bool sidecar_file(const struct ak_provider *p, const char *name, struct ak_text *out)
{
    const struct ak_file *file = ak_hf_sidecar(hf(p), name);
    if (!file || file->bytes > UINT32_MAX)
        return false;
    *out = (struct ak_text){ file->data ? (const char *)file->data : "", (uint32_t)file->bytes };
    return true;
}

static uint64_t hf_bytes(const struct ak_provider *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < hf(p)->n_parts; i++)
        sum += hf(p)->parts[i].file.bytes;
    return sum;
}

static const struct ak_file *hf_part(const struct ak_provider *p, size_t i)
{
    const struct ak_hf *h = hf(p);
    if (i < h->n_parts)
        return &h->parts[i].file;
    return i - h->n_parts < h->n_sidecars ? &h->sidecars[i - h->n_parts].file : NULL;
}

static void hf_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    const struct ak_hf *h = hf(p);
    const struct ak_file *config = ak_hf_sidecar(h, "config.json"),
                         *manifest = ak_hf_sidecar(h, AK_HF_MANIFEST);
    ak_provider_fingerprint_begin(out, h->provider.format == &ak_hf_npy_format ? manifest :
                                                                                 &h->parts[0].file);
    for (uint32_t i = 0; i < h->n_parts; i++)
        ak_provider_fingerprint_add(out, &h->parts[i].file, h->parts[i].data);
    ak_provider_fingerprint_add(out, config, config->bytes);
    for (size_t i = 0; ak_hf_settings_files[i]; i++) {
        const struct ak_file *settings = ak_hf_sidecar(h, ak_hf_settings_files[i]);
        if (settings)
            ak_provider_fingerprint_add(out, settings, settings->bytes);
    }
    if (manifest)
        ak_provider_fingerprint_add(out, manifest, manifest->bytes);
    if (h->gguf)
        ak_provider_fingerprint_add(out, ak_provider_part(h->gguf, 0), 0);
}

static void hf_advise(const struct ak_provider *p, const void *data, uint64_t n,
                      enum ak_file_advice use)
{
    for (uint32_t i = 0; i < hf(p)->n_parts; i++)
        ak_file_advise_at(&hf(p)->parts[i].file, data, n, use);
}

static ak_status check_weights(const struct ak_provider *p, struct ak_error *error)
{
    const struct ak_error *refusal = &hf(p)->refusal;
    return refusal->status == AKUNU_OK ? AKUNU_OK :
                                         ak_fail(error, refusal->status, "%s", refusal->message);
}

const struct ak_provider_format ak_hf_format = {
    .name = "safetensors",
    .about = "a Hugging Face folder of SafeTensors with config.json, in one file or in shards; or "
             "one such file beside its config.json",
    .naming = AK_PROVIDER_NAMING_HF,
    .probe = ak_hf_probe,
    .open = open_hf,
    .close = close_provider,
    .check_weights = check_weights,
    .find = hf_find,
    .n_tensors = hf_n_tensors,
    .tensor = hf_tensor,
    .n_metas = hf_n_metas,
    .meta = hf_meta,
    .find_meta = hf_find_meta,
    .null_meta = null_meta,
    .element = hf_element,
    .file = sidecar_file,
    .bytes = hf_bytes,
    .part = hf_part,
    .fingerprint = hf_fingerprint,
    .advise = hf_advise,
};

const struct ak_provider_format ak_hf_npy_format = {
    .name = "npy-dir",
    .about = "a folder of NumPy arrays with manifest.json and config.json: matrices in 8, 4 or 3 "
             "bits, the rest in F16",
    .naming = AK_PROVIDER_NAMING_HF,
    .probe = ak_hf_npy_probe,
    .open = open_npy_dir,
    .close = close_provider,
    .find = hf_find,
    .n_tensors = hf_n_tensors,
    .tensor = hf_tensor,
    .n_metas = hf_n_metas,
    .meta = hf_meta,
    .find_meta = hf_find_meta,
    .null_meta = null_meta,
    .element = hf_element,
    .vocab = hf_vocab,
    .file = sidecar_file,
    .bytes = hf_bytes,
    .fingerprint = hf_fingerprint,
    .advise = hf_advise,
};

/* The key of the packed cache: a hash over everything that decides the packed bytes. */
#include "engine/pack/cache.h"

#include <string.h>

#include "base/mem.h"
#include "files/weights/composed.h"

enum { SAMPLE_COLS = 2 * 256 + 32 };

static void add_number(struct ak_sha256 *h, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    ak_sha256_add(h, bytes, sizeof bytes);
}

static void hash_text(struct ak_sha256 *h, const char *text)
{
    add_number(h, strlen(text));
    ak_sha256_add(h, text, strlen(text));
}

static uint64_t count_matrices(const struct ak_pack_weight *packed)
{
    return packed->n_experts ? packed->n_experts : 1;
}

/* A weight's type, shape and place. Tensors are named as in the file, since the numbers of roles
 * may change. */
static void add_packed(struct ak_sha256 *h, const struct ak_pack_weight *packed)
{
    hash_text(h, ak_quant_info(packed->type)->name);
    add_number(h, packed->layout);
    add_number(h, packed->cols);
    add_number(h, packed->bytes);
    for (uint32_t i = 0; i < packed->n_parts; i++) {
        hash_text(h, packed->parts[i].view->name);
        add_number(h, packed->parts[i].rows);
        add_number(h, packed->parts[i].offset);
        if (packed->parts[i].rows < packed->parts[i].all_rows * count_matrices(packed))
            add_number(h, packed->parts[i].first_row);
        if (packed->parts[i].view->composed_tensor)
            hash_text(h, packed->parts[i].view->composed_tensor->name);
    }
}

/* What a composed tensor makes of the first row's beginning, so that a changed scheme changes the
 * key. Once per scheme name and type. */
static void add_composed(struct ak_sha256 *h, const struct ak_weights *w, uint32_t i)
{
    uint8_t blocks[AK_COMPOSED_ELEMS_MAX * sizeof(float)];
    uint64_t bytes = 0;
    const struct ak_view *view = w->packed[i].parts[0].view;
    if (!view->composed_tensor)
        return;
    for (uint32_t j = 0; j < i; j++) {
        const struct ak_composed_tensor *before = w->packed[j].parts[0].view->composed_tensor;
        if (before && before->type == view->type &&
            strcmp(before->name, view->composed_tensor->name) == 0)
            return;
    }
    uint32_t n = view->cols < AK_COMPOSED_ELEMS_MAX ? view->cols : AK_COMPOSED_ELEMS_MAX;
    ak_composed_make_blocks(view->composed_tensor, ak_composed_row(view, 0), 0, n, blocks);
    (void)ak_quant_row_bytes(view->type, n, &bytes);
    ak_sha256_add(h, blocks, bytes);
}

/* What the packer makes of a synthetic weight: a changed packer then never finds the caches of its
 * former version, even if nobody changed a version number. */
static ak_status add_sample(struct ak_sha256 *h, const struct ak_pack_weight *packed_weight,
                            struct ak_error *error)
{
    struct ak_backend *backend = packed_weight->backend;
    const struct ak_backend_ops *ops = backend->ops;
    enum ak_quant_type type = packed_weight->type;
    uint32_t layout = packed_weight->layout, rows = ops->group_rows(backend, layout);
    uint32_t block = ak_quant_info(type)->block_elems, cols = SAMPLE_COLS / block * block;
    uint64_t row_bytes;
    if (!ak_quant_row_bytes(type, cols, &row_bytes))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: no sample of it can be packed",
                       ak_quant_info(type)->name);
    uint64_t bytes = rows * row_bytes,
             packed_bytes = ops->packed_bytes(backend, layout, type, rows, cols);
    uint8_t *stored = ak_alloc(bytes, 1), *packed = ak_alloc_aligned(packed_bytes);
    ak_status status = AKUNU_OK;
    if (!stored || !packed) {
        status = ak_fail_memory(error, "a sample of packed weights", bytes + packed_bytes);
    } else {
        uint32_t x = 1;
        for (uint64_t i = 0; i < bytes; i++)
            stored[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
        struct ak_view view = { .type = type,
                                .rows = rows,
                                .cols = cols,
                                .plane = { { stored, bytes } },
                                .name = "",
                                .n_dims = 2 };
        ops->pack(backend, layout, &view, 0, rows, packed);
        ak_sha256_add(h, packed, packed_bytes);
    }
    ak_free(stored);
    ak_free(packed);
    return status;
}

/* True if no weight before it has the same type, layout and backend. */
static bool is_first(const struct ak_weights *w, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (w->packed[j].bytes > 0 && w->packed[j].type == w->packed[i].type &&
            w->packed[j].layout == w->packed[i].layout &&
            w->packed[j].backend == w->packed[i].backend)
            return false;
    return true;
}

ak_status ak_pack_cache_key(const struct ak_pack_job *job, struct ak_store_key *out,
                            struct ak_error *error)
{
    const struct ak_weights *w = job->weights;
    struct ak_provider_fingerprint source;
    struct ak_sha256 h;
    ak_provider_fingerprint(job->source, &source);
    ak_sha256_begin(&h);
    add_number(&h, AK_STORE_VERSION);
    hash_text(&h, job->backend->ops->name);
    add_number(&h, source.bytes);
    add_number(&h, (uint64_t)source.mtime_ns);
    add_number(&h, source.hash[0]);
    add_number(&h, source.hash[1]);
    add_number(&h, w->block_bytes);
    for (uint32_t i = 0; i < w->n_packed; i++) {
        const struct ak_pack_weight *packed = &w->packed[i];
        if (packed->bytes == 0)
            continue;
        add_packed(&h, packed);
        add_composed(&h, w, i);
        if (is_first(w, i) && packed->backend->ops->packed_bytes(packed->backend, packed->layout,
                                                                 packed->type, 1, SAMPLE_COLS) > 0)
            AK_TRY(add_sample(&h, packed, error));
    }
    ak_sha256_end(&h, out->digest);
    return AKUNU_OK;
}

void ak_pack_cache_name(const struct ak_store_key *key, char name[AK_STORE_NAME_BYTES])
{
    ak_store_file_name(key, AK_STORE_PACKED_SUFFIX, name);
}

void ak_pack_cache_temp_name(const struct ak_store_key *key, char name[AK_STORE_NAME_BYTES])
{
    ak_store_file_name(key, AK_STORE_PACKED_TEMP_SUFFIX, name);
}

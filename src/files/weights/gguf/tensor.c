/* Checks tensors of a GGUF file: type, shape, alignment, and that no two share bytes. */
#include "files/weights/gguf/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/formats.h"

/* Each dimension must fit 32 bits, and so must the product of all but the contiguous one. */
static ak_status check_shape(const struct ak_gguf_raw_tensor *raw, struct ak_gguf_tensor *out,
                             uint64_t *rows, struct ak_error *error)
{
    *rows = 1;
    for (uint32_t d = 0; d < raw->n_dims; d++) {
        uint64_t n = raw->dims[d];
        if (n == 0 || n > INT64_MAX)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "tensor %s: dimension %u is %lld, where at least 1 is expected",
                           raw->name, d, (long long)n);
        if (n > UINT32_MAX || (d > 0 && (*rows *= n) > UINT32_MAX))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "tensor %s: dimension %u is %llu, which is too large", raw->name, d,
                           (unsigned long long)n);
        out->dims[d] = (uint32_t)n;
    }
    return AKUNU_OK;
}

ak_status ak_gguf_check_tensor(const struct ak_gguf_raw_tensor *raw, uint64_t alignment,
                               struct ak_gguf_tensor *out, struct ak_error *error)
{
    uint64_t rows, row_bytes;
    AK_TRY(ak_ggml_type_find(raw->type, raw->name, &out->type, error));
    AK_TRY(check_shape(raw, out, &rows, error));
    out->n_dims = raw->n_dims;
    const struct ak_quant_info *info = ak_quant_info(out->type);
    if (!ak_quant_row_bytes(out->type, out->dims[0], &row_bytes))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensor %s has rows of %u elements, where %s needs a multiple of %u",
                       raw->name, out->dims[0], info->name, info->block_elems);
    if (!ak_mul_u64(rows, row_bytes, &out->bytes))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s: its size overflows 64 bits",
                       raw->name);
    if (raw->offset % alignment != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensor %s: offset %llu is not a multiple of the alignment %llu", raw->name,
                       (unsigned long long)raw->offset, (unsigned long long)alignment);
    out->offset = raw->offset;
    return AKUNU_OK;
}

/* The name for a message. */
static const char *shown_name(const struct ak_gguf *g, const struct ak_gguf_tensor *t, char *out)
{
    const char *name = g->names.bytes + t->name;
    return ak_show(name, strlen(name), out);
}

static int by_offset(const void *a, const void *b)
{
    const struct ak_gguf_tensor *const *x = a, *const *y = b;
    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

static ak_status check_neighbors(const struct ak_gguf *g, const struct ak_gguf_tensor *a,
                                 const struct ak_gguf_tensor *b, struct ak_error *error)
{
    if (b->offset - a->offset >= a->bytes)
        return AKUNU_OK;
    char first[AK_SHOW_BYTES], second[AK_SHOW_BYTES];
    return ak_fail(
        error, AKUNU_ERROR_FORMAT, "tensors %s (%llu bytes at %llu) and %s (at %llu) share bytes",
        shown_name(g, a, first), (unsigned long long)a->bytes, (unsigned long long)a->offset,
        shown_name(g, b, second), (unsigned long long)b->offset);
}

static ak_status check_apart(struct ak_gguf *g, const struct ak_gguf_part *part,
                             struct ak_error *error)
{
    const struct ak_gguf_tensor **order = ak_alloc(part->n_tensors, sizeof(void *));
    if (!order)
        return ak_fail_memory(error, "the order of the tensors", part->n_tensors * sizeof(void *));
    bool sorted = true;
    for (size_t i = 0; i < part->n_tensors; i++) {
        order[i] = &g->tensors[part->first_tensor + i];
        sorted = sorted && (i == 0 || order[i - 1]->offset <= order[i]->offset);
    }
    if (!sorted)
        qsort(order, part->n_tensors, sizeof(void *), by_offset);
    ak_status status = AKUNU_OK;
    for (size_t i = 1; i < part->n_tensors && status == AKUNU_OK; i++)
        status = check_neighbors(g, order[i - 1], order[i], error);
    ak_free(order);
    return status;
}

ak_status ak_gguf_place_tensors(struct ak_gguf *g, const struct ak_gguf_part *part,
                                struct ak_error *error)
{
    for (size_t i = 0; i < part->n_tensors; i++) {
        struct ak_gguf_tensor *t = &g->tensors[part->first_tensor + i];
        char shown[AK_SHOW_BYTES];
        uint64_t begin, end;
        if (!ak_add_u64(part->data, t->offset, &begin) || !ak_add_u64(begin, t->bytes, &end))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "tensor %s: offset %llu is beyond the end of the file (%llu bytes)",
                           shown_name(g, t, shown), (unsigned long long)t->offset,
                           (unsigned long long)part->file.bytes);
        if (end > part->file.bytes)
            return ak_fail(
                error, AKUNU_ERROR_FORMAT,
                "tensor %s lies at bytes %llu to %llu, beyond the end of the file (%llu bytes)",
                shown_name(g, t, shown), (unsigned long long)begin, (unsigned long long)end,
                (unsigned long long)part->file.bytes);
        t->offset = begin;
    }
    return check_apart(g, part, error);
}

/* Uploads weights to the device piece by piece, from the packed block or the file, and drops the
 * pages behind. A device with unified memory reads packed or stored rows zero-copy. */
#include <string.h>

#include "base/mem.h"
#include "opencl/opencl.h"

ak_status ak_ocl_fail(const struct ak_ocl *o, cl_int code, const char *what, uint64_t bytes,
                      struct ak_error *error)
{
    bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                  code == CL_INVALID_BUFFER_SIZE || code == CL_OUT_OF_HOST_MEMORY;
    return ak_fail(error, memory ? AKUNU_ERROR_MEMORY : AKUNU_ERROR_UNSUPPORTED,
                   memory ?
                       "%s has no room for %s: %.1f MB wanted; it has %.1f MB, at most %.1f "
                       "MB in one allocation (%s)" :
                       "%s: %s failed, %.1f MB; memory %.1f MB, largest allocation %.1f MB (%s)",
                   o->device.name, what, (double)bytes / 1e6, (double)o->device.memory / 1e6,
                   (double)o->device.max_allocation / 1e6, ak_ocl_error_name(code));
}

ak_status ak_ocl_create_buffer(const struct ak_ocl *o, uint64_t bytes, const char *what,
                               cl_mem *out, struct ak_error *error)
{
    cl_int code = CL_INVALID_BUFFER_SIZE;
    cl_mem memory = NULL;
    if (bytes <= o->device.max_allocation)
        memory = o->cl->clCreateBuffer(o->context, CL_MEM_READ_WRITE, bytes ? (size_t)bytes : 1,
                                       NULL, &code);
    *out = code == CL_SUCCESS ? memory : NULL;
    return code == CL_SUCCESS ? AKUNU_OK : ak_ocl_fail(o, code, what, bytes, error);
}

void ak_ocl_release_weights(struct ak_ocl *o)
{
    for (uint32_t i = 0; i < o->n_packed; i++) {
        if (o->packed[i].memory)
            o->cl->clReleaseMemObject(o->packed[i].memory);
        if (o->packed[i].order)
            o->cl->clReleaseMemObject(o->packed[i].order);
    }
    if (o->vectors)
        o->cl->clReleaseMemObject(o->vectors);
    ak_free(o->packed);
    ak_free(o->vector_at);
    o->packed = NULL;
    o->vector_at = NULL;
    o->vectors = NULL;
    o->weights = NULL;
    o->n_packed = 0;
}

/* Drops the mapped pages of uploaded bytes; they stay in the page cache. */
static void drop_pages(const struct ak_ocl *o, const void *data, uint64_t bytes)
{
    const struct ak_weights *w = o->weights;
    const uint8_t *at = data;
    if (w->source)
        ak_provider_advise(w->source, data, bytes, AK_FILE_DONTNEED);
    if (w->block_mapped && at >= w->block && at < w->block + w->block_bytes)
        ak_pages_drop(data, (size_t)bytes);
}

static cl_int write_bytes(const struct ak_ocl *o, cl_mem to, uint64_t at, const void *from,
                          uint64_t bytes)
{
    cl_int code = CL_SUCCESS;
    for (uint64_t done = 0; done < bytes && code == CL_SUCCESS; done += AK_OCL_STAGING) {
        uint64_t n = bytes - done < AK_OCL_STAGING ? bytes - done : AK_OCL_STAGING;
        code = o->cl->clEnqueueWriteBuffer(o->queue, to, CL_TRUE, (size_t)(at + done), (size_t)n,
                                           (const uint8_t *)from + done, 0, NULL, NULL);
        drop_pages(o, (const uint8_t *)from + done, n);
    }
    return code;
}

/* Writes stored rows of floats, each padded to `padded` bytes, some at a time. */
static cl_int write_rows(const struct ak_ocl *o, cl_mem to, uint64_t at, const uint8_t *from,
                         uint64_t rows, size_t row_bytes, size_t padded)
{
    if (row_bytes == padded)
        return write_bytes(o, to, at, from, rows * row_bytes);
    uint64_t max = AK_OCL_STAGING / padded ? AK_OCL_STAGING / padded : 1;
    uint8_t *staging = ak_alloc((size_t)(rows < max ? rows : max), padded);
    cl_int code = staging ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    for (uint64_t row = 0; row < rows && code == CL_SUCCESS; row += max) {
        uint64_t n = rows - row < max ? rows - row : max;
        for (uint64_t i = 0; i < n; i++)
            memcpy(staging + i * padded, from + (row + i) * row_bytes, row_bytes);
        code = write_bytes(o, to, at + row * padded, staging, n * padded);
        drop_pages(o, from + row * row_bytes, n * row_bytes);
    }
    ak_free(staging);
    return code;
}

/* Bytes of a row (also of a row in a tile): stored, and on the device. */
static void get_row_bytes(const struct ak_pack_weight *packed, uint64_t *row_bytes,
                          uint64_t *padded)
{
    *row_bytes = 0;
    (void)ak_quant_row_bytes(packed->type, packed->cols, row_bytes);
    *padded = ak_ocl_is_tiled(packed->type) ?
                  *row_bytes :
                  *row_bytes / packed->cols * ak_round_up(packed->cols, AK_OCL_BLOCK_K);
}

static uint32_t count_matrices(const struct ak_pack_weight *packed)
{
    return packed->n_experts ? packed->n_experts : 1;
}

/* Rows of one matrix, all parts. */
static uint32_t rows_of(const struct ak_pack_weight *packed)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < packed->n_parts; i++)
        rows +=
            (uint32_t)ak_round_up(packed->parts[i].rows / count_matrices(packed), AK_OCL_TILE_ROWS);
    return rows;
}

uint64_t ak_ocl_weight_bytes(const struct ak_pack_weight *packed)
{
    uint64_t row_bytes, padded, bytes;
    get_row_bytes(packed, &row_bytes, &padded);
    return ak_mul_u64(rows_of(packed) * padded, count_matrices(packed), &bytes) ? bytes :
                                                                                  UINT64_MAX;
}

/* The weight if it can be used zero-copy, else NULL. GPU drivers need page alignment, CPU drivers
 * that of vectors. */
static const void *find_zero_copy(const struct ak_ocl *o, const struct ak_pack_weight *packed)
{
    const struct ak_pack_part *part = &packed->parts[0];
    uint64_t row_bytes, padded;
    get_row_bytes(packed, &row_bytes, &padded);
    bool whole = packed->bytes > 0 || (packed->n_parts == 1 && !part->view->expert_views &&
                                       part->rows % AK_OCL_TILE_ROWS == 0);
    bool by_matrix =
        packed->n_experts == 0 ||
        (packed->n_parts == 1 && part->rows / packed->n_experts % AK_OCL_TILE_ROWS == 0);
    if (!o->device.unified || row_bytes != padded || !whole || !by_matrix)
        return NULL;
    return (uintptr_t)part->data % (o->device.cpu ? 32 : 4096) == 0 ? part->data : NULL;
}

static bool map_zero_copy(const struct ak_ocl *o, const struct ak_pack_weight *packed,
                          uint64_t total, struct ak_ocl_weight *weight)
{
    const void *at = find_zero_copy(o, packed);
    /* in the block each weight starts at a page of its own */
    uint64_t bytes = packed->bytes > 0 ? ak_round_up(total, 64) : total;
    cl_int code;
    if (!at || bytes > o->device.max_allocation)
        return false;
    weight->memory = o->cl->clCreateBuffer(o->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
                                           (size_t)bytes, (void *)(uintptr_t)at, &code);
    weight->is_zero_copy = code == CL_SUCCESS;
    if (!weight->is_zero_copy)
        weight->memory = NULL;
    return weight->is_zero_copy;
}

static ak_status upload(struct ak_ocl *o, const struct ak_pack_weight *packed,
                        struct ak_ocl_weight *weight, struct ak_error *error)
{
    bool tiled = ak_ocl_is_tiled(packed->type);
    uint32_t n = count_matrices(packed);
    uint64_t row_bytes, padded, total = ak_ocl_weight_bytes(packed);
    get_row_bytes(packed, &row_bytes, &padded);
    weight->rows = rows_of(packed);
    weight->expert_bytes = weight->rows * padded;
    if (map_zero_copy(o, packed, total, weight))
        return AKUNU_OK;
    AK_TRY(ak_ocl_create_buffer(o, total, "the weights", &weight->memory, error));
    const uint32_t zero = 0;
    cl_int code = o->cl->clEnqueueFillBuffer(o->queue, weight->memory, &zero, sizeof zero, 0,
                                             (size_t)total, 0, NULL, NULL);
    for (uint32_t e = 0; e < n && code == CL_SUCCESS; e++) {
        uint64_t at = e * weight->expert_bytes;
        for (uint32_t i = 0; i < packed->n_parts && code == CL_SUCCESS; i++) {
            const struct ak_pack_part *part = &packed->parts[i];
            uint64_t rows = part->rows / n, padded_rows = ak_round_up(rows, AK_OCL_TILE_ROWS);
            const uint8_t *from =
                ak_pack_matrix(packed, part, e, (tiled ? padded_rows : rows) * row_bytes);
            code = tiled ? write_bytes(o, weight->memory, at, from, padded_rows * row_bytes) :
                           write_rows(o, weight->memory, at, from, rows, (size_t)row_bytes,
                                      (size_t)padded);
            at += padded_rows * padded;
        }
    }
    return code == CL_SUCCESS ? AKUNU_OK : ak_ocl_fail(o, code, "the weights", total, error);
}

static ak_status upload_order(struct ak_ocl *o, const struct ak_pack_weight *packed,
                              struct ak_ocl_weight *weight, struct ak_error *error)
{
    uint64_t bytes = packed->cols * sizeof *packed->order;
    if (!packed->order)
        return AKUNU_OK;
    AK_TRY(ak_ocl_create_buffer(o, bytes, "the order of columns", &weight->order, error));
    cl_int code = write_bytes(o, weight->order, 0, packed->order, bytes);
    return code == CL_SUCCESS ? AKUNU_OK :
                                ak_ocl_fail(o, code, "the order of columns", bytes, error);
}

uint64_t ak_ocl_position_bytes(const struct ak_weights *weights)
{
    const struct ak_view *view = weights->encoder_positions;
    return view ? (uint64_t)view->rows * view->cols * sizeof(float) : 0;
}

/* Uploads the encoder's positions as floats. */
static cl_int upload_positions(const struct ak_ocl *o, const struct ak_weights *weights)
{
    const struct ak_view *view = weights->encoder_positions;
    uint64_t bytes = ak_ocl_position_bytes(weights);
    if (bytes == 0)
        return CL_SUCCESS;
    float *rows = ak_alloc(view->rows + (size_t)1, view->cols * sizeof *rows),
          *scratch = rows + (size_t)view->rows * view->cols;
    if (!rows)
        return CL_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < view->rows; i++)
        ak_table_add_position(weights, NULL, i, scratch, rows + (size_t)i * view->cols);
    cl_int code = write_bytes(o, o->vectors, o->positions_at * sizeof *rows, rows, bytes);
    ak_free(rows);
    return code;
}

/* Uploads norms, biases and other vectors, one after another, then the encoder's positions. */
static ak_status upload_vectors(struct ak_ocl *o, const struct ak_weights *weights,
                                struct ak_error *error)
{
    uint64_t elems = 0;
    o->vector_at = ak_alloc(weights->n_vectors, sizeof *o->vector_at);
    if (!o->vector_at)
        return ak_fail_memory(error, "a list of vectors", 0);
    for (uint32_t i = 0; i < weights->n_vectors; i++) {
        o->vector_at[i] = elems;
        elems += ak_round_up(weights->vectors[i].n, AK_OCL_TILE_ROWS);
    }
    o->positions_at = elems;
    elems += ak_ocl_position_bytes(weights) / sizeof(float);
    AK_TRY(ak_ocl_create_buffer(o, elems * sizeof(float), "the vectors", &o->vectors, error));
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; i < weights->n_vectors && code == CL_SUCCESS; i++)
        code = write_bytes(o, o->vectors, o->vector_at[i] * sizeof(float), weights->vectors[i].data,
                           weights->vectors[i].n * sizeof(float));
    code = code ? code : upload_positions(o, weights);
    return code == CL_SUCCESS ? AKUNU_OK :
                                ak_ocl_fail(o, code, "the vectors", elems * sizeof(float), error);
}

static ak_status upload_all(struct ak_ocl *o, const struct ak_weights *weights,
                            struct ak_error *error)
{
    o->packed = ak_alloc(weights->n_packed, sizeof *o->packed);
    if (!o->packed)
        return ak_fail_memory(error, "a list of weights", 0);
    o->weights = weights;
    o->n_packed = weights->n_packed;
    for (uint32_t i = 0; i < weights->n_packed; i++) {
        if (weights->packed[i].backend != &o->base)
            continue;
        AK_TRY(upload(o, &weights->packed[i], &o->packed[i], error));
        AK_TRY(upload_order(o, &weights->packed[i], &o->packed[i], error));
    }
    AK_TRY(upload_vectors(o, weights, error));
    /* what was packed in this process's memory is no longer needed */
    for (uint32_t i = 0; i < weights->n_packed && !weights->block_mapped; i++)
        if (o->packed[i].memory && !o->packed[i].is_zero_copy && weights->packed[i].bytes > 0)
            ak_pages_drop(weights->packed[i].parts[0].data, (size_t)weights->packed[i].bytes);
    return AKUNU_OK;
}

ak_status ak_ocl_upload(struct ak_ocl *o, const struct ak_weights *weights, struct ak_error *error)
{
    ak_status status = AKUNU_OK;
    pthread_mutex_lock(&o->lock);
    if (o->weights != weights) {
        if (o->weights)
            ak_ocl_release_weights(o);
        status = upload_all(o, weights, error);
        if (status != AKUNU_OK)
            ak_ocl_release_weights(o);
    }
    pthread_mutex_unlock(&o->lock);
    return status;
}

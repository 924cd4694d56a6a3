/* Arrays of a tensor: rows are read and encoded by all threads, a piece at a time. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "conversion/compress/compress.h"
#include "conversion/quantize/quantize.h"

enum { PIECE_BYTES = 1 << 20 };
/* Of INT8. Below it the groups become smaller, and at last the matrix stays F16: a single large
 * element in each group of 32 leaves a cosine of 0.99992. */
static const double min_cosine = 0.99995;
static const float max_f16 = 65504.0f;

struct buffers {
    float *stored, *values, *weights; /* [cols] */
};

/* Sums over a row, added up in the order of rows, so that threads make no difference. */
struct sums {
    double xx, xy, yy;
    bool is_inexact, is_large, has_no_number; /* as F16: not exact; infinite */
};

struct work {
    struct ak_compress_job *j;
    const struct ak_compress_tensor *t;
    unsigned bits; /* 0: floats */
    uint32_t group;
    bool as_f32;
    struct buffers *buffers; /* of each thread */
    uint8_t *numbers;        /* of max_rows rows */
    float *scales;
    struct sums *sums; /* [max_rows] */
    uint64_t number_bytes, n_scales, max_rows, first, n;
};

static uint64_t count_number_bytes(const struct work *w)
{
    return w->bits ? w->t->cols / 8 * w->bits : w->t->cols * (w->as_f32 ? 4 : 2);
}

/* ---- A row -------------------------------------------------------------- */
static void look_at_row(const float *x, uint64_t n, struct sums *sums)
{
    float sum = 0.0f; /* NaN if one is, or is infinite */
    *sums = (struct sums){ .xx = 0.0 };
    for (uint64_t i = 0; i < n; i++) {
        sum += x[i] - x[i];
        sums->is_inexact |= ak_f16_to_float(ak_float_to_f16(x[i])) != x[i];
        sums->is_large |= fabsf(x[i]) > max_f16;
    }
    sums->has_no_number = sum != 0.0f;
}

static void store_floats(const struct work *w, const float *x, uint8_t *out)
{
    for (uint64_t i = 0; i < w->t->cols; i++) {
        uint16_t half = ak_float_to_f16(x[i]);
        if (w->as_f32)
            memcpy(out + 4 * i, &x[i], 4);
        else
            memcpy(out + 2 * i, &half, 2);
    }
}

int ak_compress_get_number(unsigned bits, const uint8_t *numbers, uint64_t i)
{
    if (bits == 8)
        return (int8_t)numbers[i];
    if (bits == 4)
        return (numbers[i / 2] >> i % 2 * 4 & 15) - 8;
    uint64_t at = i / 8 * 3;
    uint32_t word =
        (uint32_t)numbers[at] | (uint32_t)numbers[at + 1] << 8 | (uint32_t)numbers[at + 2] << 16;
    return (int)(word >> i % 8 * 3 & 7) - 4;
}

/* A scale that no F16 holds counts as no number. */
static void compare_row(const struct work *w, const float *x, const uint8_t *numbers,
                        const float *scales, struct sums *sums)
{
    *sums = (struct sums){ .xx = 0.0 };
    for (uint64_t i = 0; i < w->t->cols; i++) {
        float y = scales[i / w->group] * (float)ak_compress_get_number(w->bits, numbers, i);
        sums->xx += (double)x[i] * (double)x[i];
        sums->xy += (double)x[i] * (double)y;
        sums->yy += (double)y * (double)y;
    }
    sums->has_no_number = !isfinite(sums->xx) || !isfinite(sums->yy);
}

static void make_row(const struct work *w, uint64_t i, const struct buffers *b)
{
    uint8_t *numbers = w->numbers + i * w->number_bytes;
    ak_compress_read_row(w->j, w->t, w->first + i, b->stored, b->values);
    if (w->bits == 0) {
        store_floats(w, b->values, numbers);
        return;
    }
    float *scales = w->scales + i * w->n_scales;
    if (w->t->importance)
        ak_compress_get_weights(w->t, w->first + i, w->t->factors, b->weights);
    ak_quantize_groups(w->bits, w->group, b->values, w->t->importance ? b->weights : NULL, numbers,
                       scales, (size_t)w->t->cols);
    compare_row(w, b->values, numbers, scales, &w->sums[i]);
}

static void make_rows(void *user, unsigned thread)
{
    const struct work *w = user;
    for (uint64_t i = thread; i < w->n; i += ak_pool_threads(w->j->pool))
        make_row(w, i, &w->buffers[thread]);
}

static void look_at_rows(void *user, unsigned thread)
{
    const struct work *w = user;
    const struct buffers *b = &w->buffers[thread];
    for (uint64_t i = thread; i < w->n; i += ak_pool_threads(w->j->pool)) {
        ak_compress_read_row(w->j, w->t, w->first + i, b->stored, b->values);
        look_at_row(b->values, w->t->cols, &w->sums[i]);
    }
}

/* ---- Pieces ------------------------------------------------------------- */
static ak_status open_work(struct work *w)
{
    unsigned n_threads = ak_pool_threads(w->j->pool);
    size_t cols = (size_t)w->t->cols;
    w->number_bytes = count_number_bytes(w);
    w->n_scales = w->bits ? w->t->cols / w->group : 0;
    w->max_rows = PIECE_BYTES / w->number_bytes;
    w->max_rows = w->max_rows < n_threads ? n_threads : w->max_rows;
    w->max_rows = w->max_rows < w->t->rows ? w->max_rows : w->t->rows;
    w->numbers = ak_alloc((size_t)w->max_rows, (size_t)w->number_bytes);
    w->scales = ak_alloc((size_t)w->max_rows, (size_t)w->n_scales * sizeof *w->scales);
    w->sums = ak_alloc((size_t)w->max_rows, sizeof *w->sums);
    w->buffers = ak_alloc(n_threads, sizeof *w->buffers);
    bool has_all = w->numbers && w->scales && w->sums && w->buffers;
    for (unsigned i = 0; has_all && i < n_threads; i++) {
        struct buffers *b = &w->buffers[i];
        b->stored = ak_alloc(cols, sizeof *b->stored);
        b->values = ak_alloc(cols, sizeof *b->values);
        b->weights = ak_alloc(cols, sizeof *b->weights);
        has_all = b->stored && b->values && b->weights;
    }
    return has_all ? AKUNU_OK :
                     ak_fail_memory(w->j->error, w->t->name, w->max_rows * w->number_bytes);
}

static void close_work(struct work *w)
{
    for (unsigned i = 0; w->buffers && i < ak_pool_threads(w->j->pool); i++) {
        ak_free(w->buffers[i].stored);
        ak_free(w->buffers[i].values);
        ak_free(w->buffers[i].weights);
    }
    ak_free(w->buffers);
    ak_free(w->numbers);
    ak_free(w->scales);
    ak_free(w->sums);
}

static void add_sums(const struct work *w, struct sums *to)
{
    for (uint64_t i = 0; i < w->n; i++) {
        to->xx += w->sums[i].xx;
        to->xy += w->sums[i].xy;
        to->yy += w->sums[i].yy;
        to->is_inexact |= w->sums[i].is_inexact;
        to->is_large |= w->sums[i].is_large;
        to->has_no_number |= w->sums[i].has_no_number;
    }
}

/* Each piece of the rows: `task` on all threads, then its arrays, unless these are NULL. */
static ak_status run_pieces(struct work *w, ak_task *task, struct ak_compress_array *numbers,
                            struct ak_compress_array *scales, struct sums *sums)
{
    ak_status status = AKUNU_OK;
    *sums = (struct sums){ .xx = 0.0 };
    for (w->first = 0; status == AKUNU_OK && w->first < w->t->rows; w->first += w->n) {
        w->n = w->t->rows - w->first < w->max_rows ? w->t->rows - w->first : w->max_rows;
        ak_pool_run(w->j->pool, task, w);
        add_sums(w, sums);
        if (sums->has_no_number)
            return ak_fail(w->j->error, AKUNU_ERROR_FORMAT,
                           "%s has elements that are no finite numbers, or so large that no scale "
                           "holds them",
                           w->t->name);
        if (numbers)
            status = ak_compress_array_write(numbers, w->numbers, (size_t)(w->n * w->number_bytes));
        if (status == AKUNU_OK && scales)
            status = ak_compress_array_write(scales, w->scales,
                                             (size_t)(w->n * w->n_scales) * sizeof *w->scales);
        if (status == AKUNU_OK && numbers)
            status = ak_compress_advance(w->j, (double)(w->n * w->t->cols));
    }
    return status;
}

/* ---- The tensor --------------------------------------------------------- */
static ak_status write_shape(struct ak_compress_job *j, const struct ak_compress_tensor *t)
{
    struct ak_compress_array a;
    int64_t shape[AK_TENSOR_DIMS_MAX];
    for (unsigned d = 0; d < t->n_dims; d++)
        shape[d] = (int64_t)t->shape[d];
    uint64_t n = t->n_dims;
    AK_TRY(ak_compress_array_open(&a, ak_compress_folder_arrays(j->folder), t->safe, "__shape",
                                  "<i8", 1, &n, n * sizeof *shape, j->error));
    return ak_compress_array_close(&a, ak_compress_array_write(&a, shape, n * sizeof *shape));
}

static ak_status write_arrays(struct work *w, const struct ak_compress_encoding_info *info,
                              struct sums *sums)
{
    const struct ak_compress_tensor *t = w->t;
    int folder = ak_compress_folder_arrays(w->j->folder);
    uint64_t shape[] = { t->rows, w->number_bytes }, scales_shape[] = { t->rows, w->n_scales };
    struct ak_compress_array numbers, scales = { .fd = -1 };
    const char *type = w->bits == 8 ? "|i1" : w->bits ? "|u1" : w->as_f32 ? "<f4" : "<f2";
    AK_TRY(ak_compress_array_open(&numbers, folder, t->safe, info->numbers, type,
                                  w->bits ? 2 : t->n_dims, w->bits ? shape : t->shape,
                                  t->rows * w->number_bytes, w->j->error));
    ak_status status = AKUNU_OK;
    if (w->bits)
        status =
            ak_compress_array_open(&scales, folder, t->safe, info->scales, "<f4", 2, scales_shape,
                                   t->rows * w->n_scales * sizeof(float), w->j->error);
    if (status == AKUNU_OK)
        status = run_pieces(w, make_rows, &numbers, w->bits ? &scales : NULL, sums);
    status = ak_compress_array_close(&scales, status);
    return ak_compress_array_close(&numbers, status);
}

/* Zeros are zeros again. Of other numbers 0 remains if no F16 is as small as their scale. */
static double get_cosine(const struct sums *sums)
{
    if (sums->yy > 0.0)
        return sums->xy / sqrt(sums->xx * sums->yy);
    return sums->xx > 0.0 ? 0.0 : 1.0;
}

/* Embeddings lose nothing that matters if small numbers lose bits, and would be twice as large. */
static bool is_table(const struct ak_compress_tensor *t)
{
    return t->has_role &&
           (t->role == AK_ROLE_TOKEN_EMBEDDING || t->role == AK_ROLE_OUTPUT ||
            t->role == AK_ROLE_POSITION_EMBEDDING || t->role == AK_ROLE_TOKEN_TYPE_EMBEDDING);
}

static ak_status encode_plain(struct ak_compress_job *j, const struct ak_compress_tensor *t)
{
    struct work w = { .j = j, .t = t };
    struct sums sums;
    ak_status status = open_work(&w);
    if (status == AKUNU_OK)
        status = run_pieces(&w, look_at_rows, NULL, NULL, &sums);
    close_work(&w);
    AK_TRY(status);
    w = (struct work){ .j = j, .t = t };
    w.as_f32 = sums.is_large || (sums.is_inexact && !is_table(t));
    status = open_work(&w);
    if (status == AKUNU_OK)
        status = write_arrays(&w, &ak_compress_encodings[AK_COMPRESS_PLAIN], &sums);
    close_work(&w);
    AK_TRY(status);
    return ak_compress_folder_add(
        j->folder, t, AK_COMPRESS_PLAIN,
        json_pack("{sI}", "bytes", (json_int_t)(t->rows * w.number_bytes)));
}

static ak_status encode_groups(struct ak_compress_job *j, const struct ak_compress_tensor *t,
                               uint32_t group, struct sums *sums, uint64_t *bytes)
{
    const struct ak_compress_encoding_info *info = &ak_compress_encodings[j->options->encoding];
    struct work w = { .j = j, .t = t, .bits = info->bits, .group = group };
    ak_status status = open_work(&w);
    if (status == AKUNU_OK)
        status = write_arrays(&w, info, sums);
    *bytes = t->rows * (w.number_bytes + w.n_scales * sizeof(float));
    close_work(&w);
    return status;
}

static void remove_arrays(const struct ak_compress_job *j, const struct ak_compress_tensor *t)
{
    const struct ak_compress_encoding_info *info = &ak_compress_encodings[j->options->encoding];
    ak_compress_array_remove(ak_compress_folder_arrays(j->folder), t->safe, info->numbers);
    ak_compress_array_remove(ak_compress_folder_arrays(j->folder), t->safe, info->scales);
}

static bool loses_too_much(const struct ak_compress_job *j, double cosine)
{
    return j->options->encoding == AK_COMPRESS_INT8 ? cosine < min_cosine : cosine <= 0.0;
}

/* Smaller groups if INT8 lost too much, as with a few columns that are far larger than others. */
static ak_status encode_matrix(struct ak_compress_job *j, const struct ak_compress_tensor *t)
{
    uint32_t group = t->group;
    struct sums sums;
    uint64_t bytes;
    double done = j->done;
    AK_TRY(encode_groups(j, t, group, &sums, &bytes));
    while (group % 64 == 0 && loses_too_much(j, get_cosine(&sums))) {
        group /= 2;
        j->done = done;
        AK_TRY(encode_groups(j, t, group, &sums, &bytes));
    }
    double cosine = get_cosine(&sums);
    if (loses_too_much(j, cosine)) {
        ak_log_line(j->options->log, AKUNU_LOG_INFO,
                    "%s: stays a float: its cosine with %u bits is %.6f", t->name,
                    ak_compress_encodings[j->options->encoding].bits, cosine);
        remove_arrays(j, t);
        j->done = done;
        j->result->n_matrices--;
        return encode_plain(j, t);
    }
    return ak_compress_folder_add(j->folder, t, j->options->encoding,
                                  json_pack("{sIsssIsf}", "group", (json_int_t)group, "scales",
                                            "f16", "bytes", (json_int_t)bytes, "cosine", cosine));
}

static void count_cosine(struct ak_compress_result *result, const json_t *info)
{
    double cosine = json_number_value(json_object_get(info, "cosine"));
    if (cosine > 0.0 && (result->min_cosine == 0.0 || cosine < result->min_cosine))
        result->min_cosine = cosine;
}

ak_status ak_compress_encode(struct ak_compress_job *j, const struct ak_compress_tensor *t)
{
    enum ak_compress_encoding encoding = t->quantizes ? j->options->encoding : AK_COMPRESS_PLAIN;
    const json_t *info = ak_compress_folder_find(j->folder, t, encoding);
    struct ak_tensor tensor;
    if (info) {
        j->result->n_resumed += t->quantizes;
        count_cosine(j->result, info);
        return ak_compress_advance(j, (double)ak_compress_count_elems(t));
    }
    AK_TRY(write_shape(j, t));
    AK_TRY(t->quantizes ? encode_matrix(j, t) : encode_plain(j, t));
    count_cosine(j->result, ak_compress_folder_find(j->folder, t, encoding));
    for (uint32_t i = 0; i < t->n_parts; i++) {
        ak_provider_tensor(j->source, t->parts[i], &tensor);
        ak_provider_advise(j->source, tensor.data, tensor.bytes, AK_FILE_DONTNEED);
    }
    return AKUNU_OK;
}

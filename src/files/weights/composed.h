/* Composed tensors: blocks of an ordinary type, made on demand from several stored tensors
 * (weights, scales, zero points). They exist because a quantization scheme's layout is seldom a
 * block layout. Described by conversion/convert/online.c, weights/hf/,
 * files/weights/whisper/checkpoint.c and, for expert stacks, engine/pack/bind_experts.c; read by
 * engine/pack/, engine/cpu/, engine/dispatch/tokens.c (embedding rows), conversion/convert/ and
 * files/weights/stream.c; api/model.c shows their names. Nothing is cached.
 *
 *     x = scale · q + minimum, q up to 5 bits      Q4_1, Q5_1 if factors are F16; A4, A5 if BF16
 *     the same with more bits, or factors in F32   A8, with q shifted by half of its range
 *     x = scale · (q − half of q's range)          Q4_0 up to 4 bits, Q8_0, if scales are F16
 *     MXFP4                                        MXFP4
 *     E4M3, each 128 elements share one scale      F8
 *     anything else                                F16, each element rounded once
 *
 * These are the blocks' factors. Some schemes round stored ones to F16: BF16 scales with zero
 * points (GPTQ, AWQ, compressed-tensors), F32 scales of 3 and 4 bits (npy_dir.c).
 *
 * If adjacent columns belong to different groups, columns may be reordered so that any 32 share
 * one group; activations are reordered alike. Dequantized rows are in stored order.
 */
#ifndef AK_FILES_WEIGHTS_COMPOSED_H
#define AK_FILES_WEIGHTS_COMPOSED_H

#include "files/weights/provider.h"

enum { AK_COMPOSED_NAME_BYTES = 24, AK_COMPOSED_ELEMS_MAX = 256, AK_COMPOSED_ROWS_MAX = 16 };

/* Gets whole rows of blocks, AK_COMPOSED_ROWS_MAX pointers; NULL after the last row. They last
 * until it returns. */
typedef void ak_composed_rows_fn(const void *const *rows, void *user);

/* Reader of a scheme's rows, counted over the whole expert stack. Provides `blocks`, or `values`,
 * or `quants` with `factors`; the latter also `values` if the order or rounding differs; or `rows`
 * alone, if the blocks of a part of a row depend on all of it.
 * n <= AK_COMPOSED_ELEMS_MAX; first and n are block multiples, except for `values` alone. */
struct ak_composed_scheme {
    void (*quants)(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out);
    /* Factors of the group of element k; 32 elements share one. */
    void (*factors)(const struct ak_composed_tensor *a, uint64_t row, uint32_t k, float *scale,
                    float *minimum);
    void (*values)(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   float *out);
    void (*blocks)(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out);
    /* Makes n rows, of which each is `step` after the other, and calls fn. */
    void (*rows)(const struct ak_composed_tensor *a, uint64_t first, uint32_t step, uint32_t n,
                 ak_composed_rows_fn *fn, void *user);
    /* blocks are those of a GGUF file, and results must equal those with the file */
    bool is_gguf;
    bool is_row_major; /* planes divide into equal parts, one per row, in row order */
};

struct ak_composed_tensor {
    const struct ak_composed_scheme *scheme;
    char name[AK_COMPOSED_NAME_BYTES];  /* name of the stored type: "MLX4_G64" */
    enum ak_quant_type type;            /* of the blocks */
    enum ak_quant_type factor_type;     /* of plane 1: F32, F16, BF16, or per scheme */
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* of the weight */
    unsigned n_dims;
    uint32_t rows, cols, bits, group; /* group: columns that share a scale */
    uint32_t zero_offset;             /* added to each stored zero point */
    uint32_t block_rows, scale_cols;  /* rows that share scales; scales per row */
    /* [cols], owned: the stored column of each column of the blocks; NULL: same order */
    uint32_t *order;
    struct ak_plane plane[AK_VIEW_PLANES_MAX];
};

/* Frees the tensor and its order. NULL allowed. */
void ak_composed_free(struct ak_composed_tensor *a);

/* MXFP4 as MLX and gpt-oss store it. Plane 0: two neighbors of a row per byte. Plane 1: one
 * exponent per 32 elements. */
extern const struct ak_composed_scheme ak_composed_mxfp4;

/* The block type for numbers of `bits` with scale and minimum of `factor_type`. */
enum ak_quant_type ak_composed_affine_type(uint32_t bits, enum ak_quant_type factor_type);

/* The block type for numbers of 4 or 8 bits with a scale only, offset by half of their range. */
enum ak_quant_type ak_composed_symmetric_type(uint32_t bits, enum ak_quant_type factor_type);

/* Reads `quants` of a bit-packed row, lowest bits first; 32 numbers take `bits` 32-bit words. */
void ak_composed_read_bits(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                           uint32_t n, uint8_t *out);

/* Whether F16 represents the first n factors of a plane exactly. */
bool ak_composed_fits_f16(enum ak_quant_type type, const struct ak_plane *plane, uint64_t n);

/* Elements [first, first + n) of a row, whole blocks: as blocks, and as floats. The floats are
 * those that the scheme's reference computes in float32. */
void ak_composed_make_blocks(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                             uint32_t n, void *out);
void ak_composed_dequantize(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                            uint32_t n, float *out);

/* Element i of a plane of F32, F16 or BF16, or of 32-bit words; little-endian, at any address. */
float ak_composed_factor(enum ak_quant_type type, const struct ak_plane *plane, uint64_t i);
uint32_t ak_composed_word(const struct ak_plane *plane, uint64_t i);

/* Column order of a view's blocks; NULL: as stored. */
static inline const uint32_t *ak_composed_order(const struct ak_view *view)
{
    return view->composed_tensor ? view->composed_tensor->order : NULL;
}

/* True if the weights were quantized for float activations: a composed tensor, unless its blocks
 * are those of a GGUF file. */
static inline bool ak_composed_is_foreign(const struct ak_view *view)
{
    return view->composed_tensor && !view->composed_tensor->scheme->is_gguf;
}

/* Whether rows are made whole: by ak_composed_make_rows. */
static inline bool ak_composed_has_rows(const struct ak_view *view)
{
    return view->composed_tensor && view->composed_tensor->scheme->rows;
}

/* Makes rows [first, first + n) of a view with ak_composed_has_rows; n <= AK_COMPOSED_ROWS_MAX. */
static inline void ak_composed_make_rows(const struct ak_view *view, uint64_t first, uint32_t n,
                                         ak_composed_rows_fn *fn, void *user)
{
    view->composed_tensor->scheme->rows(view->composed_tensor,
                                        view->first_row + first * (view->is_interleaved ? 2 : 1),
                                        view->is_interleaved ? 2 : 1, n, fn, user);
}

/* Number of groups of a row. The last one may be short. */
static inline uint32_t ak_composed_n_groups(const struct ak_composed_tensor *a)
{
    return (a->cols - 1) / a->group + 1;
}

/* The row of the composed tensor that is row `row` of the view. */
static inline uint64_t ak_composed_row(const struct ak_view *view, uint64_t row)
{
    return view->first_row + row * (view->is_interleaved ? 2 : 1);
}

#endif

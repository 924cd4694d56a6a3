/* Weights that a file has in several tensors, numbers in one, their scales and minimums
 * or zero points in others, as rows of blocks of an ordinary type.
 *
 * What a scheme stores is seldom laid out as blocks are, so a composed tensor makes those of a
 * part of a row on demand: for the packer, which is their only reader but for the
 * embedding's rows and those who look. Nothing is kept of them.
 *
 *     x = scale · q + minimum, q of up to 5 bits   Q4_1, Q5_1 if factors are F16; A4, A5 if BF16
 *     the same of more bits, or factors in F32     A8, half of the range taken off its numbers
 *     x = scale · (q − half of q's range)          Q4_0 up to 4 bits, Q8_0, if scales are F16
 *     MXFP4                                        MXFP4
 *     E4M3, 128 and more of a row of one scale     F8
 *     anything else                                F16, each rounded once
 *
 * Where neighbors in a row are of several groups, its columns may be taken in another
 * order, in which any 32 are of one: blocks are in that order, and who multiplies with
 * them takes the other factor's elements in it too. As floats, rows are as they are stored.
 */
#ifndef AK_WEIGHTS_COMPOSED_H
#define AK_WEIGHTS_COMPOSED_H

#include "weights/provider.h"

enum { AK_COMPOSED_NAME_BYTES = 24, AK_COMPOSED_ELEMS_MAX = 256 };

/* How a scheme's rows are read; rows count over all matrices of a stack. Either `blocks`,
 * or `values`, or the first two, and then `values` too where these are not in the order of
 * the columns or round otherwise. n is at most AK_COMPOSED_ELEMS_MAX; except for `values` alone,
 * first and n are multiples of the blocks. */
struct ak_composed_scheme {
    void (*quants)(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out);
    /* Of the group that element k is in; 32 elements have one. */
    void (*factors)(const struct ak_composed_tensor *a, uint64_t row, uint32_t k, float *scale,
                    float *minimum);
    void (*values)(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   float *out);
    void (*blocks)(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out);
    bool is_row_major; /* planes have as many equal parts as there are rows, in their order */
};

struct ak_composed_tensor {
    const struct ak_composed_scheme *scheme;
    char name[AK_COMPOSED_NAME_BYTES];  /* of the stored type: "MLX4_G64" */
    enum ak_quant_type type;            /* of the blocks */
    enum ak_quant_type factor_type;     /* of plane 1: F32, F16, BF16, or what the scheme says */
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* of the weight */
    unsigned n_dims;
    uint32_t rows, cols, bits, group;
    uint32_t zero_offset; /* what is to be added to a stored zero point */
    /* rows that share scales, scales of a row; `group` columns share one */
    uint32_t block_rows, scale_cols;
    /* its own, [cols]: the column that is the k-th of the blocks; NULL: as stored */
    uint32_t *order;
    struct ak_plane plane[AK_VIEW_PLANES_MAX];
};

/* With its order; NULL allowed. */
void ak_composed_free(struct ak_composed_tensor *a);

/* MXFP4 as MLX and gpt-oss store it: a row's numbers two neighbors a byte in plane 0, an
 * exponent for each 32 in plane 1. */
extern const struct ak_composed_scheme ak_composed_mxfp4;

/* The type in which numbers of `bits` with factors of `factor_type` are multiplied. */
enum ak_quant_type ak_composed_affine_type(uint32_t bits, enum ak_quant_type factor_type);

/* The same of numbers without a minimum but half of their range, 4 or 8 bits. */
enum ak_quant_type ak_composed_symmetric_type(uint32_t bits, enum ak_quant_type factor_type);

/* `quants` of rows whose numbers stand after each other, the lowest bits first; 32 of them
 * are `bits` words. */
void ak_composed_read_bits(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                           uint32_t n, uint8_t *out);

/* Whether n factors of a plane are numbers that F16 has. */
bool ak_composed_fits_f16(enum ak_quant_type type, const struct ak_plane *plane, uint64_t n);

/* Elements [first, first + n) of a row, whole blocks, as these and as floats. The floats
 * are those that the scheme's makers would compute in float32. */
void ak_composed_make_blocks(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                             uint32_t n, void *out);
void ak_composed_dequantize(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                            uint32_t n, float *out);

/* Element i of a plane of little-endian F32, F16 or BF16 at any address. */
float ak_composed_factor(enum ak_quant_type type, const struct ak_plane *plane, uint64_t i);
uint32_t ak_composed_word(const struct ak_plane *plane, uint64_t i);

/* In which order a view's blocks have its columns; NULL: as stored. */
static inline const uint32_t *ak_composed_order(const struct ak_view *view)
{
    return view->composed_tensor ? view->composed_tensor->order : NULL;
}

/* Groups of a row, of which the last may be short. */
static inline uint32_t ak_composed_n_groups(const struct ak_composed_tensor *a)
{
    return (a->cols - 1) / a->group + 1;
}

/* Which row of the composed tensor row `row` of a view is. */
static inline uint64_t ak_composed_row(const struct ak_view *view, uint64_t row)
{
    return view->first_row + row * (view->is_interleaved ? 2 : 1);
}

#endif

/* Weights that a file has in several tensors, numbers in one, their scales and minimums
 * or zero points in others, as rows of blocks of an ordinary type.
 *
 * What a scheme stores is seldom laid out as blocks are, so an assembly makes those of a
 * part of a row on demand: for the packer, which is their only reader but for the
 * embedding's rows and those who look. Nothing is kept of them.
 *
 *     x = scale · q + minimum, q of up to 5 bits   Q4_1, Q5_1 where factors are F16, A4, A5 where BF16
 *     the same of more bits, or factors in F32     A8, its numbers with half of their range taken off
 *     MXFP4                                        MXFP4
 *     anything else                                F16, each rounded once
 */
#ifndef AK_WEIGHTS_ASSEMBLY_H
#define AK_WEIGHTS_ASSEMBLY_H

#include "weights/provider.h"

enum { AK_ASSEMBLY_NAME_BYTES = 24, AK_ASSEMBLY_K = 256 };

/* How a scheme's rows are read; rows count over all matrices of a stack. Either `blocks`,
 * or `values`, or the other two. n is at most AK_ASSEMBLY_K; but for `values`, first and n
 * are multiples of 32. */
struct ak_assembly_scheme {
    void (*quants)(const struct ak_assembly *a, uint64_t row, uint32_t first, uint32_t n, uint8_t *out);
    /* Of the group that element k is in; 32 elements have one. */
    void (*factors)(const struct ak_assembly *a, uint64_t row, uint32_t k, float *scale, float *minimum);
    void (*values)(const struct ak_assembly *a, uint64_t row, uint32_t first, uint32_t n, float *out);
    void (*blocks)(const struct ak_assembly *a, uint64_t row, uint32_t first, uint32_t n, uint8_t *out);
    bool by_rows; /* planes have as many equal parts as there are rows, in their order */
};

struct ak_assembly {
    const struct ak_assembly_scheme *scheme;
    char name[AK_ASSEMBLY_NAME_BYTES]; /* of the stored type: "MLX4_G64" */
    enum ak_type type;                 /* of the blocks */
    enum ak_type factor_type;          /* of plane 1: F32, F16, BF16, or what the scheme says */
    uint64_t shape[AK_MAX_DIMS];       /* of the weight */
    unsigned n_dims;
    uint32_t rows, cols, bits, group;
    uint32_t zero_offset;              /* GPTQ: what is to be added to a stored zero point */
    uint32_t block_rows, scale_cols;   /* FP8: rows that share scales, scales of a row; `group` columns share one */
    struct ak_plane plane[AK_MAX_PLANES];
};

/* MXFP4 as MLX and gpt-oss store it: a row's numbers two neighbours a byte in plane 0, an
 * exponent for each 32 in plane 1. */
extern const struct ak_assembly_scheme ak_assembly_mxfp4;

/* The type in which numbers of `bits` with factors of `factor_type` are multiplied. */
enum ak_type ak_assembly_affine_type(uint32_t bits, enum ak_type factor_type);

/* Elements [first, first + n) of a row, whole blocks, as these and as floats. The floats
 * are those that the scheme's makers would compute in float32. */
void ak_assembly_blocks(const struct ak_assembly *a, uint64_t row, uint32_t first, uint32_t n, void *out);
void ak_assembly_widen(const struct ak_assembly *a, uint64_t row, uint32_t first, uint32_t n, float *out);

/* Element i of a plane of little-endian F32, F16 or BF16 at any address. */
float ak_assembly_factor(enum ak_type type, const struct ak_plane *plane, uint64_t i);
uint32_t ak_assembly_word(const struct ak_plane *plane, uint64_t i);

/* Which row of its assembly row `row` of a view is. */
static inline uint64_t ak_assembly_row(const struct ak_view *view, uint64_t row)
{
    return view->first_row + row * (view->every_other ? 2 : 1);
}

#endif

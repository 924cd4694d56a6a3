/* Weights opened into signed bytes, for more than one token: panels of 8 rows,
 * half of a tile, so that 8 rows × 4 tokens of sums stay in registers. A slab
 * is, tile by tile, the panels of its rows 0 … 7 over the whole of k, then those
 * of its rows 8 … 15. */
#ifndef AK_CPU_NEON_PANEL_H
#define AK_CPU_NEON_PANEL_H

#include <string.h>

#include "cpu/kernels.h"

enum { AK_NEON_PANEL_ROWS = 8 };

/* 32 k. Line i holds k = 4i … 4i+3 of each row. */
struct ak_neon_panel32 {
    int8_t q[8][32];
    float scale[8], min[8]; /* min: of Q4_1 alone */
};

/* 256 k of a K-type. */
struct ak_neon_panel256 {
    float scale[8], min[8]; /* min: negative, of Q4_K alone */
    int8_t mins[2][32];     /* of blocks 0 … 3 and 4 … 7, four a row */
    struct {
        int8_t q[8][32];     /* Q6_K: four times the quant */
        int32_t scale[2][8]; /* of k 0 … 15 and 16 … 31; Q4_K has one */
    } block[8];
};

_Static_assert(2 * sizeof(struct ak_neon_panel32) <= AK_SLAB_BYTES_32, "two panels are a tile's block");
_Static_assert(2 * sizeof(struct ak_neon_panel256) <= 8 * AK_SLAB_BYTES_32, "two panels are a tile");

/* Opens a tile of `blocks` blocks of 32 k: rows 0 … 7 and 8 … 15 go to panels
 * lower[b] and upper[b], for the K-types to one panel each. */
void ak_neon_open_tile32(enum ak_type type, const uint8_t *restrict tile, size_t blocks, struct ak_neon_panel32 *restrict lower,
                         struct ak_neon_panel32 *restrict upper);
void ak_neon_open_tile256(enum ak_type type, const uint8_t *restrict tile, struct ak_neon_panel256 *restrict lower,
                          struct ak_neon_panel256 *restrict upper);

/* Zeros what a tile gives n tokens, before its panels are added. */
static inline void ak_neon_clear(float *y, size_t y_stride, size_t n)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, AK_TILE_ROWS * sizeof *y);
}

/* y[t·y_stride + r] += n_panels panels of 8 rows times the activations of n tokens. */
void ak_neon_dot_panels32(enum ak_type type, const struct ak_neon_panel32 *restrict panels, size_t n_panels, const uint8_t *restrict acts,
                          size_t act_bytes, size_t n, float *restrict y, size_t y_stride);
void ak_neon_dot_panels256(enum ak_type type, const struct ak_neon_panel256 *restrict panels, size_t n_panels, const uint8_t *restrict acts,
                           size_t act_bytes, size_t n, float *restrict y, size_t y_stride);

#endif

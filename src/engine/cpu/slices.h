/* Output matrices of Q8_0 in two slices: five high bits and three low bits of every quant. A pass
 * that wants only the largest logits reads the high slice of all rows, bounds what the low slice
 * can add, and reads the low slice of the rows that can still win (output.c): the same logits from
 * two thirds of the bytes. backend.c packs such matrices, linear.c multiplies with all bits.
 *
 * A quant is q = 8·(h − 16) + l with h = 0 … 31 and l = 0 … 7. The rows of a group of 128 are eight
 * tile rows, of each of which it has, in order:
 *
 *     8 × f32[16]          bound of each row, see ak_cpu_pack_slices
 *     8 × tile row of Q5_0 the high slice: the Q8_0 scales, and h
 *     8 × k/32 × 3 lines   the low slice: bytes as in a tile's lines. Of the words i = 0 … 7 of a
 *                          block, bits 0 and 1 of l are bits 2·(i mod 4) on of line i/4, and its
 *                          bit 2 is bit i of the third line
 *
 * It takes the bytes of Q8_0 and those of the bounds. A group is so large that high slices are long
 * streams: a processor that prefetches by itself reads little of the low slices after them. */
#ifndef AK_ENGINE_CPU_SLICES_H
#define AK_ENGINE_CPU_SLICES_H

#include "engine/cpu/layout.h"

struct ak_view;

enum { AK_SLICES_TILES = 8, AK_SLICES_ROWS = AK_SLICES_TILES * AK_TILE_ROWS };
enum { AK_SLICES_LOW_BLOCK_BYTES = 3 * AK_LINE_BYTES };

/* Weight of the norm of block sums in a bound, beside that of the norm of all elements. */
#define AK_SLICES_SUM_WEIGHT 0.28

/* The slices of a tile row. */
struct ak_cpu_slices {
    const float *bounds;
    const uint8_t *high, *low;
};

struct ak_cpu_slices ak_cpu_get_slices(const uint8_t *packed, size_t k, size_t tile);

/* Packed size of `rows` rows of k elements: whole groups. */
uint64_t ak_cpu_slices_bytes(uint32_t rows, size_t k);

/* Packs rows [first, first + n) of a stored matrix of Q8_0 to `packed`; `first` begins a group, and
 * so does the row after them, if there is one. Rows after the last one are zeros.
 *
 * The bound b of a row: |y − 8·y_h| ≤ b · (‖x‖ + AK_SLICES_SUM_WEIGHT · ‖s‖) for its product y with
 * an activation vector x and y_h, the product of the tile row of Q5_0, both as computed in floats;
 * s are the sums of blocks of x. For y − 8·y_h is Σ d·l·x, l = 3.5 + (l − 3.5), and both parts are
 * at most the product of their norms (Cauchy-Schwarz); what rounding adds is a multiple of
 * ‖w‖·‖x‖. Infinite if it is no number. */
void ak_cpu_pack_slices(const struct ak_view *view, uint32_t first, uint32_t n, uint8_t *packed);

#endif

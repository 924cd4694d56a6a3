/* Residual blocks: a residual term for one block of a token. If one element is far larger than all
 * others, its block has by far the largest scale, and nearly all of the token's rounding error.
 * That error is quantized too, as a block of its own, and its product with the same columns of the
 * weight is added to the token's (bench/notes/accuracy.md, "Residual block").
 *
 * Tokens with the same block are multiplied together, by the kernels of a whole product over k of
 * one block: no kernel knows of residual blocks. */
#include <string.h>

#include "base/mem.h"
#include "engine/cpu/cpu.h"

enum {
    /* blocks of a row; with fewer, a residual block would take too much of the product's time */
    DOWN_BLOCKS_MIN = 8,
    ATTENTION_BLOCKS_MIN = 16,
    TOGETHER_MAX = 256,    /* tokens */
    TILES_MAX = 4,         /* tile rows whose products are added at once */
    BLOCK_LANES = 4,       /* partial sums over blocks */
    BLOCK_TILE_BYTES = 640 /* of a tile with one block of 32 k, at most: A8 */
};
_Static_assert(TOGETHER_MAX <= AK_SKINNY_MAX * AK_TERM_TILES_MAX / TILES_MAX,
               "products fit ak_cpu_scratch.terms");

bool ak_cpu_wants_residual(const struct ak_pack_weight *packed)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(packed->type);
    if (format == AK_CPU_ACT_F32 || packed->n_experts > 0 || ak_cpu_n_terms(packed) > 1)
        return false;
    size_t n_blocks = packed->cols / ak_cpu_act_block_elems(format);
    switch (packed->linear) {
    case AK_OP_LINEAR_FFN_DOWN: return n_blocks >= DOWN_BLOCKS_MIN;
    case AK_OP_LINEAR_QKV:
    case AK_OP_LINEAR_ATTENTION_OUTPUT: return n_blocks >= ATTENTION_BLOCKS_MIN;
    default: return false;
    }
}

/* The largest of some blocks, and the sum of the squared scales of all of them. */
struct largest {
    uint32_t block;
    float scale, sum;
};

/* Of blocks [begin, end) of a row, BLOCK_LANES blocks at a time, for speed. Of equal blocks the one
 * in the lowest lane is found, then the first: the same one whatever the other blocks are. */
static struct largest find_largest(enum ak_cpu_act_format format, const uint8_t *activations,
                                   size_t begin, size_t end)
{
    const struct ak_cpu_act32 *a32 = (const struct ak_cpu_act32 *)(const void *)activations;
    const struct ak_cpu_act256 *a256 = (const struct ak_cpu_act256 *)(const void *)activations;
    float squares[BLOCK_LANES] = { 0 }, largest[BLOCK_LANES] = { 0 };
    uint32_t found[BLOCK_LANES] = { 0 };
    for (size_t first = begin / BLOCK_LANES * BLOCK_LANES; first < end; first += BLOCK_LANES) {
        for (size_t lane = 0; lane < BLOCK_LANES; lane++) {
            size_t b = ak_max_size(ak_min_size(first + lane, end - 1), begin);
            float scale = format == AK_CPU_ACT_Q8_32 ? a32[b].scale : a256[b].scale;
            scale = first + lane == b ? scale : 0.0f;
            squares[lane] += scale * scale;
            found[lane] = scale > largest[lane] ? (uint32_t)b : found[lane];
            largest[lane] = scale > largest[lane] ? scale : largest[lane];
        }
    }
    size_t best = 0;
    float sum = squares[0];
    for (size_t lane = 1; lane < BLOCK_LANES; lane++) {
        sum += squares[lane];
        if (largest[lane] > largest[best])
            best = lane;
    }
    return (struct largest){ .block = found[best], .scale = largest[best], .sum = sum };
}

uint32_t ak_cpu_largest_block(enum ak_cpu_act_format format, const uint8_t *activations,
                              size_t begin, size_t end)
{
    struct largest l = find_largest(format, activations, begin, end);
    return l.scale > 0.0f ? l.block : AK_CPU_NO_BLOCK;
}

/* A block's squared rounding error is proportional to its squared scale. */
uint32_t ak_cpu_dominant_block(enum ak_cpu_act_format format, const uint8_t *activations, size_t n)
{
    struct largest l = find_largest(format, activations, 0, n / ak_cpu_act_block_elems(format));
    return l.scale * l.scale > 0.4f * l.sum ? l.block : AK_CPU_NO_BLOCK;
}

void ak_cpu_quantize_error(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                           const float *x, const uint8_t *quantized, uint8_t *out)
{
    size_t elems = ak_cpu_act_block_elems(format);
    float error[AK_TILE_K];
    memcpy(error, x, elems * sizeof *error);
    ak_cpu_subtract_quantized(format, error, elems, quantized);
    ak_cpu_quantize_terms(kernels, format, error, elems, 1, out);
}

void ak_cpu_find_residual(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                          const float *x, size_t n, const uint8_t *activations, size_t row,
                          const struct ak_cpu_residuals *r)
{
    size_t elems = ak_cpu_act_block_elems(format);
    uint32_t block = r->found[row] = ak_cpu_dominant_block(format, activations, n);
    if (block != AK_CPU_NO_BLOCK)
        ak_cpu_quantize_error(kernels, format, x + block * elems,
                              activations + block * ak_cpu_act_block_bytes(format),
                              r->unsorted + row * ak_cpu_act_bytes(format, elems));
}

void ak_cpu_sort_residuals(enum ak_cpu_act_format format, size_t n, size_t begin, size_t end,
                           const struct ak_cpu_residuals *r, uint32_t *counts)
{
    size_t n_blocks = n / ak_cpu_act_block_elems(format),
           bytes = ak_cpu_act_bytes(format, ak_cpu_act_block_elems(format));
    memset(counts, 0, (n_blocks + 1) * sizeof *counts);
    for (size_t i = begin; i < end; i++)
        if (r->found[i] != AK_CPU_NO_BLOCK)
            counts[r->found[i] + 1]++;
    for (size_t b = 0; b < n_blocks; b++)
        counts[b + 1] += counts[b];
    for (size_t i = begin; i < end; i++)
        r->list[i].block = AK_CPU_NO_BLOCK;
    for (size_t i = begin; i < end; i++) {
        if (r->found[i] == AK_CPU_NO_BLOCK)
            continue;
        size_t at = begin + counts[r->found[i]]++;
        r->list[at] = (struct ak_cpu_residual){ (uint32_t)i, r->found[i] };
        memcpy(r->blocks + at * bytes, r->unsorted + i * bytes, bytes);
    }
}

/* A block of a tile row, as a tile of that block alone. */
static const uint8_t *get_block_tile(const struct ak_pack_weight *packed, const uint8_t *tile_row,
                                     size_t block, uint8_t *copy)
{
    size_t tile_bytes = ak_cpu_tile_bytes(packed->type, AK_TILE_BLOCKS);
    if (ak_cpu_type_act_format(packed->type) == AK_CPU_ACT_Q8_256)
        return tile_row + block * tile_bytes;
    size_t first = block / AK_TILE_BLOCKS * AK_TILE_BLOCKS;
    ak_cpu_copy_block(packed->type, tile_row + first / AK_TILE_BLOCKS * tile_bytes,
                      ak_min_size(packed->cols / AK_BLOCK_K - first, AK_TILE_BLOCKS), block - first,
                      copy);
    return copy;
}

/* Products of n residual blocks, all number `block`, with n_tiles tile rows. */
static void multiply_block(const struct ak_cpu_tile_kernels *kernels,
                           const struct ak_pack_weight *packed, const uint8_t *tiles,
                           size_t n_tiles, size_t block, const uint8_t *activations, size_t n,
                           uint8_t *panel, float *y, size_t y_stride)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(packed->type);
    size_t elems = ak_cpu_act_block_elems(format), bytes = ak_cpu_act_bytes(format, elems),
           tile_row_bytes = ak_cpu_tile_row_bytes(packed->type, packed->cols);
    _Alignas(AK_LINE_BYTES) uint8_t copy[BLOCK_TILE_BYTES];
    for (size_t i = 0; i < n_tiles; i++, tiles += tile_row_bytes, y += AK_TILE_ROWS) {
        const uint8_t *tile = get_block_tile(packed, tiles, block, copy);
        if (ak_cpu_is_skinny((uint32_t)n)) {
            kernels->dot_tiles(tile, 1, elems, activations, bytes, n, y, y_stride, 0);
        } else {
            kernels->unpack_panel_i8(tile, 1, elems, panel);
            kernels->dot_panel_i8(panel, 1, elems, activations, bytes, n, y, y_stride);
        }
    }
}

void ak_cpu_add_residuals(const struct ak_cpu_kernels *kernels, const struct ak_pack_weight *packed,
                          const uint8_t *tiles, size_t n_tiles, const struct ak_cpu_residuals *r,
                          size_t n, struct ak_cpu_scratch *scratch, float *y, size_t y_stride)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(packed->type);
    size_t bytes = ak_cpu_act_bytes(format, ak_cpu_act_block_elems(format)),
           tile_row_bytes = ak_cpu_tile_row_bytes(packed->type, packed->cols);
    for (size_t i = 0, run; i < n; i += run) {
        const struct ak_cpu_residual *list = r->list + i;
        for (run = 1; run < TOGETHER_MAX && i + run < n && list[run].block == list->block;)
            run++;
        if (list->block == AK_CPU_NO_BLOCK)
            continue;
        for (size_t tile = 0, n_rows; tile < n_tiles; tile += TILES_MAX) {
            n_rows = ak_min_size(n_tiles - tile, TILES_MAX) * AK_TILE_ROWS;
            multiply_block(&kernels->tile[packed->type], packed, tiles + tile * tile_row_bytes,
                           n_rows / AK_TILE_ROWS, list->block, r->blocks + i * bytes, run,
                           scratch->panel_i8, scratch->terms, n_rows);
            for (size_t j = 0; j < run; j++)
                kernels->add(y + list[j].row * y_stride + tile * AK_TILE_ROWS,
                             scratch->terms + j * n_rows, n_rows);
        }
    }
}

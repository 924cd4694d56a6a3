/* GEMM with types that have blocks of 32: the tile unit computes 16 tokens × 16 rows of a block at
 * once, and AVX-512 scales the sums of earlier blocks. Two blocks are computed while two are
 * scaled; float sums stay in registers over a tile. */
#include "engine/cpu/setter.h"
#include "engine/cpu/amx/panel_i8.h"
#include <tile_unit.h> /* of this folder, or the model of it in tests/engine/cpu/amx */

/* Tile registers 0, 1: sums of the first and the second block; 2, 3: tokens; 4, 5: words. */
static void configure_tiles(size_t n_tokens)
{
    struct ak_amx_tile_config config = { .palette = 1 };
    for (size_t i = 0; i < 6; i++) {
        config.rows[i] = (uint8_t)(i < 4 ? n_tokens : BLOCK_WORDS);
        config.row_bytes[i] = i == 2 || i == 3 ? AK_BLOCK_K : AK_LINE_BYTES;
    }
    ak_amx_tile_configure(&config);
}

AK_KERNEL void multiply_two(bool minimum, size_t n_blocks, const uint8_t *blocks,
                            const uint8_t *activations, size_t act_bytes, ak_amx_tile_sums sums[2])
{
    ak_amx_tile_zero(0);
    ak_amx_tile_load(2, activations, act_bytes);
    ak_amx_tile_load(4, blocks, AK_LINE_BYTES);
    ak_amx_tile_dot_signed(0, 2, 4);
    if (n_blocks > 1) {
        ak_amx_tile_zero(1);
        ak_amx_tile_load(3, activations + sizeof(struct ak_cpu_act32), act_bytes);
        ak_amx_tile_load(5, blocks + block32_bytes(minimum), AK_LINE_BYTES);
        ak_amx_tile_dot_signed(1, 3, 5);
    }
    ak_amx_tile_store(0, sums[0], AK_LINE_BYTES);
    if (n_blocks > 1)
        ak_amx_tile_store(1, sums[1], AK_LINE_BYTES);
}

AK_KERNEL void add_block(bool minimum, size_t n_tokens, const uint8_t *block,
                         const uint8_t *activations, size_t act_bytes, const ak_amx_tile_sums sums,
                         __m512 acc[GROUP])
{
    const uint8_t *factors = block + BLOCK_WORDS * AK_LINE_BYTES;
    __m512 scale = _mm512_loadu_ps(factors);
    AK_UNROLLED_FOR (size_t t = 0; t < GROUP; t++) {
        if (t > 0 && t % 4 == 0) {
            activations += 4 * act_bytes;
            __asm__(""
                    /* else gcc keeps 16 addresses, more than there are registers */
                    : "+r"(activations));
        }
        if (t >= n_tokens)
            continue;
        const struct ak_cpu_act32 *act =
            (const struct ak_cpu_act32 *)(const void *)(activations + t % 4 * act_bytes);
        __m512 sum = _mm512_cvtepi32_ps(load_line(sums[t]));
        acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, _mm512_set1_ps(act->scale)), sum, acc[t]);
        if (minimum)
            acc[t] = _mm512_fmadd_ps(_mm512_loadu_ps(factors + AK_LINE_BYTES),
                                     _mm512_set1_ps(act->scaled_sum), acc[t]);
    }
}

/* One tile: n_blocks ≤ AK_TILE_BLOCKS. */
AK_KERNEL void dot_tile(bool minimum, size_t n_tokens, const uint8_t *tile, size_t n_blocks,
                        const uint8_t *activations, size_t act_bytes, float *y, size_t y_stride,
                        bool first)
{
    _Alignas(64) ak_amx_tile_sums sums[2][2];
    __m512 acc[GROUP] = { 0 };
    const size_t block = block32_bytes(minimum);
    AK_UNROLLED_FOR (size_t t = 0; t < GROUP; t++)
        if (t < n_tokens && !first)
            acc[t] = _mm512_loadu_ps(y + t * y_stride);
    multiply_two(minimum, ak_min_size(n_blocks, 2), tile, activations, act_bytes, sums[0]);
    for (size_t b = 0; b < n_blocks;
         b += 2, tile += 2 * block, activations += 2 * sizeof(struct ak_cpu_act32)) {
        const size_t left = n_blocks - b;
        if (left > 2)
            multiply_two(minimum, ak_min_size(left - 2, 2), tile + 2 * block,
                         activations + 2 * sizeof(struct ak_cpu_act32), act_bytes,
                         sums[b / 2 % 2 ^ 1]);
        add_block(minimum, n_tokens, tile, activations, act_bytes, sums[b / 2 % 2][0], acc);
        if (left > 1)
            add_block(minimum, n_tokens, tile + block, activations + sizeof(struct ak_cpu_act32),
                      act_bytes, sums[b / 2 % 2][1], acc);
    }
    AK_UNROLLED_FOR (size_t t = 0; t < GROUP; t++)
        if (t < n_tokens)
            _mm512_storeu_ps(y + t * y_stride, acc[t]);
}

AK_KERNEL void dot_group(bool minimum, size_t n_tokens, const uint8_t *panel, size_t n_tiles,
                         size_t n_blocks, const uint8_t *activations, size_t act_bytes, float *y,
                         size_t y_stride)
{
    for (size_t b = 0, blocks; b < n_blocks; b += blocks) {
        blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
        for (size_t r = 0; r < n_tiles; r++, panel += blocks * block32_bytes(minimum))
            dot_tile(minimum, n_tokens, panel, blocks,
                     activations + b * sizeof(struct ak_cpu_act32), act_bytes, y + r * AK_TILE_ROWS,
                     y_stride, b == 0);
    }
}

AK_KERNEL void dot_panel_i8(bool minimum, const uint8_t *panel, size_t n_tiles, size_t k,
                            const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                            size_t y_stride)
{
    if (n >= GROUP)
        configure_tiles(GROUP);
    for (; n >= GROUP; n -= GROUP, activations += GROUP * act_bytes, y += GROUP * y_stride)
        dot_group(minimum, GROUP, panel, n_tiles, k / AK_BLOCK_K, activations, act_bytes, y,
                  y_stride);
    if (n > 0) {
        configure_tiles(n);
        dot_group(minimum, n, panel, n_tiles, k / AK_BLOCK_K, activations, act_bytes, y, y_stride);
    }
    ak_amx_tile_release();
}

static AK_DOT_PANEL_I8(dot_32, false);
static AK_DOT_PANEL_I8(dot_32_minimum, true);

AK_SETTER(panel_i8_32)
{
#define TILE32(name, NAME)                                                                         \
    k->tile[AK_QUANT_##NAME].dot_panel_i8 = has_minimum(AK_QUANT_##NAME) ? dot_32_minimum : dot_32;
#include "engine/cpu/types.def"
}

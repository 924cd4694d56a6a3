/* GEMM with K-types: the tile unit sums 32 tokens × 16 rows over a super-block, low and high bytes
 * separately, while AVX-512 scales the sums of the previous one. */
#include "engine/cpu/setter.h"
#include "engine/cpu/amx/panel_i8.h"
#include <tile_unit.h> /* of this folder, or the model of it in tests/engine/cpu/amx */

enum {
    GROUPS_MAX = 2,
    PASS = GROUPS_MAX * GROUP,
    WORDS_BYTES = UNIT_K / 4 * AK_LINE_BYTES,
    LOW = 0,
    HIGH = 1
};

typedef ak_amx_tile_sums super_block_sums[GROUPS_MAX][2];

/* Tile registers 0, 1: low and high sums of the first token group; 2, 3: of the second; 4, 5:
 * tokens of each group; 6, 7: low and high words. */
static void configure_tiles(size_t n_tokens)
{
    const size_t first = ak_min_size(n_tokens, GROUP),
                 second = n_tokens > GROUP ? n_tokens - GROUP : GROUP;
    const size_t rows[8] = { first, first, second, second, first, second, GROUP, GROUP };
    struct ak_amx_tile_config config = { .palette = 1 };
    for (size_t i = 0; i < 8; i++) {
        config.rows[i] = (uint8_t)rows[i];
        config.row_bytes[i] = AK_LINE_BYTES;
    }
    ak_amx_tile_configure(&config);
}

AK_KERNEL void clear_sums(void)
{
    ak_amx_tile_zero(0);
    ak_amx_tile_zero(1);
    ak_amx_tile_zero(2);
    ak_amx_tile_zero(3);
}

/* Adds the products over UNIT_K of k. */
AK_KERNEL void multiply(bool folded, size_t n_groups, const uint8_t *words,
                        const uint8_t *activations, size_t act_bytes)
{
    ak_amx_tile_load(4, activations, act_bytes);
    ak_amx_tile_load(6, words, AK_LINE_BYTES);
    ak_amx_tile_dot(0, 4, 6);
    if (n_groups > 1) {
        ak_amx_tile_load(5, activations + GROUP * act_bytes, act_bytes);
        ak_amx_tile_dot(2, 5, 6);
    }
    if (folded) {
        ak_amx_tile_load(7, words + PLANE_BYTES, AK_LINE_BYTES);
        ak_amx_tile_dot_signed(1, 4, 7);
        if (n_groups > 1)
            ak_amx_tile_dot_signed(3, 5, 7);
    }
}

AK_KERNEL void store_sums(bool folded, size_t n_groups, super_block_sums sums)
{
    ak_amx_tile_store(0, sums[0][LOW], AK_LINE_BYTES);
    if (folded)
        ak_amx_tile_store(1, sums[0][HIGH], AK_LINE_BYTES);
    if (n_groups > 1) {
        ak_amx_tile_store(2, sums[1][LOW], AK_LINE_BYTES);
        if (folded)
            ak_amx_tile_store(3, sums[1][HIGH], AK_LINE_BYTES);
    }
}

/* Applies a super-block's factors to the sums of tokens [begin, end). Folded words have no offset
 * left. */
AK_KERNEL void add_sums(enum ak_avx512_scaling scaling, size_t begin, size_t end,
                        const super_block_sums sums,
                        const struct ak_avx512_super_block_factors *factors,
                        const uint8_t *activations, size_t act_bytes, float (*acc)[AK_TILE_ROWS])
{
    for (size_t t = begin; t < end; t++) {
        const struct ak_cpu_act256 *act = act_of(activations, act_bytes, t);
        __m512i sum = load_line(sums[t / GROUP][LOW][t % GROUP]);
        if (is_folded(scaling))
            sum = _mm512_add_epi32(
                sum, _mm512_slli_epi32(load_line(sums[t / GROUP][HIGH][t % GROUP]), 8));
        else
            sum = _mm512_add_epi32(sum, start_of(scaling, act, 0));
        _mm512_store_ps(acc[t],
                        add_super_block(scaling, factors, sum, act, _mm512_load_ps(acc[t])));
    }
}

/* Processes a panel tile by tile: a quarter of one tile's products, then a quarter of the tokens of
 * the previous tile, because a core's out-of-order window is shorter than a tile. The first round
 * has no previous tile, the last has no products. */
AK_KERNEL void dot_pass(enum ak_avx512_scaling scaling, size_t n_groups, size_t n_tokens,
                        const uint8_t *panel, size_t n_tiles, size_t n_super_blocks,
                        const uint8_t *activations, size_t act_bytes, float *y, size_t y_stride)
{
    enum { QUARTERS = AK_TILE_K / UNIT_K };
    _Alignas(64) float acc[AK_PANEL_I8_TILES_MAX][PASS][AK_TILE_ROWS];
    _Alignas(64) super_block_sums sums[2];
    const size_t tile_bytes = folded_bytes(scaling), n = n_super_blocks * n_tiles,
                 quarter_tokens = (n_tokens + QUARTERS - 1) / QUARTERS;
    struct ak_avx512_super_block_factors factors = { 0 };
    memset(acc, 0, n_tiles * sizeof acc[0]);
    for (size_t i = 0; i <= n; i++, panel += tile_bytes) {
        const uint8_t *now = activations + i / n_tiles * sizeof(struct ak_cpu_act256),
                      *before = i ? activations + (i - 1) / n_tiles * sizeof(struct ak_cpu_act256) :
                                    activations;
        if (i > 0)
            factors = load_factors(scaling, 1, panel - rest_bytes(scaling));
        clear_sums();
        for (size_t quarter = 0; quarter < QUARTERS; quarter++) {
            if (i < n)
                multiply(is_folded(scaling), n_groups, panel + quarter * WORDS_BYTES,
                         now + quarter * UNIT_K, act_bytes);
            if (i > 0)
                add_sums(scaling, ak_min_size(quarter * quarter_tokens, n_tokens),
                         ak_min_size((quarter + 1) * quarter_tokens, n_tokens),
                         (const ak_amx_tile_sums(*)[2])sums[(i - 1) % 2], &factors, before,
                         act_bytes, acc[(i - 1) % n_tiles]);
        }
        if (i < n)
            store_sums(is_folded(scaling), n_groups, sums[i % 2]);
    }
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_tiles; r++)
            _mm512_storeu_ps(y + t * y_stride + r * AK_TILE_ROWS, _mm512_load_ps(acc[r][t]));
}

AK_KERNEL void dot_panel_i8(enum ak_avx512_scaling scaling, const uint8_t *panel, size_t n_tiles,
                            size_t k, const uint8_t *activations, size_t act_bytes, size_t n,
                            float *y, size_t y_stride)
{
    const size_t n_super_blocks = k / AK_TILE_K;
    if (n >= PASS)
        configure_tiles(PASS);
    for (; n >= PASS; n -= PASS, activations += PASS * act_bytes, y += PASS * y_stride)
        dot_pass(scaling, 2, PASS, panel, n_tiles, n_super_blocks, activations, act_bytes, y,
                 y_stride);
    if (n > 0)
        configure_tiles(n);
    if (n > GROUP)
        dot_pass(scaling, 2, n, panel, n_tiles, n_super_blocks, activations, act_bytes, y,
                 y_stride);
    else if (n > 0)
        dot_pass(scaling, 1, n, panel, n_tiles, n_super_blocks, activations, act_bytes, y,
                 y_stride);
    ak_amx_tile_release();
}

static AK_DOT_PANEL_I8(dot_minimums32, SCALES_32_MINIMUMS);
static AK_DOT_PANEL_I8(dot_no_minimums, SCALES_16_OFFSET_32);
static AK_DOT_PANEL_I8(dot_minimums16, NO_SCALES_MINIMUMS_16);
static AK_DOT_PANEL_I8(dot_offset124, NO_SCALES_OFFSET_124);

AK_SETTER(panel_i8_256)
{
    k->tile[AK_QUANT_Q2_K].dot_panel_i8 = dot_minimums16;
    k->tile[AK_QUANT_Q3_K].dot_panel_i8 = dot_offset124;
    k->tile[AK_QUANT_Q4_K].dot_panel_i8 = k->tile[AK_QUANT_Q5_K].dot_panel_i8 = dot_minimums32;
    k->tile[AK_QUANT_Q6_K].dot_panel_i8 = k->tile[AK_QUANT_IQ4_XS].dot_panel_i8 =
        k->tile[AK_QUANT_V3].dot_panel_i8 = k->tile[AK_QUANT_V4].dot_panel_i8 = dot_no_minimums;
}

/* GEMM with types that have blocks of 32 elements. A panel of one or two tile rows is unpacked
 * once, to one byte per quant, and used for all tokens. Integer and float sums of 32 rows × 6
 * tokens stay in registers over all of k. One kernel serves all types with the same offset. */
#include "engine/cpu/avx512/panel_i8.h"
#include "engine/cpu/setter.h"

enum { TILES_MAX = AK_PANEL_I8_TILES_MAX, GROUP = 6 };

AK_KERNEL void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles,
                               size_t k, uint8_t *panel)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    for (size_t r = 0; r < n_tiles; r++) {
        uint8_t *to = panel + r * AK_LINE_BYTES;
        for (size_t left = k / AK_BLOCK_K, blocks; left > 0; left -= blocks) {
            blocks = ak_min_size(left, AK_TILE_BLOCKS);
            struct ak_avx512_block at = first_block(type, tiles, blocks);
            for (size_t b = 0; b < blocks;
                 b++, to += panel_block_bytes(has_minimum(type), n_tiles), next_block(type, &at)) {
                uint8_t *factors = to + BLOCK_WORDS * step;
                AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++)
                    store_line(to + i * step, block_word(type, &at, i));
                _mm512_storeu_ps(factors, block_scale(type, &at));
                if (has_minimum(type))
                    _mm512_storeu_ps(factors + step, block_minimum(type, &at));
            }
            tiles = at.lines;
        }
    }
}

/* n_tiles tile rows times n ≤ GROUP tokens, over all blocks. */
AK_KERNEL void micro(enum ak_avx512_offset offset, size_t n_tiles, size_t n, const uint8_t *panel,
                     size_t n_blocks, const uint8_t *activations, size_t act_bytes, float *y,
                     size_t y_stride)
{
    __m512 acc[TILES_MAX][GROUP];
    __m512i sums[TILES_MAX][GROUP];
    AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            acc[r][t] = _mm512_setzero_ps();
    for (size_t b = 0; b < n_blocks; b++, activations += sizeof(struct ak_cpu_act32),
                panel += panel_block_bytes(offset_has_minimum(offset), n_tiles)) {
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m512i start = block_offset(
                offset, (const struct ak_cpu_act32 *)(const void *)(activations + t * act_bytes));
            AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
                sums[r][t] = start;
        }
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++) {
            __m512i w[TILES_MAX];
            AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
                w[r] = load_line(panel + (i * n_tiles + r) * AK_LINE_BYTES);
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                __m512i a = broadcast_word(activations + t * act_bytes + i * 4);
                AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
                    sums[r][t] = _mm512_dpbusd_epi32(sums[r][t], w[r], a);
            }
        }
        const uint8_t *factors = panel + BLOCK_WORDS * n_tiles * AK_LINE_BYTES;
        AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++) {
            __m512 scale = _mm512_loadu_ps(factors + r * AK_LINE_BYTES);
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                const struct ak_cpu_act32 *act =
                    (const struct ak_cpu_act32 *)(const void *)(activations + t * act_bytes);
                acc[r][t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, _mm512_set1_ps(act->scale)),
                                            _mm512_cvtepi32_ps(sums[r][t]), acc[r][t]);
            }
            if (offset_has_minimum(offset)) {
                __m512 minimum = _mm512_loadu_ps(factors + (n_tiles + r) * AK_LINE_BYTES);
                AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                    const struct ak_cpu_act32 *act =
                        (const struct ak_cpu_act32 *)(const void *)(activations + t * act_bytes);
                    acc[r][t] =
                        _mm512_fmadd_ps(minimum, _mm512_set1_ps(act->scaled_sum), acc[r][t]);
                }
            }
        }
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
            _mm512_storeu_ps(y + t * y_stride + r * AK_TILE_ROWS, acc[r][t]);
}

AK_KERNEL void dot_groups(enum ak_avx512_offset offset, size_t n_tiles, const uint8_t *panel,
                          size_t k, const uint8_t *activations, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    size_t n_blocks = k / AK_BLOCK_K;
    for (; n >= GROUP; n -= GROUP, activations += GROUP * act_bytes, y += GROUP * y_stride)
        micro(offset, n_tiles, GROUP, panel, n_blocks, activations, act_bytes, y, y_stride);
    AK_CONSTANT(n, 6, N,
                micro(offset, n_tiles, N, panel, n_blocks, activations, act_bytes, y, y_stride));
}

AK_KERNEL void dot_panel_i8(enum ak_avx512_offset offset, const uint8_t *panel, size_t n_tiles,
                            size_t k, const uint8_t *activations, size_t act_bytes, size_t n,
                            float *y, size_t y_stride)
{
    if (n_tiles == 2)
        dot_groups(offset, 2, panel, k, activations, act_bytes, n, y, y_stride);
    else
        dot_groups(offset, 1, panel, k, activations, act_bytes, n, y, y_stride);
}

#define TILE32(name, NAME) AK_UNPACK_PANEL_I8(ak_avx512_unpack_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

static AK_DOT_PANEL_I8(dot_offset8, OFFSET_8);
static AK_DOT_PANEL_I8(dot_offset16, OFFSET_16);
static AK_DOT_PANEL_I8(dot_offset128, OFFSET_128);
static AK_DOT_PANEL_I8(dot_minimum, OFFSET_0);
static AK_DOT_PANEL_I8(dot_offset128_minimum, OFFSET_128_MINIMUM);

AK_SETTER(panel_i8_32)
{
    static ak_dot_panel_i8_fn *const dot[AK_QUANT_COUNT] = {
        [AK_QUANT_Q4_0] = dot_offset8,   [AK_QUANT_Q4_1] = dot_minimum,
        [AK_QUANT_Q5_0] = dot_offset16,  [AK_QUANT_Q5_1] = dot_minimum,
        [AK_QUANT_Q8_0] = dot_offset128, [AK_QUANT_IQ4_NL] = dot_offset128,
        [AK_QUANT_MXFP4] = dot_offset16, [AK_QUANT_A4] = dot_minimum,
        [AK_QUANT_A5] = dot_minimum,     [AK_QUANT_A8] = dot_offset128_minimum,
        [AK_QUANT_V2] = dot_offset8,
    };
#define TILE32(name, NAME)                                                                         \
    k->tile[AK_QUANT_##NAME].unpack_panel_i8 = ak_avx512_unpack_##name;                            \
    k->tile[AK_QUANT_##NAME].dot_panel_i8 = dot[AK_QUANT_##NAME];
#include "engine/cpu/types.def"
}

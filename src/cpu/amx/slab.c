/* Many tokens times AVX-512's open slabs, with AMX: a word line of a slab (16 rows × 4
 * k) is a row of the tile unit's second operand as it lies, and the quants of 16
 * tokens are its first. One instruction makes 16 tokens × 16 rows; what follows of
 * scales is AVX-512's, bit for bit. Tokens that do not fill a tile go to AVX-512. */
#include "cpu/amx/amx.h"
#include "cpu/amx/sums.h"
#include "cpu/avx512/avx512.h"
#include "cpu/avx512/slab.h"

typedef int32_t tile_sums[MOST_GROUPS][MOST_TILES][GROUP][AK_TILE_ROWS];

/* Registers for products over `k` ≤ 64. */
static void configure(size_t k)
{
    struct ak_tile_config config = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        config.rows[i] = i < 6 ? GROUP : (uint8_t)(k / 4);
        config.row_bytes[i] = i == 4 || i == 5 ? (uint16_t)k : AK_LINE_BYTES;
    }
    ak_tile_configure(&config);
}

/* Adds the products of the configured k, from `words` and `q` on. */
AK_KERNEL void add_products(size_t n_groups, size_t n_tiles, const uint8_t *words, const uint8_t *q, size_t act_bytes)
{
    ak_tile_load(6, words, n_tiles * AK_LINE_BYTES);
    ak_tile_load(4, q, act_bytes);
    ak_tile_dot(0, 4, 6);
    if (n_tiles > 1) {
        ak_tile_load(7, words + AK_LINE_BYTES, n_tiles * AK_LINE_BYTES);
        ak_tile_dot(1, 4, 7);
    }
    if (n_groups > 1) {
        ak_tile_load(5, q + GROUP * act_bytes, act_bytes);
        ak_tile_dot(2, 5, 6);
        if (n_tiles > 1)
            ak_tile_dot(3, 5, 7);
    }
}

AK_KERNEL void take_sums(size_t n_groups, size_t n_tiles, tile_sums sums)
{
    store_sums(n_groups, n_tiles, sums, sizeof sums[0], sizeof sums[0][0], AK_LINE_BYTES);
}

/* ---- Blocks of 32 ------------------------------------------------------------- */

AK_KERNEL void blocks_of_32(enum offset offset, size_t n_groups, size_t n_tiles, const uint8_t *slab, size_t n_blocks, const uint8_t *acts,
                            size_t act_bytes, float *y, size_t y_stride)
{
    _Alignas(64) tile_sums sums;
    for (size_t t = 0; t < n_groups * GROUP; t++)
        memset(y + t * y_stride, 0, n_tiles * AK_TILE_ROWS * sizeof *y);
    for (size_t b = 0; b < n_blocks; b++, acts += sizeof(struct ak_act32), slab += slab_block_bytes(offset == OFFSET_0, n_tiles)) {
        clear_sums(n_groups, n_tiles);
        add_products(n_groups, n_tiles, slab, acts, act_bytes);
        take_sums(n_groups, n_tiles, sums);
        const uint8_t *factors = slab + BLOCK_WORDS * n_tiles * AK_LINE_BYTES;
        for (size_t t = 0; t < n_groups * GROUP; t++) {
            const struct ak_act32 *act = (const struct ak_act32 *)(const void *)(acts + t * act_bytes);
            __m512i start = block_offset(offset, act);
            AK_UNROLL
            for (size_t r = 0; r < n_tiles; r++) {
                float *out = y + t * y_stride + r * AK_TILE_ROWS;
                __m512i sum = _mm512_add_epi32(load_line(sums[t / GROUP][r][t % GROUP]), start);
                __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(factors + r * AK_LINE_BYTES), _mm512_set1_ps(act->scale));
                __m512 acc = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sum), _mm512_loadu_ps(out));
                if (offset == OFFSET_0)
                    acc = _mm512_fmadd_ps(_mm512_loadu_ps(factors + (n_tiles + r) * AK_LINE_BYTES), _mm512_set1_ps(act->scaled_sum), acc);
                _mm512_storeu_ps(out, acc);
            }
        }
    }
}

/* ---- K-types ------------------------------------------------------------------- */

/* scaled[g][r][t] = Σ_j scale_j · Σ w·a of one super-block. */
AK_KERNEL void scaled_sums(enum form form, size_t n_groups, size_t n_tiles, const uint8_t *slab, const uint8_t *acts, size_t act_bytes,
                           tile_sums scaled)
{
    const size_t subs = scales_of_part(form), words = BLOCK_WORDS / (subs ? subs : 1);
    _Alignas(64) tile_sums sums;
    memset(scaled, 0, sizeof(tile_sums));
    for (size_t part = 0; part < PARTS; part++, slab += part_bytes(form, n_tiles)) {
        for (size_t sub = 0; sub < subs; sub++) {
            clear_sums(n_groups, n_tiles);
            add_products(n_groups, n_tiles, slab + sub * words * n_tiles * AK_LINE_BYTES, acts + part * AK_BLOCK_K + sub * words * 4,
                         act_bytes);
            take_sums(n_groups, n_tiles, sums);
            for (size_t t = 0; t < n_groups * GROUP; t++) {
                __m512i start = start_of(form, act_of(acts, act_bytes, t), part * subs + sub);
                AK_UNROLL
                for (size_t r = 0; r < n_tiles; r++) {
                    int32_t *to = scaled[t / GROUP][r][t % GROUP];
                    __m512i scale = load_line(slab + ((BLOCK_WORDS + sub) * n_tiles + r) * AK_LINE_BYTES);
                    __m512i sum = _mm512_add_epi32(load_line(sums[t / GROUP][r][t % GROUP]), start);
                    store_line(to, _mm512_add_epi32(load_line(to), _mm512_mullo_epi32(sum, scale)));
                }
            }
        }
    }
}

/* The same where there are no scales: four products of 64 k. */
AK_KERNEL void plain_sums(enum form form, size_t n_groups, size_t n_tiles, const uint8_t *slab, const uint8_t *acts, size_t act_bytes,
                          tile_sums sums)
{
    clear_sums(n_groups, n_tiles);
    for (size_t at = 0; at < AK_TILE_K; at += 64)
        add_products(n_groups, n_tiles, slab + at / 4 * n_tiles * AK_LINE_BYTES, acts + at, act_bytes);
    take_sums(n_groups, n_tiles, sums);
    for (size_t t = 0; t < n_groups * GROUP; t++) {
        __m512i start = start_of(form, act_of(acts, act_bytes, t), 0);
        for (size_t r = 0; r < n_tiles; r++) {
            int32_t *to = sums[t / GROUP][r][t % GROUP];
            store_line(to, _mm512_add_epi32(load_line(to), start));
        }
    }
}

AK_KERNEL void supers(enum form form, size_t n_groups, size_t n_tiles, const uint8_t *slab, size_t n_supers, const uint8_t *acts,
                      size_t act_bytes, float *y, size_t y_stride)
{
    _Alignas(64) tile_sums scaled;
    for (size_t t = 0; t < n_groups * GROUP; t++)
        memset(y + t * y_stride, 0, n_tiles * AK_TILE_ROWS * sizeof *y);
    for (size_t s = 0; s < n_supers; s++, acts += sizeof(struct ak_act256), slab += super_bytes(form, n_tiles)) {
        if (scales_of_part(form))
            scaled_sums(form, n_groups, n_tiles, slab, acts, act_bytes, scaled);
        else
            plain_sums(form, n_groups, n_tiles, slab, acts, act_bytes, scaled);
        const uint8_t *rest = slab + PARTS * part_bytes(form, n_tiles);
        for (size_t t = 0; t < n_groups * GROUP; t++)
            AK_UNROLL
            for (size_t r = 0; r < n_tiles; r++)
                add_super(form, n_tiles, load_line(scaled[t / GROUP][r][t % GROUP]), rest + r * AK_LINE_BYTES, act_of(acts, act_bytes, t),
                          y + t * y_stride + r * AK_TILE_ROWS);
    }
}

/* ---- Kernels -------------------------------------------------------------------- */

/* `products`: blocks_of_32 or supers, over n_blocks of them. */
#define DOT_SLAB(name, rest, products, kind, block_k, tile_k) \
    void name(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, \
              float *restrict y, size_t y_stride) \
    { \
        configure(tile_k); \
        for (size_t done; n >= GROUP; n -= done, acts += done * act_bytes, y += done * y_stride) { \
            size_t n_groups = n >= 2 * GROUP ? 2 : 1; \
            done = n_groups * GROUP; \
            if (n_groups == 2 && n_tiles == 2) \
                products(kind, 2, 2, slab, k / (block_k), acts, act_bytes, y, y_stride); \
            else if (n_tiles == 2) \
                products(kind, 1, 2, slab, k / (block_k), acts, act_bytes, y, y_stride); \
            else if (n_groups == 2) \
                products(kind, 2, 1, slab, k / (block_k), acts, act_bytes, y, y_stride); \
            else \
                products(kind, 1, 1, slab, k / (block_k), acts, act_bytes, y, y_stride); \
        } \
        ak_tile_release(); \
        if (n > 0) \
            rest(slab, n_tiles, k, acts, act_bytes, n, y, y_stride); \
    }

DOT_SLAB(ak_amx_dot_slab_8, ak_avx512_dot_slab_8, blocks_of_32, OFFSET_8, AK_BLOCK_K, 32)
DOT_SLAB(ak_amx_dot_slab_16, ak_avx512_dot_slab_16, blocks_of_32, OFFSET_16, AK_BLOCK_K, 32)
DOT_SLAB(ak_amx_dot_slab_128, ak_avx512_dot_slab_128, blocks_of_32, OFFSET_128, AK_BLOCK_K, 32)
DOT_SLAB(ak_amx_dot_slab_minimum, ak_avx512_dot_slab_minimum, blocks_of_32, OFFSET_0, AK_BLOCK_K, 32)
DOT_SLAB(ak_amx_dot_slab_k32_minimum, ak_avx512_dot_slab_k32_minimum, supers, SCALES_32_MINIMUMS, AK_TILE_K, 32)
DOT_SLAB(ak_amx_dot_slab_k32_128, ak_avx512_dot_slab_k32_128, supers, SCALES_32_OFFSET_128, AK_TILE_K, 32)
DOT_SLAB(ak_amx_dot_slab_k16_32, ak_avx512_dot_slab_k16_32, supers, SCALES_16_OFFSET_32, AK_TILE_K, 16)
DOT_SLAB(ak_amx_dot_slab_k_minimum16, ak_avx512_dot_slab_k_minimum16, supers, NO_SCALES_MINIMUMS_16, AK_TILE_K, 64)
DOT_SLAB(ak_amx_dot_slab_k_124, ak_avx512_dot_slab_k_124, supers, NO_SCALES_OFFSET_124, AK_TILE_K, 64)

/* BF16 GEMM under --relaxed: stored BF16 rows, or F16 rows rounded to BF16, times tokens rounded to
 * BF16.
 *
 * A panel has the tile unit's layout, [16 rows][step of 32 k][pair of k][row], so rows are
 * transposed once, with a pair as one word. Interleaved tokens are [16 tokens][step][token] lines.
 * The unit sums 2 tiles of rows × 2 groups of tokens over all of k, then stores them to the
 * results. A remainder uses smaller tiles: the unit computes the same sum of a row and a token,
 * whatever the other rows and tokens are. */
#include <immintrin.h>

#include "base/mem.h"
#include "engine/cpu/setter.h"
#include "engine/cpu/avx512/lanes.h"
#include "engine/cpu/avx512bf16/round.h"
#include <tile_unit.h> /* of this folder, or the model of it in tests/engine/cpu/amx */

/* Tile registers: 2g + r: sums of (token group g, tile row r); 4 + g: tokens of g; 6 + r: rows of
 * r. Four loads then feed four products. */
enum { GROUP = 16, GROUPS_MAX = 2, TILES_MAX = AK_PANEL_I8_TILES_MAX };

enum { TILE = GROUP * AK_LANES, TOKENS = GROUPS_MAX * GROUP, ROWS = TILES_MAX * AK_TILE_ROWS };
_Static_assert((int)GROUP == (int)AK_TILE_ROWS, "both operands have 16");

/* Unpacks the rows of one tile, at most 16. */
AK_KERNEL void unpack_tile(enum ak_quant_type type, const uint8_t *rows, size_t row_bytes,
                           size_t n_rows, size_t k, uint16_t *panel)
{
    for (size_t i = 0; i < k; i += AK_LANES, rows += AK_LINE_BYTES, panel += TILE) {
        __m512 v[AK_TILE_ROWS];
        const uint8_t *row = rows;
        AK_UNROLLED_FOR (size_t r = 0; r < AK_TILE_ROWS; r++) {
            v[r] = _mm512_setzero_ps();
            if (r < n_rows) {
                v[r] = _mm512_castsi512_ps(load_rounded(type, row));
                row += row_bytes;
                /* else gcc keeps 16 addresses, more than there are registers */
                __asm__("" : "+r"(row));
            }
        }
        transpose_lanes(v);
        AK_UNROLLED_FOR (size_t pair = 0; pair < AK_LANES / 2; pair++)
            _mm512_store_ps(panel + pair * AK_LANES, v[pair]);
    }
}

AK_KERNEL void unpack_panel_bf16(enum ak_quant_type type, const uint8_t *rows, size_t row_bytes,
                                 size_t n_rows, size_t k, uint16_t *panel)
{
    for (; n_rows >= AK_TILE_ROWS;
         n_rows -= AK_TILE_ROWS, rows += AK_TILE_ROWS * row_bytes, panel += AK_TILE_ROWS * k)
        unpack_tile(type, rows, row_bytes, AK_TILE_ROWS, k, panel);
    if (n_rows > 0)
        unpack_tile(type, rows, row_bytes, n_rows, k, panel);
}

static AK_UNPACK_PANEL_BF16(unpack_bf16, AK_QUANT_BF16);
static AK_UNPACK_PANEL_BF16(unpack_f16, AK_QUANT_F16);

static void interleave_token_bf16(const float *restrict x, size_t k, size_t token,
                                  uint16_t *restrict tokens)
{
    uint16_t *to = tokens + token / GROUP * GROUP * k + token % GROUP * AK_LANES;
    for (size_t i = 0; i < k; i += AK_LANES, to += TILE)
        _mm512_store_si512(
            to, round_floats(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + AK_LANES / 2)));
}

/* Rows in register number i of two that hold n rows together; an unused one may have any shape. */
static size_t filled(size_t n, size_t i)
{
    return n <= i * GROUP || n - i * GROUP > GROUP ? GROUP : n - i * GROUP;
}

static void configure_tiles(size_t n_tokens, size_t n_rows)
{
    struct ak_amx_tile_config config = { .palette = 1 };
    for (size_t i = 0; i < 8; i++) {
        config.rows[i] = (uint8_t)(i < 6 ? filled(n_tokens, i < 4 ? i / 2 : i - 4) : GROUP);
        config.row_bytes[i] =
            (uint16_t)(i == 4 || i == 5 ? AK_LINE_BYTES : filled(n_rows, i % 2) * sizeof(float));
    }
    ak_amx_tile_configure(&config);
}

AK_KERNEL void clear_sums(size_t n_groups, size_t n_tiles)
{
    ak_amx_tile_zero(0);
    if (n_tiles > 1)
        ak_amx_tile_zero(1);
    if (n_groups > 1)
        ak_amx_tile_zero(2);
    if (n_groups > 1 && n_tiles > 1)
        ak_amx_tile_zero(3);
}

/* Stores the sums of (g, r) to `to` + g · group_bytes + r · tile_bytes; tokens are `stride` bytes
 * apart. */
AK_KERNEL void store_sums(size_t n_groups, size_t n_tiles, void *to, size_t group_bytes,
                          size_t tile_bytes, size_t stride)
{
    uint8_t *at = to;
    ak_amx_tile_store(0, at, stride);
    if (n_tiles > 1)
        ak_amx_tile_store(1, at + tile_bytes, stride);
    if (n_groups > 1)
        ak_amx_tile_store(2, at + group_bytes, stride);
    if (n_groups > 1 && n_tiles > 1)
        ak_amx_tile_store(3, at + group_bytes + tile_bytes, stride);
}

AK_KERNEL void multiply_tiles(size_t n_groups, size_t n_tiles, const uint16_t *w, const uint16_t *x,
                              size_t k, float *y, size_t y_stride)
{
    clear_sums(n_groups, n_tiles);
    for (size_t i = 0; i < k; i += AK_LANES, w += TILE, x += TILE) {
        ak_amx_tile_load(6, w, AK_LINE_BYTES);
        ak_amx_tile_load(4, x, AK_LINE_BYTES);
        ak_amx_tile_dot_bf16(0, 4, 6);
        if (n_tiles > 1) {
            ak_amx_tile_load(7, w + AK_TILE_ROWS * k, AK_LINE_BYTES);
            ak_amx_tile_dot_bf16(1, 4, 7);
        }
        if (n_groups > 1) {
            ak_amx_tile_load(5, x + GROUP * k, AK_LINE_BYTES);
            ak_amx_tile_dot_bf16(2, 5, 6);
            if (n_tiles > 1)
                ak_amx_tile_dot_bf16(3, 5, 7);
        }
    }
    store_sums(n_groups, n_tiles, y, GROUP * y_stride * sizeof *y, AK_TILE_ROWS * sizeof *y,
               y_stride * sizeof *y);
}

static void dot_panel_bf16(const uint16_t *restrict panel, size_t n_rows,
                           const uint16_t *restrict tokens, size_t n, size_t k, float *restrict y,
                           size_t y_stride)
{
    size_t shape_tokens = 0, shape_rows = 0;
    for (size_t t = 0; t < n; t += TOKENS) {
        size_t n_tokens = ak_min_size(n - t, TOKENS);
        for (size_t r = 0; r < n_rows; r += ROWS) {
            size_t n_block_rows = ak_min_size(n_rows - r, ROWS);
            const uint16_t *w = panel + r * k, *x = tokens + t * k;
            float *to = y + t * y_stride + r;
            if (n_tokens != shape_tokens || n_block_rows != shape_rows)
                configure_tiles(shape_tokens = n_tokens, shape_rows = n_block_rows);
            if (n_tokens > GROUP && n_block_rows > AK_TILE_ROWS)
                multiply_tiles(2, 2, w, x, k, to, y_stride);
            else if (n_tokens > GROUP)
                multiply_tiles(2, 1, w, x, k, to, y_stride);
            else if (n_block_rows > AK_TILE_ROWS)
                multiply_tiles(1, 2, w, x, k, to, y_stride);
            else
                multiply_tiles(1, 1, w, x, k, to, y_stride);
        }
    }
    ak_amx_tile_release();
}

AK_SETTER(panel_bf16)
{
    k->unpack_panel_bf16[AK_QUANT_BF16] = unpack_bf16;
    k->unpack_panel_bf16[AK_QUANT_F16] = unpack_f16;
    k->interleave_token_bf16 = interleave_token_bf16;
    k->dot_panel_bf16 = dot_panel_bf16;
    k->panel_bf16_step = ROWS;
    k->panel_bf16_max = 2 * AK_PANEL_ROWS_MAX;
}

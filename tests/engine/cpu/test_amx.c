/* The AMX kernels over a model of the tile unit in plain C (tests/engine/cpu/amx/tile_unit.h),
 * which machines without AMX can run: the bits of AVX-512, and in products of BF16 those
 * that the unit's description gives. */
#include "tests/test.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/mem.h"
#define AK_ISA amx_model
#include "engine/cpu/setter.h"

enum { K_MAX = 2304, N_MAX = 50, TILES = AK_PANEL_I8_TILES_MAX, BF16_ROWS = 2 * AK_PANEL_ROWS_MAX };

static uint32_t next_random;

static uint32_t random_bits(void)
{
    next_random = next_random * 1664525u + 1013904223u;
    return next_random >> 8;
}

static void make_activations(const struct ak_cpu_kernels *k, enum ak_cpu_act_format format,
                             size_t n, uint8_t *activations)
{
    static float x[K_MAX];
    for (size_t t = 0; t < N_MAX; t++) {
        for (size_t i = 0; i < n; i++)
            x[i] = ((float)(random_bits() % 20001) - 10000.0f) * (t % 7 == 0 ? 0.0f : 1e-3f);
        uint8_t *to = activations + t * ak_cpu_act_bytes(format, n);
        if (format == AK_CPU_ACT_Q8_32)
            k->quantize32(x, n, (struct ak_cpu_act32 *)(void *)to);
        else
            k->quantize256(x, n, (struct ak_cpu_act256 *)(void *)to);
    }
}

struct panels {
    uint8_t *amx, *avx512;
};

/* Of tile rows of random bytes; scales that overflow are as good as others. */
static struct panels make_panels(const struct ak_cpu_tile_kernels *amx,
                                 const struct ak_cpu_tile_kernels *avx512, enum ak_quant_type type,
                                 size_t k, size_t n_tiles)
{
    size_t bytes = n_tiles * ak_cpu_tile_row_bytes(type, k),
           panel_bytes = n_tiles * (k / 32) * AK_PANEL_I8_BLOCK_BYTES_MAX;
    uint8_t *tiles = ak_alloc_aligned(bytes);
    struct panels panels = { ak_alloc_aligned(panel_bytes), ak_alloc_aligned(panel_bytes) };
    ck_assert(tiles && panels.amx && panels.avx512);
    for (size_t i = 0; i < bytes; i++)
        tiles[i] = (uint8_t)random_bits();
    amx->unpack_panel_i8(tiles, n_tiles, k, panels.amx);
    avx512->unpack_panel_i8(tiles, n_tiles, k, panels.avx512);
    ak_free(tiles);
    return panels;
}

START_TEST(same_bits)
{
    static const size_t lengths[] = { 32, 96, 256, 288, 512, K_MAX },
                        counts[] = { 1, 15, 16, 17, 32, 33, 48, N_MAX };
    static float got[N_MAX][TILES * AK_TILE_ROWS], want[N_MAX][TILES * AK_TILE_ROWS];
    enum ak_quant_type type = (enum ak_quant_type)_i;
    struct ak_cpu_kernels avx512, amx;
    if (!ak_cpu_isa_is_usable(AK_CPU_ISA_AVX512) || !ak_cpu_is_tiled(type) ||
        ak_cpu_tile_type(type) != type) /* the same kernels */
        return;
    ak_cpu_fill_kernels(AK_CPU_ISA_AVX512, &avx512);
    amx = avx512;
    AK_SET(unpack, &amx);
    AK_SET(panel_i8_32, &amx);
    AK_SET(panel_i8_256, &amx);
    next_random = 7;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t k = lengths[i], act_bytes = ak_cpu_act_bytes(ak_cpu_type_act_format(type), k);
        if (k % ak_quant_info(type)->block_elems != 0)
            continue;
        uint8_t *activations = ak_alloc_aligned(N_MAX * act_bytes);
        ck_assert_ptr_nonnull(activations);
        make_activations(&avx512, ak_cpu_type_act_format(type), k, activations);
        for (size_t n_tiles = 1; n_tiles <= TILES; n_tiles++) {
            struct panels panels =
                make_panels(&amx.tile[type], &avx512.tile[type], type, k, n_tiles);
            for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
                ck_assert_ptr_ne(amx.tile[type].dot_panel_i8, avx512.tile[type].dot_panel_i8);
                amx.tile[type].dot_panel_i8(panels.amx, n_tiles, k, activations, act_bytes,
                                            counts[j], got[0], TILES * AK_TILE_ROWS);
                avx512.tile[type].dot_panel_i8(panels.avx512, n_tiles, k, activations, act_bytes,
                                               counts[j], want[0], TILES * AK_TILE_ROWS);
                for (size_t t = 0; t < counts[j]; t++)
                    for (size_t r = 0; r < n_tiles * AK_TILE_ROWS; r++)
                        ck_assert_msg(ak_float_bits(got[t][r]) == ak_float_bits(want[t][r]) ||
                                          (got[t][r] != got[t][r] && want[t][r] != want[t][r]),
                                      "%s, k %zu, %zu tiles, %zu tokens: token %zu row %zu is %a, "
                                      "AVX-512 gives %a",
                                      ak_quant_info(type)->name, k, n_tiles, counts[j], t, r,
                                      (double)got[t][r], (double)want[t][r]);
            }
            ak_free(panels.amx);
            ak_free(panels.avx512);
        }
        ak_free(activations);
    }
}
END_TEST

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

/* What the description of the unit makes of one row and one token. */
static float described_product(const uint16_t *w, const uint16_t *x, size_t k)
{
    float sum = 0.0f;
    for (size_t i = 0; i < k; i += AK_LANES) {
        float even = 0.0f, odd = 0.0f;
        for (size_t j = i; j < i + AK_LANES; j += 2) {
            even = flushed(
                fmaf(flushed(ak_bf16_to_float(x[j])), flushed(ak_bf16_to_float(w[j])), even));
            odd = flushed(fmaf(flushed(ak_bf16_to_float(x[j + 1])),
                               flushed(ak_bf16_to_float(w[j + 1])), odd));
        }
        sum = flushed(sum + flushed(even + odd));
    }
    return sum;
}

/* Mostly of one size; some cancel, overflow, vanish or are none. */
static float odd_float(void)
{
    float x = ((float)(random_bits() % 20001) - 10000.0f) * 1e-3f;
    switch (random_bits() % 4096) {
    case 0: return INFINITY;
    case 1: return NAN;
    case 2: return x * 0x1p100f;
    case 3: return 0x1p-130f;
    default: return random_bits() % 16 == 0 ? x * 0x1p-64f : x;
    }
}

static void fill_bf16(uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = ak_float_to_bf16(odd_float());
}

/* Tokens [first, first + n) of x as the ones that are opened, times rows [row, row + n_rows) of w.
 */
struct bf16_case {
    size_t row, n_rows, first, n, k;
};

static void expect_described(const struct ak_cpu_kernels *amx, const struct bf16_case *c,
                             const uint16_t *w, const float *x, float (*want)[BF16_ROWS])
{
    const size_t row_bytes = (c->k + 5) * sizeof *w, y_stride = c->n_rows + 3;
    uint16_t *panel =
        ak_alloc_aligned(ak_round_up(c->n_rows, AK_PANEL_ROWS_MAX) * c->k * sizeof *panel);
    uint16_t *tokens =
        ak_alloc_aligned(ak_round_up(c->n, AK_PANEL_BF16_TOKEN_STEP) * c->k * sizeof *tokens);
    float *y = ak_alloc(c->n * y_stride, sizeof *y);
    ck_assert(panel && tokens && y);
    for (size_t i = 0; i < c->n * y_stride; i++)
        y[i] = 42.0f;
    amx->unpack_panel_bf16[AK_QUANT_BF16]((const uint8_t *)w + c->row * row_bytes, row_bytes,
                                          c->n_rows, c->k, panel);
    for (size_t t = c->n; t-- > 0;)
        amx->interleave_token_bf16(x + (c->first + t) * c->k, c->k, t, tokens);
    amx->dot_panel_bf16(panel, c->n_rows, tokens, c->n, c->k, y, y_stride);
    for (size_t t = 0; t < c->n; t++) {
        for (size_t r = 0; r < y_stride; r++) {
            float got = y[t * y_stride + r],
                  expected = r < c->n_rows ? want[c->first + t][c->row + r] : 42.0f;
            ck_assert_msg(
                ak_float_bits(got) == ak_float_bits(expected) || (isnan(got) && isnan(expected)),
                "k %zu, rows %zu + %zu, tokens %zu + %zu: token %zu row %zu is %a, not %a", c->k,
                c->row, c->n_rows, c->first, c->n, t, r, (double)got, (double)expected);
        }
    }
    ak_free(panel);
    ak_free(tokens);
    ak_free(y);
}

/* The product of a row and a token is that of the two, whatever stands beside them and
 * however rows and tokens are divided: by threads, panels, batches or chunks. */
START_TEST(bf16_as_described)
{
    static const size_t lengths[] = { 32, 64, 352, 1056 };
    static const size_t row_cuts[] = { BF16_ROWS, 48, 33, 32, 31, 17, 16, 15, 1 },
                        token_cuts[] = { N_MAX, 33, 32, 31, 17, 16, 15, 1 };
    static float x[N_MAX * 1056], want[N_MAX][BF16_ROWS];
    static uint16_t w[BF16_ROWS * (1056 + 5)], rounded[1056];
    struct ak_cpu_kernels amx;
    if (!ak_cpu_isa_is_usable(AK_CPU_ISA_AVX512))
        return;
    ak_cpu_fill_kernels(AK_CPU_ISA_AVX512, &amx);
    if (!amx.dot_panel_bf16) /* tokens are rounded by its instruction */
        return;
    AK_SET(panel_bf16, &amx);
    ck_assert_uint_eq(amx.panel_bf16_max, BF16_ROWS);
    next_random = 11;
    size_t k = lengths[_i];
    fill_bf16(w, BF16_ROWS * (k + 5));
    for (size_t i = 0; i < N_MAX * k; i++)
        x[i] = odd_float();
    for (size_t t = 0; t < N_MAX; t++) {
        for (size_t i = 0; i < k; i++)
            rounded[i] = ak_float_to_bf16(x[t * k + i]);
        for (size_t r = 0; r < BF16_ROWS; r++)
            want[t][r] = described_product(w + r * (k + 5), rounded, k);
    }
    for (size_t i = 0; i < sizeof row_cuts / sizeof *row_cuts; i++) {
        for (size_t j = 0; j < sizeof token_cuts / sizeof *token_cuts; j++) {
            struct bf16_case c = { .row = BF16_ROWS - row_cuts[i],
                                   .n_rows = row_cuts[i],
                                   .first = N_MAX - token_cuts[j],
                                   .n = token_cuts[j],
                                   .k = k };
            expect_described(&amx, &c, w, x, want);
            c.row = c.first = 0;
            expect_described(&amx, &c, w, x, want);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("amx");
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, same_bits, 0, AK_QUANT_COUNT);
    tcase_add_loop_test(tests, bf16_as_described, 0, 4);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

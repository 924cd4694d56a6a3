/* The AMX kernels over a model of the tile unit in plain C (tests/amx/tile_unit.h),
 * which machines without AMX can run: the bits of AVX-512. */
#include <check.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/mem.h"
#include "cpu/amx/amx.h"

enum { K_MOST = 2304, N_MOST = 50, TILES = AK_SLAB_TILES };

static uint32_t next_random;

static uint32_t random_bits(void)
{
    next_random = next_random * 1664525u + 1013904223u;
    return next_random >> 8;
}

static void make_acts(const struct ak_kernels *k, enum ak_act_form form, size_t n, uint8_t *acts)
{
    static float x[K_MOST];
    for (size_t t = 0; t < N_MOST; t++) {
        for (size_t i = 0; i < n; i++)
            x[i] = ((float)(random_bits() % 20001) - 10000.0f) * (t % 7 == 0 ? 0.0f : 1e-3f);
        uint8_t *to = acts + t * ak_act_bytes(form, n);
        if (form == AK_ACT_32)
            k->quantise32(x, n, (struct ak_act32 *)(void *)to);
        else
            k->quantise256(x, n, (struct ak_act256 *)(void *)to);
    }
}

/* Two tile rows of random bytes; scales that overflow are as good as others. */
static uint8_t *make_slab(const struct ak_tile_kernels *kernels, enum ak_type type, size_t k, size_t n_tiles)
{
    size_t bytes = n_tiles * ak_tile_row_bytes(type, k);
    uint8_t *tiles = ak_alloc_aligned(bytes), *slab = ak_alloc_aligned(n_tiles * (k / 32) * AK_SLAB_BYTES_32);
    ck_assert(tiles && slab);
    for (size_t i = 0; i < bytes; i++)
        tiles[i] = (uint8_t)random_bits();
    kernels->open_slab(tiles, n_tiles, k, slab);
    ak_free(tiles);
    return slab;
}

START_TEST(same_bits)
{
    static const size_t lengths[] = { 32, 96, 256, 288, 512, K_MOST }, counts[] = { 1, 15, 16, 17, 32, 33, 48, N_MOST };
    static float got[N_MOST][TILES * AK_TILE_ROWS], want[N_MOST][TILES * AK_TILE_ROWS];
    enum ak_type type = (enum ak_type)_i;
    struct ak_kernels avx512, amx;
    if (!ak_isa_usable(AK_ISA_AVX512) || !ak_type_is_tiled(type))
        return;
    ak_kernels_fill(AK_ISA_AVX512, &avx512);
    amx = avx512;
    ak_kernels_amx(&amx);
    ck_assert_ptr_eq(amx.tile[AK_Q4_0].dot_slab, ak_amx_dot_slab_8); /* named here, so that the model's are linked */
    next_random = 7;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t k = lengths[i], act_bytes = ak_act_bytes(ak_type_act_form(type), k);
        if (k % ak_type_info(type)->block_elems != 0)
            continue;
        uint8_t *acts = ak_alloc_aligned(N_MOST * act_bytes);
        ck_assert_ptr_nonnull(acts);
        make_acts(&avx512, ak_type_act_form(type), k, acts);
        for (size_t n_tiles = 1; n_tiles <= TILES; n_tiles++) {
            uint8_t *slab = make_slab(&avx512.tile[type], type, k, n_tiles);
            for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
                ck_assert_ptr_ne(amx.tile[type].dot_slab, avx512.tile[type].dot_slab);
                amx.tile[type].dot_slab(slab, n_tiles, k, acts, act_bytes, counts[j], got[0], TILES * AK_TILE_ROWS);
                avx512.tile[type].dot_slab(slab, n_tiles, k, acts, act_bytes, counts[j], want[0], TILES * AK_TILE_ROWS);
                for (size_t t = 0; t < counts[j]; t++)
                    for (size_t r = 0; r < n_tiles * AK_TILE_ROWS; r++)
                        ck_assert_msg(ak_float_bits(got[t][r]) == ak_float_bits(want[t][r]) || (got[t][r] != got[t][r] && want[t][r] != want[t][r]),
                                      "%s, k %zu, %zu tiles, %zu tokens: token %zu row %zu is %a, AVX-512 gives %a",
                                      ak_type_info(type)->name, k, n_tiles, counts[j], t, r, (double)got[t][r], (double)want[t][r]);
            }
            ak_free(slab);
        }
        ak_free(acts);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("amx");
    TCase *tests = tcase_create("slabs");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, same_bits, 0, AK_TYPE_COUNT);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Stored types: geometry, and conversions equal to gguf-py's bit for bit.
 * tests/golden/quant_data.py made the numbers. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gguf_files.h"
#include "files/quant/recode.h"
#include "files/quant/type.h"

static const struct {
    enum ak_quant_type type;
    const char *name;
    unsigned elems, bytes;
} types[] = {
    { AK_QUANT_F32, "F32", 1, 4 },
    { AK_QUANT_F16, "F16", 1, 2 },
    { AK_QUANT_BF16, "BF16", 1, 2 },
    { AK_QUANT_Q4_0, "Q4_0", 32, 18 },
    { AK_QUANT_Q4_1, "Q4_1", 32, 20 },
    { AK_QUANT_Q5_0, "Q5_0", 32, 22 },
    { AK_QUANT_Q5_1, "Q5_1", 32, 24 },
    { AK_QUANT_Q8_0, "Q8_0", 32, 34 },
    { AK_QUANT_Q2_K, "Q2_K", 256, 84 },
    { AK_QUANT_Q3_K, "Q3_K", 256, 110 },
    { AK_QUANT_Q4_K, "Q4_K", 256, 144 },
    { AK_QUANT_Q5_K, "Q5_K", 256, 176 },
    { AK_QUANT_Q6_K, "Q6_K", 256, 210 },
    { AK_QUANT_IQ4_NL, "IQ4_NL", 32, 18 },
    { AK_QUANT_IQ4_XS, "IQ4_XS", 256, 136 },
    { AK_QUANT_MXFP4, "MXFP4", 32, 17 },
    { AK_QUANT_A4, "A4", 32, 20 },
    { AK_QUANT_A5, "A5", 32, 24 },
    { AK_QUANT_A8, "A8", 32, 40 },
    { AK_QUANT_F8, "F8", 128, 132 },
    { AK_QUANT_IQ1_S, "IQ1_S", 256, 50 },
    { AK_QUANT_IQ1_M, "IQ1_M", 256, 56 },
    { AK_QUANT_IQ2_XXS, "IQ2_XXS", 256, 66 },
    { AK_QUANT_IQ2_XS, "IQ2_XS", 256, 74 },
    { AK_QUANT_IQ2_S, "IQ2_S", 256, 82 },
    { AK_QUANT_IQ3_XXS, "IQ3_XXS", 256, 98 },
    { AK_QUANT_IQ3_S, "IQ3_S", 256, 110 },
    { AK_QUANT_TQ1_0, "TQ1_0", 256, 54 },
    { AK_QUANT_TQ2_0, "TQ2_0", 256, 66 },
    { AK_QUANT_NVFP4, "NVFP4", 64, 36 },
    { AK_QUANT_Q1_0, "Q1_0", 128, 18 },
    { AK_QUANT_Q2_0, "Q2_0", 64, 18 },
    { AK_QUANT_Q8_K, "Q8_K", 256, 292 },
    { AK_QUANT_V2, "V2", 32, 10 },
    { AK_QUANT_V3, "V3", 256, 126 },
    { AK_QUANT_V4, "V4", 256, 154 },
};

START_TEST(geometry)
{
    uint64_t bytes;
    for (unsigned i = 0; i < AK_QUANT_COUNT; i++) {
        const struct ak_quant_info *info = ak_quant_info(types[i].type);
        ck_assert_int_eq(types[i].type, (int)i);
        ck_assert_str_eq(info->name, types[i].name);
        ck_assert_uint_eq(info->block_elems, types[i].elems);
        ck_assert_uint_eq(info->block_bytes, types[i].bytes);
        ck_assert(ak_quant_row_bytes(types[i].type, 3 * types[i].elems, &bytes));
        ck_assert_uint_eq(bytes, 3 * types[i].bytes);
        ck_assert(types[i].elems == 1 ||
                  !ak_quant_row_bytes(types[i].type, types[i].elems + 1, &bytes));
    }
    ck_assert(!ak_quant_row_bytes(AK_QUANT_F32, UINT64_C(1) << 62, &bytes));
    ck_assert_uint_eq(sizeof types / sizeof *types, AK_QUANT_COUNT);
}
END_TEST

static struct test_bytes read_golden(const char *type, const char *what,
                                     const struct ak_quant_info *info, size_t *n)
{
    char name[64];
    snprintf(name, sizeof name, "quant/%s.%s", type, what);
    struct test_bytes golden = test_read(name);
    *n = golden.n / (info->block_bytes + 4u * info->block_elems) * info->block_elems;
    ck_assert_uint_gt(*n, 0);
    ck_assert_uint_eq(golden.n, *n / info->block_elems * info->block_bytes + *n * 4);
    return golden;
}

static void compare(const char *name, const void *got, const void *wanted, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const uint8_t *)got)[i] != ((const uint8_t *)wanted)[i])
            ck_abort_msg("%s: byte %zu of %zu differs", name, i, bytes);
}

/* Many random blocks, for the sake of large codebooks: tests/golden/quant_hashes.py makes the same,
 * and the FNV-1a hash of their elements. */
enum { N_RANDOM = 1024 };
static const struct {
    enum ak_quant_type type;
    int top; /* byte with the top bits of the scale, of which bit 6 is cleared; -1: none */
    uint64_t hash;
} hashes[] = {
    { AK_QUANT_IQ1_S, 1, 0xa0b15d2e9f0b4f7e },   { AK_QUANT_IQ1_M, 55, 0x2475df74a3f7d6f7 },
    { AK_QUANT_IQ2_XXS, 1, 0xea870e8ade07157a }, { AK_QUANT_IQ2_XS, 1, 0x0978a997736bc653 },
    { AK_QUANT_IQ2_S, 1, 0x03b845f4da33bc6c },   { AK_QUANT_IQ3_XXS, 1, 0xf8b79d83cf9ec944 },
    { AK_QUANT_IQ3_S, 1, 0xca583b5921fe6695 },   { AK_QUANT_TQ1_0, 53, 0x0d0e915fccb391fa },
    { AK_QUANT_TQ2_0, 65, 0xd5a06ec016b67579 },  { AK_QUANT_NVFP4, -1, 0x6e48b30b85e9bdd6 },
    { AK_QUANT_Q1_0, 1, 0x01563878e2fb3725 },    { AK_QUANT_Q2_0, 1, 0x2b038bcd4a4c83ef },
    { AK_QUANT_Q8_K, 3, 0xe88560c6659b15c8 },
};

static uint8_t *random_blocks(size_t block_bytes, int top)
{
    uint64_t state = block_bytes;
    uint8_t *blocks = malloc(N_RANDOM * block_bytes);
    for (size_t i = 0; i < N_RANDOM * block_bytes; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        blocks[i] = (uint8_t)(state >> 56);
        if (top >= 0 && i % block_bytes == (size_t)top)
            blocks[i] &= 0xbf;
    }
    return blocks;
}

static uint64_t hash(const void *data, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    return h;
}

START_TEST(dequantize_random)
{
    const struct ak_quant_info *info = ak_quant_info(hashes[_i].type);
    size_t n = (size_t)N_RANDOM * info->block_elems;
    uint8_t *blocks = random_blocks(info->block_bytes, hashes[_i].top);
    float *out = malloc(n * sizeof *out);
    info->dequantize(blocks, out, n);
    ck_assert_msg(hash(out, n * sizeof *out) == hashes[_i].hash, "%s", info->name);
    free(out);
    free(blocks);
}
END_TEST

/* Recoded blocks have the values of the stored ones. */
START_TEST(recoded_values)
{
    enum ak_quant_type type = hashes[_i].type, to = ak_quant_recoded_type(type);
    const struct ak_quant_info *info = ak_quant_info(type), *other = ak_quant_info(to);
    size_t n = (size_t)N_RANDOM * info->block_elems;
    ck_assert_int_eq(to == type, type == AK_QUANT_NVFP4 || type == AK_QUANT_Q8_K);
    ck_assert_int_eq(ak_quant_recoded_type(to), to);
    if (to == type)
        return;
    uint8_t *blocks = random_blocks(info->block_bytes, hashes[_i].top),
            *recoded = malloc(n / other->block_elems * other->block_bytes);
    float *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
    ak_quant_recode(type, blocks, recoded, n);
    info->dequantize(blocks, want, n);
    other->dequantize(recoded, got, n);
    compare(info->name, got, want, n * sizeof *got);
    free(blocks);
    free(recoded);
    free(want);
    free(got);
}
END_TEST

START_TEST(dequantize)
{
    const struct ak_quant_info *info = ak_quant_info(types[_i].type);
    size_t n;
    if (types[_i].type >= AK_QUANT_V2)
        return; /* no file has them: recoded_values */
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        if (hashes[i].type == types[_i].type)
            return;
    struct test_bytes golden = read_golden(info->name, "dequant", info, &n);
    size_t stored = golden.n - 4 * n;
    float *out = malloc(4 * n);
    info->dequantize(golden.data, out, n);
    compare(info->name, out, golden.data + stored, 4 * n);
    free(out);
    free(golden.data);
}
END_TEST

START_TEST(quantize)
{
    const struct ak_quant_info *info = ak_quant_info(types[_i].type);
    static const enum ak_quant_type wanted[] = { AK_QUANT_F32,  AK_QUANT_F16,  AK_QUANT_BF16,
                                                 AK_QUANT_Q8_0, AK_QUANT_Q4_0, AK_QUANT_Q4_1,
                                                 AK_QUANT_Q5_0, AK_QUANT_Q5_1, AK_QUANT_IQ4_NL };
    bool exists = false;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        exists = exists || wanted[i] == types[_i].type;
    ck_assert_int_eq(info->quantize != NULL, exists);
    if (!exists)
        return;
    size_t n;
    struct test_bytes golden = read_golden(info->name, "quant", info, &n);
    size_t stored = golden.n - 4 * n;
    float *in = malloc(4 * n);
    uint8_t *out = malloc(stored);
    memcpy(in, golden.data, 4 * n);
    info->quantize(in, out, n);
    compare(info->name, out, golden.data + 4 * n, stored);
    free(in);
    free(out);
    free(golden.data);
}
END_TEST

/* Q8_0 rounds halves away from zero, as roundf and llama.cpp do; a largest element of 127 makes
 * the scale 1. */
START_TEST(halves_of_q8_0)
{
    static const float in[32] = { 127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -2.5f, 126.5f };
    static const int8_t want[7] = { 127, 1, 2, 3, -1, -3, 127 };
    struct {
        uint8_t d[2];
        int8_t q[32];
    } block;
    ak_quant_info(AK_QUANT_Q8_0)->quantize(in, &block, 32);
    ck_assert_mem_eq(block.q, want, sizeof want);
}
END_TEST

/* Not numbers and infinities go in without harm: what comes out is not said. */
START_TEST(quantize_no_numbers)
{
    const struct ak_quant_info *info = ak_quant_info(types[_i].type);
    float in[256], back[256];
    uint8_t out[1024];
    if (!info->quantize)
        return;
    for (int i = 0; i < 256; i++)
        in[i] = i % 3 == 0 ? (float)i :
                i % 3 == 1 ? __builtin_nanf("") :
                i % 2      ? __builtin_inff() :
                             -3e38f;
    info->quantize(in, out, 256);
    info->dequantize(out, back, 256);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quant");
    TCase *t = tcase_create("quant");
    suite_add_tcase(suite, t);
    tcase_add_test(t, geometry);
    tcase_add_loop_test(t, dequantize, 0, AK_QUANT_COUNT);
    tcase_add_loop_test(t, dequantize_random, 0, sizeof hashes / sizeof *hashes);
    tcase_add_loop_test(t, recoded_values, 0, sizeof hashes / sizeof *hashes);
    tcase_add_loop_test(t, quantize, 0, AK_QUANT_COUNT);
    tcase_add_test(t, halves_of_q8_0);
    tcase_add_loop_test(t, quantize_no_numbers, 0, AK_QUANT_COUNT);
    return test_run(suite);
}

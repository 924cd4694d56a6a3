/* Quantizers: blocks that are at least as near to the rows as ggml's are, the same bytes with every
 * instruction set, and no harm from rows of zeros or of very large numbers. */
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/quant/codebook.h"
#include "conversion/quantize/near.h"
#include "conversion/quantize/quantize.h"

enum { ROWS = 64, COLS = 512, N = ROWS * COLS };

/* Σ importance · error² of what ggml makes of the same rows, by tests/golden/quantize_errors.py, to
 * four digits: without importance, and with it. */
static const struct {
    enum ak_quant_type type;
    double of_ggml[2];
} errors[] = {
    { AK_QUANT_Q4_0, { 240.8, 213.3 } },
    { AK_QUANT_Q4_1, { 187, 133.6 } },
    { AK_QUANT_Q5_0, { 61.8, 55.8 } },
    { AK_QUANT_Q5_1, { 43.72, 31.36 } },
    { AK_QUANT_Q8_0, { 0.9928, 1.016 } },
    { AK_QUANT_Q2_K, { 2721, 1641 } },
    { AK_QUANT_Q3_K, { 661.1, 560.2 } },
    { AK_QUANT_Q4_K, { 156.6, 137.9 } },
    { AK_QUANT_Q5_K, { 40.6, 35.84 } },
    { AK_QUANT_Q6_K, { 10.45, 9.415 } },
    { AK_QUANT_IQ4_NL, { 164.9, 148.4 } },
    { AK_QUANT_IQ4_XS, { 167.3, 151.3 } },
    { AK_QUANT_IQ1_S, { 6222, 5356 } },
    { AK_QUANT_IQ1_M, { 4959, 3925 } },
    { AK_QUANT_IQ2_XXS, { 3314, 2717 } },
    { AK_QUANT_IQ2_XS, { 2491, 2088 } },
    { AK_QUANT_IQ2_S, { 2055, 1793 } },
    { AK_QUANT_IQ3_XXS, { 840.8, 658.2 } },
    { AK_QUANT_IQ3_S, { 537.7, 449.3 } },
    { AK_QUANT_TQ1_0, { 1.421e+04, 1.426e+04 } },
    { AK_QUANT_TQ2_0, { 1.421e+04, 1.426e+04 } },
    { AK_QUANT_Q1_0, { 1.177e+04, 1.178e+04 } },
    { AK_QUANT_Q2_0, { 1.111e+04, 1.131e+04 } },
    { AK_QUANT_MXFP4, { 346.4, 347.5 } },
    { AK_QUANT_NVFP4, { 199.3, 203.2 } },
};
enum { N_TYPES = sizeof errors / sizeof *errors };

struct data {
    struct ak_quantize_tables tables;
    float x[N], importance[2][COLS], back[N];
    uint8_t blocks[4 * N];
};

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 40) / 16777216.0;
}

/* Rows with the tails that weights have. */
static struct data *make_data(void)
{
    struct data *d = calloc(1, sizeof *d);
    uint64_t state = 1;
    for (int i = 0; i < N; i++) {
        double y = uniform(&state) + uniform(&state) + uniform(&state) + uniform(&state) - 2.0;
        d->x[i] = (float)(y * fabs(y) + 0.5 * y);
    }
    for (int i = 0; i < COLS; i++) {
        d->importance[0][i] = 1.0f;
        d->importance[1][i] = (float)(0.25 + 4.0 * pow(uniform(&state), 4.0));
    }
    return d;
}

static void free_data(struct data *d)
{
    ak_quantize_clear(&d->tables);
    free(d);
}

static void quantize(struct data *d, unsigned set, enum ak_quant_type type,
                     const float importance[COLS])
{
    uint64_t row_bytes;
    ck_assert(ak_quant_row_bytes(type, COLS, &row_bytes));
    ck_assert(ak_quantize_prepare(&d->tables, type));
    for (int row = 0; row < ROWS; row++)
        ak_quantize_with(&d->tables, set, type, d->x + row * COLS, importance,
                         d->blocks + (size_t)row * row_bytes, COLS);
    ak_quant_info(type)->dequantize(d->blocks, d->back, N);
}

START_TEST(as_near_as_ggml)
{
    enum ak_quant_type type = errors[_i].type;
    struct data *d = make_data();
    ck_assert(ak_quantize_has(type));
    for (int given = 0; given < 2; given++) {
        double error = 0.0;
        quantize(d, ak_quantize_sets() - 1, type, d->importance[given]);
        for (int i = 0; i < N; i++) {
            double by = (double)d->x[i] - (double)d->back[i];
            error += (double)d->importance[given][i % COLS] * by * by;
        }
        ck_assert_msg(error <= errors[_i].of_ggml[given] * 1.0005, "%s: %g, ggml's is %g",
                      ak_quant_info(type)->name, error, errors[_i].of_ggml[given]);
    }
    free_data(d);
}
END_TEST

START_TEST(same_bytes)
{
    enum ak_quant_type type = errors[_i].type;
    struct data *d = make_data(), *other = make_data();
    quantize(d, 0, type, d->importance[1]);
    for (unsigned set = 1; set < ak_quantize_sets(); set++) {
        quantize(other, set, type, d->importance[1]);
        ck_assert_msg(memcmp(d->blocks, other->blocks, sizeof d->blocks) == 0,
                      "%s with instruction set %u", ak_quant_info(type)->name, set);
    }
    free_data(d);
    free_data(other);
}
END_TEST

/* √(mean of x² + x²), the mean over `piece` neighbors, times the importance if there is one. */
static void weigh(const float *x, const float *importance, int n, int piece, float weights[COLS])
{
    for (int i = 0; i < n; i += piece) {
        int end = i + piece < n ? i + piece : n;
        float sum = 0.0f;
        for (int k = i; k < end; k++)
            sum += x[k] * x[k];
        for (int k = i; k < end; k++)
            weights[k] =
                sqrtf(sum / (float)(end - i) + x[k] * x[k]) * (importance ? importance[k] : 1.0f);
    }
}

START_TEST(large_elements_count_more)
{
    enum ak_quant_type type = errors[_i / 2].type;
    struct data *d = make_data(), *other = make_data();
    const float *importance = _i % 2 ? d->importance[1] : NULL;
    uint64_t bytes;
    ck_assert(ak_quant_row_bytes(type, COLS, &bytes));
    ck_assert(ak_quantize_prepare(&d->tables, type));
    for (int row = 0; row < ROWS; row++) {
        float weights[COLS];
        const float *x = d->x + row * COLS;
        weigh(x, importance, COLS, 256, weights);
        ak_quantize(&d->tables, type, x, importance, d->blocks + (size_t)row * bytes, COLS);
        ak_quantize_with(&d->tables, 0, type, x, weights, other->blocks + (size_t)row * bytes,
                         COLS);
    }
    ck_assert_msg(memcmp(d->blocks, other->blocks, sizeof d->blocks) == 0, "%s",
                  ak_quant_info(type)->name);
    free_data(d);
    free_data(other);
}
END_TEST

/* Of a row that ends within 256 elements the rest counts by itself, and nothing is written behind
 * its blocks. */
START_TEST(end_of_a_row)
{
    enum { N_ROW = 288 };
    enum ak_quant_type type = errors[_i / 2].type;
    struct data *d = make_data(), *other = make_data();
    const float *importance = _i % 2 ? d->importance[1] : NULL;
    float weights[COLS];
    uint64_t bytes;
    if (ak_quant_row_bytes(type, N_ROW, &bytes)) {
        ck_assert(ak_quantize_prepare(&d->tables, type));
        weigh(d->x, importance, N_ROW, 256, weights);
        ak_quantize(&d->tables, type, d->x, importance, d->blocks, N_ROW);
        ak_quantize_with(&d->tables, 0, type, d->x, weights, other->blocks, N_ROW);
        ck_assert_msg(memcmp(d->blocks, other->blocks, sizeof d->blocks) == 0, "%s",
                      ak_quant_info(type)->name);
    }
    free_data(d);
    free_data(other);
}
END_TEST

/* ---- Codebooks ---------------------------------------------------------- */
static const struct {
    const uint16_t *codes;
    int n, n_dims, bits;
} codebooks[] = {
    { ak_quant_iq1_codes, 2048, 8, 2 },    { ak_quant_iq2_xxs_codes, 256, 8, 2 },
    { ak_quant_iq2_xs_codes, 512, 8, 2 },  { ak_quant_iq2_s_codes, 1024, 8, 2 },
    { ak_quant_iq3_xxs_codes, 256, 4, 3 }, { ak_quant_iq3_s_codes, 512, 4, 3 },
};

static int get_level(uint16_t code, int bits, int i)
{
    return code >> bits * i & ((1 << bits) - 1);
}

/* The points in order of their distances, and of the codebook if these are the same. */
static void check_list(int book, int vector, const uint16_t list[AK_NEAR_POINTS])
{
    const uint16_t *codes = codebooks[book].codes;
    int distances[2048], bits = codebooks[book].bits, levels = bits == 2 ? 3 : 8, n = 0;
    for (int c = 0; c < codebooks[book].n; c++) {
        distances[c] = 0;
        for (int i = 0, rest = vector; i < codebooks[book].n_dims; i++, rest /= levels) {
            int by = rest % levels - get_level(codes[c], bits, i);
            distances[c] += by * by;
        }
    }
    for (int distance = 0; n < AK_NEAR_POINTS; distance++)
        for (int c = 0; c < codebooks[book].n && n < AK_NEAR_POINTS; c++)
            if (distances[c] == distance)
                ck_assert_msg(list[n++] == codes[c], "codebook %d, vector %d, point %d", book,
                              vector, n - 1);
}

START_TEST(nearest_points)
{
    const uint16_t *codes = codebooks[_i].codes;
    int n_dims = codebooks[_i].n_dims, bits = codebooks[_i].bits, levels = bits == 2 ? 3 : 8, n = 1;
    struct ak_near near;
    ck_assert(ak_near_make(codes, codebooks[_i].n, n_dims, bits, &near));
    for (int i = 0; i < n_dims; i++)
        n *= levels;
    for (int vector = 0; vector < n; vector += 5)
        check_list(_i, vector, near.codes[vector]);
    for (int c = 0; c < codebooks[_i].n; c++) {
        int vector = 0;
        for (int i = n_dims - 1; i >= 0; i--)
            vector = vector * levels + get_level(codes[c], bits, i);
        ck_assert_int_eq(near.index[vector], c);
    }
    ak_near_clear(&near);
    ck_assert(!near.codes && !near.index);
}
END_TEST

START_TEST(types)
{
    for (int i = 0; i < N_TYPES; i++)
        ck_assert(ak_quantize_has(errors[i].type));
    ck_assert(!ak_quantize_has(AK_QUANT_COUNT));
}
END_TEST

/* ---- Groups ------------------------------------------------------------- */
static float get_number(unsigned bits, const uint8_t *row, int i)
{
    unsigned word = 0;
    if (bits == 8)
        return (float)(int8_t)row[i];
    for (unsigned b = 0; b < bits; b++) {
        unsigned at = (unsigned)i * bits + b;
        word |= (row[at / 8] >> at % 8 & 1u) << b;
    }
    return (float)word - (float)(1 << (bits - 1));
}

struct groups {
    uint8_t numbers[N];
    float scales[N / 32];
};

static void make_groups(const struct data *d, unsigned set, unsigned bits, uint32_t group,
                        const float importance[COLS], struct groups *out)
{
    for (int row = 0; row < ROWS; row++)
        ak_quantize_groups_with(set, bits, group, d->x + row * COLS, importance,
                                out->numbers + (size_t)row * COLS / 8 * bits,
                                out->scales + (uint32_t)row * COLS / group, COLS);
}

static float get_element(const struct groups *g, unsigned bits, uint32_t group, int i)
{
    return g->scales[(uint32_t)i / group] *
           get_number(bits, g->numbers + (size_t)(i / COLS) * COLS / 8 * bits, i % COLS);
}

/* No element of 8 bits is off by more than half a step, and a step is a 127th of the largest
 * element or, since F16 has its scale, at most a thousandth more. */
START_TEST(int8_is_half_a_step_off)
{
    struct data *d = make_data();
    struct groups *g = calloc(1, sizeof *g);
    for (uint32_t group = 32; group <= 128; group *= 2) {
        make_groups(d, ak_quantize_sets() - 1, 8, group, d->importance[0], g);
        for (int i = 0; i < N; i++) {
            float largest = 0.0f, scale = g->scales[(uint32_t)i / group];
            for (uint32_t k = 0; k < group; k++)
                largest = fmaxf(largest, fabsf(d->x[(uint32_t)i / group * group + k]));
            ck_assert(scale >= largest / 127.0f && scale <= largest / 127.0f * 1.001f);
            ck_assert(fabsf(d->x[i] - get_element(g, 8, group, i)) <= 0.5f * scale * 1.000001f);
        }
    }
    free(g);
    free(d);
}
END_TEST

/* Blocks of Q4_0 are the same groups of 32, and 3 bits lose more than 4. */
START_TEST(groups_are_as_near_as_blocks)
{
    struct data *d = make_data();
    struct groups *g = calloc(1, sizeof *g);
    for (int given = 0; given < 2; given++) {
        double sums[2] = { 0.0, 0.0 };
        for (unsigned bits = 3; bits <= 4; bits++) {
            make_groups(d, ak_quantize_sets() - 1, bits, 32, d->importance[given], g);
            for (int i = 0; i < N; i++) {
                double by = (double)d->x[i] - (double)get_element(g, bits, 32, i);
                sums[bits - 3] += (double)d->importance[given][i % COLS] * by * by;
            }
        }
        ck_assert_double_le(sums[1], errors[0].of_ggml[given] * 1.0005);
        ck_assert_double_gt(sums[0], 3.0 * sums[1]);
        ck_assert_double_lt(sums[0], 6.0 * sums[1]);
    }
    free(g);
    free(d);
}
END_TEST

START_TEST(same_groups)
{
    struct data *d = make_data();
    struct groups *g = calloc(2, sizeof *g);
    for (unsigned bits = 3; bits <= 8; bits += bits == 4 ? 4 : 1) {
        make_groups(d, 0, bits, 64, d->importance[1], &g[0]);
        for (unsigned set = 1; set < ak_quantize_sets(); set++) {
            make_groups(d, set, bits, 64, d->importance[1], &g[1]);
            ck_assert_msg(memcmp(&g[0], &g[1], sizeof *g) == 0, "%u bits, instruction set %u", bits,
                          set);
        }
    }
    free(g);
    free(d);
}
END_TEST

/* Large elements count more in groups of 4 and 3 bits too, among as many whole groups as 256
 * elements have; not in those of 8 bits, which need no search. */
START_TEST(large_elements_of_groups)
{
    static const unsigned bits[] = { 3, 4, 8 };
    uint32_t group = 32 * ((uint32_t)_i + 1);
    int n = (int)(511 / group * group);
    struct data *d = make_data();
    struct groups *g = calloc(2, sizeof *g);
    for (int i = 0; i < 6; i++) {
        const float *importance = i % 2 ? d->importance[1] : NULL;
        float weights[COLS];
        memset(g, 0, 2 * sizeof *g);
        weigh(d->x, importance, n, (int)(256 / group * group), weights);
        ak_quantize_groups(bits[i / 2], group, d->x, importance, g[0].numbers, g[0].scales,
                           (size_t)n);
        ak_quantize_groups_with(0, bits[i / 2], group, d->x, bits[i / 2] == 8 ? NULL : weights,
                                g[1].numbers, g[1].scales, (size_t)n);
        ck_assert_msg(memcmp(&g[0], &g[1], sizeof *g) == 0, "%u bits, groups of %u", bits[i / 2],
                      group);
    }
    free(g);
    free_data(d);
}
END_TEST

/* Zeros stay zeros. A lone element in a block, very large or small numbers, and columns that do not
 * count lead to finite elements. */
START_TEST(strange_rows)
{
    static const float numbers[] = { 0.0f, 1.0f, 3e38f, -3e38f, 1e-38f, 1e-45f, 6e4f };
    enum ak_quant_type type = errors[_i].type;
    struct data *d = make_data();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (int all = 0; all < 2; all++) {
            for (int j = 0; j < N; j++)
                d->x[j] = all || j % 97 == 5 ? numbers[i] : 0.0f;
            for (int j = 0; j < COLS; j++)
                d->importance[1][j] = j % 3 == 0 ? 0.0f : 1.0f;
            for (int given = 0; given < 2; given++) {
                quantize(d, ak_quantize_sets() - 1, type, d->importance[given]);
                for (int j = 0; j < N && fabsf(numbers[i]) <= 6e4f; j++)
                    ck_assert_msg(isfinite(d->back[j]) &&
                                      (numbers[i] != 0.0f || d->back[j] == 0.0f),
                                  "%s: %g becomes %g", ak_quant_info(type)->name, (double)d->x[j],
                                  (double)d->back[j]);
            }
        }
    free_data(d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize");
    TCase *t = tcase_create("quantize");
    suite_add_tcase(suite, t);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, as_near_as_ggml, 0, N_TYPES);
    tcase_add_loop_test(t, same_bytes, 0, N_TYPES);
    tcase_add_loop_test(t, large_elements_count_more, 0, 2 * N_TYPES);
    tcase_add_loop_test(t, end_of_a_row, 0, 2 * N_TYPES);
    tcase_add_loop_test(t, nearest_points, 0, sizeof codebooks / sizeof *codebooks);
    tcase_add_test(t, types);
    tcase_add_test(t, int8_is_half_a_step_off);
    tcase_add_test(t, groups_are_as_near_as_blocks);
    tcase_add_test(t, same_groups);
    tcase_add_loop_test(t, large_elements_of_groups, 0, 4);
    tcase_add_loop_test(t, strange_rows, 0, N_TYPES);
    return test_run(suite);
}

/* Passes that want only the largest logits: these are the same bits as in passes that want all,
 * and the others are minus infinity (engine/cpu/output.c). */
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/table_rig.h"

enum { COLS = 96, ROWS = 1003, PASS_TOKENS = 8, TOKENS = RIG_VOCAB };

/* Each of the hidden states in six kinds of passes. */
enum { KINDS = 6, ROWS_PER_MATRIX = KINDS * TOKENS };

/* A matrix of Q8_0 whose rows have different magnitudes; some rows are zero. */
static uint8_t *make_matrix(struct ak_view *view)
{
    const struct ak_quant_info *info = ak_quant_info(AK_QUANT_Q8_0);
    size_t row_bytes = (size_t)COLS / info->block_elems * info->block_bytes;
    uint8_t *stored = malloc(ROWS * row_bytes);
    ck_assert_ptr_nonnull(stored);
    for (size_t r = 0; r < ROWS; r++) {
        float row[COLS], magnitude = rig_bits() % 16 == 0 ? 0.0f : rig_float(0.01f, 0.4f);
        magnitude *= rig_bits() % 8 == 0 ? 4.0f : 1.0f;
        for (size_t i = 0; i < COLS; i++)
            row[i] = magnitude * (rig_float(-1.0f, 1.0f) + rig_float(-1.0f, 1.0f));
        info->quantize(row, stored + r * row_bytes, COLS);
    }
    *view = (struct ak_view){ .type = AK_QUANT_Q8_0,
                              .rows = ROWS,
                              .cols = COLS,
                              .plane = { { stored, ROWS * row_bytes } },
                              .name = "output" };
    return stored;
}

/* Hidden states, all of whose rows are to be multiplied with the matrix; returns their slot. */
static uint32_t make_table(struct rig *r, uint64_t seed)
{
    rig_begin(r, COLS, -1.0f, 1.0f);
    rig_state ^= seed * 0x9e3779b97f4a7c15u + seed;
    for (size_t i = 0; i < (size_t)RIG_VOCAB * COLS; i++)
        r->rows[i] = rig_float(-1.0f, 1.0f) * (rig_bits() % 32 == 0 ? 20.0f : 1.0f);
    uint32_t hidden = rig_slot(r, COLS, AK_OP_ROWS_LOGITS);
    rig_add(r, AK_OP_SELECT, 0, hidden)->params.select.n = COLS;
    r->table.logits = rig_slot(r, ROWS, AK_OP_ROWS_LOGITS);
    r->n = ROWS;
    return hidden;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Checks a row of `found`, in which the n_best largest were wanted, against one with all; returns
 * how many were not computed. */
static size_t check_row(const float *all, const float *found, uint32_t n_best)
{
    float sorted[ROWS];
    size_t n_left_out = 0;
    memcpy(sorted, all, sizeof sorted);
    qsort(sorted, ROWS, sizeof *sorted, compare);
    for (size_t i = 0; i < ROWS; i++) {
        bool left_out = found[i] == -INFINITY;
        ck_assert(left_out || memcmp(&found[i], &all[i], sizeof *all) == 0);
        ck_assert_msg(!left_out || all[i] < sorted[n_best - 1],
                      "row %zu of logit %g is left out; number %u has %g", i, (double)all[i],
                      n_best, (double)sorted[n_best - 1]);
        n_left_out += left_out;
    }
    return n_left_out;
}

/* What passes of pass_tokens tokens make of all hidden states. */
static void run_passes(struct rig *r, uint32_t pass_tokens, uint32_t n_best, float *out)
{
    struct rig_pass passes[TOKENS];
    uint32_t n = rig_split(passes, TOKENS, pass_tokens);
    r->n_best = n_best;
    rig_run(r, "cpu", NULL, passes, n, out, NULL);
}

/* A random matrix and random hidden states. */
static void check_matrix(uint64_t seed)
{
    static const struct {
        uint32_t n_best, pass_tokens;
    } kinds[KINDS] = { { 1, 1 },  { 1, PASS_TOKENS }, { 5, 1 },
                       { 40, 1 }, { 8, PASS_TOKENS }, { 3, 3 } };
    struct ak_view view;
    struct rig r;
    float *all = malloc((size_t)TOKENS * ROWS * sizeof *all),
          *best = malloc((size_t)TOKENS * ROWS * sizeof *best);
    ck_assert(all && best);
    rig_state = seed;
    uint32_t hidden = make_table(&r, seed);
    uint8_t *stored = make_matrix(&view);
    rig_linear(&r, &view, AK_OP_LINEAR_OUTPUT, hidden, r.table.logits);
    run_passes(&r, PASS_TOKENS, 0, all);
    for (size_t i = 0; i < KINDS; i++) {
        uint32_t n_best = kinds[i].n_best;
        size_t n_left_out = 0;
        run_passes(&r, kinds[i].pass_tokens, n_best, best);
        for (size_t t = 0; t < TOKENS; t++)
            n_left_out += check_row(all + t * ROWS, best + t * ROWS, n_best);
        double share = (double)n_left_out / ((double)TOKENS * ROWS);
        ck_assert_msg(share > (n_best < 40 ? 0.5 : 0.1),
                      "%u best: only %.3f of the logits are left out", n_best, share);
    }
    rig_free(&r);
    free(stored);
    free(all);
    free(best);
}

/* AKUNU_TEST_ROWS: how many rows of logits are compared, ROWS_PER_MATRIX of each matrix. */
START_TEST(largest_logits_are_exact)
{
    const char *rows = getenv("AKUNU_TEST_ROWS");
    uint64_t matrices = rows ? strtoull(rows, NULL, 10) / ROWS_PER_MATRIX + 1 : 5;
    for (uint64_t seed = 1; seed <= matrices; seed++)
        check_matrix(seed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("output");
    TCase *tests = tcase_create("output");
    tcase_set_timeout(tests, 600);
    tcase_add_test(tests, largest_logits_are_exact);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

/* Residual blocks (engine/cpu/residual.c): the product of a token in which one block has by far the
 * largest elements is nearly exact, that of another token is as without them, and both are the same
 * bits with any number of tokens in a pass, with every instruction set, and if ranks exchange the
 * shards of a row (engine/cpu/ranks_shards.c), whichever blocks these cut. */
#include "tests/test.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "files/quant/block.h"
#include "tests/table_rig.h"

enum { ROWS = 96, TOKENS = RIG_VOCAB, COLS_32 = 32 * 19, COLS_256 = 256 * 8 };

static const enum ak_quant_type types[] = {
#define TILE32(name, NAME) AK_QUANT_##NAME,
#define TILE256(name, NAME) AK_QUANT_##NAME,
#include "engine/cpu/types.def"
};

/* Writes a half or the upper half of a float, about 2^-8. */
static void put_scale(uint8_t *at, bool wide)
{
    uint16_t bits = (uint16_t)((wide ? 0x3b80 : 0x1c00) | (rig_bits() & 0x7f));
    memcpy(at, &bits, sizeof bits);
}

/* Random blocks with ordinary scales. */
static uint8_t *make_matrix(enum ak_quant_type type, uint32_t cols, struct ak_view *view)
{
    static const struct ak_quant_table numbers = { { -31, -20, -9, -2, 3, 10, 19, 31 }, 0.5f };
    const struct ak_quant_info *info = ak_quant_info(type);
    size_t bytes = info->block_bytes, n = (size_t)ROWS * cols / info->block_elems;
    uint8_t *stored = malloc(n * bytes);
    ck_assert_ptr_nonnull(stored);
    for (size_t i = 0; i < n * bytes; i++)
        stored[i] = (uint8_t)rig_bits();
    for (uint8_t *block = stored; block < stored + n * bytes; block += bytes) {
        switch (type) {
        case AK_QUANT_MXFP4: *block = (uint8_t)(118 + rig_bits() % 4); break;
        case AK_QUANT_Q3_K: put_scale(block + 108, false); break;
        case AK_QUANT_Q6_K: put_scale(block + 208, false); break;
        case AK_QUANT_Q2_K:
            put_scale(block + 80, false);
            put_scale(block + 82, false);
            break;
        case AK_QUANT_A4:
        case AK_QUANT_A5:
            put_scale(block, true);
            put_scale(block + 2, true);
            break;
        case AK_QUANT_A8:
            put_scale(block + 2, true);
            put_scale(block + 6, true);
            break;
        case AK_QUANT_Q4_1:
        case AK_QUANT_Q5_1:
        case AK_QUANT_Q4_K:
        case AK_QUANT_Q5_K:
            put_scale(block, false);
            put_scale(block + 2, false);
            break;
        case AK_QUANT_V3:
        case AK_QUANT_V4:
            put_scale(block, false);
            memcpy(block + bytes - sizeof numbers, &numbers, sizeof numbers);
            break;
        default: put_scale(block, false); break;
        }
    }
    *view = (struct ak_view){ .type = type,
                              .rows = ROWS,
                              .cols = cols,
                              .plane = { { stored, n * bytes } },
                              .name = "weight" };
    return stored;
}

static bool is_dominated(size_t token)
{
    return token % 3 != 2;
}

/* Two of three tokens have large elements in one block. */
static void make_table(struct rig *r, struct ak_view *view, enum ak_op_linear linear)
{
    uint32_t cols = (uint32_t)view->cols, block = ak_quant_info(view->type)->block_elems;
    rig_begin(r, cols, -1.0f, 1.0f);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < 4 && is_dominated(t); i++)
            r->rows[t * cols + t * 5 % (cols / block) * block + i * 7] *= 150.0f;
    uint32_t out = rig_slot(r, ROWS, AK_OP_ROWS_TOKENS);
    rig_linear(r, view, linear, 0, out);
    rig_end(r, out, ROWS);
}

/* Products of all tokens, pass_tokens of them at once. */
static float *run(struct ak_view *view, enum ak_op_linear linear, const char *cpu,
                  uint32_t pass_tokens)
{
    struct rig r;
    struct rig_pass passes[TOKENS];
    uint32_t n = rig_split(passes, TOKENS, pass_tokens);
    float *out = malloc((size_t)TOKENS * ROWS * sizeof *out);
    ck_assert_ptr_nonnull(out);
    make_table(&r, view, linear);
    rig_run(&r, "cpu", cpu, passes, n, out, NULL);
    rig_free(&r);
    return out;
}

/* Squared error of one token's products. */
static double get_error(struct ak_view *view, const float *x, const float *y)
{
    const struct ak_quant_info *info = ak_quant_info(view->type);
    size_t row_bytes = view->cols / info->block_elems * info->block_bytes;
    float w[COLS_256];
    double error = 0.0;
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0.0;
        info->dequantize(view->plane[0].data + r * row_bytes, w, view->cols);
        for (size_t i = 0; i < view->cols; i++)
            sum += (double)w[i] * (double)x[i];
        error += (sum - (double)y[r]) * (sum - (double)y[r]);
    }
    return error;
}

START_TEST(products)
{
    static const uint32_t pass_tokens[] = { TOKENS, 1, 3, AK_SKINNY_MAX, AK_SKINNY_MAX + 1 };
    enum ak_quant_type type = types[_i];
    uint32_t cols = ak_quant_info(type)->block_elems == 256 ? COLS_256 : COLS_32;
    struct ak_view view;
    struct rig r;
    rig_state = (uint64_t)_i + 1;
    uint8_t *stored = make_matrix(type, cols, &view);
    float *found = run(&view, AK_OP_LINEAR_FFN_DOWN, NULL, TOKENS),
          *without = run(&view, AK_OP_LINEAR_CONV_OUT, NULL, TOKENS);
    double error = 0.0, error_without = 0.0;
    make_table(&r, &view, AK_OP_LINEAR_FFN_DOWN);
    for (size_t t = 0; t < TOKENS; t++) {
        /* the rig's order of tokens */
        const float *x = r.rows + t * 7 % RIG_VOCAB * cols, *y = found + t * ROWS,
                    *other = without + t * ROWS;
        if (!is_dominated(t * 7 % RIG_VOCAB)) {
            ck_assert_mem_eq(y, other, ROWS * sizeof *y);
            continue;
        }
        error += get_error(&view, x, y);
        error_without += get_error(&view, x, other);
    }
    ck_assert_msg(error < 0.01 * error_without, "%s: squared error %g, without %g",
                  ak_quant_info(type)->name, error, error_without);
    rig_free(&r);
    for (enum ak_cpu_isa isa = 0; isa < AK_CPU_ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof pass_tokens / sizeof *pass_tokens; i++) {
            if (!ak_cpu_isa_is_usable(isa))
                continue;
            float *same = run(&view, AK_OP_LINEAR_FFN_DOWN, ak_cpu_isa_name(isa), pass_tokens[i]);
            ck_assert_msg(memcmp(same, found, (size_t)TOKENS * ROWS * sizeof *found) == 0,
                          "%s, %s, %u tokens: other bits", ak_quant_info(type)->name,
                          ak_cpu_isa_name(isa), pass_tokens[i]);
            free(same);
        }
    free(found);
    free(without);
    free(stored);
}
END_TEST

/* ---- Shards of ranks ----------------------------------------------------- */
enum { RANKS_MAX = 12 };

struct rank {
    pthread_t thread;
    struct rig rig;
    struct rig_pass passes[TOKENS];
    uint32_t n_passes;
    float *out;
};

static void *run_rank(void *data)
{
    struct rank *rank = data;
    rig_run(&rank->rig, "cpu", NULL, rank->passes, rank->n_passes, rank->out, NULL);
    ak_comm_close(rank->rig.comm);
    return NULL;
}

/* As make_table, but a token's row has the elements of a rank's shard alone. */
static void make_shard_table(struct rank *r, struct ak_view *view, uint32_t n_ranks, uint32_t rank,
                             struct ak_comm *comm)
{
    uint32_t cols = (uint32_t)view->cols;
    struct ak_op_shard shard = ak_op_shard_of(cols, n_ranks);
    uint32_t begin = ak_op_shard_begin(&shard, n_ranks, rank),
             n = ak_op_shard_begin(&shard, n_ranks, rank + 1) - begin;
    make_table(&r->rig, view, AK_OP_LINEAR_FFN_DOWN);
    for (size_t t = 0; t < TOKENS; t++)
        memmove(r->rig.rows + t * cols, r->rig.rows + t * cols + begin, n * sizeof(float));
    uint32_t whole = rig_slot(&r->rig, cols, AK_OP_ROWS_TOKENS);
    struct ak_command *c = &r->rig.commands[1]; /* before the product */
    memmove(c + 1, c, (r->rig.table.n_commands++ - 1) * sizeof *c);
    *c = (struct ak_command){ .op = AK_OP_ALL_GATHER, .in = 0, .out = whole };
    c->params.all_gather.shard = shard;
    c[1].in = whole;
    r->rig.slots[whole].last_use = 2;
    r->rig.spec.n_ranks = n_ranks;
    r->rig.spec.rank = rank;
    r->rig.comm = comm;
}

static void check_ranks(struct ak_view *view, uint32_t n, uint32_t pass_tokens, const float *want)
{
    static struct rank ranks[RANKS_MAX];
    struct ak_comm *comms[RANKS_MAX];
    struct ak_error error = { 0 };
    size_t bytes = (size_t)TOKENS * ROWS * sizeof *want;
    ck_assert_int_eq(ak_comm_open_local(n, 60.0, comms, &error), AKUNU_OK);
    for (uint32_t i = 0; i < n; i++) {
        make_shard_table(&ranks[i], view, n, i, comms[i]);
        ranks[i].n_passes = rig_split(ranks[i].passes, TOKENS, pass_tokens);
        ranks[i].out = malloc(bytes);
        ck_assert_ptr_nonnull(ranks[i].out);
    }
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(ranks[i].thread, NULL);
        ck_assert_msg(memcmp(ranks[i].out, want, bytes) == 0, "%s, rank %u of %u, %u tokens: %s",
                      ak_quant_info(view->type)->name, i, n, pass_tokens, "other bits");
        free(ranks[i].out);
        rig_free(&ranks[i].rig);
    }
}

START_TEST(shards)
{
    static const uint32_t n_ranks[] = { 2, 5, RANKS_MAX };
    enum ak_quant_type type = types[_i];
    uint32_t cols = ak_quant_info(type)->block_elems == 256 ? COLS_256 : COLS_32;
    struct ak_view view;
    rig_state = (uint64_t)_i + 1;
    uint8_t *stored = make_matrix(type, cols, &view);
    float *want = run(&view, AK_OP_LINEAR_FFN_DOWN, NULL, TOKENS);
    for (size_t i = 0; i < sizeof n_ranks / sizeof *n_ranks; i++) {
        check_ranks(&view, n_ranks[i], TOKENS, want);
        check_ranks(&view, n_ranks[i], AK_SKINNY_MAX, want);
    }
    free(want);
    free(stored);
}
END_TEST

/* Weights of few blocks, floats and experts have none. */
START_TEST(which_weights)
{
    struct ak_pack_weight w = { .linear = AK_OP_LINEAR_FFN_DOWN,
                                .type = AK_QUANT_Q4_0,
                                .cols = 256 };
    struct ak_view view = { .type = AK_QUANT_Q4_0 };
    w.parts[0].view = &view;
    ck_assert(ak_cpu_wants_residual(&w));
    w.cols = 224;
    ck_assert(!ak_cpu_wants_residual(&w));
    w.cols = 256, w.type = AK_QUANT_Q4_K;
    ck_assert(!ak_cpu_wants_residual(&w));
    w.cols = 2048;
    ck_assert(ak_cpu_wants_residual(&w));
    w.n_experts = 4;
    ck_assert(!ak_cpu_wants_residual(&w));
    w.n_experts = 0, w.type = AK_QUANT_F16;
    ck_assert(!ak_cpu_wants_residual(&w));
    w = (struct ak_pack_weight){ .linear = AK_OP_LINEAR_QKV, .type = AK_QUANT_Q4_0, .cols = 480 };
    w.parts[0].view = &view;
    ck_assert(!ak_cpu_wants_residual(&w));
    w.cols = 512;
    ck_assert(ak_cpu_wants_residual(&w));
    w.linear = AK_OP_LINEAR_GATE_UP;
    ck_assert(!ak_cpu_wants_residual(&w));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("residual");
    TCase *tests = tcase_create("residual");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, products, 0, sizeof types / sizeof *types);
    tcase_add_loop_test(tests, shards, 0, sizeof types / sizeof *types);
    tcase_add_test(tests, which_weights);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

/* Where threads wait for each other (engine/cpu/plan_steps.c), and what steps over rows compute. */
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>

#include "engine/cpu/cpu.h"
#include "tests/table_rig.h"

enum { WIDTH = 64 };

/* Hidden states, a norm and the product that ends a table; the logits stand at `offset`. */
static bool waits_after_prepare(uint32_t offset)
{
    struct ak_command commands[] = { { .op = AK_OP_EMBED, .out = 0 },
                                     { .op = AK_OP_NORM, .in = 0, .out = 1 },
                                     { .op = AK_OP_LINEAR, .in = 1, .out = 2 } };
    struct ak_op_slot slots[] = {
        { .width = WIDTH, .offset = 0, .first_use = 0, .last_use = 1 },
        { .width = WIDTH, .offset = WIDTH, .first_use = 1, .last_use = 2 },
        { .width = WIDTH, .offset = offset, .first_use = 2, .last_use = 2 }
    };
    struct ak_table table = { .commands = commands, .n_commands = 3, .slots = slots, .n_slots = 3 };
    struct ak_pack_weight packed = { .n_parts = 1, .cols = WIDTH, .parts[0].rows = WIDTH };
    struct ak_weights weights = { .packed = &packed, .n_packed = 1 };
    struct ak_cpu_step steps[3 * AK_CPU_STEPS_PER_COMMAND];
    struct ak_cpu_prepared p = {
        .table = &table, .weights = &weights, .n_threads = 2, .steps = steps
    };
    ak_cpu_plan_steps(&p);
    ck_assert_uint_eq(p.n_steps, 3);
    ck_assert(p.steps[1].linears == &commands[2] && p.steps[1].barrier_gemm);
    return p.steps[1].barrier_skinny;
}

/* With few tokens a thread prepares what it needs by itself, so it need not wait for the
 * others, unless they would write over what it still reads. */
START_TEST(inputs_are_kept)
{
    ck_assert(!waits_after_prepare(2 * WIDTH));
    ck_assert(waits_after_prepare(0));
    ck_assert(waits_after_prepare(WIDTH - 16));
    ck_assert(!waits_after_prepare(WIDTH));
}
END_TEST

/* Two products of a norm, the second one's input in another order or not. */
static void plan_two(const uint32_t *first, const uint32_t *second, uint32_t n_steps,
                     struct ak_cpu_step *steps)
{
    struct ak_command commands[] = { { .op = AK_OP_EMBED, .out = 0 },
                                     { .op = AK_OP_NORM, .in = 0, .out = 1 },
                                     { .op = AK_OP_LINEAR, .in = 1, .out = 2, .weight = 0 },
                                     { .op = AK_OP_LINEAR, .in = 1, .out = 2, .weight = 1 } };
    struct ak_op_slot slots[] = {
        { .width = WIDTH, .offset = 0, .first_use = 0, .last_use = 1 },
        { .width = WIDTH, .offset = WIDTH, .first_use = 1, .last_use = 3 },
        { .width = 2 * WIDTH, .offset = 2 * WIDTH, .first_use = 2, .last_use = 3 }
    };
    struct ak_table table = { .commands = commands, .n_commands = 4, .slots = slots, .n_slots = 3 };
    struct ak_pack_weight packed[] = {
        { .n_parts = 1, .cols = WIDTH, .parts[0].rows = WIDTH, .order = first },
        { .n_parts = 1, .cols = WIDTH, .parts[0].rows = WIDTH, .order = second }
    };
    struct ak_weights weights = { .packed = packed, .n_packed = 2 };
    struct ak_cpu_prepared p = {
        .table = &table, .weights = &weights, .n_threads = 2, .steps = steps
    };
    ak_cpu_plan_steps(&p);
    ck_assert_uint_eq(p.n_steps, n_steps);
}

/* What takes its input in one order shares it; for another one it is put in order anew, once
 * nobody reads the former, and the norm is made once for both. */
START_TEST(orders_are_apart)
{
    static uint32_t order[WIDTH], same[WIDTH], other[WIDTH];
    struct ak_cpu_step steps[4 * AK_CPU_STEPS_PER_COMMAND];
    for (uint32_t i = 0; i < WIDTH; i++) {
        order[i] = same[i] = WIDTH - 1 - i;
        other[i] = i ^ 1;
    }
    plan_two(order, same, 4, steps);
    ck_assert(steps[1].run == ak_cpu_step_prepare && steps[1].n_linears == 2 &&
              !steps[2].barrier_skinny && !steps[2].barrier_gemm);
    plan_two(NULL, NULL, 4, steps);
    plan_two(order, other, 6, steps);
    ck_assert(steps[1].run == ak_cpu_step_norm && steps[2].run == ak_cpu_step_prepare &&
              steps[4].run == ak_cpu_step_prepare);
    ck_assert(steps[2].n_linears == 1 && steps[4].n_linears == 1 && steps[3].barrier_skinny &&
              steps[3].barrier_gemm);
    /* of many tokens a thread prepares those that it normed */
    ck_assert(steps[1].barrier_skinny && !steps[1].barrier_gemm);
    plan_two(order, NULL, 6, steps);
    plan_two(NULL, order, 6, steps);
}
END_TEST

/* Input sums read the rows that a norm writes, so the norm is a step of its own. All threads have
 * read them before PREPARE may put others in their place. */
START_TEST(inputs_are_summed)
{
    struct ak_command commands[] = { { .op = AK_OP_EMBED, .out = 0 },
                                     { .op = AK_OP_NORM, .in = 0, .out = 1 },
                                     { .op = AK_OP_LINEAR, .in = 1, .out = 2, .weight = 0 },
                                     { .op = AK_OP_LINEAR, .in = 1, .out = 2, .weight = 1 } };
    struct ak_op_slot slots[] = {
        { .width = WIDTH, .offset = 0, .first_use = 0, .last_use = 1 },
        { .width = WIDTH, .offset = WIDTH, .first_use = 1, .last_use = 3 },
        { .width = 2 * WIDTH, .offset = 2 * WIDTH, .first_use = 2, .last_use = 3 }
    };
    struct ak_table table = { .commands = commands, .n_commands = 4, .slots = slots, .n_slots = 3 };
    struct ak_pack_weight packed[] = { { .n_parts = 1, .cols = WIDTH, .parts[0].rows = WIDTH },
                                       { .n_parts = 1, .cols = WIDTH, .parts[0].rows = WIDTH } };
    struct ak_weights weights = { .packed = packed, .n_packed = 2 };
    struct ak_cpu_step steps[4 * AK_CPU_STEPS_PER_COMMAND];
    struct ak_backend_input_sums sums[2] = { { NULL, NULL } };
    struct ak_cpu_prepared p = {
        .table = &table, .weights = &weights, .n_threads = 2, .steps = steps
    };
    ak_cpu_plan_steps(&p);
    ck_assert_uint_eq(p.n_steps, 4);
    ak_cpu_sum_inputs((struct ak_backend_table *)&p, sums);
    ck_assert_uint_eq(p.n_steps, 6);
    ck_assert(steps[1].run == ak_cpu_step_norm && steps[2].run == ak_cpu_step_sum_inputs &&
              steps[3].run == ak_cpu_step_prepare);
    ck_assert(steps[2].n_linears == 2 && steps[3].n_linears == 2);
    for (int i = 1; i < 3; i++)
        ck_assert(steps[i].barrier_skinny && steps[i].barrier_gemm);
    ak_cpu_sum_inputs((struct ak_backend_table *)&p, NULL);
    ck_assert_uint_eq(p.n_steps, 4);
    ck_assert(steps[1].run == ak_cpu_step_prepare);
}
END_TEST

/* Whether a product that is command 1 interleaves the tokens of its input in place. */
static bool consumes_input(uint32_t width, uint32_t last_use, const uint32_t *order)
{
    struct ak_command commands[] = { { .op = AK_OP_EMBED, .out = 0 },
                                     { .op = AK_OP_LINEAR, .in = 0, .out = 1 },
                                     { .op = AK_OP_ADD, .in = 0, .out = 1 } };
    struct ak_op_slot slots[] = { { .width = width, .last_use = last_use },
                                  { .width = WIDTH, .offset = width, .first_use = 1 } };
    struct ak_table table = { .commands = commands, .n_commands = 3, .slots = slots, .n_slots = 2 };
    struct ak_pack_weight packed = {
        .n_parts = 1, .cols = WIDTH, .parts[0].rows = WIDTH, .order = order
    };
    struct ak_weights weights = { .packed = &packed, .n_packed = 1 };
    struct ak_cpu_step steps[3 * AK_CPU_STEPS_PER_COMMAND];
    struct ak_cpu_prepared p = {
        .table = &table, .weights = &weights, .n_threads = 2, .steps = steps
    };
    ak_cpu_plan_steps(&p);
    ck_assert(steps[1].run == ak_cpu_step_prepare && steps[2].run == ak_cpu_step_linear);
    ck_assert(steps[1].consumes_input == steps[2].consumes_input);
    return steps[1].consumes_input;
}

/* Tokens take the place of rows that nobody reads any more, if both are as wide and in the same
 * order. */
START_TEST(inputs_are_consumed)
{
    static const uint32_t order[WIDTH];
    ck_assert(consumes_input(WIDTH, 1, NULL));
    ck_assert(!consumes_input(WIDTH, 2, NULL));
    ck_assert(!consumes_input(WIDTH + 16, 1, NULL));
    ck_assert(!consumes_input(WIDTH, 1, order));
}
END_TEST

/* Of equal logits the first one is sampled, whichever thread has it. */
START_TEST(first_of_equals)
{
    enum { VOCABULARY = 64, N = 3 };
    static const uint32_t best[][2] = { { 0, 63 }, { 3, 40 }, { 33, 34 } };
    static const struct rig_pass pass = { { N, 0 } };
    struct rig r;
    int32_t sampled[N];
    rig_begin(&r, VOCABULARY, 0.0f, 1.0f);
    for (uint32_t i = 0; i < RIG_VOCAB; i++)
        for (int k = 0; k < 2; k++)
            r.rows[i * VOCABULARY + best[_i][k]] = 2.0f;
    uint32_t logits = rig_end(&r, 0, VOCABULARY);
    r.table.sampled = rig_slot(&r, 1, AK_OP_ROWS_LOGITS);
    rig_add(&r, AK_OP_ARGMAX, logits, r.table.sampled)->params.argmax.n = VOCABULARY;
    rig_run(&r, "cpu", NULL, &pass, 1, NULL, sampled);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(sampled[i], (int32_t)best[_i][0]);
    rig_free(&r);
}
END_TEST

/* ---- Activations --------------------------------------------------------- */
static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double gelu_erf(double x)
{
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865476));
}

static double relu(double x)
{
    return fmax(x, 0.0);
}

static const struct {
    enum ak_op_activation activation;
    double (*of)(double x);
} activations[] = { { AK_OP_ACTIVATION_SILU, silu },
                    { AK_OP_ACTIVATION_GELU_TANH, gelu_tanh },
                    { AK_OP_ACTIVATION_GELU_ERF, gelu_erf },
                    { AK_OP_ACTIVATION_RELU, relu } };
enum { N_ACTIVATIONS = sizeof activations / sizeof *activations };

/* In place, into another slot, and of a gate times what stands beside it: a width that is neither
 * a multiple of a vector's nor of the threads', and rows of which the last elements are left. */
START_TEST(activations_of_rows)
{
    enum { ROW = 150, N = 67, TOKENS = 5, IN_PLACE = 0, APART, GATED, N_WAYS };
    static const struct rig_pass pass = { { TOKENS, 0 } };
    for (int way = 0; way < N_WAYS; way++) {
        struct rig r;
        float got[TOKENS * N];
        rig_begin(&r, ROW, -4.0f, 4.0f);
        uint32_t out = way == IN_PLACE ? 0 : rig_slot(&r, N, AK_OP_ROWS_TOKENS);
        if (way == GATED)
            rig_add(&r, AK_OP_GATED, 0, out)->params.gated = (struct ak_op_gated_params){
                .activation = activations[_i].activation, .gate_at = 80, .up_at = 3, .n = N
            };
        else
            rig_add(&r, AK_OP_ACTIVATE, 0, out)->params.activate =
                (struct ak_op_activate_params){ .activation = activations[_i].activation, .n = N };
        rig_end(&r, out, N);
        rig_run(&r, "cpu", NULL, &pass, 1, got, NULL);
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t i = 0; i < N; i++) {
                const float *row = r.rows + t * 7 % RIG_VOCAB * ROW;
                double want = way == GATED ?
                                  activations[_i].of((double)row[80 + i]) * (double)row[3 + i] :
                                  activations[_i].of((double)row[i]);
                ck_assert_msg(fabs((double)got[t * N + i] - want) <= 1e-5,
                              "activation %d, way %d: element %zu of token %zu is %g, should be %g",
                              (int)activations[_i].activation, way, i, t, (double)got[t * N + i],
                              want);
            }
        rig_free(&r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("steps");
    TCase *tests = tcase_create("barriers");
    tcase_add_test(tests, inputs_are_kept);
    tcase_add_test(tests, orders_are_apart);
    tcase_add_test(tests, inputs_are_consumed);
    tcase_add_test(tests, inputs_are_summed);
    suite_add_tcase(suite, tests);
    tests = tcase_create("sampled");
    tcase_add_loop_test(tests, first_of_equals, 0, 3);
    suite_add_tcase(suite, tests);
    tests = tcase_create("activations");
    tcase_add_loop_test(tests, activations_of_rows, 0, N_ACTIVATIONS);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

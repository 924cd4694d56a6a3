/* Where threads wait for each other (cpu/plan_steps.c). */
#include <check.h>
#include <stdlib.h>

#include "cpu/cpu.h"

enum { WIDTH = 64 };

/* Hidden states, a norm and the product that ends a table; the logits stand at `place`. */
static bool waits_after_prepare(uint32_t place)
{
    struct ak_command commands[] = { { .op = AK_OP_EMBED, .out = 0 },
                                     { .op = AK_OP_NORM, .in = 0, .out = 1 },
                                     { .op = AK_OP_LINEAR, .in = 1, .out = 2 } };
    struct ak_slot slots[] = { { .width = WIDTH, .place = 0, .first_use = 0, .last_use = 1 },
                               { .width = WIDTH, .place = WIDTH, .first_use = 1, .last_use = 2 },
                               { .width = WIDTH, .place = place, .first_use = 2, .last_use = 2 } };
    struct ak_table table = { .commands = commands, .n_commands = 3, .slots = slots, .n_slots = 3 };
    struct ak_packed packed = { .n_parts = 1, .cols = WIDTH, .parts[0].rows = WIDTH };
    struct ak_weights weights = { .packed = &packed, .n_packed = 1 };
    struct ak_cpu_step steps[3 * AK_STEPS_PER_COMMAND];
    struct ak_cpu_prepared p = { .table = &table, .weights = &weights, .n_threads = 2, .steps = steps };
    ak_cpu_plan_steps(&p);
    ck_assert_uint_eq(p.n_steps, 3);
    ck_assert(p.steps[1].linears == &commands[2] && p.steps[1].barrier_many);
    return p.steps[1].barrier_few;
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

int main(void)
{
    Suite *suite = suite_create("steps");
    TCase *tests = tcase_create("barriers");
    tcase_add_test(tests, inputs_are_kept);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

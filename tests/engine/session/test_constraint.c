/* Held to a grammar: testing the best tokens one by one comes to the same choice as the mask
 * of all allowed ones. */
#include "tests/golden_model.h"

#include "api/handles.h"
#include "engine/session/constraint.h"
#include "text/grammar/schema/schema.h"

enum { STEPS = 60, SEEDS = 8 };

static const char *const schemas[] = {
    "{\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": 30}, \"maxItems\": 6}",
    "{\"type\": \"string\", \"pattern\": \"^([a-z]+[ ,]?)+$\", \"maxLength\": 90}",
};

static struct akunu_sampling_params sampling_of(int mode)
{
    struct akunu_sampling_params s;
    akunu_sampling_params_default(&s, sizeof s);
    s.temperature = mode == 0 ? 0.0f : 1.5f;
    /* 64 is the most that are tested one by one */
    s.top_k = mode == 2 ? 3 : mode == 5 ? 64 : mode == 6 ? 100 : 40;
    if (mode == 3)
        s.repeat_penalty = 1.3f;
    if (mode == 4)
        s.typical_p = 0.7f;
    return s;
}

static struct ak_sampler *sampler(struct akunu_sampling_params s, uint64_t seed,
                                  struct ak_model *model)
{
    struct ak_error error = { 0 };
    struct ak_sampler *out;
    s.seed = seed;
    ck_assert_msg(ak_sample_create(&s, model->spec.config.vocab_size, model->tokenizer, &out,
                                   &error) == AKUNU_OK,
                  "%s", error.message);
    return out;
}

static struct ak_session_constraint constraint(struct ak_model *model, struct ak_grammar *g)
{
    struct ak_error error = { 0 };
    struct ak_session_constraint out;
    ck_assert_msg(ak_session_constraint_begin(model, g, &out, &error) == AKUNU_OK, "%s",
                  error.message);
    return out;
}

static void make_up(float *logits, uint32_t n, uint32_t *state)
{
    for (uint32_t i = 0; i < n; i++) {
        *state = *state * 1664525u + 1013904223u;
        logits[i] = (float)(*state >> 8) * (8.0f / (1 << 24));
    }
}

/* Two texts from the same logits; *n_tested: steps at which no mask was at hand. */
static void compare(struct ak_model *model, struct ak_grammar *g, int mode, uint64_t seed,
                    uint32_t *n_tested)
{
    struct ak_error error = { 0 };
    struct ak_sampler *tests = sampler(sampling_of(mode), seed, model),
                      *masks = sampler(sampling_of(mode), seed, model);
    struct ak_session_constraint tested = constraint(model, g), masked = constraint(model, g);
    float logits[GOLDEN_VOCAB];
    uint32_t state = (uint32_t)seed;
    ck_assert_uint_le(model->spec.config.vocab_size, GOLDEN_VOCAB);
    for (int step = 0; step < STEPS; step++) {
        const uint32_t *mask;
        int32_t one, other;
        bool pays, allowed;
        make_up(logits, model->spec.config.vocab_size, &state);
        ck_assert_int_eq(ak_session_constraint_sample(&tested, tests, logits, &one, &error),
                         AKUNU_OK);
        ck_assert_int_eq(ak_grammar_matcher_mask_pays(masked.matcher, &pays, &error), AKUNU_OK);
        ck_assert_int_eq(ak_grammar_matcher_get_mask(masked.matcher, &mask, &error), AKUNU_OK);
        ck_assert_int_eq(ak_sample_token_masked(masks, logits, mask, &other, &error), AKUNU_OK);
        ck_assert_msg(one == other, "step %d of seed %d: %d, by its mask %d", step, (int)seed, one,
                      other);
        *n_tested += !pays;
        if (ak_tok_is_end(model->tokenizer, one))
            break;
        ck_assert_int_eq(ak_grammar_matcher_accept_token(tested.matcher, one, &allowed, &error),
                         AKUNU_OK);
        ck_assert(allowed);
        ck_assert_int_eq(ak_grammar_matcher_accept_token(masked.matcher, one, &allowed, &error),
                         AKUNU_OK);
        ak_sample_accept(tests, one);
        ak_sample_accept(masks, one);
    }
    ak_session_constraint_end(&tested);
    ak_session_constraint_end(&masked);
    ak_sample_free(tests);
    ak_sample_free(masks);
}

START_TEST(same_choices)
{
    struct ak_error error = { 0 };
    struct ak_schema_options options = { .form = AK_SCHEMA_WRITING };
    struct akunu_model *model = golden_load("llama-f32", NULL);
    uint32_t n_tested = 0;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        struct ak_grammar *g;
        ck_assert_msg(ak_grammar_from_schema_text(schemas[i], strlen(schemas[i]), &options, &g,
                                                  &error) == AKUNU_OK,
                      "%s", error.message);
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            compare(model->inner, g, _i, seed, &n_tested);
        ak_grammar_free(g);
    }
    ck_assert_uint_gt(n_tested, 100); /* also where a mask is made after all */
    akunu_model_free(model);
}
END_TEST

/* A constraint holds a reference of its model, refused or not. */
START_TEST(refused)
{
    struct ak_error error = { 0 };
    struct ak_session_constraint c;
    struct akunu_model *model = golden_load("llama-f32", NULL);
    struct ak_model none = { 0 };
    struct ak_schema_options options = { .form = AK_SCHEMA_WRITING };
    struct ak_grammar *g;
    ck_assert_int_eq(ak_grammar_from_schema_text("false", 5, &options, &g, &error), AKUNU_OK);
    ck_assert_int_eq(ak_session_constraint_begin(model->inner, g, &c, &error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "the grammar allows no text at all");
    ck_assert_uint_eq(model->inner->refs.n_others, 1);
    ak_session_constraint_end(&c);
    ck_assert_uint_eq(model->inner->refs.n_others, 0);
    ck_assert_ptr_null(c.model);
    ck_assert_int_eq(ak_session_constraint_begin(&none, g, &c, &error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "needs a vocabulary, and the model has none"));
    ck_assert_uint_eq(none.refs.n_others, 1);
    ak_session_constraint_end(&c);
    ck_assert_uint_eq(none.refs.n_others, 0);
    ak_grammar_free(g);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("constraint");
    TCase *tcase = tcase_create("all");
    tcase_add_loop_test(tcase, same_choices, 0, 7);
    tcase_add_test(tcase, refused);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}

/* Rotations that the caller asks for in place of the model's: against transformers
 * (tests/golden/rope.py), against the same values as overridden metadata, and what is refused. */
#include <math.h>

#include "tests/api/failure.h"
#include "tests/golden_model.h"

enum { TOKENS = 200, ROWS = 4 };

static struct akunu_load_params params_of(const struct akunu_rope *rope,
                                          const char *const *override_kv)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 1;
    params.no_cache = true;
    params.override_kv = override_kv;
    if (rope)
        params.rope = *rope;
    return params;
}

static struct akunu_model *load(const char *name, const struct akunu_rope *rope,
                                const char *const *override_kv)
{
    char path[4096];
    struct akunu_load_params params = params_of(rope, override_kv);
    return akunu_model_load(golden_path(name, ".gguf", path), &params);
}

/* Logits of the last ROWS of TOKENS tokens of a model's text, over and over, and zeros behind them,
 * ROWS · GOLDEN_VOCAB numbers in all; frees the model. */
static float *run(struct akunu_model *model, const char *name)
{
    struct akunu_model_info info;
    struct golden_text text;
    struct akunu_batch_token tokens[TOKENS];
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    float *out = calloc((size_t)ROWS * GOLDEN_VOCAB, sizeof *out);
    ck_assert_ptr_nonnull(out);
    golden_read_text(name, &text);
    struct akunu_session *session = golden_session(model, 2, TOKENS, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] =
            (struct akunu_batch_token){ text.ids[i % text.n_prompt], sequence, i >= TOKENS - ROWS };
    ck_assert_msg(akunu_session_decode(session, tokens, TOKENS) == AKUNU_OK, "%s",
                  akunu_last_error());
    for (size_t i = 0; i < ROWS; i++)
        memcpy(out + i * info.vocab_size, akunu_session_logits(session, TOKENS - ROWS + i),
               info.vocab_size * sizeof *out);
    akunu_session_free(session);
    akunu_model_free(model);
    return out;
}

/* In rope.py's order. */
#define LLAMA "llama.rope.scaling."
static const struct {
    struct akunu_rope rope;
    const char *override_kv[6];
} cases[] = {
    { { .freq_scale = 0.25f }, { NULL } },
    { { .scaling = AKUNU_ROPE_SCALING_YARN, .freq_scale = 0.25f, .yarn_orig_ctx = 64 }, { NULL } },
    { { .scaling = AKUNU_ROPE_SCALING_YARN,
        .freq_scale = 0.125f,
        .freq_base = 10000.0f,
        .yarn_orig_ctx = 200,
        .yarn_attn_factor = 1.25f,
        .yarn_beta_fast = 4.0f,
        .yarn_beta_slow = 0.5f },
      { NULL } },
    { { .freq_scale = 0.25f, .yarn_orig_ctx = 64, .yarn_ext_factor = 0.5f }, { NULL } },
    { { .scaling = AKUNU_ROPE_SCALING_LINEAR, .freq_scale = 0.5f },
      { LLAMA "type=str:llama3", LLAMA "factor=float:8", LLAMA "low_freq_factor=float:1",
        LLAMA "high_freq_factor=float:4", LLAMA "original_context_length=int:128", NULL } },
};
enum { N_CASES = sizeof cases / sizeof *cases, VOCAB = 416 };

START_TEST(as_transformers)
{
    float *want = golden_read_logits("rope", (size_t)N_CASES * ROWS * VOCAB),
          *got = run(load("llama-f32", &cases[_i].rope, cases[_i].override_kv), "llama-f32"),
          *own = run(load("llama-f32", NULL, cases[_i].override_kv), "llama-f32");
    const float *of_case = want + (size_t)_i * ROWS * VOCAB;
    double error = golden_nmse(got, of_case, ROWS * VOCAB),
           unscaled = golden_nmse(own, of_case, ROWS * VOCAB);
    ck_assert_msg(error <= 1e-10, "case %d: NMSE %.2e", _i, error);
    ck_assert_msg(unscaled > 1e-3, "case %d: the model's own rotation has NMSE %.2e", _i, unscaled);
    free(want);
    free(got);
    free(own);
}
END_TEST

/* The same bits as the file's values that say the same. */
static const struct {
    const char *asked_of[6]; /* the file's, which `rope` replaces */
    struct akunu_rope rope;
    const char *same[6];
} equals[] = {
    { { NULL },
      { .freq_scale = 0.25f },
      { LLAMA "type=str:linear", LLAMA "factor=float:4", NULL } },
    { { LLAMA "type=str:linear", LLAMA "factor=float:4", NULL },
      { .freq_scale = 0.5f },
      { LLAMA "type=str:linear", LLAMA "factor=float:2", NULL } },
    { { LLAMA "type=str:linear", LLAMA "factor=float:4", NULL },
      { .scaling = AKUNU_ROPE_SCALING_NONE, .freq_scale = 0.5f },
      { NULL } },
    /* the factor stays if another type alone is asked for */
    { { LLAMA "type=str:linear", LLAMA "factor=float:4", NULL },
      { .scaling = AKUNU_ROPE_SCALING_YARN },
      { LLAMA "type=str:yarn", LLAMA "factor=float:4", LLAMA "original_context_length=int:256",
        NULL } },
    { { LLAMA "type=str:yarn", LLAMA "factor=float:4", LLAMA "original_context_length=int:64",
        NULL },
      { .scaling = AKUNU_ROPE_SCALING_LINEAR },
      { LLAMA "type=str:linear", LLAMA "factor=float:4", NULL } },
    { { LLAMA "type=str:yarn", LLAMA "factor=float:4", LLAMA "original_context_length=int:64",
        NULL },
      { .yarn_orig_ctx = 32, .yarn_beta_fast = 16, .yarn_beta_slow = 2 },
      { LLAMA "type=str:yarn", LLAMA "factor=float:4", LLAMA "original_context_length=int:32",
        LLAMA "yarn_beta_fast=float:16", LLAMA "yarn_beta_slow=float:2", NULL } },
    /* nothing extrapolated: linear */
    { { NULL },
      { .scaling = AKUNU_ROPE_SCALING_YARN, .freq_scale = 0.25f, .yarn_ext_factor = -1 },
      { LLAMA "type=str:linear", LLAMA "factor=float:4", NULL } },
    { { NULL }, { .freq_base = 1000.0f }, { "llama.rope.freq_base=float:1000", NULL } },
    { { NULL }, { .freq_base = 0 }, { NULL } },
};
enum { N_EQUALS = sizeof equals / sizeof *equals };

START_TEST(as_metadata)
{
    float *got = run(load("llama-f32", &equals[_i].rope, equals[_i].asked_of), "llama-f32"),
          *want = run(load("llama-f32", NULL, equals[_i].same), "llama-f32");
    ck_assert_msg(golden_is_same(got, want, ROWS * VOCAB), "case %d: NMSE %.2e", _i,
                  golden_nmse(got, want, ROWS * VOCAB));
    free(got);
    free(want);
}
END_TEST

/* A table for local attention keeps its base and is never scaled: the first layers of Gemma 3. */
START_TEST(local_tables_stay)
{
    static const struct akunu_rope scaled = { .freq_scale = 0.25f }, based = { .freq_base = 5e5f };
    static const char *const by_factor[] = { "gemma3.rope.scaling.type=str:linear",
                                             "gemma3.rope.scaling.factor=float:4", NULL },
                             *const by_base[] = { "gemma3.rope.freq_base=float:5e5", NULL };
    for (int i = 0; i < 2; i++) {
        float *got = run(load("gemma3", i ? &based : &scaled, NULL), "gemma3"),
              *want = run(load("gemma3", NULL, i ? by_base : by_factor), "gemma3");
        ck_assert(golden_is_same(got, want, ROWS * GOLDEN_VOCAB));
        free(got);
        free(want);
    }
}
END_TEST

START_TEST(refused)
{
    static const struct {
        struct akunu_rope rope;
        const char *said;
    } wrong[] = {
        { { .freq_base = -1 }, "rope freq_base is -1; expected a positive number" },
        { { .freq_scale = -2 }, "rope freq_scale is -2" },
        { { .freq_scale = 1e-42f }, "too small" },
        { { .scaling = (enum akunu_rope_scaling)4 }, "rope scaling is 4; expected 0 to 3" },
        { { .yarn_ext_factor = 2 }, "yarn_ext_factor is 2; expected at most 1" },
        { {
              .yarn_attn_factor = NAN,
          },
          "yarn_attn_factor is nan" },
        { {
              .yarn_beta_fast = -3,
          },
          "yarn_beta_fast is -3" },
        { { .yarn_beta_slow = INFINITY }, "yarn_beta_slow is inf" },
        { { .scaling = AKUNU_ROPE_SCALING_YARN, .freq_scale = 0.5f, .freq_base = 1 },
          "expected more than 1 for YaRN" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        forget();
        ck_assert_ptr_null(load("llama-f32", &wrong[i].rope, NULL));
        failed_with(AKUNU_ERROR_ARGUMENT, wrong[i].said);
    }
    static const struct akunu_rope scaled = { .freq_scale = 0.5f };
    forget();
    ck_assert_ptr_null(load("gpt2", &scaled, NULL));
    failed_with(AKUNU_ERROR_UNSUPPORTED, "the architecture \"gpt2\" has no rotary positions");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rope");
    TCase *tests = tcase_create("rope");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, as_transformers, 0, N_CASES);
    tcase_add_loop_test(tests, as_metadata, 0, N_EQUALS);
    tcase_add_test(tests, local_tables_stay);
    tcase_add_test(tests, refused);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

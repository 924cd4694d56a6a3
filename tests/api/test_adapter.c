/* LoRA adapters: against merged weights (tests/golden/adapters.py), and the same bits whatever the
 * threads, passes and instruction sets. */
#include <math.h>

#include "tests/golden_model.h"

enum { ROWS = 8, VOCAB = 416 };

static const char *adapter_path(const char *name, char path[4096])
{
    return golden_path("../adapters/", name, path);
}

static struct akunu_model *load_path(const char *path, const char *cpu,
                                     const struct akunu_adapter *adapters, size_t n)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 2;
    params.no_cache = true;
    params.cpu = cpu;
    params.adapters = adapters;
    params.n_adapters = n;
    return akunu_model_load(path, &params);
}

static struct akunu_model *load(const char *name, const char *cpu,
                                const struct akunu_adapter *adapters, size_t n)
{
    char path[4096];
    struct akunu_model *model = load_path(golden_path(name, ".gguf", path), cpu, adapters, n);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

/* llama-f32 with llama.gguf and llama-peft at these scales; a scale that is not a number: without
 * it. */
static struct akunu_model *load_scaled(float gguf, float peft, const char *cpu)
{
    char paths[2][4096];
    const struct akunu_adapter all[2] = { { adapter_path("llama.gguf", paths[0]), gguf },
                                          { adapter_path("llama-peft", paths[1]), peft } };
    struct akunu_adapter used[2];
    size_t n = 0;
    for (int i = 0; i < 2; i++)
        if (!isnan(all[i].scale))
            used[n++] = all[i];
    return load("llama-f32", cpu, used, n);
}

/* Logits of all tokens of a model's prompt, [n, VOCAB], run in passes of `batch`. */
static float *run(const struct akunu_model *model, const char *name, unsigned n_threads,
                  uint32_t batch, size_t *n)
{
    struct akunu_model_info info;
    struct golden_text text;
    struct akunu_batch_token tokens[GOLDEN_CONTEXT];
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    golden_read_text(name, &text);
    *n = text.n_prompt;
    float *out = malloc(*n * info.vocab_size * sizeof *out);
    ck_assert_ptr_nonnull(out);
    struct akunu_session *session = golden_session(model, n_threads, batch, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    for (size_t first = 0, count; first < *n; first += count) {
        count = *n - first < batch ? *n - first : batch;
        for (size_t i = 0; i < count; i++)
            tokens[i] = (struct akunu_batch_token){ text.ids[first + i], sequence, true };
        ck_assert_msg(akunu_session_decode(session, tokens, count) == AKUNU_OK, "%s",
                      akunu_last_error());
        for (size_t i = 0; i < count; i++)
            memcpy(out + (first + i) * info.vocab_size, akunu_session_logits(session, i),
                   info.vocab_size * sizeof *out);
    }
    akunu_session_free(session);
    return out;
}

/* ---- What they add ------------------------------------------------------ */
/* In adapters.py's order. */
static const struct {
    float gguf, peft;
} cases[] = { { 1, NAN }, { NAN, 1 }, { 0.5f, -1.5f } };
enum { N_CASES = sizeof cases / sizeof *cases };

START_TEST(as_merged)
{
    float *want = golden_read_logits("../adapters/logits", (size_t)N_CASES * ROWS * VOCAB);
    struct akunu_model *model = load_scaled(cases[_i].gguf, cases[_i].peft, NULL),
                       *base = load_scaled(NAN, NAN, NULL);
    size_t n;
    float *got = run(model, "llama-f32", 2, 512, &n), *own = run(base, "llama-f32", 2, 512, &n);
    const float *of_case = want + (size_t)_i * ROWS * VOCAB;
    double error = golden_nmse(got + (n - ROWS) * VOCAB, of_case, ROWS * VOCAB),
           without = golden_nmse(own + (n - ROWS) * VOCAB, of_case, ROWS * VOCAB);
    ck_assert_msg(error <= golden_bound(1e-11, 1e-8), "case %d: NMSE %.2e", _i, error);
    ck_assert_msg(without > 1e-2, "case %d: the model alone has NMSE %.2e", _i, without);
    free(want);
    free(got);
    free(own);
    akunu_model_free(model);
    akunu_model_free(base);
}
END_TEST

/* An adapter of scale 0 changes neither a bit nor the table; the same one at 1 and −1 has no
 * effect in the end. */
START_TEST(scale_of_zero)
{
    char paths[2][4096];
    const struct akunu_adapter opposite[2] = { { adapter_path("llama.gguf", paths[0]), 1 },
                                               { adapter_path("llama.gguf", paths[1]), -1 } };
    struct akunu_model *base = load_scaled(NAN, NAN, NULL), *zero = load_scaled(0, 0, NULL),
                       *sum = load("llama-f32", NULL, opposite, 2);
    struct akunu_model_info info, adapted;
    struct akunu_memory memory, more;
    size_t n;
    float *want = run(base, "llama-f32", 2, 512, &n), *got = run(zero, "llama-f32", 2, 512, &n),
          *near = run(sum, "llama-f32", 2, 512, &n);
    ck_assert(memcmp(got, want, n * VOCAB * sizeof *got) == 0);
    ck_assert_str_eq(akunu_model_dump(base, false), akunu_model_dump(zero, false));
    ck_assert_ptr_null(strstr(akunu_model_dump(base, false), "weight=adapter"));
    ck_assert_ptr_nonnull(strstr(akunu_model_dump(sum, true), "weight=adapter"));
    ck_assert(golden_nmse(near, want, n * VOCAB) <= 1e-10);
    /* what the model is does not change; its memory does */
    akunu_model_get_info(base, &info, sizeof info);
    akunu_model_get_info(sum, &adapted, sizeof adapted);
    ck_assert(info.n_parameters == adapted.n_parameters &&
              strcmp(info.weight_type, adapted.weight_type) == 0 &&
              info.token_weight_bytes < adapted.token_weight_bytes);
    akunu_model_get_memory(base, NULL, &memory, sizeof memory);
    akunu_model_get_memory(sum, NULL, &more, sizeof more);
    ck_assert(memory.packed < more.packed && memory.mapped == more.mapped);
    free(want);
    free(got);
    free(near);
    akunu_model_free(base);
    akunu_model_free(zero);
    akunu_model_free(sum);
}
END_TEST

/* The same bits whatever the instruction set, the threads and the passes. */
START_TEST(same_bits)
{
    static const uint32_t batches[] = { 512, 7, 1 };
    float *first = NULL;
    for (size_t isa = 0; akunu_cpu_name(isa); isa++) {
        struct akunu_model *model = load_scaled(0.75f, 1.25f, akunu_cpu_name(isa));
        for (unsigned threads = 1; threads <= 3; threads++)
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
                size_t n;
                float *got = run(model, "llama-f32", threads, batches[b], &n);
                if (!first)
                    first = got;
                ck_assert_msg(memcmp(got, first, n * VOCAB * sizeof *got) == 0,
                              "other bits with cpu %s, %u threads, batch %u", akunu_cpu_name(isa),
                              threads, (unsigned)batches[b]);
                if (got != first)
                    free(got);
            }
        akunu_model_free(model);
    }
    free(first);
}
END_TEST

/* Appends a token to an array that ends with −1. */
static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    akunu_token *tokens = user;
    (void)index, (void)text, (void)n_bytes;
    while (*tokens >= 0)
        tokens++;
    *tokens = token;
    return true;
}

/* Tokens that the backend samples from the adapted output. */
START_TEST(greedy_text)
{
    enum { N = 5 };
    struct golden_text text;
    struct akunu_sampling_params sampling;
    struct akunu_generation_params generation;
    akunu_token tokens[N + 2] = { -1, -1, -1, -1, -1, -1, -1 };
    golden_read_text("llama-f32", &text);
    struct akunu_model *model = load_scaled(1, 1, NULL);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    akunu_generation_params_default(&generation, sizeof generation);
    sampling.temperature = 0;
    sampling.ignore_end = true;
    generation.sampling = &sampling;
    generation.max_tokens = N;
    struct akunu_session *session = golden_session(model, 2, 512, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session), other = akunu_sequence_new(session);
    generation.on_piece = on_piece;
    generation.user = tokens;
    ck_assert_msg(akunu_session_generate(session, sequence,
                                         &(struct akunu_ids){ text.ids, text.n_prompt },
                                         &generation, NULL) == AKUNU_OK,
                  "%s", akunu_last_error());
    size_t last;
    ck_assert_int_eq(akunu_session_prefill(session, other,
                                           &(struct akunu_ids){ text.ids, text.n_prompt }, NULL,
                                           NULL, &last),
                     AKUNU_OK);
    for (int i = 0; i < N; i++) {
        const float *logits = akunu_session_logits(session, last);
        akunu_token best = 0;
        for (akunu_token j = 1; j < VOCAB; j++)
            best = logits[j] > logits[best] ? j : best;
        ck_assert_int_eq(tokens[i], best);
        struct akunu_batch_token next = { best, other, true };
        ck_assert_int_eq(akunu_session_decode(session, &next, 1), AKUNU_OK);
        last = 0;
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adapter");
    TCase *any = tcase_create("any"), *tests = tcase_create("adapter");
    tcase_set_timeout(any, 300);
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(any, as_merged, 0, N_CASES);
    tcase_add_test(tests, scale_of_zero);
    tcase_add_test(tests, same_bits);
    tcase_add_test(tests, greedy_text);
    suite_add_tcase(suite, any);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

/* akunu_sampler_clone and akunu_sampler_reset, for every kind of state that a sampler has, and the
 * callback that changes logits (akunu_generation_params.on_logits). */
#include "tests/api/failure.h"
#include "tests/api/session.h"
#include "tests/gguf_files.h"

#include <math.h>

enum { VOCAB = 416, STEPS = 24, CLONED_AT = 9, TOKENS_MAX = 32 };

static struct akunu_model *load(void)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 1;
    params.no_cache = true;
    struct akunu_model *model = akunu_model_load(test_path("model.gguf"), &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

/* ---- Clone and reset ---------------------------------------------------- */
/* The logits of a step; the same few tokens are likely in each, so that penalties count. */
static const float *logits_at(unsigned step)
{
    static float logits[VOCAB];
    uint32_t x = 12345 + step;
    for (int i = 0; i < VOCAB; i++) {
        x = x * 1664525u + 1013904223u;
        logits[i] = (float)(x >> 16) / 16384.0f + (i % 29 == 0 ? 3.0f : 0.0f);
    }
    return logits;
}

static void run(struct akunu_sampler *s, unsigned first, unsigned end, akunu_token *tokens)
{
    for (unsigned i = first; i < end; i++) {
        tokens[i] = akunu_sampler_sample(s, logits_at(i));
        ck_assert_msg(tokens[i] >= 0, "%s", akunu_last_error());
        akunu_sampler_accept(s, tokens[i]);
    }
}

enum { PLAIN, PENALTIES, MIROSTAT, ADAPTIVE, GRAMMAR, N_KINDS };

static struct akunu_sampling_params kind_of_sampling(int kind)
{
    static const char gbnf[] = "root ::= ([a-m] [n-z] \" \")+";
    struct akunu_sampling_params p;
    akunu_sampling_params_default(&p, sizeof p);
    p.seed = 7;
    p.ignore_end = true;
    if (kind == PENALTIES) {
        p.repeat_penalty = 1.5f;
        p.frequency_penalty = 0.5f;
        p.repeat_last_n = 6;
        p.dry_multiplier = 1.0f;
        p.dry_allowed_length = 1;
        p.xtc_probability = 0.5f;
    } else if (kind == MIROSTAT) {
        p.mirostat = 2;
    } else if (kind == ADAPTIVE) {
        p.samplers = "top_k;adaptive_p";
        p.adaptive_target = 0.3f;
    } else if (kind == GRAMMAR) {
        p.grammar = akunu_grammar_parse(gbnf, sizeof gbnf - 1);
        ck_assert_msg(p.grammar != NULL, "%s", akunu_last_error());
    }
    return p;
}

START_TEST(clones)
{
    akunu_token tokens[STEPS], copied[STEPS], again[STEPS];
    struct akunu_model *model = load();
    struct akunu_sampling_params p = kind_of_sampling(_i);
    struct akunu_sampler *s = akunu_sampler_new(model, &p);
    ck_assert_msg(s != NULL, "%s", akunu_last_error());
    run(s, 0, CLONED_AT, tokens);
    struct akunu_sampler *copy = akunu_sampler_clone(s);
    ck_assert_msg(copy != NULL, "%s", akunu_last_error());
    ck_assert_uint_eq(akunu_sampler_seed(copy), 7);

    /* neither changes the other, nor needs it */
    memcpy(copied, tokens, sizeof copied);
    run(copy, CLONED_AT, STEPS, copied);
    run(s, CLONED_AT, STEPS, tokens);
    ck_assert_mem_eq(copied, tokens, sizeof tokens);
    akunu_sampler_free(s);
    akunu_model_free(model);
    akunu_grammar_free((struct akunu_grammar *)(uintptr_t)p.grammar);

    /* from the beginning, also of a clone that is reset */
    ck_assert_int_eq(akunu_sampler_reset(copy), AKUNU_OK);
    struct akunu_sampler *second = akunu_sampler_clone(copy);
    run(copy, 0, STEPS, again);
    ck_assert_mem_eq(again, tokens, sizeof tokens);
    run(second, 0, STEPS, again);
    ck_assert_mem_eq(again, tokens, sizeof tokens);
    akunu_sampler_free(second);
    akunu_sampler_free(copy);
}
END_TEST

START_TEST(no_sampler)
{
    ck_assert_ptr_null(akunu_sampler_clone(NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "the sampler is NULL");
    forget();
    ck_assert_int_eq(akunu_sampler_reset(NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the sampler is NULL");
}
END_TEST

/* ---- Logits callback ---------------------------------------------------- */
struct host {
    struct akunu_session *session;
    const akunu_token *forced; /* NULL: no token */
    akunu_token tokens[2][TOKENS_MAX];
    size_t n_calls[2], n_tokens[2];
    float logprob;
};

static void on_logits(size_t index, float *logits, size_t n_vocab, void *user)
{
    struct host *h = user;
    ck_assert(n_vocab == VOCAB && index < 2 && h->n_calls[index] == h->n_tokens[index]);
    ck_assert_int_eq(akunu_sequence_new(h->session), -1); /* busy */
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_BUSY);
    size_t i = h->n_calls[index]++;
    for (size_t t = 0; h->forced && t < n_vocab; t++)
        if ((akunu_token)t != h->forced[i] + (akunu_token)index)
            logits[t] = -INFINITY;
}

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct host *h = user;
    (void)text, (void)n_bytes;
    if (token >= 0)
        h->tokens[index][h->n_tokens[index]++] = token;
    return true;
}

static void on_logprobs(size_t index, akunu_token token, float logprob,
                        const struct akunu_logprob *top, size_t n_top, void *user)
{
    (void)index, (void)token, (void)top, (void)n_top;
    ((struct host *)user)->logprob = logprob;
}

static void generate(struct host *h, const struct akunu_generation_params *g)
{
    static const akunu_token ids[] = { 5, 6, 7, 5, 6, 7, 5, 6 };
    struct akunu_generation_params own = *g;
    akunu_sequence sequence = akunu_sequence_new(h->session);
    own.on_piece = on_piece;
    own.user = h;
    ck_assert_msg(akunu_session_generate(h->session, sequence, &(struct akunu_ids){ ids, 8 }, &own,
                                         NULL) == AKUNU_OK,
                  "%s", akunu_last_error());
    akunu_sequence_free(h->session, sequence);
}

/* A callback that changes nothing leaves the text as it is: greedy, by Gumbel scores, and by the
 * whole chain. */
START_TEST(unchanged_logits)
{
    struct akunu_generation_params g;
    struct akunu_sampling_params p;
    struct akunu_model *model = load();
    akunu_generation_params_default(&g, sizeof g);
    ck_assert_ptr_null(g.on_logits);
    akunu_sampling_params_default(&p, sizeof p);
    p.ignore_end = _i > 1;
    p.seed = 3;
    p.temperature = _i % 2 ? 0.9f : 0.0f;
    p.samplers = _i == 1 ? "temperature" : NULL;
    g.sampling = &p;
    g.max_tokens = 20;
    struct host without = { .session = open_session(model) }, with = without;
    generate(&without, &g);
    g.on_logits = on_logits;
    generate(&with, &g);
    ck_assert_uint_gt(with.n_tokens[0], 0);
    ck_assert_uint_eq(with.n_tokens[0], without.n_tokens[0]);
    ck_assert_mem_eq(with.tokens, without.tokens, sizeof with.tokens);
    ck_assert_uint_ge(with.n_calls[0], with.n_tokens[0]);
    ck_assert_uint_le(with.n_calls[0], with.n_tokens[0] + 1); /* a token that ends the text */
    akunu_session_free(with.session);
    akunu_model_free(model);
}
END_TEST

/* By the whole chain, and by Gumbel scores. */
START_TEST(changed_logits)
{
    static const akunu_token forced[] = { 7, 9, 7, 9, 11, 7, 9, 300 };
    static const char gbnf[] = "root ::= [a-z]+";
    struct akunu_generation_params g;
    struct akunu_sampling_params p;
    struct akunu_model *model = load();
    akunu_generation_params_default(&g, sizeof g);
    akunu_sampling_params_default(&p, sizeof p);
    p.samplers = _i == 1 ? "temperature" : NULL;
    g.sampling = &p;
    g.max_tokens = 8;
    g.on_logits = on_logits;
    g.on_logprobs = on_logprobs;
    struct host h = { .session = open_session(model), .forced = forced };
    generate(&h, &g);
    ck_assert_uint_eq(h.n_tokens[0], 8);
    ck_assert_mem_eq(h.tokens[0], forced, sizeof forced);
    ck_assert(h.logprob < -1.0f && isfinite(h.logprob)); /* of the model's logits */

    /* each completion has its own */
    struct host parallel = { .session = h.session, .forced = forced };
    akunu_sequence sequences[2] = { akunu_sequence_new(h.session), -1 };
    const akunu_token id = 5;
    g.on_piece = on_piece;
    g.user = &parallel;
    ck_assert_msg(akunu_session_generate_parallel(
                      h.session, sequences, 2, &(struct akunu_ids){ &id, 1 }, &g, NULL) == AKUNU_OK,
                  "%s", akunu_last_error());
    for (int i = 0; i < 8; i++)
        ck_assert(parallel.tokens[0][i] == forced[i] && parallel.tokens[1][i] == forced[i] + 1);
    akunu_sequence_free(h.session, sequences[0]);
    akunu_sequence_free(h.session, sequences[1]);

    /* what the grammar forbids stays forbidden: token 7, "(", is all that is left */
    struct host none = { .session = h.session, .forced = forced };
    p.grammar = akunu_grammar_parse(gbnf, sizeof gbnf - 1);
    sequences[0] = akunu_sequence_new(h.session);
    g.on_piece = on_piece;
    g.user = &none;
    ck_assert_int_eq(
        akunu_session_generate(h.session, sequences[0], &(struct akunu_ids){ &id, 1 }, &g, NULL),
        AKUNU_ERROR_NUMERIC);
    akunu_grammar_free((struct akunu_grammar *)(uintptr_t)p.grammar);
    akunu_session_free(h.session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampler");
    TCase *t = tcase_create("sampler"), *callback = tcase_create("callback");
    suite_add_tcase(suite, t);
    suite_add_tcase(suite, callback);
    tcase_add_loop_test(t, clones, 0, N_KINDS);
    tcase_add_test(t, no_sampler);
    tcase_add_loop_test(callback, unchanged_logits, 0, 4);
    tcase_add_loop_test(callback, changed_logits, 0, 2);
    return test_run(suite);
}

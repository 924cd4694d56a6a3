/* The fast parts of the sampler against plain definitions of them, on random input: the best
 * candidates, counted penalties, DRY's repetitions, sequence breakers of a vocabulary. */
#include "tests/test.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "engine/sample/sampler_state.h"

enum { N_MAX = 150 };

static uint32_t below(struct ak_random *r, uint32_t n)
{
    return (uint32_t)(ak_random_bits(r) % n);
}

/* ---- Candidates --------------------------------------------------------- */
static float random_logit(struct ak_random *r)
{
    static const float strange[] = { NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, -0.0f };
    uint32_t kind = below(r, 12);
    return kind < 6 ? strange[kind] : (float)below(r, 40) - 20.0f;
}

/* By selection: the largest first, of equal ones the lower id. Infinity counts as the largest
 * float; NaN, minus infinity and what is not allowed do not count. */
static uint32_t select_best(const float *logits, const uint32_t *allowed, uint32_t n, uint32_t k,
                            struct ak_sample_candidate *out)
{
    bool taken[N_MAX] = { false };
    uint32_t found = 0;
    for (; found < k; found++) {
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++) {
            bool usable = logits[i] > -INFINITY && !taken[i] &&
                          (!allowed || (allowed[i / 32] >> (i % 32) & 1));
            if (usable && (best == n || fminf(logits[i], FLT_MAX) > fminf(logits[best], FLT_MAX)))
                best = i;
        }
        if (best == n)
            break;
        taken[best] = true;
        out[found] = (struct ak_sample_candidate){ .logit = fminf(logits[best], FLT_MAX),
                                                   .token = (int32_t)best };
    }
    return found;
}

static void check_candidates(const struct ak_sample_candidates *c,
                             const struct ak_sample_candidate *expected, uint32_t n, int round)
{
    ck_assert_msg(c->n == n, "round %d: %u candidates, expected %u", round, c->n, n);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(c->items[i].token == expected[i].token &&
                          c->items[i].logit == expected[i].logit,
                      "round %d: place %u has token %d, expected %d", round, i,
                      (int)c->items[i].token, (int)expected[i].token);
}

START_TEST(best_candidates)
{
    struct ak_random random, *r = &random;
    ak_random_seed(r, 3);
    for (int round = 0; round < 6000; round++) {
        float logits[N_MAX], weights[N_MAX];
        struct ak_sample_candidate items[N_MAX], expected[N_MAX] = { 0 };
        struct ak_sample_candidates c = { .items = items, .weights = weights };
        uint32_t n = 1 + below(r, N_MAX), k = below(r, 3) ? 1 + below(r, 9) : below(r, n + 2);
        uint32_t allowed[N_MAX / 32 + 1];
        bool masked = below(r, 2) == 0, dense = below(r, 2) == 0;
        for (uint32_t i = 0; i < N_MAX / 32 + 1; i++)
            allowed[i] = (uint32_t)(dense ? ak_random_bits(r) | ak_random_bits(r) :
                                            ak_random_bits(r) & ak_random_bits(r));
        for (uint32_t i = 0; i < n; i++)
            logits[i] = below(r, 2) ? random_logit(r) : -30.0f;
        const uint32_t *mask = masked ? allowed : NULL;
        bool limited = k > 0 && k < n;
        ak_sample_collect_masked(&c, logits, mask, n, k);
        if (!limited && c.n > 0) { /* all of them, in any order */
            float best = ak_sample_best_logit(&c);
            ck_assert_uint_eq(select_best(logits, mask, n, 1, expected), 1);
            ck_assert(best == expected[0].logit);
            if (below(r, 2))
                ak_sample_top_k(&c, k = 1 + below(r, n));
            else
                ak_sample_sort(&c);
        }
        uint32_t n_best = select_best(logits, mask, n, k > 0 ? k : n, expected);
        if (!limited && k == 0)
            n_best = select_best(logits, mask, n, n, expected);
        if (c.sorted || limited)
            check_candidates(&c, expected, n_best, round);
        ck_assert(c.n == 0 || ak_sample_best_logit(&c) == expected[0].logit);
    }
}
END_TEST

/* Popped one by one, the best come first. */
START_TEST(popped_candidates)
{
    struct ak_random random, *r = &random;
    ak_random_seed(r, 4);
    for (int round = 0; round < 300; round++) {
        float logits[N_MAX], weights[N_MAX];
        struct ak_sample_candidate items[N_MAX], expected[N_MAX] = { 0 };
        struct ak_sample_candidates c = { .items = items, .weights = weights };
        uint32_t n = 1 + below(r, 40), kept = 1 + below(r, n);
        for (uint32_t i = 0; i < n; i++)
            logits[i] = (float)below(r, 20);
        ak_sample_collect(&c, logits, n, 0);
        select_best(logits, NULL, n, n, expected);
        ak_sample_make_heap(&c);
        for (uint32_t i = 0; i < kept; i++)
            ck_assert_int_eq(ak_sample_pop(&c, i).token, expected[i].token);
        ak_sample_keep_popped(&c, kept);
        ck_assert(c.sorted);
        check_candidates(&c, expected, kept, round);
    }
}
END_TEST

/* ---- Tokens of the context ---------------------------------------------- */
enum { VOCAB = 6, ACCEPTED = 60 };

static struct akunu_sampling_params off(void)
{
    struct akunu_sampling_params p;
    akunu_sampling_params_default(&p, sizeof p);
    p.temperature = 0.0f;
    p.repeat_penalty = 1.0f;
    p.seed = 1;
    return p;
}

static struct ak_sampler *new_sampler(const struct akunu_sampling_params *params)
{
    struct ak_error error = { 0 };
    struct ak_sampler *s;
    ck_assert_msg(ak_sample_create(params, VOCAB, NULL, &s, &error) == AKUNU_OK, "%s",
                  error.message);
    return s;
}

/* The logits after the penalties are those of a count over the window. */
START_TEST(counted_penalties)
{
    static const struct {
        float repeat, presence, frequency;
        int32_t window;
    } cases[] = { { 1.5f, 0.25f, 0.5f, 1 },  { 1.5f, 0.25f, 0.5f, 2 },  { 2.0f, 0.0f, 0.0f, 7 },
                  { 0.5f, -0.5f, 0.0f, 16 }, { 1.0f, 0.0f, 0.75f, -1 }, { 1.0f, 0.5f, 0.0f, 59 } };
    static const float logits[VOCAB] = { 1.5f, -2.0f, 0.0f, 3.0f, -0.5f, 0.25f };
    struct ak_random random, *r = &random;
    ak_random_seed(r, 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_sampling_params p = off();
        int32_t tokens[ACCEPTED];
        p.repeat_penalty = cases[i].repeat;
        p.presence_penalty = cases[i].presence;
        p.frequency_penalty = cases[i].frequency;
        p.repeat_last_n = cases[i].window;
        struct ak_sampler *s = new_sampler(&p);
        for (int n = 0; n < ACCEPTED; n++) {
            float got[VOCAB];
            int first = cases[i].window < 0 || n < cases[i].window ? 0 : n - cases[i].window;
            memcpy(got, logits, sizeof got);
            ak_sample_penalties_apply(&s->penalties, got);
            for (int32_t v = 0; v < VOCAB; v++) {
                int count = 0;
                for (int j = first; j < n; j++)
                    count += tokens[j] == v;
                float x = logits[v];
                if (count > 0)
                    x = (x > 0.0f ? x / p.repeat_penalty : x * p.repeat_penalty) -
                        ((float)count * p.frequency_penalty + p.presence_penalty);
                ck_assert_msg(got[v] == x, "case %zu, %d tokens: token %d has %g, expected %g", i,
                              n, (int)v, (double)got[v], (double)x);
            }
            tokens[n] = (int32_t)below(r, n % 20 < 10 ? 2 : VOCAB);
            ak_sample_accept(s, tokens[n]);
        }
        ak_sample_free(s);
    }
}
END_TEST

/* For each earlier place whose last tokens are those of the end, `allowed` or more of them: the
 * token after it loses multiplier · base^(length − allowed), of several places the longest. */
static void apply_dry(const struct akunu_sampling_params *p, const int32_t *tokens, int n,
                      float *logits)
{
    int first = n > p->dry_penalty_last_n ? n - p->dry_penalty_last_n : 0;
    int longest[VOCAB];
    for (int v = 0; v < VOCAB; v++)
        longest[v] = -1;
    for (int end = first + 1; end < n && n - first > p->dry_allowed_length; end++) {
        int length = 0; /* of tokens before `end` that are those before n */
        while (end - length > first && tokens[end - 1 - length] == tokens[n - 1 - length])
            length++;
        if (length >= p->dry_allowed_length && length > longest[tokens[end]])
            longest[tokens[end]] = length;
    }
    for (int v = 0; v < VOCAB; v++)
        if (longest[v] >= 0)
            logits[v] -= (float)((double)p->dry_multiplier *
                                 pow((double)p->dry_base, longest[v] - p->dry_allowed_length));
}

START_TEST(dry_repetitions)
{
    static const char *const no_breakers[] = { NULL };
    struct ak_random random, *r = &random;
    ak_random_seed(r, 6);
    for (int round = 0; round < 240; round++) {
        struct akunu_sampling_params p = off();
        int32_t tokens[ACCEPTED];
        p.dry_multiplier = 0.5f;
        p.dry_base = 2.0f; /* powers are exact */
        p.dry_allowed_length = round % 4;
        p.dry_penalty_last_n = round % 3 == 0 ? ACCEPTED : 1 + (int32_t)below(r, 20);
        p.dry_sequence_breakers = no_breakers;
        struct ak_sampler *s = new_sampler(&p);
        for (int n = 0; n < ACCEPTED; n++) {
            float got[VOCAB] = { 0 }, expected[VOCAB] = { 0 };
            if (n % 3 == 0 || n < 12) {
                ak_sample_dry_apply(&s->dry, &s->history, got);
                apply_dry(&p, tokens, n, expected);
                for (int v = 0; v < VOCAB; v++)
                    ck_assert_msg(got[v] == expected[v],
                                  "round %d, %d tokens: token %d has %g, expected %g", round, n, v,
                                  (double)got[v], (double)expected[v]);
            }
            tokens[n] = (int32_t)below(r, 1 + (uint32_t)round % 3);
            ak_sample_accept(s, tokens[n]);
        }
        ak_sample_free(s);
    }
}
END_TEST

/* No repetition is so long that its penalty is not a number. */
START_TEST(longest_penalty)
{
    static const char *const no_breakers[] = { NULL };
    static const struct {
        float base, multiplier, expected;
    } cases[] = { { 2.0f, 1.0f, -0x1p127f },
                  { 2.0f, 4.0f, -FLT_MAX },
                  { 1.0f, 3.0f, -3.0f },
                  { 2.0f, -4.0f, INFINITY } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_sampling_params p = off();
        float logits[VOCAB] = { 0 };
        p.dry_multiplier = cases[i].multiplier;
        p.dry_base = cases[i].base;
        p.dry_penalty_last_n = 400;
        p.dry_sequence_breakers = no_breakers;
        struct ak_sampler *s = new_sampler(&p);
        for (int j = 0; j < 200; j++)
            ak_sample_accept(s, 3);
        ak_sample_dry_apply(&s->dry, &s->history, logits);
        ck_assert_msg(logits[3] == cases[i].expected, "case %zu: %g", i, (double)logits[3]);
        for (int v = 0; v < VOCAB; v++)
            ck_assert(v == 3 || logits[v] == 0.0f);
        ak_sample_free(s);
    }
}
END_TEST

/* ---- Sequence breakers of a vocabulary ---------------------------------- */
/* A token is a breaker if its text holds one; so many that the table grows. */
START_TEST(breakers_in_tokens)
{
    enum { LETTERS = 62, STRINGS = 3 * LETTERS };
    static char strings[STRINGS][2];
    const char *list[STRINGS + 1] = { NULL };
    char path[4096];
    struct ak_error error = { 0 };
    struct ak_provider *provider;
    struct ak_tokenizer *tokenizer;
    struct ak_sample_dry_breakers breakers;
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, sizeof path, "%s/model.gguf", data);
    ck_assert_int_eq(ak_provider_open(path, &provider, &error), AKUNU_OK);
    ck_assert_int_eq(ak_tok_open(provider, &tokenizer, &error), AKUNU_OK);
    ak_provider_close(provider);
    for (int i = 0; i < STRINGS; i++) {
        strings[i][0] =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[i % LETTERS];
        list[i] = strings[i];
    }
    uint32_t n_vocab = (uint32_t)ak_tok_n_tokens(tokenizer), n_heads = 0;
    ck_assert_int_eq(ak_sample_dry_breakers_init(&breakers, list, tokenizer, n_vocab + 3, &error),
                     AKUNU_OK);
    for (uint32_t token = 0; token < n_vocab + 3; token++) {
        char text[512];
        size_t n = 0;
        bool holds = false;
        if (token < n_vocab) {
            int32_t id = (int32_t)token;
            ck_assert_int_eq(ak_tok_decode(tokenizer, &id, 1, 0, text, sizeof text, &n, &error),
                             AKUNU_OK);
        }
        for (int i = 0; i < STRINGS; i++) {
            bool in = n > 0 && memchr(text, strings[i][0], n);
            n_heads += in;
            holds = holds || in;
        }
        ck_assert_msg(ak_sample_dry_is_breaker(&breakers, (int32_t)token) == holds, "token %u",
                      token);
        int32_t newest_first[2] = { (int32_t)token, (int32_t)token };
        ck_assert_uint_eq(ak_sample_dry_count_unbroken(&breakers, newest_first, 2), holds ? 0 : 2);
    }
    ck_assert_uint_eq(breakers.n_heads, n_heads);
    ck_assert_uint_gt(n_heads, 1024);
    ak_sample_dry_breakers_release(&breakers);
    ak_tok_free(tokenizer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("naive");
    TCase *tests = tcase_create("naive");
    tcase_add_test(tests, best_candidates);
    tcase_add_test(tests, popped_candidates);
    tcase_add_test(tests, counted_penalties);
    tcase_add_test(tests, dry_repetitions);
    tcase_add_test(tests, longest_penalty);
    tcase_add_test(tests, breakers_in_tokens);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

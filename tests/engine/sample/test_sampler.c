/* Sampling (temperature, top-k, top-p, min-p, penalties, seed) and
 * its determinism. Goldens: llama.cpp's samplers, tests/golden/sampler.py. */
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "engine/sample/candidates.h"
#include "base/random.h"
#include "engine/sample/sampler.h"

enum { TOKENS_MAX = 2000, N_TABLES = 3 };

/* ---- Goldens ------------------------------------------------------------ */
struct table {
    char name[16];
    uint32_t n;
    float logits[TOKENS_MAX];
};

struct golden_case {
    char table[16];
    struct akunu_sampling_params params;
    uint32_t n_accepted, n_left;
    int32_t accepted[16];
    int32_t left[TOKENS_MAX];
    double p[TOKENS_MAX];
};

static FILE *open_golden(void)
{
    char path[4096];
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, sizeof path, "%s/sampler.txt", data);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be opened", path);
    return f;
}

static void read_table(FILE *f, struct table *t)
{
    ck_assert_int_eq(fscanf(f, " logits %15s %u", t->name, &t->n), 2);
    ck_assert_uint_le(t->n, TOKENS_MAX);
    for (uint32_t i = 0; i < t->n; i++)
        ck_assert_int_eq(fscanf(f, "%f", &t->logits[i]), 1);
}

static bool read_case(FILE *f, struct golden_case *c)
{
    memset(c, 0, sizeof *c);
    struct akunu_sampling_params *p = &c->params;
    p->size = sizeof *p;
    p->seed = 4711;
    int n = fscanf(f, " case %15s %d %f %f %f %f %d %f %f %u", c->table, &p->top_k, &p->top_p,
                   &p->min_p, &p->temperature, &p->repeat_penalty, &p->repeat_last_n,
                   &p->presence_penalty, &p->frequency_penalty, &c->n_accepted);
    if (n != 10)
        return false;
    ck_assert_uint_le(c->n_accepted, 16);
    for (uint32_t i = 0; i < c->n_accepted; i++)
        ck_assert_int_eq(fscanf(f, "%d", &c->accepted[i]), 1);
    ck_assert_int_eq(fscanf(f, "%u", &c->n_left), 1);
    ck_assert_uint_le(c->n_left, TOKENS_MAX);
    for (uint32_t i = 0; i < c->n_left; i++)
        ck_assert_int_eq(fscanf(f, "%d %lf", &c->left[i], &c->p[i]), 2);
    return true;
}

static struct ak_sampler *new_sampler(const struct akunu_sampling_params *params, uint32_t n_vocab)
{
    struct ak_error error = { 0 };
    struct ak_sampler *s;
    ck_assert_msg(ak_sample_create(params, n_vocab, NULL, &s, &error) == AKUNU_OK, "%s",
                  error.message);
    return s;
}

static int32_t sample_token(struct ak_sampler *s, const float *logits)
{
    int32_t token = -1;
    struct ak_error error = { 0 };
    ck_assert_msg(ak_sample_token(s, logits, &token, &error) == AKUNU_OK, "%s", error.message);
    return token;
}

/* What is left after the filters is what llama.cpp leaves. */
static void check_left(const struct golden_case *c, const struct table *t)
{
    static struct ak_sample_candidate items[TOKENS_MAX];
    static float weights[TOKENS_MAX];
    struct ak_sample_candidates left = { .items = items, .weights = weights };
    ak_sample_collect(&left, t->logits, t->n, (uint32_t)c->params.top_k);
    if (c->params.top_p < 1.0f)
        ak_sample_top_p(&left, c->params.top_p);
    if (c->params.min_p > 0.0f)
        ak_sample_min_p(&left, (float)ak_ln((double)c->params.min_p));
    ck_assert_uint_eq(left.n, c->n_left);
    for (uint32_t i = 0; i < left.n; i++) {
        uint32_t at = 0;
        while (at < c->n_left && c->left[at] != items[i].token)
            at++;
        ck_assert_msg(at < c->n_left, "token %d should be gone", (int)items[i].token);
    }
}

/* Draws follow the distribution: Pearson's chi-squared over tokens that are
 * expected ten times or more, the rest taken together. */
static void check_samples(const struct golden_case *c, const struct table *t)
{
    const int n_samples = test_is_full() ? 20000 : 4000;
    static uint32_t seen[TOKENS_MAX];
    memset(seen, 0, sizeof seen);
    struct ak_sampler *s = new_sampler(&c->params, t->n);
    for (uint32_t i = 0; i < c->n_accepted; i++)
        ak_sample_accept(s, c->accepted[i]);
    for (int i = 0; i < n_samples; i++) {
        int32_t token = sample_token(s, t->logits);
        ck_assert_int_ge(token, 0);
        ck_assert_uint_lt((uint32_t)token, t->n);
        seen[token]++;
    }
    ak_sample_free(s);

    double chi2 = 0.0, rest_expected = 0.0;
    uint32_t groups = 0, rest_seen = (uint32_t)n_samples, total = 0;
    for (uint32_t i = 0; i < c->n_left; i++) {
        double expected = c->p[i] * n_samples;
        total += seen[c->left[i]];
        if (expected < 10.0) {
            rest_expected += expected;
            continue;
        }
        double d = (double)seen[c->left[i]] - expected;
        chi2 += d * d / expected;
        rest_seen -= seen[c->left[i]];
        groups++;
    }
    ck_assert_msg(total == (uint32_t)n_samples, "%u samples of tokens that should be gone",
                  (uint32_t)n_samples - total);
    if (rest_expected >= 10.0) {
        chi2 += ((double)rest_seen - rest_expected) * ((double)rest_seen - rest_expected) /
                rest_expected;
        groups++;
    }
    double freedom = groups > 1 ? groups - 1 : 1; /* mean of chi2; its variance is twice that */
    ck_assert_msg(chi2 < freedom + 5.0 * sqrt(2.0 * freedom),
                  "chi2 %.1f with %.0f degrees of freedom", chi2, freedom);
}

START_TEST(equals_llama_cpp)
{
    static struct table tables[N_TABLES];
    static struct golden_case c;
    FILE *f = open_golden();
    int n_cases = 0;
    for (int i = 0; i < N_TABLES; i++)
        read_table(f, &tables[i]);
    for (; read_case(f, &c); n_cases++) {
        const struct table *t = NULL;
        for (int i = 0; i < N_TABLES; i++)
            if (strcmp(tables[i].name, c.table) == 0)
                t = &tables[i];
        ck_assert_ptr_nonnull(t);
        if (c.n_accepted == 0)
            check_left(&c, t);
        check_samples(&c, t);
    }
    ck_assert_int_eq(n_cases, 16);
    fclose(f);
}
END_TEST

/* ---- By hand ------------------------------------------------------------ */
static struct akunu_sampling_params bare(float temperature)
{
    return (struct akunu_sampling_params){ .size = sizeof(struct akunu_sampling_params),
                                           .temperature = temperature,
                                           .top_p = 1.0f,
                                           .repeat_penalty = 1.0f,
                                           .seed = 1 };
}

START_TEST(random_numbers)
{
    /* splitmix64 from 1234567, as Rosetta Code lists; xoshiro256++ from 1 2 3 4, as rand_xoshiro's
     * tests list */
    static const uint64_t split[] = { 6457827717110365317u, 3203168211198807973u,
                                      9817491932198370423u, 4593380528125082431u,
                                      16408922859458223821u };
    static const uint64_t xoshiro[] = { 41943041u, 58720359u, 3588806011781223u, 3591011842654386u,
                                        9228616714210784205u };
    uint64_t state = 1234567;
    struct ak_random random = { { 1, 2, 3, 4 } };
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(ak_splitmix64(&state), split[i]);
        ck_assert_uint_eq(ak_random_bits(&random), xoshiro[i]);
    }
    for (int i = 0; i < 10000; i++) {
        double unit = ak_random_unit(&random);
        ck_assert(unit >= 0.0 && unit < 1.0);
    }
}
END_TEST

START_TEST(greedy_takes_the_first_of_the_best)
{
    float logits[100];
    for (int n = 1; n <= 100; n++) { /* every tail of the vectorized search */
        struct akunu_sampling_params params = bare(0.0f);
        struct ak_sampler *s = new_sampler(&params, (uint32_t)n);
        for (int best = 0; best < n; best++) {
            for (int i = 0; i < n; i++)
                logits[i] = i < best ? -1.0f : i % 3 == best % 3 ? 2.5f : NAN;
            ck_assert_int_eq(sample_token(s, logits), best);
        }
        ak_sample_free(s);
    }
}
END_TEST

/* The smallest and the largest that there is, and what is not a number at all. */
START_TEST(strange_logits)
{
    struct ak_error error = { 0 };
    int32_t token;
    const float some[] = { NAN, -INFINITY, 1.0f, INFINITY, -3e38f, NAN, INFINITY };
    const float none[] = { NAN, -INFINITY, NAN, -INFINITY, NAN, NAN, NAN };
    struct akunu_sampling_params hot = bare(1.0f), cold = bare(0.0f), filtered = bare(0.7f),
                                 tiny = bare(1e-38f);
    filtered.top_k = 5;
    filtered.top_p = 0.9f;
    filtered.min_p = 0.1f;
    filtered.repeat_penalty = 1.1f;
    filtered.repeat_last_n = 8;
    const struct akunu_sampling_params *all[] = { &hot, &cold, &filtered, &tiny };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct ak_sampler *s = new_sampler(all[i], 7);
        ak_sample_accept(s, 3);
        for (int j = 0; j < 50; j++) {
            token = sample_token(s, some);
            ck_assert(token == 3 || token == 6);
        }
        ck_assert_int_eq(ak_sample_token(s, none, &token, &error), AKUNU_ERROR_NUMERIC);
        ck_assert_int_eq(sample_token(s, some) % 3, 0); /* and it goes on */
        ak_sample_free(s);
    }
}
END_TEST

/* Of equal logits the lower ids stay. */
START_TEST(ties_at_the_cut)
{
    float logits[50], weights[50];
    struct ak_sample_candidate items[50];
    struct ak_sample_candidates c = { .items = items, .weights = weights };
    for (int i = 0; i < 50; i++)
        logits[i] = i % 2 ? 1.0f : 0.0f;
    ak_sample_collect(&c, logits, 50, 7);
    ck_assert_uint_eq(c.n, 7);
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(items[i].token, 2 * i + 1);
    /* 25 tokens of weight e and 25 of weight 1: 0.4 of the whole is 13.67 times e */
    ak_sample_collect(&c, logits, 50, 0);
    ak_sample_top_p(&c, 0.4f);
    ck_assert_uint_eq(c.n, 14);
    for (int i = 0; i < 14; i++)
        ck_assert_int_eq(items[i].token, 2 * i + 1);
    ak_sample_collect(&c, logits, 50, 0);
    ak_sample_min_p(&c, -0.999f);
    ck_assert_uint_eq(c.n, 25);
    ak_sample_min_p(&c, 5.0f); /* the best one stays whatever is asked */
    ck_assert_uint_eq(c.n, 25);
    ak_sample_top_p(&c, -1.0f);
    ck_assert_uint_eq(c.n, 1);
}
END_TEST

/* A window forgets; -1 does not. */
START_TEST(penalty_window)
{
    const float logits[] = { 1.0f, 0.9f, 0.8f, -4.0f };
    struct akunu_sampling_params params = bare(0.0f);
    params.repeat_penalty = 2.0f;
    for (int all = 0; all < 2; all++) {
        params.repeat_last_n = all ? -1 : 2;
        struct ak_sampler *s = new_sampler(&params, 4);
        ck_assert_int_eq(sample_token(s, logits), 0);
        ak_sample_accept(s, 0);
        ck_assert_int_eq(sample_token(s, logits), 1);
        ak_sample_accept(s, 1);
        ck_assert_int_eq(sample_token(s, logits), 2);
        ak_sample_accept(s, 3);
        ck_assert_int_eq(sample_token(s, logits), all ? 2 : 0);
        ak_sample_accept(s, 99);
        ak_sample_accept(s, -1);
        ck_assert_int_eq(sample_token(s, logits), all ? 2 : 0);
        ak_sample_free(s);
    }
}
END_TEST

/* A seed gives the same tokens on every machine: these were sampled on x86-64. */
START_TEST(seed_gives_the_same_text)
{
    static const int32_t expected[] = { 159, 297, 456, 482, 370, 73, 376, 350,
                                        442, 357, 40,  469, 449, 66, 119, 284 };
    float logits[512];
    for (int i = 0; i < 512; i++)
        logits[i] = (float)((i * 7919) % 1009) / 101.0f;
    struct akunu_sampling_params params = bare(1.5f);
    params.top_k = 100;
    params.top_p = 0.9f;
    params.seed = 42;
    struct ak_sampler *a = new_sampler(&params, 512);
    ck_assert_uint_eq(ak_sample_seed(a), 42);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_int_eq(sample_token(a, logits), expected[i]);
    ak_sample_free(a);

    params.seed = UINT64_MAX; /* a random one, which is reported and gives the text again */
    a = new_sampler(&params, 512);
    params.seed = ak_sample_seed(a);
    ck_assert_uint_ne(params.seed, UINT64_MAX);
    struct ak_sampler *b = new_sampler(&params, 512);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(sample_token(a, logits), sample_token(b, logits));
    ak_sample_free(a);
    ak_sample_free(b);
}
END_TEST

START_TEST(refuses_nonsense)
{
    struct ak_error error;
    struct ak_sampler *s;
    struct akunu_sampling_params bad[8];
    for (int i = 0; i < 8; i++)
        bad[i] = bare(1.0f);
    bad[0].temperature = NAN;
    bad[1].top_p = NAN;
    bad[2].min_p = INFINITY;
    bad[3].repeat_penalty = 0.0f;
    bad[4].repeat_penalty = -1.0f;
    bad[5].presence_penalty = INFINITY;
    bad[6].frequency_penalty = NAN;
    bad[7].repeat_last_n = -2;
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(ak_sample_create(&bad[i], 10, NULL, &s, &error), AKUNU_ERROR_ARGUMENT);
        ck_assert_ptr_null(s);
    }
}
END_TEST

/* Only what is plain temperature, 0 with whatever filters, may end in a Gumbel step. */
START_TEST(plain_or_filtered)
{
    struct akunu_sampling_params p[8];
    for (int i = 0; i < 8; i++)
        p[i] = bare(1.0f);
    p[1].temperature = 0.0f;
    p[1].top_k = 3;
    p[2].top_k = 9;
    p[3].top_p = 0.99f;
    p[4].min_p = 0.01f;
    p[5].repeat_penalty = 1.1f;
    p[5].repeat_last_n = 4;
    p[6].top_k = 10; /* the whole vocabulary */
    p[7].temperature = 0.0f;
    p[7].presence_penalty = 1.0f;
    p[7].repeat_last_n = 4;
    for (int i = 0; i < 8; i++) {
        struct ak_sampler *s = new_sampler(&p[i], 10);
        ck_assert_int_eq(ak_sample_matches_gumbel(s), i <= 1 || i == 6);
        ak_sample_free(s);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampler");
    TCase *tests = tcase_create("sampler");
    tcase_add_test(tests, equals_llama_cpp);
    tcase_add_test(tests, random_numbers);
    tcase_add_test(tests, greedy_takes_the_first_of_the_best);
    tcase_add_test(tests, strange_logits);
    tcase_add_test(tests, ties_at_the_cut);
    tcase_add_test(tests, penalty_window);
    tcase_add_test(tests, seed_gives_the_same_text);
    tcase_add_test(tests, refuses_nonsense);
    tcase_add_test(tests, plain_or_filtered);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

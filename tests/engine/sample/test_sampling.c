/* Sampling by hand. Orders as they are written, what is refused, ties, logits that are no
 * numbers, log-probabilities. The distributions are in test_samplers.c. */
#include "tests/test.h"
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "engine/sample/sampler.h"
#include "engine/sample/sampler_state.h"

enum { N = 50 };

static struct akunu_sampling_params usual(void)
{
    struct akunu_sampling_params p;
    akunu_sampling_params_default(&p, sizeof p);
    p.seed = 1;
    return p;
}

static struct ak_sampler *new_sampler(const struct akunu_sampling_params *params)
{
    struct ak_error error = { 0 };
    struct ak_sampler *s;
    ck_assert_msg(ak_sample_create(params, N, NULL, &s, &error) == AKUNU_OK, "%s", error.message);
    return s;
}

/* ---- Orders ------------------------------------------------------------- */
static struct ak_sample_chain order_of(const char *names, const char *letters)
{
    struct akunu_sampling_params p = usual();
    struct ak_error error = { 0 };
    struct ak_sample_chain order;
    p.samplers = names;
    p.sampler_seq = letters;
    ck_assert_msg(ak_sample_parse_chain(&p, &order, &error) == AKUNU_OK, "%s", error.message);
    return order;
}

static void ck_same_order(struct ak_sample_chain a, struct ak_sample_chain b)
{
    ck_assert_uint_eq(a.n, b.n);
    for (uint32_t i = 0; i < a.n; i++)
        ck_assert_int_eq(a.kinds[i], b.kinds[i]);
}

START_TEST(orders)
{
    struct ak_sample_chain all = order_of(
        "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p", NULL);
    ck_assert_uint_eq(all.n, 10);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(all.kinds[i], (int)i);
    ck_same_order(all, order_of(NULL, "edskypmxta"));
    ck_same_order(
        all,
        order_of("Penalties;DRY;top-n-sigma;topk;typ;nucleus;MIN-P;xtc;temp;adaptive-p;", NULL));
    ck_same_order(order_of(NULL, NULL), order_of(NULL, "edskypmxt"));
    ck_same_order(order_of("top_k;top_k", NULL), order_of(NULL, "kk"));
    ck_assert_uint_eq(order_of("", NULL).n, 0);
    ck_assert_uint_eq(order_of(NULL, "").n, 0);
    ck_assert_uint_eq(order_of(NULL, "tttttttttttttttttttttttttttttttt").n, 32);
}
END_TEST

/* ---- What is refused ---------------------------------------------------- */
static void refused(const struct akunu_sampling_params *p, const char *message)
{
    struct ak_error error = { 0 };
    struct ak_sampler *s;
    ck_assert_int_eq(ak_sample_check_params(p, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_msg(strstr(error.message, message) != NULL, "'%s' has no '%s'", error.message,
                  message);
    ck_assert_int_eq(ak_sample_create(p, N, NULL, &s, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(akunu_sampling_check(p), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), message));
}

#define REFUSED(message, ...)                                                                      \
    do {                                                                                           \
        struct akunu_sampling_params refuse = usual();                                             \
        struct akunu_sampling_params *p = &refuse;                                                 \
        __VA_ARGS__;                                                                               \
        refused(p, message);                                                                       \
    } while (0)

START_TEST(refuses_nonsense)
{
    static const char *const empty[] = { "\n", "", NULL };
    static const char *const longer[] = { "12345678901234567890123456789012345678901", NULL };
    static const struct akunu_logit_bias no_number = { 3, NAN };
    struct akunu_sampling_params fine = usual();
    ck_assert_int_eq(akunu_sampling_check(&fine), AKUNU_OK);
    ck_assert_int_eq(akunu_sampling_check(NULL), AKUNU_OK);
    REFUSED("samplers is 'top_k;tap_p', and its 'tap_p' is none of penalties, dry",
            p->samplers = "top_k;tap_p");
    REFUSED("samplers is ';', and its '' is none of", p->samplers = ";");
    REFUSED("sampler_seq is 'kq', and its letter 'q' is none of e (penalties)",
            p->sampler_seq = "kq");
    REFUSED("more than 32", p->sampler_seq = "ttttttttttttttttttttttttttttttttt");
    REFUSED("only one of them", p->samplers = "", p->sampler_seq = "");
    REFUSED("samplers has more than 32",
            p->samplers = "xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;"
                          "xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc;xtc");
    REFUSED("its 'top' is none of", p->samplers = "top;top_k");
    REFUSED("its 'abcdefghijklmno' is none of", p->samplers = "abcdefghijklmno");
    REFUSED("its 'abcdefghijklmnop' is none of", p->samplers = "abcdefghijklmnop");
    REFUSED("its 'xtc, and 64 bytes of a name that is much longer than any sampler' is none of",
            p->samplers = "xtc, and 64 bytes of a name that is much longer than any sampler's is");
    REFUSED("typical_p is not a finite number", p->typical_p = NAN);
    REFUSED("dynatemp_exponent is -0.01", p->dynatemp_range = 0.001f,
            p->dynatemp_exponent = -0.01f);
    REFUSED("mirostat is -1", p->mirostat = -1);
    REFUSED("adaptive_target is 1.001", p->adaptive_target = 1.001f);
    REFUSED("adaptive_decay is -0.001", p->adaptive_decay = -0.001f);
    REFUSED("adaptive_decay is 0.991", p->adaptive_decay = 0.991f);
    REFUSED("repeat_penalty is 0: it must be above 0", p->repeat_penalty = 0);
    REFUSED("repeat_last_n is -2", p->repeat_last_n = -2);
    REFUSED("dry_base is 0.999", p->dry_multiplier = 1, p->dry_base = 0.999f);
    REFUSED("dynatemp_range is not", p->dynatemp_range = INFINITY);
    REFUSED("dynatemp_exponent is -1", p->dynatemp_range = 1, p->dynatemp_exponent = -1);
    REFUSED("top_n_sigma is not", p->top_n_sigma = NAN);
    REFUSED("xtc_threshold is not", p->xtc_threshold = NAN);
    REFUSED("dry_base is 0.5", p->dry_multiplier = 1, p->dry_base = 0.5f);
    REFUSED("dry_allowed_length is -1", p->dry_multiplier = 1, p->dry_allowed_length = -1);
    REFUSED("dry_penalty_last_n is -2", p->dry_penalty_last_n = -2);
    REFUSED("breaker 2 of DRY has 0 bytes: it must have 1 to 40", p->dry_sequence_breakers = empty);
    REFUSED("breaker 1 of DRY has 41 bytes", p->dry_sequence_breakers = longer);
    REFUSED("mirostat is 3", p->mirostat = 3);
    REFUSED("mirostat_tau is not", p->mirostat_tau = INFINITY);
    REFUSED("adaptive_target is 2", p->adaptive_target = 2);
    REFUSED("adaptive_decay is 1", p->adaptive_decay = 1);
    REFUSED("logit bias of token 3 is not a number", p->logit_bias = &no_number,
            p->n_logit_bias = 1);
    REFUSED("n_logit_bias says that it has 4", p->n_logit_bias = 4);
}
END_TEST

/* The last values that are allowed; what is switched off may have any. */
START_TEST(allows_limits)
{
    static const char *const longest[] = { "1234567890123456789012345678901234567890", NULL };
    static const struct akunu_logit_bias bias[] = { { 3, INFINITY }, { 4, -INFINITY } };
    struct akunu_sampling_params p = usual();
    p.dynatemp_exponent = -1.0f;
    p.dry_base = 0.5f;
    p.dry_allowed_length = -1;
    ck_assert_int_eq(akunu_sampling_check(&p), AKUNU_OK);
    p = usual();
    p.repeat_penalty = 1e-30f;
    p.repeat_last_n = -1;
    p.dynatemp_range = 1.0f;
    p.dynatemp_exponent = 0.0f;
    p.mirostat = 2;
    p.adaptive_target = 1.0f;
    p.adaptive_decay = 0.99f;
    p.dry_multiplier = 1.0f;
    p.dry_base = 1.0f;
    p.dry_allowed_length = 0;
    p.dry_penalty_last_n = 0;
    p.dry_sequence_breakers = longest;
    p.logit_bias = bias;
    p.n_logit_bias = 2;
    p.samplers = "p-e-n-a-l-t-i-e-s;t_e_m_p_e_r_a_t_u_r_e";
    ck_assert_msg(akunu_sampling_check(&p) == AKUNU_OK, "%s", akunu_last_error());
    p.adaptive_decay = 0.0f;
    p.mirostat = 1;
    p.logit_bias = NULL;
    p.n_logit_bias = 0;
    ck_assert_int_eq(akunu_sampling_check(&p), AKUNU_OK);
}
END_TEST

/* Every field that is a number has to be one. */
START_TEST(refuses_what_is_no_number)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
#define FIELD(name) { #name, offsetof(struct akunu_sampling_params, name) }
        FIELD(temperature),
        FIELD(top_p),
        FIELD(min_p),
        FIELD(repeat_penalty),
        FIELD(presence_penalty),
        FIELD(frequency_penalty),
        FIELD(dynatemp_range),
        FIELD(dynatemp_exponent),
        FIELD(typical_p),
        FIELD(top_n_sigma),
        FIELD(xtc_probability),
        FIELD(xtc_threshold),
        FIELD(dry_multiplier),
        FIELD(dry_base),
        FIELD(mirostat_tau),
        FIELD(mirostat_eta),
        FIELD(adaptive_target),
        FIELD(adaptive_decay),
    };
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    for (size_t i = 0; i < 3 * (sizeof fields / sizeof *fields); i++) {
        struct akunu_sampling_params p = usual();
        char said[64];
        snprintf(said, sizeof said, "%s is not a finite number", fields[i / 3].name);
        memcpy((char *)&p + fields[i / 3].offset, &bad[i % 3], sizeof *bad);
        refused(&p, said);
    }
}
END_TEST

START_TEST(refuses_what_the_model_lacks)
{
    static const struct akunu_logit_bias outside[] = { { 49, 1.0f }, { 50, 1.0f } },
                                         below = { -1, 1.0f };
    struct ak_error error = { 0 };
    struct ak_sampler *s;
    struct akunu_sampling_params p = usual();
    p.logit_bias = outside;
    p.n_logit_bias = 2;
    ck_assert_int_eq(ak_sample_create(&p, N, NULL, &s, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(error.message, "50 is not a token of this model, which has 0 to 49"));
    p.logit_bias = &below;
    p.n_logit_bias = 1;
    ck_assert_int_eq(ak_sample_create(&p, N, NULL, &s, &error), AKUNU_ERROR_ARGUMENT);
    p = usual();
    p.dry_multiplier = 1.0f; /* the usual breakers are strings */
    ck_assert_int_eq(ak_sample_create(&p, N, NULL, &s, &error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "need a vocabulary"));
    ck_assert_ptr_null(s);
}
END_TEST

/* ---- Who samples -------------------------------------------------------- */
static bool matches_gumbel(const struct akunu_sampling_params *p)
{
    struct ak_sampler *s = new_sampler(p);
    bool gumbel = ak_sample_matches_gumbel(s);
    ak_sample_free(s);
    return gumbel;
}

/* A Gumbel step knows of a temperature and of nothing else. */
START_TEST(gumbel_or_not)
{
    static const struct akunu_logit_bias bias = { 3, 1.0f };
    struct akunu_sampling_params bare = usual(), p;
    bare.top_k = 0;
    bare.top_p = 1.0f;
    bare.min_p = 0.0f;
    ck_assert(matches_gumbel(&bare));
#define WITH(gumbel, ...)                                                                          \
    do {                                                                                           \
        p = bare;                                                                                  \
        __VA_ARGS__;                                                                               \
        ck_assert(matches_gumbel(&p) == (gumbel));                                                 \
    } while (0)
    WITH(true, p.temperature = 1.0f);
    WITH(true, p.temperature = 0.0f);
    WITH(true, p.temperature = 0.0f, p.typical_p = 0.5f, p.xtc_probability = 1.0f, p.mirostat = 2);
    WITH(true, p.temperature = 1.0f, p.samplers = "top_k");
    WITH(false, p.samplers = "top_k"); /* the temperature is not in the order */
    WITH(false, p.temperature = 0.0f, p.samplers = "top_k");
    WITH(false, p.temperature = 0.0f, p.dynatemp_range = 0.5f);
    WITH(false, p.dynatemp_range = 0.5f);
    WITH(false, p.typical_p = 0.9f);
    WITH(false, p.top_n_sigma = 1.0f);
    WITH(false, p.xtc_probability = 0.1f);
    WITH(false, p.mirostat = 1);
    WITH(false, p.mirostat = 2);
    WITH(false, p.samplers = "temperature;adaptive_p");
    WITH(false, p.logit_bias = &bias, p.n_logit_bias = 1);
    WITH(false, p.temperature = 0.0f, p.logit_bias = &bias, p.n_logit_bias = 1);
    WITH(false, p.presence_penalty = 0.1f);
}
END_TEST

/* ---- Ties, and what is not a number ---------------------------------------- */
static struct ak_sample_candidates gathered(const float *logits, uint32_t n)
{
    static struct ak_sample_candidate items[N];
    static float weights[N];
    struct ak_sample_candidates c = { .items = items, .weights = weights };
    ak_sample_collect(&c, logits, n, 0);
    return c;
}

static const int32_t ones[] = { 1, 2, 4, 7, 8, 9 }; /* where the logits of `ties` are 1 */

START_TEST(ties)
{
    float logits[10] = { 0, 1, 1, 0, 1, 0, 0, 1, 1, 1 }, scratch[N];
    struct ak_sample_candidates c = gathered(logits, 10);
    ak_sample_top_k(&c, 4);
    ck_assert_uint_eq(c.n, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(c.items[i].token, ones[i]);

    /* e of six, 1 of four: 0.134 and 0.049, and the worst of the six stays */
    c = gathered(logits, 10);
    ak_sample_xtc(&c, 0.1f);
    ck_assert_uint_eq(c.n, 5);
    ck_assert_int_eq(c.items[c.n - 1].token, 9);

    /* ln 7.46 − 1 … the six are nearer to the entropy, the lower ids first */
    c = gathered(logits, 10);
    ak_sample_typical(&c, 0.3f, scratch);
    ck_assert_uint_eq(c.n, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(c.items[i].token, ones[i]);

    c = gathered(logits, 10); /* all within a standard deviation of 0.49 are the best themselves */
    ak_sample_top_n_sigma(&c, 1.0f);
    ck_assert_uint_eq(c.n, 6);

    c = gathered((float[]){ 2, 2, 2, 2 }, 4); /* no deviation, the entropy itself */
    ak_sample_top_n_sigma(&c, 0.5f);
    ck_assert_uint_eq(c.n, 4);
    ck_assert_float_eq_tol(ak_sample_dynamic_temperature(&c, 1.0f, 0.25f, 3.0f), 1.25f, 1e-6f);
    ak_sample_xtc(&c, 0.25f);
    ck_assert_uint_eq(c.n, 1);
    ck_assert_float_eq(ak_sample_dynamic_temperature(&c, 3.0f, 1.0f, 1.0f), 1.0f);
}
END_TEST

/* A mask, a bias and what the model gives may leave nothing, in any order. */
START_TEST(nothing_left)
{
    static const struct akunu_logit_bias never = { 5, -INFINITY };
    uint32_t none[2] = { 0, 0xfffc0000u }, five[2] = { 1u << 5, 0 };
    float logits[N] = { 0 };
    for (int greedy = 0; greedy < 2; greedy++) {
        struct ak_error error = { 0 };
        int32_t token;
        struct akunu_sampling_params p = usual();
        p.temperature = greedy ? 0.0f : 0.7f;
        struct ak_sampler *s = new_sampler(&p);
        ck_assert_int_eq(ak_sample_token_masked(s, logits, none, &token, &error),
                         AKUNU_ERROR_NUMERIC);
        ck_assert_int_eq(ak_sample_token_masked(s, logits, five, &token, &error), AKUNU_OK);
        ck_assert_int_eq(token, 5);
        ak_sample_free(s);
        p.logit_bias = &never;
        p.n_logit_bias = 1;
        s = new_sampler(&p);
        ck_assert_int_eq(ak_sample_token_masked(s, logits, five, &token, &error),
                         AKUNU_ERROR_NUMERIC);
        ck_assert_int_eq(ak_sample_token(s, logits, &token, &error), AKUNU_OK);
        ak_sample_free(s);
    }
}
END_TEST

static float any_logit(struct ak_random *r)
{
    static const float strange[] = { NAN,      INFINITY, -INFINITY, FLT_MAX,
                                     -FLT_MAX, 0.0f,     -0.0f,     1e-40f };
    uint64_t bits = ak_random_bits(r);
    return bits % 4 == 0 ? strange[(bits >> 8) % 8] : (float)(ak_random_unit(r) * 20.0 - 10.0);
}

static float one_of(struct ak_random *r, const float *values, size_t n)
{
    return values[ak_random_bits(r) % n];
}
#define ONE_OF(...)                                                                                \
    one_of(r, (const float[]){ __VA_ARGS__ }, sizeof(float[]){ __VA_ARGS__ } / sizeof(float))

static struct akunu_sampling_params any_sampling(struct ak_random *r, char *letters)
{
    static const char *const no_breakers[] = { NULL };
    struct akunu_sampling_params p = usual();
    size_t n = ak_random_bits(r) % 10;
    for (size_t i = 0; i < n; i++)
        letters[i] = "edskypmxta"[ak_random_bits(r) % 10];
    letters[n] = '\0';
    p.sampler_seq = letters;
    p.seed = ak_random_bits(r) >> 1;
    p.temperature = ONE_OF(0.0f, 0.7f, 1.0f, 1e-38f, 1e38f, -1.0f);
    p.dynatemp_range = ONE_OF(0.0f, 0.5f, 3e38f);
    p.dynatemp_exponent = ONE_OF(0.0f, 1.0f, 30.0f);
    p.top_k = (int32_t)ONE_OF(0, 1, 7, 49, 50, 2e9f);
    p.top_p = ONE_OF(-1.0f, 0.0f, 0.5f, 0.999f, 1.0f);
    p.min_p = ONE_OF(0.0f, 0.1f, 5.0f);
    p.typical_p = ONE_OF(1e-6f, 0.5f, 0.9999f, 1.0f);
    p.top_n_sigma = ONE_OF(-1.0f, 1e-6f, 1.0f, 1e30f);
    p.xtc_probability = ONE_OF(0.0f, 0.5f, 1.0f);
    p.xtc_threshold = ONE_OF(-1.0f, 0.0f, 0.1f, 0.5f);
    p.repeat_penalty = ONE_OF(1.0f, 1.2f, 1e-30f, 1e30f);
    p.presence_penalty = ONE_OF(0.0f, 0.5f, -3e38f, 3e38f);
    p.repeat_last_n = (int32_t)ONE_OF(-1, 0, 3, 64);
    p.dry_multiplier = ONE_OF(0.0f, 0.8f, -1.0f, 3e38f);
    p.dry_base = ONE_OF(1.0f, 1.75f, 3e38f);
    p.dry_allowed_length = (int32_t)ONE_OF(0, 1, 2, 2e9f);
    p.dry_penalty_last_n = (int32_t)ONE_OF(0, 1, 64, 200);
    p.dry_sequence_breakers = no_breakers;
    p.mirostat = ak_random_bits(r) % 4 ? 0 : (int32_t)(1 + ak_random_bits(r) % 2);
    p.mirostat_tau = ONE_OF(-1.0f, 0.0f, 5.0f, 3e38f);
    p.mirostat_eta = ONE_OF(0.0f, 0.1f, 3e38f);
    p.adaptive_target = ONE_OF(-1.0f, 0.0f, 0.3f, 1.0f);
    p.adaptive_decay = ONE_OF(0.0f, 0.9f, 0.99f);
    return p;
}

/* Whatever the parameters and the logits are, what is sampled is a token with a logit, allowed, and
 * the same again for the same seed. Sanitizers look on. */
START_TEST(anything_at_all)
{
    struct ak_random random, *r = &random;
    ak_random_seed(r, 99);
    for (int round = 0; round < 4000; round++) {
        char letters[16];
        struct akunu_sampling_params p = any_sampling(r, letters);
        struct ak_sampler *s[2] = { new_sampler(&p), new_sampler(&p) };
        for (int step = 0; step < 12; step++) {
            struct ak_error error = { 0 };
            float logits[N];
            int32_t token[2] = { -1, -1 };
            ak_status status[2];
            uint32_t allowed[2] = { (uint32_t)ak_random_bits(r), (uint32_t)ak_random_bits(r) };
            bool masked = step % 3 == 2;
            for (int i = 0; i < N; i++)
                logits[i] = any_logit(r);
            for (int i = 0; i < 2; i++) {
                status[i] = ak_sample_token_masked(s[i], logits, masked ? allowed : NULL, &token[i],
                                                   &error);
                ak_sample_accept(s[i], token[i]);
            }
            bool same = status[0] == status[1] && token[0] == token[1];
            bool right = status[0] == AKUNU_ERROR_NUMERIC ||
                         (status[0] == AKUNU_OK && token[0] >= 0 && token[0] < N &&
                          logits[token[0]] > -INFINITY &&
                          (!masked || allowed[token[0] / 32] >> (token[0] % 32) & 1));
            if (!same || !right)
                ck_abort_msg("round %d, step %d: order %s, token %d (%s)", round, step, letters,
                             (int)token[0], error.message);
        }
        ak_sample_free(s[0]);
        ak_sample_free(s[1]);
    }
}
END_TEST

/* ---- Log-probabilities -------------------------------------------------- */
START_TEST(logprobs_by_hand)
{
    const float third = (float)-ak_ln(3.0);
    struct akunu_logprob top[5];
    float logits[5] = { 0.0f, (float)ak_ln(2.0), -INFINITY, NAN, -200.0f }, logprob;
    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, 0, &logprob, top, 5), AKUNU_OK);
    ck_assert_float_eq_tol(logprob, third, 1e-6f);
    ck_assert_int_eq(top[0].token, 1);
    ck_assert_float_eq_tol(top[0].logprob, (float)ak_ln(2.0 / 3.0), 1e-6f);
    ck_assert_int_eq(top[1].token, 0);
    ck_assert_int_eq(top[2].token, 4);
    ck_assert_float_eq_tol(top[2].logprob, third - 200.0f, 1e-4f);
    for (int i = 3; i < 5; i++) {
        ck_assert_int_eq(top[i].token, -1);
        ck_assert_float_eq(top[i].logprob, -INFINITY);
    }
    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, 3, &logprob, NULL, 0), AKUNU_OK);
    ck_assert_float_eq(logprob, -INFINITY);
    logits[3] = INFINITY;
    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, 3, &logprob, top, 1), AKUNU_OK);
    ck_assert_float_eq(logprob, 0.0f);
    ck_assert_int_eq(top[0].token, 3);
    for (int i = 0; i < 5; i++)
        logits[i] = NAN;
    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, 3, &logprob, top, 2), AKUNU_OK);
    ck_assert_float_eq(logprob, -INFINITY);
    ck_assert_int_eq(top[0].token, -1);

    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, 5, &logprob, NULL, 0), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, -1, &logprob, NULL, 0),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, 0, &logprob, top, 6), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_logprobs_compute(logits, 5, 0, &logprob, NULL, 1), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_logprobs_compute(NULL, 5, 0, &logprob, NULL, 0), AKUNU_ERROR_ARGUMENT);
}
END_TEST

/* Against sums in doubles with libm, for sizes around the blocks. */
START_TEST(logprobs_of_vocabularies)
{
    static float logits[1000];
    struct ak_random r;
    ak_random_seed(&r, 5);
    for (uint32_t n = 1; n < 1000; n += n < 10 ? 1 : 83) {
        struct akunu_logprob top[4];
        double sum = 0.0;
        float logprob;
        uint32_t best = 0, n_top = n < 4 ? n : 4;
        for (uint32_t i = 0; i < n; i++) {
            logits[i] = (float)(ak_random_unit(&r) * 30.0);
            sum += exp((double)logits[i]);
            best = logits[i] > logits[best] ? i : best;
        }
        for (uint32_t token = 0; token < n; token += 7) {
            ck_assert_int_eq(
                akunu_logprobs_compute(logits, n, (int32_t)token, &logprob, top, n_top), AKUNU_OK);
            ck_assert_double_eq_tol((double)logprob, (double)logits[token] - log(sum), 4e-6);
            ck_assert_int_eq(top[0].token, (int32_t)best);
            for (uint32_t i = 1; i < n_top; i++)
                ck_assert_float_le(top[i].logprob, top[i - 1].logprob);
        }
    }
}
END_TEST

/* ---- Only the best logits ------------------------------------------------ */
static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Samples the same token 40 times from all logits and from the n best of them alone. */
static void check_best_suffice(const struct akunu_sampling_params *p, uint32_t n_best)
{
    struct ak_sampler *of_all = new_sampler(p), *of_best = new_sampler(p);
    ck_assert_uint_eq(ak_sample_n_best_unedited(of_all), n_best);
    for (uint32_t round = 0; round < 40 && n_best > 0; round++) {
        struct ak_error error = { 0 };
        float all[N], best[N], sorted[N];
        int32_t token, other;
        for (uint32_t i = 0; i < N; i++) /* with ties */
            all[i] = (float)((i * 2654435761u ^ round * 40503u) % 97 % 23) * 0.25f;
        memcpy(sorted, all, sizeof all);
        qsort(sorted, N, sizeof *sorted, descending);
        for (uint32_t i = 0; i < N; i++)
            best[i] = all[i] < sorted[n_best - 1] ? -INFINITY : all[i];
        ck_assert_int_eq(ak_sample_token(of_all, all, &token, &error), AKUNU_OK);
        ck_assert_int_eq(ak_sample_token(of_best, best, &other, &error), AKUNU_OK);
        ck_assert_int_eq(token, other);
    }
    ak_sample_free(of_all);
    ak_sample_free(of_best);
}

START_TEST(best_logits_suffice)
{
    static const struct akunu_logit_bias down[] = { { 3, -INFINITY }, { 7, -1.5f }, { 11, 0.0f } },
                                         up[] = { { 3, -1.0f }, { 7, 0.5f } };
    struct akunu_sampling_params p = usual();
    p.top_k = 8;
    check_best_suffice(&p, 8);
    p.logit_bias = down;
    p.n_logit_bias = 3;
    check_best_suffice(&p, 11);
    p.temperature = 0.0f;
    check_best_suffice(&p, 4);
    p.logit_bias = up;
    p.n_logit_bias = 2;
    check_best_suffice(&p, 0);
    p = usual();
    p.top_k = 0;
    check_best_suffice(&p, 0);
    p.top_k = 8;
    p.presence_penalty = 0.5f;
    check_best_suffice(&p, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampling");
    TCase *tests = tcase_create("sampling");
    tcase_add_test(tests, orders);
    tcase_add_test(tests, refuses_nonsense);
    tcase_add_test(tests, allows_limits);
    tcase_add_test(tests, refuses_what_is_no_number);
    tcase_add_test(tests, refuses_what_the_model_lacks);
    tcase_add_test(tests, gumbel_or_not);
    tcase_add_test(tests, ties);
    tcase_add_test(tests, nothing_left);
    tcase_add_test(tests, anything_at_all);
    tcase_add_test(tests, logprobs_by_hand);
    tcase_add_test(tests, logprobs_of_vocabularies);
    tcase_add_test(tests, best_logits_suffice);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

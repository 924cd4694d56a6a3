/* Speculation: a text is the same with drafts and without them, whoever drafts
 * and whatever the sampler; what stops a text leaves the same behind. */
#include "engine/generate/speculate.h"

#include <math.h>

#include "api/handles.h"
#include "tests/golden_model.h"

enum { REPORTED_MAX = 200 };

struct reported {
    size_t n;
    akunu_token tokens[REPORTED_MAX];
    size_t stop_after; /* 0: never */
    struct akunu_result result;
    uint32_t length; /* of the sequence, in the end */
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct reported *reported = user;
    (void)index, (void)text, (void)n_bytes;
    if (token < 0)
        return true;
    ck_assert_uint_lt(reported->n, REPORTED_MAX);
    reported->tokens[reported->n++] = token;
    return reported->n != reported->stop_after;
}

/* A prompt that says everything twice. */
static size_t prompt_of(const char *name, akunu_token ids[4 * GOLDEN_TOKENS])
{
    struct golden_text text;
    golden_read_text(name, &text);
    size_t n = text.n_prompt < 24 ? text.n_prompt : 24;
    memcpy(ids, text.ids, n * sizeof *ids);
    memcpy(ids + n, text.ids, n * sizeof *ids);
    return 2 * n;
}

static void generate(struct akunu_session *session, const char *name,
                     const struct akunu_generation_params *params, size_t stop_after,
                     enum akunu_status expected, struct reported *reported)
{
    akunu_token ids[4 * GOLDEN_TOKENS];
    size_t n = prompt_of(name, ids);
    akunu_sequence sequence = akunu_sequence_new(session);
    *reported = (struct reported){ .stop_after = stop_after,
                                   .result = { .size = sizeof reported->result } };
    struct akunu_generation_params own = *params;
    own.on_piece = on_piece;
    own.user = reported;
    enum akunu_status status = akunu_session_generate(
        session, sequence, &(struct akunu_ids){ ids, n }, &own, &reported->result);
    ck_assert_msg(status == expected, "%s: %s", name, akunu_last_error());
    reported->length = akunu_sequence_length(session, sequence);
    akunu_sequence_free(session, sequence);
}

static void check_same(const struct reported *got, const struct reported *expected,
                       const char *name)
{
    ck_assert_msg(got->n == expected->n, "%s: %zu tokens and %zu", name, got->n, expected->n);
    ck_assert_msg(memcmp(got->tokens, expected->tokens, got->n * sizeof *got->tokens) == 0,
                  "%s: another text", name);
    ck_assert_int_eq(got->result.stop, expected->result.stop);
    ck_assert_uint_eq(got->result.n_generated, expected->result.n_generated);
    ck_assert_uint_eq(got->length, expected->length);
    ck_assert_uint_le(got->result.n_accepted, got->result.n_drafted);
}

/* Greedy, all samplers of the defaults, penalties, and tokens sampled by the backend; low enough a
 * temperature that texts repeat. */
enum { MODES = 4 };
static struct akunu_generation_params params_of(int mode, int seed,
                                                struct akunu_sampling_params *sampling)
{
    struct akunu_generation_params params;
    akunu_generation_params_default(&params, sizeof params);
    akunu_sampling_params_default(sampling, sizeof *sampling);
    params.sampling = sampling;
    params.max_tokens = 60;
    sampling->seed = (uint64_t)seed;
    sampling->temperature = mode == 0 ? 0.0f : 0.25f;
    sampling->ignore_end = mode == 2;
    if (mode == 2)
        sampling->frequency_penalty = 0.05f;
    if (mode == 3) {
        sampling->top_k = 0;
        sampling->top_p = 1.0f;
        sampling->min_p = 0.0f;
    }
    return params;
}

/* As if a pass of many tokens took hardly more than that of one: then drafts are made as
 * soon as there are any, whatever else this machine does. */
static void make_drafts_cheap(struct akunu_session *session)
{
    for (uint32_t n = 1; n <= AK_SKINNY_MAX; n++)
        session->inner->cost_model.seconds[n] = 1e6 + n;
}

/* Greedy, and one of the other modes in turn. Drafts come from the text itself, and from a draft
 * model that is the model, whose drafts are accepted in greedy mode. */
START_TEST(same_text)
{
    const char *name = golden_at(_i)->name;
    struct akunu_model *model = golden_load(name, NULL);
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F16),
                         *draft = golden_session(model, 1, 64, AKUNU_KV_F16);
    akunu_sequence sequence = akunu_sequence_new(draft);
    struct ak_error error;
    bool possible = ak_gen_speculation_check(session->inner, &error) == AKUNU_OK;
    uint64_t n_accepted = 0;
    for (int mode = 0; mode < MODES; mode++)
        for (int seed = 1; seed <= (mode == 0 ? 1 : 2); seed++) {
            if (mode > 0 && !test_is_full() &&
                (mode - 1 != _i % (MODES - 1) || seed - 1 != _i / (MODES - 1) % 2))
                continue;
            struct akunu_sampling_params sampling;
            struct akunu_generation_params params = params_of(mode, seed, &sampling);
            struct reported with, without;
            params.speculation = AKUNU_SPECULATION_NONE;
            generate(session, name, &params, 0, AKUNU_OK, &without);
            ck_assert_uint_eq(without.result.n_drafted, 0);
            params.speculation = AKUNU_SPECULATION_AUTO;
            make_drafts_cheap(session);
            generate(session, name, &params, 0, AKUNU_OK, &with);
            check_same(&with, &without, name);
            ck_assert(possible || with.result.n_drafted == 0);
            if (!possible)
                continue;
            params.draft = draft;
            params.draft_sequence = sequence;
            make_drafts_cheap(session);
            generate(session, name, &params, 0, AKUNU_OK, &with);
            check_same(&with, &without, name);
            n_accepted += with.result.n_accepted;
        }
    ck_assert_msg(!possible || n_accepted > 0, "%s: no drafted token was accepted", name);
    akunu_session_free(draft);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Keys and values of every type that a cache may have. */
START_TEST(same_text_of_caches)
{
    struct akunu_model *model = golden_load("qwen3", NULL);
    struct akunu_session *session = golden_session(model, 2, 64, (enum akunu_kv_type)_i);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, 1, &sampling);
    struct reported with, without;
    params.speculation = AKUNU_SPECULATION_NONE;
    params.max_tokens = 120; /* over the end of a page */
    generate(session, "qwen3", &params, 0, AKUNU_OK, &without);
    params.speculation = AKUNU_SPECULATION_NGRAM;
    make_drafts_cheap(session);
    generate(session, "qwen3", &params, 0, AKUNU_OK, &with);
    check_same(&with, &without, "qwen3");
    ck_assert_uint_gt(with.result.n_accepted, 0);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Every token of the first drafts may be the last one: the host's wish, the length. */
START_TEST(stops)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F16),
                         *draft = golden_session(model, 1, 64, AKUNU_KV_F16);
    akunu_sequence sequence = akunu_sequence_new(draft);
    uint64_t n_accepted = 0;
    for (size_t n = 1; n < (test_is_full() ? 40 : 20); n++)
        for (int by_length = 0; by_length < 2; by_length++) {
            struct akunu_sampling_params sampling;
            struct akunu_generation_params params = params_of(0, 1, &sampling);
            struct reported with, without;
            params.max_tokens = by_length ? (int64_t)n : 60;
            params.speculation = AKUNU_SPECULATION_NONE;
            generate(session, "qwen2", &params, by_length ? 0 : n, AKUNU_OK, &without);
            params.speculation = AKUNU_SPECULATION_DRAFT;
            params.draft = draft;
            params.draft_sequence = sequence;
            make_drafts_cheap(session);
            generate(session, "qwen2", &params, by_length ? 0 : n, AKUNU_OK, &with);
            check_same(&with, &without, "qwen2");
            ck_assert_int_eq(with.result.stop, by_length ? AKUNU_STOP_LENGTH : AKUNU_STOP_CALLBACK);
            n_accepted += with.result.n_accepted;
        }
    ck_assert_uint_gt(n_accepted, 100);
    akunu_session_free(draft);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Until the context is full, and its pages, of which another sequence has some. */
START_TEST(full_context)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    for (int shared = 0; shared < 2; shared++) {
        struct akunu_session_params session_params = golden_params(2, 64, AKUNU_KV_F16);
        session_params.context = 160;
        session_params.max_sequences = 2;
        struct akunu_session *session = akunu_session_new(model, &session_params),
                             *draft = golden_session(model, 1, 64, AKUNU_KV_F16);
        struct golden_text text;
        struct reported with, without;
        struct akunu_sampling_params sampling;
        struct akunu_generation_params params = params_of(0, 1, &sampling);
        akunu_sequence other = akunu_sequence_new(session);
        size_t last;
        golden_read_text("qwen2", &text);
        if (shared) {
            akunu_token ids[128];
            for (int i = 0; i < 128; i++)
                ids[i] = text.ids[i % 20];
            ck_assert_int_eq(akunu_session_prefill(session, other, &(struct akunu_ids){ ids, 128 },
                                                   NULL, NULL, &last),
                             AKUNU_OK);
        }
        params.max_tokens = -1;
        params.speculation = AKUNU_SPECULATION_NONE;
        generate(session, "qwen2", &params, 0, AKUNU_OK, &without);
        ck_assert_int_eq(without.result.stop, AKUNU_STOP_CONTEXT);
        params.speculation = AKUNU_SPECULATION_DRAFT;
        params.draft = draft;
        params.draft_sequence = akunu_sequence_new(draft);
        make_drafts_cheap(session);
        generate(session, "qwen2", &params, 0, AKUNU_OK, &with);
        check_same(&with, &without, "qwen2");
        ck_assert_uint_gt(with.result.n_accepted, 0);
        akunu_session_free(draft);
        akunu_session_free(session);
    }
    akunu_model_free(model);
}
END_TEST

/* A text of one token, which is drafted at once, as far as the context goes and no further. */
START_TEST(full_context_by_lookup)
{
    static const struct akunu_logit_bias bias = { .token = 7, .bias = 1000.0f };
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session_params session_params = golden_params(2, 64, AKUNU_KV_F16);
    session_params.context = 90; /* in the middle of a page */
    struct akunu_session *session = akunu_session_new(model, &session_params);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, 1, &sampling);
    struct reported reported;
    params.max_tokens = -1;
    params.speculation = AKUNU_SPECULATION_NGRAM;
    sampling.logit_bias = &bias;
    sampling.n_logit_bias = 1;
    make_drafts_cheap(session);
    generate(session, "qwen2", &params, 0, AKUNU_OK, &reported);
    ck_assert_int_eq(reported.result.stop, AKUNU_STOP_CONTEXT);
    ck_assert_uint_eq(reported.length, 90);
    ck_assert_uint_eq(reported.n, 90 - reported.result.n_prompt + 1);
    for (size_t i = 0; i < reported.n; i++)
        ck_assert_int_eq(reported.tokens[i], 7);
    ck_assert_uint_gt(reported.result.n_accepted, 20);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* If a draft of one token pays and a longer one does not, a minimum of two gives none. */
START_TEST(fewest_lookups)
{
    static const int32_t text[] = { 1, 2, 3, 4, 5, 6, 1, 2, 3 };
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16);
    make_drafts_cheap(session);
    for (uint32_t n = 3; n <= AK_SKINNY_MAX; n++)
        session->inner->cost_model.seconds[n] = 1e9;
    for (uint32_t draft_min = 1; draft_min <= 2; draft_min++) {
        struct akunu_sampling_params sampling;
        struct akunu_generation_params params = params_of(0, 1, &sampling);
        struct ak_gen_speculation s = { 0 };
        struct ak_gen_draft proposal;
        struct ak_error error;
        params.speculation = AKUNU_SPECULATION_NGRAM;
        params.draft_min = draft_min;
        ck_assert_int_eq(ak_gen_speculation_begin(session->inner, &params, NULL, &s, &error),
                         AKUNU_OK);
        ak_gen_speculation_add_tokens(&s, text, sizeof text / sizeof *text, false);
        ck_assert_int_eq(ak_gen_speculation_draft(&s, 8, &proposal, &error), AKUNU_OK);
        ck_assert_uint_eq(proposal.n, draft_min == 1 ? 1 : 0);
        ck_assert(proposal.n == 0 || proposal.tokens[0] == 4);
        ak_gen_speculation_clear(&s);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* ---- A draft model ------------------------------------------------------ */
/* One that agrees always, since it is the same, and one that seldom does. */
START_TEST(draft_models)
{
    static const char *const drafts[] = { "qwen2", "qwen3" };
    struct akunu_model *model = golden_load("qwen2", NULL),
                       *smaller = golden_load(drafts[_i], NULL);
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F16),
                         *draft = golden_session(smaller, 1, 32, AKUNU_KV_F16);
    akunu_sequence sequence = akunu_sequence_new(draft);
    uint64_t n_drafted = 0, n_accepted = 0;
    for (int mode = 0; mode < MODES; mode++)
        for (int only = 0; only < 2; only++) {
            if (only == mode % 2 && !test_is_full())
                continue;
            struct akunu_sampling_params sampling;
            struct akunu_generation_params params = params_of(mode, 3, &sampling);
            struct reported with, without;
            params.speculation = AKUNU_SPECULATION_NONE;
            generate(session, "qwen2", &params, 0, AKUNU_OK, &without);
            params.speculation = only ? AKUNU_SPECULATION_DRAFT : AKUNU_SPECULATION_AUTO;
            params.draft = draft;
            params.draft_sequence = sequence;
            make_drafts_cheap(session);
            generate(session, "qwen2", &params, 0, AKUNU_OK, &with);
            check_same(&with, &without, drafts[_i]);
            n_drafted += only ? with.result.n_drafted : 0;
            n_accepted += only ? with.result.n_accepted : 0;
            if (_i == 0 && mode == 0 && only)
                ck_assert_uint_eq(with.result.n_accepted, with.result.n_drafted);
        }
    ck_assert_uint_gt(n_drafted, 0);
    if (_i == 0)
        ck_assert_uint_gt(n_accepted, test_is_full() ? 100 : 50);
    akunu_session_free(draft);
    akunu_session_free(session);
    akunu_model_free(smaller);
    akunu_model_free(model);
}
END_TEST

/* A draft whose context ends before the text does. */
START_TEST(short_draft)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session_params small = golden_params(1, 32, AKUNU_KV_F16);
    small.context = 64;
    small.max_sequences = 1;
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F16),
                         *draft = akunu_session_new(model, &small);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, 3, &sampling);
    struct reported with, without;
    params.speculation = AKUNU_SPECULATION_NONE;
    generate(session, "qwen2", &params, 0, AKUNU_OK, &without);
    params.speculation = AKUNU_SPECULATION_DRAFT;
    params.draft = draft;
    params.draft_sequence = akunu_sequence_new(draft);
    make_drafts_cheap(session);
    generate(session, "qwen2", &params, 0, AKUNU_OK, &with);
    check_same(&with, &without, "qwen2");
    ck_assert_uint_gt(with.result.n_accepted, 0);
    akunu_session_free(draft);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Short drafts, long ones, and such as are nearly always accepted. */
START_TEST(limits)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F16),
                         *draft = golden_session(model, 1, 64, AKUNU_KV_F16);
    akunu_sequence sequence = akunu_sequence_new(draft);
    static const struct {
        uint32_t draft_max, draft_min;
        float p;
        bool any;
    } cases[] = {
        { 1, 0, 0.0f, true }, { 100, 0, 0.0f, true }, { 4, 4, 0.0f, true },
        { 0, 3, 0.0f, true }, { 2, 3, 0.0f, false },  { 0, 0, 1.1f, false },
    };
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, 3, &sampling);
    struct reported with, without;
    params.speculation = AKUNU_SPECULATION_NONE;
    generate(session, "qwen2", &params, 0, AKUNU_OK, &without);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        params.speculation = AKUNU_SPECULATION_DRAFT;
        params.draft = draft;
        params.draft_sequence = sequence;
        params.draft_max = cases[i].draft_max;
        params.draft_min = cases[i].draft_min;
        params.draft_p_min = cases[i].p;
        make_drafts_cheap(session);
        generate(session, "qwen2", &params, 0, AKUNU_OK, &with);
        check_same(&with, &without, "qwen2");
        ck_assert_msg((with.result.n_drafted > 0) == cases[i].any, "case %zu: %d drafted tokens", i,
                      (int)with.result.n_drafted);
    }
    akunu_session_free(draft);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

static void check_refused(struct akunu_session *session,
                          const struct akunu_generation_params *params, enum akunu_status status,
                          const char *said)
{
    struct reported reported;
    generate(session, "qwen2", params, 0, status, &reported);
    ck_assert_msg(strstr(akunu_last_error(), said) != NULL, "'%s' lacks '%s'", akunu_last_error(),
                  said);
    ck_assert_uint_eq(reported.length, 0);
}

START_TEST(refused)
{
    struct akunu_model *model = golden_load("qwen2", NULL), *state = golden_load("lfm2", NULL),
                       *other = golden_load("gpt2", NULL), *llama = golden_load("llama-f32", NULL);
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F16),
                         *running = golden_session(state, 2, 64, AKUNU_KV_F16);
    struct akunu_session *foreign = golden_session(other, 1, 64, AKUNU_KV_F16),
                         *good = golden_session(model, 1, 64, AKUNU_KV_F16),
                         *named = golden_session(llama, 1, 64, AKUNU_KV_F16);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, 1, &sampling);
    params.speculation = (enum akunu_speculation)9;
    check_refused(session, &params, AKUNU_ERROR_ARGUMENT, "speculation is 9");
    params.speculation = AKUNU_SPECULATION_DRAFT;
    check_refused(session, &params, AKUNU_ERROR_ARGUMENT, "no draft session is given");
    params.draft = session;
    check_refused(session, &params, AKUNU_ERROR_ARGUMENT, "the one that generates");
    params.draft = good;
    params.draft_sequence = 0;
    check_refused(session, &params, AKUNU_ERROR_ARGUMENT, "there is no sequence 0");
    params.draft = foreign;
    params.draft_sequence = akunu_sequence_new(foreign);
    check_refused(session, &params, AKUNU_ERROR_ARGUMENT,
                  "the draft model's vocabulary differs: it has none");
    params.draft = named;
    params.draft_sequence = akunu_sequence_new(named);
    check_refused(session, &params, AKUNU_ERROR_ARGUMENT,
                  "the draft model's vocabulary differs: token 411 is \"<|begin_of_text|>\", and "
                  "in the model it is \"ol\"");
    params.draft = running;
    check_refused(session, &params, AKUNU_ERROR_UNSUPPORTED, "the draft model has recurrent state");
    params.draft = NULL;
    params.speculation = AKUNU_SPECULATION_NGRAM;
    check_refused(running, &params, AKUNU_ERROR_UNSUPPORTED, "the model has recurrent state");
    akunu_session_free(foreign);
    akunu_session_free(named);
    akunu_session_free(good);
    akunu_session_free(running);
    akunu_session_free(session);
    akunu_model_free(llama);
    akunu_model_free(other);
    akunu_model_free(state);
    akunu_model_free(model);
}
END_TEST

/* A tokenizer of two tokens. */
static struct ak_tokenizer *two_tokens(const char *first, const char *second)
{
    const struct ak_text tokens[] = { { first, (uint32_t)strlen(first) },
                                      { second, (uint32_t)strlen(second) } };
    static const int32_t types[] = { 1, 1 };
    struct ak_vocab vocab = ak_vocab_none;
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };
    vocab.model = (struct ak_text){ "gpt2", 4 };
    vocab.pre = (struct ak_text){ "gpt-2", 5 };
    vocab.tokens = vocab.merges = tokens; /* no merges */
    vocab.types = types;
    vocab.n_tokens = 2;
    ck_assert_msg(ak_tok_create(&vocab, &t, &error) == AKUNU_OK, "%s", error.message);
    return t;
}

/* Tokens must be equal, also those of the same length. */
START_TEST(vocabularies)
{
    static const struct {
        const char *second, *said; /* NULL: it may draft */
    } cases[] = { { "bc", NULL },
                  { "bd", "token 1 is \"bd\", and in the model it is \"bc\"" },
                  { "b", "token 1 is \"b\", and in the model it is \"bc\"" },
                  { "bcd", "token 1 is \"bcd\", and in the model it is \"bc\"" } };
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_model models[2] = { *session->inner->model, *session->inner->model };
        struct ak_session sessions[2] = { *session->inner, *session->inner };
        struct ak_error error = { 0 };
        char expected[128] = "";
        for (int k = 0; k < 2; k++) {
            models[k].tokenizer = two_tokens("a", k ? cases[i].second : "bc");
            sessions[k].model = &models[k];
        }
        if (cases[i].said)
            snprintf(expected, sizeof expected, "the draft model's vocabulary differs: %s",
                     cases[i].said);
        ck_assert_int_eq(ak_draft_model_check(&sessions[0], &sessions[1], &error),
                         cases[i].said ? AKUNU_ERROR_ARGUMENT : AKUNU_OK);
        ck_assert_str_eq(error.message, expected);
        ak_tok_free(models[0].tokenizer);
        ak_tok_free(models[1].tokenizer);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* ---- Decisions ---------------------------------------------------------- */
static void begin(struct akunu_session *session, enum akunu_speculation kind,
                  struct ak_draft_model *draft, struct ak_gen_speculation *s)
{
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, 1, &sampling);
    struct ak_error error;
    params.speculation = kind;
    ck_assert_int_eq(ak_gen_speculation_begin(session->inner, &params, draft, s, &error), AKUNU_OK);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* Before anything was drafted: longer matches and surer draft models are accepted more often. */
START_TEST(first_estimates)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16);
    struct ak_gen_speculation s;
    double last = 0.0;
    begin(session, AKUNU_SPECULATION_NGRAM, NULL, &s);
    for (int n = AK_DRAFT_LOOKUP_MIN; n <= AK_DRAFT_LOOKUP_MAX; n++) {
        double rate = s.lookup_acceptance[n].accepted / s.lookup_acceptance[n].drafted;
        ck_assert(rate > last && rate < 0.9);
        last = rate;
    }
    last = 0.0;
    for (int i = 0; i < AK_GEN_CONFIDENCE_BINS; i++) {
        double rate = s.model_acceptance[i].accepted / s.model_acceptance[i].drafted;
        ck_assert(rate > last && rate < 1.0);
        last = rate;
    }
    ak_gen_speculation_clear(&s);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* What drafts have won and lost, after passes that took as long as was expected. Of a refused draft
 * the tokens after the first refused one say nothing. */
START_TEST(gains)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16);
    struct ak_session_cost_model *costs = &session->inner->cost_model;
    struct ak_draft_model draft = { .session = session->inner, .seconds = 0.5 };
    struct ak_gen_draft proposal = { .n = 4, .from_model = true, .confidence = { 1, 2, 2, 3 } };
    struct ak_gen_speculation s;
    costs->seconds[1] = 1.0;
    costs->seconds[5] = 2.0;
    begin(session, AKUNU_SPECULATION_DRAFT, &draft, &s);
    struct ak_gen_acceptance bins[AK_GEN_CONFIDENCE_BINS];
    memcpy(bins, s.model_acceptance, sizeof bins);
    double all = s.model_acceptance_all.drafted;
    ak_gen_speculation_update(&s, &proposal, 1, 2.0);
    ck_assert(is_near(costs->seconds[1], 1.0) && is_near(costs->seconds[5], 2.0));
    ck_assert(is_near(s.balance, 2 * 1.0 - 2.0 - 0.5));
    ck_assert(is_near(s.seconds, 2.0 + 0.5));
    ck_assert(draft.seconds <= 0.0);
    ck_assert(is_near(s.model_acceptance_all.drafted, (all * 0.97 + 1.0) * 0.97 + 1.0));
    for (int i = 0; i < AK_GEN_CONFIDENCE_BINS; i++) {
        bool was_tried = i == 1 || i == 2;
        ck_assert(is_near(s.model_acceptance[i].drafted,
                          was_tried ? bins[i].drafted * 0.97 + 1.0 : bins[i].drafted));
        ck_assert(is_near(s.model_acceptance[i].accepted,
                          was_tried ? bins[i].accepted * 0.97 + (i == 1) : bins[i].accepted));
    }
    struct ak_gen_draft none = { .n = 0 };
    ak_gen_speculation_update(&s, &none, 0, 1.0);
    ck_assert(is_near(s.balance, -0.5) && is_near(s.seconds, 3.5));
    proposal.from_model = false; /* by lookup: all but the last token are accepted */
    ak_gen_speculation_update(&s, &proposal, 3, 2.0);
    ck_assert(is_near(s.balance, -0.5 + 4.0 - 2.0) && is_near(s.seconds, 5.5));
    ak_gen_speculation_clear(&s);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Drafts may lose one pass and a hundredth of the time; then there are none. */
START_TEST(losses)
{
    static const int32_t text[] = { 1, 2, 3, 4, 5, 6, 1, 2, 3 };
    static const struct {
        double balance, seconds;
        bool drafts;
    } cases[] = { { 0.0, 0.0, true },     { -0.99, 0.0, true },    { -1.01, 0.0, false },
                  { -1.99, 100.0, true }, { -2.01, 100.0, false }, { -100.0, 1e4, true },
                  { -102.0, 1e4, false } };
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16);
    struct ak_gen_speculation s;
    struct ak_gen_draft proposal;
    struct ak_error error;
    for (uint32_t n = 1; n <= AK_SKINNY_MAX; n++)
        session->inner->cost_model.seconds[n] = 1.0 + 1e-6 * n;
    begin(session, AKUNU_SPECULATION_NGRAM, NULL, &s);
    ak_gen_speculation_add_tokens(&s, text, sizeof text / sizeof *text, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.balance = cases[i].balance;
        s.seconds = cases[i].seconds;
        ck_assert_int_eq(ak_gen_speculation_draft(&s, 8, &proposal, &error), AKUNU_OK);
        ck_assert_msg((proposal.n > 0) == cases[i].drafts, "case %zu: %u tokens", i,
                      (unsigned)proposal.n);
    }
    ak_gen_speculation_clear(&s);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* A draft model whose tokens cost nothing drafts as many as may be drafted. */
START_TEST(longest_draft)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16),
                         *other = golden_session(model, 1, 64, AKUNU_KV_F16);
    struct ak_draft_model draft = { .session = other->inner,
                                    .sequence = akunu_sequence_new(other),
                                    .n_vocab = session->inner->model->spec.config.vocab_size };
    akunu_token ids[4 * GOLDEN_TOKENS];
    size_t n = prompt_of("qwen2", ids);
    for (uint32_t n_max = 1; n_max <= 5; n_max += 2) {
        struct ak_gen_speculation s;
        struct ak_gen_draft proposal;
        struct ak_error error;
        make_drafts_cheap(session);
        for (uint32_t i = 1; i <= AK_SKINNY_MAX; i++)
            other->inner->cost_model.seconds[i] = 1e-3;
        begin(session, AKUNU_SPECULATION_DRAFT, &draft, &s);
        ak_gen_speculation_add_tokens(&s, ids, n, false);
        ck_assert_int_eq(ak_gen_speculation_draft(&s, n_max, &proposal, &error), AKUNU_OK);
        ck_assert_uint_eq(proposal.n, n_max);
        ck_assert(proposal.from_model);
        ak_gen_speculation_clear(&s);
    }
    akunu_session_free(other);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* The draft model runs all of the prompt but its last token, once; then a token more each time, as
 * long as its context has room. */
START_TEST(draft_follows)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session_params small = golden_params(1, 32, AKUNU_KV_F16);
    small.context = 64; /* a page */
    small.max_sequences = 1;
    struct akunu_session *session = akunu_session_new(model, &small);
    struct ak_draft_model draft = { .session = session->inner,
                                    .sequence = akunu_sequence_new(session),
                                    .n_vocab = session->inner->model->spec.config.vocab_size };
    struct ak_error error = { 0 };
    akunu_token ids[4 * GOLDEN_TOKENS], token;
    float probability;
    for (int i = 0; i < 65; i++)
        ids[i] = 20 + i * 7 % 50;
    ck_assert_uint_eq(ak_draft_model_count_unseen(&draft, ids, 63), 63);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ak_draft_model_prefill(&draft, ids, 63, NULL, NULL, &error), AKUNU_OK);
        ck_assert_uint_eq(akunu_sequence_length(session, draft.sequence), 62);
        ck_assert_uint_eq(ak_draft_model_count_unseen(&draft, ids, 63), 1);
    }
    for (uint32_t n = 63; n <= 65; n++) {
        ck_assert_int_eq(ak_draft_model_propose(&draft, ids, n, &token, &probability, &error),
                         AKUNU_OK);
        ck_assert(n <= 64 ? token >= 0 && probability > 0.0f : token == -1);
        ck_assert_uint_eq(akunu_sequence_length(session, draft.sequence), n <= 64 ? n : 64);
    }
    ids[40]++; /* another text from there on */
    ck_assert_uint_eq(ak_draft_model_count_unseen(&draft, ids, 64), 24);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

static bool varies(const struct ak_backend *b)
{
    (void)b;
    return false;
}

static bool is_steady(const struct ak_backend *b)
{
    (void)b;
    return true;
}

/* Logits must not depend on the pass, and states can be no part of them. */
START_TEST(possible)
{
    static const struct ak_backend_ops unknown = { .is_batch_invariant = NULL },
                                       varying = { .is_batch_invariant = varies },
                                       steady = { .is_batch_invariant = is_steady };
    static const struct {
        const struct ak_backend_ops *ops;
        uint32_t state_elems;
        const char *said; /* NULL: it is possible */
    } cases[] = { { &unknown, 0, "logits depend on the pass" },
                  { &varying, 0, "logits depend on the pass" },
                  { &steady, 0, NULL },
                  { &steady, 1, "recurrent state" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_backend backend = { cases[i].ops };
        struct ak_session session = { .backend = &backend,
                                      .kv.shape.state_elems = cases[i].state_elems };
        struct ak_error error = { 0 };
        ak_status status = ak_gen_speculation_check(&session, &error);
        ck_assert_int_eq(status, cases[i].said ? AKUNU_ERROR_UNSUPPORTED : AKUNU_OK);
        ck_assert(!cases[i].said || strstr(error.message, cases[i].said));
    }
}
END_TEST

/* ---- Lookup ------------------------------------------------------------- */
static struct ak_draft_lookup make_lookup(const char *letters, uint32_t capacity)
{
    struct ak_draft_lookup l;
    ck_assert_int_eq(ak_draft_lookup_create(capacity, &l, NULL), AKUNU_OK);
    for (; *letters; letters++)
        ak_draft_lookup_push(&l, *letters);
    return l;
}

START_TEST(lookups)
{
    static const struct {
        const char *text;
        uint32_t alike;
        const char *next;
    } cases[] = {
        { "", 0, "" },
        { "a", 0, "" },
        { "ab", 0, "" },
        { "abab", 2, "abab" },
        { "aaaa", 3, "aaaa" },
        { "abcxabc", 3, "xabc" },
        { "abcdzzbcdyybcd", 3, "yybcd" },       /* the last of equally good ones */
        { "uabcdzzvbcdyyabcd", 4, "zzvbcdyy" }, /* a longer one before a later one */
        { "abcdef", 0, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_draft_lookup l = make_lookup(cases[i].text, 100);
        uint32_t at = 0, n_match = ak_draft_lookup_find(&l, &at),
                 n = (uint32_t)strlen(cases[i].next);
        int32_t next[16];
        ck_assert_msg(n_match == cases[i].alike, "'%s': %u alike", cases[i].text, n_match);
        if (n_match > 0) {
            ak_draft_lookup_copy(&l, at, n, next);
            for (uint32_t j = 0; j < n; j++)
                ck_assert_msg(next[j] == cases[i].next[j], "'%s': %c at %u", cases[i].text,
                              (char)next[j], j);
        }
        ak_draft_lookup_clear(&l);
    }
    struct ak_draft_lookup l = make_lookup("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 100);
    uint32_t at;
    ck_assert_uint_eq(ak_draft_lookup_find(&l, &at), AK_DRAFT_LOOKUP_MAX);
    ak_draft_lookup_clear(&l);
    l = make_lookup("abcdabcd", 5); /* what has no room is left out */
    ck_assert_uint_eq(l.n, 5);
    ak_draft_lookup_clear(&l);
}
END_TEST

/* Of any text: what is found stands where it is said to. */
START_TEST(random_lookups)
{
    uint32_t x = 7;
    for (int text = 0; text < 50; text++) {
        struct ak_draft_lookup l = make_lookup("", 400);
        for (int i = 0; i < 400; i++) {
            uint32_t at = 0, n_match = ak_draft_lookup_find(&l, &at);
            if (n_match > 0) {
                ck_assert_uint_le(n_match, at);
                ck_assert_uint_lt(at, l.n);
                ck_assert_mem_eq(l.tokens + at - n_match, l.tokens + l.n - n_match,
                                 n_match * sizeof *l.tokens);
            }
            ak_draft_lookup_push(&l, (int32_t)((x = x * 1664525u + 1013904223u) >> 28) %
                                         (2 + text % 8));
        }
        ak_draft_lookup_clear(&l);
    }
}
END_TEST

/* ---- Costs -------------------------------------------------------------- */
static bool is_close(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

START_TEST(costs)
{
    struct ak_session_cost_model c = { .token_price = 0.1 };
    ck_assert(is_close(ak_session_cost_estimate(&c, 4), 0.0));
    ak_session_cost_update(&c, 1, 1.0);
    ck_assert(is_close(ak_session_cost_estimate(&c, 1), 1.0));
    /* thought, not measured */
    ck_assert(is_close(ak_session_cost_estimate(&c, 2), 1.1));
    ck_assert(is_close(ak_session_cost_estimate(&c, 16), 2.5));
    for (int i = 0; i < 200; i++)
        ak_session_cost_update(&c, 5, 1.8);
    ck_assert(fabs(ak_session_cost_estimate(&c, 5) - 1.8) < 0.01);
    ck_assert(fabs(ak_session_cost_estimate(&c, 3) - 1.4) < 0.01);
    ck_assert(ak_session_cost_estimate(&c, 9) > 1.8);
    for (int i = 0; i < 10; i++) /* once in a while a pass is a hundred times slower */
        ak_session_cost_update(&c, 1, i % 5 == 0 ? 100.0 : 1.0);
    ck_assert(ak_session_cost_estimate(&c, 1) < 1.15);
    for (int i = 0; i < 100; i++) /* and passes of a longer text stay slower */
        ak_session_cost_update(&c, 1, 2.0);
    ck_assert(ak_session_cost_estimate(&c, 1) > 1.95);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("speculate");
    TCase *tests = tcase_create("speculate");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, same_text, 0, golden_count());
    tcase_add_loop_test(tests, same_text_of_caches, 0, 5);
    tcase_add_test(tests, stops);
    tcase_add_test(tests, full_context);
    tcase_add_test(tests, full_context_by_lookup);
    tcase_add_test(tests, fewest_lookups);
    tcase_add_loop_test(tests, draft_models, 0, 2);
    tcase_add_test(tests, short_draft);
    tcase_add_test(tests, limits);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, vocabularies);
    tcase_add_test(tests, first_estimates);
    tcase_add_test(tests, gains);
    tcase_add_test(tests, losses);
    tcase_add_test(tests, longest_draft);
    tcase_add_test(tests, draft_follows);
    tcase_add_test(tests, possible);
    tcase_add_test(tests, lookups);
    tcase_add_test(tests, random_lookups);
    tcase_add_test(tests, costs);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

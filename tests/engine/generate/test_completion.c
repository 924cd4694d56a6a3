/* One completion, alone and beside others: grammars with forced tokens, stop sequences, control
 * tokens, bytes of an incomplete character, limits, pages that several completions share. */
#include "tests/golden_model.h"

#include "api/handles.h"
#include "base/hash.h"
#include "engine/generate/completion.h"

enum { TEXT_MAX = 2048, PROMPT = 20, ALL = 4 };

struct heard {
    size_t n_bytes, n_tokens, n_rests; /* rests: pieces without a token */
    char bytes[TEXT_MAX];
    size_t stop_after; /* pieces; 0: never */
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct heard *heard = (struct heard *)user + index;
    ck_assert_uint_lt(index, ALL);
    ck_assert_uint_lt(heard->n_bytes + n_bytes, TEXT_MAX);
    if (n_bytes > 0)
        memcpy(heard->bytes + heard->n_bytes, text, n_bytes);
    heard->n_bytes += n_bytes;
    heard->bytes[heard->n_bytes] = '\0';
    ck_assert_int_ge(token, -1);
    *(token < 0 ? &heard->n_rests : &heard->n_tokens) += 1;
    return heard->n_tokens + heard->n_rests != heard->stop_after;
}

/* A model, a session of `context` tokens, and parameters of greedy sampling. */
struct fixture {
    struct akunu_model *model;
    const struct akunu_tokenizer *tokenizer;
    struct akunu_session *session;
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params;
    struct golden_text text;
    struct heard heard;
    struct akunu_result result;
    uint32_t length; /* of the sequence, in the end */
    uint64_t passes; /* of the text, without those of the prompt */
};

static struct fixture *set_up(const char *name, uint32_t context)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct akunu_session_params params = golden_params(1, 64, AKUNU_KV_F16);
    ck_assert_ptr_nonnull(f);
    params.context = context;
    params.max_sequences = ALL;
    f->model = golden_load(name, NULL);
    f->tokenizer = akunu_model_tokenizer(f->model);
    f->session = akunu_session_new(f->model, &params);
    ck_assert_msg(f->session != NULL, "%s", akunu_last_error());
    golden_read_text(name, &f->text);
    akunu_generation_params_default(&f->params, sizeof f->params);
    akunu_sampling_params_default(&f->sampling, sizeof f->sampling);
    f->params.sampling = &f->sampling;
    f->params.max_tokens = -1;
    f->params.speculation = AKUNU_SPECULATION_NONE;
    f->sampling.temperature = 0.0f;
    f->sampling.seed = 1;
    return f;
}

static void tear_down(struct fixture *f)
{
    akunu_session_free(f->session);
    akunu_model_free(f->model);
    free(f);
}

static uint64_t count_passes(const struct fixture *f)
{
    struct akunu_counters counters;
    ck_assert_int_eq(akunu_session_get_counters(f->session, &counters, sizeof counters), AKUNU_OK);
    return counters.passes;
}

/* A text after the first PROMPT tokens of the golden text. */
static void generate(struct fixture *f, size_t stop_after, enum akunu_status expected)
{
    uint64_t before = count_passes(f);
    akunu_sequence sequence = akunu_sequence_new(f->session);
    f->heard = (struct heard){ .stop_after = stop_after };
    f->result = (struct akunu_result){ .size = sizeof f->result };
    f->params.on_piece = on_piece;
    f->params.user = &f->heard;
    enum akunu_status status = akunu_session_generate(
        f->session, sequence, &(struct akunu_ids){ f->text.ids, PROMPT }, &f->params, &f->result);
    ck_assert_msg(status == expected, "%d: %s", (int)status, akunu_last_error());
    f->length = akunu_sequence_length(f->session, sequence);
    f->passes = count_passes(f) - before - 1;
    akunu_sequence_free(f->session, sequence);
}

static struct akunu_grammar *parse(const char *gbnf)
{
    struct akunu_grammar *grammar = akunu_grammar_parse(gbnf, strlen(gbnf));
    ck_assert_msg(grammar != NULL, "%s", akunu_last_error());
    return grammar;
}

/* ---- Grammars ----------------------------------------------------------- */
/* A text with one continuation is run in passes of several tokens, and is the same text. */
START_TEST(forced_tokens)
{
    static const char literal[] = "It was the best of times, it was the worst of times.";
    char gbnf[128];
    struct fixture *f = set_up("qwen2", 256);
    snprintf(gbnf, sizeof gbnf, "root ::= \"%s\"", literal);
    struct akunu_grammar *grammar = parse(gbnf);
    f->sampling.grammar = grammar;
    generate(f, 0, AKUNU_OK);
    size_t n = f->heard.n_tokens;
    ck_assert_str_eq(f->heard.bytes, literal);
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_END);
    ck_assert_uint_eq(f->result.n_generated, n);
    ck_assert_uint_eq(f->result.n_drafted, 0);
    ck_assert_uint_eq(f->length, PROMPT + n - 1);
    ck_assert_uint_gt(n, 10);
    ck_assert_uint_le(f->passes, n / 2);
    for (size_t limit = 1; limit <= n; limit += limit < 4 ? 1 : 5) { /* every length */
        f->params.max_tokens = (int64_t)limit;
        generate(f, 0, AKUNU_OK);
        ck_assert_uint_eq(f->heard.n_tokens, limit);
        ck_assert_uint_eq(f->result.n_generated, limit);
        ck_assert_mem_eq(f->heard.bytes, literal, f->heard.n_bytes);
        ck_assert_int_eq(f->result.stop, limit == n ? AKUNU_STOP_END : AKUNU_STOP_LENGTH);
        ck_assert_uint_eq(f->length, PROMPT + limit - 1);
    }
    f->params.max_tokens = -1;
    generate(f, 7, AKUNU_OK); /* the host stops it within a pass */
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_CALLBACK);
    ck_assert_uint_eq(f->heard.n_tokens, 7);
    ck_assert_uint_eq(f->length, PROMPT + 6);
    akunu_grammar_free(grammar);

    grammar = parse("root ::= [a-z] \"-then-\" [a-z] \"-end\"");
    f->sampling.grammar = grammar;
    generate(f, 0, AKUNU_OK);
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_END);
    ck_assert_uint_eq(f->heard.n_bytes, 12);
    ck_assert_mem_eq(f->heard.bytes + 1, "-then-", 6);
    ck_assert_str_eq(f->heard.bytes + 8, "-end");
    akunu_grammar_free(grammar);

    grammar = akunu_grammar_from_schema("false", 5, NULL);
    ck_assert_ptr_nonnull(grammar);
    f->sampling.grammar = grammar;
    generate(f, 0, AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(akunu_last_error(), "the grammar allows no text at all");
    akunu_grammar_free(grammar);
    tear_down(f);
}
END_TEST

/* As far as the context goes, and no further. */
START_TEST(forced_tokens_fill_the_context)
{
    struct fixture *f = set_up("qwen2", PROMPT + 9);
    struct akunu_grammar *grammar =
        parse("root ::= \"one two three four five six seven eight nine ten eleven twelve\"");
    f->sampling.grammar = grammar;
    generate(f, 0, AKUNU_OK);
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_CONTEXT);
    ck_assert_uint_eq(f->result.n_generated, 10); /* the last one is not run */
    ck_assert_uint_eq(f->length, PROMPT + 9);
    akunu_grammar_free(grammar);
    tear_down(f);
}
END_TEST

START_TEST(parallel_grammar)
{
    struct fixture *f = set_up("qwen2", 256);
    struct akunu_grammar *grammar = parse("root ::= \"yes, \" (\"certainly\" | \"of course\")");
    struct heard heard[ALL] = { { 0 } };
    struct akunu_result results[ALL];
    akunu_sequence sequences[ALL] = { akunu_sequence_new(f->session) };
    f->sampling.grammar = grammar;
    f->sampling.temperature = 1.0f;
    for (int i = 0; i < ALL; i++)
        results[i].size = sizeof results[i];
    f->params.on_piece = on_piece;
    f->params.user = heard;
    ck_assert_int_eq(akunu_session_generate_parallel(f->session, sequences, ALL,
                                                     &(struct akunu_ids){ f->text.ids, PROMPT },
                                                     &f->params, results),
                     AKUNU_OK);
    for (int i = 0; i < ALL; i++) {
        ck_assert_int_eq(results[i].stop, AKUNU_STOP_END);
        ck_assert_uint_eq(results[i].n_generated, heard[i].n_tokens);
        ck_assert_msg(strcmp(heard[i].bytes, "yes, certainly") == 0 ||
                          strcmp(heard[i].bytes, "yes, of course") == 0,
                      "'%s'", heard[i].bytes);
    }
    akunu_grammar_free(grammar);
    tear_down(f);
}
END_TEST

/* ---- What is told ------------------------------------------------------- */
/* The text ends before its first stop sequence, alone and beside others. */
START_TEST(stop_sequences)
{
    struct fixture *f = set_up("qwen2", 256);
    char stop[4] = "";
    const char *stops[] = { "\1\2", stop };
    f->params.max_tokens = 40;
    f->sampling.ignore_end = true;
    generate(f, 0, AKUNU_OK);
    struct heard whole = f->heard;
    ck_assert_uint_eq(whole.n_tokens, 40);
    memcpy(stop, whole.bytes + whole.n_bytes / 2, 3);
    size_t expected = (size_t)(strstr(whole.bytes, stop) - whole.bytes);
    ck_assert_uint_le(expected, whole.n_bytes / 2);
    f->params.stops = stops;
    f->params.n_stops = 2;
    generate(f, 0, AKUNU_OK);
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_TEXT);
    ck_assert_uint_eq(f->heard.n_bytes, expected);
    ck_assert_mem_eq(f->heard.bytes, whole.bytes, expected);
    ck_assert_uint_lt(f->heard.n_tokens, 40);
    ck_assert_uint_eq(f->heard.n_rests, 0);

    struct heard heard[ALL] = { { 0 } };
    struct akunu_result results[2] = { { .size = sizeof *results }, { .size = sizeof *results } };
    akunu_sequence sequences[2] = { akunu_sequence_new(f->session) };
    f->params.on_piece = on_piece;
    f->params.user = heard;
    ck_assert_int_eq(akunu_session_generate_parallel(f->session, sequences, 2,
                                                     &(struct akunu_ids){ f->text.ids, PROMPT },
                                                     &f->params, results),
                     AKUNU_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(results[i].stop, AKUNU_STOP_TEXT);
        ck_assert_uint_eq(results[i].n_generated, f->result.n_generated);
        ck_assert_str_eq(heard[i].bytes, f->heard.bytes);
    }
    tear_down(f);
}
END_TEST

static akunu_token find_token(const struct fixture *f,
                              bool (*is)(const struct fixture *f, akunu_token token))
{
    akunu_token n = (akunu_token)akunu_tokenizer_vocab_size(f->tokenizer);
    for (akunu_token token = 0; token < n; token++)
        if (is(f, token))
            return token;
    ck_abort_msg("no such token");
    return -1;
}

static bool is_control(const struct fixture *f, akunu_token token)
{
    return akunu_tokenizer_is_control(f->tokenizer, token) &&
           !akunu_tokenizer_is_end(f->tokenizer, token);
}

static bool is_end(const struct fixture *f, akunu_token token)
{
    return akunu_tokenizer_is_end(f->tokenizer, token);
}

/* The byte 0xc3, which begins a character. */
static bool is_half(const struct fixture *f, akunu_token token)
{
    char text[8];
    return akunu_tokenizer_decode(f->tokenizer, &token, 1, 0, text, sizeof text) == 1 &&
           text[0] == '\xc3';
}

/* Control tokens are text if asked for; bytes without the rest of their character end the text; an
 * end token is neither told nor counted, and goes before the limit. */
START_TEST(tokens_without_text)
{
    struct fixture *f = set_up("qwen2", 256);
    struct akunu_logit_bias bias = { .token = find_token(f, is_control), .bias = 1e6f };
    char name[64];
    int64_t n_name =
        akunu_tokenizer_decode(f->tokenizer, &bias.token, 1, AKUNU_CONTINUE, name, sizeof name);
    ck_assert_int_gt(n_name, 0);
    f->sampling.logit_bias = &bias;
    f->sampling.n_logit_bias = 1;
    f->params.max_tokens = 2;
    for (int special = 0; special < 2; special++) {
        f->params.special = special;
        generate(f, 0, AKUNU_OK);
        ck_assert_uint_eq(f->heard.n_tokens, 2);
        ck_assert_uint_eq(f->heard.n_bytes, special ? 2 * (size_t)n_name : 0);
        ck_assert_mem_eq(f->heard.bytes, name, special ? (size_t)n_name : 0);
    }

    bias.token = find_token(f, is_half);
    f->params.max_tokens = 1;
    generate(f, 0, AKUNU_OK);
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_LENGTH);
    ck_assert_str_eq(f->heard.bytes, "\xef\xbf\xbd");
    ck_assert_uint_eq(f->heard.n_tokens, 1);
    ck_assert_uint_eq(f->heard.n_rests, 1);
    generate(f, 1, AKUNU_OK); /* who stopped hears nothing more */
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_CALLBACK);
    ck_assert_uint_eq(f->heard.n_bytes, 0);
    ck_assert_uint_eq(f->heard.n_rests, 0);

    bias.token = find_token(f, is_end);
    generate(f, 0, AKUNU_OK);
    ck_assert_int_eq(f->result.stop, AKUNU_STOP_END);
    ck_assert_uint_eq(f->result.n_generated, 0);
    ck_assert_uint_eq(f->heard.n_tokens, 0);
    ck_assert_uint_eq(f->length, PROMPT);
    tear_down(f);
}
END_TEST

/* ---- What a host never sees ----------------------------------------------- */
static void begin(struct fixture *f, struct ak_gen_completion *c, struct akunu_result *result)
{
    struct ak_error error = { 0 };
    *result = (struct akunu_result){ .size = sizeof *result };
    c->session = f->session->inner;
    c->result = result;
    ck_assert_msg(ak_gen_completion_begin(c, &f->params, &error) == AKUNU_OK, "%s", error.message);
}

/* The chain hashes the chain before, each token, and the logits that it was sampled from. */
START_TEST(chains)
{
    struct fixture *f = set_up("qwen2", 256);
    struct ak_gen_completion c = { .has_chain = true };
    struct akunu_result result;
    struct ak_error error;
    uint32_t n = f->session->inner->model->spec.config.vocab_size;
    float *logits = calloc(n, sizeof *logits);
    uint8_t chain[32] = { 0 };
    begin(f, &c, &result);
    for (uint8_t step = 1; step <= 3; step++) {
        int32_t token;
        logits[20 * step] = step;
        ck_assert_int_eq(ak_gen_completion_sample(&c, logits, &token, &error), AKUNU_OK);
        ck_assert_int_eq(token, 20 * step);
        ck_assert_mem_eq(result.chain, chain, sizeof chain); /* until it is a part of the text */
        ck_assert_int_eq(ak_gen_completion_append(&c, token, &error), AKUNU_OK);
        struct ak_sha256 h;
        ak_sha256_begin(&h);
        ak_sha256_add(&h, chain, sizeof chain);
        ak_sha256_add(&h, (const uint8_t[]){ (uint8_t)(20 * step), 0, 0, 0 }, 4);
        ak_sha256_add(&h, logits, n * sizeof *logits);
        ak_sha256_end(&h, chain);
        ck_assert_mem_eq(result.chain, chain, sizeof chain);
    }
    ak_gen_completion_clear(&c);
    free(logits);
    tear_down(f);
}
END_TEST

static void ignore_logprobs(size_t index, akunu_token token, float logprob,
                            const struct akunu_logprob *top, size_t n_top, void *user)
{
    (void)index, (void)token, (void)logprob, (void)top, (void)n_top, (void)user;
}

/* How many of the largest logits decide: those that the first sampler keeps, the first one alone,
 * or all. */
START_TEST(decisive_logits)
{
    static const struct {
        float temperature;
        const char *samplers;
        bool has_chain, has_logprobs;
        uint32_t n_best;
    } cases[] = {
        { 0.0f, "temperature", false, false, 1 },
        { 0.0f, "temperature", true, false, 0 },
        { 0.0f, "temperature", false, true, 0 },
        { 0.8f, "temperature", false, false, 0 },
        { 0.8f, "top_k;temperature", false, false, 7 },
        { 0.8f, "top_k;temperature", true, false, 0 },
    };
    struct fixture *f = set_up("qwen2", 256);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_gen_completion c = { .has_chain = cases[i].has_chain };
        struct akunu_result result;
        f->sampling.temperature = cases[i].temperature;
        f->sampling.samplers = cases[i].samplers;
        f->sampling.top_k = 7;
        f->params.on_logprobs = cases[i].has_logprobs ? ignore_logprobs : NULL;
        begin(f, &c, &result);
        ck_assert_msg(ak_gen_completion_n_best(&c) == cases[i].n_best, "case %zu: %u", i,
                      (unsigned)ak_gen_completion_n_best(&c));
        ak_gen_completion_clear(&c);
    }
    tear_down(f);
}
END_TEST

static bool cancel(void *user)
{
    (void)user;
    return true;
}

/* A text for which one logit is enough, whether it ends or is cancelled, leaves nothing of that: of
 * the host's own passes all logits are wanted. */
START_TEST(all_logits_after_a_text)
{
    struct fixture *f = set_up("qwen2", 256);
    f->params.max_tokens = 3;
    for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
        f->params.cancel = is_cancelled ? cancel : NULL;
        generate(f, 0, is_cancelled ? AKUNU_ERROR_CANCELLED : AKUNU_OK);
        ck_assert_uint_eq(f->session->inner->n_best, 0);
    }
    tear_down(f);
}
END_TEST

/* ---- Limits ------------------------------------------------------------- */
/* No token at all: the prompt is run, and nothing is told. */
START_TEST(no_tokens)
{
    struct fixture *f = set_up("qwen2", 256);
    struct heard heard[ALL] = { { 0 } };
    struct akunu_result results[3];
    akunu_sequence sequences[3] = { akunu_sequence_new(f->session) };
    f->params.max_tokens = 0;
    for (int i = 0; i < 3; i++)
        results[i].size = sizeof results[i];
    f->params.on_piece = on_piece;
    f->params.user = heard;
    ck_assert_int_eq(akunu_session_generate_parallel(f->session, sequences, 3,
                                                     &(struct akunu_ids){ f->text.ids, PROMPT },
                                                     &f->params, results),
                     AKUNU_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(results[i].stop, AKUNU_STOP_LENGTH);
        ck_assert_uint_eq(results[i].n_prompt, PROMPT);
        ck_assert_uint_eq(results[i].n_generated, 0);
        ck_assert_uint_eq(heard[i].n_tokens + heard[i].n_rests, 0);
        ck_assert_uint_eq(akunu_sequence_length(f->session, sequences[i]), PROMPT);
    }
    tear_down(f);
}
END_TEST

/* Five pages: four completions have one each, and the first one that needs another gets it. */
START_TEST(pages_are_shared_out)
{
    struct fixture *f = set_up("qwen2", 70);
    struct heard heard[ALL] = { { 0 } };
    struct akunu_result results[ALL];
    akunu_sequence sequences[ALL] = { akunu_sequence_new(f->session) };
    f->sampling.ignore_end = true;
    for (int i = 0; i < ALL; i++)
        results[i].size = sizeof results[i];
    f->params.on_piece = on_piece;
    f->params.user = heard;
    ck_assert_int_eq(akunu_session_generate_parallel(f->session, sequences, ALL,
                                                     &(struct akunu_ids){ f->text.ids, 40 },
                                                     &f->params, results),
                     AKUNU_OK);
    for (int i = 0; i < ALL; i++) {
        uint32_t length = i == 0 ? 70 : 64;
        ck_assert_int_eq(results[i].stop, AKUNU_STOP_CONTEXT);
        ck_assert_uint_eq(akunu_sequence_length(f->session, sequences[i]), length);
        ck_assert_uint_eq(results[i].n_generated, length - 40 + 1);
    }
    tear_down(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("completion");
    TCase *tests = tcase_create("completion");
    tcase_add_test(tests, forced_tokens);
    tcase_add_test(tests, forced_tokens_fill_the_context);
    tcase_add_test(tests, parallel_grammar);
    tcase_add_test(tests, stop_sequences);
    tcase_add_test(tests, tokens_without_text);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, decisive_logits);
    tcase_add_test(tests, all_logits_after_a_text);
    tcase_add_test(tests, no_tokens);
    tcase_add_test(tests, pages_are_shared_out);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

/* The budget of reasoning: what it counts, where it ends reasoning, and that the text up to there
 * is the one without a budget, alone, with drafts and beside other completions. */
#include "tests/golden_model.h"

#include "engine/generate/reasoning.h"

enum { TEXT_MAX = 4096, PROMPT = 20, ALL = 40, N_CHOICES = 3 };

/* ---- Counting ----------------------------------------------------------- */
/* Letters, whitespace, and markers as one token and in pieces. */
static const struct ak_text pieces[] = {
    { "a", 1 },   { "Ċ", 2 },  { "<think>", 7 }, { "</think>", 8 },     { "<thi", 4 },
    { "nk>", 3 }, { "</", 2 }, { "think>", 6 },  { "Ċ</think>ĊĊ", 14 },
};
static const int32_t types[] = { 1, 1, 3, 3, 1, 1, 1, 1, 1 };

static struct ak_tokenizer *create(void)
{
    struct ak_vocab vocab = ak_vocab_none;
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };
    vocab.model = (struct ak_text){ "gpt2", 4 };
    vocab.pre = (struct ak_text){ "gpt-2", 5 };
    vocab.tokens = vocab.merges = pieces; /* no merges */
    vocab.types = types;
    vocab.n_tokens = sizeof pieces / sizeof *pieces;
    ck_assert_msg(ak_tok_create(&vocab, &t, &error) == AKUNU_OK, "%s", error.message);
    return t;
}

/* Adds the tokens, digits, as long as none is forced. Returns how many were added. */
static size_t count_free(int64_t budget, bool is_open, bool anywhere, const char *tokens)
{
    struct ak_tokenizer *t = create();
    struct akunu_reasoning given = { .size = sizeof given,
                                     .budget = budget,
                                     .begin = "<think>",
                                     .end = "</think>",
                                     .closing = "</think>",
                                     .begins_anywhere = anywhere,
                                     .is_open = is_open };
    struct ak_gen_reasoning r;
    struct ak_error error = { 0 };
    size_t n = 0;
    ck_assert_int_eq(ak_gen_reasoning_begin(&r, &given, t, &error), AKUNU_OK);
    while (tokens[n] && ak_gen_reasoning_forced(&r) < 0)
        ck_assert_int_eq(ak_gen_reasoning_add(&r, tokens[n++] - '0', &error), AKUNU_OK);
    if (ak_gen_reasoning_forced(&r) >= 0) {
        ck_assert_int_eq(ak_gen_reasoning_forced(&r), 3);
        ck_assert_int_eq(ak_gen_reasoning_add(&r, 3, &error), AKUNU_OK);
        ck_assert_int_eq(ak_gen_reasoning_forced(&r), -1); /* once, and content is free */
        for (int i = 0; i < 20; i++)
            ck_assert_int_eq(ak_gen_reasoning_add(&r, 0, &error), AKUNU_OK);
        ck_assert_int_eq(ak_gen_reasoning_forced(&r), -1);
    }
    ak_tok_free(t);
    return n;
}

START_TEST(counted_tokens)
{
    static const struct {
        int64_t budget;
        bool is_open, anywhere;
        const char *tokens;
        size_t n_free;
    } cases[] = {
        { 3, true, false, "000000", 3 },    { 0, true, false, "000000", 0 },
        { -1, true, false, "000000", 6 },   { 3, false, false, "000000", 6 }, /* no reasoning */
        { 3, false, false, "2000000", 4 },  /* the marker is not counted */
        { 3, false, false, "1120000", 6 },  /* whitespace before it */
        { 0, false, false, "1120000", 3 },  /* ended where it begins */
        { 2, false, false, "45000000", 4 }, /* a marker in two tokens */
        { 2, false, false, "0200000", 7 },  /* in the middle it is text … */
        { 2, false, true, "0200000", 4 },   /* … unless it counts there */
        { 3, true, false, "003000000", 9 }, /* ended by the model */
        { 3, true, false, "067000000", 9 }, /* in two tokens */
        { 2, true, false, "8000000", 7 },   /* within a longer token */
        { 3, true, false, "031200000", 6 }, /* two blocks share the budget */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n =
            count_free(cases[i].budget, cases[i].is_open, cases[i].anywhere, cases[i].tokens);
        ck_assert_msg(n == cases[i].n_free, "case %zu: %zu tokens before the end, not %zu", i, n,
                      cases[i].n_free);
    }
}
END_TEST

static void check_refused(struct akunu_reasoning given, const struct ak_tokenizer *t,
                          const char *word)
{
    struct ak_gen_reasoning r;
    struct ak_error error = { 0 };
    ck_assert_int_eq(ak_gen_reasoning_begin(&r, &given, t, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_msg(strstr(error.message, word) != NULL, "%s", error.message);
}

START_TEST(refusals)
{
    struct akunu_reasoning given = { .begin = "<think>", .end = "</think>", .closing = "</think>" };
    static char large[200];
    struct ak_tokenizer *t = create();
    memset(large, 'a', sizeof large - 1);
    check_refused(given, NULL, "vocabulary");
    given.closing = large;
    check_refused(given, t, "`closing` has 199 bytes");
    large[100] = '\0';
    check_refused(given, t, "`closing` has 100 tokens");
    given.end = NULL;
    check_refused(given, t, "`end` has 0 bytes");
    struct ak_gen_reasoning r; /* without a budget, or a marker, nothing is looked at */
    given.budget = -1;
    ck_assert_int_eq(ak_gen_reasoning_begin(&r, &given, NULL, NULL), AKUNU_OK);
    given.budget = 0;
    given.begin = NULL;
    ck_assert_int_eq(ak_gen_reasoning_begin(&r, &given, NULL, NULL), AKUNU_OK);
    ak_tok_free(t);
}
END_TEST

/* ---- Texts -------------------------------------------------------------- */
struct text {
    size_t n, n_bytes;
    akunu_token ids[ALL];
    size_t ends[ALL]; /* of each token's bytes */
    char bytes[TEXT_MAX];
};

static bool on_piece(size_t index, akunu_token token, const char *piece, size_t n_bytes, void *user)
{
    struct text *text = (struct text *)user + index;
    ck_assert_uint_lt(text->n_bytes + n_bytes, TEXT_MAX);
    if (n_bytes)
        memcpy(text->bytes + text->n_bytes, piece, n_bytes);
    text->n_bytes += n_bytes;
    if (token >= 0 && text->n < ALL) {
        text->ends[text->n] = text->n_bytes;
        text->ids[text->n++] = token;
    }
    return true;
}

struct fixture {
    struct akunu_model *model;
    struct akunu_session *session;
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params;
    struct akunu_reasoning reasoning;
    struct golden_text text;
};

static void set_up(struct fixture *f)
{
    struct akunu_session_params params = golden_params(1, 64, AKUNU_KV_F16);
    params.context = 256;
    params.max_sequences = N_CHOICES;
    f->model = golden_load("qwen2", NULL);
    f->session = akunu_session_new(f->model, &params);
    ck_assert_msg(f->session != NULL, "%s", akunu_last_error());
    golden_read_text("qwen2", &f->text);
    akunu_generation_params_default(&f->params, sizeof f->params);
    akunu_sampling_params_default(&f->sampling, sizeof f->sampling);
    akunu_reasoning_default(&f->reasoning, sizeof f->reasoning);
    ck_assert_int_eq(f->reasoning.budget, -1);
    f->params.sampling = &f->sampling;
    f->params.max_tokens = ALL;
    f->sampling.temperature = 0.0f;
    f->sampling.seed = 1;
    f->reasoning.begin = "<think>";
    f->reasoning.end = f->reasoning.closing = "</think>";
    f->reasoning.is_open = true;
    f->params.reasoning = &f->reasoning;
}

static void tear_down(struct fixture *f)
{
    akunu_session_free(f->session);
    akunu_model_free(f->model);
}

static struct text generate(struct fixture *f, int64_t budget)
{
    struct text out = { .n = 0 };
    akunu_sequence sequence = akunu_sequence_new(f->session);
    f->reasoning.budget = budget;
    f->params.on_piece = on_piece;
    f->params.user = &out;
    enum akunu_status status = akunu_session_generate(
        f->session, sequence, &(struct akunu_ids){ f->text.ids, PROMPT }, &f->params, NULL);
    ck_assert_msg(status == AKUNU_OK, "%s", akunu_last_error());
    akunu_sequence_free(f->session, sequence);
    return out;
}

static void check_same(const struct text *a, const struct text *b)
{
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_mem_eq(a->ids, b->ids, a->n * sizeof *a->ids);
    ck_assert_uint_eq(a->n_bytes, b->n_bytes);
    ck_assert_mem_eq(a->bytes, b->bytes, a->n_bytes);
}

/* The text without a budget, then the closing marker, then what a model writes after both. */
static void check_budget(struct fixture *f, const struct text *unlimited, size_t budget)
{
    akunu_token closing[32], prompt[PROMPT + ALL];
    int64_t n =
        akunu_tokenizer_encode(akunu_model_tokenizer(f->model), f->reasoning.closing,
                               strlen(f->reasoning.closing), AKUNU_PARSE_SPECIAL, closing, 32);
    struct text limited = generate(f, (int64_t)budget), rest = { .n = 0 };
    ck_assert_int_gt(n, 0);
    ck_assert_uint_eq(limited.n, ALL);
    ck_assert_mem_eq(limited.ids, unlimited->ids, budget * sizeof *limited.ids);
    ck_assert_mem_eq(limited.ids + budget, closing, (size_t)n * sizeof *closing);
    f->params.speculation = AKUNU_SPECULATION_NONE;
    struct text without_drafts = generate(f, (int64_t)budget);
    f->params.speculation = AKUNU_SPECULATION_AUTO;
    check_same(&limited, &without_drafts);
    if (f->sampling.temperature > 0.0f)
        return;

    size_t n_before = budget + (size_t)n;
    memcpy(prompt, f->text.ids, PROMPT * sizeof *prompt);
    memcpy(prompt + PROMPT, limited.ids, n_before * sizeof *prompt);
    akunu_sequence sequence = akunu_sequence_new(f->session);
    f->params.reasoning = NULL;
    f->params.max_tokens = (int64_t)(ALL - n_before);
    f->params.on_piece = on_piece;
    f->params.user = &rest;
    ck_assert_int_eq(akunu_session_generate(f->session, sequence,
                                            &(struct akunu_ids){ prompt, PROMPT + n_before },
                                            &f->params, NULL),
                     AKUNU_OK);
    f->params.reasoning = &f->reasoning;
    f->params.max_tokens = ALL;
    akunu_sequence_free(f->session, sequence);
    ck_assert_uint_eq(rest.n, ALL - n_before);
    ck_assert_mem_eq(rest.ids, limited.ids + n_before, rest.n * sizeof *rest.ids);
}

/* The text of token 0, which is a token like any other. */
static const char *text_of_first(const struct fixture *f)
{
    static char first[16];
    akunu_token zero = 0, id = -1;
    const struct akunu_tokenizer *tokenizer = akunu_model_tokenizer(f->model);
    ck_assert_int_gt(
        akunu_tokenizer_decode(tokenizer, &zero, 1, AKUNU_CONTINUE, first, sizeof first - 1), 0);
    ck_assert_int_eq(akunu_tokenizer_encode(tokenizer, first, strlen(first), 0, &id, 1), 1);
    ck_assert_int_eq(id, 0);
    return first;
}

START_TEST(limited_texts)
{
    static const float temperatures[] = { 0.0f, 1.0f };
    struct fixture f;
    set_up(&f);
    const char *first = text_of_first(&f);
    for (size_t i = 0; i < 2; i++)
        for (int plain = 0; plain < 2; plain++) { /* samplers, or the temperature alone */
            f.sampling.temperature = temperatures[i];
            f.sampling.samplers = plain ? "temperature" : NULL;
            struct text unlimited = generate(&f, -1);
            check_budget(&f, &unlimited, 0);
            check_budget(&f, &unlimited, 1);
            check_budget(&f, &unlimited, 12);
            struct text large = generate(&f, ALL);
            check_same(&large, &unlimited);
            f.reasoning.closing = first; /* another text than the end marker */
            check_budget(&f, &unlimited, 3);
            f.reasoning.closing = f.reasoning.end;
        }
    tear_down(&f);
}
END_TEST

/* With samplers or the temperature alone, ended by a marker or by another text. */
START_TEST(parallel)
{
    struct fixture f;
    struct text texts[N_CHOICES] = { { .n = 0 } };
    akunu_sequence sequences[N_CHOICES];
    set_up(&f);
    f.sampling.temperature = 0.9f;
    f.sampling.samplers = _i % 2 ? "temperature" : NULL;
    f.reasoning.budget = 5;
    f.reasoning.closing = _i / 2 ? text_of_first(&f) : f.reasoning.end;
    sequences[0] = akunu_sequence_new(f.session);
    f.params.on_piece = on_piece;
    f.params.user = texts;
    ck_assert_int_eq(akunu_session_generate_parallel(f.session, sequences, N_CHOICES,
                                                     &(struct akunu_ids){ f.text.ids, PROMPT },
                                                     &f.params, NULL),
                     AKUNU_OK);
    for (size_t i = 0; i < N_CHOICES; i++)
        akunu_sequence_free(f.session, sequences[i]);
    for (size_t i = 0; i < N_CHOICES; i++, f.sampling.seed++) {
        struct text alone = generate(&f, 5);
        check_same(&texts[i], &alone);
    }
    tear_down(&f);
}
END_TEST

static struct akunu_grammar *parse(const char *gbnf)
{
    struct akunu_grammar *grammar = akunu_grammar_parse(gbnf, strlen(gbnf));
    ck_assert_msg(grammar != NULL, "%s", akunu_last_error());
    return grammar;
}

/* A grammar goes first: what it forbids is not forced. */
START_TEST(grammars)
{
    struct fixture f;
    set_up(&f);
    struct akunu_grammar *letters = parse("root ::= [a-z ]+");
    struct akunu_grammar *closed = parse("root ::= [a-z ]+ \"</think>\" [a-z]+");
    f.sampling.grammar = letters;
    struct text unlimited = generate(&f, -1), limited = generate(&f, 4);
    check_same(&unlimited, &limited);
    f.sampling.grammar = closed;
    limited = generate(&f, 4);
    ck_assert_msg(strncmp(limited.bytes + limited.ends[3], "</think>", 8) == 0, "%s",
                  limited.bytes);
    akunu_grammar_free(letters);
    akunu_grammar_free(closed);
    tear_down(&f);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("reasoning");
    TCase *c = tcase_create("reasoning");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, counted_tokens);
    tcase_add_test(c, refusals);
    tcase_add_test(c, limited_texts);
    tcase_add_loop_test(c, parallel, 0, 4);
    tcase_add_test(c, grammars);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return test_run(suite());
}

/* Texts of windows and segments of clips beside openai/whisper's, over the model of
 * tests/golden/speech.py: a formula, so that every choice of the search counts. */
#include "tests/speech/golden.h"

#include "base/mem.h"
#include "speech/transcribe.h"

/* ---- The model ---------------------------------------------------------- */
enum { TEXTS = 4, TOKENS_MAX = 500, BLANK = 220 };

struct formula {
    struct ak_speech_tokens ids;
    uint64_t window;
    size_t n_prompt;
    struct formula_text {
        int32_t tokens[TOKENS_MAX];
        size_t n;
    } texts[TEXTS], before[TEXTS];
    float *rows[TEXTS + 1]; /* the last one: after the start token */
    const float *wanted[TEXTS];
    char text[8192];
};

static ak_status begin(void *user, const int32_t *prompt, size_t n, size_t start,
                       const float **last, const float **at, struct ak_error *error)
{
    struct formula *f = user;
    (void)error;
    f->n_prompt = n;
    for (size_t i = 0; i < TEXTS; i++) {
        memcpy(f->texts[i].tokens, prompt, n * sizeof *prompt);
        f->texts[i].n = n;
    }
    fill_logits(&f->ids, f->window, prompt, n, n, f->ids.n, f->rows[0]);
    fill_logits(&f->ids, f->window, prompt, start + 1, start + 1, f->ids.n, f->rows[TEXTS]);
    *last = f->rows[0];
    *at = f->rows[TEXTS];
    return AKUNU_OK;
}

static ak_status step(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                      const float *const **logits, struct ak_error *error)
{
    struct formula *f = user;
    (void)error;
    memcpy(f->before, f->texts, sizeof f->before);
    for (size_t i = 0; i < n; i++) {
        struct formula_text *t = &f->texts[i];
        *t = f->before[from[i]];
        t->tokens[t->n++] = tokens[i];
        fill_logits(&f->ids, f->window, t->tokens, t->n, f->n_prompt, f->ids.n, f->rows[i]);
        f->wanted[i] = f->rows[i];
    }
    *logits = f->wanted;
    return AKUNU_OK;
}

static ak_status encode(void *user, uint64_t first, uint32_t n, struct ak_error *error)
{
    (void)n;
    (void)error;
    ((struct formula *)user)->window = first;
    return AKUNU_OK;
}

static ak_status get_text(void *user, const int32_t *tokens, size_t n, const char **out,
                          size_t *n_bytes, struct ak_error *error)
{
    struct formula *f = user;
    (void)error;
    *n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        *n_bytes += (size_t)sprintf(f->text + *n_bytes, tokens[i] % 5 == 0 ? " " : " w%d",
                                    (int)tokens[i] % 97);
    *out = f->text;
    return AKUNU_OK;
}

static struct formula *formula_new(unsigned n_vocab)
{
    struct ak_error error;
    struct formula *f = calloc(1, sizeof *f);
    ck_assert_int_eq(ak_speech_tokens_find(n_vocab, &f->ids, &error), AKUNU_OK);
    for (size_t i = 0; i <= TEXTS; i++)
        f->rows[i] = malloc(n_vocab * sizeof **f->rows);
    return f;
}

static void formula_free(struct formula *f)
{
    for (size_t i = 0; i <= TEXTS; i++)
        free(f->rows[i]);
    free(f);
}

/* ---- Windows ------------------------------------------------------------ */
/* Each token's probability is its share of the softmax over the logits that the rules leave. */
static void check_probabilities(struct formula *f, const struct ak_speech_search *search,
                                const struct ak_speech_text *text)
{
    float *row = f->rows[0];
    int32_t tokens[TOKENS_MAX];
    memcpy(tokens, search->prompt, search->n_prompt * sizeof *tokens);
    for (size_t i = 0; i < text->n; i++) {
        double sum = 0.0;
        fill_logits(&f->ids, f->window, tokens, search->n_prompt + i, search->n_prompt, f->ids.n,
                    row);
        ak_speech_rules_apply(search->rules, NULL, text->tokens, i, row);
        for (int32_t k = 0; k < f->ids.n; k++)
            sum += exp((double)row[k]);
        ck_assert(is_near((double)text->probabilities[i], exp((double)row[text->tokens[i]]) / sum));
        tokens[search->n_prompt + i] = text->tokens[i];
    }
}

static void check_text(char *line)
{
    struct ak_error error = { 0 };
    struct formula *f = formula_new((unsigned)number(&line));
    f->window = (uint64_t)number(&line);
    struct ak_speech_rules rules = {
        .tokens = &f->ids, .timestamps = number(&line) > 0.0, .latest_start = 50, .blank = BLANK
    };
    int32_t prompt[16];
    struct ak_speech_search search = { .prompt = prompt, .rules = &rules, .max_tokens = 12 };
    search.n_texts = (uint32_t)number(&line);
    search.beams = search.n_texts > 0;
    search.n_texts += !search.beams;
    search.patience = (float)number(&line);
    search.length_penalty = (float)number(&line);
    search.start = (size_t)number(&line);
    search.n_prompt = (size_t)number(&line);
    for (size_t i = 0; i < search.n_prompt; i++)
        prompt[i] = (int32_t)number(&line);
    skip_bar(&line);
    struct ak_speech_model model = { f, begin, step };
    struct ak_speech_text text;
    ck_assert_msg(ak_speech_decode(&model, &search, &text, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert(is_near(text.mean_log_prob, number(&line)));
    ck_assert(is_near(text.no_speech, number(&line)));
    for (size_t i = 0; i < text.n; i++)
        ck_assert_int_eq(text.tokens[i], (int32_t)number(&line));
    double more;
    ck_assert(!next_number(&line, &more));
    check_probabilities(f, &search, &text);
    ak_speech_text_free(&text);
    formula_free(f);
}

START_TEST(texts_as_openai_whisper)
{
    char line[1024];
    FILE *file = open_golden("decode.txt");
    for (int i = 0; fgets(line, sizeof line, file); i++)
        if (i % 4 == _i)
            check_text(line);
    fclose(file);
}
END_TEST

/* ---- Clips -------------------------------------------------------------- */
static ak_status check_segment(void *user, const struct ak_speech_segment *s,
                               struct ak_error *error)
{
    (void)error;
    char **line = user;
    skip_bar(line);
    ck_assert_uint_eq(s->window, (uint64_t)number(line));
    ck_assert(is_near(s->start, number(line)));
    ck_assert(is_near(s->end, number(line)));
    ck_assert(is_near(s->mean_log_prob, number(line)));
    ck_assert(is_near(s->compression, number(line)));
    ck_assert(is_near(s->no_speech, number(line)));
    ck_assert_uint_eq(s->n_tokens, (size_t)number(line));
    for (size_t i = 0; i < s->n_tokens; i++)
        ck_assert_int_eq(s->tokens[i], (int32_t)number(line));
    return AKUNU_OK;
}

static void check_clip(char *line)
{
    static const float temperature = 0.0f;
    struct ak_error error = { 0 };
    int32_t prompt[16];
    struct formula *f = formula_new((unsigned)number(&line));
    struct ak_speech_clip clip = { .user = f,
                                   .n_frames = (uint64_t)number(&line),
                                   .encode = encode,
                                   .model = { f, begin, step },
                                   .text = get_text };
    struct ak_speech_task task = { .tokens = &f->ids,
                                   .context = 448,
                                   .end = UINT64_MAX,
                                   .prompt = prompt,
                                   .max_tokens = 8,
                                   .blank = BLANK,
                                   .temperatures = &temperature,
                                   .n_temperatures = 1,
                                   .patience = 1.0f,
                                   .length_penalty = -1.0f,
                                   .max_compression = 2.4f };
    task.timestamps = number(&line) > 0.0;
    task.beams = (uint32_t)number(&line);
    task.use_previous = number(&line) > 0.0;
    task.keep_prompt = number(&line) > 0.0;
    task.translate = number(&line) > 0.0;
    task.min_log_prob = (float)number(&line);
    task.max_no_speech = (float)number(&line);
    task.first = (uint64_t)number(&line);
    task.n_prompt = (size_t)number(&line);
    for (size_t i = 0; i < task.n_prompt; i++)
        prompt[i] = (int32_t)number(&line);
    ck_assert_msg(ak_speech_transcribe(&clip, &task, check_segment, &line, &error) == AKUNU_OK,
                  "%s", error.message);
    ck_assert_uint_eq(strspn(line, " \n"), strlen(line));
    formula_free(f);
}

START_TEST(segments_as_openai_whisper)
{
    char line[4096];
    FILE *file = open_golden("transcribe.txt");
    for (int i = 0; fgets(line, sizeof line, file); i++)
        if (i % 4 == _i)
            check_clip(line);
    fclose(file);
}
END_TEST

static ak_status stop(void *user, const struct ak_speech_segment *s, struct ak_error *error)
{
    (void)s;
    ++*(int *)user;
    return ak_fail(error, AKUNU_ERROR_CANCELLED, "stopped");
}

/* Temperatures above 0: the same text for the same seed, tried in order while the text is unlikely;
 * a caller may stop. */
START_TEST(sampled)
{
    static const float temperatures[] = { 0.0f, 0.4f, 0.8f };
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    struct ak_speech_clip clip = {
        .user = f, .n_frames = 100, .encode = encode, .model = { f, begin, step }, .text = get_text
    };
    struct ak_speech_task task = { .tokens = &f->ids,
                                   .context = 448,
                                   .end = UINT64_MAX,
                                   .max_tokens = 6,
                                   .blank = BLANK,
                                   .temperatures = temperatures,
                                   .n_temperatures = 3,
                                   .best_of = 3,
                                   .patience = 1.0f,
                                   .length_penalty = -1.0f,
                                   .max_compression = NAN,
                                   .max_no_speech = NAN,
                                   .min_log_prob = 0.0f };
    int n = 0;
    ck_assert_int_eq(ak_speech_transcribe(&clip, &task, stop, &n, &error), AKUNU_ERROR_CANCELLED);
    ck_assert_int_eq(n, 1);

    int32_t prompt[] = { f->ids.start, f->ids.no_timestamps }, first[6];
    struct ak_speech_rules rules = { .tokens = &f->ids, .blank = BLANK };
    struct ak_speech_search search = { .prompt = prompt,
                                       .n_prompt = 2,
                                       .rules = &rules,
                                       .n_texts = 3,
                                       .patience = 1.0f,
                                       .length_penalty = -1.0f,
                                       .temperature = 1.0f,
                                       .max_tokens = 6 };
    bool differs = false;
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct ak_speech_text text, again;
        search.seed = seed;
        ck_assert_int_eq(ak_speech_decode(&clip.model, &search, &text, &error), AKUNU_OK);
        ck_assert_int_eq(ak_speech_decode(&clip.model, &search, &again, &error), AKUNU_OK);
        ck_assert_uint_eq(text.n, again.n);
        ck_assert_mem_eq(text.tokens, again.tokens, text.n * sizeof *text.tokens);
        differs = differs || (seed > 0 && memcmp(first, text.tokens, sizeof *first) != 0);
        if (seed == 0)
            memcpy(first, text.tokens, sizeof *first);
        ak_speech_text_free(&text);
        ak_speech_text_free(&again);
    }
    ck_assert(differs);
    formula_free(f);
}
END_TEST

/* ---- Hot words ---------------------------------------------------------- */
struct recorded {
    int32_t tokens[TOKENS_MAX];
    size_t n;
};

static ak_status record(void *user, const int32_t *prompt, size_t n, size_t start,
                        const float **last, const float **at, struct ak_error *error)
{
    struct recorded *r = user;
    (void)start, (void)last, (void)at;
    ck_assert_uint_le(n, TOKENS_MAX);
    memcpy(r->tokens, prompt, n * sizeof *prompt);
    r->n = n;
    return ak_fail(error, AKUNU_ERROR_CANCELLED, "recorded");
}

static ak_status encode_nothing(void *user, uint64_t first, uint32_t n, struct ak_error *error)
{
    (void)user, (void)first, (void)n, (void)error;
    return AKUNU_OK;
}

static size_t read_tokens(char **line, int32_t out[TOKENS_MAX])
{
    size_t n = (size_t)number(line);
    ck_assert_uint_le(n, TOKENS_MAX);
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)number(line);
    return n;
}

static void check_prompt(char *line)
{
    static const float temperature = 0.0f;
    static int32_t hotwords[TOKENS_MAX], before[TOKENS_MAX], prefix[TOKENS_MAX], want[TOKENS_MAX];
    struct ak_error error = { 0 };
    struct ak_speech_tokens ids;
    struct recorded r;
    struct ak_speech_clip clip = {
        .user = &r, .n_frames = 100, .encode = encode_nothing, .model = { &r, record, NULL }
    };
    struct ak_speech_task task = { .tokens = &ids,
                                   .context = 448,
                                   .end = UINT64_MAX,
                                   .prompt = before,
                                   .prefix = prefix,
                                   .hotwords = hotwords,
                                   .use_previous = true,
                                   .temperatures = &temperature,
                                   .n_temperatures = 1 };
    ck_assert_int_eq(ak_speech_tokens_find(51864, &ids, &error), AKUNU_OK);
    task.timestamps = number(&line) > 0.0;
    task.n_hotwords = read_tokens(&line, hotwords);
    task.n_prompt = read_tokens(&line, before);
    task.n_prefix = read_tokens(&line, prefix);
    size_t n = read_tokens(&line, want);
    ck_assert_int_eq(ak_speech_transcribe(&clip, &task, stop, NULL, &error), AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(r.n, n);
    ck_assert_mem_eq(r.tokens, want, n * sizeof *want);

    /* a prompt that is kept comes after them, and there is room for a text */
    if (task.n_prefix == 0 && task.n_hotwords > 100) {
        task.keep_prompt = true;
        ak_speech_transcribe(&clip, &task, stop, NULL, &error);
        ck_assert_uint_le(r.n, 448 / 4 * 3 + 2);
        ck_assert_mem_eq(r.tokens + 1, hotwords, 100 * sizeof *hotwords);
    }
}

START_TEST(prompts_as_faster_whisper)
{
    char line[8192];
    int n = 0;
    FILE *file = open_golden("hotwords.txt");
    for (; fgets(line, sizeof line, file); n++)
        check_prompt(line);
    ck_assert_int_eq(n, 10);
    fclose(file);
}
END_TEST

/* ---- Grammars ----------------------------------------------------------- */
enum { WORDS = 3, WORD_KINDS = 11 };

/* A text has three words; word i is a token of kind i. */
struct kinds {
    const struct ak_speech_tokens *ids;
    uint32_t masks[WORDS + 1][51864 / 32 + 1];
    float penalty;
};

static ak_status find_kinds(void *user, const int32_t *written, size_t n,
                            struct ak_speech_allowed *out, struct ak_error *error)
{
    struct kinds *k = user;
    size_t n_words = 0;
    (void)error;
    *out = (struct ak_speech_allowed){ .end = true, .more = true, .penalty = k->penalty };
    for (size_t i = 0; i < n; i++)
        if (written[i] < k->ids->end && (size_t)written[i] % WORD_KINDS != n_words++)
            return AKUNU_OK;
    ck_assert_uint_le(n_words, WORDS);
    out->tokens = k->masks[n_words];
    out->end = n_words == WORDS;
    out->more = !out->end;
    return AKUNU_OK;
}

static struct kinds *kinds_new(const struct ak_speech_tokens *ids)
{
    struct kinds *k = calloc(1, sizeof *k);
    k->ids = ids;
    k->penalty = INFINITY;
    for (int32_t i = 0; i < ids->end; i++)
        if (i % WORD_KINDS < WORDS)
            k->masks[i % WORD_KINDS][i / 32] |= UINT32_C(1) << (i % 32);
    return k;
}

/* Counts the words, and checks their kinds and that a time in a text ends it. */
static size_t check_kinds(const struct kinds *k, const struct ak_speech_text *text, bool timestamps)
{
    size_t n_words = 0;
    for (size_t i = 0; i < text->n; i++) {
        bool is_time = text->tokens[i] >= k->ids->first_time;
        ck_assert(is_time || (size_t)text->tokens[i] % WORD_KINDS == n_words);
        ck_assert(!is_time || (timestamps && (i == 0 || i + 1 == text->n)));
        n_words += !is_time;
    }
    return n_words;
}

/* Greedy, beams and samples, with and without times. */
START_TEST(constrained)
{
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    struct kinds *kinds = kinds_new(&f->ids);
    struct ak_speech_constraint constraint = { kinds, find_kinds };
    int32_t prompt[] = { f->ids.start, f->ids.no_timestamps };
    bool timestamps = _i % 2 == 0;
    struct ak_speech_rules rules = {
        .tokens = &f->ids, .timestamps = timestamps, .latest_start = 50, .blank = BLANK
    };
    struct ak_speech_search search = { .prompt = prompt,
                                       .n_prompt = timestamps ? 1 : 2,
                                       .rules = &rules,
                                       .n_texts = _i < 2 ? 1 : TEXTS,
                                       .beams = _i == 2 || _i == 3,
                                       .patience = 1.0f,
                                       .length_penalty = -1.0f,
                                       .temperature = _i < 4 ? 0.0f : 0.8f,
                                       .max_tokens = 12 };
    struct ak_speech_model model = { f, begin, step };
    bool differs = false;
    for (f->window = 0; f->window < 8; f->window++) {
        struct ak_speech_text any, hard, soft;
        ck_assert_int_eq(ak_speech_decode(&model, &search, &any, &error), AKUNU_OK);
        search.constraint = &constraint;
        ck_assert_int_eq(ak_speech_decode(&model, &search, &hard, &error), AKUNU_OK);
        ck_assert_uint_eq(check_kinds(kinds, &hard, timestamps), WORDS);
        kinds->penalty = 1000.0f; /* as good as never */
        ck_assert_int_eq(ak_speech_decode(&model, &search, &soft, &error), AKUNU_OK);
        ck_assert_uint_eq(check_kinds(kinds, &soft, timestamps), WORDS);
        ak_speech_text_free(&soft);
        kinds->penalty = 1e-9f; /* as good as none */
        ck_assert_int_eq(ak_speech_decode(&model, &search, &soft, &error), AKUNU_OK);
        differs = differs || soft.n != hard.n ||
                  memcmp(soft.tokens, hard.tokens, soft.n * sizeof *soft.tokens) != 0;
        kinds->penalty = INFINITY;
        search.constraint = NULL;
        ak_speech_text_free(&any);
        ak_speech_text_free(&hard);
        ak_speech_text_free(&soft);
    }
    ck_assert(differs);
    free(kinds);
    formula_free(f);
}
END_TEST

/* A grammar of one text leaves a single continuation at each step, and a suppressed token is
 * written if there is no other. */
START_TEST(constrained_to_one_text)
{
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    struct kinds *kinds = kinds_new(&f->ids);
    struct ak_speech_constraint constraint = { kinds, find_kinds };
    int32_t prompt[] = { f->ids.start };
    const int32_t words[WORDS] = { 11 * 7, 11 * 9 + 1, 11 * 300 + 2 };
    struct ak_speech_rules rules = { .tokens = &f->ids,
                                     .timestamps = true,
                                     .latest_start = 50,
                                     .blank = BLANK,
                                     .suppressed = &words[1],
                                     .n_suppressed = 1 };
    struct ak_speech_search search = { .prompt = prompt,
                                       .n_prompt = 1,
                                       .rules = &rules,
                                       .constraint = &constraint,
                                       .n_texts = TEXTS,
                                       .beams = true,
                                       .patience = 1.0f,
                                       .length_penalty = -1.0f,
                                       .max_tokens = 12 };
    struct ak_speech_model model = { f, begin, step };
    struct ak_speech_text text;
    memset(kinds->masks, 0, sizeof kinds->masks);
    for (int i = 0; i < WORDS; i++)
        kinds->masks[i][words[i] / 32] |= UINT32_C(1) << (words[i] % 32);
    ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_OK);
    ck_assert_uint_ge(text.n, WORDS + 1);
    ck_assert_mem_eq(text.tokens + 1, words, sizeof words);
    ck_assert_uint_eq(check_kinds(kinds, &text, true), WORDS);
    ak_speech_text_free(&text);
    free(kinds);
    formula_free(f);
}
END_TEST

START_TEST(refused)
{
    struct ak_error error = { 0 };
    struct ak_speech_tokens ids;
    ck_assert_int_eq(ak_speech_tokens_find(32000, &ids, &error), AKUNU_ERROR_UNSUPPORTED);
    struct formula *f = formula_new(51865);
    int32_t prompt[] = { f->ids.start };
    struct ak_speech_rules rules = { .tokens = &f->ids, .blank = -1 };
    struct ak_speech_search search = { .prompt = prompt,
                                       .n_prompt = 1,
                                       .rules = &rules,
                                       .n_texts = AK_SPEECH_TEXTS_MAX + 1,
                                       .patience = 1.0f,
                                       .max_tokens = 1 };
    struct ak_speech_model model = { f, begin, step };
    struct ak_speech_text text;
    ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_null(text.tokens);
    search.n_texts = 2;
    search.beams = true;
    search.patience = NAN;
    ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_ERROR_ARGUMENT);
    formula_free(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("speech");
    TCase *any = tcase_create("any");
    tcase_add_loop_test(any, texts_as_openai_whisper, 0, 4);
    tcase_add_loop_test(any, segments_as_openai_whisper, 0, 4);
    tcase_add_test(any, sampled);
    tcase_add_test(any, prompts_as_faster_whisper);
    tcase_add_loop_test(any, constrained, 0, 6);
    tcase_add_test(any, constrained_to_one_text);
    tcase_add_test(any, refused);
    suite_add_tcase(suite, any);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

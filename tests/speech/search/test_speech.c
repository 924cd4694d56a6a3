/* Texts of windows and segments of clips beside openai/whisper's, over the model of
 * tests/golden/speech.py: a formula, so that every choice of the search counts. */
#include "tests/speech/search/golden.h"

#include "base/mem.h"
#include "speech/search/text.h"
#include "speech/transcribe/chunks.h"
#include "tests/out_of_memory.h"

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

/* ---- Sampling ----------------------------------------------------------- */
enum { ATTEMPTS_MAX = 8 };

/* The formula's model, or a scripted one, and what it saw: the first text of each attempt. */
struct attempts {
    struct formula *f;
    size_t n;
    struct formula_text first[ATTEMPTS_MAX + 1];
    size_t n_prompt[ATTEMPTS_MAX + 1];
    /* scripted attempt i: its only token, and by how much its logit is above that of another */
    const int32_t *tokens;
    const float *gaps;
};

static void end_attempt(struct attempts *a)
{
    if (a->n > 0)
        a->first[a->n - 1] = a->f->texts[0];
}

static ak_status begin_attempt(void *user, const int32_t *prompt, size_t n, size_t start,
                               const float **last, const float **at, struct ak_error *error)
{
    struct attempts *a = user;
    end_attempt(a);
    ck_assert_uint_lt(a->n, ATTEMPTS_MAX);
    a->n_prompt[a->n++] = n;
    return begin(a->f, prompt, n, start, last, at, error);
}

static ak_status step_attempt(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                              const float *const **logits, struct ak_error *error)
{
    return step(((struct attempts *)user)->f, n, from, tokens, logits, error);
}

/* Every window sounds alike. */
static ak_status encode_alike(void *user, uint64_t first, uint32_t n, struct ak_error *error)
{
    (void)user, (void)first, (void)n, (void)error;
    return AKUNU_OK;
}

static ak_status ignore_segment(void *user, const struct ak_speech_segment *s,
                                struct ak_error *error)
{
    (void)user, (void)s, (void)error;
    return AKUNU_OK;
}

static bool is_alike(const struct formula_text *a, const struct formula_text *b)
{
    return a->n == b->n && memcmp(a->tokens, b->tokens, a->n * sizeof *a->tokens) == 0;
}

static double score_of(const struct ak_speech_text *text)
{
    return text->sum / (double)text->n;
}

/* The texts of a window are independent, so that of more of them the best is more probable. */
START_TEST(texts_differ)
{
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    int32_t prompt[] = { f->ids.start, f->ids.no_timestamps };
    struct ak_speech_rules rules = { .tokens = &f->ids, .blank = BLANK };
    struct ak_speech_search search = { .prompt = prompt,
                                       .n_prompt = 2,
                                       .rules = &rules,
                                       .patience = 1.0f,
                                       .length_penalty = -1.0f,
                                       .temperature = 1.0f,
                                       .seed = 3,
                                       .max_tokens = 6 };
    struct ak_speech_model model = { f, begin, step };
    double one = 0.0, all = 0.0;
    size_t n_alike = 0;
    for (f->window = 0; f->window < 9; f->window += 3) {
        double before = -INFINITY;
        for (search.n_texts = 1; search.n_texts <= TEXTS; search.n_texts++) {
            struct ak_speech_text text;
            ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_OK);
            ck_assert_double_ge(score_of(&text), before);
            check_probabilities(f, &search, &text);
            before = score_of(&text);
            one += search.n_texts == 1 ? before : 0.0;
            all += search.n_texts == TEXTS ? before : 0.0;
            ak_speech_text_free(&text);
        }
        for (size_t i = 0; i < TEXTS; i++)
            for (size_t k = 0; k < i; k++)
                n_alike += is_alike(&f->texts[i], &f->texts[k]);
    }
    ck_assert_uint_le(n_alike, 1); /* of 18 pairs, by chance */
    ck_assert_double_gt(all, one + 0.1);
    formula_free(f);
}
END_TEST

enum { LIKELY = 1000, UNLIKELY = 2000 };

/* Two tokens, whose logits are 2 apart. */
static ak_status begin_two(void *user, const int32_t *prompt, size_t n, size_t start,
                           const float **last, const float **at, struct ak_error *error)
{
    struct formula *f = user;
    (void)prompt, (void)n, (void)start, (void)error;
    for (int32_t i = 0; i < f->ids.n; i++)
        f->rows[0][i] = -INFINITY;
    f->rows[0][LIKELY] = 2.0f;
    f->rows[0][UNLIKELY] = 0.0f;
    *last = *at = f->rows[0];
    return AKUNU_OK;
}

/* Of 80 samples as many are the likely token as its share of the softmax over logit / temperature
 * says, 1 / (1 + e^(−2 / temperature)), within three standard deviations. */
START_TEST(warmth_flattens)
{
    static const float temperatures[] = { 0.5f, 1.0f, 4.0f };
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    int32_t prompt[] = { f->ids.start, f->ids.no_timestamps };
    struct ak_speech_rules rules = { .tokens = &f->ids, .blank = BLANK };
    struct ak_speech_model model = { f, begin_two, step };
    enum { SAMPLES = 80 };
    for (size_t i = 0; i < sizeof temperatures / sizeof *temperatures; i++) {
        double n_likely = 0.0, share = 1.0 / (1.0 + exp(-2.0 / (double)temperatures[i]));
        for (uint64_t seed = 0; seed < SAMPLES; seed++) {
            struct ak_speech_search search = { .prompt = prompt,
                                               .n_prompt = 2,
                                               .rules = &rules,
                                               .n_texts = 1,
                                               .length_penalty = -1.0f,
                                               .temperature = temperatures[i],
                                               .seed = seed,
                                               .max_tokens = 1 };
            struct ak_speech_text text;
            ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_OK);
            ck_assert(text.n == 1 && (text.tokens[0] == LIKELY || text.tokens[0] == UNLIKELY));
            n_likely += text.tokens[0] == LIKELY;
            ak_speech_text_free(&text);
        }
        ck_assert_msg(fabs(n_likely - SAMPLES * share) <=
                          3.0 * sqrt(SAMPLES * share * (1.0 - share)),
                      "temperature %g: %g of %d, expected %g", (double)temperatures[i], n_likely,
                      SAMPLES, SAMPLES * share);
    }
    formula_free(f);
}
END_TEST

/* The windows and attempts of a recording, all heard alike, differ; only the seed and the place in
 * the recording decide. */
static void sample_windows(struct formula *f, uint64_t origin, uint64_t seed, struct attempts *out)
{
    static const float temperatures[] = { 1.0f, 1.0f };
    struct ak_error error = { 0 };
    struct ak_speech_clip clip = { .user = f,
                                   .n_frames = 6000,
                                   .origin = origin,
                                   .encode = encode_alike,
                                   .model = { out, begin_attempt, step_attempt },
                                   .text = get_text };
    struct ak_speech_task task = { .tokens = &f->ids,
                                   .context = 448,
                                   .end = UINT64_MAX,
                                   .max_tokens = 6,
                                   .blank = BLANK,
                                   .temperatures = temperatures,
                                   .n_temperatures = 2,
                                   .best_of = 1,
                                   .length_penalty = -1.0f,
                                   .max_compression = NAN,
                                   .max_no_speech = NAN,
                                   .min_log_prob = 0.0f,
                                   .seed = seed };
    *out = (struct attempts){ .f = f };
    ck_assert_int_eq(ak_speech_transcribe(&clip, &task, ignore_segment, NULL, &error), AKUNU_OK);
    end_attempt(out);
    ck_assert_uint_eq(out->n, 4);
}

START_TEST(windows_and_attempts_differ)
{
    struct formula *f = formula_new(51864);
    struct attempts *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    sample_windows(f, 0, 7, a);
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert(!is_alike(&a->first[i], &a->first[k]));
    sample_windows(f, 3000, 7, b);
    for (size_t i = 0; i < 2; i++) /* its first window is the second one of the other clip */
        ck_assert(is_alike(&b->first[i], &a->first[i + 2]));
    sample_windows(f, 0, 8, b);
    for (size_t i = 0; i < 4; i++)
        ck_assert(!is_alike(&b->first[i], &a->first[i]));
    free(a);
    free(b);
    formula_free(f);
}
END_TEST

/* ---- Fallback ----------------------------------------------------------- */
/* Tokens of scripted texts: what they spell compresses well, better or hardly at all. */
enum { REPEATS = 1000, REPEATS_MORE = 2000, PLAIN = 3000 };

static ak_status begin_scripted(void *user, const int32_t *prompt, size_t n, size_t start,
                                const float **last, const float **at, struct ak_error *error)
{
    struct attempts *a = user;
    AK_TRY(begin_attempt(a, prompt, n, start, last, at, error));
    for (int32_t i = 0; i < a->f->ids.n; i++)
        a->f->rows[0][i] = -INFINITY;
    a->f->rows[0][PLAIN + ATTEMPTS_MAX] = 0.0f;
    a->f->rows[0][a->tokens[a->n - 1]] = a->gaps[a->n - 1];
    return AKUNU_OK;
}

/* The text ends after one token. */
static ak_status end_scripted(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                              const float *const **logits, struct ak_error *error)
{
    struct formula *f = ((struct attempts *)user)->f;
    AK_TRY(step(f, n, from, tokens, logits, error));
    for (size_t i = 0; i < n; i++)
        for (int32_t k = 0; k < f->ids.n; k++)
            f->rows[i][k] = k == f->ids.end ? 0.0f : -INFINITY;
    return AKUNU_OK;
}

static ak_status spell_scripted(void *user, const int32_t *tokens, size_t n, const char **out,
                                size_t *n_bytes, struct ak_error *error)
{
    static const char plain[] = " the quick brown fox jumps over a lazy dog";
    struct formula *f = user;
    (void)error;
    *n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t times = tokens[i] >= PLAIN ? 1 : tokens[i] >= REPEATS_MORE ? 40 : 10;
        for (size_t k = 0; k < times; k++, *n_bytes += sizeof plain - 1)
            memcpy(f->text + *n_bytes, plain, sizeof plain);
    }
    *out = f->text;
    return AKUNU_OK;
}

static ak_status note_segment(void *user, const struct ak_speech_segment *s, struct ak_error *error)
{
    (void)error;
    ck_assert_uint_eq(s->n_tokens, 1);
    *(int32_t *)user = s->tokens[0];
    return AKUNU_OK;
}

/* Decodes a window at three temperatures, so low that the best token is always taken, and returns
 * the token that stays. Tokens are 0 where no attempt is expected. */
static int32_t fall_back(const int32_t tokens[3], const float gaps[3], float min_log_prob)
{
    static const float temperatures[] = { 0.0f, 0.01f, 0.02f };
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    struct attempts *a = calloc(1, sizeof *a);
    struct ak_speech_clip clip = { .user = f,
                                   .n_frames = 100,
                                   .encode = encode_alike,
                                   .model = { a, begin_scripted, end_scripted },
                                   .text = spell_scripted };
    struct ak_speech_task task = { .tokens = &f->ids,
                                   .context = 448,
                                   .end = UINT64_MAX,
                                   .max_tokens = 6,
                                   .blank = BLANK,
                                   .temperatures = temperatures,
                                   .n_temperatures = 3,
                                   .best_of = 1,
                                   .length_penalty = -1.0f,
                                   .max_compression = 2.4f,
                                   .max_no_speech = NAN,
                                   .min_log_prob = min_log_prob };
    int32_t kept = -1;
    size_t n = 0;
    a->f = f;
    a->tokens = tokens;
    a->gaps = gaps;
    ck_assert_int_eq(ak_speech_transcribe(&clip, &task, note_segment, &kept, &error), AKUNU_OK);
    while (n < 3 && tokens[n] > 0)
        n++;
    ck_assert_uint_eq(a->n, n);
    free(a);
    formula_free(f);
    return kept;
}

/* A token whose logit is x above the only other one has a log-probability of −ln(1 + e^−x): −0.47
 * for 0.5, −0.31 for 1, −0.13 for 2; half of that is the mean. */
START_TEST(best_attempt_stays)
{
    static const struct {
        int32_t tokens[3];
        float gaps[3], min_log_prob;
        int32_t kept;
    } cases[] = {
        /* none is good: the most probable one, at any place */
        { { PLAIN, PLAIN + 1, PLAIN + 2 }, { 0.5f, 2.0f, 1.0f }, 0.0f, PLAIN + 1 },
        { { PLAIN, PLAIN + 1, PLAIN + 2 }, { 2.0f, 0.5f, 1.0f }, 0.0f, PLAIN },
        { { PLAIN, PLAIN + 1, PLAIN + 2 }, { 0.5f, 1.0f, 2.0f }, 0.0f, PLAIN + 2 },
        /* of those that do not repeat */
        { { REPEATS, PLAIN + 1, PLAIN + 2 }, { 5.0f, 1.0f, 0.5f }, 0.0f, PLAIN + 1 },
        { { PLAIN, REPEATS, REPEATS + 1 }, { 0.5f, 5.0f, 6.0f }, 0.0f, PLAIN },
        /* all repeat: the most probable one, whichever does so most */
        { { REPEATS, REPEATS_MORE, REPEATS + 1 }, { 1.0f, 2.0f, 0.5f }, -1.0f, REPEATS_MORE },
        { { REPEATS_MORE, REPEATS, REPEATS + 1 }, { 1.0f, 0.5f, 2.0f }, -1.0f, REPEATS + 1 },
        /* a good one ends the search, whatever was before */
        { { REPEATS, PLAIN + 1 }, { 5.0f, 0.5f }, -1.0f, PLAIN + 1 },
        { { PLAIN, PLAIN + 1 }, { 0.5f, 2.0f }, -0.2f, PLAIN + 1 },
        { { PLAIN }, { 0.5f }, -1.0f, PLAIN },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(fall_back(cases[i].tokens, cases[i].gaps, cases[i].min_log_prob),
                         cases[i].kept);
}
END_TEST

/* After a window that was decoded above 0.5 the text so far is no prompt, also if an earlier
 * attempt stayed. */
START_TEST(failed_window_ends_the_prompt)
{
    static const float gaps[] = { 1.0f, 5.0f, 1.0f, 5.0f };
    static const int32_t tokens[] = { PLAIN, REPEATS, PLAIN + 1, REPEATS + 1 };
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    struct attempts *a = calloc(1, sizeof *a);
    for (int warm = 0; warm < 2; warm++) {
        const float temperatures[] = { 0.0f, warm ? 0.6f : 0.01f };
        struct ak_speech_clip clip = { .user = f,
                                       .n_frames = 6000,
                                       .encode = encode_alike,
                                       .model = { a, begin_scripted, end_scripted },
                                       .text = spell_scripted };
        struct ak_speech_task task = { .tokens = &f->ids,
                                       .context = 448,
                                       .end = UINT64_MAX,
                                       .use_previous = true,
                                       .max_tokens = 6,
                                       .blank = BLANK,
                                       .temperatures = temperatures,
                                       .n_temperatures = 2,
                                       .best_of = 1,
                                       .length_penalty = -1.0f,
                                       .max_compression = 2.4f,
                                       .max_no_speech = NAN,
                                       .min_log_prob = -0.1f };
        int32_t kept = -1;
        *a = (struct attempts){ .f = f, .tokens = tokens, .gaps = gaps };
        ck_assert_int_eq(ak_speech_transcribe(&clip, &task, note_segment, &kept, &error), AKUNU_OK);
        ck_assert_int_eq(kept, PLAIN + 1);
        ck_assert_uint_eq(a->n, 4);
        ck_assert_uint_eq(a->n_prompt[2], a->n_prompt[0] + (warm ? 0 : 2));
    }
    free(a);
    formula_free(f);
}
END_TEST

/* ---- Text --------------------------------------------------------------- */
#define R "\xef\xbf\xbd"

/* What Python's bytes.decode(errors="replace") makes of them. */
START_TEST(malformed_text_is_replaced)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        { "", "" },
        { "abc", "abc" },
        { "\xe5", R },
        { "ab\xe5\xae", "ab" R },
        { "\xe5\xae\x89", "\xe5\xae\x89" },
        { "\xe5"
          "A",
          R "A" },
        { "\xe5\xae"
          "A",
          R "A" },
        { "\xf0\x9f\x98", R },
        { "\xf0\x9f\x98\x80\xf0\x9f", "\xf0\x9f\x98\x80" R },
        { "\x80\x81", R R },
        { "\xc0\xaf", R R },
        { "\xe0\x80\x80", R R R },
        { "\xe0\xa0", R },
        { "\xed\xa0\x80", R R R },
        { "\xf4\x90\x80\x80", R R R R },
        { "\xf5\x80", R R },
        { "\xf1\x80\x80\xe1\x80\xc2"
          "b\x80"
          "c",
          R R R "b" R "c" },
        { "\xff\xfe", R R },
        { "\xc2\xe5\xae\x89", R "\xe5\xae\x89" },
    };
    struct ak_error error = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_buffer text = { 0 };
        ck_assert_int_eq(ak_speech_add_utf8(&text, cases[i].bytes, strlen(cases[i].bytes), &error),
                         AKUNU_OK);
        ck_assert_uint_eq(text.n, strlen(cases[i].text));
        ck_assert(text.n == 0 || memcmp(text.bytes, cases[i].text, text.n) == 0);
        ak_buffer_free(&text);
    }
}
END_TEST

/* Where a character, or what is left of one, ends that begins before a byte. */
START_TEST(ends_of_characters)
{
    static const char text[] = "a\xe5\xae\x89\xe5\xae"
                               "b\xf0\x9f\x98\x80\x80\xe5";
    static const size_t ends[] = { 0, 1, 4, 4, 4, 6, 6, 7, 11, 11, 11, 11, 12, 13 };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        ck_assert_uint_eq(ak_speech_character_end(text, sizeof text - 1, i), ends[i]);
}
END_TEST

/* A model that writes what it is told, in tokens from 1000 on that spell bytes. */
struct dictation {
    struct formula *f;
    int32_t tokens[16];
    const char *pieces[16];
    size_t n, written, n_begun;
    /* position at which each token of text begins, then where the last one ends */
    const uint32_t *at;
    uint64_t windows[8]; /* their first frames */
    size_t n_windows;
};

static void dictate(struct dictation *d, float *row)
{
    for (int32_t i = 0; i < d->f->ids.n; i++)
        row[i] = -100.0f;
    bool more = d->written < d->n && d->n_windows <= 1;
    row[more ? d->tokens[d->written] : d->f->ids.end] = 100.0f;
    d->written++;
}

static ak_status begin_dictated(void *user, const int32_t *prompt, size_t n, size_t start,
                                const float **last, const float **at, struct ak_error *error)
{
    struct dictation *d = user;
    (void)prompt, (void)n, (void)start, (void)error;
    d->written = 0;
    d->n_begun++;
    dictate(d, d->f->rows[0]);
    *last = *at = d->f->rows[0];
    return AKUNU_OK;
}

static ak_status step_dictated(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                               const float *const **logits, struct ak_error *error)
{
    struct dictation *d = user;
    (void)from, (void)tokens, (void)error;
    ck_assert_uint_eq(n, 1);
    dictate(d, d->f->rows[0]);
    d->f->wanted[0] = d->f->rows[0];
    *logits = d->f->wanted;
    return AKUNU_OK;
}

static ak_status spell_dictated(void *user, const int32_t *tokens, size_t n, const char **out,
                                size_t *n_bytes, struct ak_error *error)
{
    struct dictation *d = user;
    (void)error;
    *n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        *n_bytes += (size_t)sprintf(d->f->text + *n_bytes, "%s", d->pieces[tokens[i] - 1000]);
    *out = d->f->text;
    return AKUNU_OK;
}

static ak_status encode_dictated(void *user, uint64_t first, uint32_t n, struct ak_error *error)
{
    struct dictation *d = user;
    (void)n, (void)error;
    ck_assert_uint_lt(d->n_windows, 8);
    d->windows[d->n_windows++] = first;
    return AKUNU_OK;
}

/* The row before a token of text attends to where that is said, the last one to what follows. A
 * token that takes no time is less sure of its place than the one after it. */
static ak_status score_dictated(void *user, const int32_t *tokens, size_t n, float *probabilities,
                                struct ak_speech_scores *scores, struct ak_error *error)
{
    enum { POSITIONS = 1500, BEFORE = 2 /* start, no_timestamps, then the text */ };
    const struct dictation *d = user;
    (void)error;
    *scores = (struct ak_speech_scores){ ak_alloc(n * POSITIONS, sizeof(float)), 1, n, POSITIONS };
    if (!scores->data)
        return ak_fail_memory(error, "scores", n * POSITIONS * sizeof(float));
    memset(scores->data, 0, n * POSITIONS * sizeof(float));
    ck_assert(tokens[0] == d->f->ids.start && tokens[1] == d->f->ids.no_timestamps);
    ck_assert_int_eq(tokens[n - 1], d->f->ids.end);
    for (size_t i = 0; i + BEFORE < n; i++) {
        float *row = scores->data + (i + BEFORE - 1) * POSITIONS;
        bool is_last = i + BEFORE + 1 == n, takes_time = is_last || d->at[i + 1] > d->at[i];
        uint32_t end = is_last || !takes_time ? POSITIONS : d->at[i + 1];
        for (uint32_t at = d->at[i] - (takes_time ? 0 : 10); at < end; at++)
            row[at] = 20.0f;
    }
    for (size_t i = 0; i + 1 < n; i++)
        probabilities[i] = 0.5f;
    return AKUNU_OK;
}

static ak_status collect_text(void *user, const struct ak_speech_segment *s, struct ak_error *error)
{
    (void)error;
    strncat(user, s->text, s->n_bytes);
    strcat(user, "|");
    return AKUNU_OK;
}

/* The tokens are pieces of text, and times where a piece is "@": half a second for each text. Only
 * the first window has them. */
static void dictation_begin(struct dictation *d, const char *const *pieces)
{
    *d = (struct dictation){ .f = formula_new(51864) };
    int32_t time = d->f->ids.first_time;
    for (; pieces[d->n]; d->n++) {
        bool is_time = pieces[d->n][0] == '@';
        d->pieces[d->n] = pieces[d->n];
        d->tokens[d->n] = is_time ? time : 1000 + (int32_t)d->n;
        time += is_time ? 0 : 25;
    }
}

static struct ak_speech_clip dictation_clip(struct dictation *d)
{
    return (struct ak_speech_clip){ .user = d,
                                    .n_frames = 3000,
                                    .encode = encode_dictated,
                                    .model = { d, begin_dictated, step_dictated },
                                    .text = spell_dictated,
                                    .score = score_dictated };
}

static struct ak_speech_task dictation_task(const struct dictation *d)
{
    static const float temperatures[] = { 0.0f, 0.0f };
    return (struct ak_speech_task){ .tokens = &d->f->ids,
                                    .context = 448,
                                    .end = UINT64_MAX,
                                    .timestamps = true,
                                    .max_tokens = 16,
                                    .blank = -1,
                                    .temperatures = temperatures,
                                    .n_temperatures = 2,
                                    .length_penalty = -1.0f,
                                    .max_compression = 1.2f,
                                    .max_no_speech = NAN,
                                    .min_log_prob = NAN,
                                    .hallucination_silence = NAN };
}

/* Transcribes a window, which begins at frame `first` of the clip. Returns the number of attempts.
 * *found, if it is not NULL, has room for 256 bytes and gets the texts of the segments, each
 * followed by a bar. */
static size_t transcribe_dictated(const char *const *pieces, uint64_t first, const uint64_t *breaks,
                                  size_t n_breaks, char *found)
{
    char text[1024] = "";
    struct ak_error error = { 0 };
    struct dictation d;
    dictation_begin(&d, pieces);
    struct ak_speech_clip clip = dictation_clip(&d);
    struct ak_speech_task task = dictation_task(&d);
    clip.n_frames = first + 3000;
    clip.breaks = breaks;
    clip.n_breaks = n_breaks;
    task.first = first;
    ck_assert_msg(ak_speech_transcribe(&clip, &task, collect_text, text, &error) == AKUNU_OK, "%s",
                  error.message);
    if (found)
        memcpy(found, text, 256);
    formula_free(d.f);
    return d.n_begun;
}

static void check_dictated(const char *const *pieces, const char *expected)
{
    char found[256];
    transcribe_dictated(pieces, 0, NULL, 0, found);
    ck_assert_str_eq(found, expected);
}

/* A speaker who says something again after a long silence is not taken for a model that repeats
 * itself. */
START_TEST(repetition_after_a_break)
{
#define SENTENCE " the quick brown fox jumps over a lazy dog"
    static const char *const twice[] = { "@", SENTENCE, "@", "@", SENTENCE, "@", NULL };
    static const char *const once[] = { "@", SENTENCE, "@", NULL };
    static const char *const loop[] = { "@", SENTENCE, "@", "@", SENTENCE SENTENCE, "@", NULL };
    static const char *const loop_first[] = {
        "@", SENTENCE SENTENCE, "@", "@", SENTENCE, "@", NULL
    };
    /* the first text is at frames 0 to 50, the second at 50 to 100 */
    static const uint64_t breaks[] = { 52, 90 }, before[] = { 0, 10 }, after[] = { 80, 300 },
                          later[] = { 1052 };
    ck_assert_uint_eq(transcribe_dictated(once, 0, NULL, 0, NULL), 1);
    ck_assert_uint_eq(transcribe_dictated(twice, 0, NULL, 0, NULL), 2);
    ck_assert_uint_eq(transcribe_dictated(twice, 0, breaks, 1, NULL), 1);
    ck_assert_uint_eq(transcribe_dictated(twice, 0, breaks, 2, NULL), 1);
    ck_assert_uint_eq(transcribe_dictated(twice, 0, before, 2, NULL), 2);
    ck_assert_uint_eq(transcribe_dictated(twice, 0, after, 2, NULL), 2);
    ck_assert_uint_eq(transcribe_dictated(twice, 1000, later, 1, NULL), 1);
    ck_assert_uint_eq(transcribe_dictated(twice, 1000, breaks, 1, NULL), 2); /* before it */
    ck_assert_uint_eq(transcribe_dictated(loop, 0, breaks, 1, NULL), 2);
    ck_assert_uint_eq(transcribe_dictated(loop_first, 0, breaks, 1, NULL), 2);
}
END_TEST

START_TEST(segments_are_utf8)
{
    static const char *const whole[] = { "@", " a", "\xe5\xae", "\x89", NULL };
    static const char *const cut[] = { "@", " a", "\xe5", NULL };
    static const char *const cut_in_two[] = { "@", " a", "\xe5", "\xae", NULL };
    static const char *const not_continued[] = { "@", "\xe5", " a", "\x89", NULL };
    static const char *const at_its_end[] = { "@", " a", "\xe5", "@", "@", " b", "@", NULL };
    static const char *const shared[] = {
        "@", " a", "\xe5", "@", "@", "\xae\x89", " b", "@", NULL
    };
    check_dictated(whole, " a\xe5\xae\x89|");
    check_dictated(cut, " a" R "|");
    check_dictated(cut_in_two, " a" R "|");
    check_dictated(not_continued, R " a" R "|");
    check_dictated(at_its_end, " a" R "| b|");
    check_dictated(shared, " a\xe5\xae\x89| b|");
}
END_TEST

/* ---- Words -------------------------------------------------------------- */
/* Appends "start-end text: word start-end, word start-end|" to a string. */
static ak_status collect_words(void *user, const struct ak_speech_segment *s,
                               struct ak_error *error)
{
    char *out = (char *)user + strlen(user);
    (void)error;
    out += sprintf(out, "%.2f-%.2f%.*s:", s->start, s->end, (int)s->n_bytes, s->text);
    for (size_t i = 0; i < s->n_words; i++)
        out += sprintf(out, "%s%.*s %.2f-%.2f", i ? "," : "", (int)s->words[i].n_bytes,
                       s->words[i].text, s->words[i].start, s->words[i].end);
    strcpy(out, "|");
    return AKUNU_OK;
}

static const char *const two_segments[] = { "@", " one", "@", "@", " two", " six", "@", NULL };

/* Times of segments are those of their words. The first word is aligned with all that is before it,
 * and shortened to twice the longest median of 0.7 s, as after any pause. If the text does not end
 * in a time, the next window begins after the last word. */
START_TEST(segments_follow_their_words)
{
    static const struct {
        const char *pieces[8];
        uint32_t at[4]; /* steps of 20 ms */
        bool timestamps;
        const char *segments;
        size_t n_windows;
        uint64_t next; /* first frame of the second window */
    } cases[] = {
        { { "@", " one", " two" },
          { 1300, 1325, 1350 },
          true,
          "25.10-27.00 one two: one 25.10-26.50, two 26.50-27.00|27.00-30.00:|",
          2,
          2700 },
        { { "@", " one", " two", "@" },
          { 1300, 1325, 1350 },
          true,
          "25.10-27.00 one two: one 25.10-26.50, two 26.50-27.00|",
          1,
          0 },
        { { " one", " two" },
          { 1300, 1325, 1350 },
          false,
          "25.10-27.00 one two: one 25.10-26.50, two 26.50-27.00|",
          1,
          0 },
        { { "@", " one", "@", "@", " two", " six", "@" },
          { 1300, 1325, 1350, 1400 },
          true,
          "25.10-26.50 one: one 25.10-26.50|26.50-28.00 two six: two 26.50-27.00, six "
          "27.00-28.00|",
          1,
          0 },
        /* a segment that takes no time is none */
        { { "@", " one", "@", "@", " two", "@" },
          { 1300, 1325, 1325 },
          true,
          "25.10-26.50 one: one 25.10-26.50|26.50-26.50:|",
          1,
          0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[512] = "";
        struct ak_error error = { 0 };
        struct dictation d;
        dictation_begin(&d, cases[i].pieces);
        struct ak_speech_clip clip = dictation_clip(&d);
        struct ak_speech_task task = dictation_task(&d);
        d.at = cases[i].at;
        task.words = true;
        task.timestamps = cases[i].timestamps;
        ck_assert_msg(ak_speech_transcribe(&clip, &task, collect_words, found, &error) == AKUNU_OK,
                      "%s", error.message);
        ck_assert_str_eq(found, cases[i].segments);
        ck_assert_uint_eq(d.n_windows, cases[i].n_windows);
        ck_assert_uint_eq(d.windows[0], 0);
        ck_assert_uint_eq(d.windows[1], cases[i].next);
        formula_free(d.f);
    }
}
END_TEST

/* Without memory a transcription fails and leaves nothing, wherever that is. */
START_TEST(without_memory)
{
    static const uint32_t at[] = { 1300, 1325, 1350, 1400 };
    char found[512];
    ak_status status = AKUNU_ERROR_MEMORY;
    for (long n = 0; status != AKUNU_OK; n++) {
        struct ak_error error = { 0 };
        struct dictation d;
        dictation_begin(&d, two_segments);
        struct ak_speech_clip clip = dictation_clip(&d);
        struct ak_speech_task task = dictation_task(&d);
        d.at = at;
        task.words = true;
        found[0] = '\0';
        refuse_allocation(n);
        status = ak_speech_transcribe(&clip, &task, collect_words, found, &error);
        ck_assert(status == (allow_allocations() ? AKUNU_ERROR_MEMORY : AKUNU_OK));
        formula_free(d.f);
    }
    ck_assert_str_eq(found, "25.10-26.50 one: one 25.10-26.50|26.50-28.00 two six: two "
                            "26.50-27.00, six 27.00-28.00|");
}
END_TEST

/* ---- Length ------------------------------------------------------------- */
static ak_status count_tokens(void *user, const struct ak_speech_segment *s, struct ak_error *error)
{
    (void)error;
    *(size_t *)user += s->n_tokens;
    return AKUNU_OK;
}

/* A model that never ends writes half of the context, or what it may, and the context is all there
 * is: the last token is not read. */
START_TEST(longest_texts)
{
    static const uint32_t cases[][2] = { { 0, 12 }, { 5, 5 }, { 23, 23 }, { 24, 23 }, { 99, 23 } };
    static const float temperature = 0.0f;
    struct formula *f = formula_new(51864);
    struct ak_speech_clip clip = {
        .user = f, .n_frames = 100, .encode = encode, .model = { f, begin, step }, .text = get_text
    };
    struct ak_speech_task task = { .tokens = &f->ids,
                                   .context = 24,
                                   .end = UINT64_MAX,
                                   .suppressed = &f->ids.end,
                                   .n_suppressed = 1,
                                   .blank = BLANK,
                                   .temperatures = &temperature,
                                   .n_temperatures = 1,
                                   .length_penalty = -1.0f,
                                   .max_compression = NAN,
                                   .max_no_speech = NAN,
                                   .min_log_prob = NAN };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_error error = { 0 };
        size_t n = 0;
        task.max_tokens = cases[i][0];
        ck_assert_int_eq(ak_speech_transcribe(&clip, &task, count_tokens, &n, &error), AKUNU_OK);
        ck_assert_uint_eq(n, cases[i][1]);
    }
    formula_free(f);
}
END_TEST

/* ---- Chunks ------------------------------------------------------------- */
/* Where at least 2 s were cut out between the ranges of a chunk: frames of the chunk, in which
 * ranges are 0.1 s apart. */
START_TEST(breaks_of_chunks)
{
    enum { S = AK_MEL_RATE };
    static struct ak_audio_range ranges[] = {
        { 0, 3 * S }, { 7 * S, S }, { 9 * S, 2 * S }, { 13 * S, S }, { 17 * S - 1, S }
    };
    static struct ak_vad_chunk list[] = { { 0, 2, 0, 410 }, { 2, 3, 420, 850 } };
    const struct ak_transcribe_chunks chunks = { .speech = { .ranges = ranges, .n = 5 },
                                                 .list = list,
                                                 .n = 2 };
    static const struct ak_vad_chunk all = { 0, 5, 0, 850 };
    uint64_t found[4];
    ck_assert_uint_eq(ak_transcribe_chunks_breaks(&chunks, 0, found), 1);
    ck_assert_uint_eq(found[0], 310);
    ck_assert_uint_eq(ak_transcribe_chunks_breaks(&chunks, 1, found), 2);
    ck_assert_uint_eq(found[0], 210);
    ck_assert_uint_eq(found[1], 320);
    ranges[3].n += 2 * S - S / 2; /* 1.5 s less */
    ck_assert_uint_eq(ak_transcribe_chunks_breaks(&chunks, 1, found), 1);
    ranges[1].first -= 2 * S + 1;
    list[0] = all;
    ck_assert_uint_eq(ak_transcribe_chunks_breaks(&chunks, 0, found), 2);
    ck_assert_uint_eq(found[0], 420);
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

    /* half of the context is what a text has if nothing is asked for */
    task.max_tokens = 448 / 2;
    ck_assert_int_eq(ak_speech_transcribe(&clip, &task, stop, NULL, &error), AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(r.n, n);
    ck_assert_mem_eq(r.tokens, want, n * sizeof *want);
    task.max_tokens = 0;

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

/* Without times a grammar of one text leaves one text to search. */
static ak_status step_alone(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                            const float *const **logits, struct ak_error *error)
{
    ck_assert_uint_eq(n, 1);
    return step(user, n, from, tokens, logits, error);
}

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
    rules.timestamps = false;
    model.step = step_alone;
    ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_OK);
    ck_assert_uint_eq(text.n, WORDS);
    ck_assert_mem_eq(text.tokens, words, sizeof words);
    ak_speech_text_free(&text);
    free(kinds);
    formula_free(f);
}
END_TEST

/* Every logit after the rules, of texts that a grammar constrains. Logits are 0, and those of times
 * so low that they decide nothing. */
START_TEST(every_logit_of_a_grammar)
{
    struct ak_error error;
    struct ak_speech_tokens ids;
    static uint32_t mask[51865 / 32 + 1];
    static float logits[51865];
    ck_assert_int_eq(ak_speech_tokens_find(51865, &ids, &error), AKUNU_OK);
    const struct ak_speech_rules rules = {
        .tokens = &ids, .timestamps = true, .latest_start = 50, .blank = 7
    };
    const int32_t time = ids.first_time + 30, end_time = ids.first_time + 60;
    const struct {
        int32_t written[4];
        size_t n;
        bool ends, more;
        int32_t first_time, end_of_times; /* times that may follow */
    } cases[] = {
        { { 0 }, 0, false, true, ids.first_time, ids.first_time + 51 },
        { { time }, 1, false, true, 0, 0 },
        { { time, 40 }, 2, false, true, 0, 0 },
        { { time, 40 }, 2, true, true, time + 1, ids.n },
        { { time, 40, end_time }, 3, true, true, end_time, ids.n },
        { { time, 40, end_time }, 3, true, false, 0, 0 },
    };
    for (int i = 0; i < ids.end; i += 5)
        mask[i / 32] |= UINT32_C(1) << (i % 32);
    mask[0] &= ~UINT32_C(1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct ak_speech_allowed allowed = { mask, cases[c].ends, cases[c].more, INFINITY };
        bool after_time = cases[c].n > 0 && cases[c].written[cases[c].n - 1] >= ids.first_time,
             has_text = cases[c].n > 0 && (cases[c].n == 1 || !after_time);
        for (int32_t i = 0; i < ids.n; i++)
            logits[i] = i < ids.first_time ? 0.0f : -100.0f;
        ak_speech_rules_apply(&rules, &allowed, cases[c].written, cases[c].n, logits);
        for (int32_t i = 0; i < ids.n; i++) {
            bool may = i < ids.end  ? has_text && i > 0 && i % 5 == 0 :
                       i == ids.end ? cases[c].ends :
                                      i >= cases[c].first_time && i < cases[c].end_of_times;
            ck_assert_msg((logits[i] > -INFINITY) == may, "case %zu, token %d", c, (int)i);
        }
    }
}
END_TEST

/* A grammar that allows no token and no end. */
static ak_status find_none(void *user, const int32_t *written, size_t n,
                           struct ak_speech_allowed *out, struct ak_error *error)
{
    static const uint32_t none[51864 / 32 + 1];
    (void)user, (void)written, (void)n, (void)error;
    *out = (struct ak_speech_allowed){ .tokens = none, .more = true, .penalty = INFINITY };
    return AKUNU_OK;
}

/* Then the text ends where it would begin. */
START_TEST(constrained_to_nothing)
{
    static const struct ak_speech_constraint constraint = { NULL, find_none };
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    int32_t prompt[] = { f->ids.start, f->ids.no_timestamps };
    struct ak_speech_rules rules = { .tokens = &f->ids, .blank = BLANK };
    struct ak_speech_model model = { f, begin, step };
    for (int beams = 0; beams < 2; beams++) {
        struct ak_speech_search search = { .prompt = prompt,
                                           .n_prompt = 2,
                                           .rules = &rules,
                                           .constraint = &constraint,
                                           .n_texts = beams ? TEXTS : 1,
                                           .beams = beams,
                                           .patience = 1.0f,
                                           .length_penalty = 1.0f,
                                           .max_tokens = 12 };
        struct ak_speech_text text;
        ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_OK);
        ck_assert_uint_eq(text.n, 0);
        ck_assert(is_near(text.sum, 0.0));
        ak_speech_text_free(&text);
    }
    formula_free(f);
}
END_TEST

/* The latest first time: none, the first, the last, one beyond. */
START_TEST(first_times)
{
    static const struct {
        int32_t latest, n; /* times that may be first */
    } cases[] = { { -1, AK_SPEECH_TIMES }, { 0, 1 },       { 50, 51 },
                  { 1499, 1500 },          { 1500, 1501 }, { 1501, AK_SPEECH_TIMES } };
    static float logits[51865];
    struct ak_error error;
    struct ak_speech_tokens ids;
    ck_assert_int_eq(ak_speech_tokens_find(51865, &ids, &error), AKUNU_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct ak_speech_rules rules = {
            .tokens = &ids, .timestamps = true, .latest_start = cases[c].latest, .blank = BLANK
        };
        memset(logits, 0, sizeof logits);
        ak_speech_rules_apply(&rules, NULL, NULL, 0, logits);
        for (int32_t i = 0; i < ids.n; i++)
            ck_assert_msg((logits[i] > -INFINITY) ==
                              (i >= ids.first_time && i < ids.first_time + cases[c].n),
                          "latest %d, token %d", (int)cases[c].latest, (int)i);
    }
}
END_TEST

/* At a temperature of 0 there is one text, however many are asked for. */
START_TEST(greedy_is_one_text)
{
    struct ak_error error = { 0 };
    struct formula *f = formula_new(51864);
    int32_t prompt[] = { f->ids.start, f->ids.no_timestamps };
    struct ak_speech_rules rules = { .tokens = &f->ids, .blank = BLANK };
    struct ak_speech_search search = { .prompt = prompt,
                                       .n_prompt = 2,
                                       .rules = &rules,
                                       .n_texts = TEXTS,
                                       .length_penalty = -1.0f,
                                       .max_tokens = 6 };
    struct ak_speech_model model = { f, begin, step_alone };
    struct ak_speech_text text;
    ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error), AKUNU_OK);
    ck_assert_uint_gt(text.n, 1);
    ak_speech_text_free(&text);
    formula_free(f);
}
END_TEST

START_TEST(refused)
{
    static const struct {
        uint32_t n_texts, max_tokens;
        size_t n_prompt, start;
        bool beams;
        float patience;
        const char *message; /* NULL: it is taken */
    } cases[] = {
        { 1, 1, 1, 0, false, 1.0f, NULL },
        { AK_SPEECH_TEXTS_MAX, 1, 1, 0, true, 16.0f, NULL },
        { 0, 1, 1, 0, false, 1.0f, "0 texts at once; expected 1 to 64" },
        { AK_SPEECH_TEXTS_MAX + 1, 1, 1, 0, false, 1.0f, "65 texts at once; expected 1 to 64" },
        { 1, 0, 1, 0, false, 1.0f, "no prompt, or no room for a token" },
        { 1, 1, 0, 0, false, 1.0f, "no prompt, or no room for a token" },
        { 1, 1, 1, 1, false, 1.0f, "no prompt, or no room for a token" },
        { 2, 1, 1, 0, true, NAN, "patience is nan; expected more than 0, to 16" },
        { 2, 1, 1, 0, true, 0.0f, "patience is 0; expected more than 0, to 16" },
        { 2, 1, 1, 0, true, 17.0f, "patience is 17; expected more than 0, to 16" },
        { 2, 1, 1, 0, true, 0.2f, "patience is 0.2; expected more than 0, to 16" }, /* 0 texts */
    };
    struct ak_error error = { 0 };
    struct ak_speech_tokens ids;
    ck_assert_int_eq(ak_speech_tokens_find(51863, &ids, &error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_int_eq(ak_speech_tokens_find(51867, &ids, &error), AKUNU_ERROR_UNSUPPORTED);
    struct formula *f = formula_new(51865);
    int32_t prompt[] = { f->ids.start };
    struct ak_speech_rules rules = { .tokens = &f->ids, .blank = -1 };
    struct ak_speech_model model = { f, begin, step };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_speech_search search = { .prompt = prompt,
                                           .n_prompt = cases[i].n_prompt,
                                           .start = cases[i].start,
                                           .rules = &rules,
                                           .n_texts = cases[i].n_texts,
                                           .beams = cases[i].beams,
                                           .patience = cases[i].patience,
                                           .max_tokens = cases[i].max_tokens };
        struct ak_speech_text text;
        ck_assert_int_eq(ak_speech_decode(&model, &search, &text, &error),
                         cases[i].message ? AKUNU_ERROR_ARGUMENT : AKUNU_OK);
        if (cases[i].message) {
            ck_assert_str_eq(error.message, cases[i].message);
            ck_assert_ptr_null(text.tokens);
        }
        ak_speech_text_free(&text);
    }
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
    tcase_add_test(any, texts_differ);
    tcase_add_test(any, warmth_flattens);
    tcase_add_test(any, windows_and_attempts_differ);
    tcase_add_test(any, best_attempt_stays);
    tcase_add_test(any, failed_window_ends_the_prompt);
    tcase_add_test(any, malformed_text_is_replaced);
    tcase_add_test(any, ends_of_characters);
    tcase_add_test(any, segments_are_utf8);
    tcase_add_test(any, repetition_after_a_break);
    tcase_add_test(any, segments_follow_their_words);
    tcase_add_test(any, without_memory);
    tcase_add_test(any, longest_texts);
    tcase_add_test(any, breaks_of_chunks);
    tcase_add_test(any, prompts_as_faster_whisper);
    tcase_add_loop_test(any, constrained, 0, 6);
    tcase_add_test(any, constrained_to_one_text);
    tcase_add_test(any, constrained_to_nothing);
    tcase_add_test(any, every_logit_of_a_grammar);
    tcase_add_test(any, first_times);
    tcase_add_test(any, greedy_is_one_text);
    tcase_add_test(any, refused);
    suite_add_tcase(suite, any);
    return test_run(suite);
}

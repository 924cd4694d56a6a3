/* Words and their times beside openai/whisper's timing.py, over scores of attention that are a
 * formula (tests/golden/speech.py). */
#include "tests/speech/search/golden.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "speech/search/hallucination.h"
#include "speech/search/timing.h"

enum { HEADS = 2, POSITIONS = 1500, SEGMENTS = 4, TOKENS = 16 };

struct speaker {
    struct ak_speech_tokens ids;
    uint64_t seed;
};

static const char *const pieces[] = { " the", " cat", "ing",      ".",    ",", " \"", "\"", "!",
                                      " (",   ")",    "\xe2\x82", "\xac", " ", "'s",  "-",  " a" };

static ak_status get_text(void *user, const int32_t *tokens, size_t n, const char **out,
                          size_t *n_bytes, struct ak_error *error)
{
    (void)user;
    (void)error;
    ck_assert_uint_eq(n, 1);
    *out = pieces[tokens[0] % 16];
    *n_bytes = strlen(*out);
    return AKUNU_OK;
}

static float probability(const struct speaker *s, const int32_t *tokens, size_t n, float *logits)
{
    double sum = 0.0;
    if (tokens[n] >= s->ids.end)
        return 0.0f;
    fill_logits(&s->ids, 0, tokens, n, 0, s->ids.end + 1, logits);
    for (int32_t i = 0; i < s->ids.end; i++)
        sum += exp((double)logits[i]);
    return (float)(exp((double)logits[tokens[n]]) / sum);
}

static ak_status score(void *user, const int32_t *tokens, size_t n, float *probabilities,
                       struct ak_speech_scores *scores, struct ak_error *error)
{
    const struct speaker *s = user;
    float *logits = malloc(((size_t)s->ids.end + 1) * sizeof *logits);
    (void)error;
    *scores = (struct ak_speech_scores){ .data = ak_alloc(HEADS * n * POSITIONS, sizeof(float)),
                                         .n_heads = HEADS,
                                         .n_tokens = n,
                                         .n_positions = POSITIONS };
    for (size_t i = 0; i < HEADS * n * POSITIONS; i++) {
        uint64_t head = i / (n * POSITIONS), at = i % (n * POSITIONS);
        double noise = hash_unit((s->seed * HEADS + head) * POSITIONS * 512 + at);
        double distance = fabs((double)(at % POSITIONS) - 9.0 * (double)(at / POSITIONS));
        scores->data[i] = (float)(noise * 2.0 + 4.0 / (1.0 + distance / 8.0));
    }
    for (size_t i = 0; i + 1 < n; i++)
        probabilities[i] = probability(s, tokens, i + 1, logits);
    free(logits);
    return AKUNU_OK;
}

static void check_words(char *line)
{
    struct ak_error error = { 0 };
    struct speaker s;
    int32_t tokens[SEGMENTS][TOKENS];
    struct ak_speech_segment segments[SEGMENTS] = { 0 }, untimed[SEGMENTS];
    struct ak_speech_timing timing = { 0 };
    struct ak_speech_clip clip = { .user = &s, .text = get_text, .score = score };
    unsigned n_vocab = number(&line) > 0.0 ? 51865 : 51864;
    ck_assert_int_eq(ak_speech_tokens_find(n_vocab, &s.ids, &error), AKUNU_OK);
    struct ak_speech_task task = { .tokens = &s.ids, .context = 448 };
    task.language = ak_speech_language_find(number(&line) > 0.0 ? "en" : "ja");
    s.seed = (uint64_t)number(&line);
    uint64_t n_frames = (uint64_t)number(&line), window = (uint64_t)number(&line);
    timing.last_end = number(&line);
    size_t n = (size_t)number(&line);
    for (size_t i = 0; i < n; i++) {
        segments[i] = (struct ak_speech_segment){ .window = window, .tokens = tokens[i] };
        segments[i].start = number(&line);
        segments[i].end = number(&line);
        segments[i].n_tokens = (size_t)number(&line);
        for (size_t j = 0; j < segments[i].n_tokens; j++)
            tokens[i][j] = (int32_t)number(&line);
    }
    memcpy(untimed, segments, sizeof segments);
    for (int pass = 0; pass < 2; pass++) { /* the second has nothing of the first */
        memcpy(segments, untimed, sizeof segments);
        ck_assert_msg(ak_speech_time_words(&timing, &clip, &task, n_frames, segments, n, &error) ==
                          AKUNU_OK,
                      "%s", error.message);
    }
    for (size_t i = 0; i < n; i++) {
        skip_bar(&line);
        ck_assert(is_near(segments[i].start, number(&line)));
        ck_assert(is_near(segments[i].end, number(&line)));
        ck_assert_uint_eq(segments[i].n_words, (size_t)number(&line));
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < segments[i].n_words; j++) {
            skip_bar(&line);
            ck_assert(is_near(segments[i].words[j].start, number(&line)));
            ck_assert(is_near(segments[i].words[j].end, number(&line)));
            double wanted = number(&line);
            ck_assert(fabs(segments[i].words[j].probability - wanted) <= 1e-4 * wanted);
            ck_assert_uint_eq(segments[i].words[j].n_bytes, (size_t)number(&line));
            ck_assert(ak_is_utf8(segments[i].words[j].text, segments[i].words[j].n_bytes));
        }
    ak_speech_timing_free(&timing);
}

START_TEST(words_as_openai_whisper)
{
    char line[4096];
    FILE *file = open_golden("words.txt");
    for (int i = 0; fgets(line, sizeof line, file); i++)
        if (i % 4 == _i)
            check_words(line);
    fclose(file);
}
END_TEST

/* What openai/whisper makes of words after a pause: if the first one ends more than four times the
 * median of their lengths after the text before it, neither it nor the second one is longer than
 * twice the median. */
START_TEST(after_a_pause)
{
    static const size_t ends[] = { 4, 8, 12 };
    static const float probabilities[] = { 0.5f, 0.5f, 0.5f };
    static const struct {
        size_t n;
        uint32_t at[4];
        double last_end, times[3][2];
    } cases[] = {
        /* 2 s, with a median of 0.5 s, which end at the limit and after it */
        { 3, { 0, 100, 125, 150 }, 0.02, { { 0.0, 2.0 }, { 2.0, 2.5 }, { 2.5, 3.0 } } },
        { 3, { 0, 100, 125, 150 }, 0.0, { { 0.0, 2.0 }, { 2.0, 2.5 }, { 2.5, 3.0 } } },
        { 3, { 0, 100, 125, 150 }, -0.02, { { 1.0, 2.0 }, { 2.0, 2.5 }, { 2.5, 3.0 } } },
        /* 1.4 s, with a median of 0.3 s: what is left of the word begins before 1 s */
        { 3, { 0, 70, 85, 100 }, 0.0, { { 0.8, 1.4 }, { 1.4, 1.7 }, { 1.7, 2.0 } } },
        /* two words alone, both longer than twice the longest median of 0.7 s */
        { 2, { 0, 150, 250 }, 0.0, { { 2.2, 3.6 }, { 3.6, 5.0 } } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_error error;
        struct akunu_word words[3];
        size_t n = cases[i].n;
        const struct ak_speech_spoken spoken = { " one two six", ends, cases[i].at,
                                                 probabilities,  n,    true };
        struct ak_speech_span span = { .end = (double)cases[i].at[n] * 0.02, .n_tokens = n };
        ck_assert_int_eq(
            ak_speech_find_words(&spoken, 0.0, cases[i].last_end, words, &span, 1, &error),
            AKUNU_OK);
        ck_assert_uint_eq(span.n_words, n);
        for (size_t k = 0; k < n; k++)
            ck_assert_msg(is_near(words[k].start, cases[i].times[k][0]) &&
                              is_near(words[k].end, cases[i].times[k][1]),
                          "case %zu: word %zu from %g to %g", i, k, words[k].start, words[k].end);
        ck_assert(is_near(span.start, words[0].start) && is_near(span.end, words[n - 1].end));
    }
}
END_TEST

/* The pause before a segment's words begins where the segment before it ends, after its own words
 * have moved that end: at 0.4 s here, and not at 2 s. */
START_TEST(after_the_segment_before)
{
    static const size_t ends[] = { 4, 8, 12 };
    static const uint32_t at[] = { 0, 20, 125, 150 };
    static const float probabilities[] = { 0.5f, 0.5f, 0.5f };
    static const double times[][2] = { { 0.0, 0.4 }, { 1.5, 2.5 }, { 2.5, 3.0 } };
    const struct ak_speech_spoken spoken = { " one two six", ends, at, probabilities, 3, true };
    struct ak_speech_span spans[] = { { .end = 2.0, .n_tokens = 1 },
                                      { .start = 0.4, .end = 3.0, .n_tokens = 2 } };
    struct akunu_word words[3];
    struct ak_error error;
    ck_assert_int_eq(ak_speech_find_words(&spoken, 0.0, 0.0, words, spans, 2, &error), AKUNU_OK);
    ck_assert(spans[0].n_words == 1 && spans[1].n_words == 2);
    for (size_t k = 0; k < 3; k++)
        ck_assert_msg(is_near(words[k].start, times[k][0]) && is_near(words[k].end, times[k][1]),
                      "word %zu from %g to %g", k, words[k].start, words[k].end);
    ck_assert(is_near(spans[0].end, 0.4) && is_near(spans[1].start, 1.5));
}
END_TEST

/* ---- Texts that have no words ------------------------------------------- */
static ak_status get_nothing(void *user, const int32_t *tokens, size_t n, const char **out,
                             size_t *n_bytes, struct ak_error *error)
{
    (void)user, (void)tokens, (void)n, (void)error;
    *out = "";
    *n_bytes = 0;
    return AKUNU_OK;
}

/* Fails at the second token. */
static ak_status get_one(void *user, const int32_t *tokens, size_t n, const char **out,
                         size_t *n_bytes, struct ak_error *error)
{
    if (tokens[0] != 1)
        return ak_fail(error, AKUNU_ERROR_CANCELLED, "stopped");
    return get_text(user, tokens, n, out, n_bytes, error);
}

static ak_status score_never(void *user, const int32_t *tokens, size_t n, float *probabilities,
                             struct ak_speech_scores *scores, struct ak_error *error)
{
    (void)user, (void)tokens, (void)n, (void)probabilities, (void)scores, (void)error;
    ck_abort_msg("nothing to align");
    return AKUNU_OK;
}

/* Segments without a text, too long a text, and one that cannot be spelled keep their times. */
START_TEST(nothing_to_align)
{
    static const int32_t tokens[] = { 1, 2 };
    static const struct {
        ak_status (*text)(void *user, const int32_t *tokens, size_t n, const char **out,
                          size_t *n_bytes, struct ak_error *error);
        uint32_t context;
        size_t n_tokens;
        ak_status status;
    } cases[] = {
        { get_text, 448, 0, AKUNU_OK },
        { get_nothing, 448, 2, AKUNU_OK },
        { get_text, 6, 2, AKUNU_OK },
        { get_one, 448, 2, AKUNU_ERROR_CANCELLED },
    };
    struct ak_error error = { 0 };
    struct speaker s;
    ck_assert_int_eq(ak_speech_tokens_find(51864, &s.ids, &error), AKUNU_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_speech_timing timing = { 0 };
        struct ak_speech_clip clip = { .user = &s, .text = cases[i].text, .score = score_never };
        struct ak_speech_task task = { .tokens = &s.ids, .context = cases[i].context };
        struct ak_speech_segment segment = {
            .start = 1.0, .end = 2.5, .tokens = tokens, .n_tokens = cases[i].n_tokens
        };
        ck_assert_int_eq(ak_speech_time_words(&timing, &clip, &task, 3000, &segment, 1, &error),
                         cases[i].status);
        ck_assert_uint_eq(segment.n_words, 0);
        ck_assert(is_near(segment.start, 1.0) && is_near(segment.end, 2.5));
        ak_speech_timing_free(&timing);
    }
}
END_TEST

/* ---- Hallucinations ----------------------------------------------------- */
enum { WORDS = 16 };

static void read_segment(char **line, struct ak_speech_segment *s, struct akunu_word *words)
{
    s->words = words;
    s->start = number(line);
    s->end = number(line);
    s->n_words = (size_t)number(line);
    ck_assert_uint_le(s->n_words, WORDS);
    for (size_t i = 0; i < s->n_words; i++) {
        words[i].start = number(line);
        words[i].end = number(line);
        words[i].probability = number(line);
        words[i].text = number(line) > 0.0 ? "." : " word";
        words[i].n_bytes = strlen(words[i].text);
    }
}

static void check_silence(char *line)
{
    struct ak_speech_segment segments[8] = { 0 };
    struct akunu_word words[8][WORDS];
    struct ak_speech_silence silence = { .threshold = number(&line) };
    silence.window = (uint64_t)number(&line);
    silence.n_frames = (uint64_t)number(&line);
    silence.used = (uint64_t)number(&line);
    silence.last_end = number(&line);
    silence.ends_in_time = number(&line) > 0.0;
    uint64_t frames = (uint64_t)number(&line), next = (uint64_t)number(&line);
    size_t n = (size_t)number(&line), n_kept = (size_t)number(&line);
    bool skipped;
    for (size_t i = 0; i < n; i++)
        read_segment(&line, &segments[i], words[i]);
    ck_assert_uint_eq(ak_speech_skip_silence(&silence, segments, n, &frames, &skipped), n_kept);
    ck_assert(!skipped || n_kept == 0);
    ck_assert_uint_eq(
        silence.window + frames > silence.n_frames ? silence.n_frames - silence.window : frames,
        next);
}

START_TEST(silence_as_openai_whisper)
{
    char line[4096];
    int n = 0;
    FILE *file = open_golden("hallucination.txt");
    for (; fgets(line, sizeof line, file); n++)
        check_silence(line);
    ck_assert_int_eq(n, 48);
    fclose(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("words");
    TCase *any = tcase_create("any");
    tcase_add_loop_test(any, words_as_openai_whisper, 0, 4);
    tcase_add_test(any, after_a_pause);
    tcase_add_test(any, after_the_segment_before);
    tcase_add_test(any, nothing_to_align);
    tcase_add_test(any, silence_as_openai_whisper);
    suite_add_tcase(suite, any);
    return test_run(suite);
}

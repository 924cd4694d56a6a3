/* Streams over a model that hears words as they were said, or with the mistakes of real ones: words
 * are final when they should be, and none is lost or said twice. Then the chunks that a clip of
 * speech is divided into, and a pass that is too large. All without a model of speech. */
#include "tests/test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "speech/audio/mel.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "engine/session/model.h"
#include "tests/speech_clip.h"
#include "speech/transcribe/chunks.h"
#include "speech/transcribe/meeting.h"
#include "speech/transcribe/stream.h"

enum { RATE = AK_MEL_RATE, SECONDS = 40, WORDS = 128, WORD_BYTES = 48, LANGUAGE = 3 };

/* ---- What is said ------------------------------------------------------- */
/* Word i is said from i · every + 0.05 s on, for 0.3 s. */
struct spoken {
    char text[WORDS][WORD_BYTES];
    size_t n;
    double every;
};

static double word_start(const struct spoken *s, size_t i)
{
    return (double)i * s->every + 0.05;
}

static double word_end(const struct spoken *s, size_t i)
{
    return word_start(s, i) + 0.3;
}

/* Words that have ended by then. */
static size_t count_words(const struct spoken *s, double seconds)
{
    size_t n = 0;
    while (n < s->n && word_end(s, n) <= seconds + 1e-6)
        n++;
    return n;
}

/* " waa", " wab" and so on; every tenth ends a sentence. */
static void say_sentences(struct spoken *s)
{
    s->n = WORDS;
    s->every = 0.4;
    for (int i = 0; i < WORDS; i++)
        sprintf(s->text[i], " w%c%c%s", 'a' + i / 26, 'a' + i % 26, i % 10 == 9 ? "." : "");
}

/* Words of 40 bytes without a sentence's end. Ten of them are final when 12.5 s are kept, and as
 * long as a prompt may be. There is no space before the first. */
static void say_long_words(struct spoken *s)
{
    s->n = WORDS;
    s->every = 1.1;
    for (int i = 0; i < WORDS; i++) {
        memset(s->text[i], 'a' + i % 26, 40);
        s->text[i][0] = i > 0 ? ' ' : 'a';
        s->text[i][1] = (char)('a' + i / 26);
    }
}

/* Words of five characters of three bytes each, without spaces. */
static void say_without_spaces(struct spoken *s)
{
    s->n = WORDS;
    s->every = 0.4;
    for (int i = 0; i < WORDS; i++)
        for (int k = 0; k < 5; k++)
            sprintf(s->text[i] + 3 * k, "\xe5%c%c", 0x80 + i % 61, 0x80 + (i + 7 * k) % 64);
}

/* ---- What is heard ------------------------------------------------------ */
/* Mistakes of the model in words that are final already, and in what follows. */
struct mistakes {
    bool respells, loses; /* other capitals, commas and times; the first word is lost */
    size_t n_inserted;    /* words before the last final one that begin like it */
    size_t silent_every;  /* calls of which one hears nothing new; 0: none */
};

static struct listener {
    struct spoken spoken;
    struct mistakes mistakes;
    struct akunu_word heard[WORDS + 8]; /* in the last call */
    char texts[WORDS + 8][WORD_BYTES];
    size_t n_heard, n_calls;
    size_t n_final, n_known;              /* words of the text; that were heard at all */
    size_t n_partial, stop_after;         /* reports of words that may change */
    double pushed, last_seconds, longest; /* seconds; longest: audio of a call */
    const char *prompt;
} you;

static void hear_word(size_t i, double begin)
{
    const struct spoken *s = &you.spoken;
    bool respells = you.mistakes.respells && i < you.n_final;
    char *text = you.texts[you.n_heard];
    double late = respells ? 0.4 : 0.0;
    strcpy(text, s->text[i]);
    for (char *c = text; respells && *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    if (respells)
        strcat(text, ",");
    you.heard[you.n_heard++] = (struct akunu_word){ .start = word_start(s, i) - begin + late,
                                                    .end = word_end(s, i) - begin + late,
                                                    .probability = 0.5,
                                                    .text = text,
                                                    .n_bytes = strlen(text) };
}

static void hear_mistakes(size_t last)
{
    for (size_t i = 0; i < you.mistakes.n_inserted; i++) {
        char *text = you.texts[you.n_heard];
        snprintf(text, WORD_BYTES, "%.*sx", WORD_BYTES - 2, you.spoken.text[last]);
        you.heard[you.n_heard++] =
            (struct akunu_word){ .end = 0.01, .text = text, .n_bytes = strlen(text) };
    }
}

/* The prompt is what was said before the clip, at most its last 400 bytes or so, from a word on. */
static void check_prompt(const struct akunu_transcription_params *asked, size_t first)
{
    char before[WORDS * WORD_BYTES] = "";
    for (size_t i = 0; i < first; i++)
        strcat(before, you.spoken.text[i]);
    size_t n = strlen(before), n_prompt = asked->prompt ? strlen(asked->prompt) : 0;
    if (n == 0) {
        ck_assert_pstr_eq(asked->prompt, you.prompt);
        return;
    }
    ck_assert(n_prompt <= 400 && n_prompt <= n);
    ck_assert_uint_ge(n_prompt, n <= 400 ? n : 350);
    ck_assert_mem_eq(asked->prompt, before + n - n_prompt, n_prompt);
    ck_assert(ak_is_utf8(asked->prompt, n_prompt));
    ck_assert(n == n_prompt || *asked->prompt == ' ' || you.spoken.text[1][0] != ' ');
}

static void check_request(const struct ak_transcribe_clip *clip, double begin, double seconds,
                          size_t first)
{
    const struct akunu_transcription_params *asked = clip->asked;
    size_t positions = ((size_t)(seconds * 50.0 + 1e-6) + 384 + 63) / 64 * 64;
    ck_assert(fabs((double)clip->origin - begin * 100.0) <= 1.0);
    ck_assert(fabs(begin + seconds - you.pushed) < 1e-6);
    ck_assert(asked->word_times);
    ck_assert_uint_eq(asked->audio_context, positions < 1500 ? positions : 0);
    ck_assert_pstr_eq(asked->language,
                      you.longest > 4.0 ? ak_speech_language_code(LANGUAGE) : NULL);
    check_prompt(asked, first);
}

ak_status __wrap_ak_transcribe(struct ak_session *s, const struct ak_transcribe_clip *clip,
                               int32_t *language, struct ak_error *error);

/* The first sample of a clip tells when it begins. */
ak_status __wrap_ak_transcribe(struct ak_session *s, const struct ak_transcribe_clip *clip,
                               int32_t *language, struct ak_error *error)
{
    float sample;
    size_t n;
    (void)s;
    ck_assert_int_eq(ak_audio_read(clip->audio, &sample, 1, &n, error), AKUNU_OK);
    double begin = (double)sample * 0x1p20 / RATE, seconds = ak_audio_seconds(clip->audio);
    size_t first = 0, end = count_words(&you.spoken, begin + seconds);
    while (first < you.spoken.n && word_start(&you.spoken, first) < begin - 1e-6)
        first++;
    check_request(clip, begin, seconds, first);
    you.n_calls++;
    if (you.mistakes.silent_every > 0 && you.n_calls % you.mistakes.silent_every == 0)
        end = you.n_final;
    you.n_heard = 0;
    you.n_known = end;
    for (size_t i = first; i < end; i++) {
        if (i + 1 == you.n_final)
            hear_mistakes(i);
        if (!you.mistakes.loses || i > first || i >= you.n_final)
            hear_word(i, begin);
    }
    you.last_seconds = seconds;
    you.longest = fmax(you.longest, seconds);
    *language = LANGUAGE;
    size_t half = you.n_heard / 2; /* in two segments */
    struct akunu_segment segments[2] = { { .words = you.heard, .n_words = half },
                                         { .words = you.heard + half,
                                           .n_words = you.n_heard - half } };
    for (int i = 0; i < 2; i++)
        if (!clip->sink.on_segment(&segments[i], clip->sink.user))
            return ak_transcribe_fail_cancelled(error);
    return AKUNU_OK;
}

/* Words go on where the final ones end, in the times of the whole stream. */
static bool on_words(const struct akunu_word *words, size_t n, bool is_final, void *user)
{
    ck_assert_ptr_eq(user, &you);
    ck_assert_uint_le(you.n_final + n, you.n_known);
    ck_assert(is_final || you.n_final + n == you.n_known);
    for (size_t i = 0; i < n; i++) {
        size_t at = you.n_final + i;
        ck_assert_msg(words[i].n_bytes == strlen(you.spoken.text[at]) &&
                          memcmp(words[i].text, you.spoken.text[at], words[i].n_bytes) == 0,
                      "\"%.*s\", expected \"%s\"", (int)words[i].n_bytes, words[i].text,
                      you.spoken.text[at]);
        ck_assert(fabs(words[i].start - word_start(&you.spoken, at)) < 1e-6);
        ck_assert(fabs(words[i].end - word_end(&you.spoken, at)) < 1e-6);
    }
    you.n_final += is_final ? n : 0;
    you.n_partial += !is_final;
    return you.stop_after == 0 || you.n_partial < you.stop_after;
}

/* ---- Streams ------------------------------------------------------------ */
static struct ak_stream *open_stream(void)
{
    static struct ak_model model;
    static struct ak_session session = { .model = &model };
    const struct ak_transcribe_vad vad = { .silero = NULL };
    struct akunu_transcription_params params;
    struct ak_error error;
    struct ak_stream *stream;
    model.spec.config.encoder_context = 1500;
    akunu_transcription_params_default(&params, sizeof params);
    params.prompt = you.prompt;
    ck_assert_int_eq(ak_stream_new(&session, RATE, &params, &vad, on_words, &you, &stream, &error),
                     AKUNU_OK);
    return stream;
}

static ak_status push(struct ak_stream *stream, double seconds)
{
    struct ak_error error;
    size_t n = (size_t)(seconds * RATE), at = (size_t)(you.pushed * RATE + 0.5);
    float *samples = malloc(n * sizeof *samples);
    for (size_t i = 0; i < n; i++)
        samples[i] = (float)(at + i) * 0x1p-20f;
    you.pushed += seconds;
    ak_status status = ak_stream_push(stream, samples, n, &error);
    free(samples);
    return status;
}

static void finish(struct ak_stream *stream)
{
    struct ak_error error;
    size_t n_partial = you.n_partial;
    ck_assert_int_eq(ak_stream_finish(stream, &error), AKUNU_OK);
    ck_assert_uint_eq(you.n_final, count_words(&you.spoken, you.pushed));
    ck_assert_uint_eq(you.n_partial, n_partial + 1);
    ck_assert_int_eq(ak_stream_finish(stream, &error), AKUNU_OK); /* nothing is left */
    ck_assert_uint_eq(you.n_partial, n_partial + 1);
}

/* A quarter of a second at a time, and a transcription each half second: two of these agree on
 * every word that ended 2 s ago, and no more is final. At most 12 s are kept, and what is new. */
static void check_stream(void (*say)(struct spoken *), struct mistakes mistakes)
{
    memset(&you, 0, sizeof you);
    say(&you.spoken);
    you.mistakes = mistakes;
    you.prompt = "About words";
    struct ak_stream *stream = open_stream();
    for (int i = 0; i < 2 * SECONDS; i++) {
        ck_assert_int_eq(push(stream, 0.25), AKUNU_OK);
        ck_assert_uint_eq(you.n_calls, i > 0 ? (size_t)i - 1 : 0); /* too little is new */
        ck_assert_int_eq(push(stream, 0.25), AKUNU_OK);
        ck_assert_uint_eq(you.n_calls, (size_t)i);
        ck_assert_uint_eq(you.n_partial, (size_t)i);
        if (mistakes.silent_every == 0)
            ck_assert_uint_eq(you.n_final, i < 2 ? 0 : count_words(&you.spoken, you.pushed - 2.0));
    }
    you.mistakes = (struct mistakes){ .respells = false };
    finish(stream);
    ck_assert(you.longest <= 12.5 + 1e-6);
    ak_stream_free(stream);
}

START_TEST(every_word_once)
{
    static const struct mistakes mistakes[] = {
        { .respells = false }, { .respells = true },
        { .loses = true },     { .n_inserted = 1 },
        { .n_inserted = 2 },   { .n_inserted = 3, .respells = true },
        { .n_inserted = 5 }, /* more than is looked for: by their times */
        { .silent_every = 5 }, { .silent_every = 5, .loses = true, .respells = true },
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check_stream(say_sentences, mistakes[i]);
}
END_TEST

START_TEST(prompts_of_long_words)
{
    check_stream(say_long_words, (struct mistakes){ .respells = false });
}
END_TEST

START_TEST(prompts_without_spaces)
{
    check_stream(say_without_spaces, (struct mistakes){ .respells = false });
}
END_TEST

/* Of more than 28 s at once the last 8 s are kept, or what follows the last word: all that was
 * heard is final. */
START_TEST(pushed_at_once)
{
    for (int is_quiet = 0; is_quiet < 2; is_quiet++) {
        memset(&you, 0, sizeof you);
        say_sentences(&you.spoken);
        you.spoken.n = is_quiet ? 30 : WORDS; /* up to 12 s */
        struct ak_stream *stream = open_stream();
        ck_assert_int_eq(push(stream, 30.0), AKUNU_OK);
        size_t n = count_words(&you.spoken, 30.0);
        ck_assert_uint_eq(you.n_final, n);
        ck_assert_int_eq(push(stream, 1.0), AKUNU_OK);
        double kept = is_quiet ? 8.0 : 30.0 - word_end(&you.spoken, n - 1);
        ck_assert_double_eq_tol(you.last_seconds, kept + 1.0, 1e-4);
        finish(stream);
        ak_stream_free(stream);
    }
}
END_TEST

/* After the end of a text, what is said next needs two transcriptions again, also if it is said as
 * before. */
START_TEST(said_again)
{
    memset(&you, 0, sizeof you);
    you.spoken.n = WORDS;
    you.spoken.every = 0.5;
    for (int i = 0; i < WORDS; i++)
        strcpy(you.spoken.text[i], " again");
    struct ak_stream *stream = open_stream();
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(push(stream, 0.5), AKUNU_OK);
    finish(stream);
    size_t n_final = you.n_final;
    ck_assert_int_eq(push(stream, 5.0), AKUNU_OK);
    ck_assert_uint_eq(you.n_final, n_final);
    ck_assert_int_eq(push(stream, 0.5), AKUNU_OK);
    ck_assert_uint_gt(you.n_final, n_final);
    finish(stream);
    ak_stream_free(stream);
}
END_TEST

START_TEST(stopped_and_refused)
{
    const struct ak_transcribe_vad vad = { .silero = NULL };
    static const unsigned rates[] = { 0, 999, 384001 };
    struct akunu_transcription_params params;
    struct ak_error error;
    struct ak_stream *stream;
    memset(&you, 0, sizeof you);
    say_sentences(&you.spoken);
    you.stop_after = 3;
    stream = open_stream();
    ck_assert(push(stream, 1.0) == AKUNU_OK && push(stream, 0.5) == AKUNU_OK);
    ck_assert_int_eq(push(stream, 0.5), AKUNU_ERROR_CANCELLED);
    ak_stream_free(stream);
    akunu_transcription_params_default(&params, sizeof params);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "a rate of %u samples a second; 1000 to 384000",
                 rates[i]);
        ck_assert_int_eq(
            ak_stream_new(NULL, rates[i], &params, &vad, on_words, NULL, &stream, &error),
            AKUNU_ERROR_ARGUMENT);
        ck_assert_str_eq(error.message, expected);
        ck_assert_ptr_null(stream);
    }
}
END_TEST

/* ---- Chunks ------------------------------------------------------------- */
enum { LONG = 48 * RATE, GAP = RATE / 10 };

static void open_chunks(struct ak_transcribe_chunks *out, struct ak_audio *audio,
                        const struct ak_silero *silero, float overlap)
{
    struct ak_error error;
    struct ak_transcribe_vad vad = { .silero = silero };
    akunu_vad_params_default(&vad.params, sizeof vad.params);
    vad.params.overlap_s = overlap;
    ck_assert_int_eq(ak_transcribe_chunks_open(audio, &vad, 0, UINT64_MAX, NULL, NULL, out, &error),
                     AKUNU_OK);
}

/* The samples of each chunk are its ranges of the clip with 0.1 s of silence between, up to a whole
 * frame. */
static void check_samples(struct ak_transcribe_chunks *c, const float *samples)
{
    struct ak_error error;
    size_t n, k = 0;
    for (size_t i = 0; i < c->n; i++) {
        float *found;
        ck_assert_int_eq(ak_transcribe_chunks_read(c, i, &found, &n, &error), AKUNU_OK);
        size_t at = 0;
        for (size_t end = k + c->list[i].n; k < end; k++) {
            const struct ak_audio_range *range = &c->speech.ranges[k];
            ck_assert_uint_le(at + range->n, n);
            ck_assert_mem_eq(found + at, samples + range->first, range->n * sizeof *found);
            at += range->n;
            for (size_t s = 0; k + 1 < end && s < GAP; s++)
                ck_assert(found[at++] == 0.0f);
        }
        ck_assert_uint_lt(n - at, AK_MEL_HOP);
        ak_free(found);
    }
    ck_assert_uint_eq(k, c->speech.n);
}

START_TEST(chunks_of_speech)
{
    struct ak_transcribe_chunks plain, longer;
    struct ak_error error;
    struct ak_silero *silero;
    struct ak_audio *audio;
    float *samples = malloc(LONG * sizeof *samples);
    char path[4096];
    snprintf(path, sizeof path, "%s/../../data/vad/silero-v6.2.0.bin", getenv("AK_TEST_DATA"));
    ck_assert_int_eq(ak_silero_open(path, &silero, &error), AKUNU_OK);
    test_speech_clip(samples, LONG);
    ck_assert_int_eq(ak_audio_open_samples(samples, LONG, RATE, &audio, &error), AKUNU_OK);
    open_chunks(&plain, audio, silero, 0.0f);
    ck_assert_uint_ge(plain.n, 2);
    check_samples(&plain, samples);

    /* each range goes on for the overlap, at most to the next one */
    static const float overlaps[] = { 0.25f, 30.0f };
    for (int k = 0; k < 2; k++) {
        open_chunks(&longer, audio, silero, overlaps[k]);
        ck_assert_uint_eq(longer.speech.n, plain.speech.n);
        for (size_t i = 0; i < plain.speech.n; i++) {
            const struct ak_audio_range *range = &plain.speech.ranges[i];
            uint64_t gap = i + 1 < plain.speech.n ? range[1].first - range->first - range->n : 0,
                     more = (uint64_t)(overlaps[k] * RATE);
            ck_assert_uint_eq(longer.speech.ranges[i].first, range->first);
            ck_assert_uint_eq(longer.speech.ranges[i].n, range->n + (gap < more ? gap : more));
        }
        ak_transcribe_chunks_close(&longer);
    }
    ak_transcribe_chunks_close(&plain);
    ak_audio_close(audio);
    ak_free(silero);
    free(samples);
}
END_TEST

/* A chunk of 2 s from 10 s of the clip on, and 3 s from 20 s on, with 0.1 s between. */
START_TEST(times_of_chunks)
{
    static struct ak_audio_range ranges[] = { { 10 * RATE, 2 * RATE }, { 20 * RATE, 3 * RATE } };
    static struct ak_vad_chunk list[] = { { 0, 2, 0, 510 } };
    const struct ak_transcribe_chunks chunks = { .speech = { .ranges = ranges, .n = 2 },
                                                 .list = list,
                                                 .n = 1 };
    static const struct {
        uint64_t window;
        double start, end;
        uint64_t wanted_window;
        double wanted_start, wanted_end;
    } cases[] = {
        { 0, 0.0, 1.5, 1000, 10.0, 11.5 },     { 0, 0.5, 0.5, 1000, 10.5, 10.5 },
        { 0, 1.0, 3.1, 1000, 11.0, 21.0 },     { 150, 2.05, 3.0, 1150, 20.0, 20.9 },
        { 210, 2.05, 2.05, 2000, 20.0, 20.0 }, { 300, 3.0, 5.1, 2090, 20.9, 23.0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_word word = { .start = cases[i].start, .end = cases[i].end };
        struct akunu_segment segment = { .window = cases[i].window,
                                         .start = cases[i].start,
                                         .end = cases[i].end,
                                         .words = &word,
                                         .n_words = 1 };
        ak_transcribe_chunks_map(&chunks, 0, &segment, &word);
        ck_assert_uint_eq(segment.window, cases[i].wanted_window);
        ck_assert_double_eq_tol(segment.start, cases[i].wanted_start, 1e-9);
        ck_assert_double_eq_tol(segment.end, cases[i].wanted_end, 1e-9);
        ck_assert_double_eq_tol(word.start, cases[i].wanted_start, 1e-9);
        ck_assert_double_eq_tol(word.end, cases[i].wanted_end, 1e-9);
    }
}
END_TEST

/* ---- Meetings ----------------------------------------------------------- */
enum { BATCH = 4 };

static ak_status prepare_nothing(void *user, struct ak_error *error)
{
    (void)error;
    ++*(int *)user;
    return AKUNU_OK;
}

/* A lane that asks for a pass that is too large, and ends. */
static void *ask_too_much(void *user)
{
    struct ak_meeting *m = user;
    struct akunu_batch_token tokens[BATCH + 1] = { { .token = 0 } };
    const float *rows[BATCH + 1];
    struct ak_error error = { 0 };
    int n_prepared = 0;
    struct ak_meeting_pass pass = { prepare_nothing, &n_prepared, tokens, BATCH + 1, rows };
    ak_meeting_join(m);
    ck_assert_int_eq(ak_meeting_decode(m, &pass, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "5 tokens at once; a pass of the session takes 4");
    ck_assert_int_eq(n_prepared, 1);
    ak_meeting_leave(m);
    ak_meeting_end(m);
    return NULL;
}

START_TEST(too_large_a_pass)
{
    static struct ak_session session = { .batch = BATCH };
    struct ak_meeting *m;
    struct ak_error error;
    pthread_t thread;
    ck_assert_int_eq(ak_meeting_new(&session, true, &m, &error), AKUNU_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_too_much, m), 0);
    ak_meeting_serve(m, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ak_meeting_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream");
    TCase *any = tcase_create("any");
    tcase_set_timeout(any, 60);
    tcase_add_test(any, every_word_once);
    tcase_add_test(any, prompts_of_long_words);
    tcase_add_test(any, prompts_without_spaces);
    tcase_add_test(any, pushed_at_once);
    tcase_add_test(any, said_again);
    tcase_add_test(any, stopped_and_refused);
    tcase_add_test(any, chunks_of_speech);
    tcase_add_test(any, times_of_chunks);
    tcase_add_test(any, too_large_a_pass);
    suite_add_tcase(suite, any);
    return test_run(suite);
}

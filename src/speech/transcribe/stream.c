/* Local agreement between transcriptions of a growing clip. */
#include "speech/transcribe/stream.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/array.h"

enum { RATE_MIN = 1000, RATE_MAX = 384000, PROMPT_BYTES = 400, NEAR = 3 };

/* Positions of the encoder a second, and those of silence after the audio: fewer and the model
 * hears what nobody said. They are rounded up to a multiple. */
enum { POSITIONS_PER_SECOND = 50, SILENT_POSITIONS = 384, POSITIONS_MULTIPLE = 64 };

/* Seconds: the first transcription; new audio before the next one; kept audio above which its
 * oldest part is given up, and at most; the last words, which more audio often changes. */
static const double FIRST = 1.0, STEP = 0.5, KEPT = 8.0, KEPT_MAX = 28.0, UNSURE = 2.0;

/* Words, and the bytes that their texts point into. */
struct words {
    struct akunu_word *of;
    size_t n, capacity;
    struct ak_buffer text; /* in the order of the words */
};

struct ak_stream {
    struct ak_session *s;
    struct akunu_transcription_params asked;
    uint32_t audio_context; /* asked for; 0: chosen */
    struct ak_transcribe_vad vad;
    akunu_words_fn *on_words;
    void *user;
    unsigned rate;
    float *samples;
    size_t n, capacity, n_done; /* n_done: that were transcribed already */
    double begin;               /* seconds of the first sample */
    double final_end;           /* seconds up to which words are final */
    struct words final;         /* those of the samples that are kept */
    struct words before;        /* what the transcription before had after them */
    struct words now;           /* all of the last one */
    struct ak_buffer prompt;    /* final text before the samples that are kept */
    const char *language;
    struct ak_error *error;
    ak_status status; /* of a callback */
};

static double seconds(const struct ak_stream *t, size_t n)
{
    return (double)n / (double)t->rate;
}

/* ---- Words -------------------------------------------------------------- */
static void free_words(struct words *w)
{
    ak_free(w->of);
    ak_buffer_free(&w->text);
}

static ak_status add_word(struct words *w, const struct akunu_word *word, struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&w->of, &w->capacity, w->n, 1, "words", error));
    AK_TRY(ak_buffer_add(&w->text, word->text, word->n_bytes, error));
    w->of[w->n++] = *word;
    size_t at = 0; /* the bytes may have moved */
    for (size_t i = 0; i < w->n; at += w->of[i++].n_bytes)
        w->of[i].text = w->text.bytes + at;
    return AKUNU_OK;
}

static bool is_letter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c & 0x80) != 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

/* Of the same letters and digits? Punctuation and capitals change with what follows. */
static bool is_alike(const struct akunu_word *a, const struct akunu_word *b)
{
    size_t i = 0, j = 0;
    for (;;) {
        while (i < a->n_bytes && !is_letter(a->text[i]))
            i++;
        while (j < b->n_bytes && !is_letter(b->text[j]))
            j++;
        if (i == a->n_bytes || j == b->n_bytes)
            return i == a->n_bytes && j == b->n_bytes;
        if (lower(a->text[i++]) != lower(b->text[j++]))
            return false;
    }
}

static bool is_same(const struct akunu_word *a, const struct akunu_word *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->text, b->text, a->n_bytes) == 0;
}

/* Collects words, at the time of the whole stream. */
static bool stream_on_segment(const struct akunu_segment *segment, void *user)
{
    struct ak_stream *t = user;
    for (size_t i = 0; i < segment->n_words && t->status == AKUNU_OK; i++) {
        struct akunu_word word = segment->words[i];
        word.start += t->begin;
        word.end += t->begin;
        t->status = add_word(&t->now, &word, t->error);
    }
    return t->status == AKUNU_OK;
}

/* The encoder need not read all of the silence that fills a window. 0: all positions. */
static uint32_t choose_context(const struct ak_stream *t)
{
    size_t n = (size_t)(seconds(t, t->n) * POSITIONS_PER_SECOND) + SILENT_POSITIONS;
    n = ak_round_up(n, POSITIONS_MULTIPLE);
    return n < t->s->model->spec.config.encoder_context ? (uint32_t)n : 0;
}

static ak_status transcribe(struct ak_stream *t)
{
    struct ak_transcribe_clip clip = { .asked = &t->asked,
                                       .vad = t->vad,
                                       .sink = { .on_segment = stream_on_segment, .user = t },
                                       .origin =
                                           (uint64_t)(t->begin * AK_SPEECH_FRAMES_PER_SECOND) };
    int32_t language = 0;
    t->now.n = t->now.text.n = 0;
    t->status = AKUNU_OK;
    t->n_done = t->n;
    AK_TRY(ak_buffer_reserve(&t->prompt, t->prompt.n + 1, t->error));
    t->prompt.bytes[t->prompt.n] = '\0';
    t->asked.prompt = t->prompt.n > 0 ? t->prompt.bytes : t->asked.prompt;
    t->asked.language = t->language ? t->language : t->asked.language;
    t->asked.audio_context = t->audio_context ? t->audio_context : choose_context(t);
    AK_TRY(ak_audio_open_samples(t->samples, t->n, t->rate, &clip.audio, t->error));
    ak_status status = ak_transcribe(t->s, &clip, &language, t->error);
    ak_audio_close(clip.audio);
    if (status == AKUNU_OK && seconds(t, t->n) > KEPT / 2.0) /* from now on it is known */
        t->language = ak_speech_language_code(language);
    return t->status != AKUNU_OK ? t->status : status;
}

/* ---- Agreement ---------------------------------------------------------- */
static ak_status report_words(struct ak_stream *t, const struct akunu_word *words, size_t n,
                              bool is_final)
{
    if (t->on_words(words, n, is_final, t->user))
        return AKUNU_OK;
    return ak_transcribe_fail_cancelled(t->error);
}

/* The word of the last transcription that follows the final ones: after that which is like the last
 * of them and nearest to its place; without one, the first that begins after their end. */
static size_t find_rest(const struct ak_stream *t)
{
    size_t n = t->final.n;
    if (n == 0)
        return 0;
    for (size_t distance = 0; distance <= NEAR; distance++) {
        if (n + distance <= t->now.n && is_alike(&t->now.of[n + distance - 1], &t->final.of[n - 1]))
            return n + distance;
        if (n > distance && n - distance <= t->now.n &&
            is_alike(&t->now.of[n - distance - 1], &t->final.of[n - 1]))
            return n - distance;
    }
    size_t i = 0;
    while (i < t->now.n && t->now.of[i].start < t->final_end)
        i++;
    return i;
}

/* The next n words of the last transcription are final. */
static ak_status settle(struct ak_stream *t, size_t first, size_t n)
{
    if (n == 0)
        return AKUNU_OK;
    for (size_t i = first; i < first + n; i++)
        AK_TRY(add_word(&t->final, &t->now.of[i], t->error));
    t->final_end = t->now.of[first + n - 1].end;
    return report_words(t, &t->now.of[first], n, true);
}

/* Words that both transcriptions go on with, and that were said some time ago. */
static size_t count_same(const struct ak_stream *t, size_t first)
{
    double latest = t->begin + seconds(t, t->n) - UNSURE;
    size_t n = 0;
    while (first + n < t->now.n && n < t->before.n && t->now.of[first + n].end <= latest &&
           is_same(&t->now.of[first + n], &t->before.of[n]))
        n++;
    return n;
}

/* What is not final is compared with the next transcription. */
static ak_status keep_rest(struct ak_stream *t, size_t first)
{
    t->before.n = t->before.text.n = 0;
    for (size_t i = first; i < t->now.n; i++)
        AK_TRY(add_word(&t->before, &t->now.of[i], t->error));
    return report_words(t, t->before.of, t->before.n, false);
}

/* Gives up the samples before a time, and makes their text the prompt. */
static ak_status drop_before(struct ak_stream *t, double time)
{
    double past = fmax(0.0, (time - t->begin) * (double)t->rate);
    size_t n = past < (double)t->n ? (size_t)past : t->n;
    memmove(t->samples, t->samples + n, (t->n - n) * sizeof *t->samples);
    t->n -= n;
    t->n_done -= n < t->n_done ? n : t->n_done;
    t->begin += seconds(t, n);
    AK_TRY(ak_buffer_add(&t->prompt, t->final.text.bytes, t->final.text.n, t->error));
    t->final.n = t->final.text.n = 0;
    if (t->prompt.n > PROMPT_BYTES) {
        const char *from = t->prompt.bytes + t->prompt.n - PROMPT_BYTES,
                   *space = memchr(from, ' ', PROMPT_BYTES);
        from = space ? space : from;
        while (from < t->prompt.bytes + t->prompt.n && (*from & 0xc0) == 0x80)
            from++; /* half a character */
        t->prompt.n = (size_t)(t->prompt.bytes + t->prompt.n - from);
        memmove(t->prompt.bytes, from, t->prompt.n);
    }
    return AKUNU_OK;
}

static bool ends_sentence(const struct akunu_word *w)
{
    return w->n_bytes > 0 && strchr(".?!", w->text[w->n_bytes - 1]) != NULL;
}

static ak_status step(struct ak_stream *t)
{
    AK_TRY(transcribe(t));
    size_t first = find_rest(t), n_final = count_same(t, first);
    double kept = seconds(t, t->n);
    if (kept > KEPT_MAX) /* no agreement for so long: the last words are taken as they are */
        n_final = t->now.n - first;
    AK_TRY(settle(t, first, n_final));
    bool at_sentence = n_final > 0 && ends_sentence(&t->now.of[first + n_final - 1]);
    AK_TRY(keep_rest(t, first + n_final));
    if (kept > KEPT_MAX)
        return drop_before(t, fmax(t->final_end, t->begin + kept - KEPT));
    if (kept > KEPT && (at_sentence || kept > 1.5 * KEPT))
        return drop_before(t, t->final_end);
    return AKUNU_OK;
}

/* ---- The stream --------------------------------------------------------- */
ak_status ak_stream_new(struct ak_session *s, unsigned rate,
                        const struct akunu_transcription_params *asked,
                        const struct ak_transcribe_vad *vad, akunu_words_fn *on_words, void *user,
                        struct ak_stream **out, struct ak_error *error)
{
    *out = NULL;
    if (rate < RATE_MIN || rate > RATE_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "a rate of %u samples a second; %d to %d", rate,
                       RATE_MIN, RATE_MAX);
    struct ak_stream *t = ak_alloc(1, sizeof *t);
    if (!t)
        return ak_fail_memory(error, "a stream", sizeof *t);
    *t = (struct ak_stream){
        .s = s, .asked = *asked, .vad = *vad, .on_words = on_words, .user = user, .rate = rate
    };
    t->asked.word_times = true;
    t->audio_context = asked->audio_context;
    *out = t;
    return AKUNU_OK;
}

ak_status ak_stream_push(struct ak_stream *t, const float *samples, size_t n,
                         struct ak_error *error)
{
    t->error = error;
    AK_TRY(ak_reserve_or_fail(&t->samples, &t->capacity, t->n, n, "samples", error));
    if (n > 0)
        memcpy(t->samples + t->n, samples, n * sizeof *samples);
    t->n += n;
    return seconds(t, t->n) >= FIRST && seconds(t, t->n - t->n_done) >= STEP ? step(t) : AKUNU_OK;
}

ak_status ak_stream_finish(struct ak_stream *t, struct ak_error *error)
{
    t->error = error;
    if (t->n == 0)
        return AKUNU_OK;
    AK_TRY(transcribe(t));
    size_t first = find_rest(t);
    AK_TRY(settle(t, first, t->now.n - first));
    AK_TRY(drop_before(t, INFINITY));
    t->before.n = t->before.text.n = 0;
    return report_words(t, NULL, 0, false);
}

void ak_stream_free(struct ak_stream *t)
{
    if (!t)
        return;
    free_words(&t->final);
    free_words(&t->before);
    free_words(&t->now);
    ak_buffer_free(&t->prompt);
    ak_free(t->samples);
    ak_free(t);
}

/* The windows of a clip: prompts, fallback, segments, where the next window begins. */
#include "speech/search/transcribe.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "speech/search/hallucination.h"
#include "speech/search/text.h"
#include "speech/search/timing.h"
#include "speech/search/window.h"
#include "base/array.h"

enum { FRAMES_PER_TIME = AK_SPEECH_FRAMES_PER_SECOND / AK_SPEECH_TIMES_PER_SECOND };

struct transcriber {
    const struct ak_speech_clip *clip;
    const struct ak_speech_task *task;
    ak_speech_segment_fn *on_segment;
    void *user;
    struct ak_error *error;
    int32_t *written; /* the prompt and the text so far */
    size_t n_written, written_capacity;
    size_t prompt_from;                 /* what the next window's prompt has of it */
    int32_t *initial;                   /* [context + special tokens]: of a window */
    struct ak_speech_segment *segments; /* of the window */
    size_t n_segments;
    struct ak_buffer bytes, text; /* of the segments: as tokens have it, and in UTF-8 */
    struct ak_speech_timing timing;
};

static ak_status append_tokens(struct transcriber *t, const int32_t *tokens, size_t n)
{
    AK_TRY(
        ak_reserve_or_fail(&t->written, &t->written_capacity, t->n_written, n, "a text", t->error));
    if (n > 0)
        memcpy(t->written + t->n_written, tokens, n * sizeof *tokens);
    t->n_written += n;
    return AKUNU_OK;
}

/* ---- Prompt ------------------------------------------------------------- */
static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The last `n_max` of n tokens, after those before. */
static size_t put_last(int32_t *out, const int32_t *tokens, size_t n, size_t n_max)
{
    size_t kept = min_size(n, n_max);
    if (kept > 0)
        memcpy(out, tokens + n - kept, kept * sizeof *out);
    return kept;
}

size_t ak_speech_put_start(const struct ak_speech_task *task, int32_t *out)
{
    const struct ak_speech_tokens *ids = task->tokens;
    out[0] = ids->start;
    if (!ids->multilingual)
        return 1;
    out[1] = ids->first_language + task->language;
    out[2] = task->translate ? ids->translate : ids->transcribe;
    return 3;
}

/* What precedes the start token: the hot words, as faster-whisper has them, the prompt that is
 * kept, and the end of the text so far. Hot words do not count as text, but all together have three
 * quarters of the context. */
static size_t put_previous(const struct transcriber *t)
{
    const struct ak_speech_task *task = t->task;
    size_t n = 1, n_max = task->context / 2 - 1, limit = task->context / 4 * 3;
    size_t n_hotwords = task->n_prefix > 0 ? 0 : min_size(task->n_hotwords, n_max);
    size_t from = t->prompt_from, n_kept = 0;
    if (task->keep_prompt && from < task->n_prompt)
        from = task->n_prompt;
    if (t->n_written == from && n_hotwords == 0 && !(task->keep_prompt && task->n_prompt > 0))
        return 0;
    t->initial[0] = task->tokens->previous;
    n += put_last(t->initial + n, task->hotwords, n_hotwords, n_hotwords);
    if (task->keep_prompt)
        n_kept = put_last(t->initial + n, task->prompt, task->n_prompt, min_size(n_max, limit - n));
    n += n_kept;
    size_t room = min_size(n_max - n_kept, limit - n);
    if (task->previous_max > 0)
        room = min_size(room, task->previous_max);
    if (t->n_written > from)
        n += put_last(t->initial + n, t->written + from, t->n_written - from, room);
    return n;
}

/* The tokens before a window's text. */
static struct ak_speech_prompt make_prompt(const struct transcriber *t)
{
    const struct ak_speech_task *task = t->task;
    const struct ak_speech_tokens *ids = task->tokens;
    size_t n = put_previous(t), half = task->context / 2, start = n;
    n += ak_speech_put_start(task, t->initial + n);
    if (!task->timestamps)
        t->initial[n++] = ids->no_timestamps;
    size_t prefix_max =
        task->max_tokens > 0 && task->max_tokens < half ? half - task->max_tokens : task->n_prefix;
    prefix_max = min_size(min_size(prefix_max, half), task->context - n);
    n += put_last(t->initial + n, task->prefix, task->n_prefix, prefix_max);
    return (struct ak_speech_prompt){ t->initial, n, start };
}

/* ---- Segments ----------------------------------------------------------- */
static bool is_time(const struct transcriber *t, const struct ak_speech_result *r, size_t i)
{
    return r->text.tokens[i] >= t->task->tokens->first_time;
}

/* Steps of 20 ms. */
static int32_t time_at(const struct transcriber *t, const struct ak_speech_result *r, size_t i)
{
    return r->text.tokens[i] - t->task->tokens->first_time;
}

static double seconds_at(uint64_t frame, double steps)
{
    return (double)frame / AK_SPEECH_FRAMES_PER_SECOND + steps / AK_SPEECH_TIMES_PER_SECOND;
}

/* Adds tokens [first, end) of the window as a segment. */
static void add_segment(struct transcriber *t, uint64_t window, const struct ak_speech_result *r,
                        size_t first, size_t end, double start_steps, double end_steps)
{
    t->segments[t->n_segments++] =
        (struct ak_speech_segment){ .window = window,
                                    .start = seconds_at(window, start_steps),
                                    .end = seconds_at(window, end_steps),
                                    .tokens = r->text.tokens + first,
                                    .probabilities = r->text.probabilities + first,
                                    .n_tokens = end - first,
                                    .temperature = r->temperature,
                                    .mean_log_prob = r->text.mean_log_prob,
                                    .compression = r->compression,
                                    .no_speech = r->text.no_speech };
}

/* A time alone at the end: nothing is said after it. */
static bool ends_in_time(const struct transcriber *t, const struct ak_speech_result *r)
{
    size_t n = r->text.n;
    return n >= 2 && is_time(t, r, n - 1) && !is_time(t, r, n - 2);
}

/* A text between two times each. *frames: where the next window begins, from this one on. */
static void add_pairs(struct transcriber *t, uint64_t window, const struct ak_speech_result *r,
                      uint64_t *frames)
{
    size_t n = r->text.n, first = 0;
    bool has_end = ends_in_time(t, r);
    for (size_t i = 1; i <= n; i++) {
        bool cut = i < n ? is_time(t, r, i - 1) && is_time(t, r, i) : has_end;
        if (!cut)
            continue;
        add_segment(t, window, r, first, i, (double)time_at(t, r, first),
                    (double)time_at(t, r, i - 1));
        first = i;
    }
    /* else the last segment is cut off by the window's end */
    if (!has_end && time_at(t, r, first - 1) > 0)
        *frames = (uint64_t)time_at(t, r, first - 1) * FRAMES_PER_TIME;
}

/* All tokens are one segment, up to the last time or the end of the window. */
static void add_whole(struct transcriber *t, uint64_t window, const struct ak_speech_result *r,
                      uint64_t frames)
{
    double steps = (double)frames / FRAMES_PER_TIME;
    size_t last = r->text.n;
    while (last > 0 && !is_time(t, r, last - 1))
        last--;
    if (last > 0 && time_at(t, r, last - 1) != 0)
        steps = (double)time_at(t, r, last - 1);
    add_segment(t, window, r, 0, r->text.n, 0.0, steps);
}

/* *frames: those of the window, then where the next one begins. */
static ak_status find_segments(struct transcriber *t, uint64_t window,
                               const struct ak_speech_result *r, uint64_t *frames)
{
    bool has_pairs = false;
    for (size_t i = 1; i < r->text.n; i++)
        has_pairs = has_pairs || (is_time(t, r, i - 1) && is_time(t, r, i));
    ak_free(t->segments);
    t->n_segments = 0;
    t->segments = ak_alloc(r->text.n + 1, sizeof *t->segments);
    if (!t->segments)
        return ak_fail_memory(t->error, "segments", (r->text.n + 1) * sizeof *t->segments);
    if (has_pairs)
        add_pairs(t, window, r, frames);
    else
        add_whole(t, window, r, *frames);
    return AKUNU_OK;
}

double ak_speech_find_end(const struct ak_speech_segment *segments, size_t n)
{
    for (size_t i = n; i-- > 0;)
        if (segments[i].n_words > 0)
            return segments[i].words[segments[i].n_words - 1].end;
    return segments[n - 1].end;
}

/* The next window begins after the last word, unless nothing follows it in this one. A text without
 * times says nothing of that: unlike in openai/whisper the next window begins after this one, since
 * what Whisper writes for the silent rest is invented. *skipped: there are no words after all, only
 * silence to skip. */
static ak_status add_words(struct transcriber *t, uint64_t window, const struct ak_speech_result *r,
                           uint64_t used, uint64_t *frames, bool *skipped)
{
    struct ak_speech_silence silence = { .threshold = (double)t->task->hallucination_silence,
                                         .window = window,
                                         .n_frames = t->clip->n_frames,
                                         .used = used,
                                         .last_end = t->timing.last_end,
                                         .ends_in_time =
                                             !t->task->timestamps || ends_in_time(t, r) };
    AK_TRY(ak_speech_time_words(&t->timing, t->clip, t->task, used, t->segments, t->n_segments,
                                t->error));
    double next =
        rint(ak_speech_find_end(t->segments, t->n_segments) * AK_SPEECH_FRAMES_PER_SECOND);
    if (!silence.ends_in_time && next > (double)window)
        *frames = (uint64_t)next - window;
    if (!isnan(silence.threshold))
        t->n_segments =
            ak_speech_skip_silence(&silence, t->segments, t->n_segments, frames, skipped);
    if (t->n_segments > 0)
        t->timing.last_end = ak_speech_find_end(t->segments, t->n_segments);
    return AKUNU_OK;
}

/* Gives the segments their texts, in UTF-8. A character that two of them share is the first's. */
static ak_status spell_segments(struct transcriber *t)
{
    size_t begin = 0, at = 0;
    t->bytes.n = t->text.n = 0;
    AK_TRY(ak_buffer_reserve(&t->bytes, 1, t->error));
    AK_TRY(ak_buffer_reserve(&t->text, 1, t->error));
    for (size_t i = 0; i < t->n_segments; i++) {
        struct ak_speech_segment *s = &t->segments[i];
        AK_TRY(ak_speech_spell(t->clip, s->tokens, s->n_tokens, t->task->tokens->end, &s->text,
                               &s->n_bytes, t->error));
        AK_TRY(ak_buffer_add(&t->bytes, s->text, s->n_bytes, t->error));
        s->n_bytes = t->bytes.n;
    }
    for (size_t i = 0; i < t->n_segments; i++) {
        struct ak_speech_segment *s = &t->segments[i];
        size_t end = ak_speech_character_end(t->bytes.bytes, t->bytes.n, s->n_bytes), n = t->text.n;
        AK_TRY(ak_speech_add_utf8(&t->text, t->bytes.bytes + begin, end - begin, t->error));
        s->n_bytes = t->text.n - n;
        begin = end;
    }
    for (size_t i = 0; i < t->n_segments; at += t->segments[i++].n_bytes)
        t->segments[i].text = t->text.bytes + at;
    return AKUNU_OK;
}

/* Reports the segments. One without a text or a duration has no tokens. */
static ak_status report_segments(struct transcriber *t)
{
    AK_TRY(spell_segments(t));
    for (size_t i = 0; i < t->n_segments; i++) {
        struct ak_speech_segment *s = &t->segments[i];
        const char *text = s->text;
        size_t n = s->n_bytes;
        ak_speech_strip(&text, &n);
        if (n == 0 || !(s->end < s->start || s->end > s->start))
            s->n_bytes = s->n_tokens = s->n_words = 0;
        AK_TRY(t->on_segment(t->user, s, t->error));
        AK_TRY(append_tokens(t, s->tokens, s->n_tokens));
    }
    return AKUNU_OK;
}

/* *frames: those of the window, then where the next one begins. */
static ak_status add_segments(struct transcriber *t, uint64_t window,
                              const struct ak_speech_result *r, uint64_t *frames)
{
    uint64_t used = *frames;
    bool skipped = false;
    AK_TRY(find_segments(t, window, r, frames));
    if (t->task->words)
        AK_TRY(add_words(t, window, r, used, frames, &skipped));
    if (skipped)
        return AKUNU_OK;
    AK_TRY(report_segments(t));
    if (!t->task->use_previous || r->last_temperature > 0.5f)
        t->prompt_from = t->n_written;
    return AKUNU_OK;
}

/* ---- Windows ------------------------------------------------------------ */
static bool has_speech(const struct ak_speech_task *task, const struct ak_speech_result *r)
{
    return !(r->text.no_speech > (double)task->max_no_speech) ||
           r->text.mean_log_prob > (double)task->min_log_prob;
}

static ak_status run_windows(struct transcriber *t)
{
    const struct ak_speech_task *task = t->task;
    uint64_t end = task->end < t->clip->n_frames ? task->end : t->clip->n_frames;
    AK_TRY(append_tokens(t, task->prompt, task->n_prompt));
    for (uint64_t window = task->first; window < end;) {
        uint64_t frames = end - window < AK_SPEECH_WINDOW ? end - window : AK_SPEECH_WINDOW;
        struct ak_speech_result r = { .temperature = 0.0f };
        AK_TRY(t->clip->encode(t->clip->user, window, (uint32_t)frames, t->error));
        struct ak_speech_prompt prompt = make_prompt(t);
        ak_status status = ak_speech_decode_window(t->clip, task, window, &prompt, &r, t->error);
        if (status == AKUNU_OK && has_speech(task, &r))
            status = add_segments(t, window, &r, &frames);
        ak_speech_text_free(&r.text);
        AK_TRY(status);
        window += frames;
    }
    return AKUNU_OK;
}

ak_status ak_speech_transcribe(const struct ak_speech_clip *clip, const struct ak_speech_task *task,
                               ak_speech_segment_fn *on_segment, void *user, struct ak_error *error)
{
    struct transcriber t = {
        .clip = clip, .task = task, .on_segment = on_segment, .user = user, .error = error
    };
    t.initial = ak_alloc((size_t)task->context + 8, sizeof *t.initial);
    ak_status status = t.initial ? run_windows(&t) : ak_fail_memory(error, "a prompt", 0);
    ak_free(t.initial);
    ak_free(t.written);
    ak_free(t.segments);
    ak_buffer_free(&t.bytes);
    ak_buffer_free(&t.text);
    ak_speech_timing_free(&t.timing);
    return status;
}

/* Tokens of a window, aligned and made words. */
#include "speech/search/timing.h"

#include <string.h>

#include "base/mem.h"
#include "speech/search/text.h"

enum { FRAMES_PER_POSITION = 2, SPECIALS = 5 };

struct timer {
    struct ak_speech_timing *timing;
    const struct ak_speech_clip *clip;
    const struct ak_speech_task *task;
    struct ak_error *error;
    int32_t *tokens;      /* [SPECIALS + n]: with the special ones around the text */
    size_t first, n;      /* index of the text's first token, and their number */
    size_t *ends;         /* [n]: bytes of the text up to token i */
    float *probabilities; /* [SPECIALS + n] */
    uint32_t *at;         /* [n + 1] */
    struct ak_speech_span *spans;
};

static bool is_text(const struct timer *t, int32_t token)
{
    return token < t->task->tokens->end;
}

static size_t count_text(const struct timer *t, const struct ak_speech_segment *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_tokens; i++)
        n += is_text(t, s->tokens[i]);
    return n;
}

static ak_status alloc_timer(struct timer *t, size_t n, size_t n_segments)
{
    t->tokens = ak_alloc(n + SPECIALS, sizeof *t->tokens);
    t->ends = ak_alloc(n, sizeof *t->ends);
    t->probabilities = ak_alloc(n + SPECIALS, sizeof *t->probabilities);
    t->at = ak_alloc(n + 1, sizeof *t->at);
    t->spans = ak_alloc(n_segments, sizeof *t->spans);
    ak_free(t->timing->words);
    t->timing->words = ak_alloc(n, sizeof *t->timing->words);
    if (t->tokens && t->ends && t->probabilities && t->at && t->spans && t->timing->words)
        return AKUNU_OK;
    return ak_fail_memory(t->error, "the words of a window", n * sizeof *t->timing->words);
}

static void free_timer(struct timer *t)
{
    ak_free(t->tokens);
    ak_free(t->ends);
    ak_free(t->probabilities);
    ak_free(t->at);
    ak_free(t->spans);
}

/* The text without the clip's past, and without times. */
static void fill_tokens(struct timer *t, const struct ak_speech_segment *segments, size_t n)
{
    const struct ak_speech_tokens *ids = t->task->tokens;
    size_t at = ak_speech_put_start(t->task, t->tokens);
    t->tokens[at++] = ids->no_timestamps;
    t->first = at;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < segments[i].n_tokens; j++)
            if (is_text(t, segments[i].tokens[j]))
                t->tokens[at++] = segments[i].tokens[j];
    t->tokens[at] = ids->end;
    t->n = at - t->first;
}

static ak_status spell(struct timer *t)
{
    struct ak_buffer *text = &t->timing->text;
    text->n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const char *bytes;
        size_t n;
        AK_TRY(t->clip->text(t->clip->user, &t->tokens[t->first + i], 1, &bytes, &n, t->error));
        AK_TRY(ak_buffer_add(text, bytes, n, t->error));
        t->ends[i] = text->n;
    }
    return AKUNU_OK;
}

/* The row before the text's first is that of `no_timestamps`: it says when that token begins. */
static ak_status align(struct timer *t, uint64_t used)
{
    struct ak_speech_scores scores = { 0 };
    ak_status status = t->clip->score(t->clip->user, t->tokens, t->first + t->n + 1,
                                      t->probabilities, &scores, t->error);
    size_t positions = (size_t)(used / FRAMES_PER_POSITION);
    positions = positions < 1 ? 1 : positions > scores.n_positions ? scores.n_positions : positions;
    if (status == AKUNU_OK)
        status =
            ak_speech_align(&scores, positions, t->first - 1, t->first + t->n, t->at, t->error);
    ak_free(scores.data);
    return status;
}

/* Lets the words' texts be UTF-8. */
static ak_status replace_malformed(struct timer *t, size_t n_segments)
{
    struct ak_buffer *text = &t->timing->words_text;
    struct akunu_word *words = t->timing->words;
    size_t n = 0, at = 0;
    text->n = 0;
    AK_TRY(ak_buffer_reserve(text, 1, t->error));
    for (size_t i = 0; i < n_segments; i++)
        n += t->spans[i].n_words;
    for (size_t i = 0; i < n; i++) {
        size_t before = text->n;
        AK_TRY(ak_speech_add_utf8(text, words[i].text, words[i].n_bytes, t->error));
        words[i].n_bytes = text->n - before;
    }
    for (size_t i = 0; i < n; at += words[i++].n_bytes)
        words[i].text = text->bytes + at;
    return AKUNU_OK;
}

static ak_status time_words(struct timer *t, uint64_t used, struct ak_speech_segment *segments,
                            size_t n)
{
    const struct ak_speech_spoken spoken = {
        .text = t->timing->text.bytes,
        .ends = t->ends,
        .at = t->at,
        .probabilities = t->probabilities + t->first - 1,
        .n = t->n,
        .spaced = ak_speech_language_has_spaces(t->task->language),
    };
    double offset = (double)segments[0].window / AK_SPEECH_FRAMES_PER_SECOND;
    AK_TRY(align(t, used));
    for (size_t i = 0; i < n; i++)
        t->spans[i] = (struct ak_speech_span){ .start = segments[i].start,
                                               .end = segments[i].end,
                                               .n_tokens = count_text(t, &segments[i]) };
    AK_TRY(ak_speech_find_words(&spoken, offset, t->timing->last_end, t->timing->words, t->spans, n,
                                t->error));
    AK_TRY(replace_malformed(t, n));
    for (size_t i = 0; i < n; i++) {
        segments[i].start = t->spans[i].start;
        segments[i].end = t->spans[i].end;
        segments[i].words = t->spans[i].words;
        segments[i].n_words = t->spans[i].n_words;
    }
    return AKUNU_OK;
}

ak_status ak_speech_time_words(struct ak_speech_timing *timing, const struct ak_speech_clip *clip,
                               const struct ak_speech_task *task, uint64_t used,
                               struct ak_speech_segment *segments, size_t n, struct ak_error *error)
{
    struct timer t = { .timing = timing, .clip = clip, .task = task, .error = error };
    size_t n_text = 0;
    for (size_t i = 0; i < n; i++)
        n_text += count_text(&t, &segments[i]);
    if (n_text == 0 || n_text + SPECIALS > task->context)
        return AKUNU_OK;
    ak_status status = alloc_timer(&t, n_text, n);
    if (status == AKUNU_OK) {
        fill_tokens(&t, segments, n);
        status = spell(&t);
    }
    if (status == AKUNU_OK && timing->text.n > 0)
        status = time_words(&t, used, segments, n);
    free_timer(&t);
    return status;
}

void ak_speech_timing_free(struct ak_speech_timing *t)
{
    ak_buffer_free(&t->text);
    ak_buffer_free(&t->words_text);
    ak_free(t->words);
}

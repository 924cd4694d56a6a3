/* Finds segments that are hallucinations by their words. */
#include "speech/search/hallucination.h"

#include <math.h>

#define PUNCTUATION "\"'“¿([{-\"'.。,，!！?？:：”)]}、"

enum { WORDS_MAX = 8 };                /* words of a segment that are looked at */
static const double EDGE = 2.0;        /* seconds at a window's beginning and end */
static const double WINDOW = 30.0;     /* seconds */
static const double SHORT = 0.133;     /* a word in less is too short, */
static const double LONG = 2.0;        /* and in more too long; seconds */
static const double IMPROBABLE = 0.15; /* probability of a word */

/* ---- Words -------------------------------------------------------------- */
static double score_word(const struct akunu_word *word)
{
    double seconds = word->end - word->start;
    double score = word->probability < IMPROBABLE ? 1.0 : 0.0;
    if (seconds < SHORT)
        score += (SHORT - seconds) * 15.0;
    if (seconds > LONG)
        score += seconds - LONG;
    return score;
}

/* NULL: there is none. */
static bool is_anomalous(const struct ak_speech_segment *s)
{
    double score = 0.0;
    size_t n = 0;
    if (!s || s->n_words == 0)
        return false;
    for (size_t i = 0; i < s->n_words && n < WORDS_MAX; i++) {
        if (ak_speech_is_part_of(s->words[i].text, s->words[i].n_bytes, PUNCTUATION))
            continue;
        score += score_word(&s->words[i]);
        n++;
    }
    return score >= 3.0 || score + 0.01 >= (double)n;
}

/* The first segment of [first, n) that has words; NULL: none has. */
static const struct ak_speech_segment *find_words(const struct ak_speech_segment *segments,
                                                  size_t first, size_t n)
{
    for (size_t i = first; i < n; i++)
        if (segments[i].n_words > 0)
            return &segments[i];
    return NULL;
}

/* ---- Windows ------------------------------------------------------------ */
static double to_seconds(uint64_t frames)
{
    return (double)frames / AK_SPEECH_FRAMES_PER_SECOND;
}

static uint64_t to_frames(double seconds)
{
    return (uint64_t)rint(seconds * AK_SPEECH_FRAMES_PER_SECOND);
}

/* Is the segment a hallucination between silence, others of its kind, or the window's ends? */
static bool is_alone(const struct ak_speech_silence *s, const struct ak_speech_segment *segment,
                     const struct ak_speech_segment *next, double last_end)
{
    double offset = to_seconds(s->window);
    double next_start = next ? next->words[0].start : offset + to_seconds(s->used);
    bool before = segment->start - last_end > s->threshold || segment->start < s->threshold ||
                  segment->start - offset < EDGE;
    bool after = next_start - segment->end > s->threshold || is_anomalous(next) ||
                 offset + WINDOW - segment->end < EDGE;
    return before && after;
}

/* Silence after the last word is read again if it is long enough to hide something. */
static void continue_after_words(const struct ak_speech_silence *s, double end, uint64_t *frames)
{
    double offset = to_seconds(s->window);
    if (s->ends_in_time || !(end > offset))
        return;
    *frames = offset + WINDOW - end > s->threshold ? to_frames(end) - s->window : s->used;
}

size_t ak_speech_skip_silence(const struct ak_speech_silence *s,
                              const struct ak_speech_segment *segments, size_t n, uint64_t *frames,
                              bool *skipped)
{
    const struct ak_speech_segment *first = find_words(segments, 0, n);
    double offset = to_seconds(s->window), last_end = s->last_end;
    continue_after_words(s, ak_speech_find_end(segments, n), frames);
    *skipped = is_anomalous(first) && first->start - offset > s->threshold &&
               to_frames(first->start - offset) > 0;
    if (*skipped) {
        *frames = to_frames(first->start - offset);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        const struct ak_speech_segment *segment = &segments[i];
        if (segment->n_words == 0)
            continue;
        if (is_anomalous(segment) &&
            is_alone(s, segment, find_words(segments, i + 1, n), last_end)) {
            *frames = to_frames(fmax(offset + 1.0, segment->start)) - s->window;
            if (to_seconds(s->n_frames) - segment->end < s->threshold && s->n_frames > s->window)
                *frames = s->n_frames - s->window;
            return i;
        }
        last_end = segment->end;
    }
    return n;
}

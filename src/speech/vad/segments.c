/* The rules of whisper.cpp's whisper_vad_segments_from_probs, one probability at a time. */
#include "speech/vad/segments.h"

#include <math.h>

#include "speech/audio/mel.h"
#include "base/mem.h"
#include "speech/vad/silero.h"
#include "base/array.h"

enum {
    PER_MS = AK_MEL_RATE / 1000,
    PER_CENTISECOND = AK_MEL_RATE / 100,
    CUT_PAUSE = 98 * PER_MS,  /* a long range may end in a pause that is longer */
    JOINED_GAP = 200 * PER_MS /* ranges are joined over shorter gaps */
};
#define UNLIMITED (INT64_MAX / 2)
#define UNLIMITED_SECONDS 1e5f

static int64_t find_max_speech(const struct akunu_vad_params *params, int64_t pad)
{
    if (params->max_speech_s > UNLIMITED_SECONDS)
        return UNLIMITED;
    int64_t n = AK_MEL_RATE * (int64_t)params->max_speech_s - AK_SILERO_WINDOW - 2 * pad;
    return n < 0 ? UNLIMITED : n;
}

ak_status ak_vad_segmenter_begin(struct ak_vad_segmenter *s, const struct akunu_vad_params *params,
                                 bool keep_cuts, struct ak_error *error)
{
    *s = (struct ak_vad_segmenter){ .threshold = params->threshold, .keep_cuts = keep_cuts };
    if (!(params->threshold >= 0.0f && params->threshold <= 1.0f))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "VAD: the threshold is %g; expected 0 to 1",
                       (double)params->threshold);
    if (!(params->max_speech_s >= 0.0f) || !(params->overlap_s >= 0.0f && params->overlap_s <= 60))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "VAD: speech of at most %g s with an overlap of %g s; expected at least 0, "
                       "and 0 to 60",
                       (double)params->max_speech_s, (double)params->overlap_s);
    s->end_threshold = fmaxf(params->threshold - 0.15f, 0.01f);
    s->min_speech = (int64_t)params->min_speech_ms * PER_MS;
    s->min_silence = (int64_t)params->min_silence_ms * PER_MS;
    s->pad = (int64_t)params->speech_pad_ms * PER_MS;
    s->max_speech = find_max_speech(params, s->pad);
    return AKUNU_OK;
}

static ak_status add_range(struct ak_vad_segmenter *s, int64_t end, struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&s->ranges, &s->capacity, s->n, 1, "ranges of speech", error));
    s->ranges[s->n++] = (struct ak_audio_range){ (uint64_t)s->start, (uint64_t)(end - s->start) };
    return AKUNU_OK;
}

static void forget_pauses(struct ak_vad_segmenter *s)
{
    s->pause = s->cut = s->next = 0;
}

/* Ends a range that is too long: in its last long pause, else here. */
static ak_status divide(struct ak_vad_segmenter *s, struct ak_error *error)
{
    AK_TRY(add_range(s, s->cut ? s->cut : s->now, error));
    s->in_speech = s->cut && s->next >= s->cut; /* speech went on after the pause */
    s->start = s->next;
    forget_pauses(s);
    return AKUNU_OK;
}

/* Speech that is quiet now: it ends if the pause is long enough. */
static ak_status pause_speech(struct ak_vad_segmenter *s, struct ak_error *error)
{
    if (!s->pause)
        s->pause = s->now;
    if (s->now - s->pause > CUT_PAUSE)
        s->cut = s->pause;
    if (s->now - s->pause < s->min_silence)
        return AKUNU_OK;
    if (s->pause - s->start > s->min_speech)
        AK_TRY(add_range(s, s->pause, error));
    s->in_speech = false;
    forget_pauses(s);
    return AKUNU_OK;
}

/* The next probability, of the samples from s->now on. */
static ak_status add_probability(struct ak_vad_segmenter *s, float probability,
                                 struct ak_error *error)
{
    bool is_speech = probability >= s->threshold;
    if (is_speech && s->pause) {
        s->pause = 0;
        if (s->next < s->cut)
            s->next = s->now;
    }
    if (is_speech && !s->in_speech) {
        s->in_speech = true;
        s->start = s->now;
        return AKUNU_OK;
    }
    if (s->in_speech && s->now - s->start > s->max_speech) {
        bool has_pause = s->cut != 0;
        AK_TRY(divide(s, error));
        if (!has_pause)
            return AKUNU_OK;
    }
    return s->in_speech && probability < s->end_threshold ? pause_speech(s, error) : AKUNU_OK;
}

ak_status ak_vad_segmenter_add(struct ak_vad_segmenter *s, float probability,
                               struct ak_error *error)
{
    ak_status status = add_probability(s, probability, error);
    s->now += AK_SILERO_WINDOW;
    return status;
}

/* ---- After the last probability ----------------------------------------- */
static uint64_t end_of(const struct ak_audio_range *range)
{
    return range->first + range->n;
}

/* Joins ranges over short gaps, and drops what is too short. */
static void join_ranges(struct ak_vad_segmenter *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct ak_audio_range *last = n > 0 ? &s->ranges[n - 1] : NULL, next = s->ranges[i];
        bool joins = last && next.first - end_of(last) < JOINED_GAP;
        if (joins && s->keep_cuts)
            joins = (int64_t)(end_of(&next) - last->first) <= s->max_speech;
        if (joins)
            last->n = end_of(&next) - last->first;
        else
            s->ranges[n++] = next;
    }
    s->n = 0;
    for (size_t i = 0; i < n; i++)
        if ((int64_t)s->ranges[i].n >= s->min_speech)
            s->ranges[s->n++] = s->ranges[i];
}

/* Rounds to whole 10 ms, as whisper.cpp does it in doubles. */
static uint64_t round_sample(int64_t sample)
{
    return (uint64_t)((double)sample / AK_MEL_RATE * 100.0 + 0.5) * PER_CENTISECOND;
}

/* Pads each range; two that are nearer than twice that share what is between. */
static void pad_ranges(struct ak_vad_segmenter *s)
{
    int64_t start = s->n > 0 ? (int64_t)s->ranges[0].first : 0;
    start = start > s->pad ? start - s->pad : 0;
    for (size_t i = 0; i < s->n; i++) {
        int64_t end = (int64_t)end_of(&s->ranges[i]), next_start = 0;
        int64_t before = s->pad, after = s->pad;
        if (i + 1 < s->n) {
            next_start = (int64_t)s->ranges[i + 1].first;
            if (next_start - end < 2 * s->pad)
                before = after = (next_start - end) / 2;
        }
        end = end + after < s->now ? end + after : s->now;
        uint64_t first = round_sample(start);
        s->ranges[i] = (struct ak_audio_range){ first, round_sample(end) - first };
        start = next_start > before ? next_start - before : 0;
    }
}

ak_status ak_vad_segmenter_end(struct ak_vad_segmenter *s, struct ak_error *error)
{
    if (s->in_speech && s->now - s->start > s->min_speech)
        AK_TRY(add_range(s, s->now, error));
    s->in_speech = false;
    join_ranges(s);
    pad_ranges(s);
    return AKUNU_OK;
}

void ak_vad_segmenter_free(struct ak_vad_segmenter *s)
{
    ak_free(s->ranges);
    *s = (struct ak_vad_segmenter){ 0 };
}

/* Chunks of a clip's speech. */
#include "speech/transcribe/chunks.h"

#include "speech/audio/ranges.h"
#include "base/mem.h"

/* A speaker who says the same again after so long repeats it, not the model. */
enum { LONG_SILENCE_S = 2 };

static uint64_t samples_of(uint64_t frames)
{
    return frames < UINT64_MAX / AK_MEL_HOP ? frames * AK_MEL_HOP : UINT64_MAX;
}

/* No range is longer than a window, with what follows it. */
static struct akunu_vad_params limit_speech(const struct akunu_vad_params *asked)
{
    const float window = (float)AK_SPEECH_WINDOW / (float)AK_SPEECH_FRAMES_PER_SECOND;
    struct akunu_vad_params params = *asked;
    float max = window - params.overlap_s;
    if (max > 0.0f && !(params.max_speech_s > 0.0f && params.max_speech_s < max))
        params.max_speech_s = max;
    return params;
}

ak_status ak_transcribe_chunks_open(struct ak_audio *audio, const struct ak_transcribe_vad *vad,
                                    uint64_t first, uint64_t end,
                                    akunu_vad_probability_fn *on_probability, void *user,
                                    struct ak_transcribe_chunks *out, struct ak_error *error)
{
    struct akunu_vad_params params = limit_speech(&vad->params);
    *out = (struct ak_transcribe_chunks){ .audio = NULL };
    AK_TRY(ak_vad_detect(vad->silero, audio, &params, true, on_probability, user, &out->speech,
                         error));
    ak_vad_ranges_clip(&out->speech, samples_of(first), samples_of(end));
    ak_vad_ranges_extend(&out->speech,
                         (uint64_t)(params.overlap_s * (float)AK_SPEECH_FRAMES_PER_SECOND) *
                             AK_MEL_HOP);
    if (out->speech.n == 0)
        return AKUNU_OK;
    AK_TRY(ak_vad_chunks(&out->speech, AK_SPEECH_WINDOW, &out->list, &out->n, error));
    return ak_audio_open_ranges(audio, out->speech.ranges, out->speech.n, AK_VAD_SILENCE,
                                &out->audio, error);
}

void ak_transcribe_chunks_close(struct ak_transcribe_chunks *c)
{
    ak_audio_close(c->audio);
    ak_free(c->list);
    ak_vad_ranges_free(&c->speech);
    *c = (struct ak_transcribe_chunks){ .audio = NULL };
}

ak_status ak_transcribe_chunks_read(struct ak_transcribe_chunks *c, size_t i, float **out,
                                    size_t *n, struct ak_error *error)
{
    uint64_t first = samples_of(c->list[i].begin), before = first - c->n_read;
    size_t capacity = (size_t)(samples_of(c->list[i].end) - first), n_before = 0;
    float silence[AK_VAD_SILENCE + AK_MEL_HOP];
    *n = 0;
    *out = ak_alloc(capacity, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "a chunk of speech", capacity * sizeof **out);
    while (before > 0) {
        size_t n_max = ak_min_size((size_t)before, sizeof silence / sizeof *silence);
        AK_TRY(ak_audio_read(c->audio, silence, n_max, &n_before, error));
        before -= n_max;
    }
    AK_TRY(ak_audio_read(c->audio, *out, capacity, n, error));
    c->n_read = first + capacity;
    return AKUNU_OK;
}

size_t ak_transcribe_chunks_breaks(const struct ak_transcribe_chunks *c, size_t i, uint64_t *out)
{
    const struct ak_audio_range *ranges = c->speech.ranges + c->list[i].first;
    uint64_t at = 0;
    size_t n = 0;
    for (size_t k = 1; k < c->list[i].n; k++) {
        uint64_t end = ranges[k - 1].first + ranges[k - 1].n;
        at += ranges[k - 1].n + AK_VAD_SILENCE;
        if (ranges[k].first - end >= (uint64_t)LONG_SILENCE_S * AK_MEL_RATE)
            out[n++] = at / AK_MEL_HOP;
    }
    return n;
}

/* ---- Times -------------------------------------------------------------- */
/* Whole milliseconds, so that sums of decimal fractions look like what they are. */
static double map_time(const struct ak_transcribe_chunks *c, size_t i, double seconds, bool is_end)
{
    double time = ak_ranges_time(c->speech.ranges + c->list[i].first, c->list[i].n, AK_VAD_SILENCE,
                                 seconds, is_end);
    return (double)(int64_t)(time * 1000.0 + 0.5) / 1000.0;
}

static void map_times(const struct ak_transcribe_chunks *c, size_t i, double *start, double *end)
{
    *start = map_time(c, i, *start, false);
    *end = map_time(c, i, *end, true);
    if (*end < *start) /* both in one silence */
        *end = *start;
}

void ak_transcribe_chunks_map(const struct ak_transcribe_chunks *c, size_t i,
                              struct akunu_segment *segment, struct akunu_word *words)
{
    const double per_second = AK_SPEECH_FRAMES_PER_SECOND;
    double window = map_time(c, i, (double)segment->window / per_second, false);
    map_times(c, i, &segment->start, &segment->end);
    segment->window = (uint64_t)(window * per_second + 0.5);
    for (size_t j = 0; j < segment->n_words; j++)
        map_times(c, i, &words[j].start, &words[j].end);
}

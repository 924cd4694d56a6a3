/* Reads a clip through the network and the rules of segments, and groups what they find. */
#include "speech/vad/detect.h"

#include <string.h>

#include "speech/audio/mel.h"
#include "base/mem.h"

/* Floats of a file may be any: what is far beyond full scale would overflow the network. */
#define LOUDEST 64.0f

void ak_vad_ranges_free(struct ak_vad_ranges *r)
{
    ak_free(r->ranges);
    *r = (struct ak_vad_ranges){ 0 };
}

/* Samples of a window; zeros after the clip. */
static ak_status read_window(struct ak_audio *audio, float *window, size_t *n,
                             struct ak_error *error)
{
    AK_TRY(ak_audio_read(audio, window, AK_SILERO_WINDOW, n, error));
    memset(window + *n, 0, (AK_SILERO_WINDOW - *n) * sizeof *window);
    for (size_t i = 0; i < *n; i++) {
        float x = window[i];
        window[i] = x > LOUDEST ? LOUDEST : x < -LOUDEST ? -LOUDEST : x;
    }
    return AKUNU_OK;
}

static ak_status scan(const struct ak_silero *silero, struct ak_audio *audio,
                      akunu_vad_probability_fn *on_probability, void *user,
                      struct ak_vad_segmenter *segmenter, uint64_t *n_samples,
                      struct ak_error *error)
{
    struct ak_silero_state state = { .context = { 0.0f } };
    float window[AK_SILERO_WINDOW];
    size_t n = AK_SILERO_WINDOW;
    *n_samples = 0;
    AK_TRY(ak_audio_rewind(audio, error));
    while (n == AK_SILERO_WINDOW) {
        AK_TRY(read_window(audio, window, &n, error));
        if (n == 0)
            break;
        *n_samples += n;
        float probability = ak_silero_step(silero, &state, window);
        if (on_probability && !on_probability(probability, user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled");
        AK_TRY(ak_vad_segmenter_add(segmenter, probability, error));
    }
    return ak_vad_segmenter_end(segmenter, error);
}

ak_status ak_vad_detect(const struct ak_silero *silero, struct ak_audio *audio,
                        const struct akunu_vad_params *params, bool keep_cuts,
                        akunu_vad_probability_fn *on_probability, void *user,
                        struct ak_vad_ranges *out, struct ak_error *error)
{
    struct ak_vad_segmenter segmenter;
    *out = (struct ak_vad_ranges){ 0 };
    AK_TRY(ak_vad_segmenter_begin(&segmenter, params, keep_cuts, error));
    ak_status status =
        scan(silero, audio, on_probability, user, &segmenter, &out->n_samples, error);
    if (status != AKUNU_OK) {
        ak_vad_segmenter_free(&segmenter);
        return status;
    }
    out->ranges = segmenter.ranges;
    out->n = segmenter.n;
    ak_vad_ranges_clip(out, 0, out->n_samples); /* the last window may go on after the clip */
    return AKUNU_OK;
}

void ak_vad_ranges_clip(struct ak_vad_ranges *r, uint64_t first, uint64_t end)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct ak_audio_range *range = &r->ranges[i];
        uint64_t begin = range->first > first ? range->first : first;
        uint64_t range_end = range->first + range->n < end ? range->first + range->n : end;
        if (begin < range_end)
            r->ranges[n++] = (struct ak_audio_range){ begin, range_end - begin };
    }
    r->n = n;
}

void ak_vad_ranges_extend(struct ak_vad_ranges *r, uint64_t overlap)
{
    for (size_t i = 0; i + 1 < r->n; i++) {
        uint64_t gap = r->ranges[i + 1].first - (r->ranges[i].first + r->ranges[i].n);
        r->ranges[i].n += gap < overlap ? gap : overlap;
    }
}

/* ---- Chunks ------------------------------------------------------------- */
static uint64_t frames_of(uint64_t samples)
{
    return (samples + AK_MEL_HOP - 1) / AK_MEL_HOP;
}

/* Divides ranges of more than `max` samples. */
static ak_status divide_ranges(struct ak_vad_ranges *r, uint64_t max, struct ak_error *error)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < r->n; i++)
        n += (size_t)((r->ranges[i].n + max - 1) / max);
    if (n == r->n)
        return AKUNU_OK;
    struct ak_audio_range *divided = ak_alloc(n, sizeof *divided);
    if (!divided)
        return ak_fail_memory(error, "ranges of speech", n * sizeof *divided);
    for (size_t i = 0; i < r->n; i++) {
        struct ak_audio_range rest = r->ranges[i];
        for (uint64_t taken; rest.n > 0; rest.first += taken, rest.n -= taken) {
            taken = rest.n < max ? rest.n : max;
            divided[at++] = (struct ak_audio_range){ rest.first, taken };
        }
    }
    ak_free(r->ranges);
    r->ranges = divided;
    r->n = n;
    return AKUNU_OK;
}

ak_status ak_vad_chunks(struct ak_vad_ranges *r, uint64_t max_frames, struct ak_vad_chunk **out,
                        size_t *n, struct ak_error *error)
{
    const uint64_t gap = AK_VAD_SILENCE / AK_MEL_HOP;
    uint64_t begin = 0;
    *out = NULL;
    *n = 0;
    if (max_frames == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "chunks of 0 frames; expected at least 1");
    AK_TRY(divide_ranges(r, max_frames * AK_MEL_HOP, error));
    struct ak_vad_chunk *chunks = ak_alloc(r->n, sizeof *chunks);
    if (!chunks)
        return ak_fail_memory(error, "chunks of speech", r->n * sizeof *chunks);
    for (size_t i = 0; i < r->n; i++) {
        uint64_t end = begin + frames_of(r->ranges[i].n);
        if (*n > 0 && end - chunks[*n - 1].begin <= max_frames)
            chunks[*n - 1].n++;
        else
            chunks[(*n)++] = (struct ak_vad_chunk){ .first = i, .n = 1, .begin = begin };
        chunks[*n - 1].end = end;
        begin = end + gap;
    }
    *out = chunks;
    return AKUNU_OK;
}

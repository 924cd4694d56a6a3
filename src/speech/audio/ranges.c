/* Ranges are read from the clip in one pass: what lies between is read and dropped. */
#include "speech/audio/ranges.h"

#include <string.h>

#include "speech/audio/mel.h"
#include "base/mem.h"

enum { PIECE = 4096 /* samples dropped at once */ };

struct ak_ranges {
    struct ak_audio *of;
    const struct ak_audio_range *ranges;
    size_t n, at;     /* ranges; the one that is read */
    uint64_t read;    /* samples of it read */
    uint64_t source;  /* next sample of the clip */
    uint32_t silence; /* samples between ranges */
    uint32_t silent;  /* of the silence before ranges[at] still to come */
    float dropped[PIECE];
};

ak_status ak_ranges_open(struct ak_audio *of, const struct ak_audio_range *ranges, size_t n,
                         uint32_t silence, struct ak_ranges **out, struct ak_error *error)
{
    *out = NULL;
    for (size_t i = 1; i < n; i++)
        if (ranges[i].first < ranges[i - 1].first + ranges[i - 1].n)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "range %zu begins at sample %llu, before the end of the one before", i,
                           (unsigned long long)ranges[i].first);
    struct ak_ranges *r = ak_alloc(1, sizeof *r);
    if (!r)
        return ak_fail_memory(error, "ranges of a clip", sizeof *r);
    r->of = of;
    r->ranges = ranges;
    r->n = n;
    r->silence = silence;
    ak_status status = ak_ranges_rewind(r, error);
    if (status != AKUNU_OK) {
        ak_ranges_free(r);
        return status;
    }
    *out = r;
    return AKUNU_OK;
}

void ak_ranges_free(struct ak_ranges *r)
{
    ak_free(r);
}

uint64_t ak_ranges_samples(const struct ak_ranges *r)
{
    uint64_t sum = r->n > 0 ? (uint64_t)(r->n - 1) * r->silence : 0;
    for (size_t i = 0; i < r->n; i++)
        sum += r->ranges[i].n;
    return sum;
}

ak_status ak_ranges_rewind(struct ak_ranges *r, struct ak_error *error)
{
    AK_TRY(ak_audio_rewind(r->of, error));
    r->at = 0;
    r->read = r->source = 0;
    r->silent = 0;
    return AKUNU_OK;
}

/* Skips samples of the clip up to `first`. */
static ak_status skip_to(struct ak_ranges *r, uint64_t first, struct ak_error *error)
{
    while (r->source < first) {
        uint64_t left = first - r->source;
        size_t got, wanted = left < PIECE ? (size_t)left : PIECE;
        AK_TRY(ak_audio_read(r->of, r->dropped, wanted, &got, error));
        r->source += got;
        if (got < wanted)
            return AKUNU_OK;
    }
    return AKUNU_OK;
}

/* Samples of the current range, or of the silence before it: zeros where the clip has ended. */
static ak_status read_some(struct ak_ranges *r, float *out, size_t max, size_t *n,
                           struct ak_error *error)
{
    const struct ak_audio_range *range = &r->ranges[r->at];
    uint64_t left = r->silent > 0 ? r->silent : range->n - r->read;
    size_t got = 0;
    *n = left < max ? (size_t)left : max;
    if (r->silent > 0) {
        r->silent -= (uint32_t)*n;
    } else {
        AK_TRY(skip_to(r, range->first + r->read, error));
        AK_TRY(ak_audio_read(r->of, out, *n, &got, error));
        r->source += got;
        r->read += *n;
    }
    memset(out + got, 0, (*n - got) * sizeof *out);
    if (r->silent == 0 && r->read == range->n) {
        r->at++;
        r->read = 0;
        r->silent = r->silence;
    }
    return AKUNU_OK;
}

ak_status ak_ranges_read(struct ak_ranges *r, float *out, size_t max, size_t *n,
                         struct ak_error *error)
{
    *n = 0;
    while (*n < max && r->at < r->n) {
        size_t got;
        AK_TRY(read_some(r, out + *n, max - *n, &got, error));
        *n += got;
    }
    return AKUNU_OK;
}

double ak_ranges_time(const struct ak_audio_range *ranges, size_t n, uint32_t silence,
                      double seconds, bool is_end)
{
    const double rate = AK_MEL_RATE;
    double at = 0.0; /* seconds of the ranges before */
    for (size_t i = 0; i < n; i++) {
        double first = (double)ranges[i].first / rate, length = (double)ranges[i].n / rate;
        double gap = (double)silence / rate;
        if (seconds < at) /* in the silence before */
            return first;
        if (seconds <= at + length)
            return first + (seconds - at);
        if (i + 1 == n || (is_end && seconds <= at + length + gap))
            return first + length;
        at += length + gap;
    }
    return seconds;
}

/* Filters and frames of log-mel spectrograms. The transform of 400 real samples is one of 200
 * complex numbers, 5 · 5 · 4 · 2, decimated in time. LANES frames are transformed side by side, so
 * that each operation is one of vectors. */
#include "speech/audio/mel.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"

enum {
    LANES = 8,
    HALF = AK_MEL_FRAME / 2, /* complex numbers of the transform */
    MAX_RADIX = 5
};

/* Radix of each pass over the transform, from the first on. */
static const uint32_t radices[] = { 5, 5, 4, 2 };
enum { PASSES = sizeof radices / sizeof *radices };

struct turn {
    double re, im;
};

/* One number of the transform, of each frame. */
struct lanes {
    double re[LANES], im[LANES];
};

struct ak_mel {
    uint32_t n_mels;
    double window[AK_MEL_FRAME];
    struct turn turns[AK_MEL_FRAME]; /* e^(−2πik / AK_MEL_FRAME) */
    uint32_t order[HALF];            /* the number that stands at i before the first pass */
    double cos5[2], sin5[2];         /* of 2π/5 and 4π/5 */
    struct {
        uint32_t first, end; /* bins whose weight is not 0 */
    } spans[AK_MEL_MAX];
    double weights[]; /* [n_mels][AK_MEL_BINS] */
};

/* ---- Filters ------------------------------------------------------------ */
/* Slaney's scale: linear to 1,000 Hz, where it is 15; then 27 filters each time that the frequency
 * grows 6.4-fold. */
static const double linear_hz = 200.0 / 3.0, knee_hz = 1000.0, knee = 15.0, growth = 6.4,
                    growth_filters = 27.0;

static double mel_of_hz(double hz)
{
    return hz < knee_hz ? hz / linear_hz :
                          knee + ak_ln(hz / knee_hz) / ak_ln(growth) * growth_filters;
}

static double hz_of_mel(double mel)
{
    return mel < knee ? mel * linear_hz :
                        knee_hz * ak_exp((mel - knee) / growth_filters * ak_ln(growth));
}

/* The weights are rounded to float32, as a model's file has them. */
static void make_triangles(struct ak_mel *mel)
{
    const double step = mel_of_hz(AK_MEL_RATE / 2.0) / (mel->n_mels + 1);
    for (uint32_t m = 0; m < mel->n_mels; m++) {
        double left = hz_of_mel(m * step), top = hz_of_mel((m + 1) * step),
               right = hz_of_mel((m + 2) * step);
        for (uint32_t k = 0; k < AK_MEL_BINS; k++) {
            double hz = (double)k * AK_MEL_RATE / AK_MEL_FRAME;
            double up = (hz - left) / (top - left), down = (right - hz) / (right - top);
            double height = up < down ? up : down;
            mel->weights[m * AK_MEL_BINS + k] =
                height > 0.0 ? (double)(float)(height * 2.0 / (right - left)) : 0.0;
        }
    }
}

static ak_status copy_weights(struct ak_mel *mel, const float *weights, struct ak_error *error)
{
    for (size_t i = 0; i < (size_t)mel->n_mels * AK_MEL_BINS; i++) {
        if (!(weights[i] >= 0.0f && weights[i] <= 1e6f))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "mel filters: element %zu is %g; expected 0 to 1e6", i,
                           (double)weights[i]);
        mel->weights[i] = (double)weights[i];
    }
    return AKUNU_OK;
}

static void find_spans(struct ak_mel *mel)
{
    for (uint32_t m = 0; m < mel->n_mels; m++) {
        const double *w = mel->weights + (size_t)m * AK_MEL_BINS;
        uint32_t first = 0, end = AK_MEL_BINS;
        while (first < end && w[first] == 0.0)
            first++;
        while (end > first && w[end - 1] == 0.0)
            end--;
        mel->spans[m].first = first;
        mel->spans[m].end = end;
    }
}

/* ---- Tables ------------------------------------------------------------- */
static struct turn turn_of(double part)
{
    double sin, cos;
    ak_sincos(0x1.921fb54442d18p+2 * part, &sin, &cos);
    return (struct turn){ cos, -sin };
}

/* Decimation in time: a pass of radix r joins transforms of the numbers i ≡ 0, …, r − 1 mod r. */
static uint32_t order_of(uint32_t position)
{
    uint32_t number = 0, stride = 1, size = HALF;
    for (uint32_t p = PASSES; p-- > 0; stride *= radices[p]) {
        size /= radices[p];
        number += position / size * stride;
        position %= size;
    }
    return number;
}

static void make_tables(struct ak_mel *mel)
{
    for (uint32_t k = 0; k < AK_MEL_FRAME; k++) {
        mel->turns[k] = turn_of((double)k / AK_MEL_FRAME);
        mel->window[k] = 0.5 - 0.5 * mel->turns[k].re;
    }
    for (uint32_t i = 0; i < HALF; i++)
        mel->order[i] = order_of(i);
    for (uint32_t i = 0; i < 2; i++) {
        mel->cos5[i] = mel->turns[(i + 1) * AK_MEL_FRAME / 5].re;
        mel->sin5[i] = -mel->turns[(i + 1) * AK_MEL_FRAME / 5].im;
    }
}

ak_status ak_mel_new(uint32_t n_mels, uint32_t n_bins, const float *weights, struct ak_mel **out,
                     struct ak_error *error)
{
    *out = NULL;
    if (n_mels == 0 || n_mels > AK_MEL_MAX || n_bins != AK_MEL_BINS)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "mel filters: %u of %u frequencies; expected 1 to %d of %d", n_mels, n_bins,
                       AK_MEL_MAX, AK_MEL_BINS);
    size_t bytes = sizeof(struct ak_mel) + (size_t)n_mels * AK_MEL_BINS * sizeof(double);
    struct ak_mel *mel = ak_alloc(1, bytes);
    if (!mel)
        return ak_fail_memory(error, "mel filters", bytes);
    mel->n_mels = n_mels;
    make_tables(mel);
    ak_status status = AKUNU_OK;
    if (weights)
        status = copy_weights(mel, weights, error);
    else
        make_triangles(mel);
    if (status != AKUNU_OK) {
        ak_mel_free(mel);
        return status;
    }
    find_spans(mel);
    *out = mel;
    return AKUNU_OK;
}

void ak_mel_free(struct ak_mel *mel)
{
    ak_free(mel);
}

uint32_t ak_mel_filters(const struct ak_mel *mel)
{
    return mel->n_mels;
}

/* ---- The transform ------------------------------------------------------ */
static inline void turn_lanes(struct lanes *z, struct turn t)
{
    for (int l = 0; l < LANES; l++) {
        double re = z->re[l] * t.re - z->im[l] * t.im;
        z->im[l] = z->re[l] * t.im + z->im[l] * t.re;
        z->re[l] = re;
    }
}

static inline void join2(struct lanes *a, struct lanes *b)
{
    for (int l = 0; l < LANES; l++) {
        double re = a->re[l], im = a->im[l];
        a->re[l] = re + b->re[l];
        a->im[l] = im + b->im[l];
        b->re[l] = re - b->re[l];
        b->im[l] = im - b->im[l];
    }
}

static inline void join4(struct lanes *z0, struct lanes *z1, struct lanes *z2, struct lanes *z3)
{
    for (int l = 0; l < LANES; l++) {
        double re02 = z0->re[l] + z2->re[l], im02 = z0->im[l] + z2->im[l];
        double re20 = z0->re[l] - z2->re[l], im20 = z0->im[l] - z2->im[l];
        double re13 = z1->re[l] + z3->re[l], im13 = z1->im[l] + z3->im[l];
        double re31 = z1->re[l] - z3->re[l], im31 = z1->im[l] - z3->im[l];
        z0->re[l] = re02 + re13;
        z0->im[l] = im02 + im13;
        z1->re[l] = re20 + im31;
        z1->im[l] = im20 - re31;
        z2->re[l] = re02 - re13;
        z2->im[l] = im02 - im13;
        z3->re[l] = re20 - im31;
        z3->im[l] = im20 + re31;
    }
}

static inline void join5(const double *c, const double *s, struct lanes *const *z)
{
    for (int l = 0; l < LANES; l++) {
        double re0 = z[0]->re[l], im0 = z[0]->im[l];
        double re14 = z[1]->re[l] + z[4]->re[l], im14 = z[1]->im[l] + z[4]->im[l];
        double re41 = z[1]->re[l] - z[4]->re[l], im41 = z[1]->im[l] - z[4]->im[l];
        double re23 = z[2]->re[l] + z[3]->re[l], im23 = z[2]->im[l] + z[3]->im[l];
        double re32 = z[2]->re[l] - z[3]->re[l], im32 = z[2]->im[l] - z[3]->im[l];
        z[0]->re[l] = re0 + re14 + re23;
        z[0]->im[l] = im0 + im14 + im23;
        double a = re0 + c[0] * re14 + c[1] * re23, b = im0 + c[0] * im14 + c[1] * im23;
        double d = s[0] * re41 + s[1] * re32, e = s[0] * im41 + s[1] * im32;
        z[1]->re[l] = a + e;
        z[1]->im[l] = b - d;
        z[4]->re[l] = a - e;
        z[4]->im[l] = b + d;
        a = re0 + c[1] * re14 + c[0] * re23;
        b = im0 + c[1] * im14 + c[0] * im23;
        d = s[1] * re41 - s[0] * re32;
        e = s[1] * im41 - s[0] * im32;
        z[2]->re[l] = a + e;
        z[2]->im[l] = b - d;
        z[3]->re[l] = a - e;
        z[3]->im[l] = b + d;
    }
}

static void transform(const struct ak_mel *mel, struct lanes z[HALF])
{
    uint32_t done = 1; /* numbers of a finished transform */
    for (uint32_t p = 0; p < PASSES; done *= radices[p], p++)
        for (uint32_t k = 0; k < done; k++)
            for (uint32_t from = k; from < HALF; from += done * radices[p]) {
                struct lanes *joined[MAX_RADIX] = { 0 };
                for (uint32_t j = 0; j < radices[p]; j++) {
                    joined[j] = &z[from + j * done];
                    if (j * k > 0)
                        turn_lanes(joined[j],
                                   mel->turns[j * k * (AK_MEL_FRAME / (done * radices[p]))]);
                }
                switch (radices[p]) {
                case 2: join2(joined[0], joined[1]); break;
                case 4: join4(joined[0], joined[1], joined[2], joined[3]); break;
                default: join5(mel->cos5, mel->sin5, joined); break;
                }
            }
}

/* Power of frequency k, from the transform of even samples + i · odd ones. */
static void power(const struct ak_mel *mel, const struct lanes z[HALF], uint32_t k,
                  double out[LANES])
{
    const struct lanes *a = &z[k % HALF], *b = &z[(HALF - k) % HALF];
    const struct turn t = mel->turns[k];
    for (int l = 0; l < LANES; l++) {
        double even_re = 0.5 * (a->re[l] + b->re[l]), even_im = 0.5 * (a->im[l] - b->im[l]);
        double odd_re = 0.5 * (a->im[l] + b->im[l]), odd_im = 0.5 * (b->re[l] - a->re[l]);
        double re = even_re + (odd_re * t.re - odd_im * t.im);
        double im = even_im + (odd_re * t.im + odd_im * t.re);
        out[l] = re * re + im * im;
    }
}

/* n frames, LANES at most. */
static void make_frames(const struct ak_mel *mel, const float *samples, size_t n, float *out)
{
    struct lanes z[HALF] = { 0 };
    double powers[AK_MEL_BINS][LANES];
    for (uint32_t i = 0; i < HALF; i++) {
        const uint32_t at = 2 * mel->order[i];
        for (size_t l = 0; l < n; l++) {
            z[i].re[l] = (double)samples[l * AK_MEL_HOP + at] * mel->window[at];
            z[i].im[l] = (double)samples[l * AK_MEL_HOP + at + 1] * mel->window[at + 1];
        }
    }
    transform(mel, z);
    for (uint32_t k = 0; k < AK_MEL_BINS; k++)
        power(mel, z, k, powers[k]);
    for (uint32_t m = 0; m < mel->n_mels; m++) {
        double sums[LANES] = { 0 };
        const double *w = mel->weights + (size_t)m * AK_MEL_BINS;
        for (uint32_t k = mel->spans[m].first; k < mel->spans[m].end; k++)
            for (int l = 0; l < LANES; l++)
                sums[l] += w[k] * powers[k][l];
        for (size_t l = 0; l < n; l++)
            out[l * mel->n_mels + m] =
                (float)(sums[l] > 1e-10 ? ak_ln(sums[l]) * 0x1.bcb7b1526e50ep-2 : -10.0);
    }
}

void ak_mel_frames(const struct ak_mel *mel, const float *samples, size_t n_frames, float *out)
{
    for (size_t t = 0; t < n_frames; t += LANES)
        make_frames(mel, samples + t * AK_MEL_HOP, ak_min_size(LANES, n_frames - t),
                    out + t * mel->n_mels);
}

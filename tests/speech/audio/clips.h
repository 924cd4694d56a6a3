/* Audio files in memory for tests: tones that libsndfile encodes, bytes that are joined, cut and
 * changed, and what the library reads of them. */
#ifndef AK_TESTS_SPEECH_AUDIO_CLIPS_H
#define AK_TESTS_SPEECH_AUDIO_CLIPS_H

#include "tests/test.h"

#include <math.h>
#include <sndfile.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "speech/audio/audio.h"
#include "speech/audio/mel.h"

struct file {
    unsigned char *bytes;
    int64_t n, at; /* at: of the virtual file while it is written */
};

static inline void file_add(struct file *f, const void *bytes, size_t n)
{
    f->bytes = realloc(f->bytes, (size_t)f->n + n + 1);
    ck_assert_ptr_nonnull(f->bytes);
    if (bytes)
        memcpy(f->bytes + f->n, bytes, n);
    else
        memset(f->bytes + f->n, 0, n);
    f->n += (int64_t)n;
}

static inline void file_free(struct file *f)
{
    free(f->bytes);
    *f = (struct file){ 0 };
}

/* Offset of the first occurrence of these bytes at or after `from`. */
static inline int64_t file_find(const struct file *f, int64_t from, const char *bytes, size_t n)
{
    for (int64_t at = from; at + (int64_t)n <= f->n; at++)
        if (memcmp(f->bytes + at, bytes, n) == 0)
            return at;
    ck_abort_msg("%.*s is not in the file", (int)n, bytes);
    return -1;
}

static inline void file_put(struct file *f, int64_t at, size_t n, uint64_t value, bool big)
{
    for (size_t i = 0; i < n; i++)
        f->bytes[at + (int64_t)(big ? n - 1 - i : i)] = (unsigned char)(value >> 8 * i);
}

/* ---- Encoding ------------------------------------------------------------ */
static sf_count_t file_bytes(void *user)
{
    return ((struct file *)user)->n;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user)
{
    struct file *f = user;
    return f->at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f->at : f->n);
}

static sf_count_t file_read(void *to, sf_count_t n, void *user)
{
    struct file *f = user;
    n = n < f->n - f->at ? n : f->n - f->at;
    memcpy(to, f->bytes + f->at, (size_t)n);
    f->at += n;
    return n;
}

static sf_count_t file_write(const void *from, sf_count_t n, void *user)
{
    struct file *f = user;
    if (f->at + n > f->n)
        file_add(f, NULL, (size_t)(f->at + n - f->n));
    memcpy(f->bytes + f->at, from, (size_t)n);
    f->at += n;
    return n;
}

static sf_count_t file_tell(void *user)
{
    return ((struct file *)user)->at;
}

enum { CHANNELS_MAX = 8 };

/* A tone of its own in each channel, of hertz[c], for `seconds`. Without bytes: this libsndfile
 * does not write the format. */
static inline struct file make_tones(int format, int rate, int channels, const double *hertz,
                                     double seconds)
{
    static SF_VIRTUAL_IO calls = { file_bytes, file_seek, file_read, file_write, file_tell };
    SF_INFO info = { .format = format, .samplerate = rate, .channels = channels };
    struct file f = { 0 };
    if (!sf_format_check(&info))
        return f;
    SNDFILE *out = sf_open_virtual(&calls, SFM_WRITE, &info, &f);
    ck_assert_msg(out != NULL, "%s", sf_strerror(NULL));
    int n = (int)lround(seconds * rate);
    for (int i = 0; i < n; i++) {
        float frame[CHANNELS_MAX];
        for (int c = 0; c < channels; c++)
            frame[c] = 0.5f * (float)sin(2.0 * M_PI * hertz[c] * i / rate);
        sf_writef_float(out, frame, 1);
    }
    sf_close(out);
    return f;
}

/* The same tone in all channels. */
static inline struct file make_tone(int format, int rate, int channels, double hertz,
                                    double seconds)
{
    double all[CHANNELS_MAX];
    for (int c = 0; c < CHANNELS_MAX; c++)
        all[c] = hertz;
    return make_tones(format, rate, channels, all, seconds);
}

/* ---- Reading ------------------------------------------------------------- */
enum { READ_MAX = 1 << 17 };

struct heard {
    ak_status status;
    struct ak_error error;
    float samples[READ_MAX];
    size_t n;
    double stated, seconds; /* by the headers; what was read */
    char warning[256];      /* "": none */
};

/* Reads the file after a second of it that counts for nothing, and again after each of two rewinds,
 * of which the first leaves off in the middle: all must give the same. The caller frees it. */
static inline struct heard *hear(const struct file *f)
{
    struct heard *h = calloc(1, sizeof *h);
    struct ak_audio *audio;
    float again[1000];
    size_t n;
    ck_assert_ptr_nonnull(h);
    h->status = ak_audio_open_bytes(f->bytes, (size_t)f->n, "clip", &audio, &h->error);
    if (h->status != AKUNU_OK)
        return h;
    h->stated = ak_audio_seconds(audio);
    h->status = ak_audio_read(audio, h->samples, AK_MEL_RATE, &n, &h->error);
    if (h->status == AKUNU_OK)
        h->status = ak_audio_rewind(audio, &h->error);
    if (h->status == AKUNU_OK)
        h->status = ak_audio_read(audio, h->samples, READ_MAX, &h->n, &h->error);
    h->seconds = ak_audio_seconds(audio);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ak_audio_rewind(audio, &h->error), AKUNU_OK);
        for (size_t at = 0; at < (i == 0 ? h->n / 2 : h->n); at += n) {
            ck_assert_int_eq(ak_audio_read(audio, again, 1000, &n, &h->error), AKUNU_OK);
            ck_assert(n > 0 && memcmp(again, h->samples + at, n * sizeof *again) == 0);
        }
    }
    const char *warning = ak_audio_warning(audio);
    snprintf(h->warning, sizeof h->warning, "%s", warning ? warning : "");
    ak_audio_close(audio);
    return h;
}

/* The part of the power between two times that is a tone of `hertz`: 1 if all is. */
static inline double tone_share(const struct heard *h, double from, double to, double hertz)
{
    double s = 0.0, c = 0.0, power = 0.0;
    size_t first = (size_t)(from * AK_MEL_RATE), end = (size_t)(to * AK_MEL_RATE);
    ck_assert_uint_le(end, h->n);
    for (size_t i = first; i < end; i++) {
        double x = (double)h->samples[i], phase = 2.0 * M_PI * hertz * (double)i / AK_MEL_RATE;
        s += x * sin(phase);
        c += x * cos(phase);
        power += x * x;
    }
    return power > 1.0 ? 2.0 * (s * s + c * c) / ((double)(end - first) * power) : 0.0;
}

#endif

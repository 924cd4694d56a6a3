/* Audio files as recorders, browsers and `cat` leave them: several in one, with headers that were
 * never finished, in containers that libsndfile does not read. Lengths beside those of the parts,
 * which are ffmpeg's, too (tests/golden/clips.py). */
#include "tests/speech/audio/clips.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "speech/audio/decoder.h"
#include "speech/audio/scan.h"

enum { LOW = 440, HIGH = 1500 };

static const struct {
    const char *name;
    int format, rate; /* rate: another that the format knows */
    double tolerance; /* seconds per part that an encoder may add */
} formats[] = {
    { "WAV", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 44100, 0.0 },
    { "WAV of floats", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000, 0.0 },
    { "big-endian WAV", SF_FORMAT_WAV | SF_ENDIAN_BIG | SF_FORMAT_PCM_16, 22050, 0.0 },
    { "RF64", SF_FORMAT_RF64 | SF_FORMAT_PCM_24, 48000, 0.0 },
    { "Wave64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, 11025, 0.0 },
    { "AIFF", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 44100, 0.0 },
    { "AIFF-C", SF_FORMAT_AIFF | SF_FORMAT_ULAW, 8000, 0.0 },
    { "AU", SF_FORMAT_AU | SF_FORMAT_PCM_16, 32000, 0.0 },
    { "CAF", SF_FORMAT_CAF | SF_FORMAT_PCM_16, 96000, 0.0 },
    { "FLAC", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100, 0.0 },
    { "Vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 44100, 0.0 },
    { "Opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 48000, 0.0 },
    { "MP3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 44100, 0.11 },
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static void check_seconds(const struct heard *h, double expected, double tolerance)
{
    ck_assert_msg(h->status == AKUNU_OK, "%s", h->error.message);
    double found = (double)h->n / AK_MEL_RATE;
    ck_assert_msg(fabs(found - expected) < tolerance + 0.001, "%.4f s, expected %.4f", found,
                  expected);
    ck_assert(fabs(h->seconds - found) < 0.001);
    if (h->stated > 0.0)
        ck_assert_msg(fabs(h->stated - found) < tolerance + 0.001, "%.4f stated, %.4f found",
                      h->stated, found);
}

/* Three files in one: 16,000 mono, another rate in stereo, 16,000 mono. */
START_TEST(joined)
{
    const int i = _i;
    struct file a = make_tone(formats[i].format, 16000, 1, LOW, 0.5);
    struct file b = make_tone(formats[i].format, formats[i].rate, 2, HIGH, 0.4), all = { 0 };
    if (a.n > 0) {
        file_add(&all, a.bytes, (size_t)a.n);
        file_add(&all, b.bytes, (size_t)b.n);
        file_add(&all, a.bytes, (size_t)a.n);
        struct heard *h = hear(&all);
        check_seconds(h, 1.4, 3 * formats[i].tolerance);
        double lag = ((double)h->n / AK_MEL_RATE - 1.4) / 3.0;
        ck_assert_str_eq(h->warning, "");
        ck_assert_msg(tone_share(h, 0.15, 0.45, LOW) > 0.95, "%s: the first", formats[i].name);
        ck_assert_msg(tone_share(h, 0.6 + lag, 0.85 + lag, HIGH) > 0.95, "%s: the second",
                      formats[i].name);
        ck_assert_msg(tone_share(h, 1.05 + 2 * lag, 1.35, LOW) > 0.95, "%s: the third",
                      formats[i].name);
        free(h);
    }
    file_free(&a);
    file_free(&b);
    file_free(&all);
}
END_TEST

/* Two files in one, both of another rate: the resampler begins anew with the second. */
START_TEST(joined_and_resampled)
{
    const int i = _i;
    struct file a = make_tone(formats[i].format, formats[i].rate, 1, LOW, 0.5);
    struct file b = make_tone(formats[i].format, formats[i].rate, 1, HIGH, 0.4), all = { 0 };
    if (a.n > 0) {
        file_add(&all, a.bytes, (size_t)a.n);
        file_add(&all, b.bytes, (size_t)b.n);
        struct heard *h = hear(&all);
        check_seconds(h, 0.9, 2 * formats[i].tolerance);
        double lag = ((double)h->n / AK_MEL_RATE - 0.9) / 2.0;
        ck_assert_msg(tone_share(h, 0.15, 0.45, LOW) > 0.95, "%s: the first", formats[i].name);
        ck_assert_msg(tone_share(h, 0.6 + lag, 0.85 + lag, HIGH) > 0.95, "%s: the second",
                      formats[i].name);
        free(h);
    }
    file_free(&a);
    file_free(&b);
    file_free(&all);
}
END_TEST

/* The mean of two channels that differ: of n that have a tone, a share of (n / channels)² of the
 * power of one, and no more than the loudest of them. */
START_TEST(channels_are_mixed)
{
    static const struct {
        int rate, n;
        double hertz[3], low, high;
    } clips[] = { { 16000, 2, { LOW, HIGH }, 0.5, 0.5 },
                  { 16000, 2, { HIGH, LOW }, 0.5, 0.5 },
                  { 44100, 2, { LOW, HIGH }, 0.5, 0.5 },
                  { 16000, 2, { LOW, 0.0 }, 1.0, 0.0 } };
    for (size_t i = 0; i < sizeof clips / sizeof *clips; i++) {
        struct file f = make_tones(SF_FORMAT_WAV | SF_FORMAT_FLOAT, clips[i].rate, clips[i].n,
                                   clips[i].hertz, 0.5);
        struct heard *h = hear(&f);
        check_seconds(h, 0.5, 0.0);
        float loudest = 0.0f;
        for (size_t j = 0; j < h->n; j++)
            loudest = fmaxf(loudest, fabsf(h->samples[j]));
        bool is_alone = clips[i].hertz[1] <= 0.0;
        ck_assert_msg(fabs((double)loudest - (is_alone ? 0.25 : 0.5)) < 0.05, "clip %zu: %g", i,
                      (double)loudest);
        ck_assert_double_eq_tol(tone_share(h, 0.1, 0.4, LOW), clips[i].low, 0.02);
        ck_assert_double_eq_tol(tone_share(h, 0.1, 0.4, HIGH), clips[i].high, 0.02);
        free(h);
        file_free(&f);
    }
}
END_TEST

/* Amplitude of a tone of 0.5 that one channel alone has, as ffmpeg 5.1 mixes it down with -ac 1
 * (the root of twice the power that `ffmpeg -i CLIP -ac 1 -af astats` shows). */
START_TEST(surround_as_ffmpeg)
{
    static const int WAV = SF_FORMAT_WAV | SF_FORMAT_FLOAT,
                     FLAC = SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
                     VORBIS = SF_FORMAT_OGG | SF_FORMAT_VORBIS;
    static const struct {
        int format, n;
        double amplitudes[CHANNELS_MAX];
    } clips[] = {
        { WAV, 3, { 0.25, 0.25, 0.0 } },
        { FLAC, 3, { 0.1464, 0.1464, 0.2071 } },
        { VORBIS, 3, { 0.1464, 0.2071, 0.1464 } },
        { WAV, 4, { 0.1213, 0.1213, 0.1716, 0.0858 } },
        { FLAC, 4, { 0.1464, 0.1464, 0.1036, 0.1036 } },
        { WAV, 6, { 0.1036, 0.1036, 0.1464, 0.0, 0.0732, 0.0732 } },
        { FLAC, 6, { 0.1036, 0.1036, 0.1464, 0.0, 0.0732, 0.0732 } },
        { VORBIS, 6, { 0.1036, 0.1464, 0.1036, 0.0732, 0.0732, 0.0 } },
        { FLAC, 8, { 0.0801, 0.0801, 0.1133, 0.0, 0.0566, 0.0566, 0.0566, 0.0566 } },
    };
    for (size_t i = 0; i < sizeof clips / sizeof *clips; i++)
        for (int c = 0; c < clips[i].n; c++) {
            double hertz[CHANNELS_MAX] = { 0.0 }, power = 0.0, expected = clips[i].amplitudes[c];
            hertz[c] = LOW;
            struct file f = make_tones(clips[i].format, 16000, clips[i].n, hertz, 0.5);
            struct heard *h = hear(&f);
            ck_assert_msg(h->status == AKUNU_OK && h->n >= 6400, "%s", h->error.message);
            for (size_t j = 1600; j < 6400; j++)
                power += (double)h->samples[j] * (double)h->samples[j] / 4800.0;
            /* Vorbis is not exact */
            ck_assert_msg(fabs(sqrt(2.0 * power) - expected) < 0.01, "clip %zu, channel %d: %g", i,
                          c, sqrt(2.0 * power));
            free(h);
            file_free(&f);
        }
}
END_TEST

/* openai-whisper reads samples of 16 bits from ffmpeg, which cuts larger ones off. */
START_TEST(too_loud)
{
    for (int rate = 16000; rate <= 44100; rate += 28100) {
        struct file f = make_tone(SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, 1, LOW, 0.5);
        for (int64_t at = file_find(&f, 0, "data", 4) + 8; at + 4 <= f.n; at += 4) {
            float sample;
            memcpy(&sample, f.bytes + at, 4);
            sample *= 4.0f;
            memcpy(f.bytes + at, &sample, 4);
        }
        struct heard *h = hear(&f);
        float loudest = 0.0f;
        check_seconds(h, 0.5, 0.0);
        for (size_t i = 0; i < h->n; i++)
            loudest = fmaxf(loudest, fabsf(h->samples[i]));
        ck_assert_msg(loudest <= 1.0f && loudest > 0.999f, "%g", (double)loudest);
        free(h);
        file_free(&f);
    }
}
END_TEST

/* Files of different kinds in one, with tags between. */
START_TEST(joined_kinds)
{
    static const unsigned char id3[] = "ID3\x03\0\0\0\0\0\x0aTIT2\0\0\0\0\0";
    static const int order[] = { 10, 0, 11, 12, 9, 12, 5, 8 };
    struct file all = { 0 };
    int n = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        struct file one = make_tone(formats[order[i]].format, 16000, 1, n % 2 ? HIGH : LOW, 0.4);
        if (i % 2 == 1)
            file_add(&all, id3, 20);
        file_add(&all, one.bytes, (size_t)one.n);
        n += one.n > 0;
        file_free(&one);
    }
    struct heard *h = hear(&all);
    check_seconds(h, 0.4 * n, 0.25);
    ck_assert_str_eq(h->warning, "");
    free(h);
    file_free(&all);
}
END_TEST

/* Tags before, between and after files. Of the flags of ID3 (id3.org/id3v2.4.0-structure, 3.1),
 * 0x10 tells of a footer of 10 bytes that the size leaves out, and 0x40 of a header that it counts.
 */
START_TEST(tags)
{
    static const char footer[] = "ID3\x04\0\x10\0\0\0\x06TIT2\0\0"
                                 "3DI\x04\0\x10\0\0\0\x06",
                      extended[] = "ID3\x04\0\x40\0\0\0\x06\0\0\0\x06\x01\0";
    static const int kinds[] = { 0, 9 };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct file one = make_tone(formats[kinds[i]].format, 16000, 1, LOW, 0.4), all = { 0 };
        if (one.n == 0) /* libsndfile lacks the format */
            continue;
        file_add(&all, footer, sizeof footer - 1);
        file_add(&all, one.bytes, (size_t)one.n);
        file_add(&all, extended, sizeof extended - 1);
        file_add(&all, one.bytes, (size_t)one.n);
        file_add(&all, footer, sizeof footer - 1);
        file_add(&all, extended, sizeof extended - 1);
        file_add(&all, one.bytes, (size_t)one.n);
        struct heard *h = hear(&all);
        check_seconds(h, 1.2, 0.0);
        ck_assert_str_eq(h->warning, "");
        free(h);
        file_free(&one);
        file_free(&all);
    }
}
END_TEST

/* What follows a file and is none is not read; if it is long, the warning says so. */
START_TEST(rest)
{
    static const int kinds[] = { 0, 4, 5, 7, 8 };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int n = 4000; n <= 5000; n += 1000) {
            struct file f = make_tone(formats[kinds[i]].format, 16000, 1, LOW, 0.5);
            file_add(&f, NULL, (size_t)n);
            memset(f.bytes + f.n - n, 0xee, (size_t)n);
            struct heard *h = hear(&f);
            check_seconds(h, 0.5, 0.0);
            ck_assert_msg((strstr(h->warning, "the last 5000 bytes") != NULL) == (n == 5000),
                          "%s: %s", formats[kinds[i]].name, h->warning);
            free(h);
            file_free(&f);
        }
}
END_TEST

/* Headers whose sizes were never filled in: the recorder was killed, or wrote to a pipe. */
static const struct {
    int format;
    const char *chunk;
    unsigned at, n; /* of the size, after the chunk's identifier begins */
    bool big;
    uint64_t sizes[5]; /* up to a second 0 */
} unfinished[] = {
    { SF_FORMAT_WAV | SF_FORMAT_PCM_16,
      "data",
      4,
      4,
      false,
      { 0, 0xffffffff, 0x7fffffff, 0x80000000 } },
    { SF_FORMAT_WAV | SF_FORMAT_PCM_24, "data", 4, 4, false, { 0, 0xffffff00 } },
    { SF_FORMAT_WAV | SF_FORMAT_ULAW, "data", 4, 4, false, { 0, 0xffffffff } },
    { SF_FORMAT_WAV | SF_ENDIAN_BIG | SF_FORMAT_PCM_16, "data", 4, 4, true, { 0, 0xffffffff } },
    { SF_FORMAT_RF64 | SF_FORMAT_PCM_16, "ds64", 16, 8, false, { 0, UINT64_MAX } },
    { SF_FORMAT_W64 | SF_FORMAT_PCM_16, "data", 16, 8, false, { 0, 24, UINT64_MAX } },
    { SF_FORMAT_AIFF | SF_FORMAT_PCM_16, "SSND", 4, 4, true, { 0, 8, 0xffffffff } },
    { SF_FORMAT_CAF | SF_FORMAT_PCM_16, "data", 4, 8, true, { 0, 4, UINT64_MAX } },
    { SF_FORMAT_AU | SF_FORMAT_PCM_16, ".snd", 8, 4, true, { 0, 0xffffffff } },
};
enum { N_UNFINISHED = sizeof unfinished / sizeof *unfinished };

/* The size of the whole, too, is that of the samples', 0 or wrong. */
START_TEST(unfinished_headers)
{
    for (int k = 0; k == 0 || (k < 5 && unfinished[_i].sizes[k] != 0); k++)
        for (int whole = 0; whole < 3; whole++) {
            struct file f = make_tone(unfinished[_i].format, 16000, 1, LOW, 0.5);
            int64_t at = file_find(&f, 0, unfinished[_i].chunk, 4);
            file_put(&f, at + unfinished[_i].at, unfinished[_i].n, unfinished[_i].sizes[k],
                     unfinished[_i].big);
            if (whole > 0 && f.bytes[0] == 'R')
                file_put(&f, 4, 4, whole == 1 ? unfinished[_i].sizes[k] : 101, false);
            struct heard *h = hear(&f);
            check_seconds(h, 0.5, 0.0);
            ck_assert(tone_share(h, 0.1, 0.4, LOW) > 0.95);
            ck_assert_str_eq(h->warning, "");
            free(h);

            /* a second one after it ends the first */
            struct file both = { 0 };
            file_add(&both, f.bytes, (size_t)f.n);
            file_add(&both, f.bytes, (size_t)f.n);
            h = hear(&both);
            check_seconds(h, 1.0, 0.0);
            free(h);
            file_free(&both);
            file_free(&f);
        }
}
END_TEST

/* A file without samples is not filled with what follows; a cut one says how long it was. */
START_TEST(empty_and_cut)
{
    for (int i = 0; i < 9; i++) {
        struct file f = make_tone(formats[i].format, 16000, 1, LOW, 0.5);
        f.n -= 4000;
        struct heard *h = hear(&f);
        ck_assert_msg(h->status == AKUNU_OK && fabs(h->stated - 0.5) < 0.02 && h->seconds < 0.47,
                      "%s: %.3f s stated, %.3f found", formats[i].name, h->stated, h->seconds);
        free(h);
        file_free(&f);
        f = make_tone(formats[i].format, 16000, 1, LOW, 0.0);
        int64_t n_header = f.n;
        h = hear(&f);
        ck_assert_int_eq(h->status, AKUNU_ERROR_FORMAT);
        free(h);
        file_free(&f);
        f = make_tone(formats[i].format, 16000, 1, LOW, 0.5); /* cut before its first sample */
        f.n = n_header;
        h = hear(&f);
        ck_assert_int_eq(h->status, AKUNU_ERROR_FORMAT);
        free(h);
        file_free(&f);
    }
    struct file f = make_tone(formats[0].format, 16000, 1, LOW, 0.0);
    file_add(&f, "LIST\4\0\0\0INFO", 12);
    struct heard *h = hear(&f);
    ck_assert_int_eq(h->status, AKUNU_OK); /* as ffmpeg: size 0 is unknown */
    free(h);
    file_free(&f);
}
END_TEST

/* A part that nobody decodes is left out with a warning; alone it is an error. */
START_TEST(unknown_codecs)
{
    struct file known = make_tone(formats[0].format, 16000, 1, LOW, 0.5), unknown = { 0 },
                both = { 0 };
    file_add(&unknown, known.bytes, (size_t)known.n);
    file_put(&unknown, file_find(&unknown, 0, "fmt ", 4) + 8, 2, 0x5a5a, false);
    file_add(&both, known.bytes, (size_t)known.n);
    file_add(&both, unknown.bytes, (size_t)unknown.n);
    file_add(&both, known.bytes, (size_t)known.n);
    char expected[128];
    snprintf(expected, sizeof expected, "part 2 of 3, from byte %lld on, cannot be decoded",
             (long long)known.n);
    struct heard *h = hear(&both);
    check_seconds(h, 1.0, 0.0);
    ck_assert_str_eq(h->warning, expected);
    free(h);
    h = hear(&unknown);
    ck_assert_int_eq(h->status, AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(h->error.message, "not audio that can be decoded") != NULL, "%s",
                  h->error.message);
    ck_assert(strstr(h->error.message, "convert it to WAV first") != NULL);
    free(h);
    file_free(&known);
    file_free(&unknown);
    file_free(&both);
}
END_TEST

START_TEST(not_there)
{
    struct ak_audio *audio;
    struct ak_error error;
    char expected[128];
    snprintf(expected, sizeof expected, "/nowhere/clip.wav: %s", strerror(ENOENT));
    ck_assert_int_eq(ak_audio_open("/nowhere/clip.wav", &audio, &error), AKUNU_ERROR_FORMAT);
    ck_assert_str_eq(error.message, expected);
    ck_assert_ptr_null(audio);
}
END_TEST

/* ---- Bytes --------------------------------------------------------------- */
/* Calls of a system that gives less than it is asked for. */
static size_t most;         /* bytes of a call, of which every third is interrupted; 0: all */
static int reads_left = -1; /* after so many the file is empty; −1: never */
static unsigned n_calls;
ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);

static bool is_interrupted(void)
{
    if (most == 0 || ++n_calls % 3 != 0)
        return false;
    errno = EINTR;
    return true;
}

static size_t at_most(size_t n)
{
    return most > 0 && n > most ? most : n;
}

ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
    if (reads_left == 0)
        return 0;
    reads_left -= reads_left > 0;
    return is_interrupted() ? -1 : __real_pread(fd, to, at_most(n), at);
}

ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    return is_interrupted() ? -1 : __real_write(fd, from, at_most(n));
}

START_TEST(short_reads_and_writes)
{
    static const int kinds[] = { 0, 9, 10 };
    struct file all = { 0 };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct file one = make_tone(formats[kinds[i]].format, 16000, 1, LOW, 0.2);
        file_add(&all, one.bytes, (size_t)one.n);
        file_free(&one);
    }
    struct heard *whole = hear(&all);
    most = 700;
    struct heard *pieces = hear(&all);
    most = 0;
    ck_assert_msg(pieces->status == AKUNU_OK, "%s", pieces->error.message);
    ck_assert(whole->n > 0 && pieces->n == whole->n);
    ck_assert_mem_eq(pieces->samples, whole->samples, whole->n * sizeof *whole->samples);
    free(whole);
    free(pieces);
    file_free(&all);
}
END_TEST

/* Somebody empties a file of MPEG frames, larger than what is read at once, at any moment. */
START_TEST(emptied_file)
{
    enum { FRAMES = 3000, BYTES = 36 };
    struct file f = { 0 };
    bool is_whole = false;
    for (int i = 0; i < FRAMES; i++) {
        file_add(&f, "\xff\xf3\x18\xc0", 4);
        file_add(&f, NULL, BYTES - 4);
    }
    for (int n = 0; n < 1000 && !is_whole; n++) {
        struct ak_audio *audio;
        struct ak_error error;
        float samples[100];
        size_t n_read;
        reads_left = n;
        ak_status status = ak_audio_open_bytes(f.bytes, (size_t)f.n, "clip", &audio, &error);
        if (status == AKUNU_OK)
            status = ak_audio_read(audio, samples, 100, &n_read, &error);
        ck_assert(status == AKUNU_OK || status == AKUNU_ERROR_FORMAT);
        is_whole = reads_left > 0;
        reads_left = -1;
        ak_audio_close(audio);
    }
    ck_assert(is_whole);
    file_free(&f);
}
END_TEST

START_TEST(bytes_through_a_window)
{
    enum { N = 70000 };
    static struct ak_bytes b;
    struct file f = { 0 };
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    file_add(&f, NULL, N);
    memcpy(f.bytes + AK_BYTES_WINDOW - 2, "OggS", 4);
    memcpy(f.bytes + 5, "first", 5);
    ck_assert(fwrite(f.bytes, 1, N, file) == N && fflush(file) == 0);
    ak_bytes_open(&b, fileno(file), N);
    ck_assert_ptr_null(ak_bytes_at(&b, -1, 0));
    ck_assert_ptr_null(ak_bytes_at(&b, -1, 2));
    ck_assert_ptr_nonnull(ak_bytes_at(&b, 0, AK_BYTES_MAX));
    ck_assert_ptr_null(ak_bytes_at(&b, 0, AK_BYTES_MAX + 1));
    ck_assert_ptr_nonnull(ak_bytes_at(&b, N, 0));
    ck_assert_ptr_null(ak_bytes_at(&b, N - 1, 2));
    ck_assert_ptr_null(ak_bytes_at(&b, N + 1, 0));
    for (int64_t at = 0; at < N; at += 9973) {
        bool is_before = at < AK_BYTES_WINDOW;
        ck_assert_int_eq(ak_bytes_find(&b, at, "OggS", 4), is_before ? AK_BYTES_WINDOW - 2 : -1);
        ck_assert_int_eq(ak_bytes_find_any(&b, at, "Sg", 2), is_before ? AK_BYTES_WINDOW - 1 : -1);
        ck_assert_mem_eq(ak_bytes_at(&b, 5, 5), "first", 5); /* back to the start */
    }
    fclose(file);
    file_free(&f);
}
END_TEST

/* A process whose standard input is closed keeps bytes in the descriptor 0. */
START_TEST(spool_is_standard_input)
{
    struct ak_spool spool = ak_spool_none();
    struct ak_error error;
    char found[6];
    int input = dup(0);
    close(0);
    ck_assert_int_eq(ak_spool_add(&spool, "clip", "abc", 3, &error), AKUNU_OK);
    ck_assert_int_eq(spool.fd, 0);
    ck_assert_int_eq(ak_spool_add(&spool, "clip", "def", 3, &error), AKUNU_OK);
    ck_assert(ak_spool_read(&spool, 0, found, 6) && memcmp(found, "abcdef", 6) == 0);
    ak_spool_close(&spool);
    ck_assert(spool.fd < 0 && fcntl(0, F_GETFD) == -1);
    ak_spool_close(&spool);
    if (input >= 0) {
        ck_assert_int_eq(dup2(input, 0), 0);
        close(input);
    }
}
END_TEST

/* libsndfile reads a part as a file of its own. Before its first byte nothing is read, and no
 * offset overflows. */
static struct {
    SF_VIRTUAL_IO calls;
    void *user;
} given; /* to libsndfile, the last time */
SNDFILE *__real_sf_open_virtual(SF_VIRTUAL_IO *calls, int mode, SF_INFO *info, void *user);
SNDFILE *__wrap_sf_open_virtual(SF_VIRTUAL_IO *calls, int mode, SF_INFO *info, void *user);

SNDFILE *__wrap_sf_open_virtual(SF_VIRTUAL_IO *calls, int mode, SF_INFO *info, void *user)
{
    given.calls = *calls;
    given.user = user;
    return __real_sf_open_virtual(calls, mode, info, user);
}

START_TEST(virtual_file)
{
    enum { BEFORE = 5, PREFIX = 3, ALL = PREFIX + 20 };
    static const struct {
        sf_count_t offset;
        int whence;
        sf_count_t expected;
    } seeks[] = {
        { 7, SEEK_SET, 7 },          { -1, SEEK_SET, -1 },        { -8, SEEK_CUR, -1 },
        { -7, SEEK_CUR, 0 },         { 2, SEEK_CUR, 2 },          { INT64_MAX, SEEK_CUR, -1 },
        { INT64_MIN, SEEK_CUR, -1 }, { INT64_MAX, SEEK_END, -1 }, { -ALL - 1, SEEK_END, -1 },
        { -ALL, SEEK_END, 0 },       { 4, SEEK_END, ALL + 4 },    { -2, SEEK_END, ALL - 2 },
    };
    struct file wav = make_tone(formats[0].format, 16000, 1, LOW, 0.1);
    struct ak_audio_part part = { .first = BEFORE, .n = wav.n, .cut = 1.0 };
    struct ak_decoder *decoder;
    struct ak_error error;
    FILE *file = tmpfile();
    ck_assert(file && fwrite("00000", 1, BEFORE, file) == BEFORE &&
              fwrite(wav.bytes, 1, (size_t)wav.n, file) == (size_t)wav.n && fflush(file) == 0);
    ck_assert_int_eq(ak_decoder_open(&part, fileno(file), "clip", &decoder, &error), AKUNU_OK);
    part.n_prefix = PREFIX;
    part.n = ALL - PREFIX;
    memcpy(part.prefix, "abc", PREFIX);
    ck_assert_int_eq(given.calls.get_filelen(given.user), ALL);
    sf_count_t at = given.calls.seek(0, SEEK_SET, given.user);
    ck_assert_int_eq(at, 0);
    for (size_t i = 0; i < sizeof seeks / sizeof *seeks; i++) {
        ck_assert_msg(given.calls.seek(seeks[i].offset, seeks[i].whence, given.user) ==
                          seeks[i].expected,
                      "seek %zu", i);
        at = seeks[i].expected >= 0 ? seeks[i].expected : at;
        ck_assert_int_eq(given.calls.tell(given.user), at);
    }
    for (at = 0; at <= ALL + 1; at++) {
        char bytes[ALL + 8], expected[ALL + 1] = "abc";
        sf_count_t left = at < ALL ? ALL - at : 0;
        memcpy(expected + PREFIX, wav.bytes, ALL - PREFIX);
        ck_assert_int_eq(given.calls.seek(at, SEEK_SET, given.user), at);
        ck_assert_int_eq(given.calls.read(bytes, 2, given.user), left < 2 ? left : 2);
        ck_assert_int_eq(given.calls.seek(at, SEEK_SET, given.user), at);
        ck_assert_int_eq(given.calls.read(bytes, sizeof bytes, given.user), left);
        ck_assert(memcmp(bytes, expected + ALL - left, (size_t)left) == 0);
    }
    ak_decoder_close(decoder);
    fclose(file);
    file_free(&wav);
}
END_TEST

/* Scanners of files that end in their headers. */
START_TEST(cut_in_the_header)
{
    static struct ak_scan scan = { .name = "clip" };
    ak_scan_fn *const scanners[] = { ak_scan_au, ak_scan_matroska };
    struct ak_error error;
    int64_t end;
    FILE *file = tmpfile();
    ck_assert(file && fwrite(".snd", 1, 4, file) == 4 && fflush(file) == 0);
    for (int i = 0; i < 2; i++) {
        ak_bytes_open(&scan.in, fileno(file), i == 0 ? 4 : 0);
        ck_assert_int_eq(scanners[i](&scan, 0, &end, &error), AKUNU_ERROR_FORMAT);
        ck_assert_str_eq(error.message, "clip: cut off in its header");
    }
    fclose(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *any = tcase_create("any");
    tcase_add_loop_test(any, joined, 0, N_FORMATS);
    tcase_add_loop_test(any, joined_and_resampled, 0, N_FORMATS);
    tcase_add_test(any, channels_are_mixed);
    tcase_add_test(any, surround_as_ffmpeg);
    tcase_add_test(any, too_loud);
    tcase_add_test(any, joined_kinds);
    tcase_add_test(any, tags);
    tcase_add_test(any, rest);
    tcase_add_loop_test(any, unfinished_headers, 0, N_UNFINISHED);
    tcase_add_test(any, empty_and_cut);
    tcase_add_test(any, unknown_codecs);
    tcase_add_test(any, not_there);
    tcase_add_test(any, short_reads_and_writes);
    tcase_add_test(any, emptied_file);
    tcase_add_test(any, bytes_through_a_window);
    tcase_add_test(any, spool_is_standard_input);
    tcase_add_test(any, virtual_file);
    tcase_add_test(any, cut_in_the_header);
    suite_add_tcase(suite, any);
    return test_run(suite);
}

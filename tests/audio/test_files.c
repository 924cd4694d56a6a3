/* Audio files as recorders, browsers and `cat` leave them: several in one, with headers that were
 * never finished, in containers that libsndfile does not read. Lengths beside those of the parts,
 * which are ffmpeg's, too (tests/golden/clips.py). */
#include "tests/audio/clips.h"

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

/* The mean of channels that differ: of n that have a tone, a share of (n / channels)² of the power
 * of one, and no more than the loudest of them. */
START_TEST(channels_are_mixed)
{
    static const struct {
        int rate, n;
        double hertz[3], low, high;
    } clips[] = { { 16000, 2, { LOW, HIGH }, 0.5, 0.5 },
                  { 16000, 2, { HIGH, LOW }, 0.5, 0.5 },
                  { 44100, 2, { LOW, HIGH }, 0.5, 0.5 },
                  { 16000, 3, { LOW, LOW, HIGH }, 0.8, 0.2 },
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

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *any = tcase_create("any");
    tcase_add_loop_test(any, joined, 0, N_FORMATS);
    tcase_add_test(any, channels_are_mixed);
    tcase_add_test(any, joined_kinds);
    tcase_add_test(any, tags);
    tcase_add_test(any, rest);
    tcase_add_loop_test(any, unfinished_headers, 0, N_UNFINISHED);
    tcase_add_test(any, empty_and_cut);
    suite_add_tcase(suite, any);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

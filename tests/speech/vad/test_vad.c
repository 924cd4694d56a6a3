/* Voice activity detection beside the networks and programs that it follows: probabilities beside
 * Silero's own, ranges beside whisper.cpp's (tests/golden/vad.py). Then damaged files, ranges read
 * as one clip, and chunks. */
#include "tests/st_files.h"
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "speech/audio/mel.h"
#include "speech/audio/ranges.h"
#include "base/mem.h"
#include "tests/out_of_memory.h"
#include "tests/speech_clip.h"
#include "speech/vad/detect.h"

enum { SAMPLES = 64100, STEPS = 3000, MODEL_BYTES = 885098 };

static const char *model_path(char path[4096])
{
    snprintf(path, 4096, "%s/../../data/vad/silero-v6.2.0.bin", getenv("AK_TEST_DATA"));
    return path;
}

static struct ak_silero *open_model(void)
{
    char path[4096];
    struct ak_error error;
    struct ak_silero *silero;
    ck_assert_msg(ak_silero_open(model_path(path), &silero, &error) == AKUNU_OK, "%s",
                  error.message);
    return silero;
}

static FILE *open_golden(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/vad.txt", getenv("AK_TEST_DATA"));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    return file;
}

static struct ak_audio *open_samples(const float *samples, size_t n)
{
    struct ak_error error;
    struct ak_audio *audio;
    ck_assert_msg(ak_audio_open_samples(samples, n, AK_MEL_RATE, &audio, &error) == AKUNU_OK, "%s",
                  error.message);
    return audio;
}

static struct akunu_vad_params defaults(void)
{
    struct akunu_vad_params params;
    akunu_vad_params_default(&params, sizeof params);
    return params;
}

/* ---- The network -------------------------------------------------------- */
struct heard {
    float p[STEPS];
    size_t n, stop_after;
};

static bool hear(float probability, void *user)
{
    struct heard *h = user;
    h->p[h->n++] = probability;
    return h->n != h->stop_after;
}

/* A float32 LSTM in another order of sums is within 1e-5. */
START_TEST(probabilities_as_silero)
{
    struct ak_silero *silero = open_model();
    struct ak_error error;
    struct ak_vad_ranges found;
    struct akunu_vad_params params = defaults();
    struct heard *h = calloc(1, sizeof *h);
    float *samples = malloc(SAMPLES * sizeof *samples), expected;
    size_t n;
    test_speech_clip(samples, SAMPLES);
    struct ak_audio *audio = open_samples(samples, SAMPLES);
    ck_assert_int_eq(ak_vad_detect(silero, audio, &params, false, hear, h, &found, &error),
                     AKUNU_OK);
    ck_assert_uint_eq(found.n_samples, SAMPLES);
    FILE *file = open_golden();
    ck_assert(fscanf(file, "%zu", &n) == 1 && n == h->n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(fscanf(file, "%f", &expected), 1);
        ck_assert_msg(fabsf(h->p[i] - expected) < 1e-5f, "step %zu: %.8f, expected %.8f", i,
                      (double)h->p[i], (double)expected);
    }
    fclose(file);
    ak_vad_ranges_free(&found);

    /* cancelled, early and when there are ranges already */
    for (size_t stop_after = 3; stop_after <= n; stop_after += n - 3) {
        struct ak_audio_range old;
        *h = (struct heard){ .stop_after = stop_after };
        found = (struct ak_vad_ranges){ &old, 1, 2 };
        ck_assert_int_eq(ak_vad_detect(silero, audio, &params, false, hear, h, &found, &error),
                         AKUNU_ERROR_CANCELLED);
        ck_assert_uint_eq(h->n, stop_after);
        ck_assert(!found.ranges && found.n == 0);
    }
    ak_audio_close(audio);
    free(samples);
    free(h);
    ak_free(silero);
}
END_TEST

/* Loud samples, as files of floats may have, are as good as 64 and leave the network finite. */
START_TEST(loud_samples)
{
    static const float loudest[][2] = { { 64.0f, -64.0f }, { 3e38f, -3e38f }, { 64.5f, -65.0f } };
    struct ak_silero *silero = open_model();
    struct ak_error error;
    struct ak_vad_ranges found;
    struct akunu_vad_params params = defaults();
    struct heard *all = calloc(3, sizeof *all);
    float *samples = malloc(SAMPLES * sizeof *samples);
    test_speech_clip(samples, SAMPLES);
    for (size_t k = 0; k < 3; k++) {
        memcpy(samples + 1000, loudest[k], sizeof loudest[k]);
        struct ak_audio *audio = open_samples(samples, SAMPLES);
        ck_assert_int_eq(
            ak_vad_detect(silero, audio, &params, false, hear, &all[k], &found, &error), AKUNU_OK);
        for (size_t i = 0; i < all[k].n; i++)
            ck_assert(all[k].p[i] >= 0.0f && all[k].p[i] <= 1.0f);
        ck_assert_mem_eq(all[k].p, all[0].p, sizeof all[k].p);
        ck_assert_uint_gt(found.n, 0);
        ak_vad_ranges_free(&found);
        ak_audio_close(audio);
    }
    free(samples);
    free(all);
    ak_free(silero);
}
END_TEST

/* ---- Ranges ------------------------------------------------------------- */
static uint32_t noise;
static int next_random(void)
{
    noise = (noise * 1103515245u + 12345u) & 0x7fffffffu;
    return (int)(noise >> 16);
}

/* The steps of tests/golden/vad.py. */
static void make_steps(float *out)
{
    static const int levels[] = { 50, 420, 700, 950 }, lengths[] = { 8, 60 };
    noise = 777;
    for (int at = 0; at < STEPS;) {
        int level = levels[next_random() % 4];
        int draw = next_random(), n = 1 + draw % lengths[next_random() % 2];
        for (; n > 0; n--) {
            int x = level + next_random() % 101 - 50;
            if (at < STEPS)
                out[at++] = (float)(x < 0 ? 0 : x > 1000 ? 1000 : x) / 1000.0f;
        }
    }
}

static void segment(struct ak_vad_segmenter *s, const struct akunu_vad_params *params,
                    bool keep_cuts, const float *steps)
{
    struct ak_error error;
    ck_assert_int_eq(ak_vad_segmenter_begin(s, params, keep_cuts, &error), AKUNU_OK);
    for (int i = 0; i < STEPS; i++)
        ck_assert_int_eq(ak_vad_segmenter_add(s, steps[i], &error), AKUNU_OK);
    ck_assert_int_eq(ak_vad_segmenter_end(s, &error), AKUNU_OK);
}

START_TEST(ranges_as_whisper_cpp)
{
    static float steps[STEPS];
    struct akunu_vad_params params = defaults();
    struct ak_vad_segmenter s;
    unsigned n_cases = 0;
    size_t n;
    char line[100];
    make_steps(steps);
    FILE *file = open_golden();
    ck_assert_int_eq(fscanf(file, "%zu\n", &n), 1);
    for (; n > 0; n--)
        ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    while (fscanf(file, "%f %u %u %f %u %zu", &params.threshold, &params.min_speech_ms,
                  &params.min_silence_ms, &params.max_speech_s, &params.speech_pad_ms, &n) == 6) {
        segment(&s, &params, false, steps);
        ck_assert_uint_eq(s.n, n);
        for (size_t i = 0; i < n; i++) {
            unsigned long long start, end;
            ck_assert_int_eq(fscanf(file, "%llu %llu", &start, &end), 2);
            ck_assert_msg(
                s.ranges[i].first == start * 160 && s.ranges[i].first + s.ranges[i].n == end * 160,
                "case %u, range %zu: %llu to %llu, expected %llu to %llu", n_cases, i,
                (unsigned long long)s.ranges[i].first / 160,
                (unsigned long long)(s.ranges[i].first + s.ranges[i].n) / 160, start, end);
        }
        ak_vad_segmenter_free(&s);
        n_cases++;
    }
    ck_assert_uint_ge(n_cases, 6);
    fclose(file);
}
END_TEST

START_TEST(kept_cuts)
{
    static float steps[STEPS];
    struct akunu_vad_params params = defaults();
    struct ak_vad_segmenter s;
    params.max_speech_s = 2.0f;
    make_steps(steps);
    segment(&s, &params, true, steps);
    ck_assert_uint_gt(s.n, 10);
    for (size_t i = 0; i < s.n; i++) {
        ck_assert_uint_le(s.ranges[i].n, 2 * AK_MEL_RATE);
        ck_assert(i == 0 || s.ranges[i].first >= s.ranges[i - 1].first + s.ranges[i - 1].n);
    }
    ak_vad_segmenter_free(&s);
}
END_TEST

/* The padding is taken off the longest speech: what is left divides it even if that is nothing. If
 * it is less, whisper.cpp does not divide at all. */
START_TEST(padding_as_long_as_speech)
{
    static float steps[STEPS];
    struct akunu_vad_params params = defaults();
    struct ak_vad_segmenter s;
    params.max_speech_s = 1.0f;
    params.min_speech_ms = 0;
    for (int i = 0; i < STEPS; i++)
        steps[i] = 0.9f;
    for (int more = 0; more < 2; more++) { /* 16000 − 512 − 2 · 7744 samples, then fewer */
        params.speech_pad_ms = 484 + (unsigned)more;
        segment(&s, &params, true, steps);
        ck_assert_uint_eq(s.n, more ? 1 : STEPS / 2); /* begun at one step, ended at the next */
        ak_vad_segmenter_free(&s);
        ak_vad_segmenter_free(&s); /* zeros now */
    }
}
END_TEST

/* Speech that lasts too long ends in its last long pause, and goes on where that pause ended: a
 * short pause after it changes nothing. */
START_TEST(divided_in_a_pause)
{
    static float steps[STEPS];
    struct akunu_vad_params params = defaults();
    struct ak_vad_segmenter s;
    params.min_silence_ms = 1000;
    params.max_speech_s = 1.0f;
    params.speech_pad_ms = 0;
    for (int i = 0; i < STEPS; i++) /* 10 steps of speech, 8 of a pause, 22 with 2 of another */
        steps[i] = i < 10 || (i >= 18 && i < 40 && i / 2 != 12) ? 0.9f : 0.0f;
    segment(&s, &params, false, steps);
    ck_assert_uint_eq(s.n, 2);
    ck_assert_uint_eq(s.ranges[0].first, 0);
    ck_assert_uint_eq(s.ranges[0].n, 5120);
    ck_assert_uint_eq(s.ranges[1].first, 9280); /* 18 steps and 40, in whole 10 ms */
    ck_assert_uint_eq(s.ranges[1].first + s.ranges[1].n, 20480);
    ak_vad_segmenter_free(&s);
}
END_TEST

/* Speech of just min_speech_ms is none, and one step more is some: before a pause and at the end.
 */
START_TEST(shortest_speech)
{
    static float steps[STEPS];
    struct akunu_vad_params params = defaults();
    struct ak_vad_segmenter s;
    params.min_speech_ms = 96; /* three steps */
    params.speech_pad_ms = 0;
    for (size_t n = 1; n < 6; n++)
        for (size_t first = 100; first + n <= STEPS; first += STEPS - n - 100) {
            for (size_t i = 0; i < STEPS; i++)
                steps[i] = i >= first && i < first + n ? 0.9f : 0.0f;
            segment(&s, &params, false, steps);
            ck_assert_msg(s.n == (n > 3), "%zu steps from %zu on: %zu ranges", n, first, s.n);
            ak_vad_segmenter_free(&s);
        }
}
END_TEST

START_TEST(refused_parameters)
{
    struct ak_vad_segmenter s;
    struct ak_error error;
    struct akunu_vad_params params = defaults();
    params.threshold = NAN;
    ck_assert_int_eq(ak_vad_segmenter_begin(&s, &params, false, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "threshold"));
    params = defaults();
    params.overlap_s = -1.0f;
    ck_assert_int_eq(ak_vad_segmenter_begin(&s, &params, false, &error), AKUNU_ERROR_ARGUMENT);
    struct ak_vad_ranges r = { 0 };
    struct ak_vad_chunk *chunks;
    size_t n;
    ck_assert_int_eq(ak_vad_chunks(&r, 0, &chunks, &n, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert(!chunks && n == 0);
}
END_TEST

/* ---- Files -------------------------------------------------------------- */
struct file_case {
    size_t at; /* bytes before are kept */
    const char *bytes;
    size_t n;
    const char *message;
};

static uint8_t *read_model(void)
{
    char path[4096];
    uint8_t *bytes = malloc(MODEL_BYTES + 1);
    FILE *file = fopen(model_path(path), "rb");
    ck_assert(file && fread(bytes, 1, MODEL_BYTES + 1, file) == MODEL_BYTES);
    fclose(file);
    return bytes;
}

static void expect_refused(const char *path, const uint8_t *bytes, size_t n, const char *message)
{
    struct ak_error error = { 0 };
    struct ak_silero *silero;
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
    ak_status status = ak_silero_open(path, &silero, &error);
    ck_assert_msg(status == AKUNU_ERROR_FORMAT || status == AKUNU_ERROR_UNSUPPORTED,
                  "%zu bytes: status %d", n, (int)status);
    ck_assert_ptr_null(silero);
    ck_assert_msg(!message || strstr(error.message, message), "\"%s\" has no \"%s\"", error.message,
                  message);
    ck_assert_ptr_nonnull(strstr(error.message, "silero.bin"));
}

START_TEST(damaged_files)
{
    static const struct file_case cases[] = {
        { 0, "gguf", 4, "begins with \"lmgg\"" },
        { 4, "\x0b\0\0\0", 4, "expected \"silero-16k\"" },
        { 4, "\x98\xca\0\0", 4, "a Whisper model goes to -m" },
        { 8, "silero-08k", 10, "\"silero-08k\"" },
        { 30, "\0\1\0\0", 4, "the window is 256; expected 512" },
        { 38, "\5\0\0\0", 4, "number of convolutions is 5; expected 4" },
        { 102, "\xff\xff\xff\xff", 4, "output of the last convolution is -1" },
        { 106, "\7\0\0\0", 4, "7 dimensions" },
        { 110, "\xff\xff\xff\x7f", 4, "name of 2147483647 bytes" },
        { 114, "\x0c\0\0\0", 4, "type 12; expected 0 (F32) or 1 (F16)" },
        { 118, "\4\0\0\0", 4, "has the shape 128 × 129 × 4; expected 128 × 129 × 3" },
        { 130, "x", 1, "has none of that name" },
        { 166, "\0\x7e", 2, "element 0 is not a finite number" },
    };
    struct test_folder folder = test_folder_begin();
    char path[4096];
    snprintf(path, sizeof path, "%s", test_in(&folder, "silero.bin"));
    uint8_t *model = read_model(), *bytes = malloc(2 * MODEL_BYTES);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(bytes, model, MODEL_BYTES);
        memcpy(bytes + cases[i].at, cases[i].bytes, cases[i].n);
        expect_refused(path, bytes, MODEL_BYTES, cases[i].message);
    }
    /* the first tensor again, and the end cut off */
    memcpy(bytes, model, MODEL_BYTES);
    memcpy(bytes + MODEL_BYTES, model + 106, 60 + 128 * 129 * 3 * 2);
    expect_refused(path, bytes, MODEL_BYTES + 60 + 128 * 129 * 3 * 2, "is there twice");
    for (size_t n = 0; n < MODEL_BYTES; n += n < 400 ? 1 : 9973) {
        char message[100];
        snprintf(message, sizeof message, "the end of the file (%zu bytes) is inside %s", n,
                 n < 8   ? "the header" :
                 n < 30  ? "the version" :
                 n < 106 ? "the sizes of the model" :
                 n < 166 ? "the header of a tensor" :
                           "_model.");
        expect_refused(path, model, n,
                       n < 4    ? "not a GGML file" :
                       n < 8    ? message :
                       n < 18   ? "the name of the type has 10 bytes" :
                       n == 106 ? "tensor _model.stft.forward_basis_buffer is missing" :
                                  message);
    }
    /* a tensor of no dimension and no name, cut off before its type */
    memcpy(bytes, model, 106);
    memset(bytes + 106, 0, 12);
    expect_refused(path, bytes, 114, "(114 bytes) is inside the header of a tensor");
    expect_refused(path, bytes, 118, "tensor \"\": a Silero VAD model has none of that name");
    unlink(path);
    test_folder_end(&folder);
    free(model);
    free(bytes);
}
END_TEST

/* ---- Ranges as one clip ------------------------------------------------- */
enum { GAP = 7 };

/* The clip of ranges, made without ak_ranges. */
static size_t join(const float *samples, const struct ak_audio_range *ranges, size_t n, float *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; i > 0 && k < GAP; k++)
            out[at++] = 0.0f;
        for (uint64_t k = 0; k < ranges[i].n; k++) {
            uint64_t from = ranges[i].first + k;
            out[at++] = from < SAMPLES ? samples[from] : 0.0f;
        }
    }
    return at;
}

START_TEST(ranges_as_a_clip)
{
    static const struct ak_audio_range ranges[] = {
        { 3, 5000 }, { 5003, 1 }, { 20000, 160 }, { SAMPLES - 10, 15 }
    };
    struct ak_error error;
    struct ak_audio *joined;
    float *samples = malloc(SAMPLES * sizeof *samples);
    float *expected = malloc(SAMPLES * sizeof *expected), *found = malloc(SAMPLES * sizeof *found);
    test_speech_clip(samples, SAMPLES);
    struct ak_audio *audio = open_samples(samples, SAMPLES);
    ck_assert_int_eq(ak_audio_open_ranges(audio, ranges, 4, GAP, &joined, &error), AKUNU_OK);
    size_t n_expected = join(samples, ranges, 4, expected), n, step = 977;
    ck_assert(ak_audio_seconds(joined) == (double)n_expected / AK_MEL_RATE);
    for (int pass = 0; pass < 2; pass++, step = SAMPLES) {
        size_t at = 0;
        do {
            ck_assert_int_eq(ak_audio_read(joined, found + at, step, &n, &error), AKUNU_OK);
            at += n;
        } while (n == step);
        ck_assert_uint_eq(at, n_expected);
        ck_assert_mem_eq(found, expected, n_expected * sizeof *found);
        ck_assert_int_eq(ak_audio_rewind(joined, &error), AKUNU_OK);
    }
    ak_audio_close(joined);
    const struct ak_audio_range crossed[] = { { 100, 50 }, { 149, 5 } };
    ck_assert_int_eq(ak_audio_open_ranges(audio, crossed, 2, GAP, &joined, &error),
                     AKUNU_ERROR_ARGUMENT);
    ak_audio_close(audio);
    free(samples);
    free(expected);
    free(found);
}
END_TEST

START_TEST(times_of_ranges)
{
    /* 1 s from 10 s on, then 2 s from 20 s on, with 0.5 s between */
    static const struct ak_audio_range ranges[] = { { 160000, 16000 }, { 320000, 32000 } };
    static const struct {
        double seconds, start, end;
    } cases[] = { { 0.0, 10.0, 10.0 },  { 0.25, 10.25, 10.25 }, { 1.0, 11.0, 11.0 },
                  { 1.25, 20.0, 11.0 }, { 1.5, 20.0, 11.0 },    { 1.75, 20.25, 20.25 },
                  { 3.5, 22.0, 22.0 },  { 30.0, 22.0, 22.0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert(ak_ranges_time(ranges, 2, 8000, cases[i].seconds, false) == cases[i].start);
        ck_assert(ak_ranges_time(ranges, 2, 8000, cases[i].seconds, true) == cases[i].end);
    }
}
END_TEST

/* ---- Ranges in groups --------------------------------------------------- */
static struct ak_vad_ranges make_ranges(const uint64_t (*seconds)[2], size_t n)
{
    struct ak_vad_ranges r = { ak_alloc(n, sizeof *r.ranges), n, 0 };
    for (size_t i = 0; i < n; i++)
        r.ranges[i] = (struct ak_audio_range){ seconds[i][0] * AK_MEL_RATE,
                                               (seconds[i][1] - seconds[i][0]) * AK_MEL_RATE };
    return r;
}

START_TEST(chunks_of_30_s)
{
    static const uint64_t seconds[][2] = { { 0, 10 },  { 12, 20 },  { 25, 36 },
                                           { 40, 59 }, { 60, 130 }, { 131, 141 } };
    struct ak_error error;
    struct ak_vad_ranges r = make_ranges(seconds, 6);
    struct ak_vad_chunk *chunks;
    size_t n = 9, n_ranges = 0;
    ck_assert_int_eq(ak_vad_chunks(&r, 3000, &chunks, &n, &error), AKUNU_OK);
    /* 10 + 8 + 11 s with two silences; 19; 30; 30; 10 and 10 with a silence */
    ck_assert_uint_eq(n, 5);
    ck_assert(r.n == 8 && chunks[0].n == 3 && chunks[0].begin == 0 && chunks[0].end == 2920);
    ck_assert(chunks[4].n == 2 && chunks[4].end - chunks[4].begin == 2010);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(chunks[i].first, n_ranges);
        ck_assert_uint_le(chunks[i].end - chunks[i].begin, 3000);
        ck_assert(i == 0 || chunks[i].begin == chunks[i - 1].end + 10);
        n_ranges += chunks[i].n;
    }
    ck_assert_uint_eq(n_ranges, r.n);
    ak_free(chunks);
    ak_vad_ranges_free(&r);
}
END_TEST

START_TEST(parts_of_ranges)
{
    static const uint64_t seconds[][2] = { { 0, 10 }, { 12, 20 }, { 25, 36 } };
    struct ak_vad_ranges r = make_ranges(seconds, 3);
    ak_vad_ranges_extend(&r, 3 * AK_MEL_RATE);
    ck_assert_uint_eq(r.ranges[0].n, 12 * AK_MEL_RATE);
    ck_assert_uint_eq(r.ranges[1].n, 11 * AK_MEL_RATE);
    ck_assert_uint_eq(r.ranges[2].n, 11 * AK_MEL_RATE);
    ak_vad_ranges_clip(&r, 15 * AK_MEL_RATE, 25 * AK_MEL_RATE);
    ck_assert(r.n == 1 && r.ranges[0].first == 15 * AK_MEL_RATE);
    ck_assert_uint_eq(r.ranges[0].n, 8 * AK_MEL_RATE);
    ak_vad_ranges_free(&r);
}
END_TEST

/* ---- Memory ------------------------------------------------------------- */
static bool ignore(float probability, void *user)
{
    (void)probability, (void)user;
    return true;
}

/* Opens a model, finds ranges and groups them. */
static ak_status find_chunks(struct ak_audio *audio, struct ak_vad_ranges *ranges,
                             struct ak_vad_chunk **chunks, struct ak_error *error)
{
    char path[4096];
    struct ak_silero *silero;
    struct akunu_vad_params params = defaults();
    size_t n;
    AK_TRY(ak_silero_open(model_path(path), &silero, error));
    ak_status status = ak_vad_detect(silero, audio, &params, false, ignore, NULL, ranges, error);
    ak_free(silero);
    AK_TRY(status);
    return ak_vad_chunks(ranges, 10, chunks, &n, error);
}

/* Without memory each of them fails and leaves nothing, wherever that is. */
START_TEST(without_memory)
{
    float *samples = malloc(SAMPLES * sizeof *samples);
    test_speech_clip(samples, SAMPLES);
    struct ak_audio *audio = open_samples(samples, SAMPLES);
    ak_status status = AKUNU_ERROR_MEMORY;
    for (long n = 0; status != AKUNU_OK; n++) {
        struct ak_error error = { 0 };
        struct ak_vad_ranges ranges = { 0 };
        struct ak_vad_chunk *chunks = NULL;
        refuse_allocation(n);
        status = find_chunks(audio, &ranges, &chunks, &error);
        ck_assert(status == (allow_allocations() ? AKUNU_ERROR_MEMORY : AKUNU_OK));
        ck_assert((chunks != NULL) == (status == AKUNU_OK));
        ak_vad_ranges_free(&ranges);
        ak_free(chunks);
    }
    ak_audio_close(audio);
    free(samples);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vad");
    TCase *tcase = tcase_create("vad");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, probabilities_as_silero);
    tcase_add_test(tcase, loud_samples);
    tcase_add_test(tcase, ranges_as_whisper_cpp);
    tcase_add_test(tcase, kept_cuts);
    tcase_add_test(tcase, padding_as_long_as_speech);
    tcase_add_test(tcase, divided_in_a_pause);
    tcase_add_test(tcase, shortest_speech);
    tcase_add_test(tcase, refused_parameters);
    tcase_add_test(tcase, damaged_files);
    tcase_add_test(tcase, ranges_as_a_clip);
    tcase_add_test(tcase, times_of_ranges);
    tcase_add_test(tcase, chunks_of_30_s);
    tcase_add_test(tcase, parts_of_ranges);
    tcase_add_test(tcase, without_memory);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}

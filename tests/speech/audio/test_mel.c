/* Log-mel frames beside those of openai/whisper, and windows of a clip beside its frames as a
 * whole. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "speech/audio/clip.h"
#include "base/mem.h"

enum { SAMPLES = 50000, STEP_FRAMES = 23, STEP_MELS = 7 };

/* The clip of tests/golden/mel.py. */
static void make_clip(float *out, size_t n)
{
    uint32_t noise = 12345;
    for (size_t i = 0; i < n; i++) {
        noise = (noise * 1103515245u + 12345u) & 0x7fffffffu;
        uint32_t phase = (uint32_t)(i * (200 + i / 16) % AK_MEL_RATE);
        int triangle = (int)(phase < AK_MEL_RATE / 2 ? phase : AK_MEL_RATE - phase);
        long long loud = ((long long)(noise >> 16) - 16384) * (long long)(i / 64);
        out[i] = (float)((int)(loud >> 12) + triangle) / 32768.0f;
    }
}

static struct ak_clip *open_clip(const float *samples, size_t n, uint32_t n_mels,
                                 struct ak_audio **audio, struct ak_mel **mel)
{
    struct ak_error error;
    struct ak_clip *clip;
    ck_assert_int_eq(ak_mel_new(n_mels, AK_MEL_BINS, NULL, mel, &error), AKUNU_OK);
    ck_assert_int_eq(ak_audio_open_samples(samples, n, AK_MEL_RATE, audio, &error), AKUNU_OK);
    ck_assert_int_eq(ak_clip_new(*audio, *mel, NULL, NULL, &clip, &error), AKUNU_OK);
    ck_assert_uint_eq(ak_clip_samples(clip), n);
    return clip;
}

static void close_clip(struct ak_clip *clip, struct ak_audio *audio, struct ak_mel *mel)
{
    ak_clip_free(clip);
    ak_audio_close(audio);
    ak_mel_free(mel);
}

/* The bound is that of a float32 transform: openai/whisper's own rounding. */
START_TEST(as_openai_whisper)
{
    char path[1000];
    unsigned n_mels, n_rows;
    snprintf(path, sizeof path, "%s/mel.txt", getenv("AK_TEST_DATA"));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    float *samples = ak_alloc(SAMPLES, sizeof *samples);
    make_clip(samples, SAMPLES);
    while (fscanf(file, "%u %u", &n_mels, &n_rows) == 2) {
        struct ak_audio *audio;
        struct ak_mel *mel;
        struct ak_error error;
        struct ak_clip *clip = open_clip(samples, SAMPLES, n_mels, &audio, &mel);
        float *out = ak_alloc((size_t)AK_CLIP_FRAMES * n_mels, sizeof *out);
        ck_assert_int_eq(ak_clip_window(clip, 0, AK_CLIP_FRAMES, out, &error), AKUNU_OK);
        float worst = 0.0f;
        for (unsigned row = 0; row < n_rows; row++)
            for (unsigned m = 0; m < n_mels; m += STEP_MELS) {
                float wanted, got = out[(size_t)row * STEP_FRAMES * n_mels + m];
                ck_assert_int_eq(fscanf(file, "%f", &wanted), 1);
                worst = fmaxf(worst, fabsf(got - wanted));
            }
        ck_assert_msg(worst <= 1e-5f, "%u mels: %g apart", n_mels, (double)worst);
        ak_free(out);
        close_clip(clip, audio, mel);
    }
    ck_assert(feof(file));
    fclose(file);
    ak_free(samples);
}
END_TEST

/* Windows at any frame, forward and back, are parts of the whole, to the bit. */
START_TEST(windows)
{
    enum { LONG = 40 * AK_MEL_RATE + 77, MELS = 80 };
    static const struct {
        unsigned first, n;
    } tried[] = {
        { 0, 1 }, { 1, 3000 }, { 2345, 1000 }, { 2999, 7 }, { 700, 3000 }, { 4000, 3000 }
    };
    struct ak_error error;
    struct ak_audio *audio;
    struct ak_mel *mel;
    size_t n_frames = LONG / AK_MEL_HOP + AK_CLIP_FRAMES;
    float *samples = ak_alloc(LONG + AK_CLIP_FRAMES * AK_MEL_HOP + AK_MEL_FRAME, sizeof *samples);
    float *whole = ak_alloc(n_frames * MELS, sizeof *whole);
    float *out = ak_alloc((size_t)AK_CLIP_FRAMES * MELS, sizeof *out);
    float *first = samples + AK_MEL_FRAME / 2;
    make_clip(first, LONG);
    for (int i = 1; i <= AK_MEL_FRAME / 2; i++)
        first[-i] = first[i];
    struct ak_clip *clip = open_clip(first, LONG, MELS, &audio, &mel);
    ak_mel_frames(mel, samples, n_frames, whole);
    float max = -10.0f;
    for (size_t i = 0; i < n_frames * MELS; i++)
        max = fmaxf(max, whole[i]);
    for (size_t i = 0; i < n_frames * MELS; i++)
        whole[i] = ak_mel_normalized(whole[i], max);
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        ck_assert_int_eq(ak_clip_window(clip, tried[i].first, tried[i].n, out, &error), AKUNU_OK);
        ck_assert_msg(memcmp(out, whole + (size_t)tried[i].first * MELS,
                             (size_t)tried[i].n * MELS * sizeof *out) == 0,
                      "frames from %u on", tried[i].first);
    }
    static const struct {
        unsigned first, n;
        const char *message;
    } refused[] = { { 4001, 1, "frames 4001 to 4002 of a clip of 4000" },
                    { 17, 0, "frames 17 to 17 of a clip of 4000" },
                    { 5, 3001, "frames 5 to 3006 of a clip of 4000" } };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char message[128];
        snprintf(message, sizeof message, "%s; at most 3000, the first of the clip",
                 refused[i].message);
        ck_assert_int_eq(ak_clip_window(clip, refused[i].first, refused[i].n, out, &error),
                         AKUNU_ERROR_ARGUMENT);
        ck_assert_str_eq(error.message, message);
    }
    close_clip(clip, audio, mel);
    ak_free(out);
    ak_free(whole);
    ak_free(samples);
}
END_TEST

/* Clips shorter than a window's half, silence, and one of zeros. */
START_TEST(short_clips)
{
    static const float samples[300] = { 0.25f };
    struct ak_error error;
    for (size_t n = 1; n <= 300; n += 23) {
        struct ak_audio *audio;
        struct ak_mel *mel;
        float out[2 * 80];
        struct ak_clip *clip = open_clip(samples, n, 80, &audio, &mel);
        ck_assert_int_eq(ak_clip_window(clip, 0, 2, out, &error), AKUNU_OK);
        for (int i = 0; i < 2 * 80; i++)
            ck_assert(isfinite(out[i]));
        close_clip(clip, audio, mel);
    }
}
END_TEST

START_TEST(refused_filters)
{
    struct ak_error error;
    struct ak_mel *mel;
    float weights[AK_MEL_BINS] = { [7] = NAN };
    ck_assert_int_eq(ak_mel_new(1, AK_MEL_BINS, weights, &mel, &error), AKUNU_ERROR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.message, "element 7 is nan"));
    ck_assert_int_eq(ak_mel_new(80, 101, NULL, &mel, &error), AKUNU_ERROR_FORMAT);
    ck_assert_int_eq(ak_mel_new(0, AK_MEL_BINS, NULL, &mel, &error), AKUNU_ERROR_FORMAT);
}
END_TEST

static bool stop(void *user, const float *samples, size_t n)
{
    (void)samples;
    *(size_t *)user += n;
    return false;
}

START_TEST(cancelled)
{
    struct ak_error error;
    struct ak_audio *audio;
    struct ak_mel *mel;
    struct ak_clip *clip;
    float *samples = ak_alloc(SAMPLES, sizeof *samples);
    size_t seen = 0;
    ck_assert_int_eq(ak_mel_new(80, AK_MEL_BINS, NULL, &mel, &error), AKUNU_OK);
    ck_assert_int_eq(ak_audio_open_samples(samples, SAMPLES, AK_MEL_RATE, &audio, &error),
                     AKUNU_OK);
    ck_assert_int_eq(ak_clip_new(audio, mel, stop, &seen, &clip, &error), AKUNU_ERROR_CANCELLED);
    ck_assert_uint_lt(seen, SAMPLES);
    ck_assert_ptr_null(clip);
    close_clip(clip, audio, mel);
    ak_free(samples);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mel");
    TCase *any = tcase_create("any");
    tcase_add_test(any, as_openai_whisper);
    tcase_add_test(any, windows);
    tcase_add_test(any, short_clips);
    tcase_add_test(any, refused_filters);
    tcase_add_test(any, cancelled);
    suite_add_tcase(suite, any);
    return test_run(suite);
}

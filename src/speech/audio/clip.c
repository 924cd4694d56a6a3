/* A clip holds the samples under one window. Sample i of the buffer is sample begin + i of the
 * clip, where the clip's first has the number AK_MEL_FRAME / 2: before it stand its mirrored
 * successors, as torch.stft pads. */
#include "speech/audio/clip.h"

#include <string.h>

#include "base/mem.h"

enum {
    BEFORE = AK_MEL_FRAME / 2, /* mirrored samples before the first */
    CAPACITY = (AK_CLIP_FRAMES - 1) * AK_MEL_HOP + AK_MEL_FRAME,
    SCAN_FRAMES = 100 /* of a piece in the first pass */
};

struct ak_clip {
    struct ak_audio *audio;
    const struct ak_mel *mel;
    uint64_t n;    /* samples of the clip */
    float max;     /* largest logarithm */
    uint64_t read; /* samples of the clip read in this pass */
    uint64_t begin;
    size_t filled; /* samples in the buffer */
    bool ended;    /* the audio has no more */
    float samples[CAPACITY];
};

/* Sets BEFORE numbers before `first`, its mirror image without the sample in the middle. */
static void mirror(float *first)
{
    for (int i = 1; i <= BEFORE; i++)
        first[-i] = first[i];
}

/* Fills the buffer up to `wanted` samples. After the end come zeros, for which the audio is not
 * asked again. */
static ak_status fill_buffer(struct ak_clip *clip, size_t wanted, struct ak_error *error)
{
    bool starts = clip->begin == 0 && clip->filled == 0;
    if (starts)
        clip->filled = BEFORE;
    while (clip->filled < wanted && !clip->ended) {
        size_t got, asked = wanted - clip->filled;
        AK_TRY(ak_audio_read(clip->audio, clip->samples + clip->filled, asked, &got, error));
        clip->filled += got;
        clip->read += got;
        clip->ended = got < asked;
    }
    if (clip->filled < wanted) {
        memset(clip->samples + clip->filled, 0, (wanted - clip->filled) * sizeof(float));
        clip->filled = wanted;
    }
    if (starts)
        mirror(clip->samples + BEFORE);
    return AKUNU_OK;
}

/* Lets the buffer begin at sample `begin`. */
static ak_status move_to(struct ak_clip *clip, uint64_t begin, struct ak_error *error)
{
    if (begin < clip->begin) {
        AK_TRY(ak_audio_rewind(clip->audio, error));
        clip->begin = clip->read = 0;
        clip->filled = 0;
        clip->ended = false;
    }
    while (clip->begin < begin) {
        uint64_t skipped = begin - clip->begin;
        if (skipped > clip->filled && clip->filled < CAPACITY)
            AK_TRY(fill_buffer(clip, CAPACITY, error));
        size_t n = ak_min_size(clip->filled, skipped > SIZE_MAX ? SIZE_MAX : (size_t)skipped);
        memmove(clip->samples, clip->samples + n, (clip->filled - n) * sizeof(float));
        clip->filled -= n;
        clip->begin += n;
    }
    return AKUNU_OK;
}

/* The first pass. Frames of nothing but zeros cannot raise the maximum. */
static ak_status scan(struct ak_clip *clip, float *logs, ak_clip_piece_fn *piece, void *user,
                      struct ak_error *error)
{
    const size_t n_logs = (size_t)SCAN_FRAMES * ak_mel_filters(clip->mel);
    clip->max = -10.0f;
    for (uint64_t begin = 0; !clip->ended || begin < BEFORE + clip->read;
         begin += SCAN_FRAMES * AK_MEL_HOP) {
        uint64_t seen = clip->read;
        AK_TRY(move_to(clip, begin, error));
        AK_TRY(fill_buffer(clip, (SCAN_FRAMES - 1) * AK_MEL_HOP + AK_MEL_FRAME, error));
        if (piece && clip->read > seen &&
            !piece(user, clip->samples + (BEFORE + seen - begin), (size_t)(clip->read - seen)))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled");
        ak_mel_frames(clip->mel, clip->samples, SCAN_FRAMES, logs);
        for (size_t i = 0; i < n_logs; i++)
            clip->max = logs[i] > clip->max ? logs[i] : clip->max;
    }
    clip->n = clip->read;
    return clip->n > 0 ? AKUNU_OK :
                         ak_fail(error, AKUNU_ERROR_FORMAT, "there is no sample in the clip");
}

ak_status ak_clip_new(struct ak_audio *audio, const struct ak_mel *mel, ak_clip_piece_fn *piece,
                      void *user, struct ak_clip **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_clip *clip = ak_alloc(1, sizeof *clip);
    float *logs = ak_alloc((size_t)SCAN_FRAMES * ak_mel_filters(mel), sizeof *logs);
    ak_status status = clip && logs ? AKUNU_OK : ak_fail_memory(error, "a clip", sizeof *clip);
    if (status == AKUNU_OK) {
        clip->audio = audio;
        clip->mel = mel;
        status = ak_audio_rewind(audio, error);
    }
    if (status == AKUNU_OK)
        status = scan(clip, logs, piece, user, error);
    ak_free(logs);
    if (status != AKUNU_OK) {
        ak_clip_free(clip);
        return status;
    }
    *out = clip;
    return AKUNU_OK;
}

void ak_clip_free(struct ak_clip *clip)
{
    ak_free(clip);
}

uint64_t ak_clip_samples(const struct ak_clip *clip)
{
    return clip->n;
}

ak_status ak_clip_window(struct ak_clip *clip, uint64_t first, size_t n, float *out,
                         struct ak_error *error)
{
    if (n == 0 || n > AK_CLIP_FRAMES || first > clip->n / AK_MEL_HOP)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "frames %llu to %llu of a clip of %llu; at most %d, the first of the clip",
                       (unsigned long long)first, (unsigned long long)first + n,
                       (unsigned long long)(clip->n / AK_MEL_HOP), AK_CLIP_FRAMES);
    AK_TRY(move_to(clip, first * AK_MEL_HOP, error));
    AK_TRY(fill_buffer(clip, (n - 1) * AK_MEL_HOP + AK_MEL_FRAME, error));
    ak_mel_frames(clip->mel, clip->samples, n, out);
    for (size_t i = 0; i < n * ak_mel_filters(clip->mel); i++)
        out[i] = ak_mel_normalized(out[i], clip->max);
    return AKUNU_OK;
}

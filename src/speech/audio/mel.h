/* Log-mel spectrograms, the input of speech models, as openai/whisper's audio.py makes them: frames
 * of 400 samples every 160, a Hann window, the power of 201 frequencies, triangular filters, and
 * the logarithm. speech/transcribe/ and api/ feed them to encoders, window by window; speech/vad/
 * uses the rate and the hop alone.
 *
 * The same bits on every machine: sums in double precision in one order. They are within 2e-7 of
 * exact ones, where float32 FFTs are within 1e-5. */
#ifndef AK_SPEECH_AUDIO_MEL_H
#define AK_SPEECH_AUDIO_MEL_H

#include "base/error.h"

enum {
    AK_MEL_RATE = 16000, /* samples a second */
    AK_MEL_FRAME = 400,  /* samples under the window of a frame */
    AK_MEL_HOP = 160,    /* samples from one frame to the next */
    AK_MEL_BINS = AK_MEL_FRAME / 2 + 1,
    AK_MEL_MAX = 1024 /* filters */
};

/* Filters, and the tables of the transform. Immutable once made. */
struct ak_mel;

/* weights: [n_mels][n_bins] of a model, copied; NULL: the triangles of librosa.filters.mel with
 * Slaney's scale and area, 0 to 8000 Hz, as OpenAI's models have them. AKUNU_ERROR_FORMAT: n_bins
 * is not AK_MEL_BINS, or a weight is not finite or negative. The caller frees *out. */
ak_status ak_mel_new(uint32_t n_mels, uint32_t n_bins, const float *weights, struct ak_mel **out,
                     struct ak_error *error);
void ak_mel_free(struct ak_mel *mel);
uint32_t ak_mel_filters(const struct ak_mel *mel);

/* Logarithms (base 10, at least −10) of the frames [0, n_frames): out is [n_frames][n_mels].
 * Frame t is centered at samples[AK_MEL_HOP · t + AK_MEL_FRAME / 2]: the samples under the windows
 * are (n_frames − 1) · AK_MEL_HOP + AK_MEL_FRAME from `samples` on. */
void ak_mel_frames(const struct ak_mel *mel, const float *samples, size_t n_frames, float *out);

/* What a model reads of a logarithm, where `max` is the largest of the clip: nothing is more than
 * 8 below it; then (x + 4) / 4. */
static inline float ak_mel_normalized(float log, float max)
{
    float low = max - 8.0f;
    return ((log > low ? log : low) + 4.0f) * 0.25f;
}

#endif

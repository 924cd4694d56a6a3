/* Mel filters of a model. */
#include "speech/transcribe/transcribe.h"

#include "base/mem.h"

/* The filters of a file that has them, as Whisper's GGML files do; else Slaney's. */
ak_status ak_transcribe_mel(const struct ak_model *m, struct ak_mel **out, struct ak_error *error)
{
    uint32_t n_mels = m->spec.config.n_mels;
    const struct ak_text *architecture = &m->spec.config.architecture;
    if (n_mels == 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the architecture \"%.*s\" is none of speech",
                       (int)(architecture->n < 64 ? architecture->n : 64), architecture->bytes);
    float *weights;
    uint32_t n;
    AK_TRY(
        ak_provider_read_floats(m->provider, "whisper.encoder.mel_filters", &weights, &n, error));
    ak_status status = !weights        ? ak_mel_new(n_mels, AK_MEL_BINS, NULL, out, error) :
                       n % n_mels == 0 ? ak_mel_new(n_mels, n / n_mels, weights, out, error) :
                                         ak_fail(error, AKUNU_ERROR_FORMAT,
                                                 "%u weights of mel filters for %u filters",
                                                 (unsigned)n, (unsigned)n_mels);
    ak_free(weights);
    return status;
}

/* Mel filters of a model. */
#include "transcribe/transcribe.h"

#include "base/mem.h"

/* The filters of a file that has them, as Whisper's GGML files do; else Slaney's. */
ak_status ak_transcribe_mel(const struct ak_model *m, struct ak_mel **out, struct ak_error *error)
{
    uint32_t n_mels = m->spec.config.n_mels;
    const struct ak_text *architecture = &m->spec.config.architecture;
    struct ak_meta meta, element;
    if (n_mels == 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the architecture \"%.*s\" is none of speech",
                       (int)(architecture->n < 64 ? architecture->n : 64), architecture->bytes);
    if (!ak_provider_find_meta(m->provider, "whisper.encoder.mel_filters", &meta))
        return ak_mel_new(n_mels, AK_MEL_BINS, NULL, out, error);
    float *weights = ak_alloc(meta.n, sizeof *weights);
    if (!weights)
        return ak_fail_memory(error, "mel filters", meta.n * sizeof *weights);
    for (uint64_t i = 0; i < meta.n; i++)
        weights[i] =
            ak_provider_element(m->provider, &meta, i, &element) ? (float)element.as.number : 0.0f;
    ak_status status =
        meta.n % n_mels == 0 ?
            ak_mel_new(n_mels, (uint32_t)(meta.n / n_mels), weights, out, error) :
            ak_fail(error, AKUNU_ERROR_FORMAT, "%llu weights of mel filters for %u filters",
                    (unsigned long long)meta.n, (unsigned)n_mels);
    ak_free(weights);
    return status;
}

/* Rotary position tables (B9): the angle that each pair turns by, a position.
 *
 *   plain   base^(−2i/dims)                       Su et al., RoFormer
 *   linear  the same divided by the factor        position interpolation
 *   llama3  wavelengths beyond the original context are divided by the factor,
 *           short ones stay, between them a ramp  Llama 3.1 model card
 * A file's rope_freqs divide each pair's frequency by a number of its own. */
#include <math.h>

#include "base/math.h"
#include "base/mem.h"
#include "model/model.h"

static double scale_llama3(double frequency, const struct ak_rope_config *rope)
{
    double wavelength = 2.0 * 3.14159265358979323846 / frequency;
    double low = (double)rope->original_context / (double)rope->low_freq_factor;
    double high = (double)rope->original_context / (double)rope->high_freq_factor;
    if (wavelength < high)
        return frequency;
    if (wavelength > low)
        return frequency / (double)rope->factor;
    double smooth = ((double)rope->original_context / wavelength - (double)rope->low_freq_factor) /
                    ((double)rope->high_freq_factor - (double)rope->low_freq_factor);
    return (1.0 - smooth) * frequency / (double)rope->factor + smooth * frequency;
}

static ak_status divide_by_file(const struct ak_provider *p, float *frequencies, uint32_t half, struct ak_error *error)
{
    struct ak_view view;
    if (!ak_provider_find(p, AK_ROLE_ROPE_FREQS, AK_NO_LAYER, &view))
        return AKUNU_OK;
    if (view.n_dims != 1 || view.cols != half || view.type != AK_F32)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s of %u × %u; expected F32 of %u", view.name, ak_type_info(view.type)->name, view.rows,
                       view.cols, half);
    float *divisors = ak_alloc(half, sizeof *divisors);
    if (!divisors)
        return ak_fail_memory(error, "the rotation table", half * sizeof *divisors);
    ak_type_info(AK_F32)->dequantise(view.plane[0].data, divisors, half);
    for (uint32_t i = 0; i < half; i++)
        frequencies[i] /= divisors[i];
    ak_free(divisors);
    return AKUNU_OK;
}

ak_status ak_rope_tables(const struct ak_provider *p, struct ak_spec *spec, struct ak_error *error)
{
    const struct ak_config *config = &spec->config;
    uint32_t half = config->rope_dims / 2;
    spec->inverse_frequencies = ak_alloc(half, sizeof *spec->inverse_frequencies);
    if (!spec->inverse_frequencies)
        return ak_fail_memory(error, "the rotation table", half * sizeof(float));
    for (uint32_t i = 0; i < half; i++) {
        double frequency = ak_pow((double)config->rope_base, -2.0 * (double)i / (double)config->rope_dims);
        if (spec->rope.scaling == AK_ROPE_LINEAR)
            frequency /= (double)spec->rope.factor;
        if (spec->rope.scaling == AK_ROPE_LLAMA3)
            frequency = scale_llama3(frequency, &spec->rope);
        spec->inverse_frequencies[i] = (float)frequency;
    }
    return divide_by_file(p, spec->inverse_frequencies, half, error);
}

/* Rotary position tables: the angle per position that each pair is rotated by.
 *
 *   plain   base^(−2i/dims)                       Su et al., RoFormer
 *   linear  the same divided by the factor        position interpolation
 *   llama3  wavelengths beyond the original context are divided by the factor,
 *           short ones stay, a ramp between them  Llama 3.1 model card
 *   yarn    pairs that turn less than beta_slow times in the original context are
 *           divided by the factor, those that turn more than beta_fast times stay,
 *           a ramp between them; cosine and sine times 0.1·ln(factor) + 1
 *                                                 Peng et al., YaRN
 *   long    each pair divided by a number from the file: one set for contexts
 *           longer than the original one, one for others
 *                                                 Ding et al., LongRoPE
 * The divisors in a file's rope_freqs apply on top. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "engine/spec/arch.h"

static double scale_llama3(double frequency, const struct ak_spec_rope *rope)
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

/* Finds the (fractional) pair that turns `turns` times in the original context. */
static double find_pair(double turns, const struct ak_spec_config *config,
                        const struct ak_spec_rope *rope)
{
    double longest = (double)rope->original_context / (turns * 2.0 * 3.14159265358979323846);
    return (double)config->rope_dims * ak_ln(longest) / (2.0 * ak_ln((double)config->rope_base));
}

/* The ramp's ends are rounded outwards to whole pairs, unless the model has them unrounded. */
static double scale_yarn(double frequency, uint32_t pair, const struct ak_spec_config *config,
                         const struct ak_spec_rope *rope)
{
    double low = find_pair((double)rope->beta_fast, config, rope),
           high = find_pair((double)rope->beta_slow, config, rope);
    low = fmax(rope->unrounded ? low : floor(low), 0.0);
    high = fmin(rope->unrounded ? high : ceil(high), (double)config->rope_dims - 1.0);
    double ramp = ((double)pair - low) / fmax(high - low, 0.001);
    ramp = fmin(fmax(ramp, 0.0), 1.0);
    if (rope->extrapolation != 1.0f)
        ramp = 1.0 - (1.0 - ramp) * (double)rope->extrapolation;
    return frequency * (1.0 - ramp) + frequency / (double)rope->factor * ramp;
}

static double scale_frequency(double frequency, uint32_t pair, const struct ak_spec_config *config,
                              const struct ak_spec_rope *rope)
{
    switch (rope->scaling) {
    case AK_SPEC_ROPE_LINEAR: return frequency / (double)rope->factor;
    case AK_SPEC_ROPE_LLAMA3: return scale_llama3(frequency, rope);
    case AK_SPEC_ROPE_YARN: return scale_yarn(frequency, pair, config, rope);
    default: return frequency;
    }
}

/* Divides the frequencies by the elements of a tensor, if the file has it. */
static ak_status divide_by_tensor(const struct ak_provider *p, const struct ak_arch *arch,
                                  enum ak_role role, float *frequencies, uint32_t n_pairs,
                                  struct ak_error *error)
{
    struct ak_view view;
    if (!ak_arch_find_weight(arch, p, role, AK_ROLE_NO_LAYER, &view))
        return AKUNU_OK;
    if (view.n_dims != 1 || view.cols != n_pairs || view.type != AK_QUANT_F32)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s of %u × %u; expected F32 of %u",
                       view.name, ak_quant_info(view.type)->name, view.rows, view.cols, n_pairs);
    float *divisors = ak_alloc(n_pairs, sizeof *divisors);
    if (!divisors)
        return ak_fail_memory(error, "the rotation table", n_pairs * sizeof *divisors);
    ak_quant_info(AK_QUANT_F32)->dequantize(view.plane[0].data, divisors, n_pairs);
    ak_status status = AKUNU_OK;
    for (uint32_t i = 0; status == AKUNU_OK && i < n_pairs; i++) {
        frequencies[i] /= divisors[i];
        if (!(divisors[i] > 0.0f) || !isfinite(frequencies[i]))
            status = ak_fail(error, AKUNU_ERROR_FORMAT,
                             "%s: element %u is %g; expected a positive number", view.name, i,
                             (double)divisors[i]);
    }
    ak_free(divisors);
    return status;
}

/* Reads LongRoPE's divisors, a list of positive numbers, from Hugging Face's configuration. */
static ak_status read_factors(const struct ak_provider *p, const struct ak_spec *spec, bool is_long,
                              float *out, uint32_t n_pairs, struct ak_error *error)
{
    struct ak_meta list, element;
    char key[AK_SPEC_KEY_BYTES];
    if (!ak_spec_find(p, &spec->config,
                      is_long ? "rope.scaling.long_factor" : "rope.scaling.short_factor", key,
                      &list))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is missing", key);
    if (list.kind != AK_META_ARRAY || list.n != n_pairs)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %llu elements; expected a list of %u numbers", key,
                       (unsigned long long)list.n, n_pairs);
    for (uint32_t i = 0; i < n_pairs; i++) {
        bool found = ak_provider_element(p, &list, i, &element) &&
                     (element.kind == AK_META_FLOAT || element.kind == AK_META_INT);
        double divisor = !found                        ? 0.0 :
                         element.kind == AK_META_FLOAT ? element.as.number :
                                                         (double)element.as.integer;
        out[i] = (float)divisor;
        if (!(divisor > 0.0 && divisor <= (double)FLT_MAX) ||
            !isfinite(spec->inverse_frequencies[i] / out[i]))
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: element %u is not a positive number",
                           key, i);
    }
    return AKUNU_OK;
}

/* Applies LongRoPE's divisors, from Hugging Face's configuration or GGUF's tensors. */
static ak_status divide_by_longrope(const struct ak_provider *p, const struct ak_spec *spec,
                                    bool is_long, float *frequencies, uint32_t n_pairs,
                                    struct ak_error *error)
{
    if (spec->config.naming == AK_PROVIDER_NAMING_GGUF)
        return divide_by_tensor(p, spec->arch,
                                is_long ? AK_ROLE_ROPE_FACTORS_LONG : AK_ROLE_ROPE_FACTORS_SHORT,
                                frequencies, n_pairs, error);
    float *divisors = ak_alloc(n_pairs, sizeof *divisors);
    if (!divisors)
        return ak_fail_memory(error, "the rotation table", n_pairs * sizeof *divisors);
    ak_status status = read_factors(p, spec, is_long, divisors, n_pairs, error);
    for (uint32_t i = 0; status == AKUNU_OK && i < n_pairs; i++)
        frequencies[i] /= divisors[i];
    ak_free(divisors);
    return status;
}

float ak_spec_yarn_magnitude(float factor)
{
    return factor > 1.0f ? (float)(0.1 * ak_ln((double)factor) + 1.0) : 1.0f;
}

static float compute_magnitude(const struct ak_spec_rope *rope)
{
    return rope->magnitude *
           (rope->scaling == AK_SPEC_ROPE_YARN ? ak_spec_yarn_magnitude(rope->factor) : 1.0f);
}

uint32_t ak_spec_count_rotations(const struct ak_spec_descriptor *d)
{
    uint32_t local = d->local.rotation == AK_SPEC_ROTATE_NONE ? 0 : (uint32_t)d->local.rotation + 1;
    uint32_t global = d->global_every == 0 || d->global.rotation == AK_SPEC_ROTATE_NONE ?
                          0 :
                          (uint32_t)d->global.rotation + 1;
    return local > global ? local : global;
}

/* LongRoPE has a set of divisors for contexts up to the original one, and a set for longer ones. If
 * the file names the scaling, the session's context selects the set. GGUF has only the tensors: the
 * model's trained context then selects, as in llama.cpp. The length of a text never does: a token's
 * rotation would depend on later tokens. */
static ak_status apply_longrope(const struct ak_provider *p, struct ak_spec *spec, uint32_t n_pairs,
                                struct ak_error *error)
{
    bool is_long = spec->config.context > spec->rope.original_context;
    if (spec->rope.scaling == AK_SPEC_ROPE_LONGROPE && is_long) {
        spec->short_frequencies = ak_alloc(n_pairs, sizeof *spec->short_frequencies);
        if (!spec->short_frequencies)
            return ak_fail_memory(error, "the rotation table", n_pairs * sizeof(float));
        memcpy(spec->short_frequencies, spec->inverse_frequencies, n_pairs * sizeof(float));
        AK_TRY(divide_by_longrope(p, spec, false, spec->short_frequencies, n_pairs, error));
    }
    return divide_by_longrope(p, spec, is_long, spec->inverse_frequencies, n_pairs, error);
}

static ak_status apply_divisors(const struct ak_provider *p, struct ak_spec *spec, uint32_t n_pairs,
                                struct ak_error *error)
{
    struct ak_view view;
    if ((spec->config.naming == AK_PROVIDER_NAMING_HF &&
         spec->rope.scaling == AK_SPEC_ROPE_LONGROPE) ||
        ak_arch_find_weight(spec->arch, p, AK_ROLE_ROPE_FACTORS_LONG, AK_ROLE_NO_LAYER, &view))
        return apply_longrope(p, spec, n_pairs, error);
    return divide_by_tensor(p, spec->arch, AK_ROLE_ROPE_FREQS, spec->inverse_frequencies, n_pairs,
                            error);
}

ak_status ak_spec_init_rope(const struct ak_provider *p, struct ak_spec *spec,
                            struct ak_error *error)
{
    static const struct ak_spec_rope plain = { .scaling = AK_SPEC_ROPE_PLAIN, .magnitude = 1.0f };
    const struct ak_spec_config *config = &spec->config;
    uint32_t n_pairs = config->rope_dims / 2;
    spec->n_rotations = ak_spec_count_rotations(&spec->descriptor);
    spec->inverse_frequencies =
        ak_alloc((size_t)AK_SPEC_ROPE_TABLES_MAX * n_pairs, sizeof *spec->inverse_frequencies);
    if (!spec->inverse_frequencies)
        return ak_fail_memory(error, "the rotation table", n_pairs * sizeof(float));
    for (uint32_t table = 0; table < spec->n_rotations; table++) {
        bool local = table == AK_SPEC_ROTATE_LOCAL;
        double base = (double)(local ? spec->descriptor.local_rope_base : config->rope_base);
        bool added = !local && spec->added_rope.magnitude > 0.0f;
        const struct ak_spec_rope *rope = local ? &plain : &spec->rope,
                                  *added_rope = added ? &spec->added_rope : &plain;
        spec->magnitude[table] = compute_magnitude(rope) * compute_magnitude(added_rope);
        for (uint32_t i = 0; i < n_pairs; i++) {
            double frequency = ak_pow(base, -2.0 * (double)i / (double)config->rope_dims);
            frequency = scale_frequency(frequency, i, config, rope);
            spec->inverse_frequencies[table * n_pairs + i] =
                (float)scale_frequency(frequency, i, config, added_rope);
        }
    }
    return spec->n_rotations > 0 ? apply_divisors(p, spec, n_pairs, error) : AKUNU_OK;
}

bool ak_spec_has_rope_divisors(const struct ak_spec *spec, enum ak_role role)
{
    if (spec->n_rotations == 0 || spec->config.naming != AK_PROVIDER_NAMING_HF)
        return false;
    if (role == AK_ROLE_ROPE_FREQS)
        return spec->rope.scaling == AK_SPEC_ROPE_LLAMA3;
    return spec->rope.scaling == AK_SPEC_ROPE_LONGROPE &&
           (role == AK_ROLE_ROPE_FACTORS_LONG || role == AK_ROLE_ROPE_FACTORS_SHORT);
}

ak_status ak_spec_get_rope_divisors(const struct ak_provider *p, const struct ak_spec *spec,
                                    enum ak_role role, float *out, struct ak_error *error)
{
    const struct ak_spec_config *config = &spec->config;
    if (role != AK_ROLE_ROPE_FREQS)
        return read_factors(p, spec, role == AK_ROLE_ROPE_FACTORS_LONG, out, config->rope_dims / 2,
                            error);
    for (uint32_t i = 0; i < config->rope_dims / 2; i++) {
        double frequency =
            ak_pow((double)config->rope_base, -2.0 * (double)i / (double)config->rope_dims);
        out[i] = (float)(frequency / scale_frequency(frequency, i, config, &spec->rope));
    }
    return AKUNU_OK;
}

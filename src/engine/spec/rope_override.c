/* Values of the rotation that the user gives in place of the model's. */
#include <math.h>

#include "engine/spec/stages.h"

static bool is_asked(const struct akunu_rope *asked)
{
    return asked->scaling != AKUNU_ROPE_SCALING_MODEL || asked->freq_base != 0.0f ||
           asked->freq_scale != 0.0f || asked->yarn_orig_ctx != 0 ||
           asked->yarn_ext_factor != 0.0f || asked->yarn_attn_factor != 0.0f ||
           asked->yarn_beta_fast != 0.0f || asked->yarn_beta_slow != 0.0f;
}

static ak_status check_positive(const char *name, float value, struct ak_error *error)
{
    if (value == 0.0f || (isfinite(value) && value > 0.0f))
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s is %g; expected a positive number", name,
                   (double)value);
}

static ak_status check_values(const struct akunu_rope *asked, struct ak_error *error)
{
    if ((unsigned)asked->scaling > AKUNU_ROPE_SCALING_YARN)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "rope scaling is %d; expected 0 to 3 (enum akunu_rope_scaling)",
                       (int)asked->scaling);
    AK_TRY(check_positive("rope freq_base", asked->freq_base, error));
    AK_TRY(check_positive("rope freq_scale", asked->freq_scale, error));
    if (asked->freq_scale > 0.0f && !isfinite(1.0f / asked->freq_scale))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "rope freq_scale is %g, which is too small",
                       (double)asked->freq_scale);
    if (!(asked->yarn_ext_factor <= 1.0f))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "yarn_ext_factor is %g; expected at most 1",
                       (double)asked->yarn_ext_factor);
    AK_TRY(check_positive("yarn_attn_factor", asked->yarn_attn_factor, error));
    AK_TRY(check_positive("yarn_beta_fast", asked->yarn_beta_fast, error));
    return check_positive("yarn_beta_slow", asked->yarn_beta_slow, error);
}

/* llama.cpp's rules: a scale without a type is linear; YaRN with nothing extrapolated is linear
 * too; and something extrapolated makes YaRN of any type. */
static void set_scaling(struct ak_spec_rope *rope, const struct akunu_rope *asked)
{
    bool yarn = asked->scaling == AKUNU_ROPE_SCALING_YARN ||
                (asked->scaling == AKUNU_ROPE_SCALING_MODEL && rope->scaling == AK_SPEC_ROPE_YARN);
    if (asked->scaling == AKUNU_ROPE_SCALING_NONE)
        rope->factor = 1.0f;
    else if (asked->freq_scale > 0.0f)
        rope->factor = 1.0f / asked->freq_scale;
    else if (rope->scaling == AK_SPEC_ROPE_PLAIN)
        rope->factor = 1.0f;
    if (asked->yarn_ext_factor > 0.0f)
        rope->extrapolation = asked->yarn_ext_factor;
    else if (asked->yarn_ext_factor < 0.0f || !yarn)
        rope->extrapolation = 0.0f;
    rope->scaling = rope->extrapolation > 0.0f ? AK_SPEC_ROPE_YARN : AK_SPEC_ROPE_LINEAR;
    if (rope->factor == 1.0f)
        rope->scaling = AK_SPEC_ROPE_PLAIN;
    if (asked->yarn_attn_factor > 0.0f)
        rope->magnitude *= asked->yarn_attn_factor;
    if (asked->yarn_beta_fast > 0.0f)
        rope->beta_fast = asked->yarn_beta_fast;
    if (asked->yarn_beta_slow > 0.0f)
        rope->beta_slow = asked->yarn_beta_slow;
}

/* The scaling that the user's replaces. Llama 3's and LongRoPE's divisors stay: GGUF keeps them as
 * tensors, beside a scaling that the user may replace. */
static struct ak_spec_rope *find_scaling(struct ak_spec *spec)
{
    struct ak_spec_rope *rope = &spec->rope;
    if (rope->scaling != AK_SPEC_ROPE_LLAMA3 && rope->scaling != AK_SPEC_ROPE_LONGROPE)
        return rope;
    spec->added_rope = (struct ak_spec_rope){
        .beta_fast = rope->beta_fast,
        .beta_slow = rope->beta_slow,
        .magnitude = 1.0f,
        .extrapolation = rope->extrapolation,
        .original_context = rope->scaling == AK_SPEC_ROPE_LONGROPE ? rope->original_context : 0
    };
    return &spec->added_rope;
}

ak_status ak_spec_override_rope(struct ak_spec *spec, const struct akunu_rope *asked,
                                struct ak_error *error)
{
    if (!is_asked(asked))
        return AKUNU_OK;
    if (ak_spec_count_rotations(&spec->descriptor) == 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the architecture \"%.*s\" has no rotary positions, of which values were "
                       "given (RoPE, YaRN)",
                       (int)(spec->config.architecture.n < 64 ? spec->config.architecture.n : 64),
                       spec->config.architecture.bytes);
    AK_TRY(check_values(asked, error));
    struct ak_spec_rope *rope = find_scaling(spec);
    if (asked->freq_base > 0.0f)
        spec->config.rope_base = asked->freq_base;
    /* LongRoPE chooses its divisors by it */
    if (asked->yarn_orig_ctx > 0 && spec->rope.scaling == AK_SPEC_ROPE_LONGROPE)
        spec->rope.original_context = asked->yarn_orig_ctx;
    if (asked->yarn_orig_ctx > 0)
        rope->original_context = asked->yarn_orig_ctx;
    else if (rope->original_context == 0)
        rope->original_context = spec->config.context;
    set_scaling(rope, asked);
    if (rope->scaling == AK_SPEC_ROPE_YARN && !(spec->config.rope_base > 1.0f))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "rope freq_base is %g; expected more than 1 for YaRN",
                       (double)spec->config.rope_base);
    return AKUNU_OK;
}

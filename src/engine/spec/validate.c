/* Checks each hyper-parameter's range before anything is sized by it. */
#include <math.h>

#include "engine/spec/stages.h"

enum {
    WIDTH_MAX = 1 << 20,
    HEADS_MAX = 1 << 14,
    HEAD_DIM_MAX = 1 << 12,
    VOCAB_MAX = 1 << 24,
    CONTEXT_MAX = 1 << 28,
    EXPERTS_MAX = (1 << 12) - 1, /* the rows of all experts are counted in 32 bits */
    EXPERTS_USED_MAX = 64
};

static ak_status check_range(const struct ak_spec_config *c, const char *field, uint32_t value,
                             uint32_t max, struct ak_error *error)
{
    if (value >= 1 && value <= max)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u; expected 1 to %u",
                   ak_spec_key_name(c, field), value, max);
}

static ak_status check_positive(const struct ak_spec_config *c, const char *field, float value,
                                struct ak_error *error)
{
    if (isfinite(value) && value > 0.0f)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %g; expected a positive number",
                   ak_spec_key_name(c, field), (double)value);
}

static ak_status validate_heads(const struct ak_spec_config *c, struct ak_error *error)
{
    AK_TRY(check_range(c, "attention.head_count", c->n_heads, HEADS_MAX, error));
    AK_TRY(check_range(c, "attention.head_count_kv", c->n_kv_heads, HEADS_MAX, error));
    if (c->n_heads % c->n_kv_heads != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u, which does not divide %s %u",
                       ak_spec_key_name(c, "attention.head_count_kv"), c->n_kv_heads,
                       ak_spec_key_name(c, "attention.head_count"), c->n_heads);
    AK_TRY(check_range(c, "attention.key_length", c->head_dim, HEAD_DIM_MAX, error));
    return AKUNU_OK;
}

static ak_status validate_rope(const struct ak_spec_config *c, const struct ak_spec_rope *rope,
                               struct ak_error *error)
{
    if (c->rope_dims > c->head_dim || c->rope_dims % 2 != 0)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "rope.dimension_count is %u; expected an even number of at most %u, the head size",
            c->rope_dims, c->head_dim);
    AK_TRY(check_positive(c, "rope.freq_base", c->rope_base, error));
    if (rope->scaling != AK_SPEC_ROPE_PLAIN && rope->scaling != AK_SPEC_ROPE_LONGROPE)
        AK_TRY(check_positive(c, "rope.scaling.factor", rope->factor, error));
    AK_TRY(check_positive(c, "rope.scaling.attn_factor", rope->magnitude, error));
    if (rope->scaling == AK_SPEC_ROPE_YARN) {
        if (c->rope_base <= 1.0f)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %g; expected more than 1 for YaRN",
                           ak_spec_key_name(c, "rope.freq_base"), (double)c->rope_base);
        AK_TRY(check_positive(c, "rope.scaling.yarn_beta_fast", rope->beta_fast, error));
        AK_TRY(check_positive(c, "rope.scaling.yarn_beta_slow", rope->beta_slow, error));
        AK_TRY(check_range(c, "rope.scaling.original_context_length", rope->original_context,
                           CONTEXT_MAX, error));
    }
    if (rope->scaling == AK_SPEC_ROPE_LLAMA3) {
        AK_TRY(check_positive(c, "rope.scaling.low_freq_factor", rope->low_freq_factor, error));
        AK_TRY(check_positive(c, "rope.scaling.high_freq_factor", rope->high_freq_factor, error));
        if (rope->high_freq_factor <= rope->low_freq_factor)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s is %g; expected more than low_freq_factor %g",
                           ak_spec_key_name(c, "rope.scaling.high_freq_factor"),
                           (double)rope->high_freq_factor, (double)rope->low_freq_factor);
        AK_TRY(check_range(c, "rope.scaling.original_context_length", rope->original_context,
                           CONTEXT_MAX, error));
    }
    return AKUNU_OK;
}

ak_status ak_spec_validate_experts(const struct ak_spec_config *c, struct ak_error *error)
{
    if (c->n_experts == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "expert_count is missing");
    AK_TRY(check_range(c, "expert_count", c->n_experts, EXPERTS_MAX, error));
    AK_TRY(check_range(c, "expert_used_count", c->n_experts_used,
                       c->n_experts < EXPERTS_USED_MAX ? c->n_experts : EXPERTS_USED_MAX, error));
    AK_TRY(check_range(c, "expert_feed_forward_length", c->expert_width, WIDTH_MAX, error));
    if (c->expert_width % 16 != 0 || c->width % 32 != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "experts of %u × %u; multiples of 16 and 32 are supported", c->expert_width,
                       c->width);
    if (c->shared_width > WIDTH_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "expert_shared_feed_forward_length is %u; expected at most %d",
                       c->shared_width, (int)WIDTH_MAX);
    return AKUNU_OK;
}

ak_status ak_spec_validate_config(const struct ak_spec_config *c, const struct ak_spec_rope *rope,
                                  struct ak_error *error)
{
    AK_TRY(check_range(c, "block_count", c->n_layers, AK_SPEC_LAYERS_MAX, error));
    AK_TRY(check_range(c, "embedding_length", c->width, WIDTH_MAX, error));
    AK_TRY(check_range(c, "feed_forward_length", c->ffn_width, WIDTH_MAX, error));
    AK_TRY(check_range(c, "context_length", c->context, CONTEXT_MAX, error));
    AK_TRY(check_range(c, "vocab_size", c->vocab_size, VOCAB_MAX, error));
    AK_TRY(validate_heads(c, error));
    if (!isfinite(c->norm_eps) || c->norm_eps < 0.0f || c->norm_eps > 1.0f)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %g; expected 0 to 1",
                       ak_spec_key_name(c, "attention.layer_norm_rms_epsilon"),
                       (double)c->norm_eps);
    return validate_rope(c, rope, error);
}

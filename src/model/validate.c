/* Each hyper-parameter in its range before anything is sized by it. */
#include <math.h>

#include "model/model.h"

enum {
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_HEAD_DIM = 1 << 12,
    MAX_VOCAB = 1 << 24,
    MAX_CONTEXT = 1 << 28,
    MAX_EXPERTS = (1 << 12) - 1, /* all of their rows have numbers of 32 bits */
    MAX_EXPERTS_USED = 64
};

static ak_status in_range(const struct ak_config *c, const char *field, uint32_t value,
                          uint32_t most, struct ak_error *error)
{
    if (value >= 1 && value <= most)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u; expected 1 to %u",
                   ak_config_key(c->naming, field), value, most);
}

static ak_status positive(const struct ak_config *c, const char *field, float value,
                          struct ak_error *error)
{
    if (isfinite(value) && value > 0.0f)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %g; expected a positive number",
                   ak_config_key(c->naming, field), (double)value);
}

static ak_status validate_heads(const struct ak_config *c, struct ak_error *error)
{
    AK_TRY(in_range(c, "attention.head_count", c->n_heads, MAX_HEADS, error));
    AK_TRY(in_range(c, "attention.head_count_kv", c->n_kv_heads, MAX_HEADS, error));
    if (c->n_heads % c->n_kv_heads != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u, which does not divide %s %u",
                       ak_config_key(c->naming, "attention.head_count_kv"), c->n_kv_heads,
                       ak_config_key(c->naming, "attention.head_count"), c->n_heads);
    AK_TRY(in_range(c, "attention.key_length", c->head_dim, MAX_HEAD_DIM, error));
    return AKUNU_OK;
}

static ak_status validate_rope(const struct ak_config *c, const struct ak_rope_config *rope,
                               struct ak_error *error)
{
    if (c->rope_dims > c->head_dim || c->rope_dims % 2 != 0)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "rope.dimension_count is %u; expected an even number of at most %u, the head size",
            c->rope_dims, c->head_dim);
    AK_TRY(positive(c, "rope.freq_base", c->rope_base, error));
    if (rope->scaling != AK_ROPE_PLAIN && rope->scaling != AK_ROPE_LONG)
        AK_TRY(positive(c, "rope.scaling.factor", rope->factor, error));
    AK_TRY(positive(c, "rope.scaling.attn_factor", rope->magnitude, error));
    if (rope->scaling == AK_ROPE_YARN) {
        AK_TRY(positive(c, "rope.scaling.yarn_beta_fast", rope->beta_fast, error));
        AK_TRY(positive(c, "rope.scaling.yarn_beta_slow", rope->beta_slow, error));
        AK_TRY(in_range(c, "rope.scaling.original_context_length", rope->original_context,
                        MAX_CONTEXT, error));
    }
    if (rope->scaling == AK_ROPE_LLAMA3) {
        AK_TRY(positive(c, "rope.scaling.low_freq_factor", rope->low_freq_factor, error));
        AK_TRY(positive(c, "rope.scaling.high_freq_factor", rope->high_freq_factor, error));
        if (rope->high_freq_factor <= rope->low_freq_factor)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s is %g; expected more than low_freq_factor %g",
                           ak_config_key(c->naming, "rope.scaling.high_freq_factor"),
                           (double)rope->high_freq_factor, (double)rope->low_freq_factor);
        AK_TRY(in_range(c, "rope.scaling.original_context_length", rope->original_context,
                        MAX_CONTEXT, error));
    }
    return AKUNU_OK;
}

ak_status ak_config_validate_experts(const struct ak_config *c, struct ak_error *error)
{
    if (c->n_experts == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "expert_count is missing");
    AK_TRY(in_range(c, "expert_count", c->n_experts, MAX_EXPERTS, error));
    AK_TRY(in_range(c, "expert_used_count", c->n_experts_used,
                    c->n_experts < MAX_EXPERTS_USED ? c->n_experts : MAX_EXPERTS_USED, error));
    AK_TRY(in_range(c, "expert_feed_forward_length", c->expert_width, MAX_WIDTH, error));
    if (c->expert_width % 16 != 0 || c->width % 32 != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "experts of %u × %u; multiples of 16 and 32 are supported", c->expert_width,
                       c->width);
    if (c->shared_width > MAX_WIDTH)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "expert_shared_feed_forward_length is %u; expected at most %d",
                       c->shared_width, (int)MAX_WIDTH);
    return AKUNU_OK;
}

ak_status ak_config_validate(const struct ak_config *c, const struct ak_rope_config *rope,
                             struct ak_error *error)
{
    AK_TRY(in_range(c, "block_count", c->n_layers, AK_MAX_LAYERS, error));
    AK_TRY(in_range(c, "embedding_length", c->width, MAX_WIDTH, error));
    AK_TRY(in_range(c, "feed_forward_length", c->ffn_width, MAX_WIDTH, error));
    AK_TRY(in_range(c, "context_length", c->context, MAX_CONTEXT, error));
    AK_TRY(in_range(c, "vocab_size", c->vocab_size, MAX_VOCAB, error));
    AK_TRY(validate_heads(c, error));
    if (!isfinite(c->norm_eps) || c->norm_eps < 0.0f || c->norm_eps > 1.0f)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %g; expected 0 to 1",
                       ak_config_key(c->naming, "attention.layer_norm_rms_epsilon"),
                       (double)c->norm_eps);
    return validate_rope(c, rope, error);
}

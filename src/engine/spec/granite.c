/* Granite 3: Llama's block with multipliers for the embedding, the additions to the residual, the
 * scores and the logits. */
#include "engine/spec/arch.h"

static const char *const names[] = { "granite", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "granite",
      .reads = "vocab_size=32000 hidden_size=4096 intermediate_size=11008 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads head_dim "
               "hidden_act=silu max_position_embeddings=2048 rms_norm_eps=1e-6 "
               "tie_word_embeddings=false rope_theta=10000 attention_bias=false "
               "mlp_bias=false embedding_multiplier=1 logits_scaling=1 "
               "residual_multiplier=1 attention_multiplier=1 " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS },
    { .reads = AK_KEYS_GGUF_DECODER "embedding_scale residual_scale logit_scale " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/llama_block.def"
};

static ak_status granite_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                  struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    AK_TRY(ak_spec_read_positive(p, config, "embedding_scale", 1.0f, &out->embedding_scale, error));
    AK_TRY(ak_spec_read_positive(p, config, "residual_scale", 1.0f, &out->residual_scale, error));
    AK_TRY(ak_spec_read_positive(p, config, "attention.scale", out->attention_scale,
                                 &out->attention_scale, error));
    AK_TRY(ak_spec_read_positive(p, config, "logit_scale", 1.0f, &out->logit_divisor, error));
    return AKUNU_OK;
}

const struct ak_arch ak_arch_granite = {
    .names = names,
    .description = "Granite 3",
    .activation_key = "hidden_act",
    .describe = granite_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .gguf_interleaved = true,
    .emit = ak_build_decoder,
};

/* OLMo 2 and 3: norms after attention and feed-forward instead of before them; q and k are normed
 * as whole rows. */
#include "engine/spec/arch.h"

static const char *const names[] = { "olmo2", "olmo3", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "olmo2",
      .reads = "vocab_size=50304 hidden_size=4096 intermediate_size=11008 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads head_dim "
               "hidden_act=silu max_position_embeddings=2048 rms_norm_eps=1e-5 "
               "tie_word_embeddings=false rope_theta=10000 " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS "attention_bias=false " },
    { .types = "olmo3",
      .reads = "vocab_size=50304 hidden_size=4096 intermediate_size=11008 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads head_dim "
               "hidden_act=silu max_position_embeddings=2048 rms_norm_eps=1e-5 "
               "tie_word_embeddings=false rope_theta=500000 sliding_window=4096 "
               "layer_types " AK_KEYS_ROPES,
      .fixed = AK_KEYS_PLAIN_LOCAL_ROPE "attention_bias=false ",
      .unused = "sliding_window_pattern rope_local_base_freq " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW "rope.freq_base_swa " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/decoder_weights.def"
#include "engine/spec/ffn_weights.def"
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_POST_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_feedforward_layernorm.weight" },
};

static ak_status olmo2_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_windows(p, config, out, error));
    if (config->window > 0) { /* OLMo 3: layers with a window are rotated without a scaling */
        out->local.rotation = AK_SPEC_ROTATE_LOCAL;
        /* transformers has no key for their base in its older files */
        AK_TRY(ak_spec_read_positive(p, config, "rope.freq_base_swa",
                                     config->naming == AK_PROVIDER_NAMING_HF ? 500000.0f :
                                                                               config->rope_base,
                                     &out->local_rope_base, error));
        out->global_every = config->global_every ? config->global_every : 4;
    }
    out->no_pre_norms = true;
    out->post_norms = true;
    out->qk_norm_rows = true;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_olmo2 = {
    .names = names,
    .description = "OLMo 2 and 3",
    .activation_key = "hidden_act",
    .describe = olmo2_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .emit = ak_build_decoder,
};

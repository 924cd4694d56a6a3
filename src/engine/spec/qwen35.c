/* Qwen3.5: the gated delta rule in most layers, gated attention in the others. GGUF stores value
 * heads that share a key head apart. Its rotation by three positions is plain rotation for text,
 * where all three are the same. */
#include "engine/spec/arch.h"

static const char *const names[] = { "qwen35", "qwen3_5", "qwen3_5_text", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "qwen3_5 qwen3_5_text",
      .reads = "vocab_size=248320 hidden_size=4096 intermediate_size=12288 "
               "num_hidden_layers=32 num_attention_heads=16 num_key_value_heads=4 "
               "head_dim=256 hidden_act=silu max_position_embeddings=32768 "
               "rms_norm_eps=1e-6 tie_word_embeddings=false rope_theta=10000 "
               "linear_conv_kernel_dim=4 linear_key_head_dim=128 "
               "linear_value_head_dim=128 linear_num_key_heads=16 "
               "linear_num_value_heads=32 layer_types full_attention_interval=4 "
               "partial_rotary_factor=0.25 " AK_KEYS_ROPE AK_KEYS_PARTIAL_HEADS,
      .fixed = "attention_bias=false mlp_only_layers=[] ",
      .unused = "mtp_* mtp.* mamba_ssm_dtype attn_output_gate output_gate_type "
                "rope_scaling.mrope_* rope_parameters.mrope_* " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_DELTA },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/delta_block.def"
    { AK_ROLE_ATTENTION_QKV, AK_SPEC_DIM_DELTA_QKV, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.linear_attn.in_proj_qkv.weight" },
    { AK_ROLE_ATTENTION_GATE, AK_SPEC_DIM_DELTA_V, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.linear_attn.in_proj_z.weight" },
    { AK_ROLE_DELTA_BETA, AK_SPEC_DIM_DELTA_HEADS, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.linear_attn.in_proj_b.weight" },
    { AK_ROLE_DELTA_ALPHA, AK_SPEC_DIM_DELTA_HEADS, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.linear_attn.in_proj_a.weight" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.gate_proj.weight" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.up_proj.weight" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.down_proj.weight" },
};

static ak_status qwen35_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                 struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    return ak_spec_describe_delta(p, config, out, error);
}

const struct ak_arch ak_arch_qwen35 = {
    .names = names,
    .description = "Qwen3.5, text only",
    .configure = ak_spec_read_delta,
    .describe = qwen35_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .gguf_tiled = true,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};

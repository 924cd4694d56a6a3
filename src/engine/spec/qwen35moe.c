/* Qwen3.5 with experts, and a shared expert with a gate of its own. Checkpoints store gate and up
 * of all experts as one tensor, or each matrix by itself. */
#include "engine/spec/arch.h"

static const char *const names[] = { "qwen35moe", "qwen3_5_moe", "qwen3_5_moe_text", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "qwen3_5_moe qwen3_5_moe_text",
      .reads = "vocab_size=248320 hidden_size=2048 num_hidden_layers=40 "
               "num_attention_heads=16 num_key_value_heads=2 head_dim=256 "
               "hidden_act=silu max_position_embeddings=32768 rms_norm_eps=1e-6 "
               "tie_word_embeddings=false rope_theta=10000 moe_intermediate_size=512 "
               "shared_expert_intermediate_size=512 num_experts_per_tok=8 "
               "num_experts=256 linear_conv_kernel_dim=4 linear_key_head_dim=128 "
               "linear_value_head_dim=128 linear_num_key_heads=16 "
               "linear_num_value_heads=32 layer_types full_attention_interval=4 "
               "partial_rotary_factor=0.25 " AK_KEYS_ROPE AK_KEYS_PARTIAL_HEADS,
      .fixed = AK_KEYS_EXPERTS_FIXED "attention_bias=false norm_topk_prob=true ",
      .unused = "mtp_* mtp.* mamba_ssm_dtype attn_output_gate output_gate_type "
                "rope_scaling.mrope_* rope_parameters.mrope_* intermediate_size " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_EXPERTS AK_KEYS_GGUF_DELTA
      "expert_shared_feed_forward_length " },
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
    { AK_ROLE_FFN_ROUTER, AK_SPEC_DIM_EXPERTS, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.gate.weight" },
    { AK_ROLE_FFN_GATE_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj" },
    { AK_ROLE_FFN_UP_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj" },
    { AK_ROLE_FFN_DOWN_EXPERTS, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_EXPERT, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.down_proj" },
#include "engine/spec/shared_expert.def"
};

static const struct ak_arch_alias aliases[] = {
    { AK_ROLE_FFN_GATE_EXPERTS, "model.layers.{n}.mlp.experts.{e}.gate_proj.weight" },
    { AK_ROLE_FFN_UP_EXPERTS, "model.layers.{n}.mlp.experts.{e}.up_proj.weight" },
    { AK_ROLE_FFN_DOWN_EXPERTS, "model.layers.{n}.mlp.experts.{e}.down_proj.weight" },
#include "engine/spec/expert_aliases.def"
};

static ak_status qwen35moe_describe(const struct ak_provider *p,
                                    const struct ak_spec_config *config,
                                    struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_shared_expert(p, config, out, error));
    out->normalized_experts = true;
    return ak_spec_describe_delta(p, config, out, error);
}

const struct ak_arch ak_arch_qwen35moe = {
    .names = names,
    .description = "Qwen3.5 with experts, text only",
    .configure = ak_spec_read_delta,
    .describe = qwen35moe_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .gguf_tiled = true,
    .hf_experts_concatenated = true,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};

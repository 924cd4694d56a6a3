/* Qwen3-Next: the gated delta rule in most layers, gated attention in the others, experts and a
 * shared expert. One matrix makes q, k, v and z of each key head side by side, and another the
 * betas and alphas. GGUF may store the first as two, role after role. */
#include "engine/spec/arch.h"

static const char *const names[] = { "qwen3next", "qwen3_next", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "qwen3_next",
      .reads = "vocab_size=151936 hidden_size=2048 intermediate_size=5632 "
               "num_hidden_layers=48 num_attention_heads=16 num_key_value_heads=2 "
               "head_dim=256 hidden_act=silu max_position_embeddings=32768 "
               "rms_norm_eps=1e-6 tie_word_embeddings=false rope_theta=10000 "
               "moe_intermediate_size=512 shared_expert_intermediate_size=512 "
               "num_experts_per_tok=10 num_experts=512 norm_topk_prob=true "
               "linear_conv_kernel_dim=4 linear_key_head_dim=128 "
               "linear_value_head_dim=128 linear_num_key_heads=16 "
               "linear_num_value_heads=32 layer_types full_attention_interval=4 "
               "partial_rotary_factor=0.25 " AK_KEYS_ROPE AK_KEYS_PARTIAL_HEADS,
      .fixed = AK_KEYS_EXPERTS_FIXED "attention_bias=false ",
      .unused = "mtp_* mtp.* mamba_ssm_dtype attn_output_gate output_gate_type "
                "rope_scaling.mrope_* rope_parameters.mrope_* use_sliding_window "
                "sliding_window max_window_layers " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_EXPERTS AK_KEYS_GGUF_DELTA
      "expert_shared_feed_forward_length " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/delta_block.def"
    { AK_ROLE_DELTA_QKVZ, AK_SPEC_DIM_DELTA_QKVZ, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_MERGED,
      "model.layers.{n}.linear_attn.in_proj_qkvz.weight" },
    { AK_ROLE_ATTENTION_QKV, AK_SPEC_DIM_DELTA_QKV, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_PART,
      NULL },
    { AK_ROLE_ATTENTION_GATE, AK_SPEC_DIM_DELTA_V, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_PART,
      NULL },
    { AK_ROLE_DELTA_GATES, AK_SPEC_DIM_DELTA_GATES, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.linear_attn.in_proj_ba.weight" },
#include "engine/spec/experts.def"
#include "engine/spec/shared_expert.def"
};

static const struct ak_arch_alias aliases[] = {
#include "engine/spec/expert_aliases.def"
};

static ak_status qwen3next_describe(const struct ak_provider *p,
                                    const struct ak_spec_config *config,
                                    struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_shared_expert(p, config, out, error));
    AK_TRY(ak_spec_describe_delta(p, config, out, error));
    return ak_spec_read_bool(p, config, "expert_weights_norm", true, &out->normalized_experts,
                             error);
}

const struct ak_arch ak_arch_qwen3next = {
    .names = names,
    .description = "Qwen3-Next",
    .configure = ak_spec_read_delta,
    .describe = qwen3next_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};

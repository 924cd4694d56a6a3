/* gpt-oss: experts in every layer, biases nearly everywhere, a window in every other layer, and a
 * sink per head: a score without a value that takes its share of the softmax. GGUF stores the norm
 * before the experts under the name of a norm after attention. Hugging Face stores gate and up rows
 * alternating, as MXFP4 or transposed. */
#include "engine/spec/arch.h"

static const char *const names[] = { "gpt-oss", "gpt_oss", NULL };

/* Without any rotation in config.json it is YaRN's of the published models. */
#define AK_KEYS_DEFAULT_YARN                                                                       \
    "rope_scaling.rope_type=yarn rope_scaling.factor=32 rope_scaling.truncate=false "              \
    "rope_scaling.original_max_position_embeddings=4096 "

static const struct ak_arch_keys keys[] = {
    { .types = "gpt_oss",
      .reads = "vocab_size=201088 hidden_size=2880 intermediate_size=2880 "
               "num_hidden_layers=36 num_local_experts=128 num_experts "
               "num_experts_per_tok=4 head_dim=64 num_attention_heads=64 "
               "num_key_value_heads=8 sliding_window=128 layer_types "
               "max_position_embeddings=131072 rms_norm_eps=1e-5 "
               "tie_word_embeddings=false rope_theta=150000 " AK_KEYS_DEFAULT_YARN AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS
      "attention_bias=true hidden_act=silu swiglu_alpha=1.702 swiglu_limit=7 ",
      .unused = "experts_per_token initial_context_length " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW AK_KEYS_GGUF_EXPERTS,
      .fixed = "swiglu_limit=7 expert_gating_func=3 " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/decoder_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.bias" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.bias" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.o_proj.bias" },
    { AK_ROLE_ATTENTION_SINKS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEADS, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.sinks" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_ROUTER, AK_SPEC_DIM_EXPERTS, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.router.weight" },
    { AK_ROLE_FFN_ROUTER_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_EXPERTS, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.router.bias" },
    { AK_ROLE_FFN_GATE_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj" },
    { AK_ROLE_FFN_GATE_EXPERTS_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_EXPERT, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj_bias" },
    { AK_ROLE_FFN_UP_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj" },
    { AK_ROLE_FFN_UP_EXPERTS_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_EXPERT, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj_bias" },
    { AK_ROLE_FFN_DOWN_EXPERTS, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_EXPERT, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.down_proj" },
    { AK_ROLE_FFN_DOWN_EXPERTS_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.experts.down_proj_bias" },
};

static ak_status gpt_oss_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                  struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_experts(p, config, out, error));
    out->activation = AK_OP_ACTIVATION_SWIGLU_CLAMPED;
    out->normalized_experts = true;
    out->ffn_norm = AK_ROLE_POST_ATTENTION_NORM;
    out->local.window = config->window ? config->window : 128;
    out->global_every = config->global_every ? config->global_every : 2;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_gpt_oss = {
    .names = names,
    .description = "gpt-oss, with attention sinks and experts in MXFP4",
    .describe = gpt_oss_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .hf_experts_transposed = true,
    .emit = ak_build_decoder,
};

/* gpt-oss: experts in every layer, biases nearly everywhere, a window in every other layer, and a
 * sink per head: a score without a value that takes its share of the softmax. GGUF stores the norm
 * before the experts under the name of a norm after attention. Hugging Face stores gate and up rows
 * alternating, as MXFP4 or transposed. */
#include "model/model.h"

static const char *const names[] = { "gpt-oss", "gpt_oss", NULL };

static const struct ak_family_rule weights[] = {
#include "model/decoder_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.bias" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.bias" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.o_proj.bias" },
    { AK_ROLE_ATTENTION_SINKS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEADS, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.sinks" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_ROUTER, AK_SPEC_DIM_EXPERTS, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.router.weight" },
    { AK_ROLE_FFN_ROUTER_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_EXPERTS, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.router.bias" },
    { AK_ROLE_FFN_GATE_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj" },
    { AK_ROLE_FFN_GATE_EXPERTS_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_EXPERT, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj_bias" },
    { AK_ROLE_FFN_UP_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj" },
    { AK_ROLE_FFN_UP_EXPERTS_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_EXPERT, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.experts.gate_up_proj_bias" },
    { AK_ROLE_FFN_DOWN_EXPERTS, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_EXPERT, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.experts.down_proj" },
    { AK_ROLE_FFN_DOWN_EXPERTS_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.experts.down_proj_bias" },
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    float limit;
    AK_TRY(ak_spec_describe_experts(p, config, out, error));
    AK_TRY(ak_spec_read_positive(p, config, "swiglu_limit", 7.0f, &limit, error));
    if (limit != 7.0f)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "swiglu_limit is %g; 7 is supported",
                       (double)limit);
    out->activation = AK_OP_ACTIVATION_SWIGLU_CLAMPED;
    out->normalized_experts = true;
    out->ffn_norm = AK_ROLE_POST_ATTENTION_NORM;
    out->local.window = config->window ? config->window : 128;
    out->global_every = config->global_every ? config->global_every : 2;
    return AKUNU_OK;
}

const struct ak_family ak_family_gpt_oss = {
    .names = names,
    .description = "gpt-oss, with attention sinks and experts in MXFP4",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .hf_experts_transposed = true,
    .emit = ak_build_decoder,
};

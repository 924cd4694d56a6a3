/* OLMo 2: no norms before attention and feed-forward but after them, and q and k
 * normed as whole rows. */
#include "model/families.h"

static const char *const names[] = { "olmo2", NULL };

static const struct ak_weight_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_DIM_VOCAB, AK_DIM_WIDTH, AK_REQUIRED,
      "model.embed_tokens.weight" },
    { AK_ROLE_OUTPUT_NORM, AK_DIM_ONE, AK_DIM_WIDTH, AK_REQUIRED, "model.norm.weight" },
    { AK_ROLE_OUTPUT, AK_DIM_VOCAB, AK_DIM_WIDTH, AK_OUTPUT_OR_TIED, "lm_head.weight" },
    { AK_ROLE_ATTENTION_Q, AK_DIM_Q, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.weight" },
    { AK_ROLE_ATTENTION_K, AK_DIM_KV, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.weight" },
    { AK_ROLE_ATTENTION_V, AK_DIM_KV, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.weight" },
    { AK_ROLE_ATTENTION_Q_NORM, AK_DIM_ONE, AK_DIM_Q, AK_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_DIM_ONE, AK_DIM_KV, AK_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_DIM_WIDTH, AK_DIM_Q, AK_REQUIRED,
      "model.layers.{n}.self_attn.o_proj.weight" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_DIM_ONE, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_GATE, AK_DIM_FFN, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.mlp.gate_proj.weight" },
    { AK_ROLE_FFN_UP, AK_DIM_FFN, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.mlp.up_proj.weight" },
    { AK_ROLE_FFN_DOWN, AK_DIM_WIDTH, AK_DIM_FFN, AK_REQUIRED,
      "model.layers.{n}.mlp.down_proj.weight" },
    { AK_ROLE_POST_FFN_NORM, AK_DIM_ONE, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.post_feedforward_layernorm.weight" },
};

static ak_status describe(const struct ak_provider *p, const struct ak_config *config,
                          struct ak_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_describe_decoder(p, config, out, error));
    out->no_pre_norms = true;
    out->post_norms = true;
    out->qk_norm_rows = true;
    return AKUNU_OK;
}

const struct ak_family ak_family_olmo2 = {
    .names = names,
    .about = "OLMo 2",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .emit = ak_emit_decoder,
};

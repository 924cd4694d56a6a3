/* ModernBERT: norms before both halves but the first, whose input is normed already;
 * rotation of two bases, a window in all layers but each third from the first on; GeGLU. */
#include "model/families.h"

static const char *const names[] = { "modern-bert", "modernbert", NULL };

static const struct ak_weight_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_DIM_VOCAB, AK_DIM_WIDTH, AK_REQUIRED,
      "model.embeddings.tok_embeddings.weight" },
    { AK_ROLE_EMBEDDING_NORM, AK_DIM_ONE, AK_DIM_WIDTH, AK_REQUIRED,
      "model.embeddings.norm.weight" },
    { AK_ROLE_EMBEDDING_NORM_BIAS, AK_DIM_ONE, AK_DIM_WIDTH, AK_OPTIONAL,
      "model.embeddings.norm.bias" },
    { AK_ROLE_OUTPUT_NORM, AK_DIM_ONE, AK_DIM_WIDTH, AK_REQUIRED, "model.final_norm.weight" },
    { AK_ROLE_OUTPUT_NORM_BIAS, AK_DIM_ONE, AK_DIM_WIDTH, AK_OPTIONAL, "model.final_norm.bias" },
    { AK_ROLE_ATTENTION_NORM, AK_DIM_ONE, AK_DIM_WIDTH, AK_BUT_FIRST,
      "model.layers.{n}.attn_norm.weight" },
    { AK_ROLE_ATTENTION_NORM_BIAS, AK_DIM_ONE, AK_DIM_WIDTH, AK_OPTIONAL,
      "model.layers.{n}.attn_norm.bias" },
    { AK_ROLE_ATTENTION_Q, AK_DIM_Q, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_DIM_ONE, AK_DIM_Q, AK_OPTIONAL,
      "model.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_K, AK_DIM_KV, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_DIM_ONE, AK_DIM_KV, AK_OPTIONAL,
      "model.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_V, AK_DIM_KV, AK_DIM_WIDTH, AK_REQUIRED,
      "model.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_DIM_ONE, AK_DIM_KV, AK_OPTIONAL,
      "model.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_DIM_WIDTH, AK_DIM_Q, AK_REQUIRED,
      "model.layers.{n}.attn.Wo.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_DIM_ONE, AK_DIM_WIDTH, AK_OPTIONAL,
      "model.layers.{n}.attn.Wo.bias" },
    { AK_ROLE_FFN_NORM, AK_DIM_ONE, AK_DIM_WIDTH, AK_REQUIRED, "model.layers.{n}.mlp_norm.weight" },
    { AK_ROLE_FFN_NORM_BIAS, AK_DIM_ONE, AK_DIM_WIDTH, AK_OPTIONAL,
      "model.layers.{n}.mlp_norm.bias" },
    { AK_ROLE_FFN_GATE, AK_DIM_FFN, AK_DIM_WIDTH, AK_REQUIRED, "model.layers.{n}.mlp.Wi.weight" },
    { AK_ROLE_FFN_GATE_BIAS, AK_DIM_ONE, AK_DIM_FFN, AK_OPTIONAL, "model.layers.{n}.mlp.Wi.bias" },
    { AK_ROLE_FFN_UP, AK_DIM_FFN, AK_DIM_WIDTH, AK_REQUIRED, "model.layers.{n}.mlp.Wi.weight" },
    { AK_ROLE_FFN_UP_BIAS, AK_DIM_ONE, AK_DIM_FFN, AK_OPTIONAL, "model.layers.{n}.mlp.Wi.bias" },
    { AK_ROLE_FFN_DOWN, AK_DIM_WIDTH, AK_DIM_FFN, AK_REQUIRED, "model.layers.{n}.mlp.Wo.weight" },
    { AK_ROLE_FFN_DOWN_BIAS, AK_DIM_ONE, AK_DIM_WIDTH, AK_OPTIONAL,
      "model.layers.{n}.mlp.Wo.bias" },
};

static const struct ak_whole wholes[] = {
    { AK_ROLE_ATTENTION_QKV, 3, { AK_ROLE_ATTENTION_Q, AK_ROLE_ATTENTION_K, AK_ROLE_ATTENTION_V } },
    { AK_ROLE_ATTENTION_QKV_BIAS,
      3,
      { AK_ROLE_ATTENTION_Q_BIAS, AK_ROLE_ATTENTION_K_BIAS, AK_ROLE_ATTENTION_V_BIAS } },
    { AK_ROLE_FFN_UP, 2, { AK_ROLE_FFN_GATE, AK_ROLE_FFN_UP } },
    { AK_ROLE_FFN_UP_BIAS, 2, { AK_ROLE_FFN_GATE_BIAS, AK_ROLE_FFN_UP_BIAS } },
};

static ak_status describe(const struct ak_provider *p, const struct ak_config *config,
                          struct ak_descriptor *out, struct ak_error *error)
{
    ak_describe_encoder(config, out);
    AK_TRY(ak_config_positive(p, config, "rope.freq_base_swa", config->rope_base,
                              &out->local_rope_base, error));
    out->ungated = false;
    out->no_pre_norms = false;
    out->sum_norms = false;
    out->local = (struct ak_layer_kind){ .window = config->window, .rotation = AK_ROTATE_LOCAL };
    out->global_every = config->global_every ? config->global_every : 3;
    out->global_first = true;
    return AKUNU_OK;
}

const struct ak_family ak_family_modern_bert = {
    .names = names,
    .about = "ModernBERT, for embeddings",
    .activation = "hidden_activation",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .wholes = wholes,
    .n_wholes = sizeof wholes / sizeof *wholes,
    .emit = ak_emit_encoder,
};

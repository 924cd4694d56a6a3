/* Nomic's BERT: rotation instead of learned positions, SwiGLU, no biases. Its fc11 is the up
 * projection and fc12 the gate. */
#include "model/model.h"

static const char *const names[] = { "nomic-bert", "nomic_bert", NULL };

static const struct ak_family_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "embeddings.word_embeddings.weight" },
    { AK_ROLE_TOKEN_TYPE_EMBEDDING, AK_SPEC_DIM_TYPES, AK_SPEC_DIM_WIDTH, AK_FAMILY_OPTIONAL,
      "embeddings.token_type_embeddings.weight" },
    { AK_ROLE_EMBEDDING_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "emb_ln.weight" },
    { AK_ROLE_EMBEDDING_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "emb_ln.bias" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_FAMILY_OPTIONAL,
      "encoder.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_OPTIONAL,
      "encoder.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_OPTIONAL,
      "encoder.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.attn.out_proj.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_OPTIONAL,
      "encoder.layers.{n}.attn.out_proj.bias" },
    { AK_ROLE_ATTENTION_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.norm1.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.norm1.bias" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.mlp.fc12.weight" },
    { AK_ROLE_FFN_GATE_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_FAMILY_OPTIONAL,
      "encoder.layers.{n}.mlp.fc12.bias" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.mlp.fc11.weight" },
    { AK_ROLE_FFN_UP_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_FAMILY_OPTIONAL,
      "encoder.layers.{n}.mlp.fc11.bias" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.mlp.fc2.weight" },
    { AK_ROLE_FFN_DOWN_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_OPTIONAL,
      "encoder.layers.{n}.mlp.fc2.bias" },
    { AK_ROLE_LAYER_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.norm2.weight" },
    { AK_ROLE_LAYER_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "encoder.layers.{n}.norm2.bias" },
};

static const struct ak_family_merged_tensor merged_tensors[] = {
    { AK_ROLE_ATTENTION_QKV, 3, { AK_ROLE_ATTENTION_Q, AK_ROLE_ATTENTION_K, AK_ROLE_ATTENTION_V } },
    { AK_ROLE_ATTENTION_QKV_BIAS,
      3,
      { AK_ROLE_ATTENTION_Q_BIAS, AK_ROLE_ATTENTION_K_BIAS, AK_ROLE_ATTENTION_V_BIAS } },
};

/* Settings that no published model uses. */
static ak_status check_switches(const struct ak_provider *p, struct ak_error *error)
{
    static const char *const off[] = { "prenorm", "rotary_emb_interleaved", "causal",
                                       "use_rms_norm" };
    bool on;
    uint32_t every;
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        AK_TRY(ak_meta_bool(p, off[i], false, &on, error));
        if (on)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s is true; only false is supported",
                           off[i]);
    }
    AK_TRY(ak_meta_u32(p, "moe_every_n_layers", 0, &every, error));
    if (every > 0)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "moe_every_n_layers is %u: mixtures of experts among encoders are not supported",
            every);
    return AKUNU_OK;
}

/* With rotary_scaling_factor the reference scales the rotation (NTK) of texts longer than those of
 * training, by the text's length. A table of angles cannot do that, so the context ends there. */
static ak_status configure(const struct ak_provider *p, struct ak_spec_config *config,
                           struct ak_error *error)
{
    float factor;
    uint32_t trained;
    AK_TRY(ak_meta_float(p, "rotary_scaling_factor", 0.0f, &factor, error));
    AK_TRY(ak_meta_u32(p, "max_trained_positions", config->context, &trained, error));
    if (factor != 0.0f && trained > 0 && trained < config->context) {
        config->context = trained;
        config->context_fixed = true;
    }
    return AKUNU_OK;
}

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(check_switches(p, error));
    ak_spec_describe_encoder(config, out);
    out->activation = AK_OP_ACTIVATION_SILU;
    out->ungated = false;
    out->local.rotation = AK_SPEC_ROTATE_MAIN;
    return AKUNU_OK;
}

const struct ak_family ak_family_nomic_bert = {
    .names = names,
    .description = "Nomic Embed, for embeddings",
    .activation_key = "glu_activation",
    .configure = configure,
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .merged_tensors = merged_tensors,
    .n_merged_tensors = sizeof merged_tensors / sizeof *merged_tensors,
    .head = AK_FAMILY_HEAD_POOLER,
    .emit = ak_build_encoder,
};

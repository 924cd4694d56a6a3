/* Nomic's BERT: rotation instead of learned positions, SwiGLU, no biases. Its fc11 is the up
 * projection and fc12 the gate. */
#include "engine/spec/arch.h"

static const char *const names[] = { "nomic-bert", "nomic_bert", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "nomic_bert nomic-bert",
      .reads = "vocab_size=30528 hidden_size=768 n_embd num_hidden_layers=12 n_layer "
               "num_attention_heads=12 n_head intermediate_size=3072 n_inner head_dim "
               "hidden_act=silu activation_function max_position_embeddings=2048 "
               "n_positions type_vocab_size=2 layer_norm_eps=1e-12 layer_norm_epsilon "
               "rope_theta=1000 rotary_emb_base "
               "rotary_scaling_factor max_trained_positions=2048 qkv_proj_bias "
               "mlp_fc1_bias mlp_fc2_bias " AK_KEYS_ROPE,
      .fixed = "rotary_emb_fraction=1 prenorm=false rotary_emb_interleaved=false causal=false "
               "use_rms_norm=false moe_every_n_layers=0 parallel_block=false "
               "parallel_block_tied_norm=false "
               "rotary_emb_scale_base=none " AK_KEYS_WHOLE_HEADS,
      .unused = "tie_word_embeddings pooler_* directionality output_past "
                "gradient_checkpointing embedding_size position_ids dense_seq_output "
                "reorder_and_upcast_attn scale_attn_by_inverse_layer_idx "
                "scale_attn_weights num_experts moe_normalize_expert_weights moe_resid_pdrop "
                "moe_top_k moe_impl ffn_div expert_choice_router "
                "num_shared_experts " },
    { .reads = AK_KEYS_GGUF_SIZES
      "attention.layer_norm_epsilon hidden_act tokenizer.ggml.token_type_count " AK_KEYS_GGUF_ROPE
      "glu_activation ",
      .fixed = "attention.causal=false moe_every_n_layers=0 " },
};

static const struct ak_arch_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "embeddings.word_embeddings.weight" },
    { AK_ROLE_TOKEN_TYPE_EMBEDDING, AK_SPEC_DIM_TYPES, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "embeddings.token_type_embeddings.weight" },
    { AK_ROLE_EMBEDDING_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "emb_ln.weight" },
    { AK_ROLE_EMBEDDING_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "emb_ln.bias" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_OPTIONAL,
      "encoder.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_OPTIONAL,
      "encoder.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_OPTIONAL,
      "encoder.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.attn.out_proj.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "encoder.layers.{n}.attn.out_proj.bias" },
    { AK_ROLE_ATTENTION_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.norm1.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.norm1.bias" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.mlp.fc12.weight" },
    { AK_ROLE_FFN_GATE_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_ARCH_OPTIONAL,
      "encoder.layers.{n}.mlp.fc12.bias" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.mlp.fc11.weight" },
    { AK_ROLE_FFN_UP_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_ARCH_OPTIONAL,
      "encoder.layers.{n}.mlp.fc11.bias" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.mlp.fc2.weight" },
    { AK_ROLE_FFN_DOWN_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "encoder.layers.{n}.mlp.fc2.bias" },
    { AK_ROLE_LAYER_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.norm2.weight" },
    { AK_ROLE_LAYER_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layers.{n}.norm2.bias" },
};

static const struct ak_arch_merged_tensor merged_tensors[] = {
    { AK_ROLE_ATTENTION_QKV, 3, { AK_ROLE_ATTENTION_Q, AK_ROLE_ATTENTION_K, AK_ROLE_ATTENTION_V } },
    { AK_ROLE_ATTENTION_QKV_BIAS,
      3,
      { AK_ROLE_ATTENTION_Q_BIAS, AK_ROLE_ATTENTION_K_BIAS, AK_ROLE_ATTENTION_V_BIAS } },
};

/* With rotary_scaling_factor the reference scales the rotation (NTK) of texts longer than those of
 * training, by the text's length. A table of angles cannot do that, so the context ends there. */
static ak_status nomic_bert_configure(const struct ak_provider *p, struct ak_spec_config *config,
                                      struct ak_error *error)
{
    float factor;
    uint32_t trained;
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    if (!ak_spec_find(p, config, "rotary_scaling_factor", key, &meta))
        return AKUNU_OK;
    AK_TRY(ak_meta_to_float(&meta, &factor, error));
    AK_TRY(ak_spec_read_u32(p, config, "max_trained_positions", config->context, &trained, error));
    if (factor != 0.0f && trained > 0 && trained < config->context) {
        config->context = trained;
        config->context_fixed = true;
    }
    return AKUNU_OK;
}

/* The names of the gate's activation, the class's own and that of the original code, must agree. */
static ak_status check_activation(const struct ak_provider *p, const struct ak_spec_config *config,
                                  enum ak_op_activation activation, struct ak_error *error)
{
    enum ak_op_activation gate = activation, own = activation;
    AK_TRY(ak_spec_read_activation(p, config, "glu_activation", &gate, error));
    AK_TRY(ak_spec_read_activation(p, config, "hidden_act", &own, error));
    if (gate == own)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "activation_function and hidden_act name different activations of the gate");
}

static ak_status nomic_bert_describe(const struct ak_provider *p,
                                     const struct ak_spec_config *config,
                                     struct ak_spec_descriptor *out, struct ak_error *error)
{
    ak_spec_describe_encoder(config, out);
    out->activation = AK_OP_ACTIVATION_SILU;
    AK_TRY(check_activation(p, config, out->activation, error));
    out->ungated = false;
    out->local.rotation = AK_SPEC_ROTATE_MAIN;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_nomic_bert = {
    .names = names,
    .description = "Nomic Embed, for embeddings",
    .activation_key = "glu_activation",
    .configure = nomic_bert_configure,
    .describe = nomic_bert_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .merged_tensors = merged_tensors,
    .n_merged_tensors = sizeof merged_tensors / sizeof *merged_tensors,
    .head = AK_ARCH_HEAD_POOLER,
    .emit = ak_build_encoder,
};

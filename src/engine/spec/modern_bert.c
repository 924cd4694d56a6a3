/* ModernBERT: norms before attention and feed-forward, except the very first, since the embedding
 * is normed; two rotary bases; a window in all layers except every third, counted from the first;
 * GeGLU. */
#include "engine/spec/arch.h"

static const char *const names[] = { "modern-bert", "modernbert", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "modernbert modern-bert",
      .reads = "pad_token_id?=50283 vocab_size=50368 hidden_size=768 intermediate_size=1152 "
               "num_hidden_layers=22 num_attention_heads=12 hidden_activation=gelu "
               "max_position_embeddings=8192 norm_eps=1e-5 norm_bias=false "
               "attention_bias=false mlp_bias=false layer_types "
               "global_attn_every_n_layers=3 local_attention=128 "
               "global_rope_theta=160000 local_rope_theta=10000 "
               "rope_parameters.full_attention.rope_theta "
               "rope_parameters.sliding_attention.rope_theta ",
      .fixed = AK_KEYS_PLAIN_LOCAL_ROPE "rope_parameters.full_attention.rope_type=default "
                                        "rope_parameters.full_attention.type=default "
                                        "rope_scaling.rope_type=default rope_scaling.type=default "
                                        "position_embedding_type=absolute ",
      .unused = "tie_word_embeddings pooler_* directionality output_past "
                "gradient_checkpointing embedding_size position_ids type_vocab_size layer_norm_eps "
                "rope_theta "
                "classifier_* decoder_bias deterministic_flash_attn sparse_prediction "
                "sparse_pred_ignore_index reference_compile repad_logits_with_grad " },
    { .reads = AK_KEYS_GGUF_SIZES
      "attention.layer_norm_epsilon hidden_act tokenizer.ggml.token_type_count " AK_KEYS_GGUF_ROPE
          AK_KEYS_GGUF_WINDOW "rope.freq_base_swa hidden_activation ",
      .fixed = "attention.causal=false " },
};

static const struct ak_arch_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.embeddings.tok_embeddings.weight" },
    { AK_ROLE_EMBEDDING_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.embeddings.norm.weight" },
    { AK_ROLE_EMBEDDING_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "model.embeddings.norm.bias" },
    { AK_ROLE_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.final_norm.weight" },
    { AK_ROLE_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "model.final_norm.bias" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED_FROM_SECOND,
      "model.layers.{n}.attn_norm.weight" },
    { AK_ROLE_ATTENTION_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "model.layers.{n}.attn_norm.bias" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_OPTIONAL,
      "model.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_OPTIONAL,
      "model.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.attn.Wqkv.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_OPTIONAL,
      "model.layers.{n}.attn.Wqkv.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.layers.{n}.attn.Wo.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "model.layers.{n}.attn.Wo.bias" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp_norm.weight" },
    { AK_ROLE_FFN_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "model.layers.{n}.mlp_norm.bias" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.Wi.weight" },
    { AK_ROLE_FFN_GATE_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_ARCH_OPTIONAL,
      "model.layers.{n}.mlp.Wi.bias" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.Wi.weight" },
    { AK_ROLE_FFN_UP_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_ARCH_OPTIONAL,
      "model.layers.{n}.mlp.Wi.bias" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.Wo.weight" },
    { AK_ROLE_FFN_DOWN_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "model.layers.{n}.mlp.Wo.bias" },
};

static const struct ak_arch_merged_tensor merged_tensors[] = {
    { AK_ROLE_ATTENTION_QKV, 3, { AK_ROLE_ATTENTION_Q, AK_ROLE_ATTENTION_K, AK_ROLE_ATTENTION_V } },
    { AK_ROLE_ATTENTION_QKV_BIAS,
      3,
      { AK_ROLE_ATTENTION_Q_BIAS, AK_ROLE_ATTENTION_K_BIAS, AK_ROLE_ATTENTION_V_BIAS } },
    { AK_ROLE_FFN_UP, 2, { AK_ROLE_FFN_GATE, AK_ROLE_FFN_UP } },
    { AK_ROLE_FFN_UP_BIAS, 2, { AK_ROLE_FFN_GATE_BIAS, AK_ROLE_FFN_UP_BIAS } },
};

static ak_status modern_bert_describe(const struct ak_provider *p,
                                      const struct ak_spec_config *config,
                                      struct ak_spec_descriptor *out, struct ak_error *error)
{
    ak_spec_describe_encoder(config, out);
    AK_TRY(ak_spec_read_positive(p, config, "rope.freq_base_swa", config->rope_base,
                                 &out->local_rope_base, error));
    out->ungated = false;
    out->no_pre_norms = false;
    out->sum_norms = false;
    out->local =
        (struct ak_spec_layer_kind){ .window = config->window, .rotation = AK_SPEC_ROTATE_LOCAL };
    out->global_every = config->global_every ? config->global_every : 3;
    out->global_first = true;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_modern_bert = {
    .names = names,
    .description = "ModernBERT, for embeddings",
    .activation_key = "hidden_activation",
    .describe = modern_bert_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .merged_tensors = merged_tensors,
    .n_merged_tensors = sizeof merged_tensors / sizeof *merged_tensors,
    .head = AK_ARCH_HEAD_NONE,
    .emit = ak_build_encoder,
};

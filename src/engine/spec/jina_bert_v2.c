/* Jina's BERT of embeddings v2: ALiBi (Press et al.), which subtracts distances from the scores,
 * instead of positions; GeGLU. Hugging Face calls it bert too; older GGUF files store gate and up
 * separately. */
#include <string.h>

#include "engine/spec/arch.h"

static const char *const names[] = { "jina-bert-v2", "bert", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "bert jina-bert-v2",
      .reads = "vocab_size=30522 hidden_size=768 pad_token_id=0 "
               "feed_forward_type=original num_hidden_layers=12 num_attention_heads=12 "
               "intermediate_size=3072 hidden_act=gelu max_position_embeddings=512 "
               "type_vocab_size=2 layer_norm_eps=1e-12 ",
      .fixed = "position_embedding_type=alibi attn_dim=none ",
      .unused = "tie_word_embeddings pooler_* directionality output_past "
                "gradient_checkpointing embedding_size position_ids emb_pooler "
                "attn_implementation model_max_length " },
    { .reads = AK_KEYS_GGUF_SIZES
      "attention.layer_norm_epsilon hidden_act tokenizer.ggml.token_type_count "
      "feed_forward_type ",
      .fixed = "attention.causal=false attention.max_alibi_bias=8 " },
};

static const struct ak_arch_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "embeddings.word_embeddings.weight" },
    { AK_ROLE_TOKEN_TYPE_EMBEDDING, AK_SPEC_DIM_TYPES, AK_SPEC_DIM_WIDTH, AK_ARCH_OPTIONAL,
      "embeddings.token_type_embeddings.weight" },
    { AK_ROLE_EMBEDDING_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "embeddings.LayerNorm.weight" },
    { AK_ROLE_EMBEDDING_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "embeddings.LayerNorm.bias" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.attention.self.query.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_OPTIONAL,
      "encoder.layer.{n}.attention.self.query.bias" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.attention.self.key.weight" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_OPTIONAL,
      "encoder.layer.{n}.attention.self.key.bias" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.attention.self.value.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_OPTIONAL,
      "encoder.layer.{n}.attention.self.value.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.attention.output.dense.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.attention.output.dense.bias" },
    { AK_ROLE_ATTENTION_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.attention.output.LayerNorm.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.attention.output.LayerNorm.bias" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.mlp.gated_layers.weight" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.mlp.gated_layers.weight" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.mlp.wo.weight" },
    { AK_ROLE_FFN_DOWN_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.mlp.wo.bias" },
    { AK_ROLE_LAYER_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.mlp.layernorm.weight" },
    { AK_ROLE_LAYER_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "encoder.layer.{n}.mlp.layernorm.bias" },
};

static const struct ak_arch_merged_tensor merged_tensors[] = {
    { AK_ROLE_FFN_UP, 2, { AK_ROLE_FFN_GATE, AK_ROLE_FFN_UP } },
};

/* BERT's own files say "absolute" or nothing. */
static bool accepts(const struct ak_provider *p)
{
    struct ak_meta type;
    return ak_provider_find_meta(p, "position_embedding_type", &type) &&
           type.kind == AK_META_STRING && type.n == strlen("alibi") &&
           memcmp(type.as.string, "alibi", type.n) == 0;
}

static ak_status jina_bert_v2_describe(const struct ak_provider *p,
                                       const struct ak_spec_config *config,
                                       struct ak_spec_descriptor *out, struct ak_error *error)
{
    struct ak_view norm;
    if (ak_provider_find(p, AK_ROLE_ATTENTION_Q_NORM, 0,
                         "encoder.layer.{n}.attention.self.layer_norm_q.weight", &norm))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: norms of queries and keys are not supported in this architecture",
                       norm.name);
    ak_spec_describe_encoder(config, out);
    out->ungated = false;
    out->alibi = true;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_jina_bert_v2 = {
    .names = names,
    .description = "Jina Embeddings 2",
    .activation_key = "feed_forward_type",
    .accepts = accepts,
    .describe = jina_bert_v2_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .merged_tensors = merged_tensors,
    .n_merged_tensors = sizeof merged_tensors / sizeof *merged_tensors,
    .head = AK_ARCH_HEAD_POOLER,
    .emit = ak_build_encoder,
};

/* RoBERTa and XLM-RoBERTa as Hugging Face stores them: BERT with positions counted from the padding
 * token's id plus one. GGUF calls them bert. */
#include "engine/spec/arch.h"

static const char *const names[] = { "xlm-roberta", "roberta", "camembert", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "roberta",
      .reads = "vocab_size=50265 hidden_size=768 pad_token_id=1 num_hidden_layers=12 "
               "num_attention_heads=12 intermediate_size=3072 hidden_act=gelu "
               "max_position_embeddings=512 type_vocab_size=2 layer_norm_eps=1e-12 ",
      .fixed = "position_embedding_type=absolute ",
      .unused = "tie_word_embeddings pooler_* directionality output_past "
                "gradient_checkpointing embedding_size position_ids " },
    { .types = "xlm-roberta camembert",
      .reads = "vocab_size=30522 hidden_size=768 pad_token_id=1 num_hidden_layers=12 "
               "num_attention_heads=12 intermediate_size=3072 hidden_act=gelu "
               "max_position_embeddings=512 type_vocab_size=2 layer_norm_eps=1e-12 ",
      .fixed = "position_embedding_type=absolute ",
      .unused = "tie_word_embeddings pooler_* directionality output_past "
                "gradient_checkpointing embedding_size position_ids " },
    { .reads = AK_KEYS_GGUF_SIZES
      "attention.layer_norm_epsilon hidden_act tokenizer.ggml.token_type_count ",
      .fixed = "attention.causal=false " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/bert_block.def"
};

const struct ak_arch ak_arch_roberta = {
    .names = names,
    .description = "RoBERTa and XLM-RoBERTa, for embeddings",
    .gguf_name = "bert",
    .activation_key = "hidden_act",
    .describe = ak_spec_describe_bert,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .hf_padded_positions = true,
    .head = AK_ARCH_HEAD_CLASSIFIER,
    .emit = ak_build_encoder,
};

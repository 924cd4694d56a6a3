/* BERT: learned positions, types of tokens, a norm after each sum, biases everywhere.
 * GGUF calls XLM-RoBERTa the same, with the unused rows of its positions cut off. */
#include "model/families.h"

static const char *const names[] = { "bert", NULL };

static const struct ak_weight_rule weights[] = {
#include "model/bert_block.def"
};

const struct ak_family ak_family_bert = {
    .names = names,
    .about = "BERT, for embeddings",
    .activation = "hidden_act",
    .describe = ak_describe_bert,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .emit = ak_emit_encoder,
};

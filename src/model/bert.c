/* BERT: learned positions, token types, a norm after each sum, biases everywhere. GGUF gives
 * XLM-RoBERTa the same name and drops the unused rows of its position table. */
#include "model/model.h"

static const char *const names[] = { "bert", NULL };

static const struct ak_family_rule weights[] = {
#include "model/bert_block.def"
};

const struct ak_family ak_family_bert = {
    .names = names,
    .description = "BERT, for embeddings",
    .activation_key = "hidden_act",
    .describe = ak_spec_describe_bert,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .head = AK_FAMILY_HEAD_POOLER,
    .emit = ak_build_encoder,
};

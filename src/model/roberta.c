/* RoBERTa and XLM-RoBERTa as Hugging Face stores them: BERT with positions counted from the padding
 * token's id plus one. GGUF calls them bert. */
#include "model/model.h"

static const char *const names[] = { "xlm-roberta", "roberta", "camembert", NULL };

static const struct ak_family_rule weights[] = {
#include "model/bert_block.def"
};

const struct ak_family ak_family_roberta = {
    .names = names,
    .description = "RoBERTa and XLM-RoBERTa, for embeddings",
    .gguf_name = "bert",
    .activation_key = "hidden_act",
    .describe = ak_spec_describe_bert,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .hf_padded_positions = true,
    .head = AK_FAMILY_HEAD_CLASSIFIER,
    .emit = ak_build_encoder,
};

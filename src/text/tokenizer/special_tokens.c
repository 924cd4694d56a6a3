/* Special tokens by their purpose. Files state few of them; the end of a turn is also known by its
 * name, and fim.c finds those for fill-in-the-middle. */
#include "text/tokenizer/internal.h"

/* The end of a turn; the first one that the vocabulary has counts. */
static const char *const turn_ends[] = {
    "<|eot_id|>", "<|im_end|>",         "<end_of_turn>", "<turn|>", "<|end|>",
    "<|return|>", "<end_of_utterance>", "<EOT>",         "▁<EOT>",  "[EOT]"
};

int32_t ak_tok_find_special(const struct ak_tokenizer *t, const char *name)
{
    const struct ak_tok_special *found = ak_tok_specials_find(&t->specials, name);
    if (!found && t->pipeline)
        found = ak_tok_specials_find(&t->pipeline->normalized_specials, name);
    return found ? found->id : -1;
}

static int32_t check_id(const struct ak_tokenizer *t, int64_t id)
{
    return id >= 0 && id < (int64_t)t->token_bytes.n ? (int32_t)id : -1;
}

void ak_tok_find_special_tokens(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    t->padding = check_id(t, vocab->padding);
    t->eot = check_id(t, vocab->eot);
    for (size_t i = 0; i < sizeof turn_ends / sizeof *turn_ends && t->eot < 0; i++) {
        int32_t found = ak_tok_find_special(t, turn_ends[i]);
        if (found >= 0 && ak_tok_is_end(t, found)) /* in the harmony format <|end|> ends no turn */
            t->eot = found;
    }
}

int32_t ak_tok_special(const struct ak_tokenizer *t, enum akunu_special_token purpose)
{
    switch (purpose) {
    case AKUNU_TOKEN_BOS: return t->bos;
    case AKUNU_TOKEN_EOS: return t->eos;
    case AKUNU_TOKEN_EOT: return t->eot;
    case AKUNU_TOKEN_PAD: return t->padding;
    case AKUNU_TOKEN_FIM_PREFIX: return t->fim[AK_VOCAB_FIM_PREFIX];
    case AKUNU_TOKEN_FIM_SUFFIX: return t->fim[AK_VOCAB_FIM_SUFFIX];
    case AKUNU_TOKEN_FIM_MIDDLE: return t->fim[AK_VOCAB_FIM_MIDDLE];
    case AKUNU_TOKEN_FIM_PAD: return t->fim[AK_VOCAB_FIM_PAD];
    case AKUNU_TOKEN_FIM_REPO: return t->fim[AK_VOCAB_FIM_REPO];
    case AKUNU_TOKEN_FIM_FILE: return t->fim[AK_VOCAB_FIM_FILE];
    default: return -1;
    }
}

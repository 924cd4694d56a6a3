/* The converse of reading a tokenizer: its vocabulary as GGUF's keys have it. */
#ifndef AK_TOKENIZER_EXPORT_H
#define AK_TOKENIZER_EXPORT_H

#include "base/buffer.h"
#include "tokenizer/tokenizer.h"

/* `vocab` points into the rest. */
struct ak_tok_export {
    struct ak_vocab vocab;
    struct ak_buffer bytes; /* of all texts */
    struct ak_text *tokens, *merges;
    float *scores;
    int32_t *types;
    int add_separator; /* between two texts there is one more, -1, 0, 1 as in the vocabulary */
};

/* `n_tokens` tokens: those that the tokenizer lacks are unused ones, and those it has
 * beyond are left out. Ids of padding and mask, and the model's name, are the caller's
 * to fill in. `pre`: the name of the pre-tokenizer of byte-level BPE; n = 0: it is looked
 * for, and AKUNU_ERROR_UNSUPPORTED where no known one cuts words alike. *out is for
 * ak_tok_export_free also after a failure. */
ak_status ak_tok_export_vocab(const struct ak_tokenizer *t, uint32_t n_tokens, struct ak_text pre,
                              struct ak_tok_export *out, struct ak_error *error);
void ak_tok_export_free(struct ak_tok_export *e);

/* Whether control tokens take the blanks to their right. GGUF has no key for it: llama.cpp
 * goes by "phi-3" in the model's name. */
bool ak_tok_has_rstrip_control(const struct ak_tokenizer *t);

/* pre_name.c: the first of the known pre-tokenizers that cuts a number of texts as `t`
 * does; n = 0: none of them. */
ak_status ak_tok_find_pre_name(const struct ak_tokenizer *t, struct ak_text *out,
                               struct ak_error *error);

#endif

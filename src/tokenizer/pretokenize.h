/* Cuts text into the words that byte-level BPE merges within, by the pattern
 * that the model was trained with. Models name theirs: "smollm", "qwen2", … */
#ifndef AK_TOKENIZER_PRETOKENIZE_H
#define AK_TOKENIZER_PRETOKENIZE_H

#include "base/error.h"
#include "tokenizer/regex.h"
#include "weights/provider.h"

struct ak_tok_pretokenizer;

/* `name` as in the model file; n = 0: the default one. An unknown name is
 * AKUNU_ERROR_UNSUPPORTED, and the message lists some that are known. */
ak_status ak_tok_pretokenizer_create(struct ak_text name, struct ak_tok_pretokenizer **out,
                                     struct ak_error *error);
void ak_tok_pretokenizer_free(struct ak_tok_pretokenizer *p); /* NULL allowed */
uint64_t ak_tok_pretokenizer_memory(const struct ak_tok_pretokenizer *p);

/* What goes with the name beside the pattern. */
bool ak_tok_pretokenizer_adds_bos(
    const struct ak_tok_pretokenizer *p); /* where the file does not say */
/* a word that is a token is not merged */
bool ak_tok_pretokenizer_ignores_merges(const struct ak_tok_pretokenizer *p);

/* Calls `fn` for every word in order, and stops at the first status that is not
 * AKUNU_OK. The words together are the text, byte for byte. A byte that belongs
 * to no UTF-8 character counts as a symbol. */
typedef ak_status ak_tok_word_fn(void *context, const char *word, size_t n, struct ak_error *error);
ak_status ak_tok_pretokenize(const struct ak_tok_pretokenizer *p, struct ak_tok_matcher *matcher,
                             const char *text, size_t n, ak_tok_word_fn *fn, void *context,
                             struct ak_error *error);

#endif

/* Matcher: constrains a text, or the tokens of a model, to a grammar.
 *
 *     grammar + token trie → matcher → mask → sampler → token → matcher …
 *
 * A state is a set of stacks, each of the expressions still to come. Stacks share tails: equal
 * stacks are stored once, and so are equal sets. Transitions and masks are cached for each state.
 *
 * A matcher belongs to one thread; grammars and tries may be shared. */
#ifndef AK_TEXT_GRAMMAR_MATCHER_H
#define AK_TEXT_GRAMMAR_MATCHER_H

#include "text/grammar/grammar.h"
#include "text/tokenizer/tokenizer.h"

/* The tokens of the vocabulary by their bytes. Tokens that end a text, control tokens and tokens
 * without bytes are not in the trie, since no text contains them; token references and lazy
 * grammars match them. Immutable. */
struct ak_grammar_token_trie;

/* n_vocab: number of logits, at least the tokenizer's number of tokens. The tokenizer must outlive
 * the trie. */
ak_status ak_grammar_token_trie_create(const struct ak_tokenizer *t, uint32_t n_vocab,
                                       struct ak_grammar_token_trie **out, struct ak_error *error);
void ak_grammar_token_trie_free(struct ak_grammar_token_trie *trie); /* NULL allowed */
uint64_t ak_grammar_token_trie_bytes(const struct ak_grammar_token_trie *trie);
uint32_t ak_grammar_token_trie_n_vocab(const struct ak_grammar_token_trie *trie);

struct ak_grammar_matcher;

/* The matcher keeps the grammar alive; the trie must outlive it. Without a trie (NULL) the matcher
 * accepts bytes only: a token named by its text stands for that text, and other token references
 * are AKUNU_ERROR_UNSUPPORTED. With a trie, a text that is not one token is AKUNU_ERROR_ARGUMENT.
 */
ak_status ak_grammar_matcher_create(struct ak_grammar *g, const struct ak_grammar_token_trie *trie,
                                    struct ak_grammar_matcher **out, struct ak_error *error);
void ak_grammar_matcher_free(struct ak_grammar_matcher *m); /* NULL allowed */

/* Returns to the beginning of a text. */
ak_status ak_grammar_matcher_reset(struct ak_grammar_matcher *m, struct ak_error *error);

/* The functions below fail with AKUNU_ERROR_MEMORY, or with AKUNU_ERROR_UNSUPPORTED if the grammar
 * is so ambiguous that its configurations exceed AK_GRAMMAR_CONFIGURATIONS_MAX or take too long to
 * find. A failed call leaves the matcher in its state. Stacks deeper than AK_GRAMMAR_DEPTH_MAX are
 * dropped. */
enum { AK_GRAMMAR_CONFIGURATIONS_MAX = 1 << 13, AK_GRAMMAR_DEPTH_MAX = 1 << 15 };

/* Accepts bytes as long as they are allowed. *taken < n: bytes[*taken] is not allowed, and the
 * matcher stands before it. */
ak_status ak_grammar_matcher_accept_bytes(struct ak_grammar_matcher *m, const char *bytes, size_t n,
                                          size_t *taken, struct ak_error *error);

/* May the text end here (accepting)? */
bool ak_grammar_matcher_is_accepting(const struct ak_grammar_matcher *m);
/* Must the text end here, since nothing may follow? */
bool ak_grammar_matcher_must_end(const struct ak_grammar_matcher *m);

/* Is the token allowed here? Tokens that end a text are allowed if the text may end here. */
ak_status ak_grammar_matcher_allows(struct ak_grammar_matcher *m, int32_t token, bool *allowed,
                                    struct ak_error *error);

/* Accepts a token. If it is not allowed, *allowed is false and the state is unchanged. After a
 * token that ends the text nothing is allowed. */
ak_status ak_grammar_matcher_accept_token(struct ak_grammar_matcher *m, int32_t token,
                                          bool *allowed, struct ak_error *error);

/* Token mask: bit i % 32 of word i / 32 is set if token i, of n_vocab, is allowed. Valid until the
 * next call with this matcher. */
ak_status ak_grammar_matcher_get_mask(struct ak_grammar_matcher *m, const uint32_t **mask,
                                      struct ak_error *error);

/* Is the mask cached, or was it requested often enough to compute it? If not, testing a few tokens
 * is cheaper. Each call counts as a request. */
ak_status ak_grammar_matcher_mask_pays(struct ak_grammar_matcher *m, bool *pays,
                                       struct ak_error *error);

/* Forced tokens: the only continuation, split as the tokenizer splits it; at most `capacity`
 * tokens. If other text may follow, the last token is left to the model,
 * since the tokenizer might split it differently together with that text. The state is unchanged:
 * pass the tokens to ak_grammar_matcher_accept_token. */
ak_status ak_grammar_matcher_find_forced_tokens(struct ak_grammar_matcher *m, int32_t *tokens,
                                                size_t capacity, size_t *n, struct ak_error *error);

#endif

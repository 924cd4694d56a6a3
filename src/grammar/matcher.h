/* Holds a text, or the tokens of a model, to a grammar.
 *
 *     grammar + token trie → matcher → mask → sampler → token → matcher …
 *
 * What may follow is a set of configurations, each a list of expressions still to come. Such
 * lists share their ends and are the same list where they are equal, so a set is a small
 * sorted list of numbers, equal sets are one state, and where a byte leads from a state
 * is found once. Masks are kept by state.
 *
 * A matcher belongs to one thread; grammars and tries may be shared. */
#ifndef AK_GRAMMAR_MATCHER_H
#define AK_GRAMMAR_MATCHER_H

#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

/* The vocabulary's tokens by their bytes. Tokens that end a text, control tokens and
 * those without bytes are in no text; only a token reference names them. Immutable. */
struct ak_grammar_token_trie;

/* n_vocab: of the logits, at least the tokenizer's. The tokenizer must outlive the trie. */
ak_status ak_grammar_token_trie_create(const struct ak_tokenizer *t, uint32_t n_vocab,
                                       struct ak_grammar_token_trie **out, struct ak_error *error);
void ak_grammar_token_trie_free(struct ak_grammar_token_trie *trie); /* NULL allowed */
uint64_t ak_grammar_token_trie_bytes(const struct ak_grammar_token_trie *trie);
uint32_t ak_grammar_token_trie_n_vocab(const struct ak_grammar_token_trie *trie);

struct ak_grammar_matcher;

/* Grammar and trie must outlive the matcher. trie may be NULL: then it takes bytes alone,
 * a token named by its text stands for that text, and other references to tokens are
 * AKUNU_ERROR_UNSUPPORTED. With a trie a name that is no token is AKUNU_ERROR_ARGUMENT. */
ak_status ak_grammar_matcher_create(const struct ak_grammar *g,
                                    const struct ak_grammar_token_trie *trie,
                                    struct ak_grammar_matcher **out, struct ak_error *error);
void ak_grammar_matcher_free(struct ak_grammar_matcher *m); /* NULL allowed */

/* Back to the beginning of a text. */
ak_status ak_grammar_matcher_reset(struct ak_grammar_matcher *m, struct ak_error *error);

/* The functions below fail with AKUNU_ERROR_MEMORY, or with AKUNU_ERROR_UNSUPPORTED where
 * the grammar is so ambiguous that its configurations exceed AK_GRAMMAR_CONFIGURATIONS_MAX,
 * or finding them takes too long.
 * A failed call leaves the matcher where it was. */
enum { AK_GRAMMAR_CONFIGURATIONS_MAX = 1 << 13, AK_GRAMMAR_DEPTH_MAX = 1 << 15 };

/* Takes bytes as long as they are allowed; *taken < n: bytes[*taken] is not, and the
 * matcher stands before it. */
ak_status ak_grammar_matcher_accept_bytes(struct ak_grammar_matcher *m, const char *bytes, size_t n,
                                          size_t *taken, struct ak_error *error);

/* May the text end here? False also where more is needed. */
bool ak_grammar_matcher_is_accepting(const struct ak_grammar_matcher *m);
/* Must it end here? Nothing may follow. */
bool ak_grammar_matcher_must_end(const struct ak_grammar_matcher *m);

/* Is the token allowed here? Tokens that end a text are where the text may end. */
ak_status ak_grammar_matcher_allows(struct ak_grammar_matcher *m, int32_t token, bool *allowed,
                                    struct ak_error *error);

/* Takes a token; *allowed is false, and nothing happened, where it is not allowed. After a
 * token that ends the text nothing is allowed any more. */
ak_status ak_grammar_matcher_accept_token(struct ak_grammar_matcher *m, int32_t token,
                                          bool *allowed, struct ak_error *error);

/* Takes back the last n tokens; n ≤ AK_GRAMMAR_ROLLBACK_MAX, and those that were taken. */
enum { AK_GRAMMAR_ROLLBACK_MAX = 64 };
void ak_grammar_matcher_rollback(struct ak_grammar_matcher *m, unsigned n);

/* The allowed tokens: bit i % 32 of word i / 32 for each token i of n_vocab. Valid until
 * the next call with this matcher. */
ak_status ak_grammar_matcher_get_mask(struct ak_grammar_matcher *m, const uint32_t **mask,
                                      struct ak_error *error);

/* Is the mask of this state at hand, or is it time to make it since it was asked for before?
 * Where it is not, testing a few tokens is less work than making it. */
ak_status ak_grammar_matcher_mask_pays(struct ak_grammar_matcher *m, bool *pays,
                                       struct ak_error *error);

/* What must come next, whatever the model thinks: tokens, at most `capacity` ≤
 * AK_GRAMMAR_ROLLBACK_MAX, as the tokenizer cuts the bytes that are forced. The last one of a
 * stretch that another text may follow is left to the model, since it could be cut another
 * way together with what follows. Nothing is taken: give them to …_token. */
ak_status ak_grammar_matcher_find_forced_tokens(struct ak_grammar_matcher *m, int32_t *tokens,
                                                size_t capacity, size_t *n, struct ak_error *error);

#endif

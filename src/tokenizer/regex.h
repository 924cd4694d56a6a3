/* Regular expressions as tokenizers write them: Oniguruma's syntax, of which
 * PCRE2 takes all that published models use. \s, \p{L} and \p{N} are those of
 * Unicode 16 on every system. A compiled one is immutable. */
#ifndef AK_TOKENIZER_REGEX_H
#define AK_TOKENIZER_REGEX_H

#include "base/error.h"
#include "weights/provider.h"

struct ak_tok_regex;

/* With `is_limited` matching gives up with an error after some work: for patterns
 * that come out of a file. A pattern that is none is AKUNU_ERROR_FORMAT, one with
 * intersections of classes AKUNU_ERROR_UNSUPPORTED. */
ak_status ak_tok_regex_compile(struct ak_text pattern, bool is_limited, struct ak_tok_regex **out,
                               struct ak_error *error);
void ak_tok_regex_free(struct ak_tok_regex *r); /* NULL allowed */
uint64_t ak_tok_regex_memory(const struct ak_tok_regex *r);

/* What one call needs of its own: made once for many texts. */
struct ak_tok_matcher;
ak_status ak_tok_matcher_create(struct ak_tok_matcher **out, struct ak_error *error);
void ak_tok_matcher_free(struct ak_tok_matcher *m); /* NULL allowed */

/* The text that patterns see: `text` itself where it is UTF-8, else a copy, valid
 * until the next call, in which each byte that belongs to no character is U+0001,
 * neither letter nor number nor blank. */
ak_status ak_tok_matcher_prepare(struct ak_tok_matcher *m, const char *text, size_t n,
                                 const char **subject, struct ak_error *error);

/* The first match at or after text[from] of valid UTF-8; what is before `from` is
 * seen by \b and the like. An empty match at `from` itself counts only with
 * `empty`. *begin is SIZE_MAX where there is none. */
ak_status ak_tok_regex_find(const struct ak_tok_regex *r, struct ak_tok_matcher *m,
                            const char *text, size_t n, size_t from, bool empty, size_t *begin,
                            size_t *end, struct ak_error *error);

#endif

/* Cuts text into the words that byte-level BPE merges within, by the pattern
 * that the model was trained with. Models name theirs: "smollm", "qwen2", … */
#ifndef AK_TOKENIZER_PRETOKENIZE_H
#define AK_TOKENIZER_PRETOKENIZE_H

#include "base/error.h"
#include "weights/provider.h"

/* ---- Regular expressions ------------------------------------------------ */

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

/* ---- Patterns by name --------------------------------------------------- */

enum { AK_TOK_PATTERNS_MAX = 6 };

/* A pattern cuts out its matches; what lies between them are words as well, and
 * the next pattern is applied to each of the pieces on its own. */
struct ak_tok_pre_rule {
    const char *names; /* between blanks */
    const char *patterns[AK_TOK_PATTERNS_MAX];
    bool adds_bos;      /* where the file does not say */
    bool ignore_merges; /* a word that is a token is not merged */
};

/* Names for BPE over characters instead of bytes; two of them are those of models. A word
 * of newlines that is a token is not merged where `ignore_newline_merges`. */
struct ak_tok_char_rule {
    const char *names, *pattern; /* NULL: words are parted by white space, which is left out */
    bool uses_metaspace;         /* with ▁ */
    bool ignore_newline_merges;
    bool adds_bos; /* whatever the file says */
};

extern const struct ak_tok_char_rule ak_tok_char_rules[]; /* the last one has no names */

/* pretokenize.c: NULL where the name is none of theirs. */
const struct ak_tok_char_rule *ak_tok_find_char_rule(struct ak_text name);

/* the first one is the default, the last one has no names */
extern const struct ak_tok_pre_rule ak_tok_pre_rules[];

/* ---- Pre-tokenizer ------------------------------------------------------ */

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

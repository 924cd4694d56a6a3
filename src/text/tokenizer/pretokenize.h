/* Pre-tokenizer of byte-level BPE: splits text into words by the patterns the model was trained
 * with. GGUF files name theirs in tokenizer.ggml.pre ("smollm", "qwen2", …). Also the regular
 * expressions behind it, which pipelines use directly, and the patterns of BPE over characters. */
#ifndef AK_TEXT_TOKENIZER_PRETOKENIZE_H
#define AK_TEXT_TOKENIZER_PRETOKENIZE_H

#include "base/error.h"
#include "files/weights/provider.h"

/* ---- Regular expressions ------------------------------------------------ */
/* Oniguruma's syntax, as tokenizers use it, run by PCRE2. \s, \p{L} and \p{N} are those of Unicode
 * 16 on every system. Immutable once compiled. */
struct ak_tok_regex;

/* `is_limited`: matching fails after a bounded amount of work; for patterns that come from a file.
 * AKUNU_ERROR_FORMAT: not a pattern; AKUNU_ERROR_UNSUPPORTED: it intersects classes. */
ak_status ak_tok_regex_compile(struct ak_text pattern, bool is_limited, struct ak_tok_regex **out,
                               struct ak_error *error);
void ak_tok_regex_free(struct ak_tok_regex *r); /* NULL allowed */
uint64_t ak_tok_regex_memory(const struct ak_tok_regex *r);

/* Working memory of one caller, reused for many texts. */
struct ak_tok_matcher;
ak_status ak_tok_matcher_create(struct ak_tok_matcher **out, struct ak_error *error);
void ak_tok_matcher_free(struct ak_tok_matcher *m); /* NULL allowed */

/* The subject that patterns match: `text` itself if it is UTF-8, else a copy, valid until the next
 * call. In the copy each invalid byte is U+0001, which is not a letter, number or whitespace. */
ak_status ak_tok_matcher_prepare(struct ak_tok_matcher *m, const char *text, size_t n,
                                 const char **subject, struct ak_error *error);

/* The first match at or after text[from]; *begin is SIZE_MAX if there is none. `text` is valid
 * UTF-8; assertions such as \b see the text before `from`. `empty`: an empty match at `from`
 * counts. */
ak_status ak_tok_regex_find(const struct ak_tok_regex *r, struct ak_tok_matcher *m,
                            const char *text, size_t n, size_t from, bool empty, size_t *begin,
                            size_t *end, struct ak_error *error);

/* ---- Patterns by name --------------------------------------------------- */
enum { AK_TOK_PATTERNS_MAX = 6 };

/* rules.c. Matches of a pattern and the text between matches are words; the next pattern is applied
 * to each of them. */
struct ak_tok_pre_rule {
    const char *names;                         /* each between spaces */
    const char *patterns[AK_TOK_PATTERNS_MAX]; /* NULL after the last */
    bool adds_bos;                             /* default, if the file does not state it */
    bool ignore_merges;                        /* a word that is a token stays whole */
};

/* rules.c: BPE over characters instead of bytes, by tokenizer.ggml.pre for model gpt2, else by
 * tokenizer.ggml.model. */
struct ak_tok_char_rule {
    const char *names;          /* each between spaces */
    const char *pattern;        /* NULL: words are separated by whitespace, which is dropped */
    bool uses_metaspace;        /* spaces become ▁ */
    bool ignore_newline_merges; /* as in pipeline.h */
    bool adds_bos;              /* whatever the file states */
};

extern const struct ak_tok_char_rule ak_tok_char_rules[]; /* ends with names NULL */

/* pretokenize.c: NULL: no rule has that name. */
const struct ak_tok_char_rule *ak_tok_find_char_rule(struct ak_text name);

/* begins with the default, ends with names NULL */
extern const struct ak_tok_pre_rule ak_tok_pre_rules[];

/* ---- Pre-tokenizer ------------------------------------------------------ */
struct ak_tok_pretokenizer;

/* `name` as in the model file; n = 0: the default. AKUNU_ERROR_UNSUPPORTED: unknown name; the
 * message lists some known ones. */
ak_status ak_tok_pretokenizer_create(struct ak_text name, struct ak_tok_pretokenizer **out,
                                     struct ak_error *error);
void ak_tok_pretokenizer_free(struct ak_tok_pretokenizer *p); /* NULL allowed */
uint64_t ak_tok_pretokenizer_memory(const struct ak_tok_pretokenizer *p);

/* Whether BOS is added if the file does not state it. */
bool ak_tok_pretokenizer_adds_bos(const struct ak_tok_pretokenizer *p);
/* Whether a word that is a token stays whole. */
bool ak_tok_pretokenizer_ignores_merges(const struct ak_tok_pretokenizer *p);

/* Calls `fn` for each word in order and stops at the first failure. The words concatenated are the
 * text, byte for byte. An invalid byte counts as a symbol. */
typedef ak_status ak_tok_word_fn(void *context, const char *word, size_t n, struct ak_error *error);
ak_status ak_tok_pretokenize(const struct ak_tok_pretokenizer *p, struct ak_tok_matcher *matcher,
                             const char *text, size_t n, ak_tok_word_fn *fn, void *context,
                             struct ak_error *error);

#endif

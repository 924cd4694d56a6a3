/* The parts that a tokenizer.json is made of; vocabularies of GGUF that work alike
 * are made of them too. Text goes through
 *
 *     normalizers → splits → one model → ids
 *
 * and each step takes any bytes: those that are no UTF-8 stay as they are. */
#ifndef AK_TOKENIZER_PIPELINE_H
#define AK_TOKENIZER_PIPELINE_H

#include "base/buffer.h"
#include "base/error.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/token_bytes.h"
#include "weights/provider.h"

/* ---- Character map of SentencePiece ------------------------------------- */

/* Into `map`, which is all zero before; copies. */
struct ak_tok_charsmap {
    uint32_t *nodes;
    uint32_t n_nodes;
    char *texts; /* ends with NUL */
    size_t n_text_bytes;
};

ak_status ak_tok_charsmap_load(struct ak_tok_charsmap *map, struct ak_text bytes,
                               struct ak_error *error);
void ak_tok_charsmap_free(struct ak_tok_charsmap *map);

/* The longest string of the map, or with `shortest` the shortest, that begins the
 * text: the number of its bytes, 0 where none does. */
size_t ak_tok_charsmap_find(const struct ak_tok_charsmap *map, const char *text, size_t n,
                            bool shortest, struct ak_text *replacement);

/* ---- Normalizers and pre-tokenizers ------------------------------------- */

enum ak_tok_transform_kind {
    /* normalizers */
    AK_TOK_NORM_NFC,
    AK_TOK_NORM_NFD,
    AK_TOK_NORM_NFKC,
    AK_TOK_NORM_NFKD,
    AK_TOK_NORM_LOWERCASE,
    AK_TOK_NORM_STRIP_ACCENTS,
    AK_TOK_NORM_STRIP,           /* flag: on the left, flag2: on the right */
    AK_TOK_NORM_REPLACE,         /* pattern or literal by text */
    AK_TOK_NORM_PREPEND,         /* text */
    AK_TOK_NORM_CLEAN_TEXT,      /* BERT: no control characters, blanks for all white space */
    AK_TOK_NORM_CLEAN_TEXT_GGUF, /* the same as llama.cpp does it: white space first */
    AK_TOK_NORM_CHINESE_CHARS,   /* BERT: blanks around ideographs */
    AK_TOK_NORM_BASE_CHARS,      /* llama.cpp: the first character of the decomposition, no marks */
    AK_TOK_NORM_STRIP_MN,        /* decomposed, and no Mn */
    AK_TOK_NORM_PRECOMPILED,     /* map; flag: as the `tokenizers` package does, by grapheme */
    AK_TOK_NORM_METASPACE, /* ▁ for blanks; flag: one before each word, flag2: for none of them */

    /* splits */
    AK_TOK_PRE_SPLIT,            /* pattern or literal; flag: invert */
    AK_TOK_PRE_DIGITS,           /* behavior */
    AK_TOK_PRE_PUNCTUATION,      /* behavior */
    AK_TOK_PRE_WHITESPACE_SPLIT, /* removed */
    AK_TOK_PRE_WORDS,            /* runs of word characters, runs of others */
    /* text for each blank; flag: split before each; prepend: where one is added */
    AK_TOK_PRE_METASPACE,
    AK_TOK_PRE_PREFIX_SPACE, /* a blank before the piece if there is none */
};

enum ak_tok_behavior {
    AK_TOK_REMOVED,
    AK_TOK_ISOLATED,
    AK_TOK_MERGED_WITH_PREVIOUS,
    AK_TOK_MERGED_WITH_NEXT,
    AK_TOK_CONTIGUOUS
};
enum ak_tok_prepend_scheme { AK_TOK_PREPEND_ALWAYS, AK_TOK_PREPEND_FIRST, AK_TOK_PREPEND_NEVER };

struct ak_tok_transform {
    enum ak_tok_transform_kind kind;
    enum ak_tok_behavior behavior;
    enum ak_tok_prepend_scheme prepend;
    bool flag, flag2;
    char *text, *literal; /* from ak_alloc, and their bytes */
    uint32_t n_text, n_literal;
    struct ak_tok_regex *pattern;
    struct ak_tok_charsmap map;
};

struct ak_tok_transforms {
    struct ak_tok_transform *list;
    uint32_t n;
};

/* Adds a step, all zero but for its kind; NULL where memory lacks. */
struct ak_tok_transform *ak_tok_transforms_add(struct ak_tok_transforms *s,
                                               enum ak_tok_transform_kind kind);
void ak_tok_transforms_free(struct ak_tok_transforms *s);

/* A piece of the text; `start` where it begins the whole text. */
struct ak_tok_span {
    size_t begin, end;
    bool start;
};
struct ak_tok_spans {
    struct ak_tok_span *list;
    size_t n, capacity;
};

/* What one call needs of its own; all zero at first. */
struct ak_tok_scratch {
    struct ak_buffer text, spare, piece;
    struct ak_tok_spans spans, spare_spans, parts;
    double *scores; /* Unigram */
    uint32_t *lengths;
    int32_t *tokens;
    size_t capacity;
};
void ak_tok_scratch_free(struct ak_tok_scratch *w);

/* Puts the normal form of the text into w->text, whose length is limited from then on: what is
 * much longer than the text is AKUNU_ERROR_UNSUPPORTED. */
ak_status ak_tok_normalize(const struct ak_tok_transforms *steps, const char *text, size_t n,
                           struct ak_tok_matcher *m, struct ak_tok_scratch *w,
                           struct ak_error *error);

/* Cuts [begin, end) of w->text, `start` where that is at the beginning of the whole
 * text, into w->spans of the new w->text. */
ak_status ak_tok_apply_pretokenizers(const struct ak_tok_transforms *steps, size_t begin,
                                     size_t end, bool start, struct ak_tok_matcher *m,
                                     struct ak_tok_scratch *w, struct ak_error *error);

enum ak_tok_model { AK_TOK_MODEL_BPE, AK_TOK_MODEL_UNIGRAM, AK_TOK_MODEL_WORDPIECE };

enum { AK_TOK_AFFIX_MAX = 16 };

struct ak_tok_pipeline {
    struct ak_tok_transforms normalizers, pretokenizers;
    enum ak_tok_model model;
    struct ak_tok_bytes words; /* the vocabulary as the file writes it; empty for byte-level BPE */
    bool byte_fallback, fuse_unknown;
    /* BPE: a word that begins with a newline and is a token is not merged */
    bool ignore_newline_merges;

    struct ak_tok_trie trie; /* Unigram, WordPiece: those of `words` that text can become */
    double *scores;          /* Unigram */
    double unknown_score;
    /* WordPiece: what the pieces at a word's beginning, and the others, begin with */
    char word_prefix[16], subword_prefix[16];
    /* WordPiece: characters, more are one unknown token; 0: any */
    uint32_t max_word_chars;

    struct ak_tok_specials normalized_specials; /* tokens that are looked for in the normal form */
    struct ak_buffer added_text;                /* what the special tokens' texts point into */
    int32_t prefix_ids[AK_TOK_AFFIX_MAX], suffix_ids[AK_TOK_AFFIX_MAX];
    uint32_t n_prefix, n_suffix;
    uint32_t n_separators; /* that end the first of two texts; 0: not said */
    bool inserts_spaces;   /* decoding puts blanks between words (WordPiece) */
};

#endif

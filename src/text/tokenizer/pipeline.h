/* Pipeline of a tokenizer.json, also used for GGUF vocabularies of the same kind:
 *
 *     normalizers → pre-tokenizers → one model → ids
 *
 * Bytes that are not UTF-8 reach the model unchanged, unless a normalizer drops them (CLEAN_TEXT,
 * CLEAN_TEXT_GGUF) or replaces them by U+FFFD (PRECOMPILED without `per_grapheme`). Built by
 * json_*.c and pipeline_gguf.c; run by pipeline.c, normalize.c, split.c and the model's file
 * (bpe.c, unigram.c or wordpiece.c); written as GGUF keys by export.c. */
#ifndef AK_TEXT_TOKENIZER_PIPELINE_H
#define AK_TEXT_TOKENIZER_PIPELINE_H

#include "base/buffer.h"
#include "base/error.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/token_bytes.h"
#include "files/weights/provider.h"

/* The metaspace: character U+2581, which SentencePiece vocabularies have in place of a space.
 * In WordPiece vocabularies of GGUF it marks the beginning of a word. */
#define AK_TOK_METASPACE "▁"
enum { AK_TOK_METASPACE_BYTES = sizeof AK_TOK_METASPACE - 1 };

/* ---- Character map of SentencePiece ------------------------------------- */
/* SentencePiece's precompiled_charsmap: a double array (XCDA, Kanda 2018) of byte strings and their
 * replacements. Format: u32 size of the array in bytes, the array of u32, NUL-terminated texts. */
struct ak_tok_charsmap {
    uint32_t *nodes;
    uint32_t n_nodes;
    char *texts; /* replacements; ends with NUL */
    size_t n_text_bytes;
};

/* Copies. *map must be zero. */
ak_status ak_tok_charsmap_load(struct ak_tok_charsmap *map, struct ak_text bytes,
                               struct ak_error *error);
void ak_tok_charsmap_free(struct ak_tok_charsmap *map);

/* Length of the longest string of the map that begins the text, of the shortest with `shortest`;
 * 0: none. */
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
    AK_TOK_NORM_STRIP,           /* whitespace, if strip_left and strip_right */
    AK_TOK_NORM_REPLACE,         /* matches of pattern or literal become text */
    AK_TOK_NORM_PREPEND,         /* text goes before a non-empty input */
    AK_TOK_NORM_CLEAN_TEXT,      /* BERT: drop control characters, whitespace becomes a space */
    AK_TOK_NORM_CLEAN_TEXT_GGUF, /* the same in llama.cpp's order: whitespace first */
    AK_TOK_NORM_CHINESE_CHARS,   /* BERT: spaces around ideographs */
    AK_TOK_NORM_BASE_CHARS,      /* llama.cpp: the first character of the decomposition, no marks */
    AK_TOK_NORM_STRIP_MN,        /* decompose, drop category Mn */
    AK_TOK_NORM_PRECOMPILED,     /* map; per_grapheme, as the `tokenizers` package does */
    /* Spaces become ▁, with another ▁ before the first word if add_prefix. If merge_spaces, each
     * word has one ▁ before it instead, however many spaces there are. */
    AK_TOK_NORM_METASPACE,

    /* pre-tokenizers */
    AK_TOK_PRE_SPLIT,            /* at matches of pattern or literal, by behavior; invert */
    AK_TOK_PRE_DIGITS,           /* at digits, by behavior */
    AK_TOK_PRE_PUNCTUATION,      /* at punctuation, by behavior */
    AK_TOK_PRE_WHITESPACE_SPLIT, /* at whitespace, which is removed */
    AK_TOK_PRE_WORDS,            /* runs of word characters, runs of others */
    /* Each space becomes text. split: also splits before each; prepend: where one more is added */
    AK_TOK_PRE_METASPACE,
    AK_TOK_PRE_PREFIX_SPACE, /* a space before the piece, unless it begins with one */
};

/* What becomes of matches, named as in the `tokenizers` package. */
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
    /* used by the kinds that name them above */
    bool strip_left, strip_right, per_grapheme, add_prefix, merge_spaces, invert, split;
    char *text, *literal;       /* from ak_alloc */
    uint32_t n_text, n_literal; /* bytes */
    struct ak_tok_regex *pattern;
    struct ak_tok_charsmap map;
};

struct ak_tok_transforms {
    struct ak_tok_transform *list;
    uint32_t n;
};

/* Appends a transform that is zero except for its kind; NULL: out of memory. */
struct ak_tok_transform *ak_tok_transforms_add(struct ak_tok_transforms *s,
                                               enum ak_tok_transform_kind kind);
void ak_tok_transforms_free(struct ak_tok_transforms *s);

/* A part of the text. `start`: it begins the whole text. */
struct ak_tok_span {
    size_t begin, end;
    bool start;
};
struct ak_tok_spans {
    struct ak_tok_span *list;
    size_t n, capacity;
};

/* Working memory of one encode call. Zero-initialize. */
struct ak_tok_scratch {
    struct ak_buffer text, spare, piece; /* current text, next text, the normalized text */
    struct ak_tok_spans spans, spare_spans, parts;
    double *scores; /* Unigram: of each byte offset, as the next two */
    uint32_t *lengths;
    int32_t *tokens;
    size_t capacity; /* of these three arrays */
};
void ak_tok_scratch_free(struct ak_tok_scratch *w);

/* Writes the normalized text to w->text. AKUNU_ERROR_UNSUPPORTED: it is far longer than the
 * text. */
ak_status ak_tok_normalize(const struct ak_tok_transforms *steps, const char *text, size_t n,
                           struct ak_tok_matcher *m, struct ak_tok_scratch *w,
                           struct ak_error *error);

/* The first match of s->pattern, else of s->literal, in the subject at or after `from`; see
 * ak_tok_regex_find. */
ak_status ak_tok_find_match(const struct ak_tok_transform *s, struct ak_tok_matcher *m,
                            const char *subject, size_t n, size_t from, bool empty, size_t *begin,
                            size_t *end, struct ak_error *error);

/* Applies the pre-tokenizers to [begin, end) of w->text. Results: a new w->text, and w->spans
 * within it. `start`: the range begins the whole text. */
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
    /* BPE: a word that begins with a newline and is a token stays whole */
    bool ignore_newline_merges;

    struct ak_tok_trie trie; /* Unigram, WordPiece: the tokens of `words` that text can become */
    double *scores;          /* Unigram: per token */
    double unknown_score;
    /* WordPiece: prefix of tokens that begin a word; of tokens that continue one */
    char word_prefix[16], subword_prefix[16];
    /* WordPiece: a word of more characters is one unknown token; 0: no limit */
    uint32_t max_word_chars;

    struct ak_tok_specials normalized_specials; /* matched in the normalized text */
    struct ak_buffer added_text;                /* texts of the special tokens */
    int32_t prefix_ids[AK_TOK_AFFIX_MAX], suffix_ids[AK_TOK_AFFIX_MAX]; /* AKUNU_ADD_SPECIAL */
    uint32_t n_prefix, n_suffix;
    uint32_t n_separators; /* that end the first of two texts; 0: not stated */
    bool inserts_spaces;   /* WordPiece: decoding puts spaces between words */
};

#endif

/* The parts that a tokenizer.json is made of; vocabularies of GGUF that work alike
 * are made of them too. Text goes through
 *
 *     normalizers → splits → one model → ids
 *
 * and each step takes any bytes: those that are no UTF-8 stay as they are. */
#ifndef AK_TEXT_PIPELINE_H
#define AK_TEXT_PIPELINE_H

#include "base/buffer.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/regex.h"
#include "tokenizer/specials.h"
#include "tokenizer/trie.h"

enum ak_step_kind {
    /* normalizers */
    AK_STEP_NFC,
    AK_STEP_NFD,
    AK_STEP_NFKC,
    AK_STEP_NFKD,
    AK_STEP_LOWERCASE,
    AK_STEP_STRIP_ACCENTS,
    AK_STEP_STRIP,       /* flag: on the left, flag2: on the right */
    AK_STEP_REPLACE,     /* pattern or literal by text */
    AK_STEP_PREPEND,     /* text */
    AK_STEP_CLEAN,       /* BERT: no control characters, blanks for all white space */
    AK_STEP_CLEAN_GGUF,  /* the same as llama.cpp does it: white space first */
    AK_STEP_CHINESE,     /* BERT: blanks around ideographs */
    AK_STEP_BASE,        /* llama.cpp: the first character of the decomposition, no marks */
    AK_STEP_PLAIN_MARKS, /* decomposed, and no Mn */
    AK_STEP_PRECOMPILED, /* map; flag: as the `tokenizers` package does, by grapheme */
    AK_STEP_MARK_BLANKS, /* ▁ for blanks; flag: one before each word, flag2: for none of them */

    /* splits */
    AK_STEP_SPLIT,       /* pattern or literal; flag: invert */
    AK_STEP_DIGITS,      /* behaviour */
    AK_STEP_PUNCTUATION, /* behaviour */
    AK_STEP_WHITESPACE,  /* removed */
    AK_STEP_WORDS,       /* runs of word characters, runs of others */
    /* text for each blank; flag: cut before each, first: where one is put first */
    AK_STEP_METASPACE,
    AK_STEP_BLANK_FIRST, /* a blank before the piece if there is none */
};

enum ak_tok_behavior {
    AK_REMOVED,
    AK_ISOLATED,
    AK_MERGED_WITH_PREVIOUS,
    AK_MERGED_WITH_NEXT,
    AK_CONTIGUOUS
};
enum ak_first { AK_FIRST_ALWAYS, AK_FIRST_START, AK_FIRST_NEVER };

struct ak_step {
    enum ak_step_kind kind;
    enum ak_tok_behavior behaviour;
    enum ak_first first;
    bool flag, flag2;
    char *text, *literal; /* from ak_alloc, and their bytes */
    uint32_t n_text, n_literal;
    struct ak_regex *pattern;
    struct ak_charsmap map;
};

struct ak_steps {
    struct ak_step *list;
    uint32_t n;
};

/* Adds a step, all zero but for its kind; NULL where memory lacks. */
struct ak_step *ak_steps_add(struct ak_steps *s, enum ak_step_kind kind);
void ak_steps_free(struct ak_steps *s);

/* A piece of the text; `start` where it begins the whole text. */
struct ak_cut {
    size_t begin, end;
    bool start;
};
struct ak_cuts {
    struct ak_cut *list;
    size_t n, capacity;
};

/* What one call needs of its own; all zero at first. */
struct ak_work {
    struct ak_buffer text, spare, piece;
    struct ak_cuts cuts, spare_cuts, parts;
    double *scores; /* Unigram */
    uint32_t *lengths;
    int32_t *tokens;
    size_t capacity;
};
void ak_work_free(struct ak_work *w);

/* Puts the normal form of the text into w->text, whose length is limited from then on: what is
 * much longer than the text is AKUNU_ERROR_UNSUPPORTED. */
ak_status ak_normalize(const struct ak_steps *steps, const char *text, size_t n,
                       struct ak_matcher *m, struct ak_work *w, struct ak_error *error);

/* Cuts [begin, end) of w->text, `start` where that is at the beginning of the whole
 * text, into w->cuts of the new w->text. */
ak_status ak_split_text(const struct ak_steps *steps, size_t begin, size_t end, bool start,
                        struct ak_matcher *m, struct ak_work *w, struct ak_error *error);

enum ak_core { AK_CORE_BPE, AK_CORE_UNIGRAM, AK_CORE_WORDPIECE };

enum { AK_MAX_ADDED = 16 };

struct ak_pipeline {
    struct ak_steps normalizers, splits;
    enum ak_core core;
    struct ak_pieces words; /* the vocabulary as the file writes it; empty for byte-level BPE */
    bool byte_fallback, fuse_unknown;
    bool whole_lines; /* BPE: a word that begins with a line end and is a token is not merged */

    struct ak_trie trie; /* Unigram, WordPiece: those of `words` that text can become */
    double *scores;      /* Unigram */
    double unknown_score;
    /* WordPiece: what the pieces at a word's beginning, and the others, begin with */
    char first_mark[16], next_mark[16];
    /* WordPiece: characters, more are one unknown token; 0: any */
    uint32_t max_word;

    struct ak_specials normalized; /* tokens that are looked for in the normal form */
    struct ak_buffer added_text;   /* what the special tokens' texts point into */
    int32_t before[AK_MAX_ADDED], after[AK_MAX_ADDED];
    uint32_t n_before, n_after;
    uint32_t n_between; /* that end the first of two texts; 0: not said */
    bool joins_words;   /* decoding puts blanks between words (WordPiece) */
};

#endif

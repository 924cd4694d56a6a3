/* Slow tokenizers: Hugging Face folders without tokenizer.json, whose vocabulary is in the files of
 * a tokenizer class of transformers. Such a folder becomes what tokenizer.json would have, which
 * the loader of tokenizer.json reads.
 *
 *     slow.c           finds the class and its files; the whole
 *     slow_classes.c   the table of classes: files, default options, pipeline
 *     slow_files.c     vocab.json, merges.txt and vocab.txt
 *     slow_spm.c       SentencePiece models
 *     slow_added.c     added and special tokens
 *     slow_affix.c     special tokens before and after a text
 *
 * Results are those of transformers 5. Three things follow transformers 4, for which most folders
 * were made: tokenizers of Llama and Gemma add BOS unless add_bos_token is false, those of Llama
 * put a space before the text and after each control token unless `legacy` is false, and added
 * tokens keep their stated ids. */
#ifndef AK_TEXT_TOKENIZER_SLOW_H
#define AK_TEXT_TOKENIZER_SLOW_H

#include "base/json.h"
#include "text/tokenizer/sentencepiece.h"
#include "text/tokenizer/tokenizer.h"

/* Creates the tokenizer from files other than tokenizer.json. *out is NULL if the folder has no
 * file of a vocabulary. Messages name the file. */
ak_status ak_tok_slow_open(const struct ak_provider *p, struct ak_tokenizer **out,
                           struct ak_error *error);

/* ---- Classes ------------------------------------------------------------ */
enum ak_tok_slow_kind {
    AK_TOK_SLOW_BPE,       /* vocab.json, merges.txt */
    AK_TOK_SLOW_WORDPIECE, /* vocab.txt */
    AK_TOK_SLOW_SPM_BPE,   /* SentencePiece */
    AK_TOK_SLOW_SPM_UNIGRAM
};

/* Which special tokens go before and after a text. */
enum ak_tok_slow_affix {
    AK_TOK_SLOW_BOS_EOS, /* BOS if add_bos_token, EOS if add_eos_token */
    AK_TOK_SLOW_CLS_SEP, /* one separator between two texts */
    AK_TOK_SLOW_CLS_SEP_SEP,
    AK_TOK_SLOW_BOS_EOS_EOS, /* BOS and EOS, two EOS between two texts */
    AK_TOK_SLOW_EOS,
    AK_TOK_SLOW_WHISPER
};

struct ak_tok_slow;

struct ak_tok_slow_class {
    const char *name; /* without "Fast" */
    enum ak_tok_slow_kind kind;
    const char *files[2]; /* all are needed; a SentencePiece model may be called tokenizer.model */
    enum ak_tok_slow_affix affix;
    const char *options; /* JSON: defaults of the keys of tokenizer_config.json */
    bool mask_strips;    /* a mask token that is a string takes the whitespace to its left */
    /* SentencePiece: ids of the class that differ from the file's */
    ak_status (*arrange)(struct ak_tok_slow *s);
    /* Makes s->root: normalizer, pre-tokenizer, decoder and the model without its vocabulary. */
    ak_status (*build)(struct ak_tok_slow *s);
};

/* The class of that name, with or without "Fast"; NULL: unknown. */
const struct ak_tok_slow_class *ak_tok_slow_find_class(const char *name);
/* The i-th class; NULL past the end. */
const struct ak_tok_slow_class *ak_tok_slow_class_at(size_t i);
/* The name of the class of a model_type; NULL: none. *always: published folders of this type name
 * other classes, which do not count. */
const char *ak_tok_slow_class_of_model(struct ak_text model_type, bool *always);

/* ---- A folder while it is being read ------------------------------------ */
struct ak_tok_slow {
    const struct ak_provider *p;
    const struct ak_tok_slow_class *class;
    bool is_generic; /* the folder names no class, or one for any SentencePiece model */
    /* the class's defaults with tokenizer_config.json and special_tokens_map.json on top */
    json_t *options;
    json_t *root;    /* what tokenizer.json would have */
    json_t *added;   /* added tokens by their content, as in tokenizer.json */
    json_t *ids;     /* of the vocabulary, by token */
    int64_t next_id; /* for a token that has no id yet */
    const char *vocab_file, *added_file;
    struct ak_tok_spm spm; /* only of a SentencePiece class */
    struct ak_error *error;
};

/* The text of a special token among the options; NULL: none. */
const char *ak_tok_slow_name(const struct ak_tok_slow *s, const char *key);
/* An option; `fallback`: it is absent or null. Anything but a bool is an error. */
ak_status ak_tok_slow_flag(const struct ak_tok_slow *s, const char *key, bool fallback, bool *out);

/* Add the vocabulary to s->root. */
ak_status ak_tok_slow_read_bpe(struct ak_tok_slow *s);
ak_status ak_tok_slow_read_wordpiece(struct ak_tok_slow *s);
ak_status ak_tok_slow_add_pieces(struct ak_tok_slow *s);
/* The normalizer of the SentencePiece model, for tokenizer.json; NULL: out of memory, JSON's null:
 * the model has none. */
json_t *ak_tok_slow_charsmap(const struct ak_tok_slow *s);

/* SentencePiece: put the special tokens of the class in place. */
ak_status ak_tok_slow_arrange_xlm_roberta(struct ak_tok_slow *s);
ak_status ak_tok_slow_arrange_camembert(struct ak_tok_slow *s);
ak_status ak_tok_slow_arrange_t5(struct ak_tok_slow *s);

/* Add the added tokens to s->root, and the post-processor. */
ak_status ak_tok_slow_add_tokens(struct ak_tok_slow *s);
ak_status ak_tok_slow_add_affixes(struct ak_tok_slow *s);

/* The id of a token of the vocabulary or an added token; -1: none. After ak_tok_slow_add_tokens. */
int64_t ak_tok_slow_find_id(const struct ak_tok_slow *s, const char *content);

ak_status ak_tok_slow_fail_memory(const struct ak_tok_slow *s);

#endif

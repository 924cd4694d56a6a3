/* Internals of the loader of tokenizer.json. json_parts.c reads normalizer, pre-tokenizer, decoder
 * and post-processor, json_model.c the model and its vocabulary. json_tokenizer.c makes a tokenizer
 * from them. `where` begins messages about the JSON: "tokenizer.json: normalizer". */
#ifndef AK_TEXT_TOKENIZER_JSON_PARTS_H
#define AK_TEXT_TOKENIZER_JSON_PARTS_H

#include "base/json.h"
#include "text/tokenizer/internal.h"
#include "text/tokenizer/pipeline.h"

/* The string under `key`; { NULL, 0 }: absent or null, if it is not `needed`. */
ak_status ak_tok_json_text(const json_t *object, const char *key, bool needed, const char *where,
                           struct ak_text *out, struct ak_error *error);
ak_status ak_tok_json_bool(const json_t *object, const char *key, bool fallback, const char *where,
                           bool *out, struct ak_error *error);
/* The value as an integer, also if it is a real of integral value. False: not an integer. `value`
 * may be NULL. */
bool ak_tok_json_integer(const json_t *value, int64_t *out);
/* The object or list under `key`; NULL: absent or null, if it is not `needed`. */
ak_status ak_tok_json_object(const json_t *object, const char *key, bool needed, const char *where,
                             json_t **out, struct ak_error *error);
ak_status ak_tok_json_list(const json_t *object, const char *key, bool needed, const char *where,
                           json_t **out, struct ak_error *error);

/* Appends the transforms of a normalizer. */
ak_status ak_tok_json_read_normalizer(const json_t *part, struct ak_tok_transforms *steps,
                                      struct ak_error *error);
/* Appends the transforms of a pre-tokenizer. *byte_level: the last one is ByteLevel, after which
 * words are bytes. */
ak_status ak_tok_json_read_pretokenizer(const json_t *part, struct ak_tok_transforms *steps,
                                        bool *byte_level, struct ak_error *error);

/* The decoder; it is applied to each token at load. */
struct ak_tok_json_decoder {
    struct ak_tok_transforms steps; /* AK_TOK_NORM_* */
    bool byte_level, byte_fallback, strips_space;
    bool wordpiece, cleanup;
    bool fused;
};
ak_status ak_tok_json_read_decoder(const json_t *part, struct ak_tok_json_decoder *out,
                                   struct ak_error *error);

/* Adds the special tokens that AKUNU_ADD_SPECIAL puts before and after a text. */
ak_status ak_tok_json_read_post_processor(const json_t *part, struct ak_tok_pipeline *p,
                                          struct ak_error *error);

/* ---- Model -------------------------------------------------------------- */
/* A tokenizer.json while it is being loaded. */
struct ak_tok_json_loader {
    struct ak_tokenizer *t;
    json_t *root, *model, *vocab, *merges, *added;
    uint32_t n;                  /* number of ids, holes included */
    uint64_t limit;              /* upper bound of n */
    struct ak_text *tokens;      /* per id, pointing into the JSON; { NULL, 0 }: a hole */
    bool *is_model_token;        /* per id: in the model's own vocabulary */
    struct ak_text *lines;       /* merges, as "left right" */
    struct ak_buffer merge_text; /* text of merges that the JSON has as lists of two */
    struct ak_tok_json_decoder decoder;
    /* begin messages about the model's vocabulary and the added tokens */
    const char *where_vocab, *where_added;
    struct ak_error *error;
};

/* Where the parts of a tokenizer.json come from. */
struct ak_tok_json_source {
    json_t *root;             /* what tokenizer.json has */
    const json_t *config;     /* names of BOS, EOS and padding; NULL: none */
    const json_t *generation; /* generation_config.json; NULL: none */
    const char *where_vocab, *where_added;
};

/* Creates a tokenizer. Everything stays the caller's. */
ak_status ak_tok_json_create(const struct ak_tok_json_source *source, struct ak_tokenizer **out,
                             struct ak_error *error);
/* *out is NULL if there are no bytes. The caller frees it with json_decref. Messages begin with the
 * name. */
ak_status ak_tok_json_parse(struct ak_text bytes, const char *name, json_t **out,
                            struct ak_error *error);

static inline struct ak_text ak_tok_json_string(const json_t *string)
{
    return (struct ak_text){ json_string_value(string), (uint32_t)json_string_length(string) };
}

/* Finds the type of the model and its vocabulary. */
ak_status ak_tok_json_find_model(struct ak_tok_json_loader *m);
/* Load, in this order: the tokens of the vocabulary; the table in which the model looks words up,
 * unless words are bytes; the data of the model itself. */
ak_status ak_tok_json_load_vocab(struct ak_tok_json_loader *m);
ak_status ak_tok_json_load_words(struct ak_tok_json_loader *m);
ak_status ak_tok_json_load_model(struct ak_tok_json_loader *m);

#endif

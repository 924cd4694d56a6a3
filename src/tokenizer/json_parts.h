/* The parts of tokenizer.json, read with errors that name them. Every message
 * begins with `where`, as "tokenizer.json: normalizer". */
#ifndef AK_TOKENIZER_JSON_PARTS_H
#define AK_TOKENIZER_JSON_PARTS_H

#include "base/json.h"
#include "tokenizer/internal.h"
#include "tokenizer/pipeline.h"

/* A string under `key`; *out is { NULL, 0 } where it is absent or null and not `needed`. */
ak_status ak_tok_json_text(const json_t *object, const char *key, bool needed, const char *where,
                           struct ak_text *out, struct ak_error *error);
ak_status ak_tok_json_bool(const json_t *object, const char *key, bool fallback, const char *where,
                           bool *out, struct ak_error *error);
/* The integer that `value` is, also where it was read as a real; false where it is
 * none. NULL allowed. */
bool ak_tok_json_integer(const json_t *value, int64_t *out);
/* An object under `key`, or a list; NULL where it is absent or null and not `needed`. */
ak_status ak_tok_json_object(const json_t *object, const char *key, bool needed, const char *where,
                             json_t **out, struct ak_error *error);
ak_status ak_tok_json_list(const json_t *object, const char *key, bool needed, const char *where,
                           json_t **out, struct ak_error *error);

/* Adds the steps of a normalizer. */
ak_status ak_tok_json_read_normalizer(const json_t *part, struct ak_tok_transforms *steps,
                                      struct ak_error *error);
/* Adds the steps of a pre-tokenizer; *byte_level where the last one is ByteLevel,
 * whose words are bytes from there on. */
ak_status ak_tok_json_read_pretokenizer(const json_t *part, struct ak_tok_transforms *steps,
                                        bool *byte_level, struct ak_error *error);

/* How tokens become text, one by one. */
struct ak_tok_json_decoder {
    struct ak_tok_transforms steps; /* normalizers */
    bool byte_level, byte_fallback, strips_space;
    bool wordpiece, cleanup;
    bool fused;
};
ak_status ak_tok_json_read_decoder(const json_t *part, struct ak_tok_json_decoder *out,
                                   struct ak_error *error);

/* Adds what is put before and after a text. */
ak_status ak_tok_json_read_post_processor(const json_t *part, struct ak_tok_pipeline *p,
                                          struct ak_error *error);

/* ---- Model -------------------------------------------------------------- */

struct ak_tok_json_loader {
    struct ak_tokenizer *t;
    json_t *root, *model, *vocab, *merges, *added;
    uint32_t n;                  /* ids */
    uint64_t limit;              /* for ids */
    struct ak_text *tokens;      /* of each id, in the JSON; { NULL, 0 } for a hole */
    bool *is_model_token;        /* of each id */
    struct ak_text *lines;       /* merges */
    struct ak_buffer merge_text; /* of those that are pairs */
    struct ak_tok_json_decoder decoder;
    struct ak_error *error;
};

static inline struct ak_text ak_tok_json_string(const json_t *string)
{
    return (struct ak_text){ json_string_value(string), (uint32_t)json_string_length(string) };
}

/* Which core the model is of, and where its vocabulary stands. */
ak_status ak_tok_json_find_model(struct ak_tok_json_loader *m);
/* The vocabulary's tokens; what the core looks up among them; and the core's own rules,
 * which want the first and, where words are not bytes, the second. */
ak_status ak_tok_json_load_vocab(struct ak_tok_json_loader *m);
ak_status ak_tok_json_load_words(struct ak_tok_json_loader *m);
ak_status ak_tok_json_load_model(struct ak_tok_json_loader *m);

#endif

/* The parts of tokenizer.json, read with errors that name them. Every message
 * begins with `where`, as "tokenizer.json: normalizer". */
#ifndef AK_TOKENIZER_JSON_PARTS_H
#define AK_TOKENIZER_JSON_PARTS_H

#include "base/json.h"
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

#endif

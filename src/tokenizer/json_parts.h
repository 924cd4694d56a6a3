/* The parts of tokenizer.json, read with errors that name them. Every message
 * begins with `where`, as "tokenizer.json: normalizer". */
#ifndef AK_TEXT_JSON_PARTS_H
#define AK_TEXT_JSON_PARTS_H

#include "base/json.h"
#include "tokenizer/pipeline.h"

/* A string under `key`; *out is { NULL, 0 } where it is absent or null and not `needed`. */
ak_status ak_json_text(const json_t *object, const char *key, bool needed, const char *where,
                       struct ak_text *out, struct ak_error *error);
ak_status ak_json_flag(const json_t *object, const char *key, bool fallback, const char *where,
                       bool *out, struct ak_error *error);
/* The integer that `value` is, also where it was read as a real; false where it is
 * none. NULL allowed. */
bool ak_json_whole(const json_t *value, int64_t *out);
/* An object under `key`, or a list; NULL where it is absent or null and not `needed`. */
ak_status ak_json_object(const json_t *object, const char *key, bool needed, const char *where,
                         json_t **out, struct ak_error *error);
ak_status ak_json_list(const json_t *object, const char *key, bool needed, const char *where,
                       json_t **out, struct ak_error *error);

/* Adds the steps of a normalizer. */
ak_status ak_json_normalizer(const json_t *part, struct ak_steps *steps, struct ak_error *error);
/* Adds the steps of a pre-tokenizer; *byte_level where the last one is ByteLevel,
 * whose words are bytes from there on. */
ak_status ak_json_pre_tokenizer(const json_t *part, struct ak_steps *steps, bool *byte_level,
                                struct ak_error *error);

/* How tokens become text, one by one. */
struct ak_json_decoder {
    struct ak_steps steps; /* normalizers */
    bool byte_level, byte_fallback, drops_blank;
    bool wordpiece, cleanup;
    bool fused;
};
ak_status ak_json_decoder(const json_t *part, struct ak_json_decoder *out, struct ak_error *error);

/* Adds what is put before and after a text. */
ak_status ak_json_post_processor(const json_t *part, struct ak_pipeline *p, struct ak_error *error);

#endif

/* What a tokenizer.json is on its way to a tokenizer. */
#ifndef AK_TEXT_JSON_CORE_H
#define AK_TEXT_JSON_CORE_H

#include "tokenizer/json_parts.h"
#include "tokenizer/state.h"

struct ak_json_maker {
    struct ak_tokenizer *t;
    json_t *root, *model, *vocab, *merges, *added;
    uint32_t n;              /* ids */
    uint64_t limit;          /* for ids */
    struct ak_text *tokens;  /* of each id, in the JSON; { NULL, 0 } for a hole */
    bool *of_model;          /* of each id */
    struct ak_text *lines;   /* merges */
    struct ak_buffer joined; /* of those that are pairs */
    struct ak_json_decoder decoder;
    struct ak_error *error;
};

static inline struct ak_text ak_json_text_of(const json_t *string)
{
    return (struct ak_text){ json_string_value(string), (uint32_t)json_string_length(string) };
}

/* Which core the model is of, and where its vocabulary stands. */
ak_status ak_json_core_find(struct ak_json_maker *m);
/* The vocabulary's tokens; what the core looks up among them; and the core's own rules,
 * which want the first and, where words are not bytes, the second. */
ak_status ak_json_core_vocab(struct ak_json_maker *m);
ak_status ak_json_core_words(struct ak_json_maker *m);
ak_status ak_json_core_load(struct ak_json_maker *m);

#endif

/* What a tokenizer.json is on its way to a tokenizer. */
#ifndef AK_TOKENIZER_JSON_MODEL_H
#define AK_TOKENIZER_JSON_MODEL_H

#include "tokenizer/json_parts.h"
#include "tokenizer/internal.h"

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

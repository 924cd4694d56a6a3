/* Reasoning budget of a completion: counts the tokens between the markers of reasoning, and names
 * the tokens that end it when the budget is spent.
 *
 * Markers are found in the bytes of tokens, control tokens included, so it does not matter how a
 * model splits them. */
#ifndef AK_ENGINE_GENERATE_REASONING_H
#define AK_ENGINE_GENERATE_REASONING_H

#include "text/tokenizer/tokenizer.h"

enum { AK_GEN_MARKER_BYTES_MAX = 128, AK_GEN_CLOSING_MAX = 64 };

/* All zero: no budget. */
struct ak_gen_reasoning {
    const struct akunu_reasoning *given; /* NULL: no budget */
    const struct ak_tokenizer *tokenizer;
    int64_t left;   /* tokens of reasoning until it is ended */
    bool is_inside; /* in reasoning */
    bool at_start;  /* only whitespace since the beginning or since reasoning ended */
    char tail[AK_GEN_MARKER_BYTES_MAX * 2]; /* last bytes, where a marker may have begun */
    size_t n_tail;
    int32_t closing[AK_GEN_CLOSING_MAX];
    size_t n_closing;
    size_t n_forced; /* tokens of `closing` taken so far */
    bool is_forcing;
};

/* `given` NULL: no budget. It stays the caller's. AKUNU_ERROR_ARGUMENT: a marker is empty or too
 * long, or there is no tokenizer. */
ak_status ak_gen_reasoning_begin(struct ak_gen_reasoning *r, const struct akunu_reasoning *given,
                                 const struct ak_tokenizer *tokenizer, struct ak_error *error);

/* The token that must come next; -1: any. */
int32_t ak_gen_reasoning_forced(const struct ak_gen_reasoning *r);

/* Adds a token of the completion. */
ak_status ak_gen_reasoning_add(struct ak_gen_reasoning *r, int32_t token, struct ak_error *error);

/* Ends the budget: nothing is forced from now on. */
void ak_gen_reasoning_stop(struct ak_gen_reasoning *r);

#endif

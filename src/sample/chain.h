/* The samplers that may stand in an order, and how orders are written. */
#ifndef AK_SAMPLE_CHAIN_H
#define AK_SAMPLE_CHAIN_H

#include "base/error.h"

enum ak_sample_kind {
    AK_SAMPLE_PENALTIES,
    AK_SAMPLE_DRY,
    AK_SAMPLE_TOP_N_SIGMA,
    AK_SAMPLE_TOP_K,
    AK_SAMPLE_TYPICAL,
    AK_SAMPLE_TOP_P,
    AK_SAMPLE_MIN_P,
    AK_SAMPLE_XTC,
    AK_SAMPLE_TEMPERATURE,
    AK_SAMPLE_ADAPTIVE_P
};

/* A sampler may come several times. */
enum { AK_SAMPLE_CHAIN_MAX = 32 };

struct ak_sample_chain {
    enum ak_sample_kind kinds[AK_SAMPLE_CHAIN_MAX];
    uint32_t n;
};

/* The order that the parameters' names or letters ask for. Names are llama.cpp's, with its
 * other spellings: "top-k" and "topk" for "top_k", "temp", "nucleus", "typ", capitals.
 * AKUNU_ERROR_ARGUMENT: an unknown sampler, too many of them, or both forms. */
ak_status ak_sample_parse_chain(const struct akunu_sampling *sampling, struct ak_sample_chain *out,
                                struct ak_error *error);

#endif

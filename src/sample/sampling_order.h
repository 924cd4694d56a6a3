/* The samplers that may stand in an order, and how orders are written. */
#ifndef AK_SESSION_SAMPLING_ORDER_H
#define AK_SESSION_SAMPLING_ORDER_H

#include "base/error.h"

enum ak_sampling_step {
    AK_SAMPLING_PENALTIES,
    AK_SAMPLING_DRY,
    AK_SAMPLING_TOP_N_SIGMA,
    AK_SAMPLING_TOP_K,
    AK_SAMPLING_TYPICAL,
    AK_SAMPLING_TOP_P,
    AK_SAMPLING_MIN_P,
    AK_SAMPLING_XTC,
    AK_SAMPLING_TEMPERATURE,
    AK_SAMPLING_ADAPTIVE_P
};

/* A sampler may come several times. */
enum { AK_SAMPLING_MOST_STEPS = 32 };

struct ak_sampling_order {
    enum ak_sampling_step steps[AK_SAMPLING_MOST_STEPS];
    uint32_t n;
};

/* The order that the parameters' names or letters ask for. Names are llama.cpp's, with its
 * other spellings: "top-k" and "topk" for "top_k", "temp", "nucleus", "typ", capitals.
 * AKUNU_ERROR_ARGUMENT: an unknown sampler, too many of them, or both forms. */
ak_status ak_sampling_order(const struct akunu_sampling *sampling, struct ak_sampling_order *out,
                            struct ak_error *error);

#endif

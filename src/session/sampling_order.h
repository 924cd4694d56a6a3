/* The samplers that may stand in an order, and how orders are written. */
#ifndef AK_SESSION_SAMPLING_ORDER_H
#define AK_SESSION_SAMPLING_ORDER_H

#include "base/error.h"

enum ak_sampling_step {
    AK_SAMPLING_PENALTIES, AK_SAMPLING_TOP_K, AK_SAMPLING_TOP_P, AK_SAMPLING_MIN_P, AK_SAMPLING_TEMPERATURE
};

/* Each sampler may come several times, as in llama.cpp. */
enum { AK_SAMPLING_MOST_STEPS = 32 };

struct ak_sampling_order {
    enum ak_sampling_step steps[AK_SAMPLING_MOST_STEPS];
    uint32_t n;
};

/* The order that the parameters ask for. */
ak_status ak_sampling_order(const struct akunu_sampling *sampling, struct ak_sampling_order *out, struct ak_error *error);

#endif

#include "session/sampling_order.h"

ak_status ak_sampling_order(const struct akunu_sampling *sampling, struct ak_sampling_order *out, struct ak_error *error)
{
    (void)sampling;
    (void)error;
    *out = (struct ak_sampling_order){
        .steps = { AK_SAMPLING_PENALTIES, AK_SAMPLING_TOP_K, AK_SAMPLING_TOP_P, AK_SAMPLING_MIN_P, AK_SAMPLING_TEMPERATURE },
        .n = 5,
    };
    return AKUNU_OK;
}

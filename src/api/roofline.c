#include "api/error.h"
#include "cpu/roofline.h"

enum akunu_status akunu_measure_roofline(unsigned n_threads, struct akunu_roofline *out)
{
    struct ak_error error;
    struct ak_roofline measured = { 0 };
    if (n_threads < 1 || !out) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "measuring needs at least one thread and a place for the result");
        return ak_api_fail(&error);
    }
    if (ak_roofline_measure(ak_isa_best(), n_threads, &measured, &error) != AKUNU_OK)
        return ak_api_fail(&error);
    out->read_bytes_per_second = measured.read_bytes_per_second;
    out->int8_ops_per_second = measured.int8_ops_per_second;
    return AKUNU_OK;
}

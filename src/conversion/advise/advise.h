/* Advice on types: what a model would take as a type or mix in memory and time, and what its
 * predictions would lose. No weights are read or packed: the plan of a conversion becomes a GGUF
 * file whose tensors are holes, and what the kernels would read of it is planned as at a load.
 *
 *     advise.c    sizes and time
 *     quality.c   the table of divergences
 */
#ifndef AK_CONVERSION_ADVISE_ADVISE_H
#define AK_CONVERSION_ADVISE_ADVISE_H

#include "conversion/convert/convert.h"
#include "engine/session/session.h"

struct ak_advisor {
    char *path; /* of the source; the advisor owns it */
    struct akunu_load_params load;
    struct akunu_session_params session;
    bool no_speed;
    uint64_t tokenizer_bytes; /* of the source's vocabulary in memory */
    /* as they are measured, once: bytes per second of weights of a type in a pass of one token, and
     * of memory that is only read */
    bool is_measured;
    double rates[AK_QUANT_COUNT], read_rate, step_seconds;
};

/* Fails if the source cannot be opened. Clear *a in any case. */
ak_status ak_advisor_init(struct ak_advisor *a, const char *path, struct ak_error *error);
void ak_advisor_clear(struct ak_advisor *a);

/* As akunu_advisor_get_advice. */
ak_status ak_advisor_get(struct ak_advisor *a, const char *type, struct akunu_advice *out,
                         struct ak_error *error);

/* KL divergence from the source that a mix costs, in nats per token; below 0: unknown. */
double ak_advise_divergence(const char *mix, bool has_importance);

#endif

/* Collects an importance matrix while a model runs: which tensors, by the names that they have in a
 * GGUF file of the model, take which input sums of the backend. Fused operators give each of their
 * tensors the same sums. */
#ifndef AK_CONVERSION_CONVERT_COLLECT_H
#define AK_CONVERSION_CONVERT_COLLECT_H

#include "conversion/convert/convert.h"
#include "engine/pack/pack.h"

/* A tensor's sums: packed weight `packed`, into entry `entry`. */
struct ak_convert_collected {
    uint32_t packed;
    size_t entry;
    struct ak_convert_order cols; /* as in struct ak_convert_tensor */
};

struct ak_convert_collector {
    struct ak_convert_plan plan; /* tensors of the model as GGUF */
    const struct ak_weights *weights;
    bool is_tied, wants_output;
    struct ak_backend_input_sums *sums; /* [packed weights], of the text that runs */
    struct ak_convert_collected *collected;
    size_t n;
};

/* The model whose products are summed. */
struct ak_convert_collect_source {
    const struct ak_provider *provider;
    const struct ak_spec *spec;
    const struct ak_weights *weights; /* of this provider */
    bool is_tied;                     /* the embedding serves as output matrix */
};

/* Adds an entry per tensor that is multiplied with something to `im`; the output matrix, or an
 * embedding that serves as one, only if wants_output. Free *out in any case. */
ak_status ak_convert_collector_create(const struct ak_convert_collect_source *source,
                                      bool wants_output, struct ak_importance *im,
                                      struct ak_convert_collector *out, struct ak_error *error);
void ak_convert_collector_free(struct ak_convert_collector *c);

/* Whether the model has a tensor of this name. */
bool ak_convert_collector_has(const struct ak_convert_collector *c, const char *name);

/* Adds the sums of the text that ran to the entries, each rounded once, and clears them.
 * AKUNU_ERROR_NUMERIC: one is not finite; nothing is added. */
ak_status ak_convert_collector_take(struct ak_convert_collector *c, struct ak_importance *im,
                                    struct ak_error *error);
void ak_convert_collector_clear_sums(struct ak_convert_collector *c);

#endif

/* Checks that a model and a session fit into the device's memory, before anything is allocated. */
#include <stdio.h>

#include "opencl/opencl.h"

struct demand {
    uint64_t weights, kv, activations;
};

/* Bytes of this backend's weights, those outside layers and those of layers from `first` on. */
static uint64_t weight_bytes(const struct ak_backend *b, const struct ak_weights *weights,
                             uint32_t first)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < weights->n_packed; i++) {
        const struct ak_pack_weight *packed = &weights->packed[i];
        if (packed->backend == b &&
            (packed->layer == AK_ROLE_NO_LAYER || packed->layer >= (int)first))
            bytes += ak_ocl_weight_bytes(packed);
    }
    return bytes + weights->vector_bytes + ak_ocl_position_bytes(weights);
}

/* The first layer that the backend owns. */
static uint32_t first_layer(const struct ak_backend *b, const struct ak_weights *weights)
{
    uint32_t first = weights->n_layers;
    for (uint32_t i = 0; i < weights->n_packed; i++)
        if (weights->packed[i].backend == b && weights->packed[i].layer != AK_ROLE_NO_LAYER &&
            weights->packed[i].layer < (int)first)
            first = (uint32_t)weights->packed[i].layer;
    return first;
}

static uint64_t kv_bytes(const struct ak_spec *spec, const struct ak_kv_shape *own, uint32_t first)
{
    struct ak_kv_shape shape = *own;
    if (!spec->descriptor.encoder)
        shape.n_layers = ak_spec_kv_layers(spec) - ak_spec_kv_layer(spec, (int)first);
    shape.state_elems = ak_spec_state_elems(spec) - ak_spec_state_offset(spec, (int)first);
    return ak_kv_pool_bytes(&shape);
}

static bool fits_device(const struct ak_ocl_device *device, const struct demand *demand)
{
    uint64_t rest = device->memory;
    if (demand->kv > device->max_allocation || demand->weights > rest ||
        demand->kv > rest - demand->weights)
        return false;
    return demand->activations <= rest - demand->weights - demand->kv;
}

uint64_t ak_ocl_kv_bytes_max(const struct ak_backend *b, const struct ak_weights *weights)
{
    const struct ak_ocl_device *device = &((const struct ak_ocl *)b)->device;
    uint64_t taken = weight_bytes(b, weights, 0),
             rest = taken < device->memory ? device->memory - taken : 0;
    return rest / 2 < device->max_allocation ? rest : 2 * device->max_allocation;
}

/* Buffers of all tables. Those of the sampled table and of the encoder are allocated at their first
 * use. */
static uint64_t activation_bytes(struct ak_ocl *o, const struct ak_backend_tables *tables,
                                 const struct ak_weights *weights, const struct ak_spec *spec,
                                 const struct ak_backend_table_options *options)
{
    struct ak_backend_table_options one = *options, windows = *options;
    one.max_tokens = one.max_logits = 1;
    windows.max_tokens = windows.max_logits = tables->encoder_tokens;
    return ak_ocl_scratch_bytes(o, tables->table, weights, spec, options) +
           ak_ocl_scratch_bytes(o, tables->table, weights, spec, &one) +
           (tables->encoder ? ak_ocl_scratch_bytes(o, tables->encoder, weights, spec, &windows) :
                              0);
}

/* Says what does not fit, and how many of `n` layers do. */
static ak_status refuse_for_memory(const struct ak_ocl_device *device, const struct demand *all,
                                   uint32_t n, uint32_t n_fitting, bool is_divisible,
                                   struct ak_error *error)
{
    char advice[128] = "n_gpu_layers 0 runs the model on the CPU";
    if (is_divisible)
        snprintf(advice, sizeof advice,
                 "with this context and batch there is room for %s%u (n_gpu_layers)",
                 n_fitting > 0 ? "" : "less than one layer, so ", (unsigned)n_fitting);
    return ak_fail(error, AKUNU_ERROR_MEMORY,
                   "%s has too little memory for %u layers: weights take %.1f MB, the KV cache "
                   "%.1f MB, activations %.1f MB, and it has %.1f MB, "
                   "at most %.1f MB in one allocation; %s",
                   device->name, (unsigned)n, (double)all->weights / 1e6, (double)all->kv / 1e6,
                   (double)all->activations / 1e6, (double)device->memory / 1e6,
                   (double)device->max_allocation / 1e6, advice);
}

ak_status ak_ocl_check_memory(const struct ak_backend *b, const struct ak_backend_tables *tables,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options,
                              struct ak_error *error)
{
    struct ak_ocl *o = (struct ak_ocl *)(uintptr_t)b;
    uint32_t first_own = first_layer(b, weights), n_layers = weights->n_layers, first = first_own;
    const struct demand all = { weight_bytes(b, weights, first_own), ak_kv_pool_bytes(&options->kv),
                                activation_bytes(o, tables, weights, spec, options) };
    struct demand some = all;
    while (!fits_device(&o->device, &some) && ++first < n_layers) {
        some.weights = weight_bytes(b, weights, first);
        some.kv = kv_bytes(spec, &options->kv, first);
    }
    if (first == first_own)
        return AKUNU_OK;
    return refuse_for_memory(&o->device, &all, n_layers - first_own, n_layers - first,
                             spec->config.n_encoder_layers == 0, error);
}

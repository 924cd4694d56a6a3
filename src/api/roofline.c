/* akunu_roofline_measure and akunu_get_chip: rooflines of the CPU or of a model's backend, and the
 * chip's description. */
#include <string.h>

#include "api/handles.h"
#include "engine/backends/list.h"
#include "base/chip.h"

static ak_status measure_roofline(const char *cpu, unsigned n_threads, unsigned what,
                                  struct akunu_roofline *out, size_t size, struct ak_error *error)
{
    struct akunu_roofline full;
    if (n_threads < 1 || !out)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "measuring needs at least one thread and a place for the result");
    AK_TRY(ak_backend_list()[0]->measure(cpu, n_threads, what, &full, error));
    return ak_api_copy_out(out, size, &full, sizeof full, "akunu_roofline", error);
}

enum akunu_status akunu_roofline_measure(const char *cpu, unsigned n_threads, unsigned what,
                                         struct akunu_roofline *out, size_t size)
{
    struct ak_error error = { 0 };
    measure_roofline(cpu, n_threads, what, out, size, &error);
    return ak_api_finish(&error);
}

static ak_status measure_model(const struct akunu_model *model, unsigned n_threads, unsigned what,
                               struct akunu_roofline *out, size_t size, struct ak_error *error)
{
    struct akunu_roofline full = { 0 };
    if (!model)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the model is NULL");
    struct ak_backend *backend = model->inner->backend;
    if (backend->ops->measure)
        return measure_roofline(backend->ops->describe(backend), n_threads, what, out, size, error);
    if (n_threads < 1)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "measuring needs at least one thread");
    if (what & AKUNU_MEASURE_READ)
        AK_TRY(backend->ops->measure_bandwidth(backend, &model->inner->weights, n_threads,
                                               &full.read_bytes_per_second, error));
    return ak_api_copy_out(out, size, &full, sizeof full, "akunu_roofline", error);
}

enum akunu_status akunu_roofline_measure_model(const struct akunu_model *model, unsigned n_threads,
                                               unsigned what, struct akunu_roofline *out,
                                               size_t size)
{
    struct ak_error error = { 0 };
    measure_model(model, n_threads, what, out, size, &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_get_chip(struct akunu_chip *out, size_t size)
{
    struct ak_error error = { 0 };
    struct ak_chip chip;
    ak_chip_detect(&chip);
    struct akunu_chip full = {
        .cores = chip.cores,
        .hardware_threads = chip.hardware_threads,
        .numa_nodes = chip.numa_nodes,
        .l1d_bytes = chip.l1d_bytes,
        .l2_bytes = chip.l2_bytes,
        .l3_bytes = chip.l3_bytes,
        .memory_bytes = chip.memory_bytes,
    };
    _Static_assert(sizeof full.name == sizeof chip.name, "the public name has room for all of it");
    memcpy(full.name, chip.name, sizeof full.name);
    ak_api_copy_out(out, size, &full, sizeof full, "akunu_chip", &error);
    return ak_api_finish(&error);
}

/* What this build can read, from the registries themselves: formats, architectures, types,
 * quantization schemes and devices. */
#include <stdio.h>

#include "api/handles.h"
#include "engine/backends/list.h"
#include "engine/spec/arch.h"
#include "files/weights/formats.h"

static enum akunu_status fail_past_end(const char *what, size_t i)
{
    struct ak_error error;
    ak_fail(&error, AKUNU_ERROR_ARGUMENT, "there is no %s of number %zu", what, i);
    return ak_api_finish(&error);
}

enum akunu_status akunu_get_format(size_t i, struct akunu_format_info *info, size_t size)
{
    struct ak_error error = { 0 };
    const struct ak_provider_format *format = ak_provider_format_at(i);
    if (!format)
        return fail_past_end("format", i);
    struct akunu_format_info full = { .name = format->name,
                                      .about = format->about ? format->about : "" };
    ak_api_copy_out(info, size, &full, sizeof full, "akunu_format_info", &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_get_architecture(size_t i, struct akunu_architecture_info *info,
                                         size_t size)
{
    struct ak_error error = { 0 };
    const struct ak_arch *const *arch = ak_arch_list();
    for (size_t at = 0; at < i && *arch; at++)
        arch++;
    if (!*arch)
        return fail_past_end("architecture", i);
    struct akunu_architecture_info full = { .name = (*arch)->names[0],
                                            .about =
                                                (*arch)->description ? (*arch)->description : "",
                                            .names = (*arch)->names,
                                            .experts = (*arch)->has_experts };
    for (uint32_t w = 0; w < (*arch)->n_weights; w++)
        full.experts |= (*arch)->weights[w].role == AK_ROLE_FFN_ROUTER;
    ak_api_copy_out(info, size, &full, sizeof full, "akunu_architecture_info", &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_get_type(size_t i, struct akunu_type_info *info, size_t size)
{
    struct ak_error error = { 0 };
    if (i >= AK_QUANT_COUNT)
        return fail_past_end("type", i);
    enum ak_quant_type type = (enum ak_quant_type)i;
    const struct ak_quant_info *t = ak_quant_info(type);
    struct ak_backend_type_info cpu;
    ak_backend_list()[0]->type_info(type, &cpu);
    uint32_t number; /* a type that no file stores is composed */
    struct akunu_type_info full = { .name = t->name,
                                    .block_elems = t->block_elems,
                                    .block_bytes = t->block_bytes,
                                    .integers = cpu.integers,
                                    .packed = cpu.packed || !ak_ggml_type_number(type, &number) };
    ak_api_copy_out(info, size, &full, sizeof full, "akunu_type_info", &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_get_quantization(size_t i, struct akunu_quantization_info *info,
                                         size_t size)
{
    struct ak_error error = { 0 };
    const struct ak_hf_quantization *q = ak_hf_quantization_at(i);
    if (!q)
        return fail_past_end("quantization", i);
    struct akunu_quantization_info full = { .name = q->name, .about = q->about };
    ak_api_copy_out(info, size, &full, sizeof full, "akunu_quantization_info", &error);
    return ak_api_finish(&error);
}

/* ---- Devices ------------------------------------------------------------ */
static ak_status find_device(size_t i, struct akunu_device_info *out, struct ak_error *error)
{
    for (const struct ak_backend_ops *const *ops = ak_backend_list(); *ops; ops++) {
        if (!(*ops)->device_info)
            continue;
        AK_TRY((*ops)->device_info(i, out, error));
        snprintf(out->backend, sizeof out->backend, "%s", (*ops)->name);
        return AKUNU_OK;
    }
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "this build has no backend but the CPU's: it was configured without OpenCL");
}

enum akunu_status akunu_get_device(size_t i, struct akunu_device_info *info, size_t size)
{
    struct ak_error error = { 0 };
    struct akunu_device_info full = { 0 };
    if (find_device(i, &full, &error) == AKUNU_OK)
        ak_api_copy_out(info, size, &full, sizeof full, "akunu_device_info", &error);
    return ak_api_finish(&error);
}

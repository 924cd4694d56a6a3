/* NVFP4 weights whose numbers are to be multiplied by a scale of the whole matrix, or of each
 * expert. Files have it as another tensor: x.weight and x.scale. They become composed tensors. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/composed.h"
#include "files/weights/gguf/gguf.h"

enum { BLOCK = 64 };

/* Plane 0: the blocks. Plane 1: scales in float32, of equally many rows each. */
static void read_values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                        uint32_t n, float *out)
{
    const struct ak_quant_info *info = ak_quant_info(AK_QUANT_NVFP4);
    const uint8_t *blocks =
        (const uint8_t *)a->plane[0].data + row * (a->cols / BLOCK) * info->block_bytes;
    uint64_t n_scales = a->plane[1].bytes / sizeof(float);
    float values[BLOCK], scale;
    memcpy(&scale, (const uint8_t *)a->plane[1].data + row / (a->rows / n_scales) * sizeof scale,
           sizeof scale);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t column = first + i;
        if (i == 0 || column % BLOCK == 0)
            info->dequantize(blocks + (size_t)(column / BLOCK) * info->block_bytes, values, BLOCK);
        out[i] = values[column % BLOCK] * scale;
    }
}

static const struct ak_composed_scheme scheme = { .values = read_values };

static const struct ak_gguf_tensor *find_scale(const struct ak_gguf *g, const char *name)
{
    static const char weight[] = ".weight";
    char scale[AK_ROLE_NAME_BYTES];
    size_t stem = strlen(name) - (sizeof weight - 1);
    uint32_t i;
    if (strlen(name) < sizeof weight || strcmp(name + stem, weight) != 0 ||
        stem + sizeof ".scale" > sizeof scale)
        return NULL;
    snprintf(scale, sizeof scale, "%.*s.scale", (int)stem, name);
    return ak_name_index_find(&g->index, scale, &i) ? &g->tensors[i] : NULL;
}

static ak_status compose_nvfp4(const struct ak_gguf *g, struct ak_gguf_tensor *t,
                               const struct ak_gguf_tensor *scale, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const char *name = g->names.bytes + scale->name;
    uint32_t rows = 1, n_experts = t->n_dims > 2 ? t->dims[2] : 1;
    for (unsigned d = 1; d < t->n_dims; d++)
        rows *= t->dims[d];
    if (scale->type != AK_QUANT_F32 ||
        (scale->bytes != sizeof(float) && scale->bytes != n_experts * sizeof(float)))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensor %s has %llu bytes of %s, where a scale is one float of F32%s",
                       ak_show(name, strlen(name), shown), (unsigned long long)scale->bytes,
                       ak_quant_info(scale->type)->name,
                       n_experts > 1 ? ", or one per expert" : "");
    struct ak_composed_tensor *a = ak_alloc(1, sizeof *a);
    if (!a)
        return ak_fail_memory(error, "a tensor with a scale", sizeof *a);
    *a = (struct ak_composed_tensor){ .scheme = &scheme,
                                      .name = "NVFP4",
                                      .type = AK_QUANT_F16,
                                      .factor_type = AK_QUANT_F32,
                                      .n_dims = t->n_dims,
                                      .rows = rows,
                                      .cols = t->dims[0],
                                      .bits = 4,
                                      .group = 16,
                                      .plane = { { ak_gguf_data(g, t), t->bytes },
                                                 { ak_gguf_data(g, scale), scale->bytes } } };
    for (unsigned d = 0; d < t->n_dims; d++)
        a->shape[d] = t->dims[t->n_dims - 1 - d];
    t->composed_tensor = a;
    return AKUNU_OK;
}

ak_status ak_gguf_compose_nvfp4(struct ak_gguf *g, struct ak_error *error)
{
    for (size_t i = 0; i < g->n_tensors; i++) {
        struct ak_gguf_tensor *t = &g->tensors[i];
        const struct ak_gguf_tensor *scale =
            t->type == AK_QUANT_NVFP4 ? find_scale(g, g->names.bytes + t->name) : NULL;
        if (scale)
            AK_TRY(compose_nvfp4(g, t, scale, error));
    }
    return AKUNU_OK;
}

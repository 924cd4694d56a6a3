#include <string.h>

#include "quant/type.h"

static void dequantize_f32(const void *restrict blocks, float *restrict out, size_t n)
{
    memcpy(out, blocks, n * sizeof *out);
}

static void quantize_f32(const float *restrict in, void *restrict blocks, size_t n)
{
    memcpy(blocks, in, n * sizeof *in);
}

const struct ak_quant_info ak_quant_f32 = { "F32", 1, 4, dequantize_f32, quantize_f32 };

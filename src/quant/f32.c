#include <string.h>

#include "quant/type.h"

static void dequantise(const void *restrict blocks, float *restrict out, size_t n)
{
    memcpy(out, blocks, n * sizeof *out);
}

static void quantise(const float *restrict in, void *restrict blocks, size_t n)
{
    memcpy(blocks, in, n * sizeof *in);
}

const struct ak_type_info ak_type_f32 = { "F32", 1, 4, dequantise, quantise };

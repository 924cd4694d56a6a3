/* Unpacks tiles of types with blocks of 32 into micropanels (micropanel.h), which skinny GEMM and
 * GEMM read. */
#ifndef AK_ENGINE_CPU_NEON_UNPACK32_H
#define AK_ENGINE_CPU_NEON_UNPACK32_H

#include "engine/cpu/neon/micropanel.h"
#include "engine/cpu/neon/tile32.h"

/* Unpacks four rows (register g of the tile's lines) of block b, except their scales. */
AK_KERNEL void ak_neon_unpack_rows32(enum ak_quant_type type, bool paired,
                                     const struct ak_neon_tile32 *t, size_t b,
                                     const uint8x16_t clear_bits[4], size_t g,
                                     struct ak_neon_micropanel32 *panel)
{
    const int8_t offset = ak_neon_offset32(type);
    int8x16_t w[8];
    ak_neon_quants32(type, t, b, clear_bits, g, w);
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++)
        w[i] = offset ? vsubq_s8(w[i], vdupq_n_s8(offset)) : w[i];
#pragma GCC unroll 4
    for (size_t i = 0; i < 8; i += 2)
        ak_neon_store_lines(paired, panel->q[i], g, w[i], w[i + 1]);
    if (ak_neon_has_minimum(type))
        ak_neon_store_factors(false, panel->factors + 8, g, ak_neon_mins32(type, t, b, g));
}

AK_KERNEL void ak_neon_unpack32(enum ak_quant_type type, bool paired, const uint8_t *tile,
                                size_t blocks, struct ak_neon_micropanel32 *lower,
                                struct ak_neon_micropanel32 *upper)
{
    struct ak_neon_tile32 t = ak_neon_tile32(type, tile, blocks);
    for (size_t b = 0; b < blocks; b++) {
        float32x4_t d[AK_NEON_GROUPS];
        uint8x16_t clear_bits[4];
        ak_neon_scales32(type, &t, b, d);
        ak_neon_clear_bits(type, &t, b, clear_bits);
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            struct ak_neon_micropanel32 *panel = g < 2 ? lower + b : upper + b;
            ak_neon_store_factors(paired && !ak_neon_has_minimum(type), panel->factors, g, d[g]);
            ak_neon_unpack_rows32(type, paired, &t, b, clear_bits, g, panel);
        }
    }
}

/* Unpacks a tile of any type; `type` need not be a constant. */
AK_KERNEL void ak_neon_unpack_any32(enum ak_quant_type type, bool paired, const uint8_t *tile,
                                    size_t blocks, struct ak_neon_micropanel32 *lower,
                                    struct ak_neon_micropanel32 *upper)
{
    switch (type) {
    case AK_QUANT_Q4_0: ak_neon_unpack32(AK_QUANT_Q4_0, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_Q4_1: ak_neon_unpack32(AK_QUANT_Q4_1, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_Q5_0: ak_neon_unpack32(AK_QUANT_Q5_0, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_Q5_1: ak_neon_unpack32(AK_QUANT_Q5_1, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_IQ4_NL:
        ak_neon_unpack32(AK_QUANT_IQ4_NL, paired, tile, blocks, lower, upper);
        break;
    case AK_QUANT_A4: ak_neon_unpack32(AK_QUANT_A4, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_A5: ak_neon_unpack32(AK_QUANT_A5, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_A8: ak_neon_unpack32(AK_QUANT_A8, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_V2: ak_neon_unpack32(AK_QUANT_V2, paired, tile, blocks, lower, upper); break;
    case AK_QUANT_MXFP4:
        ak_neon_unpack32(AK_QUANT_MXFP4, paired, tile, blocks, lower, upper);
        break;
    default: ak_neon_unpack32(AK_QUANT_Q8_0, paired, tile, blocks, lower, upper); break;
    }
}

#endif

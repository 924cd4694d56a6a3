/* Offsets of the parts of 256-element tiles, as constants for the kernels of neon/, avx512/ and
 * tmpl/. engine/cpu/layout.h describes the layouts; layout.c packs tiles by a table of its own. */
#ifndef AK_ENGINE_CPU_TILE256_H
#define AK_ENGINE_CPU_TILE256_H

#include "engine/cpu/generic.h"

enum {
    AK_K_SCALES_AT = 64, /* after the super-scales, one line or half a line, in all of them */
    AK_Q2_K_QUANTS_AT = 320,
    AK_Q3_K_QUANTS_AT = 256,
    AK_Q4_K_QUANTS_AT = 256,
    AK_Q5_K_HIGH_AT = 256,
    AK_Q5_K_QUANTS_AT = 768,
    AK_Q6_K_HALVES_AT = 320,
    AK_Q6_K_HALF_BYTES = 1536,
    AK_Q6_K_LOW_AT = 512,      /* within a half */
    AK_IQ4_XS_QUANTS_AT = 128, /* also V4 */
    AK_V3_QUANTS_AT = 192,
    AK_TABLE_AT = 32, /* V3, V4: struct ak_quant_table */
    AK_TABLE_FACTOR_AT = AK_TABLE_AT + offsetof(struct ak_quant_table, factor)
};

/* The factor of the table of V3 or V4. */
AK_KERNEL float ak_cpu_table_factor(const uint8_t *tile)
{
    float factor;
    memcpy(&factor, tile + AK_TABLE_FACTOR_AT, sizeof factor);
    return factor;
}

/* ak_cpu_tile_bytes of a full tile. */
AK_KERNEL size_t ak_cpu_tile256_bytes(enum ak_quant_type type)
{
    switch (type) {
    case AK_QUANT_Q2_K: return 21 * AK_LINE_BYTES;
    case AK_QUANT_Q3_K: return 28 * AK_LINE_BYTES;
    case AK_QUANT_Q4_K: return 36 * AK_LINE_BYTES;
    case AK_QUANT_Q5_K: return 44 * AK_LINE_BYTES;
    case AK_QUANT_Q6_K: return 53 * AK_LINE_BYTES;
    case AK_QUANT_V3: return 27 * AK_LINE_BYTES;
    default: return 34 * AK_LINE_BYTES; /* IQ4_XS, V4 */
    }
}

#endif

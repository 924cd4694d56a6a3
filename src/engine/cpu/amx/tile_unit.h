/* Macros for AMX's tile unit: eight registers of up to 16 rows of 64 bytes, numbered by
 * constants of the instructions (Intel SDM, volume 2, "TDPBSSD", "TDPBSUD", "TDPBF16PS"). The
 * kernels of amx/ include it as <tile_unit.h>, so that tests can replace it by a model in plain C
 * (tests/engine/cpu/amx). */
#ifndef AK_ENGINE_CPU_AMX_TILE_UNIT_H
#define AK_ENGINE_CPU_AMX_TILE_UNIT_H

#include <immintrin.h>
#include <stdint.h>

struct ak_amx_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* gcc 12 tells the optimizer that only 8 bytes of the configuration are read; the clobber says that
 * all of memory is. */
#define ak_amx_tile_configure(config)                                                              \
    do {                                                                                           \
        __asm__ volatile("" : : "r"(config) : "memory");                                           \
        _tile_loadconfig(config);                                                                  \
    } while (0)
#define ak_amx_tile_release() _tile_release()
#define ak_amx_tile_zero(t) _tile_zero(t)
#define ak_amx_tile_load(t, p, stride) _tile_loadd(t, p, stride)
#define ak_amx_tile_store(t, p, stride) _tile_stored(t, p, stride)
/* c[m][n] += Σ_k Σ_j a[m][4k+j] · b[k][4n+j]: a signed, b unsigned bytes */
#define ak_amx_tile_dot(c, a, b) _tile_dpbsud(c, a, b)
/* Both operands signed. */
#define ak_amx_tile_dot_signed(c, a, b) _tile_dpbssd(c, a, b)
/* Pairs of BF16, c[m][n] += Σ_k Σ_j a[m][2k+j] · b[k][2n+j]: one sum for j = 0 and one for j = 1,
 * each from 0, one fma per step, k ascending; then c[m][n] + (sum of 0 + sum of 1). Rounds to
 * nearest, ties to even; subnormals are read and written as zeros, whatever MXCSR says. */
#define ak_amx_tile_dot_bf16(c, a, b) _tile_dpbf16ps(c, a, b)

#endif

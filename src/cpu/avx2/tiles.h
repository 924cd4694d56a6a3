/* What the products of all packed types share. */
#ifndef AK_CPU_AVX2_TILES_H
#define AK_CPU_AVX2_TILES_H

#include "cpu/avx2/lanes.h"

enum {
    GROUP = 4, /* most tokens that words are used for while they are in registers */
    HALF_LINE = AK_LINE_BYTES / 2,
    BLOCK_WORDS = AK_BLOCK_K / 4
};

/* Asks for the `bytes` that lie `ahead` bytes behind p, into the nearest cache or
 * the next. A tile's parts are more streams than some chips follow by themselves:
 * without this, Q4_1 and Q5_0 come at a third of the bandwidth on Zen 4. */
AK_KERNEL void prefetch(const uint8_t *p, size_t bytes, size_t ahead, bool nearest)
{
    const char *at = (const char *)((uintptr_t)p + ahead);
    for (size_t i = 0; i < bytes; i += AK_LINE_BYTES) {
        if (nearest)
            _mm_prefetch(at + i, _MM_HINT_T0);
        else
            _mm_prefetch(at + i, _MM_HINT_T1);
    }
}

AK_KERNEL void zero_rows(float *y, size_t y_stride, size_t n)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, AK_TILE_ROWS * sizeof *y);
}

#endif

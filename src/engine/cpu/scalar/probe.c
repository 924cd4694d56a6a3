/* Roofline probes in plain C: reading, int8 and f32 products. */

#include <math.h>
#include <string.h>

#include "engine/cpu/setter.h"

static uint64_t probe_read(const uint8_t *restrict p, size_t bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        sum ^= word;
    }
    return sum;
}

/* Four chains of 8-bit products; an operand is hidden from the compiler, which would otherwise
 * compute the sums itself. */
static uint64_t probe_int8(size_t rounds, uint64_t *sink)
{
    int32_t sums[4] = { 1, 2, 3, 4 }, w = (int8_t)(uint8_t)rounds;
    for (size_t i = 0; i < rounds; i++)
        for (size_t j = 0; j < 4; j++) {
            __asm__ volatile("" : "+r"(w));
            sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)(w * (int8_t)(uint8_t)(i + j)));
        }
    *sink = (uint64_t)(uint32_t)(sums[0] ^ sums[1] ^ sums[2] ^ sums[3]);
    return rounds * 8;
}

/* Four chains with different starting values, so that none is merged. */
static uint64_t probe_f32(size_t rounds, uint64_t *sink)
{
    float sums[4] = { 1.0f, 2.0f, 3.0f, 4.0f }, a = (float)(rounds & 7), all;
    for (size_t i = 0; i < rounds; i++)
        for (size_t j = 0; j < 4; j++)
            sums[j] = fmaf(a, 0.5f, sums[j]);
    all = sums[0] + sums[1] + sums[2] + sums[3];
    *sink = all > 0.0f;
    return rounds * 8;
}

AK_SETTER(probe)
{
    k->probe_read = probe_read;
    k->probe_int8 = probe_int8;
    k->probe_f32 = probe_f32;
}

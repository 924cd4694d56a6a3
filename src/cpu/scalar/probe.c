#include "cpu/scalar/scalar.h"

#include <string.h>

uint64_t ak_scalar_probe_read(const uint8_t *restrict p, size_t bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        sum ^= word;
    }
    return sum;
}

/* Four independent chains of 8-bit products. */
uint64_t ak_scalar_probe_int8(size_t rounds, uint64_t *sink)
{
    int32_t sums[4] = { 1, 2, 3, 4 };
    for (size_t i = 0; i < rounds; i++)
        for (size_t j = 0; j < 4; j++)
            sums[j] += (int8_t)(uint8_t)i * (int8_t)(uint8_t)(sums[j] >> 8);
    *sink = (uint64_t)(uint32_t)(sums[0] ^ sums[1] ^ sums[2] ^ sums[3]);
    return rounds * 8;
}

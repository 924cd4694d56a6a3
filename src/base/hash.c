#include "base/hash.h"

#include <string.h>

enum { LANES = 4, STEP = LANES * 8 };

/* Odd numbers without a pattern: the fractions of square roots of primes. */
static const uint64_t factors[LANES] = { UINT64_C(0x6a09e667f3bcc909), UINT64_C(0xbb67ae8584caa73b),
                                         UINT64_C(0x3c6ef372fe94f82b),
                                         UINT64_C(0xa54ff53a5f1d36f1) };

static uint64_t rotate_left64(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static uint64_t finish(uint64_t x)
{
    x = (x ^ x >> 32) * factors[0];
    x = (x ^ x >> 29) * factors[1];
    return x ^ x >> 32;
}

static void mix(uint64_t lanes[LANES], const uint8_t *block)
{
    for (int i = 0; i < LANES; i++) {
        uint64_t word;
        memcpy(&word, block + 8 * i, 8);
        lanes[i] = rotate_left64(lanes[i] ^ word * factors[3 - i], 31) * factors[i];
    }
}

void ak_hash128(const void *data, size_t bytes, uint64_t state[2])
{
    const uint8_t *p = data;
    uint8_t tail[STEP] = { 0 };
    uint64_t lanes[LANES] = { state[0], state[1], rotate_left64(state[0], 17) ^ bytes, ~state[1] };
    size_t left = bytes;
    for (; left >= STEP; left -= STEP, p += STEP)
        mix(lanes, p);
    if (left > 0)
        memcpy(tail, p, left);
    mix(lanes, tail);
    uint64_t a = lanes[0] ^ rotate_left64(lanes[1], 21), b = lanes[2] ^ rotate_left64(lanes[3], 43);
    state[0] = finish(a + rotate_left64(b, 11));
    state[1] = finish(b ^ finish(a));
}

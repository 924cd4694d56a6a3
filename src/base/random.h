/* Random number generator of engine/sample/: the same numbers on every machine for a seed.
 * xoshiro256++ 1.0 by Blackman and Vigna (https://prng.di.unimi.it, public domain), seeded by
 * splitmix64 as they advise. */
#ifndef AK_BASE_RANDOM_H
#define AK_BASE_RANDOM_H

#include <stdint.h>

struct ak_random {
    uint64_t state[4];
};

static inline uint64_t ak_splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void ak_random_seed(struct ak_random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->state[i] = ak_splitmix64(&seed);
}

static inline uint64_t ak_rotate_left(uint64_t x, int n)
{
    return (x << n) | (x >> (64 - n));
}

static inline uint64_t ak_random_bits(struct ak_random *r)
{
    uint64_t *s = r->state;
    uint64_t bits = ak_rotate_left(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = ak_rotate_left(s[3], 45);
    return bits;
}

/* Uniform in [0, 1); a multiple of 2^-53. */
static inline double ak_random_unit(struct ak_random *r)
{
    return (double)(ak_random_bits(r) >> 11) * 0x1p-53;
}

#endif

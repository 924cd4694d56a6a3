/* Gumbel noise, a pure function of seed, position and token id, to sample tokens: the argmax of
 * logits / temperature plus noise is a sample of their softmax. The same logits give the same token
 * on any thread and host, in passes of one token or several. Texts that are sampled side by side
 * each need a seed of their own, because the position in the text and the id are all that the noise
 * counts: ak_gumbel_stream makes such seeds. */
#ifndef AK_BASE_GUMBEL_H
#define AK_BASE_GUMBEL_H

#include <stdint.h>
#include <string.h>

#include "base/math.h"
#include "base/random.h"

/* Seed number `number` of those that follow from a seed; their noise is independent. Calls nest
 * where several numbers tell texts apart, such as window, attempt and text. */
static inline uint64_t ak_gumbel_stream(uint64_t seed, uint64_t number)
{
    uint64_t state = seed;
    state = ak_splitmix64(&state) + number;
    return ak_splitmix64(&state);
}

/* A number in (0, 1): the output function of SplitMix64 (Steele, Lea, Flood 2014) over a counter,
 * which has room for 32 bits of each argument. */
static inline double ak_gumbel_uniform(uint64_t seed, uint32_t position, uint32_t index)
{
    uint64_t z = seed + ((uint64_t)position << 32) * 0x9e3779b97f4a7c15ull +
                 index * 0xbf58476d1ce4e5b9ull + 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return ((double)(z >> 12) + 0.5) * 0x1p-52;
}

/* At least the noise −ln(−ln u), without a logarithm: −ln u is at least 1 − u, so the noise is at
 * most −ln(1 − u), and 1 − u is at least 2^e for the exponent e of its bits. One more covers what
 * was rounded. */
static inline double ak_gumbel_bound(double u)
{
    double rest = 1.0 - u;
    uint64_t bits;
    memcpy(&bits, &rest, sizeof bits);
    return (double)(1 + 1023 - (int)(bits >> 52)) * 0x1.62e42fefa39efp-1;
}

/* The argmax of these scores is a sample of softmax(logits / temperature) (Gumbel, 1954). */
static inline float ak_gumbel_score(float logit, float temperature, uint64_t seed,
                                    uint32_t position, uint32_t index)
{
    return (float)((double)logit / (double)temperature -
                   ak_ln(-ak_ln(ak_gumbel_uniform(seed, position, index))));
}

#endif

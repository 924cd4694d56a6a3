/* Lists of the points of a codebook (files/quant/codebook.h) that are nearest to each vector of
 * rounded elements, on the points or not. A search rounds the elements of a vector and compares it
 * with the points of one list. */
#ifndef AK_CONVERSION_QUANTIZE_NEAR_H
#define AK_CONVERSION_QUANTIZE_NEAR_H

#include <stdbool.h>
#include <stdint.h>

enum { AK_NEAR_POINTS = 32 }; /* of a list */

/* A vector of rounded elements has the number Σ level_i · n_levels^i. */
struct ak_near {
    uint16_t (*codes)[AK_NEAR_POINTS]; /* [n_levels^n_dims]: the nearest first, as bits of levels */
    uint16_t *index;                   /* [n_levels^n_dims]: in the codebook, of its points */
};

/* codes: [n_codes], `bits` for the level of each of n_dims elements. false: out of memory. */
bool ak_near_make(const uint16_t *codes, int n_codes, int n_dims, int bits, struct ak_near *out);
void ak_near_clear(struct ak_near *near);

/* The number of a code's vector. */
static inline unsigned ak_near_vector(unsigned code, int n_dims, int bits)
{
    unsigned vector = 0;
    if (bits == 3)
        return code;
    for (int i = n_dims - 1; i >= 0; i--)
        vector = vector * 3 + (code >> bits * i & 3);
    return vector;
}

#endif

/* Quantizers: floats to blocks, with the least weighted error that a search finds. What a block
 * means is defined in files/quant/. Also floats to integers with a scale per group, for
 * conversion/compress/. */
#ifndef AK_CONVERSION_QUANTIZE_QUANTIZE_H
#define AK_CONVERSION_QUANTIZE_QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

#include "files/quant/type.h"
#include "conversion/quantize/near.h"

/* Tables that searches need: 430 KB for each codebook of IQ1 and IQ2, 270 KB for IQ3. Zeros at
 * first. */
struct ak_quantize_tables {
    struct ak_near near[AK_QUANT_COUNT];
};

/* Makes the tables of a type unless they are made, which takes up to 50 ms. Not while another
 * thread uses them. false: out of memory. */
bool ak_quantize_prepare(struct ak_quantize_tables *tables, enum ak_quant_type type);
void ak_quantize_clear(struct ak_quantize_tables *tables);

/* x: n elements, whole blocks. importance: of each element, not negative; NULL: all are 1. A
 * squared error counts importance · √(mean of x² + x²), the mean over up to 256 neighbors. tables:
 * prepared for the type. The same bytes on every machine. */
void ak_quantize(const struct ak_quantize_tables *tables, enum ak_quant_type type, const float *x,
                 const float *importance, void *blocks, size_t n);

/* With the weight of each element's squared error, not negative, and one of the instruction sets
 * that this machine has, 0 … ak_quantize_sets() − 1. */
void ak_quantize_with(const struct ak_quantize_tables *tables, unsigned set,
                      enum ak_quant_type type, const float *x, const float *weights, void *blocks,
                      size_t n);
unsigned ak_quantize_sets(void);

/* Whether there is a quantizer of the type. */
bool ak_quantize_has(enum ak_quant_type type);

/* A row as integers of 8, 4 or 3 bits with a scale per group, as docs/npy-directory.md packs them:
 * n · bits / 8 bytes, and n / group scales, which F16 represents exactly unless they are infinite.
 * group: a multiple of 32, at most AK_QUANTIZE_GROUP_MAX, that divides n. 8 bits: the largest
 * element of a group becomes 127, and importance is not read; else it is as above. 4 and 3 bits:
 * the scale is searched, and may be negative. The same numbers on every machine. */
enum { AK_QUANTIZE_GROUP_MAX = 128 };
void ak_quantize_groups(unsigned bits, uint32_t group, const float *x, const float *importance,
                        uint8_t *out, float *scales, size_t n);
/* With weights, which 8 bits do not read, and an instruction set, as above. */
void ak_quantize_groups_with(unsigned set, unsigned bits, uint32_t group, const float *x,
                             const float *weights, uint8_t *out, float *scales, size_t n);

#endif

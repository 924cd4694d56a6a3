/* Quantizers: floats to blocks, with the least weighted error that a search finds. Used by
 * convert/ and allocate/. What a block means is defined in quant/. */
#ifndef AK_QUANTIZE_QUANTIZE_H
#define AK_QUANTIZE_QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

#include "quant/type.h"

/* x: n elements, whole blocks. importance: the weight of each element's squared error, not
 * negative; NULL: √(mean of x² + x²), the mean over up to 256 neighbors. The same bytes on every
 * machine. */
void ak_quantize(enum ak_quant_type type, const float *x, const float *importance, void *blocks,
                 size_t n);

/* The same with one of the instruction sets that this machine has, 0 … ak_quantize_sets() − 1. */
void ak_quantize_with(unsigned set, enum ak_quant_type type, const float *x,
                      const float *importance, void *blocks, size_t n);
unsigned ak_quantize_sets(void);

/* Whether there is a quantizer of the type. */
bool ak_quantize_has(enum ak_quant_type type);

#endif

/* The rows of all types, compiled for several instruction sets. */
#ifndef AK_CONVERSION_QUANTIZE_SETS_H
#define AK_CONVERSION_QUANTIZE_SETS_H

#include <stddef.h>
#include <stdint.h>

#include "files/quant/type.h"
#include "conversion/quantize/near.h"

/* near: of the type's codebook; NULL: it has none. */
typedef void ak_quantize_row(const struct ak_near *near, const float *x, const float *w,
                             uint8_t *out, size_t n);

/* Of ak_quantize_groups; 8 bits do not read w, which may then be NULL. */
typedef void ak_quantize_group_row(unsigned bits, uint32_t group, const float *x, const float *w,
                                   uint8_t *out, float *scales, size_t n);

/* By type. NULL: there is no quantizer, or with AVX-512 the one for AVX2 is as good. */
extern ak_quantize_row *const ak_quantize_plain[AK_QUANT_COUNT];
extern ak_quantize_group_row *const ak_quantize_groups_plain;
#ifdef __x86_64__
extern ak_quantize_row *const ak_quantize_avx2[AK_QUANT_COUNT],
    *const ak_quantize_avx512[AK_QUANT_COUNT];
extern ak_quantize_group_row *const ak_quantize_groups_avx2, *const ak_quantize_groups_avx512;
#endif

#endif

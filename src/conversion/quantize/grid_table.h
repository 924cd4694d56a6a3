/* The rows of the types with codebooks of vectors, as conversion/quantize/row_table.h has the
 * others. */
#ifndef AK_CONVERSION_QUANTIZE_GRID_TABLE_H
#define AK_CONVERSION_QUANTIZE_GRID_TABLE_H

#include "conversion/quantize/grid_rows.h"
#include "conversion/quantize/sets.h"

#define ROW(type)                                                                                  \
    AK_TARGET static void make_##type(const struct ak_near *near, const float *x, const float *w,  \
                                      uint8_t *out, size_t n)                                      \
    {                                                                                              \
        row_##type(near, x, w, out, n);                                                            \
    }
ROW(iq1_s)
ROW(iq1_m)
ROW(iq2_xxs)
ROW(iq2_xs)
ROW(iq2_s)
ROW(iq3_xxs)
ROW(iq3_s)
#undef ROW

#define AK_GRID_ROW_TABLE                                                                          \
    [AK_QUANT_IQ1_S] = make_iq1_s, [AK_QUANT_IQ1_M] = make_iq1_m,                                  \
    [AK_QUANT_IQ2_XXS] = make_iq2_xxs, [AK_QUANT_IQ2_XS] = make_iq2_xs,                            \
    [AK_QUANT_IQ2_S] = make_iq2_s, [AK_QUANT_IQ3_XXS] = make_iq3_xxs,                              \
    [AK_QUANT_IQ3_S] = make_iq3_s

#endif

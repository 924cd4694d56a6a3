/* The rows of all types as a table, for the sources that compile them for an instruction set
 * (conversion/quantize/rows.h). */
#ifndef AK_CONVERSION_QUANTIZE_ROW_TABLE_H
#define AK_CONVERSION_QUANTIZE_ROW_TABLE_H

#include "conversion/quantize/groups.h"
#include "conversion/quantize/rows.h"
#include "conversion/quantize/small_rows.h"
#include "conversion/quantize/sets.h"

#define ROW(type)                                                                                  \
    AK_TARGET static void make_##type(const struct ak_near *near, const float *x, const float *w,  \
                                      uint8_t *out, size_t n)                                      \
    {                                                                                              \
        (void)near;                                                                                \
        row_##type(x, w, out, n);                                                                  \
    }
ROW(q4_0)
ROW(q4_1)
ROW(q5_0)
ROW(q5_1)
ROW(q8_0)
ROW(q2_k)
ROW(q3_k)
ROW(q4_k)
ROW(q5_k)
ROW(q6_k)
ROW(iq4_nl)
ROW(iq4_xs)
ROW(tq1_0)
ROW(tq2_0)
ROW(q1_0)
ROW(q2_0)
ROW(mxfp4)
ROW(nvfp4)
#undef ROW

AK_TARGET static void make_groups(unsigned bits, uint32_t group, const float *x, const float *w,
                                  uint8_t *out, float *scales, size_t n)
{
    row_groups(bits, group, x, w, out, scales, n);
}

/* Rows of all types but those with codebooks of vectors. */
#define AK_ROW_TABLE                                                                               \
    [AK_QUANT_Q4_0] = make_q4_0, [AK_QUANT_Q4_1] = make_q4_1, [AK_QUANT_Q5_0] = make_q5_0,         \
    [AK_QUANT_Q5_1] = make_q5_1, [AK_QUANT_Q8_0] = make_q8_0, [AK_QUANT_Q2_K] = make_q2_k,         \
    [AK_QUANT_Q3_K] = make_q3_k, [AK_QUANT_Q4_K] = make_q4_k, [AK_QUANT_Q5_K] = make_q5_k,         \
    [AK_QUANT_Q6_K] = make_q6_k, [AK_QUANT_IQ4_NL] = make_iq4_nl, [AK_QUANT_IQ4_XS] = make_iq4_xs, \
    [AK_QUANT_TQ1_0] = make_tq1_0, [AK_QUANT_TQ2_0] = make_tq2_0, [AK_QUANT_Q1_0] = make_q1_0,     \
    [AK_QUANT_Q2_0] = make_q2_0, [AK_QUANT_MXFP4] = make_mxfp4, [AK_QUANT_NVFP4] = make_nvfp4

#endif

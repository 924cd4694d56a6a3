/* Blocks of the types of one to three bits as indices of a table of numbers, which are what
 * dequantizing and recoding need of them. */
#ifndef AK_FILES_QUANT_INDICES_H
#define AK_FILES_QUANT_INDICES_H

#include "files/quant/block.h"

/* One block: 256 elements or, in Q1_0 and Q2_0, fewer. */
struct ak_quant_indices {
    uint8_t d[2];       /* FP16 */
    uint8_t scales[16]; /* per 16 elements, for the factor 2 · scale + 1; ternary types: unset */
    uint8_t q[AK_QUANT_SUPER_BLOCK];
};

typedef void ak_quant_read_fn(const void *restrict block, struct ak_quant_indices *restrict out);

/* x = d · factor · (2 · scale + 1) · value[q] */
ak_quant_read_fn ak_quant_read_iq1_s, ak_quant_read_iq1_m, ak_quant_read_iq2_xxs,
    ak_quant_read_iq2_xs, ak_quant_read_iq2_s, ak_quant_read_iq3_xxs, ak_quant_read_iq3_s;

extern const struct ak_quant_table ak_quant_iq1_table, ak_quant_iq2_table, ak_quant_iq3_xxs_table,
    ak_quant_iq3_s_table;

/* x = d · (q − 1) */
ak_quant_read_fn ak_quant_read_tq1_0, ak_quant_read_tq2_0, ak_quant_read_q1_0, ak_quant_read_q2_0;

#endif

/* Codebooks of vectors: an index of a stored block selects 8 elements (IQ1, IQ2) or 4 (IQ3), whose
 * signs stand elsewhere (IQ2, IQ3). */
#ifndef AK_FILES_QUANT_CODEBOOK_H
#define AK_FILES_QUANT_CODEBOOK_H

#include <stdint.h>

/* Vectors of eight numbers, of two bits each: element i is that of bits 2·i and 2·i + 1.
 * IQ1_S, IQ1_M: −1, 0, 1. IQ2: 8, 25, 43. */
extern const uint16_t ak_quant_iq1_codes[2048], ak_quant_iq2_xxs_codes[256],
    ak_quant_iq2_xs_codes[512], ak_quant_iq2_s_codes[1024];
extern const int8_t ak_quant_iq1_values[3], ak_quant_iq2_values[3];

/* Vectors of four numbers, of three bits each: an index of the eight values. */
extern const uint16_t ak_quant_iq3_xxs_codes[256], ak_quant_iq3_s_codes[512];
extern const int8_t ak_quant_iq3_xxs_values[8], ak_quant_iq3_s_values[8];

#endif

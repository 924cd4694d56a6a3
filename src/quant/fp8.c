#include "quant/block.h"

const struct ak_quant_info ak_quant_f8 = { "F8", 128, sizeof(struct ak_quant_block_f8),
                                           ak_quant_dequantize_f8, NULL };

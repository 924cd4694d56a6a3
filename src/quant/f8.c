#include "quant/block.h"

const struct ak_type_info ak_type_f8 = { "F8", 128, sizeof(struct ak_block_f8), ak_block_widen_f8,
                                         NULL };

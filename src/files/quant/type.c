/* Registry of the types: finds the entry of a type, which its family's file defines. */
#include "files/quant/type.h"

#include <assert.h>

static const struct ak_quant_info *const types[AK_QUANT_COUNT] = {
#define QUANT(symbol, name, ...) [AK_QUANT_##symbol] = &ak_quant_##name,
#include "files/quant/types.def"
};

const struct ak_quant_info *ak_quant_info(enum ak_quant_type type)
{
    assert((unsigned)type < AK_QUANT_COUNT ||
           (type >= AK_QUANT_STORED_FIRST && type < AK_QUANT_STORED_END));
    return type < AK_QUANT_COUNT ? types[type] :
                                   &ak_quant_stored_types[type - AK_QUANT_STORED_FIRST];
}

bool ak_quant_row_bytes(enum ak_quant_type type, uint64_t cols, uint64_t *bytes)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    if (cols % info->block_elems != 0)
        return false;
    return !__builtin_mul_overflow(cols / info->block_elems, (uint64_t)info->block_bytes, bytes);
}

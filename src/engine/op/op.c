/* Names of the ops, and the parts of each linear operator, from the lists in the .def files. */
#include "engine/op/op.h"

#include <stddef.h>

static const char *const op_names[AK_OP_COUNT] = {
#define AK_OP(symbol, name, ...) [AK_OP_##symbol] = #name,
#include "engine/op/op.def"
#undef AK_OP
};

static const struct ak_op_linear_info linears[AK_OP_LINEAR_COUNT] = {
#define AK_LINEAR(symbol, name, shards, n_parts, ...)                                              \
    [AK_OP_LINEAR_##symbol] = { name, AK_OP_SHARDS_##shards, n_parts, { __VA_ARGS__ } },
#include "engine/op/linear.def"
#undef AK_LINEAR
};

const char *ak_op_name(enum ak_op op)
{
    return op_names[op];
}

const struct ak_op_linear_info *ak_op_linear_info(enum ak_op_linear linear)
{
    return &linears[linear];
}

bool ak_op_mixes_rows(enum ak_op op)
{
    enum { ROWWISE = false, MIXES = true };
    static const bool mixes[] = {
#define AK_OP(symbol, name, rows, ...) [AK_OP_##symbol] = rows,
#include "engine/op/op.def"
#undef AK_OP
    };
    return mixes[op];
}

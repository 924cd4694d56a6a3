/* Mixes: which type each tensor of a quantized model has. Names and choices are those of
 * llama.cpp's llama-quantize, so files are as large as its files. */
#ifndef AK_CONVERSION_CONVERT_MIX_H
#define AK_CONVERSION_CONVERT_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "files/quant/type.h"

struct ak_mix {
    const char *name;        /* "Q4_K_M" */
    enum ak_quant_type type; /* of most matrices */
    uint32_t file_type;      /* general.file_type */
};

/* By name, in any case; "Q4_K" is Q4_K_M. NULL: there is none. */
const struct ak_mix *ak_mix_find(const char *name);
/* Mix i; NULL: past the last one. */
const struct ak_mix *ak_mix_at(size_t i);

/* What a choice depends on besides the tensor. */
struct ak_mix_model {
    uint32_t n_experts, n_gqa; /* n_gqa: query heads per KV head */
    bool is_falcon, is_tied, has_importance;
    bool is_70b; /* 80 layers and a width of 8192, as Llama 2 70B */
};

/* A tensor of the model by the part of its name after "blk.N."; index and n: its place among those
 * of the layers that have one. */
struct ak_mix_tensor {
    const char *name;
    uint32_t index, n;
    uint64_t cols, n_matrices; /* matrices: of an expert stack, else 1 */
};

enum ak_quant_type ak_mix_choose(const struct ak_mix *mix, const struct ak_mix_model *model,
                                 const struct ak_mix_tensor *tensor);

/* The type in place of `type` for rows of `cols` elements, which need not fill its blocks. */
enum ak_quant_type ak_mix_fit(enum ak_quant_type type, uint64_t cols);

#endif

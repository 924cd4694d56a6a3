/* GGML's type numbers. What akunu does not run is refused by name, or by number: programs derived
 * from llama.cpp have numbers of their own. */
#include "files/weights/formats.h"

enum { NONE = -1 };

static const struct {
    int64_t number;
    enum ak_quant_type type;
} types[] = {
#define QUANT(symbol, name, own, number, ...) { number, AK_QUANT_##symbol },
#include "files/quant/types.def"
    { 24, AK_QUANT_I8 },  { 25, AK_QUANT_I16 }, { 26, AK_QUANT_I32 },
    { 27, AK_QUANT_I64 }, { 28, AK_QUANT_F64 },
};

/* Of llama.cpp, some of them no longer; 36 of BitNet, from 97 on of ik_llama.cpp. */
static const struct {
    uint32_t number;
    const char *name;
} others[] = {
    { 4, "Q4_2" },         { 5, "Q4_3" },        { 9, "Q8_1" },         { 31, "Q4_0_4_4" },
    { 32, "Q4_0_4_8" },    { 33, "Q4_0_8_8" },   { 36, "I2_S" },        { 97, "Q8_0_X4" },
    { 98, "Q8_1_X4" },     { 99, "Q8_2_X4" },    { 133, "Q6_0" },       { 134, "IQ1_BN" },
    { 135, "IQ2_BN" },     { 136, "Q8_K64" },    { 137, "IQ2_K" },      { 138, "IQ3_K" },
    { 139, "IQ4_K" },      { 140, "IQ5_K" },     { 141, "IQ6_K" },      { 142, "IQ2_TN" },
    { 143, "IQ1_TN" },     { 144, "IQ4_KS" },    { 145, "IQ2_KS" },     { 146, "IQ4_KSS" },
    { 147, "Q8_K16" },     { 148, "Q8_K32" },    { 149, "Q8_KR8" },     { 150, "Q8_K128" },
    { 151, "Q8_KV" },      { 152, "IQ5_KS" },    { 153, "IQ2_KT" },     { 154, "IQ3_KT" },
    { 155, "IQ4_KT" },     { 156, "IQ3_KS" },    { 157, "IQ2_KL" },     { 158, "IQ1_KT" },
    { 202, "Q4_0_R8" },    { 206, "Q5_0_R4" },   { 208, "Q8_0_R8" },    { 210, "Q2_K_R4" },
    { 211, "Q3_K_R4" },    { 212, "Q4_K_R4" },   { 213, "Q5_K_R4" },    { 214, "Q6_K_R4" },
    { 216, "IQ2_XXS_R4" }, { 217, "IQ2_XS_R4" }, { 218, "IQ3_XXS_R4" }, { 219, "IQ1_S_R4" },
    { 220, "IQ4_NL_R4" },  { 221, "IQ3_S_R4" },  { 222, "IQ2_S_R4" },   { 223, "IQ4_XS_R8" },
    { 229, "IQ1_M_R4" },   { 230, "BF16_R16" },  { 233, "Q6_0_R4" },    { 335, "IQ2_BN_R4" },
    { 337, "IQ2_K_R4" },   { 338, "IQ3_K_R4" },  { 339, "IQ4_K_R4" },   { 340, "IQ5_K_R4" },
    { 344, "IQ4_KS_R4" },  { 352, "IQ5_KS_R4" }, { 353, "MXFP4_R8" },   { 397, "Q8_K_R16" },
    { 398, "Q8_KV_R8" },   { 399, "Q8_K_R8" },
};

static const char *find_other(uint32_t number)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].number == number)
            return others[i].name;
    return NULL;
}

ak_status ak_ggml_type_find(uint32_t number, const char *tensor, enum ak_quant_type *out,
                            struct ak_error *error)
{
    const char *name = find_other(number);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number) {
            *out = types[i].type;
            return AKUNU_OK;
        }
    if (name)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "tensor %s has type %u (%s), which akunu does not run", tensor, number,
                       name);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "tensor %s has type %u, which akunu does not know", tensor, number);
}

bool ak_ggml_type_number(enum ak_quant_type type, uint32_t *out)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type && types[i].number != NONE) {
            *out = (uint32_t)types[i].number;
            return true;
        }
    return false;
}

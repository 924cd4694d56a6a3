/* The rules are a transcript of what llama-quantize chooses, down to its exceptions for single
 * models; tests/data/mixes.txt has its answers. */
#include "convert/mix.h"

#include <string.h>
#include <strings.h>

static const struct ak_mix mixes[] = {
    { "Q4_0", AK_QUANT_Q4_0, 2 },      { "Q4_1", AK_QUANT_Q4_1, 3 },
    { "Q8_0", AK_QUANT_Q8_0, 7 },      { "Q5_0", AK_QUANT_Q5_0, 8 },
    { "Q5_1", AK_QUANT_Q5_1, 9 },      { "Q2_K", AK_QUANT_Q2_K, 10 },
    { "Q3_K_S", AK_QUANT_Q3_K, 11 },   { "Q3_K_M", AK_QUANT_Q3_K, 12 },
    { "Q3_K_L", AK_QUANT_Q3_K, 13 },   { "Q4_K_S", AK_QUANT_Q4_K, 14 },
    { "Q4_K_M", AK_QUANT_Q4_K, 15 },   { "Q5_K_S", AK_QUANT_Q5_K, 16 },
    { "Q5_K_M", AK_QUANT_Q5_K, 17 },   { "Q6_K", AK_QUANT_Q6_K, 18 },
    { "Q2_K_S", AK_QUANT_Q2_K, 21 },   { "IQ4_NL", AK_QUANT_IQ4_NL, 25 },
    { "IQ4_XS", AK_QUANT_IQ4_XS, 30 },
};

enum { N_MIXES = sizeof mixes / sizeof *mixes };

const struct ak_mix *ak_mix_at(size_t i)
{
    return i < N_MIXES ? &mixes[i] : NULL;
}

const struct ak_mix *ak_mix_find(const char *name)
{
    static const char *const aliases[][2] = { { "Q3_K", "Q3_K_M" },
                                              { "Q4_K", "Q4_K_M" },
                                              { "Q5_K", "Q5_K_M" } };
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(name, aliases[i][0]) == 0)
            name = aliases[i][1];
    for (size_t i = 0; i < N_MIXES; i++)
        if (strcasecmp(name, mixes[i].name) == 0)
            return &mixes[i];
    return NULL;
}

/* ---- Choices ------------------------------------------------------------ */
/* Arguments of a choice. */
struct choice {
    const struct ak_mix *mix;
    const struct ak_mix_model *model;
    const struct ak_mix_tensor *tensor;
};

static bool is_mix(const struct choice *c, const char *name)
{
    return strcmp(c->mix->name, name) == 0;
}

static bool has(const struct choice *c, const char *part)
{
    return strstr(c->tensor->name, part) != NULL;
}

/* The first and last eighth of the layers, and every third of the others. */
static bool uses_more_bits(const struct ak_mix_tensor *t)
{
    return t->index < t->n / 8 || t->index >= 7 * t->n / 8 || (t->index - t->n / 8) % 3 == 2;
}

static enum ak_quant_type choose_output(const struct choice *c)
{
    enum ak_quant_type type = c->mix->type;
    if (c->model->is_falcon || c->tensor->cols % ak_quant_info(type)->block_elems != 0)
        return AK_QUANT_Q8_0;
    return type == AK_QUANT_Q8_0 ? type : AK_QUANT_Q6_K;
}

/* attn_v, and matrices that hold it. */
static enum ak_quant_type choose_values(const struct choice *c)
{
    enum ak_quant_type type = c->mix->type;
    const struct ak_mix_tensor *t = c->tensor;
    bool few_heads = c->model->n_gqa >= 4;
    if (is_mix(c, "Q2_K"))
        type = few_heads ? AK_QUANT_Q4_K : AK_QUANT_Q3_K;
    else if (is_mix(c, "Q2_K_S") && few_heads)
        type = AK_QUANT_Q4_K;
    else if (is_mix(c, "Q3_K_M"))
        type = t->index < 2 ? AK_QUANT_Q5_K : AK_QUANT_Q4_K;
    else if (is_mix(c, "Q3_K_L"))
        type = AK_QUANT_Q5_K;
    else if ((is_mix(c, "IQ4_NL") || is_mix(c, "IQ4_XS")) && few_heads)
        type = AK_QUANT_Q5_K;
    else if ((is_mix(c, "Q4_K_M") || is_mix(c, "Q5_K_M")) && uses_more_bits(t))
        type = AK_QUANT_Q6_K;
    else if (is_mix(c, "Q4_K_S") && t->index < 4)
        type = AK_QUANT_Q5_K;
    if (c->model->is_70b && (type == AK_QUANT_Q3_K || type == AK_QUANT_Q4_K))
        type = AK_QUANT_Q5_K;
    return c->model->n_experts == 8 ? AK_QUANT_Q8_0 : type;
}

static enum ak_quant_type choose_down(const struct choice *c)
{
    const struct ak_mix_tensor *t = c->tensor;
    bool falcon = c->model->is_falcon, early = t->index < t->n / 8;
    if (is_mix(c, "Q2_K"))
        return AK_QUANT_Q3_K;
    if (is_mix(c, "Q2_K_S") && early)
        return AK_QUANT_Q4_K;
    if (is_mix(c, "Q3_K_M"))
        return t->index < t->n / 16         ? AK_QUANT_Q5_K :
               !falcon || uses_more_bits(t) ? AK_QUANT_Q4_K :
                                              AK_QUANT_Q3_K;
    if (is_mix(c, "Q3_K_L"))
        return falcon ? AK_QUANT_Q4_K : AK_QUANT_Q5_K;
    if (is_mix(c, "Q4_K_M") && falcon)
        return t->index < t->n / 16 ? AK_QUANT_Q6_K :
               uses_more_bits(t)    ? AK_QUANT_Q5_K :
                                      AK_QUANT_Q4_K;
    if ((is_mix(c, "Q4_K_M") || is_mix(c, "Q5_K_M")) && uses_more_bits(t))
        return AK_QUANT_Q6_K;
    if (early && (is_mix(c, "IQ4_NL") || is_mix(c, "IQ4_XS")) && !c->model->has_importance)
        return AK_QUANT_Q5_K;
    if (early && is_mix(c, "Q4_K_S") && !falcon)
        return AK_QUANT_Q5_K;
    if (early && c->model->has_importance && is_mix(c, "Q4_0"))
        return AK_QUANT_Q4_1;
    if (early && c->model->has_importance && is_mix(c, "Q5_0"))
        return AK_QUANT_Q5_1;
    return c->mix->type;
}

static enum ak_quant_type choose_attention_output(const struct choice *c)
{
    static const char *const of_8_experts[] = { "Q2_K",   "Q3_K_S", "Q3_K_M", "Q4_K_S",
                                                "Q4_K_M", "IQ4_NL", "IQ4_XS" };
    if (c->model->is_falcon)
        return is_mix(c, "Q3_K_L") ? AK_QUANT_Q4_K : c->mix->type;
    for (size_t i = 0; c->model->n_experts == 8 && i < sizeof of_8_experts / sizeof *of_8_experts;
         i++)
        if (is_mix(c, of_8_experts[i]))
            return AK_QUANT_Q5_K;
    if (c->model->n_experts == 8)
        return c->mix->type;
    return is_mix(c, "Q2_K")   ? AK_QUANT_Q3_K :
           is_mix(c, "Q3_K_M") ? AK_QUANT_Q4_K :
           is_mix(c, "Q3_K_L") ? AK_QUANT_Q5_K :
                                 c->mix->type;
}

enum ak_quant_type ak_mix_choose(const struct ak_mix *mix, const struct ak_mix_model *model,
                                 const struct ak_mix_tensor *tensor)
{
    const struct choice c = { mix, model, tensor };
    bool is_embedding = strcmp(tensor->name, "token_embd.weight") == 0 ||
                        strcmp(tensor->name, "per_layer_token_embd.weight") == 0;
    if (strcmp(tensor->name, "output.weight") == 0 || (is_embedding && model->is_tied))
        return choose_output(&c);
    if (is_embedding)
        return mix->type;
    if (has(&c, "attn_qkv.weight") || has(&c, "attn_kv_b.weight") || has(&c, "attn_v.weight"))
        return choose_values(&c);
    if (has(&c, "attn_k.weight"))
        return model->n_experts == 8 ? AK_QUANT_Q8_0 : mix->type;
    if (has(&c, "attn_output.weight"))
        return choose_attention_output(&c);
    return has(&c, "ffn_down") ? choose_down(&c) : mix->type;
}

enum ak_quant_type ak_mix_fit(enum ak_quant_type type, uint64_t cols)
{
    static const enum ak_quant_type smaller[AK_QUANT_COUNT] = {
        [AK_QUANT_Q2_K] = AK_QUANT_Q4_0, [AK_QUANT_Q3_K] = AK_QUANT_Q4_0,
        [AK_QUANT_Q4_K] = AK_QUANT_Q5_0, [AK_QUANT_Q5_K] = AK_QUANT_Q5_1,
        [AK_QUANT_Q6_K] = AK_QUANT_Q8_0, [AK_QUANT_IQ4_XS] = AK_QUANT_IQ4_NL,
    };
    if (cols % ak_quant_info(type)->block_elems == 0)
        return type;
    type = smaller[type]; /* F32, which is 0, if there is none */
    return type != AK_QUANT_F32 && cols % ak_quant_info(type)->block_elems == 0 ? type :
                                                                                  AK_QUANT_F16;
}

/* The rules are a transcript of what llama-quantize chooses, down to its exceptions for single
 * models; tests/data/mixes.txt has its answers. */
#include "conversion/convert/mix.h"

#include <string.h>
#include <strings.h>

static const struct ak_mix mixes[] = {
    { "IQ1_S", AK_QUANT_IQ1_S, 24 },     { "IQ1_M", AK_QUANT_IQ1_M, 31 },
    { "IQ2_XXS", AK_QUANT_IQ2_XXS, 19 }, { "IQ2_XS", AK_QUANT_IQ2_XS, 20 },
    { "IQ2_S", AK_QUANT_IQ2_XS, 28 },    { "IQ2_M", AK_QUANT_IQ2_S, 29 },
    { "IQ3_XXS", AK_QUANT_IQ3_XXS, 23 }, { "IQ3_XS", AK_QUANT_IQ3_S, 22 },
    { "IQ3_S", AK_QUANT_IQ3_S, 26 },     { "IQ3_M", AK_QUANT_IQ3_S, 27 },
    { "IQ4_XS", AK_QUANT_IQ4_XS, 30 },   { "IQ4_NL", AK_QUANT_IQ4_NL, 25 },
    { "Q2_K_S", AK_QUANT_Q2_K, 21 },     { "Q2_K", AK_QUANT_Q2_K, 10 },
    { "Q3_K_S", AK_QUANT_Q3_K, 11 },     { "Q3_K_M", AK_QUANT_Q3_K, 12 },
    { "Q3_K_L", AK_QUANT_Q3_K, 13 },     { "Q4_K_S", AK_QUANT_Q4_K, 14 },
    { "Q4_K_M", AK_QUANT_Q4_K, 15 },     { "Q5_K_S", AK_QUANT_Q5_K, 16 },
    { "Q5_K_M", AK_QUANT_Q5_K, 17 },     { "Q6_K", AK_QUANT_Q6_K, 18 },
    { "Q4_0", AK_QUANT_Q4_0, 2 },        { "Q4_1", AK_QUANT_Q4_1, 3 },
    { "Q5_0", AK_QUANT_Q5_0, 8 },        { "Q5_1", AK_QUANT_Q5_1, 9 },
    { "Q8_0", AK_QUANT_Q8_0, 7 },        { "TQ1_0", AK_QUANT_TQ1_0, 36 },
    { "TQ2_0", AK_QUANT_TQ2_0, 37 },     { "Q1_0", AK_QUANT_Q1_0, 40 },
    { "Q2_0", AK_QUANT_Q2_0, 41 },       { "MXFP4_MOE", AK_QUANT_MXFP4, 38 },
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

/* Whether the mix is one of the names, which end with NULL. */
static bool is_one_of(const struct choice *c, const char *const *names)
{
    while (*names && !is_mix(c, *names))
        names++;
    return *names != NULL;
}

/* Mixes of at most 2.7 bits a weight, which have rules of their own. */
static bool is_tiny(const struct choice *c)
{
    static const char *const tiny[] = { "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS",
                                        "IQ2_S", "IQ2_M", NULL };
    return is_one_of(c, tiny);
}

/* The larger ones of them. */
static bool is_iq2_s_or_m(const struct choice *c)
{
    return is_mix(c, "IQ2_S") || is_mix(c, "IQ2_M");
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
    if (is_mix(c, "MXFP4_MOE") || c->model->is_falcon ||
        c->tensor->cols % ak_quant_info(type)->block_elems != 0)
        return AK_QUANT_Q8_0;
    if (is_tiny(c) || is_mix(c, "IQ3_XXS"))
        return AK_QUANT_Q5_K;
    return type == AK_QUANT_Q8_0 ? type : AK_QUANT_Q6_K;
}

static enum ak_quant_type choose_embedding(const struct choice *c)
{
    if (is_iq2_s_or_m(c) || is_mix(c, "IQ3_XXS"))
        return AK_QUANT_IQ3_S;
    if (is_tiny(c))
        return AK_QUANT_Q2_K;
    if (is_mix(c, "TQ1_0") || is_mix(c, "TQ2_0") || is_mix(c, "Q2_0"))
        return AK_QUANT_Q4_K;
    return c->mix->type;
}

/* attn_v, and matrices that hold it. */
static enum ak_quant_type choose_values(const struct choice *c)
{
    enum ak_quant_type type = c->mix->type;
    const struct ak_mix_tensor *t = c->tensor;
    bool few_heads = c->model->n_gqa >= 4;
    if (is_tiny(c))
        return few_heads || c->model->n_experts >= 4 ? AK_QUANT_Q4_K :
               is_iq2_s_or_m(c)                      ? AK_QUANT_IQ3_S :
                                                       AK_QUANT_Q2_K;
    if (is_mix(c, "IQ3_XXS"))
        type = few_heads                ? AK_QUANT_Q4_K :
               c->model->has_importance ? AK_QUANT_IQ3_XXS :
                                          AK_QUANT_IQ3_S;
    else if (is_mix(c, "IQ3_M") || ((is_mix(c, "IQ3_XS") || is_mix(c, "IQ3_S")) && few_heads))
        type = AK_QUANT_Q4_K;
    else if (is_mix(c, "Q2_K"))
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

/* attn_q and attn_k. */
static enum ak_quant_type choose_queries_keys(const struct choice *c)
{
    if (has(c, "attn_k.weight") && c->model->n_experts == 8)
        return is_tiny(c) ? AK_QUANT_Q4_K : AK_QUANT_Q8_0;
    return is_mix(c, "IQ3_XS")  ? AK_QUANT_IQ3_XXS :
           is_mix(c, "IQ3_XXS") ? AK_QUANT_IQ2_S :
                                  c->mix->type;
}

/* ffn_gate and ffn_up. */
static enum ak_quant_type choose_gate_up(const struct choice *c)
{
    const struct ak_mix_tensor *t = c->tensor;
    bool is_inner = t->index >= t->n / 8 && t->index < 7 * t->n / 8;
    return is_mix(c, "IQ3_XS") && is_inner ? AK_QUANT_IQ3_XXS : c->mix->type;
}

static enum ak_quant_type choose_down(const struct choice *c)
{
    const struct ak_mix_tensor *t = c->tensor;
    bool falcon = c->model->is_falcon, early = t->index < t->n / 8;
    if (is_tiny(c))
        return !early ? c->mix->type : is_iq2_s_or_m(c) ? AK_QUANT_IQ3_S : AK_QUANT_Q2_K;
    if (is_mix(c, "IQ3_XXS") && !c->model->has_importance)
        return early ? AK_QUANT_Q4_K : AK_QUANT_Q3_K;
    if (is_mix(c, "IQ3_M") && (early || (c->model->n_experts == 8 && uses_more_bits(t))))
        return AK_QUANT_Q4_K;
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
    static const char *const better[] = { "Q2_K",   "Q3_K_S", "Q3_K_M",  "Q4_K_S",
                                          "Q4_K_M", "IQ3_XS", "IQ3_XXS", "IQ3_S",
                                          "IQ3_M",  "IQ4_NL", "IQ4_XS",  NULL };
    if (is_tiny(c))
        return c->model->n_experts == 8                 ? AK_QUANT_Q5_K :
               is_iq2_s_or_m(c)                         ? AK_QUANT_IQ3_S :
               is_mix(c, "IQ1_S") || is_mix(c, "IQ1_M") ? AK_QUANT_IQ2_XXS :
                                                          c->mix->type;
    if (c->model->is_falcon)
        return is_mix(c, "Q3_K_L") ? AK_QUANT_Q4_K : c->mix->type;
    if (c->model->n_experts == 8)
        return is_one_of(c, better) ? AK_QUANT_Q5_K : c->mix->type;
    if (is_mix(c, "Q3_K_M") || is_mix(c, "IQ3_M"))
        return AK_QUANT_Q4_K;
    return is_mix(c, "Q2_K")    ? AK_QUANT_Q3_K :
           is_mix(c, "Q3_K_L")  ? AK_QUANT_Q5_K :
           is_mix(c, "IQ3_XXS") ? AK_QUANT_IQ3_S :
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
    if (is_mix(&c, "MXFP4_MOE"))
        return tensor->n_matrices > 1 ? AK_QUANT_MXFP4 : AK_QUANT_Q8_0;
    if (is_embedding)
        return choose_embedding(&c);
    if (has(&c, "attn_qkv.weight") || has(&c, "attn_kv_b.weight") || has(&c, "attn_v.weight"))
        return choose_values(&c);
    if (has(&c, "attn_k.weight") || has(&c, "attn_q.weight"))
        return choose_queries_keys(&c);
    if (has(&c, "attn_output.weight"))
        return choose_attention_output(&c);
    if (has(&c, "ffn_up") || has(&c, "ffn_gate"))
        return choose_gate_up(&c);
    return has(&c, "ffn_down") ? choose_down(&c) : mix->type;
}

enum ak_quant_type ak_mix_fit(enum ak_quant_type type, uint64_t cols)
{
    static const enum ak_quant_type smaller[AK_QUANT_COUNT] = {
        [AK_QUANT_Q2_K] = AK_QUANT_Q4_0,
        [AK_QUANT_Q3_K] = AK_QUANT_Q4_0,
        [AK_QUANT_Q4_K] = AK_QUANT_Q5_0,
        [AK_QUANT_Q5_K] = AK_QUANT_Q5_1,
        [AK_QUANT_Q6_K] = AK_QUANT_Q8_0,
        [AK_QUANT_IQ4_XS] = AK_QUANT_IQ4_NL,
        [AK_QUANT_IQ1_S] = AK_QUANT_IQ4_NL,
        [AK_QUANT_IQ1_M] = AK_QUANT_IQ4_NL,
        [AK_QUANT_IQ2_XXS] = AK_QUANT_IQ4_NL,
        [AK_QUANT_IQ2_XS] = AK_QUANT_IQ4_NL,
        [AK_QUANT_IQ2_S] = AK_QUANT_IQ4_NL,
        [AK_QUANT_IQ3_XXS] = AK_QUANT_IQ4_NL,
        [AK_QUANT_IQ3_S] = AK_QUANT_IQ4_NL,
        [AK_QUANT_TQ1_0] = AK_QUANT_Q4_0,
        [AK_QUANT_TQ2_0] = AK_QUANT_Q4_0,
        [AK_QUANT_Q2_0] = AK_QUANT_Q4_0,
        /* for these llama-quantize has none, and stops */
        [AK_QUANT_Q1_0] = AK_QUANT_Q4_0,
        [AK_QUANT_NVFP4] = AK_QUANT_Q4_0,
    };
    if (cols % ak_quant_info(type)->block_elems == 0)
        return type;
    type = smaller[type]; /* F32, which is 0, if there is none */
    return type != AK_QUANT_F32 && cols % ak_quant_info(type)->block_elems == 0 ? type :
                                                                                  AK_QUANT_F16;
}

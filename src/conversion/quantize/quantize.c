/* The choice of an instruction set, and the tables that searches need. */
#include "conversion/quantize/quantize.h"

#include <math.h>

#include "config.h"
#include "base/mem.h"
#include "files/quant/block.h"
#include "files/quant/codebook.h"
#include "conversion/quantize/sets.h"

/* Rows for instruction set i, the best one last; NULL: past those that this machine has. */
static ak_quantize_row *const *rows_at(unsigned i)
{
    if (i == 0)
        return ak_quantize_plain;
#if HAVE_AK_AVX2
    if (i == 1 && __builtin_cpu_supports("avx2"))
        return ak_quantize_avx2;
#endif
#if HAVE_AK_AVX512
    if (i == 2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq"))
        return ak_quantize_avx512;
#endif
    return NULL;
}

unsigned ak_quantize_sets(void)
{
    unsigned n = 0;
    while (rows_at(n))
        n++;
    return n;
}

bool ak_quantize_has(enum ak_quant_type type)
{
    return type < AK_QUANT_COUNT && ak_quantize_plain[type];
}

/* ---- Codebooks ---------------------------------------------------------- */
struct codebook {
    const uint16_t *codes;
    int n, n_dims, bits;
};

/* IQ1_M has that of IQ1_S. */
static enum ak_quant_type find_codebook(enum ak_quant_type type)
{
    return type == AK_QUANT_IQ1_M ? AK_QUANT_IQ1_S : type;
}

static struct codebook get_codebook(enum ak_quant_type type)
{
    switch (type) {
    case AK_QUANT_IQ1_S: return (struct codebook){ ak_quant_iq1_codes, 2048, 8, 2 };
    case AK_QUANT_IQ2_XXS: return (struct codebook){ ak_quant_iq2_xxs_codes, 256, 8, 2 };
    case AK_QUANT_IQ2_XS: return (struct codebook){ ak_quant_iq2_xs_codes, 512, 8, 2 };
    case AK_QUANT_IQ2_S: return (struct codebook){ ak_quant_iq2_s_codes, 1024, 8, 2 };
    case AK_QUANT_IQ3_XXS: return (struct codebook){ ak_quant_iq3_xxs_codes, 256, 4, 3 };
    case AK_QUANT_IQ3_S: return (struct codebook){ ak_quant_iq3_s_codes, 512, 4, 3 };
    default: return (struct codebook){ .n = 0 };
    }
}

bool ak_quantize_prepare(struct ak_quantize_tables *tables, enum ak_quant_type type)
{
    enum ak_quant_type of = find_codebook(type);
    struct codebook c = get_codebook(of);
    return c.n == 0 || tables->near[of].codes ||
           ak_near_make(c.codes, c.n, c.n_dims, c.bits, &tables->near[of]);
}

void ak_quantize_clear(struct ak_quantize_tables *tables)
{
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        ak_near_clear(&tables->near[type]);
}

/* ---- Rows --------------------------------------------------------------- */
/* Large elements count more, and pull the scale up: the least plain error makes the numbers too
 * small, which a network adds up over its layers. With importance, too, where a column that counts
 * a thousand times what the others do would choose the scale of its block alone. */
static void weigh(const float *x, const float *importance, size_t n, float *out)
{
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        out[i] = sqrtf(sum / (float)n + x[i] * x[i]) * (importance ? importance[i] : 1.0f);
}

void ak_quantize_with(const struct ak_quantize_tables *tables, unsigned set,
                      enum ak_quant_type type, const float *x, const float *weights, void *blocks,
                      size_t n)
{
    while (!rows_at(set)[type])
        set--;
    rows_at(set)[type](&tables->near[find_codebook(type)], x, weights, blocks, n);
}

void ak_quantize(const struct ak_quantize_tables *tables, enum ak_quant_type type, const float *x,
                 const float *importance, void *blocks, size_t n)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    unsigned set = ak_quantize_sets() - 1;
    float weights[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK) {
        size_t some = ak_min_size(n - i, AK_QUANT_SUPER_BLOCK);
        weigh(x + i, importance ? importance + i : NULL, some, weights);
        ak_quantize_with(tables, set, type, x + i, weights,
                         (uint8_t *)blocks + i / info->block_elems * info->block_bytes, some);
    }
}

/* ---- Groups ------------------------------------------------------------- */
static ak_quantize_group_row *groups_at(unsigned set)
{
#if HAVE_AK_AVX512
    if (set == 2)
        return ak_quantize_groups_avx512;
#endif
#if HAVE_AK_AVX2
    if (set == 1)
        return ak_quantize_groups_avx2;
#endif
    (void)set;
    return ak_quantize_groups_plain;
}

void ak_quantize_groups_with(unsigned set, unsigned bits, uint32_t group, const float *x,
                             const float *weights, uint8_t *out, float *scales, size_t n)
{
    groups_at(set)(bits, group, x, weights, out, scales, n);
}

void ak_quantize_groups(unsigned bits, uint32_t group, const float *x, const float *importance,
                        uint8_t *out, float *scales, size_t n)
{
    unsigned set = ak_quantize_sets() - 1;
    float weights[AK_QUANT_SUPER_BLOCK];
    size_t piece = AK_QUANT_SUPER_BLOCK / group * group;
    if (bits == 8) {
        ak_quantize_groups_with(set, bits, group, x, NULL, out, scales, n);
        return;
    }
    for (size_t i = 0; i < n; i += piece) {
        size_t some = ak_min_size(n - i, piece);
        weigh(x + i, importance ? importance + i : NULL, some, weights);
        ak_quantize_groups_with(set, bits, group, x + i, weights, out + i / 8 * bits,
                                scales + i / group, some);
    }
}

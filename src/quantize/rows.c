/* The rows of quantize/rows.h for several instruction sets, and the choice among them. */
#include "quantize/quantize.h"

#include "base/mem.h"
#include "quantize/grid_rows.h"
#include "quantize/small_rows.h"

typedef void row_fn(const float *x, const float *w, uint8_t *out, size_t n);

/* Each type with each instruction set. */
#define ROW(name, target, type)                                                                    \
    target static void name##_##type(const float *x, const float *w, uint8_t *out, size_t n)       \
    {                                                                                              \
        row_##type(x, w, out, n);                                                                  \
    }
#define ROWS(name, target)                                                                         \
    ROW(name, target, q4_0)                                                                        \
    ROW(name, target, q4_1)                                                                        \
    ROW(name, target, q5_0)                                                                        \
    ROW(name, target, q5_1)                                                                        \
    ROW(name, target, q8_0)                                                                        \
    ROW(name, target, q2_k)                                                                        \
    ROW(name, target, q3_k)                                                                        \
    ROW(name, target, q4_k)                                                                        \
    ROW(name, target, q5_k)                                                                        \
    ROW(name, target, q6_k)                                                                        \
    ROW(name, target, iq4_nl)                                                                      \
    ROW(name, target, iq4_xs)                                                                      \
    ROW(name, target, iq1_s)                                                                       \
    ROW(name, target, iq1_m)                                                                       \
    ROW(name, target, iq2_xxs)                                                                     \
    ROW(name, target, iq2_xs)                                                                      \
    ROW(name, target, iq2_s)                                                                       \
    ROW(name, target, iq3_xxs)                                                                     \
    ROW(name, target, iq3_s)                                                                       \
    ROW(name, target, tq1_0)                                                                       \
    ROW(name, target, tq2_0)                                                                       \
    ROW(name, target, q1_0)                                                                        \
    ROW(name, target, q2_0)                                                                        \
    ROW(name, target, mxfp4)                                                                       \
    ROW(name, target, nvfp4)                                                                       \
    static row_fn *const name[AK_QUANT_COUNT] = {                                                  \
        [AK_QUANT_Q4_0] = name##_q4_0,       [AK_QUANT_Q4_1] = name##_q4_1,                        \
        [AK_QUANT_Q5_0] = name##_q5_0,       [AK_QUANT_Q5_1] = name##_q5_1,                        \
        [AK_QUANT_Q8_0] = name##_q8_0,       [AK_QUANT_Q2_K] = name##_q2_k,                        \
        [AK_QUANT_Q3_K] = name##_q3_k,       [AK_QUANT_Q4_K] = name##_q4_k,                        \
        [AK_QUANT_Q5_K] = name##_q5_k,       [AK_QUANT_Q6_K] = name##_q6_k,                        \
        [AK_QUANT_IQ4_NL] = name##_iq4_nl,   [AK_QUANT_IQ4_XS] = name##_iq4_xs,                    \
        [AK_QUANT_IQ1_S] = name##_iq1_s,     [AK_QUANT_IQ1_M] = name##_iq1_m,                      \
        [AK_QUANT_IQ2_XXS] = name##_iq2_xxs, [AK_QUANT_IQ2_XS] = name##_iq2_xs,                    \
        [AK_QUANT_IQ2_S] = name##_iq2_s,     [AK_QUANT_IQ3_XXS] = name##_iq3_xxs,                  \
        [AK_QUANT_IQ3_S] = name##_iq3_s,     [AK_QUANT_TQ1_0] = name##_tq1_0,                      \
        [AK_QUANT_TQ2_0] = name##_tq2_0,     [AK_QUANT_Q1_0] = name##_q1_0,                        \
        [AK_QUANT_Q2_0] = name##_q2_0,       [AK_QUANT_MXFP4] = name##_mxfp4,                      \
        [AK_QUANT_NVFP4] = name##_nvfp4,                                                           \
    };

ROWS(plain, )
#ifdef __x86_64__
ROWS(avx2, __attribute__((target("avx2"))))
ROWS(avx512, __attribute__((target("avx512f,avx512dq"))))
#endif

/* Rows for instruction set i, the best one last; NULL: past those that this machine has. */
static row_fn *const *rows_at(unsigned i)
{
    if (i == 0)
        return plain;
#ifdef __x86_64__
    if (i == 1 && __builtin_cpu_supports("avx2"))
        return avx2;
    if (i == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return avx512;
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
    return type < AK_QUANT_COUNT && plain[type];
}

/* Large elements count more, and pull the scale up: the least plain error makes the numbers too
 * small, which a network adds up over its layers. */
static void weigh(const float *x, size_t n, float *out)
{
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        out[i] = sqrtf(sum / (float)n + x[i] * x[i]);
}

static void quantize_plain(row_fn *row, enum ak_quant_type type, const float *x, uint8_t *blocks,
                           size_t n)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    float importance[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK) {
        size_t some = n - i < AK_QUANT_SUPER_BLOCK ? n - i : AK_QUANT_SUPER_BLOCK;
        weigh(x + i, some, importance);
        row(x + i, importance, blocks + i / info->block_elems * info->block_bytes, some);
    }
}

void ak_quantize_with(unsigned set, enum ak_quant_type type, const float *x,
                      const float *importance, void *blocks, size_t n)
{
    row_fn *row = rows_at(set)[type];
    if (importance)
        row(x, importance, blocks, n);
    else
        quantize_plain(row, type, x, blocks, n);
}

void ak_quantize(enum ak_quant_type type, const float *x, const float *importance, void *blocks,
                 size_t n)
{
    ak_quantize_with(ak_quantize_sets() - 1, type, x, importance, blocks, n);
}

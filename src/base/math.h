/* Elementary functions that return the same bits on every machine and with every compiler: libm's
 * results differ between versions and CPUs.
 *
 * The float functions are branch-free and inline: loops over them vectorize, and SIMD kernels
 * repeat the same operations. Every multiply-add is an explicit fmaf. */
#ifndef AK_BASE_MATH_H
#define AK_BASE_MATH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/half.h"

#define AK_EXP_LOW -87.0f
#define AK_EXP_HIGH 88.0f
#define AK_EXP_LOG2E 0x1.715476p+0f
#define AK_EXP_ROUND 0x1.8p+23f
#define AK_EXP_LN2_HIGH 0x1.62e4p-1f
#define AK_EXP_LN2_LOW 0x1.7f7d1cp-20f
#define AK_EXP_C2 0x1.fffffcp-2f
#define AK_EXP_C3 0x1.555492p-3f
#define AK_EXP_C4 0x1.5558f2p-5f
#define AK_EXP_C5 0x1.123a2p-7f
#define AK_EXP_C6 0x1.6a23cep-10f

/* e^x within 1 ulp; exactly 0 below −87, +infinity above 88, 1 at 0.
 * x = n·ln 2 + r with |r| ≤ ln 2 / 2 (Cody and Waite's two-part reduction), then
 * a degree-6 polynomial in r (its upper five coefficients fitted to minimize the
 * relative error), then a scaling by 2^n in the exponent's bits. */
static inline float ak_expf(float x)
{
    float shifted = fmaf(x, AK_EXP_LOG2E, AK_EXP_ROUND);
    float n = shifted - AK_EXP_ROUND;
    float r = fmaf(n, -AK_EXP_LN2_HIGH, x);
    r = fmaf(n, -AK_EXP_LN2_LOW, r);
    float p = AK_EXP_C6;
    p = fmaf(p, r, AK_EXP_C5);
    p = fmaf(p, r, AK_EXP_C4);
    p = fmaf(p, r, AK_EXP_C3);
    p = fmaf(p, r, AK_EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* the low bits of `shifted` are n in two's complement */
    float scale = ak_bits_float((ak_float_bits(shifted) << 23) + 0x3f800000u);
    float y = p * scale;
    y = x < AK_EXP_LOW ? 0.0f : y;
    return x > AK_EXP_HIGH ? INFINITY : y;
}

/* e^x for x <= 0; NaN gives 0. As ak_expf, but products and sums are rounded separately: on
 * baseline x86-64 fmaf is a library call, and this is evaluated for whole vocabularies. */
static inline float ak_expf_unfused(float x)
{
    float shifted = x * AK_EXP_LOG2E + AK_EXP_ROUND;
    float n = shifted - AK_EXP_ROUND;
    float r = (x - n * AK_EXP_LN2_HIGH) - n * AK_EXP_LN2_LOW;
    float p = AK_EXP_C6 * r + AK_EXP_C5;
    p = p * r + AK_EXP_C4;
    p = p * r + AK_EXP_C3;
    p = p * r + AK_EXP_C2;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    float scale = ak_bits_float((ak_float_bits(shifted) << 23) + 0x3f800000u);
    return x >= AK_EXP_LOW ? p * scale : 0.0f;
}

#define AK_TANH_SMALL 0.55f
#define AK_TANH_C3 -0x1.55554cp-2f
#define AK_TANH_C5 0x1.110d3ap-3f
#define AK_TANH_C7 -0x1.b92bb6p-5f
#define AK_TANH_C9 0x1.595666p-6f
#define AK_TANH_C11 -0x1.9bb9a6p-8f

/* tanh x within 2 ulp. Small |x|: an odd polynomial fitted to minimize the relative error;
 * else 1 − 2/(e^2|x| + 1), which is 1 if e^2|x| is infinite. */
static inline float ak_tanhf(float x)
{
    float a = fabsf(x), z = x * x;
    float p = AK_TANH_C11;
    p = fmaf(p, z, AK_TANH_C9);
    p = fmaf(p, z, AK_TANH_C7);
    p = fmaf(p, z, AK_TANH_C5);
    p = fmaf(p, z, AK_TANH_C3);
    float small = fmaf(p * z, x, x);
    float large = copysignf(1.0f - 2.0f / (ak_expf(a + a) + 1.0f), x);
    return a < AK_TANH_SMALL ? small : large;
}

#define AK_ERF_SMALL 0.9f
#define AK_ERF_HIGH 4.0f
#define AK_ERF_C1 0x1.20dd76p+0f
#define AK_ERF_C3 -0x1.812744p-2f
#define AK_ERF_C5 0x1.ce2e54p-4f
#define AK_ERF_C7 -0x1.b81524p-6f
#define AK_ERF_C9 0x1.550a46p-8f
#define AK_ERF_C11 -0x1.aca39cp-11f
#define AK_ERF_C13 0x1.6510ccp-14f
#define AK_ERFC_LOG_C0 -0x1.5d014p-13f
#define AK_ERFC_LOG_C1 -0x1.20b754p+0f
#define AK_ERFC_LOG_C2 -0x1.4621b4p-1f
#define AK_ERFC_LOG_C3 -0x1.aa734cp-4f
#define AK_ERFC_LOG_C4 0x1.6d9d2ap-6f
#define AK_ERFC_LOG_C5 -0x1.91cd8cp-9f
#define AK_ERFC_LOG_C6 0x1.9fb3ap-13f

/* erf x within 3 ulp. Small |x|: an odd polynomial; else 1 − e^q(|x|), with q fitted to
 * ln(1 − erf). Both minimize the relative error of the result. From 4 on it is 1. */
static inline float ak_erff(float x)
{
    float a = fabsf(x), z = x * x;
    float p = AK_ERF_C13;
    p = fmaf(p, z, AK_ERF_C11);
    p = fmaf(p, z, AK_ERF_C9);
    p = fmaf(p, z, AK_ERF_C7);
    p = fmaf(p, z, AK_ERF_C5);
    p = fmaf(p, z, AK_ERF_C3);
    p = fmaf(p, z, AK_ERF_C1);
    float small = p * x;
    float t = a > AK_ERF_HIGH ? AK_ERF_HIGH : a;
    float q = AK_ERFC_LOG_C6;
    q = fmaf(q, t, AK_ERFC_LOG_C5);
    q = fmaf(q, t, AK_ERFC_LOG_C4);
    q = fmaf(q, t, AK_ERFC_LOG_C3);
    q = fmaf(q, t, AK_ERFC_LOG_C2);
    q = fmaf(q, t, AK_ERFC_LOG_C1);
    q = fmaf(q, t, AK_ERFC_LOG_C0);
    float large = copysignf(1.0f - ak_expf(q), x);
    return a < AK_ERF_SMALL ? small : large;
}

/* Double functions for setup and positions: relative error below 1e-14. */
double ak_exp(double x);
double ak_ln(double x);            /* x > 0 */
double ak_pow(double x, double y); /* x > 0 */
/* ln Σ e^(x − max), where no x is greater than max. Values are clamped to finite floats; NaN counts
 * as -FLT_MAX. */
double ak_log_sum_exp(const float *x, size_t n, float max);
/* |x| < 2^30. */
void ak_sincos(double x, double *sin, double *cos);

/* For qsort: doubles in ascending order. */
static inline int ak_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif

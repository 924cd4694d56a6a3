/* Double functions by range reduction and series. They need not be fast: rotation tables and
 * samplers use them, not inner loops over weights. */
#include "base/math.h"

#include <float.h>
#include <string.h>

static double bits_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x = n·ln 2 + r, then Taylor's series to the 13th power: the remainder is below 1e-17 for
 * |r| ≤ ln 2 / 2. */
double ak_exp(double x)
{
    if (x != x)
        return x;
    if (x > 709.0)
        return INFINITY;
    if (x < -708.0)
        return 0.0;
    double n = floor(fma(x, 0x1.71547652b82fep+0, 0.5));
    double r = fma(n, -0x1.62e42fee00000p-1, x);
    r = fma(n, -0x1.a39ef35793c76p-33, r);
    double p = 1.0;
    for (int i = 13; i > 0; i--)
        p = fma(p, r / (double)i, 1.0);
    return p * bits_double((uint64_t)((int64_t)n + 1023) << 52);
}

/* x = m·2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m − 1)/(m + 1)). The argument is at
 * most 0.172, so the series up to the 23rd power has double precision. */
double ak_ln(double x)
{
    if (!(x > 0.0) || x > 0x1.fffffffffffffp+1023)
        return x > 0.0 || x != x ? x : -INFINITY;
    int extra = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        extra = -54;
    }
    uint64_t bits = double_bits(x);
    int e = (int)(bits >> 52) - 1023 + extra;
    double m = bits_double((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        e++;
    }
    double z = (m - 1.0) / (m + 1.0);
    double z2 = z * z;
    double p = 0.0;
    for (int i = 23; i >= 3; i -= 2)
        p = fma(p, z2, 1.0 / (double)i);
    p = fma(p, z2 * z, z) * 2.0;
    return fma((double)e, 0x1.62e42fefa39efp-1, p);
}

double ak_pow(double x, double y)
{
    return y == 0.0 ? 1.0 : ak_exp(y * ak_ln(x));
}

/* In blocks with several sums, because compilers vectorize both. */
double ak_log_sum_exp(const float *x, size_t n, float max)
{
    enum { BLOCK = 256, SUMS = 8 };
    float weights[BLOCK];
    double sums[SUMS] = { 0.0 }, sum = 0.0;
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t n_block = n - i < BLOCK ? n - i : BLOCK;
        for (size_t j = 0; j < n_block; j++) {
            float value = x[i + j] > -FLT_MAX ? x[i + j] : -FLT_MAX; /* NaN too */
            value = value < FLT_MAX ? value : FLT_MAX;
            weights[j] = ak_expf_unfused(value - max);
        }
        for (size_t j = n_block; j < BLOCK; j++)
            weights[j] = 0.0f;
        for (size_t j = 0; j < BLOCK; j += SUMS)
            for (size_t k = 0; k < SUMS; k++)
                sums[k] += (double)weights[j + k];
    }
    for (size_t k = 0; k < SUMS; k++)
        sum += sums[k];
    return ak_ln(sum);
}

/* x = n·π/2 + r with π/2 in three parts of 33 bits (exact for |n| < 2^20, within
 * 1e-14 beyond), then Taylor's series on |r| ≤ π/4. */
void ak_sincos(double x, double *sin_out, double *cos_out)
{
    double n = floor(fma(x, 0x1.45f306dc9c883p-1, 0.5));
    double r = fma(n, -0x1.921fb54400000p+0, x);
    r = fma(n, -0x1.0b4611a600000p-34, r);
    r = fma(n, -0x1.3198a2e037073p-69, r);
    double r2 = r * r;
    double s = 1.0, c = 1.0;
    for (int i = 18; i >= 2; i -= 2) {
        s = fma(s * r2, -1.0 / (double)(i * (i + 1)), 1.0);
        c = fma(c * r2, -1.0 / (double)(i * (i - 1)), 1.0);
    }
    s *= r;
    switch ((int64_t)n & 3) {
    case 0: *sin_out = s, *cos_out = c; break;
    case 1: *sin_out = c, *cos_out = -s; break;
    case 2: *sin_out = -s, *cos_out = -c; break;
    default: *sin_out = -c, *cos_out = s; break;
    }
}

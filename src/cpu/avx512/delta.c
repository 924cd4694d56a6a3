/* The gated delta rule: a lane is a column of the state. */
#include "cpu/avx512/avx512.h"
#include "cpu/avx512/lanes.h"

enum { VECTORS = 4 }; /* vectors of columns at once, each with its own chain of sums */

/* 16 · n columns; n is a constant. */
AK_KERNEL void columns(size_t n, const float *q, const float *k, size_t rows, const float *v,
                       float decay, float beta, float *state, size_t stride, float *out)
{
    const __m512 g = _mm512_set1_ps(decay), b = _mm512_set1_ps(beta);
    __m512 d[VECTORS], o[VECTORS];
    AK_UNROLL
    for (size_t c = 0; c < n; c++)
        d[c] = o[c] = _mm512_setzero_ps();
    for (size_t i = 0; i < rows; i++) {
        const __m512 key = _mm512_set1_ps(k[i]);
        AK_UNROLL
        for (size_t c = 0; c < n; c++)
            d[c] = _mm512_fmadd_ps(key, _mm512_loadu_ps(state + i * stride + c * 16), d[c]);
    }
    AK_UNROLL
    for (size_t c = 0; c < n; c++)
        d[c] = _mm512_mul_ps(b, _mm512_fnmadd_ps(g, d[c], _mm512_loadu_ps(v + c * 16)));
    for (size_t i = 0; i < rows; i++) {
        const __m512 key = _mm512_set1_ps(k[i]), query = _mm512_set1_ps(q[i]);
        AK_UNROLL
        for (size_t c = 0; c < n; c++) {
            float *at = state + i * stride + c * 16;
            __m512 s = _mm512_fmadd_ps(key, d[c], _mm512_mul_ps(g, _mm512_loadu_ps(at)));
            _mm512_storeu_ps(at, s);
            o[c] = _mm512_fmadd_ps(query, s, o[c]);
        }
    }
    AK_UNROLL
    for (size_t c = 0; c < n; c++)
        _mm512_storeu_ps(out + c * 16, o[c]);
}

void ak_avx512_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                          const float *restrict v, float decay, float beta, float *restrict state,
                          size_t stride, float *restrict out, size_t n)
{
    _Static_assert(AK_DELTA_COLUMNS_MAX == VECTORS * 16 && AK_DELTA_STEP == VECTORS * 8,
                   "columns are all or half of them");
    if (n == AK_DELTA_COLUMNS_MAX)
        columns(VECTORS, q, k, rows, v, decay, beta, state, stride, out);
    else
        columns(VECTORS / 2, q, k, rows, v, decay, beta, state, stride, out);
}

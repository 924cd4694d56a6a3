/* The gated delta rule: a lane is a column of the state. */
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/lanes.h"

enum { VECTORS = 4 }; /* vectors of columns at once: with more, the sums do not fit the registers */

_Static_assert(AK_DELTA_STEP == VECTORS * 8, "columns come in whole groups");

void ak_avx2_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                        const float *restrict v, float decay, float beta, float *restrict state,
                        size_t stride, float *restrict out, size_t n)
{
    const __m256 g = _mm256_set1_ps(decay), b = _mm256_set1_ps(beta);
    for (size_t j = 0; j < n; j += VECTORS * 8) {
        __m256 d[VECTORS], o[VECTORS];
        AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++)
            d[c] = o[c] = _mm256_setzero_ps();
        for (size_t i = 0; i < rows; i++) {
            const __m256 key = _mm256_set1_ps(k[i]);
            AK_UNROLL
            for (size_t c = 0; c < VECTORS; c++)
                d[c] = _mm256_fmadd_ps(key, _mm256_loadu_ps(state + i * stride + j + c * 8), d[c]);
        }
        AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++)
            d[c] = _mm256_mul_ps(b, _mm256_fnmadd_ps(g, d[c], _mm256_loadu_ps(v + j + c * 8)));
        for (size_t i = 0; i < rows; i++) {
            const __m256 key = _mm256_set1_ps(k[i]), query = _mm256_set1_ps(q[i]);
            AK_UNROLL
            for (size_t c = 0; c < VECTORS; c++) {
                float *at = state + i * stride + j + c * 8;
                __m256 s = _mm256_fmadd_ps(key, d[c], _mm256_mul_ps(g, _mm256_loadu_ps(at)));
                _mm256_storeu_ps(at, s);
                o[c] = _mm256_fmadd_ps(query, s, o[c]);
            }
        }
        AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++)
            _mm256_storeu_ps(out + j + c * 8, o[c]);
    }
}

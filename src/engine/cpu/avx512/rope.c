/* Rotary embeddings: with masks, since a head may have few pairs. */
#include "engine/cpu/setter.h"
#include "engine/cpu/avx512/lanes.h"

/* Pairs (i, i + half), 16 at once. */
AK_KERNEL void rope_halves(float *restrict x, const float *restrict cos, const float *restrict sin,
                           size_t half)
{
    for (size_t i = 0; i < half; i += 16) {
        __mmask16 lanes = half - i < 16 ? first_lanes(half - i) : (__mmask16)0xffff;
        __m512 a = _mm512_maskz_loadu_ps(lanes, x + i),
               b = _mm512_maskz_loadu_ps(lanes, x + half + i);
        __m512 c = _mm512_maskz_loadu_ps(lanes, cos + i), s = _mm512_maskz_loadu_ps(lanes, sin + i);
        _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + half + i, lanes, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}

/* Pairs (2i, 2i + 1), 8 at once; each lane is next to its partner. */
AK_KERNEL void rope_neighbors(float *restrict x, const float *restrict cos,
                              const float *restrict sin, size_t half)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    size_t whole = half / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        __m512 c = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(cos + i)));
        __m512 s = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(sin + i)));
        __m512 v = _mm512_loadu_ps(x + 2 * i), a = _mm512_moveldup_ps(v), b = _mm512_movehdup_ps(v);
        /* even lanes: a·cos − b·sin; odd ones: a·sin + b·cos */
        __m512 first = _mm512_mask_mov_ps(c, 0xaaaa, s), second = _mm512_mask_mov_ps(s, 0xaaaa, c);
        _mm512_storeu_ps(x + 2 * i, _mm512_fmaddsub_ps(a, first, _mm512_mul_ps(b, second)));
    }
    ak_generic_rope(x + 2 * whole, cos + whole, sin + whole, 2 * (half - whole), true);
}

static void rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                 size_t n_dims, bool interleaved)
{
    if (interleaved)
        rope_neighbors(x, cos, sin, n_dims / 2);
    else
        rope_halves(x, cos, sin, n_dims / 2);
}

AK_SETTER(rope)
{
    k->rope = rope;
}

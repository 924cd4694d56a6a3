/* Int8 roofline probe: runs an ISA's dot-product instruction at full rate, for
 * engine/cpu/roofline.c. Instantiated by the probe.c of avxvnni/, avx512/, neon/ and neon_i8mm/. */
#ifndef AK_ENGINE_CPU_PROBE_H
#define AK_ENGINE_CPU_PROBE_H

#include "engine/cpu/generic.h"

/* Defines probe_int8: twelve chains of `dot(sum, w, x)`, each with its own x, so that the compiler
 * merges none. `sums` and `bytes` are the types of sum and operands. `operations` counts those of
 * one dot, a multiply-add as two. */
#define AK_PROBE_INT8(dot, sums, bytes, operations)                                                \
    static uint64_t probe_int8(size_t rounds, uint64_t *sink)                                      \
    {                                                                                              \
        enum { CHAINS = 12 };                                                                      \
        sums sum[CHAINS];                                                                          \
        bytes x[CHAINS], w;                                                                        \
        uint64_t words[sizeof(sums) / sizeof(uint64_t)];                                           \
        memset(&w, (int)(rounds & 7), sizeof w);                                                   \
        AK_UNROLLED_FOR (int j = 0; j < CHAINS; j++) {                                             \
            memset(&sum[j], j + 1, sizeof sum[j]);                                                 \
            memset(&x[j], j * 3 + 1, sizeof x[j]);                                                 \
        }                                                                                          \
        for (size_t i = 0; i < rounds; i++) {                                                      \
            AK_UNROLLED_FOR (int j = 0; j < CHAINS; j++)                                           \
                sum[j] = dot(sum[j], w, x[j]);                                                     \
        }                                                                                          \
        *sink = 0;                                                                                 \
        AK_UNROLLED_FOR (int j = 0; j < CHAINS; j++) {                                             \
            memcpy(words, &sum[j], sizeof words);                                                  \
            for (size_t i = 0; i < sizeof words / sizeof *words; i++)                              \
                *sink ^= words[i];                                                                 \
        }                                                                                          \
        return (uint64_t)rounds * CHAINS * (operations);                                           \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

#endif

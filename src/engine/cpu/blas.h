/* OpenBLAS for prefill: loaded at run time, never required. Used with --prefill blas, or under
 * --relaxed where the chip profile says so. backend.c loads it, linear.c multiplies with it, and
 * tune.c measures for the profile whether it is faster.
 *
 * Debian's pthread, OpenMP and serial builds share one file name. The serial build has no locks and
 * returns wrong sums if two threads call it. The others run threads of their own, as many as the
 * host program allows. Therefore only one thread of the process calls BLAS at a time, whichever
 * build it is, and the other threads of its session wait. */
#ifndef AK_ENGINE_CPU_BLAS_H
#define AK_ENGINE_CPU_BLAS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* fewer tokens do not repay dequantizing the rows */
enum { AK_CPU_BLAS_TOKENS_MIN = 32 };

struct ak_cpu_blas {
    void (*sgemm)(void); /* cblas_sgemm; NULL: not loaded */
};

/* Loads the library with file name `name`; NULL: libopenblas.so.0. It stays loaded until the
 * process ends, because its threads may still run. AKUNU_ERROR_UNSUPPORTED: not found, or not an
 * OpenBLAS. */
ak_status ak_cpu_blas_load(const char *name, struct ak_cpu_blas *out, struct ak_error *error);

/* y[t·y_stride + r] = Σ_k w[r·w_stride + k]·x[t·x_stride + k] for n_rows rows and n tokens. Returns
 * false and does nothing if a size exceeds BLAS's integer type. */
bool ak_cpu_blas_dot_rows(const struct ak_cpu_blas *blas, const float *w, size_t w_stride,
                          size_t n_rows, const float *x, size_t x_stride, size_t n, size_t k,
                          float *y, size_t y_stride);

#endif

/* OpenBLAS, where the machine has it: loaded when it is first wanted, never needed.
 *
 * Debian's builds, with threads, with OpenMP and serial, share one name. One thread
 * calls and the rest wait, whichever it is: the first two have threads of their own,
 * as many as the host program lets them have, and the serial one is built without
 * locks and gives wrong sums where two threads call it. */
#ifndef AK_CPU_BLAS_H
#define AK_CPU_BLAS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Fewer tokens are not worth the float rows. */
enum { AK_CPU_BLAS_TOKENS_MIN = 32 };

struct ak_cpu_blas {
    void (*sgemm)(void); /* cblas_sgemm; NULL: not loaded */
};

/* Loads `name`, a library's file name; NULL: libopenblas.so.0. It stays loaded as long
 * as the process lives, since threads of its own may. AKUNU_ERROR_UNSUPPORTED where
 * there is none or it is no OpenBLAS. */
ak_status ak_cpu_blas_load(const char *name, struct ak_cpu_blas *out, struct ak_error *error);

/* y[t·y_stride + r] = Σ_k w[r·w_stride + k]·x[t·x_stride + k] for n_rows rows and n tokens.
 * False, with nothing done, where a size is beyond BLAS's integers. */
bool ak_cpu_blas_dot_rows(const struct ak_cpu_blas *blas, const float *w, size_t w_stride,
                          size_t n_rows, const float *x, size_t x_stride, size_t n, size_t k,
                          float *y, size_t y_stride);

#endif

/* Loads OpenBLAS at run time and calls its sgemm. Nothing links against it, so the library runs
 * without it. */
#include "engine/cpu/blas.h"

#include <limits.h>

#include "base/utf8.h"
#include "config.h"

#ifdef HAVE_AK_BLAS

#include <dlfcn.h>
#include <pthread.h>

/* Declared here as in cblas.h, so that the build needs no BLAS header. */
enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111, TRANSPOSED = 112 };
typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);

/* dlsym for functions. POSIX allows the conversion from void *, ISO C does not. */
static void (*find(void *library, const char *name))(void)
{
    union {
        void *object;
        void (*function)(void);
    } found = { .object = dlsym(library, name) };
    return found.function;
}

ak_status ak_cpu_blas_load(const char *name, struct ak_cpu_blas *out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    *out = (struct ak_cpu_blas){ 0 };
    name = name ? name : "libopenblas.so.0";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s cannot be loaded",
                       ak_show_path(name, shown));
    void (*sgemm)(void) = find(library, "cblas_sgemm");
    if (!sgemm || !find(library, "openblas_get_parallel")) {
        dlclose(library);
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s is not an OpenBLAS library",
                       ak_show_path(name, shown));
    }
    out->sgemm = sgemm;
    return AKUNU_OK;
}

/* Held during a call: sessions of several threads may share the library's serial build. */
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;

bool ak_cpu_blas_dot_rows(const struct ak_cpu_blas *blas, const float *w, size_t w_stride,
                          size_t n_rows, const float *x, size_t x_stride, size_t n, size_t k,
                          float *y, size_t y_stride)
{
    if (w_stride > INT_MAX || n_rows > INT_MAX || x_stride > INT_MAX || n > INT_MAX ||
        k > INT_MAX || y_stride > INT_MAX)
        return false;
    pthread_mutex_lock(&calling);
    ((sgemm_fn *)blas->sgemm)(ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED, (int)n, (int)n_rows, (int)k,
                              1.0f, x, (int)x_stride, w, (int)w_stride, 0.0f, y, (int)y_stride);
    pthread_mutex_unlock(&calling);
    return true;
}

#else

ak_status ak_cpu_blas_load(const char *name, struct ak_cpu_blas *out, struct ak_error *error)
{
    (void)name;
    *out = (struct ak_cpu_blas){ 0 };
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "this build has no BLAS");
}

bool ak_cpu_blas_dot_rows(const struct ak_cpu_blas *blas, const float *w, size_t w_stride,
                          size_t n_rows, const float *x, size_t x_stride, size_t n, size_t k,
                          float *y, size_t y_stride)
{
    (void)blas, (void)w, (void)w_stride, (void)n_rows, (void)x, (void)x_stride, (void)n, (void)k,
        (void)y, (void)y_stride;
    return false;
}

#endif

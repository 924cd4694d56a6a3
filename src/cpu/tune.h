/* Measures what a chip profile holds about kernels. */
#ifndef AK_CPU_TUNE_H
#define AK_CPU_TUNE_H

#include "cpu/profile.h"

/* Asked between measurements; false stops with AKUNU_ERROR_CANCELLED. */
typedef bool ak_cpu_tune_fn(double fraction, void *user);

/* Fills in skinny_max and blas of each class where another value than the default is
 * clearly faster with n_threads; nothing else of *out is touched. The fastest
 * of n_runs runs of a kernel counts: 5 take some seconds, 1 takes one. `progress` may be
 * NULL. */
ak_status ak_cpu_tune(enum ak_cpu_isa isa, unsigned n_threads, unsigned n_runs,
                      ak_cpu_tune_fn *progress, void *user, struct ak_backend_profile *out,
                      struct ak_error *error);

#endif

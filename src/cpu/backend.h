/* What the CPU backend exports: its vtable, the roofline probes, and the tuning of chip profiles.
 * Used by src/backends/list.c, src/api and the programs in bench/. */
#ifndef AK_CPU_BACKEND_H
#define AK_CPU_BACKEND_H

#include "backend/backend.h"
#include "backend/profile.h"
#include "base/error.h"
#include "cpu/kernels.h"

extern const struct ak_backend_ops ak_cpu_backend;

/* ---- Roofline (roofline.c) ---------------------------------------------- */

/* Limits measured on this machine with all threads together. 0: not measured, or not supported. */
struct ak_cpu_roofline {
    double read_bytes_per_second; /* private memory, on huge pages if the system provides them */
    double int8_ops_per_second;   /* a multiply-add counts as two operations, also below */
    double f32_ops_per_second;
    double bf16_ops_per_second;
    double clock_hz; /* of one core while all threads run */
};

enum {
    AK_CPU_MEASURE_READ = AKUNU_MEASURE_READ,
    AK_CPU_MEASURE_INT8 = AKUNU_MEASURE_INT8,
    AK_CPU_MEASURE_F32 = AKUNU_MEASURE_F32,
    AK_CPU_MEASURE_BF16 = AKUNU_MEASURE_BF16,
    AK_CPU_MEASURE_CLOCK = AKUNU_MEASURE_CLOCK,
    AK_CPU_MEASURE_ALL = AKUNU_MEASURE_ALL
};

/* Measures what the bits of `what` (AK_CPU_MEASURE_*) select, with n_threads threads and the
 * kernels of `isa`. Reports the best of several short runs: at most 0.1 s per bit. */
ak_status ak_cpu_measure_roofline(enum ak_cpu_isa isa, unsigned n_threads, unsigned what,
                                  struct ak_cpu_roofline *out, struct ak_error *error);

/* ---- Tuning (tune.c) ---------------------------------------------------- */

/* Called between measurements with the fraction that is done. Returning false stops the tuning
 * with AKUNU_ERROR_CANCELLED. */
typedef bool ak_cpu_tune_fn(double fraction, void *user);

/* Sets skinny_max and blas of each activation format for which another value than the default is
 * clearly faster with n_threads; the rest of *out is left unchanged. A kernel's time is its
 * fastest of n_runs runs: 5 runs take some seconds in all, 1 run one second. `progress` may be
 * NULL. */
ak_status ak_cpu_tune(enum ak_cpu_isa isa, unsigned n_threads, unsigned n_runs,
                      ak_cpu_tune_fn *progress, void *user, struct ak_backend_profile *out,
                      struct ak_error *error);

#endif

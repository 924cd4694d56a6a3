/* Interface of the CPU backend: vtable, measurement of rooflines, tuning of chip profiles.
 * Implemented by backend.c, roofline.c, rates.c, tune.c and calibrate.c. */
#ifndef AK_ENGINE_CPU_BACKEND_H
#define AK_ENGINE_CPU_BACKEND_H

#include "engine/backend/backend.h"
#include "engine/backend/profile.h"
#include "base/error.h"
#include "engine/cpu/kernels.h"

extern const struct ak_backend_ops ak_cpu_backend;

/* ---- Roofline (roofline.c) ---------------------------------------------- */
/* Measures what the bits of `what` (AKUNU_MEASURE_...) select, with n_threads threads and the
 * kernels of `isa`. Reports the best of several short runs: at most 0.1 s per bit. Members not
 * selected or not supported are 0. */
ak_status ak_cpu_measure_roofline(enum ak_cpu_isa isa, unsigned n_threads, unsigned what,
                                  struct akunu_roofline *out, struct ak_error *error);

/* ---- Rates (rates.c) ---------------------------------------------------- */
/* As measure_types of a backend. */
ak_status ak_cpu_measure_types(enum ak_cpu_isa isa, unsigned n_threads,
                               double rates[AK_QUANT_COUNT], double *step, struct ak_error *error);

/* ---- Tuning (tune.c) ---------------------------------------------------- */
/* Sets skinny_max and blas of each activation format for which another value than the default is
 * clearly faster with n_threads; the rest of *out is left unchanged. A kernel's time is its fastest
 * of n_runs runs: 5 runs take some seconds in all, 1 run one second. `progress` may be NULL; it is
 * called between measurements, and false stops with AKUNU_ERROR_CANCELLED. */
ak_status ak_cpu_tune(enum ak_cpu_isa isa, unsigned n_threads, unsigned n_runs,
                      ak_backend_progress_fn *progress, void *user, struct ak_backend_profile *out,
                      struct ak_error *error);

/* ---- Calibration (calibrate.c) ------------------------------------------ */
/* Fills in what *profile lacks, measured on the pool's threads with these weights: the prefetch
 * distances of their types, and skinny_max. Stops after 0.2 s, and leaves the rest unset. */
ak_status ak_cpu_calibrate(struct ak_backend *b, const struct ak_weights *weights,
                           struct ak_pool *pool, struct ak_backend_profile *profile,
                           struct ak_error *error);

#endif

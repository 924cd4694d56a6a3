/* What this machine can do: the figures that speed is quoted against. */
#ifndef AK_CPU_ROOFLINE_H
#define AK_CPU_ROOFLINE_H

#include "base/error.h"
#include "cpu/kernels.h"

struct ak_roofline {
    double read_bytes_per_second; /* from memory */
    double int8_ops_per_second;   /* multiplications and additions */
};

/* The best of several short measurements with n_threads threads and the kernels
 * of `isa`; about a quarter of a second. */
ak_status ak_roofline_measure(enum ak_isa isa, unsigned n_threads, struct ak_roofline *out, struct ak_error *error);

#endif

/* What this machine can do: the figures that speed is quoted against. */
#ifndef AK_CPU_ROOFLINE_H
#define AK_CPU_ROOFLINE_H

#include "base/error.h"
#include "cpu/kernels.h"

/* All threads together; 0: not measured, or the machine cannot do it. */
struct ak_cpu_roofline {
    /* from memory, private and on huge pages where the system gives them */
    double read_bytes_per_second;
    double int8_ops_per_second; /* multiplications and additions, also of the next two */
    double f32_ops_per_second;
    double bf16_ops_per_second;
    double clock_hz; /* of one core, while all threads run */
};

enum {
    AK_CPU_MEASURE_READ = AKUNU_MEASURE_READ,
    AK_CPU_MEASURE_INT8 = AKUNU_MEASURE_INT8,
    AK_CPU_MEASURE_F32 = AKUNU_MEASURE_F32,
    AK_CPU_MEASURE_BF16 = AKUNU_MEASURE_BF16,
    AK_CPU_MEASURE_CLOCK = AKUNU_MEASURE_CLOCK,
    AK_CPU_MEASURE_ALL = AKUNU_MEASURE_ALL
};

/* The best of several short measurements with n_threads threads and the kernels
 * of `isa`; a tenth of a second or less for each bit of `what`. */
ak_status ak_cpu_measure_roofline(enum ak_cpu_isa isa, unsigned n_threads, unsigned what,
                                  struct ak_cpu_roofline *out, struct ak_error *error);

#endif

/* AK_SETTER and AK_SET: macros that add a source's kernels to the table of its ISA, so that
 * kernels can be static. AK_SETTER(file) defines a function ak_<isa>_set_<file>, which the ISA's
 * fill.c calls with AK_SET(file, k). All but the scalar ones are compiled with the ISA's flags
 * and with AK_ISA, its name.
 *
 * The sources in tmpl/ belong to several ISAs. An ISA with such sources defines AK_VEC_H, its
 * vectors of floats ("engine/cpu/avx2/vec.h"), or AK_STEP_H, its multiply step
 * ("engine/cpu/avx2/step.h"), or both. */
#ifndef AK_ENGINE_CPU_SETTER_H
#define AK_ENGINE_CPU_SETTER_H

#include "engine/cpu/generic.h"

#ifndef AK_ISA
#define AK_ISA scalar /* built with the rest of the library */
#endif

#define AK_SETTER_NAME_(isa, file) ak_##isa##_set_##file
#define AK_SETTER_NAME(isa, file) AK_SETTER_NAME_(isa, file)

/* Begins the function that sets the kernels of a file. */
#define AK_SETTER(file)                                                                            \
    void AK_SETTER_NAME(AK_ISA, file)(struct ak_cpu_kernels * k);                                  \
    void AK_SETTER_NAME(AK_ISA, file)(struct ak_cpu_kernels * k)

/* Sets the kernels of a file in the table k. */
#define AK_SET(file, k)                                                                            \
    do {                                                                                           \
        void AK_SETTER_NAME(AK_ISA, file)(struct ak_cpu_kernels *);                                \
        AK_SETTER_NAME(AK_ISA, file)(k);                                                           \
    } while (0)

#endif

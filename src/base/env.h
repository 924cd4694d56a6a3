/* The one place of the library that reads the environment.
 *
 * AKUNU_CPU        highest ISA bundle to use (scalar, avx2, avxvnni, avx512, amx, neon, neon_i8mm)
 * AKUNU_THREADS    number of threads where the host gives none
 * AKUNU_CACHE_DIR  folder of the packed cache where the host gives none; without
 *                  it XDG_CACHE_HOME and HOME tell
 * AKUNU_BACKEND    backend to use where the host names none (cpu, opencl)
 * AKUNU_DEVICE     the same of its device
 * AKUNU_OPENCL     file name of the OpenCL loader, read when one is first wanted
 * AKUNU_BLAS       file name of the OpenBLAS to load where one is wanted
 * All are read when a model is loaded or a session is made, never later. */
#ifndef AK_BASE_ENV_H
#define AK_BASE_ENV_H

/* The value of a variable named above, or NULL where unset or empty. */
const char *ak_env(const char *name);

#endif

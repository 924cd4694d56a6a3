/* Access to the operating system: clock, small text files under /proc and /sys, environment
 * variables. It serves timing, detection of the machine, and settings that the host leaves open. */
#ifndef AK_BASE_SYSTEM_H
#define AK_BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds of the monotonic clock. */
double ak_seconds(void);

/* Reads up to `capacity` − 1 bytes of the file at `path` as a string. If there is nothing to read,
 * returns false and sets `text` to "". */
bool ak_system_read(const char *path, char *text, size_t capacity);

/* Reads and skips the first range [*first, *last] of a list of CPUs such as "0-7,64-71". False:
 * the list is empty. */
bool ak_system_parse_range(const char **list, unsigned long *first, unsigned long *last);

/* ---- Environment -------------------------------------------------------- */
/* The library reads these environment variables, each when it needs the setting:
 *
 * AKUNU_CPU        highest ISA to use, a name of src/engine/cpu/isa.def
 * AKUNU_THREADS    number of threads if the host sets none
 * AKUNU_CACHE_DIR  cache folder if the host names none; without it XDG_CACHE_HOME and HOME are
 *                  used
 * AKUNU_PROFILE    chip profile to use if the host names none; without it the system's file and
 *                  the user's, found by XDG_CONFIG_HOME and HOME, are used
 * AKUNU_BACKEND    backend to use if the host names none (cpu, opencl)
 * AKUNU_DEVICE     device to use if the host names none
 * AKUNU_OPENCL     file name of the OpenCL loader
 * AKUNU_BLAS       file name of the OpenBLAS to load
 * AKUNU_MPI        file name of the Open MPI to load
 *
 * Returns the value of a variable; NULL if unset or empty. */
const char *ak_env(const char *name);

#endif

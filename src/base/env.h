/* The one place of the library that reads the environment.
 *
 * AKUNU_CPU        highest ISA bundle to use (scalar, avx2, avx512, neon)
 * AKUNU_THREADS    number of threads where the host gives none
 * Both are read when a model is loaded or a session is made, never later. */
#ifndef AK_BASE_ENV_H
#define AK_BASE_ENV_H

/* The value of a variable named above, or NULL where unset or empty. */
const char *ak_env(const char *name);

#endif

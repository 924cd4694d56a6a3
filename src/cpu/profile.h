/* What the planner takes from the chip. A file can override each value; what
 * none does is as it was detected. No value changes a bit of a result, unless
 * rounding is relaxed. */
#ifndef AK_CPU_PROFILE_H
#define AK_CPU_PROFILE_H

#include "base/error.h"
#include "cpu/kernels.h"

/* 0: not chosen. */
struct ak_backend_profile {
    uint32_t threads;       /* else the physical cores */
    uint32_t prefill_chunk; /* tokens of one pass over a prompt; else 512 */
    /* The most tokens for which the kernels of few tokens are taken, by what the
     * weights are multiplied with; else AK_SKINNY_MAX, which is also the most. */
    uint32_t skinny_max[AK_CPU_ACT_TYPE_COUNT];
    bool blas[AK_CPU_ACT_TYPE_COUNT]; /* under --relaxed, prompts run through BLAS */
};

static inline uint32_t ak_backend_profile_skinny_max(const struct ak_backend_profile *p,
                                                     enum ak_cpu_act_format format)
{
    return p->skinny_max[format] ? p->skinny_max[format] : AK_SKINNY_MAX;
}

static inline uint32_t ak_backend_profile_prefill_chunk(const struct ak_backend_profile *p)
{
    return p->prefill_chunk ? p->prefill_chunk : 512;
}

/* ---- Files (profile_file.c) ------------------------------------------------------
 * YAML, as akunu-cli bench --tune writes it:
 *
 *     threads: 2             1 … 1024
 *     prefill_chunk: 256     1 … 65536
 *     scale32:               types with a scale for each 32 weights
 *       small_n: 8           1 … AK_SKINNY_MAX
 *       prefill: own         or blas: OpenBLAS, where rounding is relaxed
 *     scale256:              the K-types
 *     float:                 F32, F16, BF16 and types without packed kernels
 *
 * Everything may be left out. An unknown key, a key given twice, a bad value:
 * AKUNU_ERROR_ARGUMENT, with the line and what may stand there. */

/* Puts what the `bytes` of `text` say over *profile, which is not touched on
 * failure. `name` stands for the file in messages. */
ak_status ak_backend_profile_parse(const char *name, const void *text, size_t bytes,
                                   struct ak_backend_profile *profile, struct ak_error *error);

/* The same for a file. */
ak_status ak_backend_profile_read(const char *path, struct ak_backend_profile *profile,
                                  struct ak_error *error);

/* Reads the file at `path` into *out; where it is NULL, the system's file and then
 * the user's, where they exist. Says in the log which. */
ak_status ak_backend_profile_find(const char *path, const struct ak_log *log,
                                  struct ak_backend_profile *out, struct ak_error *error);

/* Writes *profile to `path`, at once or not at all. */
ak_status ak_backend_profile_write(const struct ak_backend_profile *profile, const char *path,
                                   struct ak_error *error);

#endif

/* Chip profile: tuned values of a machine, read from YAML files: threads, prompt chunk, limits of
 * kernels, prefetch distances, cost of a token. The user's file overrides the system's, value by
 * value. A profile never changes results, unless rounding is relaxed. engine/session/ reads it,
 * engine/cpu/ applies its kernel limits, api/profile.c writes it. engine/cpu/tune.c and
 * apps/cli/bench/bench_tune.c measure on request. engine/cpu/calibrate.c measures at a model's
 * first load, and engine/session/calibration.c keeps its values in the cache folder. */
#ifndef AK_ENGINE_BACKEND_PROFILE_H
#define AK_ENGINE_BACKEND_PROFILE_H

#include "engine/backend/shapes.h"
#include "base/chip.h"
#include "base/error.h"
#include "files/quant/type.h"

/* Values of ak_backend_profile.prefetch: AK_BACKEND_PREFETCH_OFF, or bytes, up to the maximum. */
enum { AK_BACKEND_PREFETCH_OFF = 1, AK_BACKEND_PREFETCH_MAX = 1 << 20 };

/* 0: not set. */
struct ak_backend_profile {
    uint32_t threads;       /* unset: the physical cores */
    uint32_t prefill_chunk; /* tokens of one pass over a prompt; unset: 512 */
    /* cost of one more token in a pass of up to AK_SKINNY_MAX, in thousandths of a pass of one
     * token; unset: 100 */
    uint32_t token_price;
    /* skinny GEMM: up to this many tokens; unset: AK_SKINNY_MAX, the largest value */
    uint32_t skinny_max[AK_BACKEND_PROFILE_CLASSES];
    bool blas[AK_BACKEND_PROFILE_CLASSES]; /* with relaxed rounding, prompts run through BLAS */
    /* prefetch distance of a type's weight stream in GEMV and in skinny GEMM */
    uint32_t prefetch[AK_QUANT_COUNT][2];
};

/* `class`: enum ak_backend_profile_class, or the CPU's activation format of the same value. */
static inline uint32_t ak_backend_profile_skinny_max(const struct ak_backend_profile *p,
                                                     unsigned class)
{
    return p->skinny_max[class] ? p->skinny_max[class] : AK_SKINNY_MAX;
}

/* The value of `prefetch` if none is set. It loses least over the machines of bench/notes. */
static inline uint32_t ak_backend_prefetch_default(enum ak_quant_type type, size_t n)
{
    (void)type, (void)n;
    return 8192;
}

static inline size_t ak_backend_prefetch_bytes(uint32_t value)
{
    return value == AK_BACKEND_PREFETCH_OFF ? 0 : value;
}

/* Prefetch distance for products of n tokens with weights of a type, in bytes; 0: none. */
static inline size_t ak_backend_profile_prefetch(const struct ak_backend_profile *p,
                                                 enum ak_quant_type type, size_t n)
{
    uint32_t value = p->prefetch[type][n > 1];
    return ak_backend_prefetch_bytes(value ? value : ak_backend_prefetch_default(type, n));
}

static inline uint32_t ak_backend_profile_prefill_chunk(const struct ak_backend_profile *p)
{
    return p->prefill_chunk ? p->prefill_chunk : 512;
}

static inline double ak_backend_profile_token_price(const struct ak_backend_profile *p)
{
    return p->token_price ? p->token_price / 1000.0 : 0.1;
}

/* ---- Files (profile.c) -------------------------------------------------- */
/* YAML, as akunu-cli bench --tune writes it:
 *
 *     machine: "AMD EPYC, family 25, model 17"   ak_chip.identity; another machine ignores the file
 *     threads: 2             1 … 1024
 *     prefill_chunk: 256     1 … 65536
 *     token_price: 60        1 … 1000
 *     scale32:               types with a scale per 32 weights
 *       small_n: 8           skinny_max: 1 … AK_SKINNY_MAX; with the maximum, an ISA's skinny
 *                            kernels may serve more tokens (dot_tiles_tokens_max)
 *       prefill: own         or blas: OpenBLAS, if rounding is relaxed
 *     scale256:              the K-types
 *     float:                 F32, F16, BF16 and types without packed kernels
 *     prefetch:              bytes ahead of a stream of weights; 0: none
 *       Q4_K: [4096, 0]      with one token, with more
 *
 * All keys are optional. AKUNU_ERROR_ARGUMENT for unknown or repeated keys and bad values, with the
 * line and what is expected. */

/* Sets what the `bytes` of `text` give in *profile, and `machine`, empty for any; after a failure
 * *profile is unchanged. `name` is the file's name in messages. */
ak_status ak_backend_profile_parse(const char *name, const void *text, size_t bytes,
                                   struct ak_backend_profile *profile,
                                   char machine[AK_CHIP_IDENTITY_BYTES], struct ak_error *error);

/* The same from a file. Logs that it was read, or a warning that it is for another machine: then
 * *profile is unchanged. */
ak_status ak_backend_profile_read(const char *path, const struct ak_log *log,
                                  struct ak_backend_profile *profile, struct ak_error *error);

/* Reads the file at `path` into *out. NULL: the system's file, then the user's, if they exist. Logs
 * which it read. */
ak_status ak_backend_profile_find(const char *path, const struct ak_log *log,
                                  struct ak_backend_profile *out, struct ak_error *error);

/* Sets what `over` sets. */
void ak_backend_profile_merge(struct ak_backend_profile *profile,
                              const struct ak_backend_profile *over);

/* Writes the set values as the text of a file; the caller frees *text by ak_free. */
ak_status ak_backend_profile_print(const struct ak_backend_profile *profile, char **text,
                                   struct ak_error *error);

/* Writes *profile to `path`, atomically. */
ak_status ak_backend_profile_write(const struct ak_backend_profile *profile, const char *path,
                                   struct ak_error *error);

#endif

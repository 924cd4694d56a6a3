/* akunu/measure.h: the part of the public API for tuning and benchmarks, as in akunu-cli bench. It
 * reports the machine and its rooflines, a model's dispatch table and memory, and a session's
 * counters and operation times. It measures and writes chip profiles. Included by akunu.h; compiles
 * alone. */
#ifndef AKUNU_MEASURE_H
#define AKUNU_MEASURE_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The machine -------------------------------------------------------- */
/* The best ISA bundle of this machine and build ("avx512"). */
AKUNU_API const char *akunu_cpu_best(void);

/* ISA bundle number `i` that this machine and build can run, from "scalar" to the best; NULL past
 * the end. */
AKUNU_API const char *akunu_cpu_name(size_t i);

/* Why `cpu` of akunu_load_params cannot be `name`, as a clause without a period ("this build does
 * not contain its kernels"): there is no such bundle, this build lacks it, or this machine cannot
 * run it. NULL if it can. */
AKUNU_API const char *akunu_cpu_problem(const char *name);

/* The machine, as the system describes it. */
struct akunu_chip {
    char name[64];             /* "": unknown */
    uint32_t cores;            /* physical ones that this process may run on */
    uint32_t hardware_threads; /* of these cores */
    uint32_t numa_nodes;
    /* seen by one core, shared or not; 0: none, or unknown */
    uint64_t l1d_bytes, l2_bytes, l3_bytes;
    uint64_t memory_bytes;
};
AKUNU_API enum akunu_status akunu_chip_get(struct akunu_chip *out, size_t size);

/* ---- Rooflines ---------------------------------------------------------- */
/* Rooflines of this machine with all n_threads together: bytes per second read from memory, and
 * operations per second, where a multiply-add counts as two. */
struct akunu_roofline {
    double read_bytes_per_second, int8_ops_per_second;
    double f32_ops_per_second;
    double bf16_ops_per_second; /* 0: no instruction for it, or `cpu` has none */
    double clock_hz;            /* of one core */
};
enum {
    AKUNU_MEASURE_READ = 1,
    AKUNU_MEASURE_INT8 = 2,
    AKUNU_MEASURE_F32 = 4,
    AKUNU_MEASURE_BF16 = 8,
    AKUNU_MEASURE_CLOCK = 16,
    AKUNU_MEASURE_ALL = 31
};
/* Measures the quantities in `what`; the rest of *out is 0. Takes at most a tenth of a second per
 * bit. cpu: ISA bundle to measure; NULL: the best available. */
AKUNU_API enum akunu_status akunu_roofline_measure(const char *cpu, unsigned n_threads,
                                                   unsigned what, struct akunu_roofline *out,
                                                   size_t size);

/* The same for what a model runs on: the CPU with the model's bundle, or a device, of which only
 * reading is measured. If both have layers, read_bytes_per_second is that of a pass, which reads
 * the weights of both in turn. */
AKUNU_API enum akunu_status akunu_roofline_measure_model(const struct akunu_model *model,
                                                         unsigned n_threads, unsigned what,
                                                         struct akunu_roofline *out, size_t size);

/* All quantities with the best bundle. */
AKUNU_API enum akunu_status akunu_roofline_measure_all(unsigned n_threads,
                                                       struct akunu_roofline *out, size_t size);

/* ---- Chip profiles ------------------------------------------------------ */
/* A chip profile: the best settings of a machine. A member that is 0 has its default, which its
 * comment gives. akunu_profile_write saves it as YAML, which akunu_model_load reads
 * (akunu_load_params.profile). It changes no bit of a result, unless rounding is relaxed. */
struct akunu_profile {
    size_t size;
    uint32_t threads;       /* default: the number of physical cores */
    uint32_t prefill_chunk; /* tokens of a pass over a prompt, if the session sets no batch (512) */
    /* max. tokens of a pass that uses the skinny GEMM kernels (16), for weights with a scale per
     * 32, for K-types, for floats */
    uint32_t skinny_scale32, skinny_scale256, skinny_float;
    /* Whether prompts run through OpenBLAS for these weights if rounding is relaxed. */
    bool blas_scale32, blas_scale256, blas_float;
};
AKUNU_API void akunu_profile_default(struct akunu_profile *profile, size_t size);

/* Measures which kernels are best for how many tokens, and sets skinny_… and blas_… that differ
 * from the defaults; the rest of *out is 0. The fastest of n_runs runs counts: 5 are reliable and
 * take some seconds, 1 is a quick look. cpu as in akunu_roofline_measure; progress may be NULL. */
AKUNU_API enum akunu_status akunu_profile_tune(const char *cpu, unsigned n_threads, unsigned n_runs,
                                               akunu_fraction_fn *progress, void *user,
                                               struct akunu_profile *out, size_t size);

/* Writes the file at `path` atomically; fields that are 0 are omitted. The file names this machine:
 * another one ignores it, with a warning in its log. */
AKUNU_API enum akunu_status akunu_profile_write(const struct akunu_profile *profile,
                                                const char *path);

/* The chip profile in use, as YAML: the user's settings, completed by values measured at the first
 * load on this machine. Lives with the model. */
AKUNU_API const char *akunu_model_profile(const struct akunu_model *model);

/* ---- A model and a session ---------------------------------------------- */
/* The dispatch table as text, for people and tests. sampled: the variant that ends with a Gumbel
 * step; NULL for an encoder. Lives with the model. */
AKUNU_API const char *akunu_model_dump(const struct akunu_model *model, bool sampled);

struct akunu_memory {
    uint64_t mapped; /* the model file, in the page cache */
    /* weights in the kernels' layout: memory of this process, and the packed cache */
    uint64_t packed;
    uint64_t kv; /* the KV pool of this session */
    /* activations of this session, and the panel cache of a small encoder with float weights */
    uint64_t scratch;
    uint64_t tokenizer; /* vocabulary */
    uint64_t table;     /* dispatch tables and what the backend prepared */
    uint64_t cached;    /* part of `packed`: mapped from the cache, shared between processes */
};
/* session may be NULL: then kv and scratch are 0. */
AKUNU_API enum akunu_status akunu_memory_report(const struct akunu_model *model,
                                                struct akunu_session *session,
                                                struct akunu_memory *out, size_t size);

/* How often each kind of matrix kernel ran in this session, over all threads: GEMV, skinny GEMM,
 * GEMM. For tests and profiles. */
struct akunu_counters {
    uint64_t passes, tokens, gemv, skinny, gemm;
};
AKUNU_API enum akunu_status akunu_session_counters(struct akunu_session *session,
                                                   struct akunu_counters *out, size_t size);

/* Time of one kind of operation in the passes of a session, since times were switched on. */
struct akunu_time {
    const char *name; /* "attention", "linear qkv": lives with the library */
    uint64_t calls;   /* over all layers and passes */
    /* mean of the threads: at work, and waiting for the other threads after it */
    double seconds, wait_seconds;
    double bytes; /* of weights, or of keys and values, that were read; 0: not counted */
    double ops;   /* multiplications and additions of these products; 0: not counted */
};
/* Switches times on, from 0, or off. AKUNU_ERROR_UNSUPPORTED: the backend has none. */
AKUNU_API enum akunu_status akunu_session_time(struct akunu_session *session, bool on);
/* Row i; AKUNU_ERROR_ARGUMENT past the last one. If a row has no calls, its other members are 0. */
AKUNU_API enum akunu_status akunu_session_time_at(struct akunu_session *session, size_t i,
                                                  struct akunu_time *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif

/* akunu/measure.h: tuning and benchmarks. It describes the machine and measures its rooflines,
 * tunes and writes chip profiles, and reports a model's dispatch table and memory and a session's
 * counters and times. akunu-cli bench uses all of it. Included by akunu.h; compiles alone. */
#ifndef AKUNU_MEASURE_H
#define AKUNU_MEASURE_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The machine -------------------------------------------------------- */
/* Name of the best ISA that this machine and build can run ("avx512"). */
AKUNU_API const char *akunu_cpu_best(void);

/* Name of ISA i that this machine and build can run, from "scalar" to the best one; NULL
 * past the end. */
AKUNU_API const char *akunu_cpu_name(size_t i);

/* NULL if akunu_load_params.cpu can be `name`; otherwise a clause that says why not: "this build
 * does not contain its kernels". */
AKUNU_API const char *akunu_cpu_problem(const char *name);

/* The machine, as the operating system describes it. */
struct akunu_chip {
    char name[64];             /* "": unknown */
    uint32_t cores;            /* physical cores that this process may run on */
    uint32_t hardware_threads; /* of these cores */
    uint32_t numa_nodes;
    /* caches that one core can use, shared or not; 0: none, or unknown */
    uint64_t l1d_bytes, l2_bytes, l3_bytes;
    uint64_t memory_bytes;
};
AKUNU_API enum akunu_status akunu_get_chip(struct akunu_chip *chip, size_t size);

/* ---- Rooflines ---------------------------------------------------------- */
/* What n_threads threads reach together: bytes per second read from memory, and operations per
 * second, where a multiply-add counts as two. */
struct akunu_roofline {
    double read_bytes_per_second, int8_ops_per_second;
    double f32_ops_per_second;
    double bf16_ops_per_second; /* 0: the ISA has no instruction for it */
    double clock_hz;            /* clock of one core */
};
/* Bits of `what`: the quantities to measure. */
enum {
    AKUNU_MEASURE_READ = 1,
    AKUNU_MEASURE_INT8 = 2,
    AKUNU_MEASURE_F32 = 4,
    AKUNU_MEASURE_BF16 = 8,
    AKUNU_MEASURE_CLOCK = 16,
    AKUNU_MEASURE_ALL = 31
};
/* Measures the quantities in `what` and sets the others to 0. Takes at most a tenth of a second for
 * each. cpu: ISA to measure; NULL: the best one. n_threads: at least 1. */
AKUNU_API enum akunu_status akunu_roofline_measure(const char *cpu, unsigned n_threads,
                                                   unsigned what, struct akunu_roofline *roofline,
                                                   size_t size);

/* Measures what a model runs on: the CPU with the model's ISA, or a device, of which only
 * reading is measured. If CPU and device both have layers, read_bytes_per_second is that of a pass,
 * which reads the weights of one after those of the other. */
AKUNU_API enum akunu_status akunu_roofline_measure_model(const struct akunu_model *model,
                                                         unsigned n_threads, unsigned what,
                                                         struct akunu_roofline *roofline,
                                                         size_t size);

/* ---- Chip profiles ------------------------------------------------------ */
/* The best settings for a machine. 0 means the default, which a comment gives in parentheses.
 * akunu_profile_write saves a profile as YAML, and akunu_model_load reads it
 * (akunu_load_params.profile). A profile changes no bit of a result unless rounding is relaxed. */
struct akunu_profile {
    size_t size;
    uint32_t threads;       /* (the number of physical cores) */
    uint32_t prefill_chunk; /* tokens of a pass over a prompt, if the session sets no batch (512) */
    /* Largest pass, in tokens, for which skinny GEMM is used (16): for weights with a scale per 32
     * weights, for K-types, and for floats. */
    uint32_t skinny_scale32, skinny_scale256, skinny_float;
    /* for the same kinds of weights: prompts run through OpenBLAS if rounding is relaxed (false) */
    bool blas_scale32, blas_scale256, blas_float;
};
AKUNU_API void akunu_profile_default(struct akunu_profile *profile, size_t size);

struct akunu_tune_params {
    size_t size;
    const char *cpu;    /* ISA; NULL: the best one */
    unsigned n_threads; /* at least 1 (1) */
    unsigned n_runs;    /* runs of each kernel, of which the fastest counts; at least 1 (5) */
    akunu_fraction_fn *progress; /* NULL: none */
    void *user;                  /* passed to `progress` */
};
AKUNU_API void akunu_tune_params_default(struct akunu_tune_params *params, size_t size);

/* Measures which kernels are best for which number of tokens. Sets the skinny_… and blas_… members
 * that differ from their defaults, and the others to 0. Five runs are reliable and take a few
 * seconds; one run is a quick look. */
AKUNU_API enum akunu_status akunu_profile_tune(const struct akunu_tune_params *params,
                                               struct akunu_profile *profile, size_t size);

/* Writes the file at `path` atomically, without members that are 0. The file names this machine:
 * another machine ignores it and logs a warning. */
AKUNU_API enum akunu_status akunu_profile_write(const struct akunu_profile *profile,
                                                const char *path);

/* The chip profile that the model uses, as YAML: the user's settings, and for the rest the values
 * that were measured at the first load on this machine. */
AKUNU_API const char *akunu_model_profile(const struct akunu_model *model);

/* ---- A model and a session ---------------------------------------------- */
/* The dispatch table as text, for people and tests. sampled: the variant in which the backend
 * samples the token; NULL for an encoder. */
AKUNU_API const char *akunu_model_dump(const struct akunu_model *model, bool sampled);

/* Memory of a model and a session, in bytes. */
struct akunu_memory {
    uint64_t mapped;    /* the model file, in the page cache */
    uint64_t packed;    /* weights in the kernels' layout, in memory and in the packed cache */
    uint64_t kv;        /* KV cache of the session */
    uint64_t scratch;   /* activations of the session, and a small float encoder's panel cache */
    uint64_t tokenizer; /* vocabulary */
    uint64_t table;     /* dispatch tables, and what the backend prepared from them */
    uint64_t cached;    /* part of `packed` that is mapped from the cache and shared by processes */
};
/* session may be NULL: kv and scratch are then 0. */
AKUNU_API enum akunu_status akunu_model_get_memory(const struct akunu_model *model,
                                                   struct akunu_session *session,
                                                   struct akunu_memory *memory, size_t size);

/* Passes and tokens that the session has run, and how often each kind of matrix kernel ran in it,
 * over all threads. For tests and profiles. */
struct akunu_counters {
    uint64_t passes, tokens, gemv, skinny, gemm;
};
AKUNU_API enum akunu_status akunu_session_get_counters(struct akunu_session *session,
                                                       struct akunu_counters *counters,
                                                       size_t size);

/* Time of one kind of operation, over the passes since akunu_session_set_timing. */
struct akunu_time {
    const char *name; /* "attention", "linear qkv"; lives as long as the program */
    uint64_t calls;   /* over all layers and passes; if 0, the members below are 0 */
    /* mean over the threads: working, and waiting afterwards for the other threads */
    double seconds, wait_seconds;
    double bytes; /* of weights, or of keys and values, that were read; 0: not counted */
    double ops;   /* multiplications and additions of products; 0: not counted */
};
/* Starts to measure times, from 0, or stops. AKUNU_ERROR_UNSUPPORTED: the backend cannot. */
AKUNU_API enum akunu_status akunu_session_set_timing(struct akunu_session *session, bool on);
/* Kind of operation number i. AKUNU_ERROR_ARGUMENT: i is past the end. */
AKUNU_API enum akunu_status akunu_session_get_time(struct akunu_session *session, size_t i,
                                                   struct akunu_time *time, size_t size);

#ifdef __cplusplus
}
#endif

#endif

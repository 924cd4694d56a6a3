/* Small models of tests/data/models with the logits and continuations that must come out of them.
 * Made by scripts of tests/golden; models.py there describes the files. */
#ifndef AK_TESTS_GOLDEN_MODEL_H
#define AK_TESTS_GOLDEN_MODEL_H

#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"

enum { GOLDEN_TOKENS = 96, GOLDEN_VOCAB = 512, GOLDEN_CONTEXT = 256 };

struct golden {
    const char *name;
    /* measured with keys and values of these types: NMSE of the logits, which is the sum of
     * squared differences over the sum of squares */
    double f32, f16;
    double lead; /* the argmax is asked for where its lead is more */
};

/* F32 and BF16 weights are computed with in float32; quantized ones with 8-bit
 * activations, for which llama.cpp's own distance is 2e-4 to 9e-4. */
static const struct golden goldens[] = {
    { "llama-f32", 7.2e-13, 2.3e-7, 0.01 },
    { "qwen2", 8.4e-13, 4.1e-7, 0.01 },
    { "qwen3", 5.6e-13, 1.6e-7, 0.01 },
    { "mistral", 6.4e-13, 2.3e-7, 0.01 },
    { "smollm3", 7.3e-13, 6.4e-7, 0.01 },
    { "granite", 3.1e-14, 2.2e-9, 0.01 },
    { "gemma", 7.2e-14, 1.7e-8, 0.01 },
    { "gemma2", 8.0e-14, 3.1e-8, 0.01 },
    { "gemma3", 1.1e-13, 3.8e-8, 0.01 },
    { "phi3", 5.9e-13, 5.2e-7, 0.01 },
    { "gpt2", 1.6e-13, 5.4e-8, 0.01 },
    { "olmo2", 1.4e-13, 9.8e-8, 0.01 },
    { "mixtral", 4.5e-13, 3.7e-7, 0.01 },
    { "qwen2moe", 2.3e-13, 2.6e-7, 0.01 },
    { "gpt-oss", 4.6e-13, 5.2e-7, 0.01 },
    { "lfm2", 1.7e-13, 3.6e-10, 0.01 },
    { "gpt-oss-mxfp4", 2.12e-4, 2.24e-4, 0.2 },
    /* whose folders are not to be made of GGUF: data/folders has them */
    { "qwen3next", 8.5e-13, 5.4e-9, 0.01 },
    { "qwen35", 7.7e-13, 3.0e-9, 0.01 },
    { "qwen35moe", 9.9e-13, 5.5e-9, 0.01 },
    /* of GGUF alone */
    { "mixed", 2.25e-4, 2.20e-4, 0.2 },
};
enum {
    N_GOLDENS = sizeof goldens / sizeof *goldens,
    N_STORED_FOLDERS = 3,
    N_FOLDER_GOLDENS = N_GOLDENS - 1 - N_STORED_FOLDERS
};

/* Models that differ in what a session does with them: plain, with windows, experts, states of
 * convolutions and of the delta rule, 8-bit activations. */
static const char *const golden_kinds[] = { "llama-f32", "gemma2", "qwen2moe",
                                            "lfm2",      "qwen35", "mixed" };
enum { N_GOLDEN_KINDS = sizeof golden_kinds / sizeof *golden_kinds };

static inline bool golden_is_few(void)
{
    const char *few = getenv("AKUNU_TEST_FEW");
    return few && few[0] == '1';
}

/* How many models a loop takes: all, or with AKUNU_TEST_FEW=1 one of each kind. */
static inline int golden_count(void)
{
    return golden_is_few() ? (int)N_GOLDEN_KINDS : (int)N_GOLDENS;
}

/* Model i of golden_count(). */
static inline const struct golden *golden_at(int i)
{
    for (size_t j = 0; golden_is_few() && j < N_GOLDENS; j++)
        if (strcmp(goldens[j].name, golden_kinds[i]) == 0)
            return &goldens[j];
    return &goldens[i];
}

static const char *golden_path(const char *name, const char *suffix, char path[4096])
{
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, 4096, "%s/models/%s%s", data, name, suffix);
    return path;
}

/* Another backend than the CPU's, which the environment may ask for. */
static inline bool golden_is_elsewhere(void)
{
    const char *backend = getenv("AKUNU_BACKEND");
    return backend && strcmp(backend, "cpu") != 0;
}

static inline double golden_nmse(const float *got, const float *want, size_t n)
{
    double difference = 0.0, whole = 0.0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        whole += (double)want[i] * (double)want[i];
    }
    return difference / whole;
}

/* The NMSE that is allowed where `measured` was measured. The CPU's bits, and so the error, are
 * the same on every machine: sines and exponentials of another C library are the only reason for
 * any room. Activations of 8 bits make errors of their own, beside which less room shows faults.
 * Another backend has `elsewhere`. */
static inline double golden_bound(double measured, double elsewhere)
{
    return golden_is_elsewhere() ? elsewhere : measured * (measured > 1e-5 ? 1.25 : 4.0);
}

/* The CPU's bits depend on nothing; what another backend gives is near enough. */
static inline bool golden_is_same(const float *got, const float *want, size_t n)
{
    return golden_is_elsewhere() ? golden_nmse(got, want, n) <= 1e-6 :
                                   memcmp(got, want, n * sizeof *got) == 0;
}

static inline struct akunu_model *golden_load(const char *name, const char *cpu)
{
    char path[4096];
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.cpu = cpu;
    params.n_threads = 2;
    struct akunu_model *model = akunu_model_load(golden_path(name, ".gguf", path), &params);
    ck_assert_msg(model != NULL, "%s: %s", name, akunu_last_error());
    return model;
}

static inline struct akunu_session_params golden_params(unsigned n_threads, uint32_t batch,
                                                        enum akunu_kv_type kv)
{
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.context = GOLDEN_CONTEXT;
    params.batch = batch;
    params.max_sequences = 4;
    params.n_threads = n_threads;
    params.k_type = params.v_type = kv;
    return params;
}

static inline struct akunu_session *golden_session(const struct akunu_model *model,
                                                   unsigned n_threads, uint32_t batch,
                                                   enum akunu_kv_type kv)
{
    struct akunu_session_params params = golden_params(n_threads, batch, kv);
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

struct golden_text {
    size_t n_prompt, n_greedy;
    akunu_token ids[GOLDEN_CONTEXT]; /* the prompt, then the greedy continuation */
    double leads[GOLDEN_TOKENS];
    size_t n_rows, rows[GOLDEN_TOKENS]; /* tokens whose logits are stored; 0: all of the prompt's */
};

/* The data of a .npy of version 1: little-endian floats behind the header. */
static inline float *golden_read_logits(const char *name, size_t n)
{
    char path[4096];
    unsigned char head[10];
    float *values = malloc(n * sizeof *values);
    FILE *f = fopen(golden_path(name, ".npy", path), "rb");
    ck_assert_msg(f != NULL && values != NULL, "%s cannot be opened", path);
    ck_assert_uint_eq(fread(head, 1, sizeof head, f), sizeof head);
    ck_assert_mem_eq(head, "\x93NUMPY\x01", 7);
    ck_assert_int_eq(fseek(f, head[8] + 256 * head[9], SEEK_CUR), 0);
    ck_assert_uint_eq(fread(values, sizeof *values, n, f), n);
    ck_assert_int_eq(fgetc(f), EOF);
    fclose(f);
    return values;
}

static inline void golden_read_text(const char *name, struct golden_text *text)
{
    char path[4096];
    FILE *f = fopen(golden_path(name, ".txt", path), "r");
    ck_assert_msg(f != NULL, "%s cannot be opened", path);
    ck_assert_int_eq(fscanf(f, " prompt %zu", &text->n_prompt), 1);
    ck_assert_uint_le(text->n_prompt, GOLDEN_CONTEXT);
    for (size_t i = 0; i < text->n_prompt; i++)
        ck_assert_int_eq(fscanf(f, "%d", &text->ids[i]), 1);
    ck_assert_int_eq(fscanf(f, " greedy %zu", &text->n_greedy), 1);
    ck_assert_uint_le(text->n_greedy, GOLDEN_TOKENS);
    ck_assert_uint_le(text->n_prompt + text->n_greedy, GOLDEN_CONTEXT);
    for (size_t i = 0; i < text->n_greedy; i++)
        ck_assert_int_eq(fscanf(f, "%d", &text->ids[text->n_prompt + i]), 1);
    ck_assert_int_eq(fscanf(f, " leads %lf", &text->leads[0]), 1);
    for (size_t i = 1; i < text->n_greedy; i++)
        ck_assert_int_eq(fscanf(f, "%lf", &text->leads[i]), 1);
    if (fscanf(f, " rows %zu", &text->n_rows) != 1)
        text->n_rows = 0;
    ck_assert_uint_le(text->n_rows, GOLDEN_TOKENS);
    for (size_t i = 0; i < text->n_rows; i++)
        ck_assert_int_eq(fscanf(f, "%zu", &text->rows[i]), 1);
    fclose(f);
}

#endif

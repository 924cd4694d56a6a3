/* Chip profiles: the file's format, hostile files, where they are looked for,
 * what they change and that they change no bit; detection and tuning. */
#include "engine/backend/profile.h"

#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/chip.h"
#include "base/mem.h"

static char machine[AK_CHIP_IDENTITY_BYTES]; /* of what was parsed last */

static ak_status parse(const char *text, struct ak_backend_profile *profile, struct ak_error *error)
{
    memset(error, 0, sizeof *error);
    return ak_backend_profile_parse("p.yaml", text, strlen(text), profile, machine, error);
}

static const char whole[] = "# a comment\n"
                            "threads: 3\n"
                            "prefill_chunk: 256\n"
                            "token_price: 75\n"
                            "machine: \"A, 1\"\n"
                            "scale32:\n  small_n: 5\n  prefill: own\n"
                            "scale256: { small_n: 16 }\n"
                            "float:\n  small_n: \"1\"\n"
                            "prefetch:\n  Q4_K: [0, 4096]\n  F16: [64, 1048576]\n";

START_TEST(good)
{
    struct ak_backend_profile p = { .threads = 9, .prefill_chunk = 9 };
    struct ak_error error;
    ck_assert_int_eq(parse(whole, &p, &error), AKUNU_OK);
    ck_assert_str_eq(machine, "A, 1");
    ck_assert_uint_eq(p.threads, 3);
    ck_assert_uint_eq(p.prefill_chunk, 256);
    ck_assert_double_eq(ak_backend_profile_token_price(&p), 0.075);
    ck_assert_uint_eq(p.skinny_max[AK_BACKEND_PROFILE_SCALE32], 5);
    ck_assert_uint_eq(p.skinny_max[AK_BACKEND_PROFILE_SCALE256], 16);
    ck_assert_uint_eq(p.skinny_max[AK_BACKEND_PROFILE_FLOAT], 1);
    ck_assert_uint_eq(ak_backend_profile_prefetch(&p, AK_QUANT_Q4_K, 1), 0);
    ck_assert_uint_eq(ak_backend_profile_prefetch(&p, AK_QUANT_Q4_K, 16), 4096);
    ck_assert_uint_eq(ak_backend_profile_prefetch(&p, AK_QUANT_F16, 1), 64);
    ck_assert_uint_eq(p.prefetch[AK_QUANT_Q8_0][0], 0);
    char *text;
    struct ak_backend_profile printed = { 0 };
    ck_assert_int_eq(ak_backend_profile_print(&p, &text, &error), AKUNU_OK);
    ck_assert_int_eq(parse(text, &printed, &error), AKUNU_OK);
    ck_assert_mem_eq(&printed, &p, sizeof p);
    struct ak_chip chip;
    ak_chip_detect(&chip);
    ck_assert_str_eq(machine, chip.identity);
    ak_free(text);
    /* a later file overrides key by key */
    ck_assert_int_eq(parse("scale32: {small_n: 7}\n", &p, &error), AKUNU_OK);
    ck_assert_uint_eq(p.skinny_max[AK_BACKEND_PROFILE_SCALE32], 7);
    ck_assert_uint_eq(p.threads, 3);
    ck_assert_str_eq(machine, "");
}
END_TEST

START_TEST(nothing)
{
    static const char *const texts[] = { "", "# only a comment\n", "---\n", "{}\n", "\n\n" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ak_backend_profile p = { 0 }, zero = { 0 };
        struct ak_error error;
        ck_assert_msg(parse(texts[i], &p, &error) == AKUNU_OK, "'%s': %s", texts[i], error.message);
        ck_assert_mem_eq(&p, &zero, sizeof p);
        for (int format = 0; format < AK_BACKEND_PROFILE_CLASSES; format++)
            ck_assert_uint_eq(ak_backend_profile_skinny_max(&p, (unsigned)format), AK_SKINNY_MAX);
        ck_assert_uint_eq(ak_backend_profile_prefill_chunk(&p), 512);
        ck_assert_double_eq(ak_backend_profile_token_price(&p), 0.1);
    }
}
END_TEST

#define LONG "0123456789abcdef0123456789abcdef"

START_TEST(refused)
{
    static const struct {
        const char *text, *named[3];
    } cases[] = {
        { "threads: 2\nthreds: 2\n", { "p.yaml:2:", "'threds'", "threads" } },
        { "scale32:\n  small_n: 2\n  small: 3\n", { "p.yaml:3:", "'small'", "small_n" } },
        { "threads: two\n", { "p.yaml:1:", "'two'", "1 to 1024" } },
        { "threads: [1, 2]\n", { "p.yaml:1:", "threads", "1 to 1024" } },
        { "\nthreads: {a: 1}\n", { "p.yaml:2:", "threads", "1 to 1024" } },
        { "threads:\n", { "p.yaml:1:", "threads", "1 to 1024" } },
        { "threads: 0\n", { "'0'", "1 to 1024", "" } },
        { "threads: -1\n", { "'-1'", "1 to 1024", "" } },
        { "threads: 1.5\n", { "'1.5'", "1 to 1024", "" } },
        { "threads: 1025\n", { "'1025'", "1 to 1024", "" } },
        { "threads: 18446744073709551617\n", { "18446744073709551617", "1 to 1024", "" } },
        { "threads: 0x2\n", { "'0x2'", "1 to 1024", "" } },
        { "prefill_chunk: 65537\n", { "'65537'", "1 to 65536", "" } },
        { "token_price: 0\n", { "'0'", "1 to 1000", "" } },
        { "scale256: {small_n: 17}\n", { "small_n", "'17'", "1 to 16" } },
        { "scale256: 17\n", { "scale256", "'17'", "keys" } },
        { "scale32: {prefill: mkl}\n", { "prefill", "mkl", "own or blas" } },
        { "scale32: {prefill: fast}\n", { "prefill", "'fast'", "own" } },
        { "threads: 1\nthreads: 2\n", { "p.yaml:2:", "threads", "twice" } },
        { "scale32: {small_n: 1, small_n: 2}\n", { "small_n", "twice", "" } },
        { "prefetch:\n  Q4_9: [1, 2]\n", { "p.yaml:2:", "'Q4_9'", "not a type" } },
        { "prefetch: 4096\n", { "prefetch", "'4096'", "keys" } },
        { "prefetch: {Q4_K: 4096}\n", { "Q4_K", "'4096'", "list of two" } },
        { "prefetch: {Q4_K: [1]}\n", { "Q4_K", "0 to 1048576", "" } },
        { "prefetch: {Q4_K: [1, 2, 3]}\n", { "Q4_K", "more than two", "" } },
        { "prefetch: {Q4_K: [0, 1048577]}\n", { "Q4_K", "'1048577'", "0 to 1048576" } },
        { "prefetch: {Q4_K: [0, 0], Q4_K: [1, 1]}\n", { "Q4_K", "twice", "" } },
        { "machine: [A]\n", { "machine", "a list", "processor" } },
        { "machine: A\nmachine: A\n", { "p.yaml:2:", "machine", "twice" } },
        { "machine: " LONG LONG LONG LONG "\n", { "machine", "0123456789", "processor" } },
        { "- threads\n", { "p.yaml:1:", "keys", "" } },
        { "threads\n", { "'threads'", "keys", "" } },
        { "threads: &a 1\nprefill_chunk: *a\n", { "p.yaml:2:", "an alias", "1 to 65536" } },
        { "threads: 1\n---\nthreads: 2\n", { "second document", "", "" } },
        { "prefill_chunk: 1\nthreads: '2\n", { "p.yaml:", "YAML", "" } },
        { "{ threads: 1", { "YAML", "", "" } },
        { "\x01\x02\xff\xfe", { "YAML", "", "" } },
        { "? [[[[", { "p.yaml:1:", "", "" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_backend_profile p = { .threads = 7 }, before = p;
        struct ak_error error;
        ck_assert_msg(parse(cases[i].text, &p, &error) == AKUNU_ERROR_ARGUMENT, "accepted: %s",
                      cases[i].text);
        ck_assert_int_eq(error.status, AKUNU_ERROR_ARGUMENT);
        ck_assert_mem_eq(&p, &before, sizeof p);
        for (int j = 0; j < 3; j++)
            ck_assert_msg(strstr(error.message, cases[i].named[j]), "\"%s\" does not name %s",
                          error.message, cases[i].named[j]);
    }
}
END_TEST

/* A file cut anywhere is read as far as it makes sense, or refused. */
START_TEST(truncated)
{
    size_t n_good = 0;
    for (size_t n = 0; n <= strlen(whole); n++) {
        struct ak_backend_profile p = { 0 };
        struct ak_error error = { 0 };
        char *text = malloc(n ? n : 1); /* its end is the end of what may be read */
        ck_assert_ptr_nonnull(text);
        memcpy(text, whole, n);
        ak_status status = ak_backend_profile_parse("p.yaml", text, n, &p, machine, &error);
        ck_assert(status == AKUNU_OK || status == AKUNU_ERROR_ARGUMENT);
        n_good += status == AKUNU_OK;
        free(text);
    }
    ck_assert_uint_gt(n_good, 0);
    ck_assert_uint_lt(n_good, strlen(whole));
}
END_TEST

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

struct folder {
    char path[32], file[128];
};

static struct folder new_folder(void)
{
    struct folder f = { .path = "/tmp/akunu-test-XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(f.path));
    snprintf(f.file, sizeof f.file, "%s/profile.yaml", f.path);
    return f;
}

static void remove_folder(const struct folder *f)
{
    unlink(f->file);
    ck_assert_int_eq(rmdir(f->path), 0); /* nothing else was left there */
}

START_TEST(huge)
{
    struct folder f = new_folder();
    struct ak_backend_profile p = { 0 };
    struct ak_error error = { 0 };
    size_t n = 1 << 20;
    char *text = malloc(n);
    ck_assert_ptr_nonnull(text);
    memset(text, '#', n);
    write_file(f.file, text, n);
    ck_assert_int_eq(ak_backend_profile_read(f.file, NULL, &p, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "65536"));
    memset(text, '[', n); /* depth */
    ck_assert_int_eq(ak_backend_profile_parse("p.yaml", text, 60000, &p, machine, &error),
                     AKUNU_ERROR_ARGUMENT);
    free(text);
    remove_folder(&f);
}
END_TEST

static void keep_warning(enum akunu_log_level level, const char *text, void *user)
{
    if (level == AKUNU_LOG_WARN)
        snprintf(user, 1024, "%s", text);
}

START_TEST(other_machine)
{
    struct folder f = new_folder();
    struct ak_backend_profile p = { .threads = 7 };
    struct ak_error error = { 0 };
    struct ak_chip chip;
    char warning[1024] = "", text[256];
    const struct ak_log log = { .fn = keep_warning, .user = warning };
    ak_chip_detect(&chip);
    ck_assert_uint_ge(strlen(chip.identity), strlen(chip.name));
    static const char toaster[] = "machine: a toaster\nthreads: 3\n";
    write_file(f.file, toaster, strlen(toaster));
    ck_assert_int_eq(ak_backend_profile_read(f.file, &log, &p, &error), AKUNU_OK);
    ck_assert_uint_eq(p.threads, 7);
    ck_assert_ptr_nonnull(strstr(warning, "a toaster"));
    ck_assert_ptr_nonnull(strstr(warning, chip.identity));
    warning[0] = '\0';
    snprintf(text, sizeof text, "threads: 3\nmachine: \"%s\"\n", chip.identity);
    write_file(f.file, text, strlen(text));
    ck_assert_int_eq(ak_backend_profile_read(f.file, &log, &p, &error), AKUNU_OK);
    ck_assert_uint_eq(p.threads, 3);
    ck_assert_str_eq(warning, "");
    remove_folder(&f);
}
END_TEST

START_TEST(no_file)
{
    struct folder f = new_folder();
    struct ak_backend_profile p = { 0 };
    struct ak_error error = { 0 };
    ck_assert_int_eq(ak_backend_profile_read(f.file, NULL, &p, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "profile.yaml"));
    ck_assert_int_eq(error.status, AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(mkfifo(f.file, 0600), 0);
    ck_assert_int_eq(ak_backend_profile_read(f.file, NULL, &p, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "pipe"));
    remove_folder(&f);
}
END_TEST

/* The user's file is found; a named one stands alone. */
START_TEST(search)
{
    struct folder f = new_folder(), user = new_folder();
    char below[64], named[160];
    struct ak_backend_profile p = { 0 };
    struct ak_error error = { 0 };
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *config_before = config ? strdup(config) : NULL, *home_before = home ? strdup(home) : NULL;
    snprintf(below, sizeof below, "%s/akunu", user.path);
    snprintf(named, sizeof named, "%s/profile.yaml", below);
    ck_assert_int_eq(mkdir(below, 0700), 0);
    setenv("XDG_CONFIG_HOME", user.path, 1);
    ck_assert_int_eq(ak_backend_profile_find(NULL, NULL, &p, &error), AKUNU_OK);
    ck_assert_uint_eq(p.prefill_chunk, 0);
    write_file(named, "prefill_chunk: 64\n", 18);
    ck_assert_int_eq(ak_backend_profile_find(NULL, NULL, &p, &error), AKUNU_OK);
    ck_assert_uint_eq(p.prefill_chunk, 64);
    write_file(f.file, "threads: 5\n", 11);
    ck_assert_int_eq(ak_backend_profile_find(f.file, NULL, &p, &error), AKUNU_OK);
    ck_assert_uint_eq(p.prefill_chunk, 0);
    ck_assert_uint_eq(p.threads, 5);
    write_file(named, "oops: 64\n", 9);
    ck_assert_int_eq(ak_backend_profile_find(NULL, NULL, &p, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "profile.yaml:1: unknown key 'oops'"));
    /* without the variable it lies below HOME */
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/nonexistent", 1);
    ck_assert_int_eq(ak_backend_profile_find(NULL, NULL, &p, &error), AKUNU_OK);
    if (config_before)
        setenv("XDG_CONFIG_HOME", config_before, 1);
    if (home_before)
        setenv("HOME", home_before, 1);
    free(config_before);
    free(home_before);
    unlink(named);
    rmdir(below);
    remove_folder(&user);
    remove_folder(&f);
}
END_TEST

START_TEST(written)
{
    struct folder f = new_folder();
    struct akunu_profile given = { .size = sizeof given,
                                   .threads = 2,
                                   .skinny_scale32 = 7,
                                   .skinny_float = 3,
                                   .blas_scale256 = true };
    struct ak_backend_profile p = { 0 };
    struct ak_error error = { 0 };
    ck_assert_int_eq(akunu_profile_write(&given, f.file), AKUNU_OK);
    ck_assert_int_eq(ak_backend_profile_read(f.file, NULL, &p, &error), AKUNU_OK);
    ck_assert_uint_eq(p.threads, 2);
    ck_assert_uint_eq(p.prefill_chunk, 0);
    ck_assert_uint_eq(p.skinny_max[AK_BACKEND_PROFILE_SCALE32], 7);
    ck_assert_uint_eq(p.skinny_max[AK_BACKEND_PROFILE_SCALE256], 0);
    ck_assert_uint_eq(p.skinny_max[AK_BACKEND_PROFILE_FLOAT], 3);
    ck_assert(p.blas[AK_BACKEND_PROFILE_SCALE256] && !p.blas[AK_BACKEND_PROFILE_SCALE32] &&
              !p.blas[AK_BACKEND_PROFILE_FLOAT]);
    given.skinny_scale32 = 17; /* it could not be read again */
    ck_assert_int_eq(akunu_profile_write(&given, f.file), AKUNU_ERROR_ARGUMENT);
    given.skinny_scale32 = 0;
    ck_assert_int_eq(akunu_profile_write(&given, "/nonexistent/profile.yaml"), AKUNU_ERROR_IO);
    ck_assert_int_eq(akunu_profile_write(NULL, f.file), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_profile_write(&given, NULL), AKUNU_ERROR_ARGUMENT);
    remove_folder(&f);
}
END_TEST

/* ---- What it changes ---------------------------------------------------- */
enum { N_TOKENS = 6 }; /* twice as many records for the logits, still few */

/* Logits of a pass of N_TOKENS tokens with the profile `text`; its counters and sizes. */
static float *run_with(const char *model_name, const char *text, size_t *n_logits,
                       struct akunu_counters *counters, unsigned *threads, unsigned *batch)
{
    struct folder f = new_folder();
    char path[512];
    struct akunu_load_params params;
    struct akunu_session_params session_params;
    struct akunu_batch_token tokens[N_TOKENS];
    struct akunu_model_info info;
    write_file(f.file, text, strlen(text));
    akunu_load_params_default(&params, sizeof params);
    params.profile = f.file;
    snprintf(path, sizeof path, "%s/%s", getenv("AK_TEST_DATA"), model_name);
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_le(info.float_parameters, info.matrix_parameters);
    if (strstr(model_name, "f32"))
        ck_assert_uint_eq(info.float_parameters, info.matrix_parameters);
    akunu_session_params_default(&session_params, sizeof session_params);
    session_params.context = 1024;
    struct akunu_session *session = akunu_session_new(model, &session_params);
    ck_assert_ptr_nonnull(session);
    akunu_sequence sequence = akunu_sequence_new(session);
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] =
            (struct akunu_batch_token){ .token = 5 + i, .sequence = sequence, .logits = true };
    ck_assert_int_eq(akunu_session_decode(session, tokens, N_TOKENS), AKUNU_OK);
    *n_logits = (size_t)N_TOKENS * info.vocab_size;
    float *logits = malloc(*n_logits * sizeof *logits);
    ck_assert_ptr_nonnull(logits);
    for (size_t i = 0; i < N_TOKENS; i++)
        memcpy(logits + i * info.vocab_size, akunu_session_logits(session, i),
               info.vocab_size * sizeof *logits);
    ck_assert_int_eq(akunu_session_get_counters(session, counters, sizeof *counters), AKUNU_OK);
    *threads = akunu_session_threads(session);
    *batch = akunu_session_batch(session);
    akunu_sequence_free(session, sequence);
    akunu_session_free(session);
    akunu_model_free(model);
    remove_folder(&f);
    return logits;
}

START_TEST(in_effect)
{
    static const char *const models[] = { "model.gguf", "models/mixed.gguf",
                                          "models/llama-f32.gguf" };
    const char *model = models[_i];
    struct akunu_counters first, second, third;
    unsigned threads, batch;
    size_t n, m;
    float *expected =
        run_with(model, "threads: 1\nfloat: {small_n: 16}\n", &n, &first, &threads, &batch);
    ck_assert_uint_eq(threads, 1);
    ck_assert_uint_eq(batch, 512);
    ck_assert_uint_gt(first.skinny, 0);
    ck_assert_uint_eq(first.gemm, 0);

    float *got = run_with(model,
                          "threads: 1\nprefill_chunk: 96\nscale32: {small_n: 4}\nscale256: "
                          "{small_n: 4}\nfloat: {small_n: 4}\n",
                          &m, &second, &threads, &batch);
    ck_assert_uint_eq(batch, 96);
    ck_assert_uint_eq(second.skinny, 0);
    ck_assert_uint_eq(second.gemm, first.skinny);
    ck_assert_uint_eq(n, m);
    ck_assert_mem_eq(got, expected, n * sizeof *got);
    free(got);

    got = run_with(
        model, "threads: 2\nscale32: {small_n: 9}\nscale256: {small_n: 9}\nfloat: {small_n: 9}\n",
        &m, &third, &threads, &batch);
    ck_assert_uint_eq(threads, 2);
    ck_assert_uint_eq(third.gemm, 0);
    ck_assert_mem_eq(got, expected, n * sizeof *got);
    free(got);
    free(expected);
}
END_TEST

START_TEST(bad_profile_ends_the_load)
{
    struct folder f = new_folder();
    char path[512];
    struct akunu_load_params params;
    write_file(f.file, "small_n: 3\n", 11);
    snprintf(path, sizeof path, "%s/model.gguf", getenv("AK_TEST_DATA"));
    akunu_load_params_default(&params, sizeof params);
    params.profile = f.file;
    ck_assert_ptr_null(akunu_model_load(path, &params));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "profile.yaml:1: unknown key 'small_n'"));
    remove_folder(&f);
}
END_TEST

/* ---- The machine -------------------------------------------------------- */
START_TEST(detection)
{
    struct akunu_chip chip;
    ck_assert_int_eq(akunu_get_chip(&chip, sizeof chip), AKUNU_OK);
    ck_assert_uint_ge(chip.cores, 1);
    ck_assert_uint_ge(chip.hardware_threads, chip.cores);
    ck_assert_uint_ge(chip.numa_nodes, 1);
    ck_assert_uint_gt(chip.memory_bytes, 0);
    ck_assert_uint_lt(strlen(chip.name), sizeof chip.name);
    ck_assert_int_eq(akunu_get_chip(&chip, 0), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_get_chip(NULL, 0), AKUNU_ERROR_ARGUMENT);
}
END_TEST

START_TEST(measuring)
{
    for (size_t i = 0; akunu_cpu_name(i); i++) {
        struct akunu_roofline roof;
        ck_assert_int_eq(
            akunu_roofline_measure(akunu_cpu_name(i), 2,
                                   AKUNU_MEASURE_INT8 | AKUNU_MEASURE_F32 | AKUNU_MEASURE_CLOCK,
                                   &roof, sizeof roof),
            AKUNU_OK);
        ck_assert(roof.int8_ops_per_second > 1e6 && roof.f32_ops_per_second > 1e6 &&
                  roof.clock_hz > 1e6);
        /* a core does no more than some units of 512 bits a cycle: nothing has vanished */
        ck_assert(roof.int8_ops_per_second < 2.0 * 1024.0 * roof.clock_hz * 4.0);
        ck_assert(roof.f32_ops_per_second < 2.0 * 256.0 * roof.clock_hz * 4.0);
        ck_assert(roof.read_bytes_per_second == 0.0 && roof.bf16_ops_per_second == 0.0);
    }
    struct akunu_roofline roof;
    ck_assert_int_eq(akunu_roofline_measure("pdp11", 1, AKUNU_MEASURE_ALL, &roof, sizeof roof),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_roofline_measure(NULL, 0, AKUNU_MEASURE_ALL, &roof, sizeof roof),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_roofline_measure(NULL, 1, AKUNU_MEASURE_ALL, NULL, 0),
                     AKUNU_ERROR_ARGUMENT);
}
END_TEST

static bool stop_at_once(double fraction, void *user)
{
    (void)fraction;
    ++*(int *)user;
    return false;
}

START_TEST(tuning_stops)
{
    struct akunu_profile profile = { .size = sizeof profile };
    struct akunu_tune_params params;
    int calls = 0;
    akunu_tune_params_default(&params, sizeof params);
    ck_assert(params.n_threads == 1 && params.n_runs == 5);
    params.progress = stop_at_once;
    params.user = &calls;
    ck_assert_int_eq(akunu_profile_tune(&params, &profile, sizeof profile), AKUNU_ERROR_CANCELLED);
    ck_assert_int_eq(calls, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *t = tcase_create("profile");
    suite_add_tcase(suite, t);
    tcase_add_test(t, good);
    tcase_add_test(t, nothing);
    tcase_add_test(t, refused);
    tcase_add_test(t, truncated);
    tcase_add_test(t, huge);
    tcase_add_test(t, other_machine);
    tcase_add_test(t, no_file);
    tcase_add_test(t, search);
    tcase_add_test(t, written);
    tcase_add_loop_test(t, in_effect, 0, 3);
    tcase_add_test(t, bad_profile_ends_the_load);
    tcase_add_test(t, detection);
    tcase_add_test(t, measuring);
    tcase_add_test(t, tuning_stops);
    return test_run(suite);
}

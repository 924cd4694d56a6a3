/* The calls of files.h and measure.h: what each takes and gives, and what it refuses. The files
 * themselves are tested in tests/files/weights, convert, pack and persist. */
#include "tests/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "base/chip.h"
#include "tests/api/failure.h"
#include "tests/process.h"
#include "tests/st_files.h"

static struct akunu_file *open_ok(const char *name)
{
    struct akunu_file *file = akunu_file_open(test_path(name));
    ck_assert_msg(file != NULL, "%s: %s", name, akunu_last_error());
    return file;
}

/* Nothing of the tests' data is mapped, and as many files are open as in the beginning. */
static void check_released(size_t n_open)
{
    test_check_unmapped();
    ck_assert_uint_eq(test_count_open(), n_open);
}

/* ---- Looking into a file ------------------------------------------------ */
START_TEST(whole_file)
{
    static const char *const wrong[] = { "general.architecture=int:3", NULL };
    static const char *const renamed[] = { "general.name=str:other", "general.new=int:5", NULL };
    static const char *const broken[] = { "general.name=str:other", "none", NULL };
    static const struct {
        const char *name, *format, *architecture;
        size_t n_tensors, n_metadata;
        uint64_t bytes;
    } cases[] = {
        { "model.gguf", "gguf", "qwen2", 26, 22, 204960 },
        { "gguf/kinds.gguf", "gguf", "kinds", 0, 38, 5316 },
        { "encoders/bert", "safetensors", "bert", 37, SIZE_MAX, 0 },
    };
    struct akunu_file_info info;
    size_t n_open = test_count_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_file *file = open_ok(cases[i].name);
        ck_assert_int_eq(akunu_file_get_info(file, &info, sizeof info), AKUNU_OK);
        ck_assert_str_eq(info.format, cases[i].format);
        ck_assert_str_eq(info.architecture, cases[i].architecture);
        ck_assert_uint_eq(info.n_tensors, cases[i].n_tensors);
        if (cases[i].bytes) {
            ck_assert_uint_eq(info.bytes, cases[i].bytes);
            ck_assert_uint_eq(info.n_metadata, cases[i].n_metadata);
        }
        akunu_file_free(file);
    }
    /* of a wrong type: looking does without */
    struct akunu_file *file = akunu_file_open_with(test_path("model.gguf"), wrong);
    ck_assert_msg(file != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_file_get_info(file, &info, sizeof info), AKUNU_OK);
    ck_assert_str_eq(info.architecture, "");
    akunu_file_free(file);

    struct akunu_meta meta;
    bool has_other = false;
    file = akunu_file_open_with(test_path("model.gguf"), renamed);
    ck_assert_msg(file != NULL, "%s", akunu_last_error());
    for (size_t i = 0; akunu_file_get_meta(file, i, &meta, sizeof meta) == AKUNU_OK; i++)
        has_other |= strcmp(meta.key, "general.name") == 0 && meta.n == 5 &&
                     memcmp(meta.string, "other", 5) == 0;
    ck_assert(has_other);
    akunu_file_free(file);
    ck_assert_ptr_null(akunu_file_open_with(test_path("model.gguf"), broken));
    failed_with(AKUNU_ERROR_ARGUMENT, "none");
    ck_assert_ptr_null(akunu_file_open_with(NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "no path is given");
    ck_assert_int_eq(akunu_file_get_info(NULL, &info, sizeof info), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no file is given");
    check_released(n_open);
}
END_TEST

/* Names of tensors with and without a role, by both conventions, and of no known architecture. */
START_TEST(tensors)
{
    static const struct {
        const char *file, *name, *canonical;
    } cases[] = {
        { "model.gguf", "blk.1.ffn_norm.weight", "layers.1.ffn_norm.weight" },
        { "model.gguf", "output_norm.weight", "output_norm.weight" },
        { "folders/qwen35", "model.norm.weight", "output_norm.weight" },
        { "folders/qwen35", "model.layers.2.mlp.down_proj.weight", "layers.2.ffn.down.weight" },
        { "encoders/bert", "embeddings.word_embeddings.weight", "token_embedding.weight" },
    };
    struct akunu_tensor_info t = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_file *file = open_ok(cases[i].file);
        size_t at = 0;
        while (akunu_file_get_tensor(file, at, &t, sizeof t) == AKUNU_OK &&
               strcmp(t.name, cases[i].name) != 0)
            at++;
        ck_assert_msg(strcmp(t.name, cases[i].name) == 0, "%s", cases[i].name);
        ck_assert_str_eq(t.canonical, cases[i].canonical);
        akunu_file_free(file);
    }
    struct akunu_file *file = open_ok("model.gguf");
    ck_assert_int_eq(akunu_file_get_tensor(file, 11, &t, sizeof t), AKUNU_OK);
    ck_assert_str_eq(t.name, "blk.0.attn_v.bias");
    ck_assert_str_eq(t.type, "F32");
    ck_assert(t.n_dims == 1 && t.shape[0] == 16 && t.shape[1] == 0 && t.bytes == 64 &&
              t.offset == 132064);
    ck_assert_int_eq(akunu_file_get_tensor(file, 12, &t, sizeof t), AKUNU_OK);
    ck_assert_str_eq(t.type, "BF16");
    ck_assert(t.n_dims == 2 && t.shape[0] == 16 && t.shape[1] == 64 && t.bytes == 2048 &&
              t.offset == 132128);
    ck_assert_int_eq(akunu_file_get_tensor(file, 26, &t, sizeof t), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "tensor 26 of a file with 26");
    ck_assert_int_eq(akunu_file_get_tensor(NULL, 0, &t, sizeof t), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no file is given");
    akunu_file_free(file);
}
END_TEST

/* A stray tensor has no role, and no tensor of an unknown architecture has one. */
START_TEST(no_role)
{
    struct test_folder folder = test_folder_begin();
    struct test_st st = { 0 };
    struct akunu_tensor_info t;
    test_st_add(&st, "a.stray", "F32", "1", "\0\0\0\0", 4);
    test_st_add(&st, "model.norm.weight", "F32", "1", "\0\0\0\0", 4);
    test_st_add(&st, "z.empty", "F32", "2, 0", "", 0);
    test_st_write(&st, &folder, "model.safetensors", 0);
    for (int known = 0; known < 2; known++) {
        test_write_text(&folder, "config.json",
                        known ? "{\"model_type\": \"llama\"}" : "{\"model_type\": \"other\"}");
        struct akunu_file *file = akunu_file_open(folder.path);
        ck_assert_msg(file != NULL, "%s", akunu_last_error());
        for (size_t i = 0; i < 2; i++) {
            ck_assert_int_eq(akunu_file_get_tensor(file, i, &t, sizeof t), AKUNU_OK);
            ck_assert_msg((t.canonical != NULL) == (known && t.name[0] == 'm'), "%s", t.name);
        }
        ck_assert_int_eq(akunu_file_read_f32(file, 2, 0, 0, NULL), AKUNU_OK);
        akunu_file_free(file);
    }
    test_folder_end(&folder);
}
END_TEST

/* Whole rows alone, inside the tensor. */
START_TEST(values)
{
    static const struct {
        uint64_t first, n;
        const char *refused;
    } cases[] = {
        { 0, 1024, NULL },
        { 960, 64, NULL },
        { 1024, 0, NULL },
        { 960, 128, "elements 960 and 128 more of blk.0.attn_v.weight, which has 1024" },
        { 1088, 0, "which has 1024" },
        { 32, 64, "elements 32 and 64 more of blk.0.attn_v.weight are no whole rows of 64" },
        { 64, 32, "no whole rows" },
        { UINT64_MAX / 64 * 64, 64, "which has 1024" },
        { 64, UINT64_MAX / 64 * 64, "which has 1024" },
    };
    static float want[1024], got[1024];
    char digest[65] = "-";
    struct akunu_file *file = open_ok("model.gguf");
    struct akunu_tensor_info t;
    ck_assert_int_eq(akunu_file_get_tensor(file, 12, &t, sizeof t), AKUNU_OK);
    struct test_bytes bytes = test_read("model.gguf");
    for (size_t i = 0; i < 1024; i++) { /* BF16 is the upper half of F32 */
        uint16_t upper;
        memcpy(&upper, bytes.data + t.offset + 2 * i, 2);
        uint32_t bits = (uint32_t)upper << 16;
        memcpy(&want[i], &bits, 4);
    }
    free(bytes.data);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(got, 0, sizeof got);
        enum akunu_status status = akunu_file_read_f32(file, 12, cases[i].first, cases[i].n, got);
        ck_assert_int_eq(status, cases[i].refused ? AKUNU_ERROR_ARGUMENT : AKUNU_OK);
        if (cases[i].refused)
            failed_with(AKUNU_ERROR_ARGUMENT, cases[i].refused);
        else if (cases[i].n > 0)
            ck_assert_mem_eq(got, want + cases[i].first, cases[i].n * sizeof *got);
    }
    ck_assert_int_eq(akunu_file_read_f32(file, 12, 0, 0, NULL), AKUNU_OK);
    ck_assert_int_eq(akunu_file_read_f32(file, 12, 0, 64, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no room for 64 elements");
    ck_assert_int_eq(akunu_file_read_f32(file, 26, 0, 0, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "tensor 26");
    ck_assert_int_eq(akunu_file_read_f32(NULL, 0, 0, 0, NULL), AKUNU_ERROR_ARGUMENT);

    /* sha256sum of attn_v.bias, which is stored as floats */
    ck_assert_int_eq(akunu_file_sha256_f32(file, 11, digest), AKUNU_OK);
    ck_assert_str_eq(digest, "e087bd9591c74ac5aed90d8d3fa7c3fb276d72559fe28e799de7ba6788567262");
    ck_assert_int_eq(akunu_file_sha256_f32(file, 26, digest), AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(digest, "e087bd9591c74ac5aed90d8d3fa7c3fb276d72559fe28e799de7ba6788567262");
    forget();
    ck_assert_int_eq(akunu_file_sha256_f32(NULL, 0, digest), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no file is given");
    akunu_file_free(file);
}
END_TEST

START_TEST(metadata)
{
    struct akunu_file *file = open_ok("model.gguf");
    struct akunu_meta m;
    ck_assert_int_eq(akunu_file_get_meta(file, 3, &m, sizeof m), AKUNU_OK);
    ck_assert_str_eq(m.key, "general.size_label");
    ck_assert(m.type == AKUNU_META_STRING && m.n == 3 && memcmp(m.string, "97K", 3) == 0);
    ck_assert_int_eq(akunu_file_get_meta(file, 10, &m, sizeof m), AKUNU_OK);
    ck_assert(m.type == AKUNU_META_FLOAT && m.n == 1 && m.number == 10000.0 && !m.string);
    ck_assert_int_eq(akunu_file_get_meta(file, 16, &m, sizeof m), AKUNU_OK);
    ck_assert_str_eq(m.key, "tokenizer.ggml.tokens");
    ck_assert(m.type == AKUNU_META_ARRAY && m.element_type == AKUNU_META_STRING && m.n == 416);
    ck_assert_int_eq(akunu_file_get_meta_element(file, 16, 415, &m, sizeof m), AKUNU_OK);
    ck_assert(m.type == AKUNU_META_STRING && m.n == 10 && memcmp(m.string, "<|im_end|>", 10) == 0);
    ck_assert_int_eq(akunu_file_get_meta_element(file, 17, 415, &m, sizeof m), AKUNU_OK);
    ck_assert(m.type == AKUNU_META_INT && m.integer == 3);
    ck_assert_int_eq(akunu_file_get_meta_element(file, 16, 416, &m, sizeof m),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "element 416 of metadata tokenizer.ggml.tokens, which has "
                                      "416");
    ck_assert_int_eq(akunu_file_get_meta_element(file, 3, 0, &m, sizeof m), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "general.size_label is not an array");
    ck_assert_int_eq(akunu_file_get_meta(file, 19, &m, sizeof m), AKUNU_OK);
    ck_assert_int_eq(akunu_file_get_meta(file, 22, &m, sizeof m), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "metadata entry 22 of a file with 22");
    ck_assert_int_eq(akunu_file_get_meta(NULL, 0, &m, sizeof m), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no file is given");
    forget();
    ck_assert_int_eq(akunu_file_get_meta_element(NULL, 0, 0, &m, sizeof m), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no file is given");
    ck_assert_int_eq(akunu_file_get_meta(file, 0, NULL, sizeof m), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_meta");
    akunu_file_free(file);
}
END_TEST

/* ---- Lists -------------------------------------------------------------- */
START_TEST(lists)
{
    static const char *const formats[] = { "gguf",    "whisper-ggml", "whisper-pt",
                                           "npy-dir", "safetensors",  "npy" };
    static const struct {
        const char *name;
        unsigned elems, bytes;
        bool integers, packed;
    } types[] = {
        { "F32", 1, 4, false, false },    { "BF16", 1, 2, false, false },
        { "Q4_0", 32, 18, true, true },   { "Q8_0", 32, 34, true, true },
        { "Q4_K", 256, 144, true, true }, { "MXFP4", 32, 17, true, true },
        { "A4", 32, 20, true, true },     { "F8", 128, 132, false, true },
    };
    static const struct {
        const char *name, *last_name;
        bool experts;
    } architectures[] = {
        { "qwen2", "qwen2", false },     { "qwen2moe", "qwen2_moe", true },
        { "gpt-oss", "gpt_oss", true },  { "qwen35", "qwen3_5", false },
        { "smollm3", "smollm3", false }, { "xlm-roberta", "xlm-roberta", false },
        { "lfm2", "lfm2", false },
    };
    static const char *const quantizations[] = { "mlx", "mxfp4" };
    struct akunu_format_info f;
    struct akunu_type_info t;
    struct akunu_architecture_info a;
    struct akunu_quantization_info q;
    size_t n = 0, found = 0;
    for (; akunu_get_format(n, &f, sizeof f) == AKUNU_OK; n++) {
        ck_assert_uint_lt(n, 6);
        ck_assert_str_eq(f.name, formats[n]);
        ck_assert_str_ne(f.about, "");
    }
    ck_assert_uint_eq(n, 6);
    failed_with(AKUNU_ERROR_ARGUMENT, "there is no format of number 6");
    for (n = 0; akunu_get_type(n, &t, sizeof t) == AKUNU_OK; n++)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strcmp(t.name, types[i].name) == 0) {
                ck_assert_uint_eq(t.block_elems, types[i].elems);
                ck_assert_uint_eq(t.block_bytes, types[i].bytes);
                ck_assert(t.integers == types[i].integers && t.packed == types[i].packed);
                found++;
            }
    ck_assert_uint_eq(found, sizeof types / sizeof *types);
    ck_assert_uint_eq(n, AK_QUANT_COUNT);
    failed_with(AKUNU_ERROR_ARGUMENT, "there is no type of number");
    for (n = found = 0; akunu_get_architecture(n, &a, sizeof a) == AKUNU_OK; n++) {
        size_t n_names = 0;
        ck_assert_str_eq(a.names[0], a.name);
        ck_assert_str_ne(a.about, "");
        while (a.names[n_names])
            n_names++;
        for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
            if (strcmp(a.name, architectures[i].name) == 0) {
                ck_assert_msg(a.experts == architectures[i].experts, "%s", a.name);
                found++;
            }
    }
    ck_assert_uint_eq(found, sizeof architectures / sizeof *architectures);
    failed_with(AKUNU_ERROR_ARGUMENT, "there is no architecture of number");
    ck_assert_int_eq(akunu_get_architecture(0, &a, sizeof a), AKUNU_OK);
    ck_assert_str_eq(a.name, "bert"); /* the first of architectures.def */
    forget();
    ck_assert_int_eq(akunu_get_architecture(SIZE_MAX, &a, sizeof a), AKUNU_ERROR_ARGUMENT);
    for (n = found = 0; akunu_get_quantization(n, &q, sizeof q) == AKUNU_OK; n++)
        for (size_t i = 0; i < 2; i++)
            found += strcmp(q.name, quantizations[i]) == 0 && q.about && *q.about;
    ck_assert_uint_eq(found, 2);
    failed_with(AKUNU_ERROR_ARGUMENT, "there is no quantization of number");
    ck_assert_int_eq(akunu_get_format(0, NULL, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_format_info");
    ck_assert_int_eq(akunu_get_type(0, &t, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_type_info");
    ck_assert_int_eq(akunu_get_architecture(0, &a, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_architecture_info");
    ck_assert_int_eq(akunu_get_quantization(0, &q, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_quantization_info");
}
END_TEST

START_TEST(devices)
{
    struct akunu_device_info device;
    enum akunu_status status = akunu_get_device(1000, &device, sizeof device);
    ck_assert_int_ne(status, AKUNU_OK); /* the build has none, or the machine not so many */
    ck_assert_int_eq(akunu_last_status(), status);
    if (akunu_get_device(0, &device, sizeof device) == AKUNU_OK)
        ck_assert_str_eq(device.backend, "opencl");
    else
        ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(names)
{
    static const char *const statuses[] = { "ok",     "argument", "format", "unsupported",
                                            "memory", "context",  "io",     "cancelled",
                                            "system", "numeric",  "busy",   "unknown" };
    static const char *const states[] = { "unknown",    "ready",    "stale",  "damaged",
                                          "unfinished", "building", "unknown" };
    static const char *const stages[] = { "unknown", "backend", "kernels",      "format",
                                          "open",    "config",  "architecture", "profile",
                                          "quirks",  "rope",    "validate",     "tokenizer",
                                          "kv",      "scratch", "table",        "sampled table",
                                          "weights", "warm-up", "ready",        "unknown" };
    for (int i = 0; i <= 11; i++)
        ck_assert_str_eq(akunu_status_name((enum akunu_status)i), statuses[i]);
    for (int i = 0; i <= 6; i++)
        ck_assert_str_eq(akunu_cache_state_name((enum akunu_cache_state)i), states[i]);
    for (int i = 0; i <= 19; i++)
        ck_assert_str_eq(akunu_load_stage_name((enum akunu_load_stage)i), stages[i]);
    ck_assert_str_eq(akunu_version(), "0.1.0");
    ck_assert_int_eq(strncmp(akunu_build_info(), "akunu 0.1.0, ", 13), 0);
    ck_assert_ptr_nonnull(strstr(akunu_build_info(), "kernels: scalar"));
    size_t n = 0;
    ck_assert_str_eq(akunu_cpu_name(0), "scalar");
    while (akunu_cpu_name(n))
        n++;
    ck_assert_str_eq(akunu_cpu_best(), akunu_cpu_name(n - 1));
    ck_assert_ptr_null(akunu_cpu_problem("scalar"));
    ck_assert_ptr_null(akunu_cpu_problem(NULL)); /* means the best one */
    ck_assert_ptr_nonnull(akunu_cpu_problem("pdp11"));
}
END_TEST

/* ---- The cache ---------------------------------------------------------- */
static struct akunu_model *load_with(const char *name, const char *dir)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.cache_dir = dir;
    params.n_threads = 1;
    struct akunu_model *model = akunu_model_load(test_path(name), &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

START_TEST(cache)
{
    struct test_folder folder = test_folder_begin();
    struct akunu_cache_entry e;
    struct stat st;
    char path[128], missing[128];
    size_t n_open = test_count_open();
    snprintf(missing, sizeof missing, "%s", test_in(&folder, "none"));
    struct akunu_cache *c = akunu_cache_open(missing);
    ck_assert_msg(c != NULL, "%s", akunu_last_error());
    ck_assert_uint_eq(akunu_cache_count(c), 0);
    ck_assert_str_eq(akunu_cache_path(c), missing);
    ck_assert_int_eq(akunu_cache_get_entry(c, 0, &e, sizeof e), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "there is no cache 0: there are 0");
    ck_assert_int_ne(stat(missing, &st), 0); /* looking makes none */
    akunu_cache_free(c);

    akunu_model_free(load_with("models/mixed.gguf", folder.path));
    c = akunu_cache_open(folder.path);
    ck_assert_uint_eq(akunu_cache_count(c), 1);
    ck_assert_int_eq(akunu_cache_get_entry(c, 0, &e, sizeof e), AKUNU_OK);
    snprintf(path, sizeof path, "%s", test_in(&folder, e.file));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert(e.state == AKUNU_CACHE_READY && e.bytes > 495616 &&
              e.bytes <= (uint64_t)st.st_size + 4096 && e.n_tokens == 0);
    ck_assert_int_eq(e.built, st.st_mtim.tv_sec);
    ck_assert(e.used >= e.built && e.used < e.built + 3600);
    ck_assert_ptr_nonnull(strstr(e.model, "/models/mixed.gguf"));
    ck_assert_str_eq(e.backend, "cpu");
    ck_assert_int_eq(akunu_cache_get_entry(c, 0, NULL, sizeof e), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_cache_entry");
    ck_assert_int_eq(akunu_cache_get_entry(c, 1, &e, sizeof e), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "there is no cache 1: there are 1");
    ck_assert_int_eq(akunu_cache_remove(c, 1), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_cache_remove(c, 0), AKUNU_OK);
    ck_assert_int_ne(stat(path, &st), 0);
    ck_assert_uint_eq(akunu_cache_count(c), 1); /* other indices stay */
    ck_assert_int_eq(akunu_cache_remove(c, 0), AKUNU_ERROR_IO);
    failed_with(AKUNU_ERROR_IO, "No such file");
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), folder.path));
    akunu_cache_free(c);
    akunu_cache_free(NULL);

    /* the folder of the environment; one that is none */
    setenv("AKUNU_CACHE_DIR", folder.path, 1);
    ck_assert_ptr_nonnull(c = akunu_cache_open(NULL));
    ck_assert_str_eq(akunu_cache_path(c), folder.path);
    akunu_cache_free(c);
    test_write_text(&folder, "file", "");
    ck_assert_ptr_null(akunu_cache_open(test_in(&folder, "file")));
    failed_with(AKUNU_ERROR_IO, "/file: Not a directory");
    unsetenv("AKUNU_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    ck_assert_ptr_null(akunu_cache_open(NULL));
    failed_with(AKUNU_ERROR_SYSTEM, "HOME is not set");
    ck_assert(!akunu_cache_path(NULL) && akunu_cache_count(NULL) == 0);
    ck_assert_int_eq(akunu_cache_get_entry(NULL, 0, &e, sizeof e), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the cache is NULL");
    forget();
    ck_assert_int_eq(akunu_cache_remove(NULL, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the cache is NULL");
    check_released(n_open);
    test_folder_end(&folder);
}
END_TEST

/* A file of a writer that holds its lock stays. */
START_TEST(busy_cache)
{
    struct test_folder folder = test_folder_begin();
    struct akunu_cache_entry e;
    static const char name[] = "0123456789abcdef0123456789abcdef.packed.part";
    test_write_text(&folder, name, "");
    struct akunu_cache *c = akunu_cache_open(folder.path);
    ck_assert_int_eq(akunu_cache_get_entry(c, 0, &e, sizeof e), AKUNU_OK);
    ck_assert_int_eq(e.state, AKUNU_CACHE_UNFINISHED);
    ck_assert(!*e.model && !*e.backend && e.built == 0);
    int fd = open(test_in(&folder, name), O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    ck_assert_int_eq(akunu_cache_remove(c, 0), AKUNU_ERROR_IO);
    failed_with(AKUNU_ERROR_IO, "it is being built");
    akunu_cache_free(c);
    close(fd);
    test_folder_end(&folder);
}
END_TEST

/* ---- Converting --------------------------------------------------------- */
START_TEST(converting)
{
    struct test_folder folder = test_folder_begin();
    struct akunu_convert_params params;
    char to[96];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    akunu_convert_params_default(&params, sizeof params);
    ck_assert(params.size == sizeof params && !params.type && !params.pre && !params.overwrite &&
              !params.override_kv && !params.progress && !params.log && !params.user);
    ck_assert_int_eq(akunu_convert(NULL, to, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no path is given");
    forget();
    ck_assert_int_eq(akunu_convert("x", NULL, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no path is given");
    params.size = 8;
    ck_assert_int_eq(akunu_convert("x", to, &params), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_convert_params");
    test_folder_end(&folder);
}
END_TEST

/* ---- Measuring ---------------------------------------------------------- */
START_TEST(chips)
{
    struct akunu_chip chip;
    struct ak_chip found;
    ak_chip_detect(&found);
    ck_assert_int_eq(akunu_get_chip(&chip, sizeof chip), AKUNU_OK);
    ck_assert_str_eq(chip.name, found.name);
    ck_assert_uint_eq(chip.cores, found.cores);
    ck_assert_uint_eq(chip.hardware_threads, found.hardware_threads);
    ck_assert_uint_eq(chip.numa_nodes, found.numa_nodes);
    ck_assert_uint_eq(chip.l1d_bytes, found.l1d_bytes);
    ck_assert_uint_eq(chip.l2_bytes, found.l2_bytes);
    ck_assert_uint_eq(chip.l3_bytes, found.l3_bytes);
    ck_assert_uint_eq(chip.memory_bytes, found.memory_bytes);
    ck_assert_int_eq(akunu_get_chip(NULL, sizeof chip), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_chip");
}
END_TEST

/* Only the clock, which is the quickest. */
START_TEST(rooflines)
{
    struct akunu_roofline roof;
    struct akunu_model *model = load_with("models/gemma.gguf", NULL);
    ck_assert_int_eq(
        akunu_roofline_measure_model(model, 1, AKUNU_MEASURE_CLOCK, &roof, sizeof roof), AKUNU_OK);
    ck_assert(roof.clock_hz > 1e6 && roof.f32_ops_per_second == 0.0);
    ck_assert_int_eq(akunu_roofline_measure_model(NULL, 1, 0, &roof, sizeof roof),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the model is NULL");
    ck_assert_int_eq(akunu_roofline_measure_model(model, 0, 0, &roof, sizeof roof),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "at least one thread");
    forget();
    ck_assert_int_eq(akunu_roofline_measure("scalar", 0, 0, &roof, sizeof roof),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "at least one thread");
    forget();
    ck_assert_int_eq(akunu_roofline_measure("scalar", 1, 0, NULL, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "a place for the result");
    ck_assert_int_eq(akunu_roofline_measure("scalar", 1, 0, &roof, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_roofline");
    ck_assert_int_eq(akunu_roofline_measure("pdp11", 1, 0, &roof, sizeof roof),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "pdp11");
    akunu_model_free(model);
}
END_TEST

/* A written profile has each field under its name, and none that is 0. */
START_TEST(profiles)
{
    static const char *const lines[] = {
        "\nthreads: 3\n",
        "\nprefill_chunk: 96\n",
        "\nscale32:\n  small_n: 5\n",
        "\nscale256:\n  small_n: 6\n",
        "\nfloat:\n  small_n: 7\n",
        "\nscale32:\n  prefill: blas\n",
        "\nscale256:\n  prefill: blas\n",
        "\nfloat:\n  prefill: blas\n",
    };
    enum { N = sizeof lines / sizeof *lines };
    struct test_folder folder = test_folder_begin();
    struct akunu_profile p;
    char path[96], text[1024];
    snprintf(path, sizeof path, "%s", test_in(&folder, "p.yaml"));
    for (int i = 0; i <= N; i++) { /* one field at a time; at last none */
        akunu_profile_default(&p, sizeof p);
        p.threads = i == 0 ? 3 : 0;
        p.prefill_chunk = i == 1 ? 96 : 0;
        p.skinny_scale32 = i == 2 ? 5 : 0;
        p.skinny_scale256 = i == 3 ? 6 : 0;
        p.skinny_float = i == 4 ? 7 : 0;
        p.blas_scale32 = i == 5;
        p.blas_scale256 = i == 6;
        p.blas_float = i == 7;
        ck_assert_msg(akunu_profile_write(&p, path) == AKUNU_OK, "%s", akunu_last_error());
        FILE *f = fopen(path, "r");
        ck_assert_ptr_nonnull(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
        for (int k = 0; k < N; k++)
            ck_assert_msg((strstr(text, lines[k]) != NULL) == (k == i), "%s: %s", lines[k], text);
    }
    ck_assert_int_eq(akunu_profile_write(NULL, path), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no profile or no path");
    forget();
    ck_assert_int_eq(akunu_profile_write(&p, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no profile or no path");
    p.size = 8;
    ck_assert_int_eq(akunu_profile_write(&p, path), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_profile");
    akunu_profile_default(&p, sizeof p);
    struct akunu_tune_params params;
    akunu_tune_params_default(&params, sizeof params);
    params.cpu = "pdp11";
    ck_assert_int_eq(akunu_profile_tune(&params, &p, sizeof p), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "pdp11");
    for (int i = 0; i < 3; i++) {
        forget();
        params.n_threads = i != 0;
        params.n_runs = i != 1;
        ck_assert_int_eq(akunu_profile_tune(&params, i == 2 ? NULL : &p, sizeof p),
                         AKUNU_ERROR_ARGUMENT);
        failed_with(AKUNU_ERROR_ARGUMENT, "at least one thread, one run and a place");
    }
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *t = tcase_create("files");
    suite_add_tcase(suite, t);
    tcase_add_test(t, whole_file);
    tcase_add_test(t, tensors);
    tcase_add_test(t, no_role);
    tcase_add_test(t, values);
    tcase_add_test(t, metadata);
    tcase_add_test(t, lists);
    tcase_add_test(t, devices);
    tcase_add_test(t, names);
    tcase_add_test(t, cache);
    tcase_add_test(t, busy_cache);
    tcase_add_test(t, converting);
    tcase_add_test(t, chips);
    tcase_add_test(t, rooflines);
    tcase_add_test(t, profiles);
    return test_run(suite);
}

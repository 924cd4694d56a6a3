/* Folders of arrays from models of many architectures: their tensors against the source's by way of
 * a GGUF file that is made from the folder, encodings that join, interrupted runs, the comparison
 * with the source, AWQ, and what is refused. */
#include "tests/test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "conversion/compress/compress.h"
#include "conversion/quantize/quantize.h"
#include "files/weights/formats.h"
#include "tests/conversion/changes.h"
#include "tests/last_logits.h"
#include "tests/out_of_memory.h"
#include "tests/process.h"
#include "tests/st_files.h"

static const char text[] =
    "In the beginning there was a model, and it was large. Whoever held it wished that it were "
    "smaller, and whoever made it smaller wished to know what was lost. So they took a text, and "
    "looked at each of its words twice: once as the large model would have it, once as the small "
    "one would. Where both agreed they saved, and where they did not they spent.";

static char from[4096], to[128], made[128];

static struct akunu_compress_params begin(struct test_folder *folder, const char *model,
                                          const char *encoding)
{
    struct akunu_compress_params params;
    *folder = test_folder_begin();
    snprintf(from, sizeof from, "%s", test_path(model));
    snprintf(to, sizeof to, "%s", test_in(folder, "small"));
    snprintf(made, sizeof made, "%s", test_in(folder, "made.gguf"));
    akunu_compress_params_default(&params, sizeof params);
    params.encoding = encoding;
    return params;
}

/* No file is temporary, and none can be executed. */
static void check_files(const char *path)
{
    char name[600];
    struct stat st;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        ck_assert_int_eq(stat(name, &st), 0);
        ck_assert_msg(S_ISDIR(st.st_mode) || !(st.st_mode & 0111), "%s can be executed", name);
        ck_assert_msg(!strstr(name, ".part"), "%s remains", name);
    }
    if (dir)
        closedir(dir);
}

/* The parts of the folder, and the files that this process has open, after a call. */
static void check_left(size_t n_open)
{
    char arrays[200];
    snprintf(arrays, sizeof arrays, "%s/tensors", to);
    check_files(to);
    check_files(arrays);
    ck_assert_uint_eq(test_count_open(), n_open);
}

static double progress;

/* The share that is done never shrinks. */
static bool watch_progress(double fraction, void *user)
{
    (void)user;
    ck_assert_double_ge(fraction, progress);
    progress = fraction;
    return true;
}

static struct akunu_compress_result compress(const struct akunu_compress_params *given)
{
    struct akunu_compress_result result = { 0 };
    struct akunu_compress_params params = *given;
    size_t n_open = test_count_open();
    progress = 0.0;
    params.progress = watch_progress;
    ck_assert_msg(akunu_compress(from, to, &params, &result, sizeof result) == AKUNU_OK, "%s: %s",
                  from, akunu_last_error());
    ck_assert_double_eq_tol(progress, 1.0, 1e-9);
    check_left(n_open);
    return result;
}

static void check_fails(const struct akunu_compress_params *params, enum akunu_status status,
                        const char *named)
{
    size_t n_open = test_count_open();
    ck_assert_int_eq(akunu_compress(from, to, params, NULL, 0), status);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(),
                  named);
    check_left(n_open);
}

/* The folder was not there, or stays empty. */
static void check_fails_alone(const struct akunu_compress_params *params, enum akunu_status status,
                              const char *named)
{
    size_t n_open = test_count_open();
    ck_assert_int_eq(akunu_compress(from, to, params, NULL, 0), status);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(),
                  named);
    ck_assert(access(to, F_OK) != 0 || test_count_entries(to) == 2);
    ck_assert_uint_eq(test_count_open(), n_open);
}

static bool has_file(const char *folder, const char *name)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static struct test_bytes read_file(const char *folder, const char *name)
{
    char path[4200];
    uint8_t piece[4096];
    size_t n;
    struct test_bytes bytes = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        test_append(&bytes, piece, n);
    fclose(file);
    return bytes;
}

/* ---- Values ------------------------------------------------------------- */
struct tensor {
    struct akunu_tensor_info info;
    float *values;
    uint64_t rows, cols;
};

/* The tensor of that name; values NULL: there is none. */
static struct tensor read_tensor(const struct akunu_file *file, const char *name)
{
    struct tensor t = { .rows = 1 };
    for (size_t i = 0; akunu_file_get_tensor(file, i, &t.info, sizeof t.info) == AKUNU_OK; i++) {
        if (strcmp(t.info.name, name) != 0)
            continue;
        for (unsigned d = 0; d + 1 < t.info.n_dims; d++)
            t.rows *= t.info.shape[d];
        t.cols = t.info.shape[t.info.n_dims - 1];
        t.values = malloc(t.rows * t.cols * sizeof *t.values);
        ck_assert_int_eq(akunu_file_read_f32(file, i, 0, t.rows * t.cols, t.values), AKUNU_OK);
        break;
    }
    return t;
}

/* A row of the new tensor, each element off by at most `limit` of the row's largest. */
static void check_row(const char *name, const float *x, const float *y, uint64_t n, float limit)
{
    float largest = 0.0f;
    for (uint64_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    for (uint64_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(x[i] - y[i]) <= limit * largest + 1e-7f, "%s: %g is %g", name,
                      (double)x[i], (double)y[i]);
}

/* Half a step of 8 bits, with a scale that F16 may have rounded up; vectors are exact. */
static void check_tensor(const struct tensor *a, const struct tensor *b)
{
    ck_assert_uint_eq(a->rows, b->rows);
    ck_assert_uint_eq(a->cols, b->cols);
    for (uint64_t row = 0; row < a->rows; row++)
        check_row(a->info.name, a->values + row * a->cols, b->values + row * a->cols, a->cols,
                  a->info.n_dims > 1 ? 0.5f / 127.0f * 1.001f : 1e-6f);
}

static double get_cosine(const struct tensor *a, const struct tensor *b)
{
    double xx = 0.0, xy = 0.0, yy = 0.0;
    for (uint64_t i = 0; i < a->rows * a->cols; i++) {
        xx += (double)a->values[i] * (double)a->values[i];
        xy += (double)a->values[i] * (double)b->values[i];
        yy += (double)b->values[i] * (double)b->values[i];
    }
    return xy / sqrt(xx * yy);
}

/* All tensors of the source, but for the rotation's and `without`, are in the file that was made.
 * Returns the least cosine of a matrix with what it became. */
static double check_all(const char *path, const char *without)
{
    struct akunu_file *source = akunu_file_open(from), *other = akunu_file_open(path);
    struct akunu_tensor_info info;
    double least = 1.0;
    ck_assert_ptr_nonnull(source);
    ck_assert_msg(other != NULL, "%s", akunu_last_error());
    for (size_t i = 0; akunu_file_get_tensor(source, i, &info, sizeof info) == AKUNU_OK; i++) {
        if (strncmp(info.name, "rope_", 5) == 0 || (without && strcmp(info.name, without) == 0))
            continue;
        struct tensor a = read_tensor(source, info.name), b = read_tensor(other, info.name);
        ck_assert_msg(b.values != NULL, "%s is missing", info.name);
        check_tensor(&a, &b);
        if (a.rows > 1)
            least = fmin(least, get_cosine(&a, &b));
        free(a.values);
        free(b.values);
    }
    akunu_file_free(source);
    akunu_file_free(other);
    return least;
}

static void convert(void)
{
    struct akunu_convert_params params;
    akunu_convert_params_default(&params, sizeof params);
    params.no_vocab = true;
    params.type = "F32";
    params.overwrite = true;
    ck_assert_msg(akunu_convert(to, made, &params) == AKUNU_OK, "%s: %s", from, akunu_last_error());
}

/* Of a model with another rotation, window or scale they would be others. */
static void check_logits(void)
{
    uint32_t n, other;
    float *x = test_last_logits(from, NULL, &n), *y = test_last_logits(to, NULL, &other);
    double xx = 0.0, xy = 0.0, yy = 0.0;
    ck_assert_uint_eq(n, other);
    for (uint32_t i = 0; i < n; i++) {
        xx += (double)x[i] * (double)x[i];
        xy += (double)x[i] * (double)y[i];
        yy += (double)y[i] * (double)y[i];
    }
    ck_assert_msg(xy / sqrt(xx * yy) > 0.999, "%s: %f", from, xy / sqrt(xx * yy));
    free(x);
    free(y);
}

/* ---- Lines of the log --------------------------------------------------- */
static char logged[4096];

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", line);
}

/* ---- Architectures ------------------------------------------------------ */
static const char *const models[] = { "llama-f32", "mistral", "qwen2",    "qwen3",   "gemma",
                                      "gemma2",    "gemma3",  "granite",  "smollm3", "olmo2",
                                      "mixtral",   "phi3",    "qwen2moe", "window64" };
enum { N_MODELS = sizeof models / sizeof *models };

START_TEST(same_model)
{
    char name[64];
    struct test_folder folder;
    snprintf(name, sizeof name, "models/%s.gguf", models[_i]);
    struct akunu_compress_params params = begin(&folder, name, "int8");
    params.group = 32;
    params.requantize = true;
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_gt(result.n_matrices, 0);
    ck_assert_double_ge(result.min_cosine, 0.99995);
    check_logits();
    ck_assert(!has_file(to, "compress.journal"));
    convert();
    ck_assert_double_eq_tol(result.min_cosine, check_all(made, NULL), 1e-8);
    test_folder_end(&folder);
}
END_TEST

/* What transformers' classes call the settings of these models, most of them those that
 * tests/golden/architectures.py gives them. */
static const struct {
    const char *model, *expected;
} configs[] = {
    { "gemma", "{'model_type': 'gemma', 'hidden_size': 40, 'num_hidden_layers': 2,"
               " 'num_attention_heads': 2, 'num_key_value_heads': 1, 'head_dim': 32,"
               " 'intermediate_size': 56, 'max_position_embeddings': 256, 'vocab_size': 72,"
               " 'rms_norm_eps': 1e-5, 'rope_theta': 10000.0, 'tie_word_embeddings': true,"
               " 'torch_dtype': 'float16'}" },
    { "gemma3",
      "{'model_type': 'gemma3_text', 'hidden_size': 40, 'num_hidden_layers': 6,"
      " 'num_attention_heads': 2, 'num_key_value_heads': 1, 'head_dim': 16,"
      " 'intermediate_size': 56, 'max_position_embeddings': 256, 'vocab_size': 72,"
      " 'rms_norm_eps': 1e-5, 'sliding_window': 7, 'query_pre_attn_scalar': 16.0,"
      " 'rope_theta': 1000000.0, 'rope_local_base_freq': 10000.0,"
      " 'rope_scaling': {'rope_type': 'linear', 'factor': 8.0}, 'tie_word_embeddings': true,"
      " 'torch_dtype': 'float16'}" },
    { "granite", "{'model_type': 'granite', 'hidden_size': 40, 'num_hidden_layers': 2,"
                 " 'num_attention_heads': 2, 'num_key_value_heads': 1, 'head_dim': 16,"
                 " 'intermediate_size': 56, 'max_position_embeddings': 256, 'vocab_size': 72,"
                 " 'rms_norm_eps': 1e-5, 'rope_theta': 10000.0, 'attention_multiplier': 0.15,"
                 " 'embedding_multiplier': 6.0, 'residual_multiplier': 0.4, 'logits_scaling': 3.0,"
                 " 'tie_word_embeddings': false, 'torch_dtype': 'float16'}" },
    { "llama-f32", "{'model_type': 'llama', 'hidden_size': 64, 'num_hidden_layers': 2,"
                   " 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 16,"
                   " 'intermediate_size': 128, 'max_position_embeddings': 256, 'vocab_size': 416,"
                   " 'rms_norm_eps': 1e-6, 'rope_theta': 500000.0, 'bos_token_id': 411,"
                   " 'eos_token_id': 415, 'pad_token_id': 411, 'tie_word_embeddings': false,"
                   " 'torch_dtype': 'float16'}" },
    { "phi3",
      "{'model_type': 'phi3', 'hidden_size': 32, 'num_hidden_layers': 2, 'num_attention_heads': 2,"
      " 'num_key_value_heads': 2, 'head_dim': 16, 'intermediate_size': 56,"
      " 'max_position_embeddings': 256, 'vocab_size': 72, 'rms_norm_eps': 1e-5,"
      " 'sliding_window': 11, 'rope_theta': 10000.0, 'original_max_position_embeddings': 16,"
      " 'rope_scaling': {'rope_type': 'longrope', 'attention_factor': 1.4142135,"
      " 'original_max_position_embeddings': 16,"
      " 'long_factor': [1.0, 2.5, 4.0, 5.5, 7.0, 8.5, 10.0, 11.5],"
      " 'short_factor': [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35]},"
      " 'pad_token_id': null, 'tie_word_embeddings': false, 'torch_dtype': 'float16'}" },
    { "qwen2", "{'model_type': 'qwen2', 'hidden_size': 64, 'num_hidden_layers': 3,"
               " 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 16,"
               " 'intermediate_size': 160, 'max_position_embeddings': 256, 'vocab_size': 416,"
               " 'rms_norm_eps': 1e-6, 'rope_theta': 1000000.0, 'eos_token_id': 415,"
               " 'pad_token_id': 413, 'tie_word_embeddings': false, 'torch_dtype': 'float16'}" },
    { "qwen2moe", "{'model_type': 'qwen2_moe', 'hidden_size': 64, 'num_hidden_layers': 2,"
                  " 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 16,"
                  " 'intermediate_size': 32, 'max_position_embeddings': 256, 'vocab_size': 96,"
                  " 'rms_norm_eps': 1e-5, 'num_experts': 6, 'num_experts_per_tok': 2,"
                  " 'moe_intermediate_size': 32, 'shared_expert_intermediate_size': 48,"
                  " 'norm_topk_prob': false, 'rope_theta': 10000.0, 'tie_word_embeddings': false,"
                  " 'torch_dtype': 'float16'}" },
};

static json_t *read_json(const char *path, const char *name)
{
    struct test_bytes bytes = read_file(path, name);
    json_t *json = json_loadb((const char *)bytes.data, bytes.n, 0, NULL);
    ck_assert_ptr_nonnull(json);
    free(bytes.data);
    return json;
}

START_TEST(whole_config)
{
    char name[64], json[1024];
    struct test_folder folder;
    snprintf(name, sizeof name, "models/%s.gguf", configs[_i].model);
    struct akunu_compress_params params = begin(&folder, name, "int8");
    params.requantize = true;
    compress(&params);
    snprintf(json, sizeof json, "%s", configs[_i].expected);
    for (char *c = json; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *expected = json_loads(json, 0, NULL), *written = read_json(to, "config.json");
    ck_assert_ptr_nonnull(expected);
    char *shown = json_dumps(written, 0);
    ck_assert_msg(json_equal(written, expected), "%s: %s", configs[_i].model, shown);
    free(shown);
    json_decref(expected);
    json_decref(written);
    test_folder_end(&folder);
}
END_TEST

/* Quantization schemes, encoders and layers with recurrent state: names and files stay. */
static const char *const folders[] = {
    "encoders/bert",      "encoders/xlm-roberta", "folders/qwen35",     "folders/qwen35moe",
    "folders/qwen3next",  "quantized/awq",        "quantized/ct-int8",  "quantized/fp8",
    "quantized/gptq-act", "quantized/mlx",        "quantized/npy-int4", "rerankers/bert"
};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

/* The files beside the weights are copied as they are, but for the quantization in config.json. */
static void check_sidecars(bool is_quantized)
{
    static const char *const of_weights[] = { "quantization_config", "quantization",
                                              "compression_config" };
    for (size_t i = 0; ak_hf_sidecar_names[i]; i++) {
        const char *name = ak_hf_sidecar_names[i];
        bool is_kept = has_file(from, name) && strcmp(name, "manifest.json") != 0 &&
                       strcmp(name, "model.safetensors.index.json") != 0;
        if (strcmp(name, "manifest.json") != 0)
            ck_assert_msg(has_file(to, name) == is_kept, "%s", name);
        if (!is_kept)
            continue;
        if (is_quantized && strcmp(name, "config.json") == 0) {
            json_t *expected = read_json(from, name), *written = read_json(to, name);
            for (int k = 0; k < 3; k++)
                json_object_del(expected, of_weights[k]);
            ck_assert(json_equal(expected, written));
            json_decref(expected);
            json_decref(written);
            continue;
        }
        struct test_bytes expected = read_file(from, name), written = read_file(to, name);
        ck_assert_msg(expected.n == written.n, "%s", name);
        ck_assert_mem_eq(expected.data, written.data, expected.n);
        free(expected.data);
        free(written.data);
    }
}

START_TEST(same_folder)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, folders[_i], "int8");
    params.group = 32;
    params.requantize = true;
    struct akunu_compress_result result = compress(&params);
    ck_assert_double_ge(result.min_cosine, 0.99995);
    check_all(to, NULL);
    check_sidecars(strncmp(folders[_i], "quantized/", 10) == 0);
    test_folder_end(&folder);
}
END_TEST

/* A folder in `folder` with the files of a source, which becomes the source. */
static void copy_source(const struct test_folder *folder, const char *const *names)
{
    char path[64];
    ck_assert_int_eq(mkdir(test_in(folder, "source"), 0777), 0);
    for (size_t i = 0; names[i]; i++) {
        struct test_bytes bytes = read_file(from, names[i]);
        snprintf(path, sizeof path, "source/%s", names[i]);
        test_write(folder, path, bytes.data, bytes.n);
        free(bytes.data);
    }
    snprintf(from, sizeof from, "%s", test_in(folder, "source"));
}

/* An index of all tensors of model.safetensors, and of another file's. */
static void write_index(const struct test_folder *folder, const char *const *others)
{
    struct akunu_tensor_info info;
    struct akunu_file *file = akunu_file_open(from);
    json_t *map = json_object();
    for (size_t i = 0; akunu_file_get_tensor(file, i, &info, sizeof info) == AKUNU_OK; i++)
        json_object_set_new(map, info.name, json_string("model.safetensors"));
    for (size_t i = 0; others && others[i]; i++)
        json_object_set_new(map, others[i], json_string("model-2.safetensors"));
    json_t *index = json_pack("{so}", "weight_map", map);
    char *shown = json_dumps(index, 0);
    test_write_text(folder, "source/model.safetensors.index.json", shown);
    free(shown);
    json_decref(index);
    akunu_file_free(file);
}

START_TEST(copied_files)
{
    static const char *const files[] = { "config.json", "model.safetensors", NULL };
    struct test_folder folder;
    struct akunu_compress_params params =
        begin(&folder, _i == 0 ? "encoders/bert" : "quantized/awq", "int8");
    copy_source(&folder, files);
    if (_i == 0)
        write_index(&folder, NULL);
    test_write_text(&folder, "source/generation_config.json", "{ \"top_k\": 1 }\n");
    ck_assert_int_eq(mkdir(test_in(&folder, "source/additional_chat_templates"), 0777), 0);
    test_write_text(&folder, "source/additional_chat_templates/rag.jinja", "{{ messages }}");
    test_write_text(&folder, "source/notes.txt", "Dear reader");
    params.group = 32;
    params.requantize = true;
    compress(&params);
    check_sidecars(_i == 1);
    ck_assert(!has_file(to, "notes.txt"));
    check_all(to, NULL);
    test_folder_end(&folder);
}
END_TEST

/* Tensors that no rule names keep their place if their names can be those of files. */
START_TEST(other_names)
{
    enum { LONGEST = 238 - 2 }; /* two dots become two letters each */
    static const char *const files[] = { "config.json", "model.safetensors", NULL };
    static const float values[] = { 1.0f, 1.0f / 3.0f, -2.0f };
    static const int64_t integers[] = { 1, 2 };
    struct test_folder folder;
    struct test_st st = { 0 };
    char name[LONGEST + 2];
    struct akunu_compress_params params = begin(&folder, "encoders/bert", "int8");
    copy_source(&folder, files);
    memset(name, 'x', sizeof name - 1);
    memcpy(name, "azAZ_09-.", 9);
    name[LONGEST - 1] = '.';
    name[LONGEST + (_i == 1)] = '\0';
    const char *const names[] = { _i == 2 ? "a b" : name, "whole", NULL };
    test_st_add(&st, names[0], "F32", "3", values, sizeof values);
    test_st_add(&st, names[1], "I64", "2", integers, sizeof integers);
    test_st_write(&st, &folder, "source/model-2.safetensors", 0);
    write_index(&folder, names);
    params.group = 32;
    params.log = on_log;
    if (_i == 0) {
        compress(&params);
        check_all(to, "whole");
        ck_assert_str_eq(logged, "whole: left out, since it is I64\n"
                                 "encoder.layer.0.output.dense.weight: rows of 48 elements do not "
                                 "divide into groups of 32: it stays F16\n"
                                 "encoder.layer.1.output.dense.weight: rows of 48 elements do not "
                                 "divide into groups of 32: it stays F16\n");
    } else {
        check_fails(&params, AKUNU_ERROR_UNSUPPORTED,
                    _i == 1 ? "x.x: the name is too long for a file" :
                              "a b: the name has other characters than letters, digits, '.', '_', "
                              "'-'");
    }
    test_folder_end(&folder);
}
END_TEST

static const struct {
    const char *model, *named;
} refused_models[] = {
    { "models/gpt2.gguf", "transposed" },
    { "models/gpt-oss.gguf", "transposed" },
    { "models/lfm2.gguf", "Hugging Face folder" },
};

START_TEST(refused_model)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, refused_models[_i].model, "int8");
    check_fails(&params, AKUNU_ERROR_UNSUPPORTED, refused_models[_i].named);
    ck_assert(access(to, F_OK) != 0);
    test_folder_end(&folder);
}
END_TEST

/* ---- Tensors ------------------------------------------------------------ */
/* The copy becomes the source. */
static void write_changed(const struct test_folder *folder, const struct test_change *change)
{
    char changed[128];
    snprintf(changed, sizeof changed, "%s", test_in(folder, "changed.gguf"));
    test_write_changed(from, changed, change);
    snprintf(from, sizeof from, "%s", changed);
}

/* Matrices of which an encoding loses too much stay floats that have them exactly: INT8 loses small
 * elements beside a large one in each group of 32, and all lose elements so small that no scale is.
 * Zeros are none. */
static const struct {
    const char *encoding;
    float large, small;
    uint64_t bytes; /* of an element; 0: it is quantized */
    const char *logged;
} lost[] = {
    { "int8", 1.0f, 1.0f / 256, 2, "with 8 bits is 0.999764" },
    { "int8", 3e-10f, 1e-10f, 4, "with 8 bits is 0.000000" },
    { "int4", 3e-10f, 1e-10f, 4, "with 4 bits is 0.000000" },
    { "int8", 0.0f, 0.0f, 0, NULL },
    { "int4", 0.0f, 0.0f, 0, NULL },
};

START_TEST(stays_float)
{
    enum { N = 128 * 64 };
    static const char name[] = "blk.1.ffn_up.weight";
    float *values = malloc(N * sizeof *values);
    char line[128] = "";
    struct test_folder folder;
    struct akunu_compress_params params =
        begin(&folder, "models/llama-f32.gguf", lost[_i].encoding);
    struct akunu_compress_result before = compress(&params);
    for (int i = 0; i < N; i++)
        values[i] = i % 32 == 5 ? lost[_i].large : lost[_i].small;
    write_changed(&folder, &(struct test_change){ .tensor = name, .values = values });
    params.overwrite = true;
    params.log = on_log;
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_eq(result.n_matrices, before.n_matrices - (lost[_i].bytes > 0));
    ck_assert_uint_eq(result.plain_bytes, before.plain_bytes + N * lost[_i].bytes);
    ck_assert_double_ge(result.min_cosine, before.min_cosine);
    if (lost[_i].logged)
        snprintf(line, sizeof line,
                 "model.layers.1.mlp.up_proj.weight: stays a float: its cosine %s\n",
                 lost[_i].logged);
    ck_assert_str_eq(logged, line);
    for (int k = 0; k < 4; k++) {
        static const char *const suffixes[] = { "__q", "__s", "__q4", "__s4" };
        bool is_there = lost[_i].bytes == 0 && (strcmp(lost[_i].encoding, "int4") == 0) == k / 2;
        snprintf(line, sizeof line, "tensors/model__layers__1__mlp__up_proj__weight%s.npy",
                 suffixes[k]);
        ck_assert_msg(has_file(to, line) == is_there, "%s", line);
    }
    convert();
    struct akunu_file *file = akunu_file_open(made);
    struct tensor t = read_tensor(file, name);
    ck_assert_uint_eq(t.rows * t.cols, N);
    ck_assert_mem_eq(t.values, values, N * sizeof *values);
    akunu_file_free(file);
    free(t.values);
    free(values);
    test_folder_end(&folder);
}
END_TEST

static json_t *find_entry(json_t *manifest, const char *name, const char *encoding)
{
    json_t *tensor = json_object_get(json_object_get(manifest, "tensors"), name);
    return json_object_get(tensor, encoding);
}

/* Groups become smaller while INT8 loses too much. Every seventh 64 columns have a large element,
 * beside which the others are lost: cosines of 0.99986, 0.99993 and 0.99997 with groups of 128, 64
 * and 32. */
START_TEST(smaller_groups)
{
    enum { COLS = 128, N = 64 * COLS };
    float *values = malloc(N * sizeof *values);
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int8");
    for (int i = 0; i < N; i++)
        values[i] = i / 64 % 7 ? 0.125f : i % 64 == 5 ? 1.0f : 1.0f / 256;
    write_changed(&folder,
                  &(struct test_change){ .tensor = "blk.1.ffn_down.weight", .values = values });
    params.group = 128;
    compress(&params);
    json_t *manifest = read_json(to, "manifest.json"),
           *changed = find_entry(manifest, "model.layers.1.mlp.down_proj.weight", "int8"),
           *other = find_entry(manifest, "model.layers.0.mlp.down_proj.weight", "int8"),
           *narrow = find_entry(manifest, "model.layers.0.mlp.up_proj.weight", "int8");
    double blocks = 19.0, energy = blocks * (1.0 + 63.0 / 65536) + (128 - blocks),
           kept = energy - blocks * 31.0 / 65536;
    ck_assert_double_eq_tol(json_number_value(json_object_get(changed, "cosine")),
                            sqrt(kept / energy), 1e-7);
    ck_assert_int_eq(json_integer_value(json_object_get(changed, "group")), 32);
    ck_assert_int_eq(json_integer_value(json_object_get(changed, "bytes")), N + N / 32 * 4);
    ck_assert_int_eq(json_integer_value(json_object_get(other, "group")), 128);
    ck_assert_int_eq(json_integer_value(json_object_get(other, "bytes")), N + N / 128 * 4);
    ck_assert_int_eq(json_integer_value(json_object_get(narrow, "group")), 32);
    json_decref(manifest);
    free(values);
    test_folder_end(&folder);
}
END_TEST

/* Elements that are no numbers, or that no scale holds. */
static const struct {
    const char *tensor, *named;
    int at;
    float value;
} refused_values[] = {
    { "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight has", 63, NAN },
    { "output_norm.weight", "model.norm.weight has", 0, INFINITY },
    { "blk.1.ffn_up.weight", "model.layers.1.mlp.up_proj.weight has", 8191, NAN },
    { "blk.1.ffn_up.weight", "model.layers.1.mlp.up_proj.weight has", 100, 1e9f },
};

START_TEST(refused_value)
{
    enum { N = 128 * 64 };
    float *values = calloc(N, sizeof *values);
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int8");
    values[refused_values[_i].at] = refused_values[_i].value;
    write_changed(&folder,
                  &(struct test_change){ .tensor = refused_values[_i].tensor, .values = values });
    check_fails(&params, AKUNU_ERROR_FORMAT, refused_values[_i].named);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), " elements that are no finite numbers, or so "
                                                     "large that no scale holds them"));
    free(values);
    test_folder_end(&folder);
}
END_TEST

/* Numbers that F16 does not hold are F32. */
START_TEST(large_numbers)
{
    enum { COLUMNS = 64 };
    static const struct {
        const char *tensor, *name;
        int rows; /* the number is in the first of them */
        float large;
        int bytes; /* of a number */
    } cases[] = {
        { "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", 1, 65504.0f, 2 },
        { "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", 1, 65505.0f, 4 },
        { "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", 1, -1e6f, 4 },
        { "output.weight", "lm_head.weight", 416, 1e6f, 4 },
    };
    float *values = calloc((size_t)cases[_i].rows * COLUMNS, sizeof *values);
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int8");
    values[0] = 1.0f;
    values[1] = -2.0f;
    values[COLUMNS - 1] = cases[_i].large;
    write_changed(&folder, &(struct test_change){ .tensor = cases[_i].tensor, .values = values });
    compress(&params);
    json_t *manifest = read_json(to, "manifest.json"),
           *entry = find_entry(manifest, cases[_i].name, "plain");
    ck_assert_int_eq(json_integer_value(json_object_get(entry, "bytes")),
                     cases[_i].rows * COLUMNS * cases[_i].bytes);
    json_decref(manifest);
    convert();
    check_all(made, NULL);
    free(values);
    test_folder_end(&folder);
}
END_TEST

/* Matrices that are read by row, or are small and sensitive, and rows that groups do not divide. */
static const struct {
    const char *model, *plain[4];
} plain_tensors[] = {
    { "folders/qwen3next", { "lm_head.", "embed_tokens.", ".mlp.gate.", ".in_proj_ba." } },
    { "folders/qwen35", { "embed_tokens.", ".in_proj_a.", ".in_proj_b." } },
    { "encoders/bert", { "_embeddings." } },
};

START_TEST(plain_encoding)
{
    struct test_folder folder;
    const char *name;
    json_t *tensor;
    size_t n = 0;
    struct akunu_compress_params params = begin(&folder, plain_tensors[_i].model, "int8");
    compress(&params);
    json_t *manifest = read_json(to, "manifest.json");
    json_object_foreach (json_object_get(manifest, "tensors"), name, tensor) {
        json_t *shape = json_object_get(tensor, "shape");
        json_int_t cols = json_integer_value(json_array_get(shape, 1));
        bool is_plain = json_array_size(shape) < 2 || cols % 32 != 0 ||
                        json_integer_value(json_array_get(shape, 0)) == 1;
        for (size_t i = 0; i < 4 && plain_tensors[_i].plain[i]; i++)
            is_plain = is_plain || strstr(name, plain_tensors[_i].plain[i]);
        n += !is_plain;
        ck_assert_msg((json_object_get(tensor, "plain") != NULL) == is_plain, "%s", name);
        ck_assert_msg((json_object_get(tensor, "int8") != NULL) == !is_plain, "%s", name);
    }
    ck_assert_uint_gt(n, 0);
    json_decref(manifest);
    test_folder_end(&folder);
}
END_TEST

/* GGUF permutes whole heads. */
START_TEST(partial_rotation)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int8");
    write_changed(&folder,
                  &(struct test_change){ .key = "llama.rope.dimension_count", .number = 8 });
    check_fails(&params, AKUNU_ERROR_UNSUPPORTED,
                "8 of a head's 16 dimensions turn; expected all, as GGUF permutes them");
    test_folder_end(&folder);
}
END_TEST

/* A tensor of a layer behind the last one, and one whose name says nothing, are left out. */
START_TEST(other_tensors)
{
    static const char *const others[] = { "blk.2.attn_norm.weight", "nobody.knows", NULL };
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int8");
    struct akunu_compress_result before = compress(&params);
    write_changed(&folder, &(struct test_change){ .others = others });
    params.overwrite = true;
    params.log = on_log;
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_eq(result.int8_bytes, before.int8_bytes);
    ck_assert_uint_eq(result.plain_bytes, before.plain_bytes);
    ck_assert_uint_eq(result.source_bytes, before.source_bytes + 2 * 64 * sizeof(float));
    ck_assert_str_eq(logged, "nobody.knows: left out, since llama models have no such tensor\n");
    test_folder_end(&folder);
}
END_TEST

/* A GGUF file of a folder's model gives the settings of the folder's own config.json, and no
 * others. The mean, 1, is the only pooling that BERT's config.json can mean. */
START_TEST(config_of_folder)
{
    struct test_folder folder;
    const char *key;
    json_t *value;
    struct akunu_compress_params params = begin(&folder, "encoders/bert/model.gguf", "int8");
    json_t *expected = read_json(test_path("encoders/bert"), "config.json");
    write_changed(&folder, &(struct test_change){ .key = "bert.pooling_type", .number = 1 });
    compress(&params);
    json_t *config = read_json(to, "config.json");
    json_object_set_new(expected, "torch_dtype", json_string("float16"));
    json_object_foreach (config, key, value)
        ck_assert_msg(json_equal(value, json_object_get(expected, key)), "%s", key);
    convert();
    check_all(made, NULL);
    json_decref(expected);
    json_decref(config);
    test_folder_end(&folder);
}
END_TEST

/* ---- Folders ------------------------------------------------------------ */
START_TEST(encodings_join)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int8");
    params.group = 32;
    struct akunu_compress_result first = compress(&params);
    params.encoding = "int4";
    struct akunu_compress_result second = compress(&params);
    ck_assert_uint_eq(second.int8_bytes, first.int8_bytes);
    ck_assert_uint_eq(second.plain_bytes, first.plain_bytes);
    /* 8 + 1 and 4 + 1 bits */
    ck_assert_uint_eq(second.int4_bytes * 9, first.int8_bytes * 5);
    struct test_bytes manifest = read_file(to, "manifest.json");
    ck_assert_ptr_nonnull(strstr((const char *)manifest.data, "\"use\": \"int4\""));
    free(manifest.data);
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "has int4 already");
    snprintf(from, sizeof from, "%s", test_path("models/qwen2.gguf"));
    params.encoding = "int3";
    params.text = text;
    params.n_text = sizeof text - 1;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "another model");
    params.encoding = "int8";
    params.overwrite = true;
    compress(&params);
    ck_assert(!has_file(to, "tensors/model__layers__0__self_attn__q_proj__weight__q4.npy"));
    convert();
    check_all(made, NULL);
    test_folder_end(&folder);
}
END_TEST

START_TEST(other_folder)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int8");
    snprintf(to, sizeof to, "%s", folder.path);
    test_write_text(&folder, "letter.txt", "Dear reader");
    params.overwrite = true;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "not empty");
    ck_assert(!has_file(to, "tensors"));
    test_folder_end(&folder);
}
END_TEST

/* ---- Sums of inputs ------------------------------------------------------ */
static void write_sums(const char *path)
{
    akunu_token ids[64];
    struct akunu_session_params params;
    struct akunu_model *model = akunu_model_load(from, NULL);
    akunu_session_params_default(&params, sizeof params);
    params.context = params.batch = 64;
    struct akunu_session *session = akunu_session_new(model, &params);
    struct akunu_importance *im = akunu_importance_new(model, NULL);
    for (int i = 0; i < 64; i++)
        ids[i] = i * 7 % 61 + 3;
    ck_assert_msg(akunu_importance_add(im, session, &(struct akunu_ids){ ids, 64 }, NULL, NULL) ==
                      AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert_int_eq(akunu_importance_write(im, path, true), AKUNU_OK);
    akunu_importance_free(im);
    akunu_session_free(session);
    akunu_model_free(model);
}

static size_t count_arrays(const char *folder)
{
    char path[200];
    snprintf(path, sizeof path, "%s/tensors", folder);
    return test_count_entries(path);
}

/* Every array of one folder is in the other, and no others are. */
/* Arrays of `a` that are others in `b`; the first one's name goes to `first`. */
static int count_other_arrays(const char *a, const char *b, char first[300])
{
    char path[200];
    int n = 0;
    snprintf(path, sizeof path, "%s/tensors", a);
    DIR *dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char name[300];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "tensors/%s", entry->d_name);
        struct test_bytes x = read_file(a, name), y = read_file(b, name);
        if ((x.n != y.n || memcmp(x.data, y.data, x.n) != 0) && n++ == 0)
            snprintf(first, 300, "%s", name);
        free(x.data);
        free(y.data);
    }
    closedir(dir);
    return n;
}

static void check_same_arrays(const char *a, const char *b)
{
    char first[300];
    ck_assert_msg(count_other_arrays(a, b, first) == 0, "%s", first);
    ck_assert_uint_eq(count_arrays(a), count_arrays(b));
}

static void check_same_file(const char *a, const char *b, const char *name)
{
    struct test_bytes x = read_file(a, name), y = read_file(b, name);
    ck_assert_msg(x.n == y.n && memcmp(x.data, y.data, x.n) == 0, "%s", name);
    free(x.data);
    free(y.data);
}

/* ---- What cannot be written --------------------------------------------- */
static const char shape_file[] = "tensors/model__norm__weight__shape.npy",
                  plain_file[] = "tensors/model__norm__weight__pt.npy";

/* What is in the way of a new folder: something of a name in it, and what the call says. */
static const struct {
    const char *name; /* "": the folder itself; NULL: the folder's own folder is not there */
    enum { A_FILE, A_FOLDER, A_LINK } kind;
    enum akunu_status status;
    const char *said;
} obstacles[] = {
    { NULL, A_FILE, AKUNU_ERROR_IO, "small: cannot create: No such file or directory" },
    { "", A_FILE, AKUNU_ERROR_IO, "small: cannot open: Not a directory" },
    { "tensors", A_FILE, AKUNU_ERROR_IO, "small/tensors: cannot open: Not a directory" },
    { "tensors", A_LINK, AKUNU_ERROR_IO, "small/tensors: cannot open: Not a directory" },
    { "compress.journal", A_LINK, AKUNU_ERROR_IO,
      "small/compress.journal: cannot write: Too many levels of symbolic links" },
    { "compress.journal", A_FOLDER, AKUNU_ERROR_FORMAT,
      "small/compress.journal: expected a file of at most 67108864 bytes" },
    { "manifest.json", A_FOLDER, AKUNU_ERROR_FORMAT,
      "small/manifest.json: expected a file of at most 67108864 bytes" },
    { "manifest.json", A_FILE, AKUNU_ERROR_FORMAT, "manifest.json" },
    { "config.json.part", A_FOLDER, AKUNU_ERROR_IO,
      "small/config.json: cannot write: Is a directory" },
    { "config.json", A_FOLDER, AKUNU_ERROR_IO, "small/config.json: cannot write: Is a directory" },
    { "manifest.json.part", A_FOLDER, AKUNU_ERROR_IO,
      "small/manifest.json.part: cannot write: Is a directory" },
    { shape_file, A_FOLDER, AKUNU_ERROR_IO,
      "tensors/model__norm__weight__shape.npy: cannot write: Is a directory" },
    { plain_file, A_FOLDER, AKUNU_ERROR_IO,
      "tensors/model__norm__weight__pt.npy: cannot write: Is a directory" },
};

/* Puts it in the way; the rest of the folder is that of a run that wrote nothing. */
static void put_obstacle(const struct test_folder *folder, int i)
{
    char path[200];
    snprintf(path, sizeof path, "small/%s", obstacles[i].name);
    if (*obstacles[i].name) {
        ck_assert_int_eq(mkdir(to, 0777), 0);
        if (strcmp(obstacles[i].name, "compress.journal") != 0)
            test_write_text(folder, "small/compress.journal", "");
    } else {
        snprintf(path, sizeof path, "small");
    }
    if (strncmp(obstacles[i].name, "tensors/", 8) == 0)
        ck_assert_int_eq(mkdir(test_in(folder, "small/tensors"), 0777), 0);
    if (obstacles[i].kind == A_FILE)
        test_write_text(folder, path, "");
    else if (obstacles[i].kind == A_FOLDER)
        ck_assert_int_eq(mkdir(test_in(folder, path), 0777), 0);
    else
        ck_assert_int_eq(symlink("nowhere", test_in(folder, path)), 0);
}

START_TEST(obstacle)
{
    struct test_folder folder;
    char said[300];
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int8");
    size_t n_open = test_count_open();
    const char *name = obstacles[_i].name;
    bool is_outside = !name || !*name || strncmp(obstacles[_i].said, "small", 5) == 0;
    if (name)
        put_obstacle(&folder, _i);
    else
        snprintf(to, sizeof to, "%s", test_in(&folder, "none/small"));
    ck_assert_int_eq(akunu_compress(from, to, &params, NULL, 0), obstacles[_i].status);
    snprintf(said, sizeof said, "%s%s%s%s", is_outside ? folder.path : "", is_outside ? "/" : "",
             name ? "" : "none/", obstacles[_i].said);
    ck_assert_msg(strncmp(akunu_last_error(), said, strlen(said)) == 0, "%s", akunu_last_error());
    if (obstacles[_i].status == AKUNU_ERROR_IO)
        ck_assert_str_eq(akunu_last_error(), said);
    ck_assert_uint_eq(test_count_open(), n_open);
    test_folder_end(&folder);
}
END_TEST

/* What a step of writing does: one fails, or each write stops early. */
static long steps_left = -1; /* before the one that fails; negative: none will */
static bool is_slow;

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_renameat(int from_dir, const char *old, int to_dir, const char *new);
int __wrap_renameat(int from_dir, const char *old, int to_dir, const char *new);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
ssize_t __real_read(int fd, void *data, size_t n);
ssize_t __wrap_read(int fd, void *data, size_t n);
int __real_ftruncate(int fd, off_t n);
int __wrap_ftruncate(int fd, off_t n);

static bool is_failing(void)
{
    if (steps_left < 0 || steps_left-- != 0)
        return false;
    errno = EIO;
    return true;
}

ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    static unsigned n_calls;
    if (is_slow && n_calls++ % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return is_failing() ? -1 : __real_write(fd, data, is_slow && n > 100 ? n / 2 : n);
}

int __wrap_fsync(int fd)
{
    return is_failing() ? -1 : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
    return is_failing() ? -1 : __real_fdatasync(fd);
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
    bool is_counted = strcmp(name, "manifest.json") == 0; /* others need not go */
    return is_counted && is_failing() ? -1 : __real_unlinkat(dir, name, flags);
}

ssize_t __wrap_read(int fd, void *data, size_t n)
{
    char name[32], path[300] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    bool is_counted = steps_left >= 0 && readlink(name, path, sizeof path - 1) > 0 &&
                      (strstr(path, "compress.journal") || strstr(path, "manifest.json"));
    return is_counted && is_failing() ? -1 : __real_read(fd, data, is_slow && n > 9 ? n / 2 : n);
}

int __wrap_ftruncate(int fd, off_t n)
{
    return is_failing() ? -1 : __real_ftruncate(fd, n);
}

int __wrap_renameat(int from_dir, const char *old, int to_dir, const char *new)
{
    return is_failing() ? -1 : __real_renameat(from_dir, old, to_dir, new);
}

/* Whatever fails, the call says so, and there is no manifest. The same call goes on behind it. */
START_TEST(failing_steps)
{
    struct test_folder folder;
    char whole[128];
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int4");
    struct akunu_compress_result expected = compress(&params);
    snprintf(whole, sizeof whole, "%s", to);
    snprintf(to, sizeof to, "%s", test_in(&folder, "again"));
    params.overwrite = true;
    long n = 0;
    for (bool is_over = false; !is_over; n += 1 + n / 4) {
        steps_left = n;
        enum akunu_status status = akunu_compress(from, to, &params, NULL, 0);
        is_over = steps_left >= 0;
        steps_left = -1;
        ck_assert_msg(status == (is_over ? AKUNU_OK : AKUNU_ERROR_IO), "step %ld: %d: %s", n,
                      (int)status, akunu_last_error());
        ck_assert(is_over || strstr(akunu_last_error(), ": Input/output error"));
        ck_assert_int_eq(has_file(to, "manifest.json"), is_over);
        check_files(to);
    }
    ck_assert_int_gt(n, 200);
    steps_left = 0;
    ck_assert_int_eq(akunu_compress(from, to, &params, NULL, 0), AKUNU_ERROR_IO);
    steps_left = -1;
    ck_assert_ptr_nonnull(
        strstr(akunu_last_error(), "again/manifest.json: cannot read: Input/output error"));
    ck_assert(has_file(to, "manifest.json"));
    is_slow = true;
    struct akunu_compress_result result = compress(&params);
    ck_assert_mem_eq(&expected, &result, sizeof result);
    check_same_file(whole, to, "manifest.json");
    check_same_arrays(whole, to);
    test_folder_end(&folder);
}
END_TEST

/* Without memory nothing is left open, and there is no manifest. */
START_TEST(without_memory)
{
    struct test_folder folder;
    char sums[128];
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int4");
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    write_sums(sums);
    params.awq = params.importance = sums;
    params.text = text;
    params.n_text = sizeof text - 1;
    params.n_threads = 1;
    params.overwrite = true;
    size_t n_open = test_count_open();
    long n = 0, n_calls = 0, n_said = 0;
    for (bool is_over = false; !is_over; n += 1 + n / 16) {
        refuse_allocation(n);
        enum akunu_status status = akunu_compress(from, to, &params, NULL, 0);
        is_over = !allow_allocations();
        ck_assert(!is_over || status == AKUNU_OK);
        n_calls++;
        n_said += status == AKUNU_ERROR_MEMORY;
        ck_assert_int_eq(has_file(to, "manifest.json"), status == AKUNU_OK);
        ck_assert_uint_eq(test_count_open(), n_open);
    }
    ck_assert_int_gt(n, 200);
    ck_assert_int_gt(n_said * 4, n_calls * 3); /* others found no format that they know */
    test_folder_end(&folder);
}
END_TEST

/* Another process has the folder's lock. */
START_TEST(locked)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int8");
    ck_assert_int_eq(mkdir(to, 0777), 0);
    int fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    check_fails_alone(&params, AKUNU_ERROR_BUSY, "small: another process is writing it");
    close(fd);
    test_folder_end(&folder);
}
END_TEST

/* Stops once a part of the matrices is written. */
static bool on_progress(double fraction, void *user)
{
    (void)user;
    return fraction < 0.7;
}

static struct test_bytes read_array(void)
{
    return read_file(to, "tensors/model__layers__1__mlp__down_proj__weight__q4.npy");
}

START_TEST(interrupted)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int4");
    params.n_threads = 3;
    compress(&params);
    struct test_bytes whole = read_file(to, "manifest.json"), array = read_array();

    snprintf(to, sizeof to, "%s", test_in(&folder, "again"));
    params.n_threads = 1;
    params.progress = on_progress;
    check_fails(&params, AKUNU_ERROR_CANCELLED, "cancelled");
    ck_assert(!has_file(to, "manifest.json") && !has_file(to, "manifest.json.part"));
    ck_assert(has_file(to, "compress.journal"));
    ck_assert_ptr_null(akunu_file_open(to));
    params.progress = NULL;
    params.group = 32;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "other settings");
    params.group = 64;
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_gt(result.n_resumed, 0);
    ck_assert_uint_lt(result.n_resumed, result.n_matrices);

    struct test_bytes resumed = read_file(to, "manifest.json"), same = read_array();
    ck_assert_uint_eq(whole.n, resumed.n);
    ck_assert_mem_eq(whole.data, resumed.data, whole.n);
    ck_assert_uint_eq(array.n, same.n);
    ck_assert_mem_eq(array.data, same.data, array.n);
    free(whole.data);
    free(array.data);
    free(resumed.data);
    free(same.data);
    test_folder_end(&folder);
}
END_TEST

/* Begins another folder and stops. */
static void interrupt(const struct test_folder *folder, const char *name,
                      struct akunu_compress_params *params)
{
    snprintf(to, sizeof to, "%s", test_in(folder, name));
    params->progress = on_progress;
    check_fails(params, AKUNU_ERROR_CANCELLED, "cancelled");
    params->progress = NULL;
}

/* Damages arrays of the first two matrices of a journal, and its end. Returns the matrices. */
static uint64_t damage(const char *const array_of[2])
{
    char path[300];
    uint64_t n = 0;
    struct test_bytes journal = read_file(to, "compress.journal");
    test_append(&journal, "", 1);
    for (const char *at = (char *)journal.data; (at = strstr(at, "\"int4\"")); at++)
        n++;
    free(journal.data);
    snprintf(path, sizeof path, "%s/%s", to, array_of[0]);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size - 1), 0);
    snprintf(path, sizeof path, "%s/%s", to, array_of[1]);
    ck_assert_int_eq(unlink(path), 0);
    snprintf(path, sizeof path, "%s/compress.journal", to);
    FILE *file = fopen(path, "a");
    fputs("{\"tensor\":\"a/b\",\"encoding\":\"int4\",\"shape\":[1],\"info\":{}}\n"
          "{\"tensor\":\"\",\"encoding\":\"int4\",\"shape\":[1],\"info\":{}}\n"
          "{\"tensor\":\"none\",\"encoding\":\"int4\",\"shape\":[1],\"info\":{}}\n"
          "{\"tensor\":\"model.norm.weight\",\"encoding\":\"int5\",\"info\":{}}\n"
          "{\"tensor\":\"model.norm.weight\",\"encoding\":\"plain\"}\n"
          "{\"encoding\":\"plain\",\"info\":{}}\n"
          "{\"tensor\":\"model.norm.weight\",\"info\":{}}\n"
          "{\"tensor\":\"model.norm.wei",
          file);
    fclose(file);
    return n;
}

/* What an interrupted run wrote is taken only if its arrays are whole. */
START_TEST(damaged_arrays)
{
    static const char *const files[2] = {
        "tensors/model__layers__0__self_attn__q_proj__weight__s4.npy",
        "tensors/model__layers__0__self_attn__k_proj__weight__shape.npy",
    };
    struct test_folder folder;
    char whole[128];
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int4");
    struct akunu_compress_result expected = compress(&params);
    snprintf(whole, sizeof whole, "%s", to);
    interrupt(&folder, "again", &params);
    uint64_t n = damage(files);
    ck_assert_uint_gt(n, 2);
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_eq(result.n_resumed, n - 2);
    expected.n_resumed = result.n_resumed;
    ck_assert_mem_eq(&expected, &result, sizeof result);
    json_t *manifest = read_json(whole, "manifest.json"), *same = read_json(to, "manifest.json");
    ck_assert(json_equal(manifest, same)); /* in another order */
    json_decref(manifest);
    json_decref(same);
    check_same_arrays(whole, to);
    test_folder_end(&folder);
}
END_TEST

/* Sums of the columns of one matrix. */
static void write_one_sum(const char *path, const char *name, float value)
{
    float squares[64];
    for (int i = 0; i < 64; i++)
        squares[i] = i % 5 ? 1.0f : value;
    test_write_sums(path, &name, 1, squares, 64);
}

/* A run goes on only with the same source, and the same importance. */
START_TEST(other_source)
{
    static const struct {
        const char *name;
        float value;
    } others[] = { { "blk.0.attn_k.weight", 9.0f }, { "blk.0.attn_q.weight", 8.0f } };
    struct test_folder folder;
    char sums[128], whole[128];
    float *values = calloc(128 * 64, sizeof *values);
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int4");
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    write_one_sum(sums, "blk.0.attn_q.weight", 9.0f);
    params.importance = sums;
    compress(&params);
    snprintf(whole, sizeof whole, "%s", to);
    interrupt(&folder, "again", &params);
    for (int i = 0; i < 2; i++) {
        write_one_sum(sums, others[i].name, others[i].value);
        check_fails(&params, AKUNU_ERROR_ARGUMENT,
                    "again: an interrupted run with another source or other settings began it; set "
                    "`overwrite` (--overwrite) to begin anew");
    }
    write_one_sum(sums, "blk.0.attn_q.weight", 9.0f);
    compress(&params);
    check_same_arrays(whole, to);
    /* other values of one matrix */
    params.encoding = "int8";
    write_changed(&folder,
                  &(struct test_change){ .tensor = "blk.1.ffn_up.weight", .values = values });
    check_fails(&params, AKUNU_ERROR_ARGUMENT,
                "again: holds another model than this source; set `overwrite` (--overwrite) to "
                "replace it");
    interrupt(&folder, "third", &params);
    snprintf(from, sizeof from, "%s", test_path("models/llama-f32.gguf"));
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "third: an interrupted run with another source");
    free(values);
    test_folder_end(&folder);
}
END_TEST

/* Nothing remains of what is overwritten: of a whole model with other tensors, and of an
 * interrupted run. */
START_TEST(begun_anew)
{
    struct test_folder folder;
    char fresh[128];
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int8");
    struct akunu_compress_result expected = compress(&params);
    snprintf(fresh, sizeof fresh, "%s", to);
    for (int i = 0; i < 3; i++) {
        params.encoding = "int4";
        params.group = 32;
        params.overwrite = false;
        snprintf(from, sizeof from, "%s",
                 test_path(i == 2 ? "models/llama-f32.gguf" : "models/qwen3.gguf"));
        snprintf(to, sizeof to, "%s/of-%d", folder.path, i);
        if (i == 1) {
            char name[8];
            snprintf(name, sizeof name, "of-%d", i);
            interrupt(&folder, name, &params);
        } else {
            compress(&params);
        }
        snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
        params.encoding = "int8";
        params.group = 64;
        params.overwrite = true;
        struct akunu_compress_result result = compress(&params);
        ck_assert_mem_eq(&expected, &result, sizeof result);
        check_same_file(fresh, to, "manifest.json");
        check_same_arrays(fresh, to);
        ck_assert(!has_file(to, "compress.journal"));
    }
    test_folder_end(&folder);
}
END_TEST

/* A GGUF file says of an encoder what a decoder's config.json does not. */
START_TEST(encoders_in_gguf)
{
    static const char *const cases[][2] = {
        { "bert", "the kind of pooling is 2, and would be read as 1" },
        { "modernbert", "the number of token types is 2, and would be read as 0" },
        { "jina-bert-v2", "feed_forward_type is \"original\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_folder folder;
        char model[64];
        snprintf(model, sizeof model, "encoders/%s/model.gguf", cases[i][0]);
        struct akunu_compress_params params = begin(&folder, model, "int8");
        ck_assert_int_eq(akunu_compress(from, to, &params, NULL, 0), AKUNU_ERROR_UNSUPPORTED);
        const char *said = akunu_last_error(), *why = strstr(said, cases[i][1]);
        ck_assert_msg(strncmp(said, "config.json cannot say of this model", 36) == 0 && why, "%s",
                      said);
        ck_assert_ptr_nonnull(strstr(why, "; compress its Hugging Face folder instead"));
        test_folder_end(&folder);
    }
}
END_TEST

/* A folder of arrays is a source like any other: its files are copied. */
START_TEST(from_a_folder)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int8");
    compress(&params);
    snprintf(from, sizeof from, "%s", to);
    snprintf(to, sizeof to, "%s", test_in(&folder, "smaller"));
    params.encoding = "int4";
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "INT8_G");
    params.requantize = true;
    params.text = text;
    params.n_text = sizeof text - 1;
    struct akunu_compress_result result = compress(&params);
    ck_assert_double_ge(result.min_cosine, 0.99);
    ck_assert_double_gt(result.divergence, 0.0);
    ck_assert(has_file(to, "model-metadata.gguf"));
    test_folder_end(&folder);
}
END_TEST

/* The vocabulary of a GGUF source: other metadata than a GGUF file's are refused by name. */
START_TEST(damaged_metadata)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int4");
    compress(&params);
    struct akunu_model *model = akunu_model_load(to, NULL);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_ptr_nonnull(akunu_model_tokenizer(model));
    akunu_model_free(model);
    struct test_bytes metadata = read_file(to, "model-metadata.gguf");
    for (size_t n = 0; n < metadata.n; n += metadata.n / 5) {
        test_write(&folder, "small/model-metadata.gguf", metadata.data, n);
        ck_assert_ptr_null(akunu_file_open(to));
        ck_assert_ptr_nonnull(strstr(akunu_last_error(), "model-metadata.gguf"));
    }
    free(metadata.data);
    test_folder_end(&folder);
}
END_TEST

/* ---- Options ------------------------------------------------------------ */
static const struct {
    const char *encoding;
    uint32_t group;
    bool has_awq;
    double divergence, agreement;
    const char *said;
} refused_options[] = {
    { "int8", 48, false, -1.0, -1.0, "groups of 48 columns; expected 32, 64, 96 or 128" },
    { "int8", 160, false, -1.0, -1.0, "groups of 160 columns; expected 32, 64, 96 or 128" },
    { "int8", 64, true, -1.0, -1.0,
      "AWQ is for 4 and 3 bits: 8 bits lose too little to gain from it" },
    { "int3", 64, false, -1.0, -1.0,
      "3 bits lose much, so the result is compared with the source on a text, and none is given" },
    { "int4", 64, false, NAN, -1.0,
      "limits nan and -1; expected a KL divergence and a share of at most 1" },
    { "int4", 64, false, -1.0, 1.5,
      "limits -1 and 1.5; expected a KL divergence and a share of at most 1" },
};

START_TEST(refused_option)
{
    struct test_folder folder;
    struct akunu_compress_params params =
        begin(&folder, "models/qwen3.gguf", refused_options[_i].encoding);
    params.group = refused_options[_i].group;
    params.awq = refused_options[_i].has_awq ? "sums" : NULL;
    params.max_divergence = refused_options[_i].divergence;
    params.min_agreement = refused_options[_i].agreement;
    check_fails_alone(&params, AKUNU_ERROR_ARGUMENT, refused_options[_i].said);
    ck_assert_str_eq(akunu_last_error(), refused_options[_i].said);
    test_folder_end(&folder);
}
END_TEST

/* ---- The comparison ----------------------------------------------------- */
START_TEST(limits)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int3");
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "none is given");
    params.text = text;
    params.n_text = 20;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "tokens");
    params.n_text = sizeof text - 1;
    params.max_divergence = 0.0;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "loses too much");
    ck_assert(!has_file(to, "manifest.json") && !has_file(to, "manifest.json.part"));
    params.max_divergence = 100.0;
    params.min_agreement = 0.0;
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_eq(result.n_resumed, result.n_matrices);
    ck_assert_double_gt(result.min_cosine, 0.9); /* of what was resumed */
    ck_assert_double_gt(result.divergence, 0.0);
    ck_assert_double_le(result.agreement, 1.0);
    test_folder_end(&folder);
}
END_TEST

/* The mean over the second halves of a text's chunks. */
static struct akunu_compress_result compare_models(const char *said, size_t n_said)
{
    struct akunu_compress_result sums = { 0 };
    struct akunu_model *a = akunu_model_load(from, NULL), *b = akunu_model_load(to, NULL);
    struct akunu_model_info info;
    akunu_token ids[4096];
    ck_assert_int_eq(akunu_model_get_info(a, &info, sizeof info), AKUNU_OK);
    int64_t n = akunu_tokenizer_encode(akunu_model_tokenizer(a), said, n_said, AKUNU_ADD_SPECIAL,
                                       ids, 4096);
    int64_t chunk = n < 256 ? n : 256, n_chunks = n / chunk < 8 ? n / chunk : 8;
    for (int64_t c = 0; c < n_chunks; c++) {
        size_t first = (size_t)chunk / 2, n_vocab = info.vocab_size;
        float *x = test_run_chunk(a, ids + c * chunk, (size_t)chunk, first, n_vocab),
              *y = test_run_chunk(b, ids + c * chunk, (size_t)chunk, first, n_vocab);
        for (size_t i = 0; i < (size_t)chunk - first; i++)
            test_compare_logits(x + i * n_vocab, y + i * n_vocab, n_vocab, &sums);
        free(x);
        free(y);
    }
    sums.divergence /= (double)sums.n_positions;
    sums.agreement /= (double)sums.n_positions;
    akunu_model_free(a);
    akunu_model_free(b);
    return sums;
}

/* A text that is one part of a chunk, one of three chunks, and one of more than eight; with limits
 * that are just met, and just missed. */
START_TEST(divergence)
{
    static const size_t lengths[] = { 150, 1500, 5000 };
    struct test_folder folder;
    char said[5001] = "", line[160];
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int4");
    for (size_t i = 0; i < 5000; i++)
        said[i] = text[(i + i / 331) % (sizeof text - 1)];
    params.text = said;
    params.n_text = lengths[_i];
    params.overwrite = true;
    params.n_threads = 1;
    struct akunu_compress_result alone = compress(&params);
    params.n_threads = 3;
    struct akunu_compress_result result = compress(&params),
                                 expected = compare_models(said, lengths[_i]);
    ck_assert_mem_eq(&alone, &result, sizeof result);
    ck_assert_uint_eq(result.n_positions, expected.n_positions);
    ck_assert_double_gt(result.divergence, 0.0);
    ck_assert_double_eq_tol(result.divergence, expected.divergence, 1e-4 * expected.divergence);
    ck_assert_double_eq_tol(result.agreement, expected.agreement, 1e-12);
    params.max_divergence = result.divergence;
    params.min_agreement = result.agreement;
    compress(&params);
    params.max_divergence = nextafter(result.divergence, 0.0);
    params.min_agreement = -1.0;
    snprintf(
        line, sizeof line,
        "int4 loses too much: KL divergence %.4f (at most %.4g), equal best tokens %.1f %% (no "
        "limit); without a manifest the folder is no model",
        result.divergence, params.max_divergence, 100.0 * result.agreement);
    check_fails(&params, AKUNU_ERROR_ARGUMENT, line);
    if (result.agreement < 1.0) {
        params.max_divergence = -1.0;
        params.min_agreement = nextafter(result.agreement, 1.0);
        snprintf(
            line, sizeof line,
            "int4 loses too much: KL divergence %.4f (no limit), equal best tokens %.1f %% (at "
            "least %.4g %%)",
            result.divergence, 100.0 * result.agreement, 100.0 * params.min_agreement);
        check_fails(&params, AKUNU_ERROR_ARGUMENT, line);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- AWQ ---------------------------------------------------------------- */
/* Multiplies columns by the norm before them: then the factors are gone. */
static struct tensor read_behind(const struct akunu_file *file, const char *norm, const char *name)
{
    struct tensor t = read_tensor(file, name), n = read_tensor(file, norm);
    ck_assert_uint_eq(t.cols, n.cols);
    for (uint64_t i = 0; i < t.rows * t.cols; i++)
        t.values[i] *= n.values[i % t.cols];
    free(n.values);
    return t;
}

static void check_behind(const struct akunu_file *a, const struct akunu_file *b, const char *norm,
                         const char *name)
{
    struct tensor x = read_behind(a, norm, name), y = read_behind(b, norm, name);
    double cosine = get_cosine(&x, &y);
    ck_assert_msg(cosine > 0.99, "%s: %f", name, cosine);
    free(x.values);
    free(y.values);
}

static bool differs(const struct akunu_file *a, const struct akunu_file *b, const char *name)
{
    struct tensor x = read_tensor(a, name), y = read_tensor(b, name);
    bool result = memcmp(x.values, y.values, x.cols * sizeof(float)) != 0;
    free(x.values);
    free(y.values);
    return result;
}

/* llama-f32 has permuted rows of q and k. */
static const char *const awq_models[] = { "models/qwen3.gguf", "models/llama-f32.gguf" };

START_TEST(awq)
{
    struct test_folder folder;
    char sums[128];
    struct akunu_compress_params params = begin(&folder, awq_models[_i], "int4");
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    write_sums(sums);
    params.awq = sums;
    params.group = 32;
    params.requantize = true;
    compress(&params);
    convert();
    struct akunu_file *source = akunu_file_open(from), *other = akunu_file_open(made);
    check_behind(source, other, "blk.0.attn_norm.weight", "blk.0.attn_q.weight");
    check_behind(source, other, "blk.0.attn_norm.weight", "blk.0.attn_v.weight");
    check_behind(source, other, "blk.1.ffn_norm.weight", "blk.1.ffn_up.weight");
    ck_assert(differs(source, other, "blk.0.attn_norm.weight") ||
              differs(source, other, "blk.0.ffn_norm.weight") ||
              differs(source, other, "blk.1.ffn_norm.weight"));
    akunu_file_free(source);
    akunu_file_free(other);
    params.encoding = "int8";
    params.awq = NULL;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "AWQ");
    test_folder_end(&folder);
}
END_TEST

/* A norm, and what reads it. */
struct awq_norm {
    const char *gguf, *hf, *readers[8];
};

/* Inputs of a model: of each column "large", 1, or 0 for the eighth one; and what scales. */
struct awq_case {
    const char *model;
    uint64_t cols;
    float large, eighth;
    bool has_importance;
    struct awq_norm norms[4];
};
static const struct awq_case awq_cases[] = {
    { "llama-f32",
      64,
      400.0f,
      1.0f,
      false,
      { { "blk.0.attn_norm.weight",
          "model.layers.0.input_layernorm.weight",
          { "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight" } },
        { "blk.0.ffn_norm.weight",
          "model.layers.0.post_attention_layernorm.weight",
          { "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight" } },
        { "blk.1.attn_norm.weight",
          "model.layers.1.input_layernorm.weight",
          { "blk.1.attn_q.weight", "blk.1.attn_k.weight", "blk.1.attn_v.weight" } },
        { "blk.1.ffn_norm.weight",
          "model.layers.1.post_attention_layernorm.weight",
          { "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight" } } } },
    { "qwen2moe",
      64,
      400.0f,
      1.0f,
      true,
      { { "blk.0.attn_norm.weight",
          "model.layers.0.input_layernorm.weight",
          { "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight" } },
        { "blk.0.ffn_norm.weight",
          "model.layers.0.post_attention_layernorm.weight",
          { "blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight", "blk.0.ffn_gate_inp.weight",
            "blk.0.ffn_gate_inp_shexp.weight", "blk.0.ffn_gate_shexp.weight",
            "blk.0.ffn_up_shexp.weight" } } } },
    { "phi3",
      32,
      400.0f,
      0.0f,
      false,
      { { "blk.1.attn_norm.weight",
          "model.layers.1.input_layernorm.weight",
          { "blk.1.attn_qkv.weight" } },
        { "blk.1.ffn_norm.weight",
          "model.layers.1.post_attention_layernorm.weight",
          { "blk.1.ffn_up.weight" } } } },
    /* norms are stored minus 1 */
    { "window100",
      32,
      100.0f,
      1.0f,
      false,
      { { "blk.0.attn_norm.weight",
          "model.layers.0.input_layernorm.weight",
          { "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight" } },
        { "blk.0.ffn_norm.weight",
          "model.layers.0.pre_feedforward_layernorm.weight",
          { "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight" } } } },
    /* no inputs, no factors */
    { "llama-f32",
      64,
      0.0f,
      0.0f,
      false,
      { { "blk.0.attn_norm.weight",
          "model.layers.0.input_layernorm.weight",
          { "blk.0.attn_v.weight" } } } },
};
enum { AWQ_NORMS = 4, AWQ_COLS = 64, AWQ_STEPS = 20 };

/* Squares of the inputs, and how much the errors of the columns count. */
struct awq_inputs {
    float squares[AWQ_COLS], weights[AWQ_COLS];
    uint64_t cols;
};

static struct awq_inputs make_inputs(const struct awq_case *of)
{
    struct awq_inputs in = { .cols = of->cols };
    for (uint64_t j = 0; j < of->cols; j++) {
        in.squares[j] = of->large == 0.0f ? 0.0f : j % 5 == 0 ? of->large : 1.0f;
        if (j == 7)
            in.squares[j] = of->eighth;
        in.weights[j] = in.squares[j] * (of->has_importance && j % 3 == 1 ? 2.0f : 1.0f);
    }
    return in;
}

/* x^a / sqrt(max x^a · min x^a), of inputs that are at least a 10000th of the largest. */
static double get_factor(const struct awq_inputs *in, uint64_t column, double exponent)
{
    double top = 0.0, least = 1e9;
    for (uint64_t j = 0; j < in->cols; j++)
        top = fmax(top, (double)in->squares[j]);
    if (top == 0.0)
        return 1.0;
    for (uint64_t j = 0; j < in->cols; j++)
        least = fmin(least, fmax((double)in->squares[j], 1e-8 * top));
    return pow(fmax((double)in->squares[column], 1e-8 * top) / sqrt(top * least), 0.5 * exponent);
}

/* Adds Σ x² (w − w' / factor)², where w' is what INT4 makes of w · factor, of at most 192 rows. */
static void add_awq_errors(const struct tensor *t, const struct awq_inputs *in,
                           double errors[AWQ_STEPS])
{
    float scaled[AWQ_COLS], weights[AWQ_COLS], scales[AWQ_COLS / 32];
    uint8_t numbers[AWQ_COLS / 2];
    uint64_t stride = t->rows / 192 + 1;
    for (uint64_t row = 0; row < t->rows; row += stride)
        for (int step = 0; step < AWQ_STEPS; step++) {
            const float *x = t->values + row * in->cols;
            for (uint64_t j = 0; j < in->cols; j++) {
                float factor = (float)get_factor(in, j, step / 20.0);
                scaled[j] = x[j] * factor;
                weights[j] = in->weights[j] / (factor * factor);
            }
            ak_quantize_groups(4, 32, scaled, weights, numbers, scales, in->cols);
            for (uint64_t j = 0; j < in->cols; j++) {
                int number = (numbers[j / 2] >> j % 2 * 4 & 15) - 8;
                double found = (double)scales[j / 32] * number,
                       off = (double)x[j] - found / get_factor(in, j, step / 20.0);
                errors[step] += (double)stride * (double)in->weights[j] * off * off;
            }
        }
}

/* Norms, and routers, which are not quantized. */
static bool is_exact(const char *name)
{
    return strstr(name, "_norm") || strstr(name, "ffn_gate_inp");
}

/* The exponent with the least errors of the outputs of all that reads a norm. */
static double find_exponent(const struct akunu_file *source, const char *const *readers,
                            const struct awq_inputs *in)
{
    double errors[AWQ_STEPS] = { 0.0 };
    int best = 0;
    for (size_t r = 0; readers[r]; r++) {
        struct tensor t = read_tensor(source, readers[r]);
        if (!is_exact(readers[r]))
            add_awq_errors(&t, in, errors);
        free(t.values);
    }
    for (int step = 1; step < AWQ_STEPS; step++)
        best = errors[step] < errors[best] ? step : best;
    return best / 20.0;
}

/* The norm is divided by the factors, and columns are multiplied by them: what INT4 makes of a
 * column is off, but not all of its rows in one direction. */
static void check_scaled(const struct akunu_file *source, const struct akunu_file *other,
                         const char *name, const struct awq_inputs *in, double exponent)
{
    struct tensor x = read_tensor(source, name), y = read_tensor(other, name);
    for (uint64_t j = 0; j < in->cols; j++) {
        double factor = get_factor(in, j, exponent), xx = 0.0, xy = 0.0;
        if (in->squares[j] == 0.0f && !is_exact(name))
            continue; /* may be 0 */
        for (uint64_t at = j; at < x.rows * in->cols; at += in->cols) {
            xx += (double)x.values[at] * (double)x.values[at];
            xy += (double)x.values[at] * (double)y.values[at];
        }
        factor = strstr(name, "_norm") ? 1.0 / factor : factor;
        ck_assert_msg(fabs(xy / xx / factor - 1.0) < (is_exact(name) ? 1e-5 : 0.2),
                      "%s: column %d is %g times as large, not %g", name, (int)j, xy / xx, factor);
    }
    free(x.values);
    free(y.values);
}

/* Sums for everything that reads a norm and is quantized. */
static void write_sums_of(const struct awq_case *of, const float *values, const char *path)
{
    const char *names[AWQ_NORMS * 8];
    uint32_t n = 0;
    for (size_t i = 0; i < AWQ_NORMS && of->norms[i].gguf; i++)
        for (size_t r = 0; of->norms[i].readers[r]; r++)
            if (!is_exact(of->norms[i].readers[r]))
                names[n++] = of->norms[i].readers[r];
    test_write_sums(path, names, n, values, (uint32_t)of->cols);
}

/* Every fifth input is larger than the others: all norms are scaled by the best exponent, and all
 * of their readers inversely. */
START_TEST(awq_factors)
{
    const struct awq_case *of = &awq_cases[_i];
    const struct awq_inputs in = make_inputs(of);
    struct test_folder folder;
    char model[64], sums[128], importance[128];
    snprintf(model, sizeof model, "models/%s.gguf", of->model);
    struct akunu_compress_params params = begin(&folder, model, "int4");
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    snprintf(importance, sizeof importance, "%s", test_in(&folder, "importance"));
    write_sums_of(of, in.squares, sums);
    write_sums_of(of, in.weights, importance);
    params.group = 32;
    params.requantize = true;
    params.awq = sums;
    params.importance = of->has_importance ? importance : NULL;
    params.n_threads = 3;
    compress(&params);
    convert();
    json_t *manifest = read_json(to, "manifest.json"),
           *exponents = json_object_get(manifest, "awq");
    struct akunu_file *source = akunu_file_open(from), *scaled = akunu_file_open(made);
    size_t n = 0;
    for (; n < AWQ_NORMS && of->norms[n].gguf; n++) {
        const struct awq_norm *norm = &of->norms[n];
        json_t *found = json_object_get(exponents, norm->hf);
        ck_assert_msg(found != NULL, "%s", norm->hf);
        double exponent = json_real_value(found);
        ck_assert_double_eq(exponent, find_exponent(source, norm->readers, &in));
        ck_assert(of->large > 0.0f ? exponent > 0.0 : exponent == 0.0);
        check_scaled(source, scaled, norm->gguf, &in, exponent);
        for (size_t r = 0; norm->readers[r] && of->large > 0.0f; r++)
            check_scaled(source, scaled, norm->readers[r], &in, exponent);
    }
    ck_assert_uint_eq(json_object_size(exponents), n);
    akunu_file_free(source);
    akunu_file_free(scaled);
    json_decref(manifest);
    test_folder_end(&folder);
}
END_TEST

/* Models whose matrices read no norm, and encoders. */
static const char *const without_awq[] = { "models/olmo2.gguf", "encoders/bert",
                                           "encoders/modernbert" };

START_TEST(awq_refused)
{
    static const char *const names[] = { "blk.0.attn_q.weight" };
    static const float squares[32];
    struct test_folder folder;
    char sums[128];
    struct akunu_compress_params params = begin(&folder, without_awq[_i], "int4");
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    test_write_sums(sums, names, 1, squares, 32);
    params.awq = sums;
    check_fails(&params, AKUNU_ERROR_UNSUPPORTED, "AWQ scales");
    test_folder_end(&folder);
}
END_TEST

/* ---- Importance --------------------------------------------------------- */
static bool is_same_expert(const char *other, int expert)
{
    char name[128];
    snprintf(name, sizeof name,
             "tensors/model__layers__0__mlp__experts__%d__gate_proj__weight__q4.npy", expert);
    struct test_bytes a = read_file(to, name), b = read_file(other, name);
    ck_assert_uint_eq(a.n, b.n);
    bool result = memcmp(a.data, b.data, a.n) == 0;
    free(a.data);
    free(b.data);
    return result;
}

/* A file with sums of two experts says nothing about the others. */
START_TEST(importance_of_experts)
{
    enum { COLS = 32, WITH = 2, EXPERTS = 6 };
    static const char *const names[] = { "blk.0.ffn_gate_exps.weight" };
    float squares[WITH * COLS];
    struct test_folder folder;
    char sums[128], plain[128];
    struct akunu_compress_params params = begin(&folder, "folders/qwen3next", "int4");
    compress(&params);
    snprintf(plain, sizeof plain, "%s", to);
    snprintf(to, sizeof to, "%s", test_in(&folder, "weighed"));
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    for (int j = 0; j < WITH * COLS; j++)
        squares[j] = j % 3 == 0 ? 1000.0f : 1.0f;
    test_write_sums(sums, names, 1, squares, WITH * COLS);
    params.importance = sums;
    compress(&params);
    for (int expert = 0; expert < EXPERTS; expert++)
        ck_assert_int_eq(is_same_expert(plain, expert), expert >= WITH);
    test_folder_end(&folder);
}
END_TEST

static void write_two_sums(const char *path, const char *const names[2], const float *values,
                           const uint32_t sizes[2])
{
    struct test_bytes bytes = { 0 };
    test_append_u32(&bytes, 2);
    for (int i = 0; i < 2; i++)
        test_append_sums(&bytes, names[i], values, sizes[i]);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes.data, 1, bytes.n, file), bytes.n);
    fclose(file);
    free(bytes.data);
}

/* Sums of as many matrices as the tensor has not are none. Those of AWQ are importance too. */
START_TEST(other_sums)
{
    enum { COLS = 64, EXPERTS = 6 };
    static const char *const of_q[] = { "blk.0.attn_q.weight" },
                             *const of_stack[] = { "blk.0.ffn_gate_exps.weight" },
                             *const of_shared[] = { "blk.0.ffn_gate_shexp.weight" };
    float squares[EXPERTS * COLS];
    struct test_folder folder;
    char sums[128], before[128];
    struct akunu_compress_params params =
        begin(&folder, _i == 0 ? "models/llama-f32.gguf" : "models/qwen2moe.gguf", "int4");
    params.requantize = true;
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    for (int j = 0; j < EXPERTS * COLS; j++)
        squares[j] = j % COLS % 3 == j / COLS % 3 ? 1000.0f : 1.0f;
    if (_i == 0) {
        test_write_sums(sums, of_q, 1, squares, 2 * COLS);
    } else {
        const char *const both[] = { of_stack[0], of_shared[0] };
        const uint32_t sizes[] = { EXPERTS * COLS, COLS };
        write_two_sums(sums, both, squares, sizes);
        params.awq = sums;
    }
    compress(&params);
    snprintf(before, sizeof before, "%s", to);
    snprintf(to, sizeof to, "%s", test_in(&folder, "other"));
    params.importance = sums;
    compress(&params);
    check_same_arrays(before, to);
    if (_i == 1) { /* all experts with the sums of the first are others */
        const char *const both[] = { of_stack[0], of_shared[0] };
        const uint32_t sizes[] = { EXPERTS * COLS, COLS };
        char first[300] = "";
        params.awq = NULL;
        snprintf(before, sizeof before, "%s", test_in(&folder, "each"));
        snprintf(to, sizeof to, "%s", before);
        compress(&params);
        for (int j = COLS; j < EXPERTS * COLS; j++)
            squares[j] = squares[j % COLS];
        write_two_sums(sums, both, squares, sizes);
        snprintf(to, sizeof to, "%s", test_in(&folder, "first"));
        compress(&params);
        ck_assert_int_eq(count_other_arrays(before, to, first), 2); /* numbers and scales */
        ck_assert_msg(strstr(first, "gate"), "%s", first);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- Numbers ------------------------------------------------------------- */
/* Three bits: number i is in the bits from 3 i on of the row, the low bits of each byte first. */
START_TEST(numbers_of_rows)
{
    enum { N = 24 };
    uint8_t three[N * 3 / 8] = { 0 }, four[N / 2] = { 0 }, eight[N];
    for (unsigned i = 0; i < N; i++) {
        unsigned number = i * 5 + i / 8;
        for (unsigned bit = 0; bit < 3; bit++)
            three[(3 * i + bit) / 8] |= (uint8_t)((number >> bit & 1) << (3 * i + bit) % 8);
        four[i / 2] |= (uint8_t)((number & 15) << i % 2 * 4);
        eight[i] = (uint8_t)(number - 50);
    }
    for (unsigned i = 0; i < N; i++) {
        int number = (int)(i * 5 + i / 8);
        ck_assert_int_eq(ak_compress_get_number(3, three, i), (number & 7) - 4);
        ck_assert_int_eq(ak_compress_get_number(4, four, i), (number & 15) - 8);
        ck_assert_int_eq(ak_compress_get_number(8, eight, i), number - 50);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compress");
    TCase *tc = tcase_create("compress");
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, same_model, 0, N_MODELS);
    tcase_add_loop_test(tc, same_folder, 0, N_FOLDERS);
    tcase_add_loop_test(tc, whole_config, 0, sizeof configs / sizeof *configs);
    tcase_add_loop_test(tc, copied_files, 0, 2);
    tcase_add_loop_test(tc, other_names, 0, 3);
    tcase_add_loop_test(tc, stays_float, 0, sizeof lost / sizeof *lost);
    tcase_add_test(tc, smaller_groups);
    tcase_add_loop_test(tc, refused_value, 0, sizeof refused_values / sizeof *refused_values);
    tcase_add_loop_test(tc, large_numbers, 0, 4);
    tcase_add_test(tc, partial_rotation);
    tcase_add_loop_test(tc, plain_encoding, 0, sizeof plain_tensors / sizeof *plain_tensors);
    tcase_add_test(tc, other_tensors);
    tcase_add_test(tc, numbers_of_rows);
    tcase_add_test(tc, config_of_folder);
    tcase_add_loop_test(tc, refused_model, 0, sizeof refused_models / sizeof *refused_models);
    tcase_add_test(tc, encodings_join);
    tcase_add_test(tc, other_folder);
    tcase_add_loop_test(tc, obstacle, 0, sizeof obstacles / sizeof *obstacles);
    tcase_add_test(tc, locked);
    tcase_add_test(tc, failing_steps);
    tcase_add_test(tc, without_memory);
    tcase_add_test(tc, damaged_arrays);
    tcase_add_test(tc, other_source);
    tcase_add_test(tc, begun_anew);
    tcase_add_loop_test(tc, refused_option, 0, sizeof refused_options / sizeof *refused_options);
    tcase_add_test(tc, interrupted);
    tcase_add_test(tc, encoders_in_gguf);
    tcase_add_test(tc, from_a_folder);
    tcase_add_test(tc, damaged_metadata);
    tcase_add_test(tc, limits);
    tcase_add_loop_test(tc, divergence, 0, 3);
    tcase_add_loop_test(tc, awq, 0, sizeof awq_models / sizeof *awq_models);
    tcase_add_loop_test(tc, awq_factors, 0, sizeof awq_cases / sizeof *awq_cases);
    tcase_add_loop_test(tc, awq_refused, 0, sizeof without_awq / sizeof *without_awq);
    tcase_add_test(tc, importance_of_experts);
    tcase_add_loop_test(tc, other_sums, 0, 2);
    return test_run(suite);
}

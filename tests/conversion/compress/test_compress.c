/* Folders of arrays from models of many architectures: their tensors against the source's by way of
 * a GGUF file that is made from the folder, encodings that join, interrupted runs, the comparison
 * with the source, AWQ, and what is refused. */
#include "tests/test.h"
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "conversion/convert/gguf_write.h"
#include "conversion/quantize/quantize.h"
#include "tests/last_logits.h"
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
    ck_assert_msg(akunu_file_compress(from, to, &params, &result, sizeof result) == AKUNU_OK,
                  "%s: %s", from, akunu_last_error());
    ck_assert_double_eq_tol(progress, 1.0, 1e-9);
    check_left(n_open);
    return result;
}

static void check_fails(const struct akunu_compress_params *params, enum akunu_status status,
                        const char *named)
{
    size_t n_open = test_count_open();
    ck_assert_int_eq(akunu_file_compress(from, to, params, NULL, 0), status);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(),
                  named);
    check_left(n_open);
}

static bool has_file(const char *folder, const char *name)
{
    char path[300];
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

/* All tensors of the source, but for the rotation's, are in the file that was made. Returns the
 * least cosine of a matrix with what it became. */
static double check_all(const char *path)
{
    struct akunu_file *source = akunu_file_open(from), *other = akunu_file_open(path);
    struct akunu_tensor_info info;
    double least = 1.0;
    ck_assert_ptr_nonnull(source);
    ck_assert_msg(other != NULL, "%s", akunu_last_error());
    for (size_t i = 0; akunu_file_get_tensor(source, i, &info, sizeof info) == AKUNU_OK; i++) {
        if (strncmp(info.name, "rope_", 5) == 0)
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
    ck_assert_msg(akunu_file_convert(to, made, &params) == AKUNU_OK, "%s: %s", from,
                  akunu_last_error());
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
    ck_assert_double_eq_tol(result.min_cosine, check_all(made), 1e-8);
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

START_TEST(same_folder)
{
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, folders[_i], "int8");
    params.group = 32;
    params.requantize = true;
    struct akunu_compress_result result = compress(&params);
    ck_assert_double_ge(result.min_cosine, 0.99995);
    check_all(to);
    struct test_bytes config = read_file(to, "config.json");
    ck_assert_ptr_null(strstr((const char *)config.data, "\"quant_method\""));
    free(config.data);
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
static char logged[4096];

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", line);
}

/* A copy of the source in GGUF, which becomes the source: with other values of one tensor, a number
 * in place of a metadata entry, and vectors that the source lacks, unless these are NULL. */
struct change {
    const char *tensor, *key;
    const float *values;
    uint32_t number;
    const char *const *others;
};

static void write_changed(const struct test_folder *folder, const struct change *change)
{
    static const float ones[64] = { 1.0f };
    static const uint64_t n = 64;
    struct ak_error error = { 0 };
    struct ak_provider *source, *p;
    struct ak_meta meta;
    struct ak_tensor t;
    const char *const *others = change->others;
    ck_assert_int_eq(ak_provider_open(from, &source, &error), AKUNU_OK);
    ck_assert_int_eq(ak_provider_replace(source, change->tensor, change->values, &p, &error),
                     AKUNU_OK);
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        if (!change->key || strcmp(meta.key, change->key) != 0)
            ak_gguf_writer_put_meta(&w, p, &meta);
    if (change->key)
        ak_gguf_writer_put_u32(&w, change->key, change->number);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++)
        ak_gguf_writer_put_tensor(&w, t.name, t.type, t.n_dims, t.shape);
    for (size_t i = 0; others && others[i]; i++)
        ak_gguf_writer_put_tensor(&w, others[i], AK_QUANT_F32, 1, &n);
    snprintf(from, sizeof from, "%s", test_in(folder, "changed.gguf"));
    ak_gguf_writer_open(&w, from);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++) {
        ak_gguf_writer_write(&w, t.data, (size_t)t.bytes);
        ak_gguf_writer_end_tensor(&w);
    }
    for (size_t i = 0; others && others[i]; i++) {
        ak_gguf_writer_write(&w, ones, sizeof ones);
        ak_gguf_writer_end_tensor(&w);
    }
    ck_assert_msg(ak_gguf_writer_finish(&w) == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
    ak_provider_close(source);
}

/* A large element in each group of 32, and small ones that its scale makes zeros: INT8 would lose
 * them all, so the matrix stays F16, which has them exactly. */
START_TEST(stays_f16)
{
    enum { N = 128 * 64 };
    static const char name[] = "blk.1.ffn_up.weight";
    float *values = malloc(N * sizeof *values);
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int8");
    struct akunu_compress_result before = compress(&params);
    for (int i = 0; i < N; i++)
        values[i] = i % 32 == 5 ? 1.0f : 1.0f / 256;
    write_changed(&folder, &(struct change){ .tensor = name, .values = values });
    params.overwrite = true;
    params.log = on_log;
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_eq(result.n_matrices, before.n_matrices - 1);
    ck_assert_uint_eq(result.plain_bytes, before.plain_bytes + N * 2);
    ck_assert_ptr_nonnull(strstr(logged, "model.layers.1.mlp.up_proj.weight: stays F16"));
    ck_assert(!has_file(to, "tensors/model__layers__1__mlp__up_proj__weight__q.npy"));
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

/* A tensor of a layer behind the last one, and one whose name says nothing, are left out. */
START_TEST(other_tensors)
{
    static const char *const others[] = { "blk.2.attn_norm.weight", "nobody.knows", NULL };
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int8");
    struct akunu_compress_result before = compress(&params);
    write_changed(&folder, &(struct change){ .others = others });
    params.overwrite = true;
    params.log = on_log;
    struct akunu_compress_result result = compress(&params);
    ck_assert_uint_eq(result.int8_bytes, before.int8_bytes);
    ck_assert_uint_eq(result.plain_bytes, before.plain_bytes);
    ck_assert_uint_eq(result.source_bytes, before.source_bytes + 2 * 64 * sizeof(float));
    ck_assert_ptr_nonnull(strstr(logged, "nobody.knows: left out"));
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
    write_changed(&folder, &(struct change){ .key = "bert.pooling_type", .number = 1 });
    compress(&params);
    json_t *config = read_json(to, "config.json");
    json_object_set_new(expected, "torch_dtype", json_string("float16"));
    json_object_foreach (config, key, value)
        ck_assert_msg(json_equal(value, json_object_get(expected, key)), "%s", key);
    convert();
    check_all(made);
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
    check_all(made);
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

/* A journal that is no file is refused. */
START_TEST(other_journal)
{
    char path[200];
    struct test_folder folder;
    struct akunu_compress_params params = begin(&folder, "models/qwen3.gguf", "int8");
    snprintf(path, sizeof path, "%s/compress.journal", to);
    ck_assert_int_eq(mkdir(to, 0777), 0);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    check_fails(&params, AKUNU_ERROR_FORMAT, "expected a file");
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
        ck_assert_int_eq(akunu_file_compress(from, to, &params, NULL, 0), AKUNU_ERROR_UNSUPPORTED);
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
    ck_assert_double_gt(result.divergence, 0.0);
    ck_assert_double_le(result.agreement, 1.0);
    test_folder_end(&folder);
}
END_TEST

/* ---- AWQ ---------------------------------------------------------------- */
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

/* A file of sums in the older form, of one text: entry i has the columns' values for the tensor
 * names[i]. */
static void write_values(const char *path, const char *const *names, uint32_t n_names,
                         const float *values, uint32_t n)
{
    struct test_bytes bytes = { 0 };
    test_append_u32(&bytes, n_names);
    for (uint32_t i = 0; i < n_names; i++) {
        test_append_u32(&bytes, (uint32_t)strlen(names[i]));
        test_append(&bytes, names[i], strlen(names[i]));
        test_append_u32(&bytes, 1);
        test_append_u32(&bytes, n);
        test_append(&bytes, values, n * sizeof *values);
    }
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes.data, 1, bytes.n, file), bytes.n);
    fclose(file);
    free(bytes.data);
}

/* The norms of llama-f32, and what reads each. */
static const struct {
    const char *gguf, *hf, *readers[4];
} awq_norms[] = {
    { "blk.0.attn_norm.weight",
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
      { "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight" } },
};
enum { N_NORMS = sizeof awq_norms / sizeof *awq_norms, AWQ_COLS = 64 };

/* The inputs are 20 and 1, so the factors are 20^(a/2) and its inverse. */
static double get_factor(float square, double exponent)
{
    return pow(20.0, square > 1.0f ? 0.5 * exponent : -0.5 * exponent);
}

/* Adds Σ x² (w − w' / factor)², where w' is what INT4 makes of w · factor. */
static void add_awq_errors(const struct tensor *t, const float *squares, double errors[20])
{
    float scaled[AWQ_COLS], weights[AWQ_COLS], scales[AWQ_COLS / 32];
    uint8_t numbers[AWQ_COLS / 2];
    for (uint64_t row = 0; row < t->rows; row++)
        for (int step = 0; step < 20; step++) {
            const float *x = t->values + row * AWQ_COLS;
            for (int j = 0; j < AWQ_COLS; j++) {
                float factor = (float)get_factor(squares[j], step / 20.0);
                scaled[j] = x[j] * factor;
                weights[j] = squares[j] / (factor * factor);
            }
            ak_quantize_groups(4, 32, scaled, weights, numbers, scales, AWQ_COLS);
            for (int j = 0; j < AWQ_COLS; j++) {
                int number = (numbers[j / 2] >> j % 2 * 4 & 15) - 8;
                double found = (double)scales[j / 32] * number,
                       off = (double)x[j] - found / get_factor(squares[j], step / 20.0);
                errors[step] += (double)squares[j] * off * off;
            }
        }
}

/* The exponent with the least errors of the outputs of all that reads a norm. */
static double find_exponent(const struct akunu_file *source, const char *const *readers,
                            const float *squares)
{
    double errors[20] = { 0.0 };
    int best = 0;
    for (size_t r = 0; readers[r]; r++) {
        struct tensor t = read_tensor(source, readers[r]);
        add_awq_errors(&t, squares, errors);
        free(t.values);
    }
    for (int step = 1; step < 20; step++)
        best = errors[step] < errors[best] ? step : best;
    return best / 20.0;
}

/* The norm is divided by the factors, and columns are multiplied by them: what INT4 makes of a
 * column is off, but not all of its rows in one direction. */
static void check_scaled(const struct akunu_file *source, const struct akunu_file *other,
                         const char *name, const float *squares, double exponent)
{
    struct tensor x = read_tensor(source, name), y = read_tensor(other, name);
    for (uint64_t j = 0; j < AWQ_COLS; j++) {
        double factor = get_factor(squares[j], exponent), xx = 0.0, xy = 0.0;
        for (uint64_t at = j; at < x.rows * AWQ_COLS; at += AWQ_COLS) {
            xx += (double)x.values[at] * (double)x.values[at];
            xy += (double)x.values[at] * (double)y.values[at];
        }
        factor = x.rows == 1 ? 1.0 / factor : factor;
        ck_assert_msg(fabs(xy / xx / factor - 1.0) < (x.rows == 1 ? 1e-5 : 0.2),
                      "%s: column %d is %g times as large, not %g", name, (int)j, xy / xx, factor);
    }
    free(x.values);
    free(y.values);
}

/* Every fifth input is twenty times the others: all norms are scaled by the best exponent, and
 * all of their readers inversely. */
START_TEST(awq_factors)
{
    static const char *const names[] = { "blk.0.attn_q.weight",   "blk.0.attn_k.weight",
                                         "blk.0.attn_v.weight",   "blk.0.ffn_gate.weight",
                                         "blk.0.ffn_up.weight",   "blk.1.attn_q.weight",
                                         "blk.1.attn_k.weight",   "blk.1.attn_v.weight",
                                         "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight" };
    struct test_folder folder;
    char sums[128];
    float squares[AWQ_COLS];
    struct akunu_compress_params params = begin(&folder, "models/llama-f32.gguf", "int4");
    snprintf(sums, sizeof sums, "%s", test_in(&folder, "sums"));
    for (int j = 0; j < AWQ_COLS; j++)
        squares[j] = j % 5 == 0 ? 400.0f : 1.0f;
    write_values(sums, names, sizeof names / sizeof *names, squares, AWQ_COLS);
    params.group = 32;
    params.awq = sums;
    compress(&params);
    convert();
    json_t *manifest = read_json(to, "manifest.json"),
           *exponents = json_object_get(manifest, "awq");
    ck_assert_uint_eq(json_object_size(exponents), N_NORMS);
    struct akunu_file *source = akunu_file_open(from), *scaled = akunu_file_open(made);
    for (size_t i = 0; i < N_NORMS; i++) {
        double exponent = json_real_value(json_object_get(exponents, awq_norms[i].hf));
        ck_assert_double_gt(exponent, 0.0);
        ck_assert_double_eq(exponent, find_exponent(source, awq_norms[i].readers, squares));
        check_scaled(source, scaled, awq_norms[i].gguf, squares, exponent);
        for (size_t r = 0; awq_norms[i].readers[r]; r++)
            check_scaled(source, scaled, awq_norms[i].readers[r], squares, exponent);
    }
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
    write_values(sums, names, 1, squares, 32);
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
    write_values(sums, names, 1, squares, WITH * COLS);
    params.importance = sums;
    compress(&params);
    for (int expert = 0; expert < EXPERTS; expert++)
        ck_assert_int_eq(is_same_expert(plain, expert), expert >= WITH);
    test_folder_end(&folder);
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
    tcase_add_test(tc, stays_f16);
    tcase_add_test(tc, other_tensors);
    tcase_add_test(tc, config_of_folder);
    tcase_add_loop_test(tc, refused_model, 0, sizeof refused_models / sizeof *refused_models);
    tcase_add_test(tc, encodings_join);
    tcase_add_test(tc, other_folder);
    tcase_add_test(tc, other_journal);
    tcase_add_test(tc, interrupted);
    tcase_add_test(tc, encoders_in_gguf);
    tcase_add_test(tc, from_a_folder);
    tcase_add_test(tc, damaged_metadata);
    tcase_add_test(tc, limits);
    tcase_add_loop_test(tc, awq, 0, sizeof awq_models / sizeof *awq_models);
    tcase_add_test(tc, awq_factors);
    tcase_add_loop_test(tc, awq_refused, 0, sizeof without_awq / sizeof *without_awq);
    tcase_add_test(tc, importance_of_experts);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Folders of arrays from models of many architectures: their tensors against the source's by way of
 * a GGUF file that is made from the folder, encodings that join, interrupted runs, the comparison
 * with the source, AWQ, and what is refused. */
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "akunu/akunu.h"
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

static struct akunu_compress_result compress(const struct akunu_compress_params *params)
{
    struct akunu_compress_result result = { 0 };
    ck_assert_msg(akunu_file_compress(from, to, params, &result, sizeof result) == AKUNU_OK,
                  "%s: %s", from, akunu_last_error());
    return result;
}

static void check_fails(const struct akunu_compress_params *params, enum akunu_status status,
                        const char *named)
{
    ck_assert_int_eq(akunu_file_compress(from, to, params, NULL, 0), status);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(),
                  named);
}

static bool has_file(const char *folder, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static struct test_bytes read_file(const char *folder, const char *name)
{
    char path[300];
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
    for (size_t i = 0; akunu_file_tensor(file, i, &t.info, sizeof t.info) == AKUNU_OK; i++) {
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

/* All tensors of the source, but for the rotation's, are in the file that was made. */
static void check_all(const char *path)
{
    struct akunu_file *source = akunu_file_open(from), *other = akunu_file_open(path);
    struct akunu_tensor_info info;
    ck_assert_ptr_nonnull(source);
    ck_assert_msg(other != NULL, "%s", akunu_last_error());
    for (size_t i = 0; akunu_file_tensor(source, i, &info, sizeof info) == AKUNU_OK; i++) {
        if (strncmp(info.name, "rope_", 5) == 0)
            continue;
        struct tensor a = read_tensor(source, info.name), b = read_tensor(other, info.name);
        ck_assert_msg(b.values != NULL, "%s is missing", info.name);
        check_tensor(&a, &b);
        free(a.values);
        free(b.values);
    }
    akunu_file_free(source);
    akunu_file_free(other);
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

/* Logits after a few tokens. */
static float *run(const char *path, uint32_t *n)
{
    struct akunu_model_info info;
    struct akunu_session_params params;
    static const akunu_token ids[] = { 5, 17, 3, 29, 11, 2, 41, 8 };
    enum { N = sizeof ids / sizeof *ids };
    size_t last;
    struct akunu_model *model = akunu_model_load(path, NULL);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    akunu_model_get_info(model, &info, sizeof info);
    akunu_session_params_default(&params, sizeof params);
    params.context = params.batch = N;
    struct akunu_session *session = akunu_session_new(model, &params);
    akunu_sequence sequence = akunu_sequence_new(session);
    ck_assert_int_eq(akunu_session_prefill(session, sequence, ids, N, NULL, NULL, &last), AKUNU_OK);
    *n = info.vocab_size;
    float *logits = malloc(*n * sizeof *logits);
    memcpy(logits, akunu_session_logits(session, last), *n * sizeof *logits);
    akunu_session_free(session);
    akunu_model_free(model);
    return logits;
}

/* Of a model with another rotation, window or scale they would be others. */
static void check_logits(void)
{
    uint32_t n, other;
    float *x = run(from, &n), *y = run(to, &other);
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
    check_all(made);
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
    ck_assert_msg(akunu_importance_add(im, session, ids, 64, NULL, NULL) == AKUNU_OK, "%s",
                  akunu_last_error());
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

int main(void)
{
    Suite *suite = suite_create("compress");
    TCase *tc = tcase_create("compress");
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, same_model, 0, N_MODELS);
    tcase_add_loop_test(tc, same_folder, 0, N_FOLDERS);
    tcase_add_loop_test(tc, refused_model, 0, sizeof refused_models / sizeof *refused_models);
    tcase_add_test(tc, encodings_join);
    tcase_add_test(tc, other_folder);
    tcase_add_test(tc, interrupted);
    tcase_add_test(tc, from_a_folder);
    tcase_add_test(tc, damaged_metadata);
    tcase_add_test(tc, limits);
    tcase_add_loop_test(tc, awq, 0, sizeof awq_models / sizeof *awq_models);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

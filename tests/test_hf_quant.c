/* Quantised checkpoints run as they are stored (A10, A12): values equal to those that the
 * scheme defines, logits near those of a float64 pass over them, the same on every bundle;
 * and what is not supported or damaged is refused by name.
 * tests/golden/quantised.py made the folders and the numbers. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden_model.h"
#include "st_files.h"

enum { TOKENS = 24, VOCAB = 80 };

/* NMSE of the logits: floats where rows become F16, else activations of 8 bits. */
static const struct {
    const char *name, *type; /* what one of its tensors is called */
    double bound;
} folders[] = {
    {"mlx", "MLX3_G64", 1e-4},        {"mlx-f16", "MLX5_G32", 1e-4},      {"mlx-mxfp4", "MLX_MXFP4", 1e-4},
    {"gptq", "GPTQ4_G32", 1e-4},      {"gptq-act", "GPTQ4_G32_ACT", 1e-6}, {"gptq-v2", "GPTQ8_G64", 1e-4},
    {"awq", "AWQ4_G32", 1e-4},        {"fp8", "F8_E4M3_SCALED", 1e-6},    {"fp8-rows", "F8_E4M3_SCALED", 1e-6},
    {"fp8-mixed", "F8_E4M3_SCALED", 1e-6},
};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

static const char *folder_path(const char *name)
{
    char relative[128];
    snprintf(relative, sizeof relative, "quantised/%s", name);
    return test_path(relative);
}

/* ---- What comes out of them -------------------------------------------------------- */

static void run(const char *name, const char *cpu, uint32_t batch, float logits[TOKENS][VOCAB])
{
    struct akunu_load_params params;
    struct akunu_batch_token tokens[TOKENS];
    akunu_load_params_default(&params);
    params.strict = true;
    params.no_cache = true;
    params.cpu = cpu;
    params.n_threads = 2;
    struct akunu_model *model = akunu_load_model(folder_path(name), &params);
    ck_assert_msg(model != NULL, "%s: %s", name, akunu_last_error());
    struct akunu_session *session = golden_session(model, 2, batch, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (struct akunu_batch_token){(7 * i * i + 3) % 64, sequence, true};
    for (uint32_t i = 0; i < TOKENS; i += batch) {
        uint32_t n = TOKENS - i < batch ? TOKENS - i : batch;
        ck_assert_int_eq(akunu_decode(session, tokens + i, n), AKUNU_OK);
        for (uint32_t j = 0; j < n; j++)
            memcpy(logits[i + j], akunu_logits(session, j), sizeof logits[0]);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}

/* The numbers of NAME.npy, which end the file. */
static void read_logits(const char *name, float logits[TOKENS][VOCAB])
{
    char file[128];
    snprintf(file, sizeof file, "quantised/%s.npy", name);
    struct test_bytes npy = test_read(file);
    size_t bytes = sizeof(float) * TOKENS * VOCAB;
    ck_assert_uint_gt(npy.n, bytes);
    memcpy(logits, npy.data + npy.n - bytes, bytes);
    free(npy.data);
}

START_TEST(logits)
{
    static float wanted[TOKENS][VOCAB], got[TOKENS][VOCAB], other[TOKENS][VOCAB];
    const char *name = folders[_i].name;
    double wrong = 0.0, all = 0.0;
    read_logits(name, wanted);
    run(name, NULL, TOKENS, got);
    for (int i = 0; i < TOKENS; i++)
        for (int j = 0; j < VOCAB; j++) {
            double difference = (double)got[i][j] - (double)wanted[i][j];
            wrong += difference * difference;
            all += (double)wanted[i][j] * (double)wanted[i][j];
        }
    ck_assert_msg(wrong <= folders[_i].bound * all, "%s: NMSE %g", name, wrong / all);
    run(name, "scalar", TOKENS, other);
    ck_assert_msg(memcmp(got, other, sizeof got) == 0, "%s: other logits by the scalar kernels", name);
    run(name, NULL, 5, other);
    ck_assert_msg(memcmp(got, other, sizeof got) == 0, "%s: other logits in passes of five tokens", name);
    run(name, NULL, 1, other);
    ck_assert_msg(memcmp(got, other, sizeof got) == 0, "%s: other logits token by token", name);
}
END_TEST

static size_t find_tensor(const struct akunu_file *file, const char *name, struct akunu_tensor_info *info)
{
    for (size_t i = 0; akunu_file_tensor(file, i, info) == AKUNU_OK; i++)
        if (strcmp(info->name, name) == 0)
            return i;
    ck_abort_msg("%s is not listed", name);
}

/* Each weight is one tensor, whatever it lies in. */
START_TEST(values)
{
    char file_name[128], name[128], wanted[65], got[65];
    snprintf(file_name, sizeof file_name, "quantised/%s.txt", folders[_i].name);
    struct test_bytes list = test_read(file_name);
    struct akunu_file *file = akunu_file_open(folder_path(folders[_i].name));
    ck_assert_msg(file != NULL, "%s", akunu_last_error());
    struct akunu_tensor_info info = {.size = sizeof info};
    size_t n = 0;
    bool named = false;
    for (char *line = strtok((char *)list.data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        ck_assert_int_eq(sscanf(line, "%127s %64s", name, wanted), 2);
        size_t i = find_tensor(file, name, &info);
        ck_assert_int_eq(akunu_file_sha256_f32(file, i, got), AKUNU_OK);
        ck_assert_msg(strcmp(got, wanted) == 0, "%s: %s of %s has other values", folders[_i].name, name, info.type);
        ck_assert_ptr_nonnull(info.canonical);
        named = named || strcmp(info.type, folders[_i].type) == 0;
    }
    ck_assert_msg(named, "%s has no %s", folders[_i].name, folders[_i].type);
    ck_assert_int_ne(akunu_file_tensor(file, n, &info), AKUNU_OK);
    akunu_file_free(file);
    free(list.data);
}
END_TEST

/* ---- What is refused ------------------------------------------------------------------ */

struct part { const char *name, *type, *shape; };

#define MLX(words, scales) \
    {{"a.weight", "U32", words}, {"a.scales", "F16", scales}, {"a.biases", "F16", scales}}
#define GPTQ(weight, zeros, scales, index) \
    {{"a.qweight", "I32", weight}, {"a.qzeros", "I32", zeros}, {"a.scales", "F16", scales}, {"a.g_idx", "I32", index}}
#define METHOD(rest) "\"quantization_config\": {\"quant_method\": " rest "}"

static const struct {
    const char *config;
    struct part parts[4];
    const char *named[3];
} refused[] = {
    {METHOD("\"bitsandbytes\", \"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\""), {{0}}, {"bitsandbytes", "NF4", "not supported"}},
    {METHOD("\"bitsandbytes\", \"load_in_8bit\": true"), {{0}}, {"bitsandbytes", "int8", "not supported"}},
    {METHOD("\"aqlm\""), {{0}}, {"quant_method", "aqlm", "gptq"}},
    {METHOD("\"compressed-tensors\", \"format\": \"pack-quantized\""), {{0}}, {"compressed-tensors", "pack-quantized", "float-quantized"}},
    {METHOD("7"), {{0}}, {"quantization_config", "quant_method", "integer"}},
    {METHOD("\"gptq\", \"bits\": 3"), {{0}}, {"gptq", "3 bits", "2, 4 or 8"}},
    {METHOD("\"gptq\", \"group_size\": 48"), {{0}}, {"group_size", "48", "32"}},
    {METHOD("\"gptq\", \"checkpoint_format\": \"marlin\""), {{0}}, {"checkpoint_format", "marlin", "gptq_v2"}},
    {METHOD("\"awq\", \"bits\": 8"), {{0}}, {"awq", "8 bits", "4"}},
    {METHOD("\"awq\", \"version\": \"gemv\""), {{0}}, {"version", "gemv", "gemm"}},
    {METHOD("\"fp8\", \"weight_block_size\": [128]"), {{0}}, {"weight_block_size", "two", "sizes"}},
    {"\"quantization\": {\"bits\": 7}", {{0}}, {"quantization", "7 bits", "8"}},
    {"\"quantization\": {\"bits\": \"4\"}", {{0}}, {"quantization", "bits", "string"}},
    {"\"quantization\": {\"group_size\": 16}", {{0}}, {"group_size", "16", "128"}},
    {"\"quantization\": {\"group_size\": 16, \"mode\": \"nvfp4\"}", {{0}}, {"mode", "nvfp4", "mxfp4"}},
    {"\"quantization\": {}", MLX("4, 7", "4, 1"), {"a.weight", "7 words", "64"}},
    {"\"quantization\": {}", MLX("4, 8", "4, 2"), {"a.scales", "[4, 2]", "[4, 1]"}},
    {"\"quantization\": {\"a\": {\"bits\": 2}}", MLX("4, 8", "4, 1"), {"a.scales", "[4, 1]", "[4, 2]"}},
    {"\"quantization\": {}", {{"a.weight", "U32", "4, 8"}, {"a.scales", "F16", "4, 1"}}, {"a.biases", "missing", "a"}},
    {"\"quantization\": {}", {{"a.weight", "U32", "8"}, {"a.scales", "F16", "1"}, {"a.biases", "F16", "1"}},
     {"a.weight", "one dimension", "matrix"}},
    {"\"quantization\": {\"mode\": \"mxfp4\", \"group_size\": 32}", {{"a.weight", "U32", "4, 8"}, {"a.scales", "F16", "4, 2"}},
     {"a.scales", "F16", "U8"}},
    {METHOD("\"gptq\", \"group_size\": 32"), GPTQ("8, 8", "2, 1", "2, 8", "64"), {"a.g_idx", "group", "2 groups"}},
    {METHOD("\"gptq\", \"group_size\": 32"), GPTQ("8, 8", "2, 1", "2, 8", "32"), {"a.g_idx", "[32]", "[64]"}},
    {METHOD("\"gptq\", \"group_size\": 32"), GPTQ("8, 8", "2, 2", "2, 8", "64"), {"a.qzeros", "[2, 2]", "[2, 1]"}},
    {METHOD("\"gptq\", \"group_size\": 32"), GPTQ("8, 8", "2, 1", "1, 8", "64"), {"a.scales", "[1, 8]", "[2, 8]"}},
    {METHOD("\"gptq\", \"group_size\": 32"), GPTQ("5, 8", "2, 1", "2, 8", "64"), {"a.qweight", "40 inputs", "32"}},
    {METHOD("\"gptq\", \"group_size\": 32"), GPTQ("8, 9", "2, 1", "2, 8", "64"), {"a.qweight", "9 outputs", "8"}},
    {METHOD("\"awq\", \"group_size\": 32"), GPTQ("64, 1", "2, 2", "2, 8", "1"), {"a.qzeros", "[2, 2]", "[2, 1]"}},
    {METHOD("\"awq\", \"group_size\": 32"), {{"a.qweight", "I32", "64, 1"}, {"a.scales", "F16", "2, 8"}}, {"a.qzeros", "missing", "I32"}},
    {METHOD("\"fp8\""), {{"a.weight", "F8_E4M3", "4, 8"}}, {"a.weight_scale", "missing", "a"}},
    {METHOD("\"fp8\""), {{"a.weight", "F8_E4M3", "4, 8"}, {"a.weight_scale_inv", "F32", "1, 2"}},
     {"a.weight_scale_inv", "blocks", "weight_block_size"}},
    {METHOD("\"fp8\", \"weight_block_size\": [4, 4]"), {{"a.weight", "F8_E4M3", "4, 8"}, {"a.weight_scale_inv", "F32", "2, 2"}},
     {"a.weight_scale_inv", "[2, 2]", "[1, 2]"}},
    {METHOD("\"fp8\""), {{"a.weight", "F8_E4M3", "4, 8"}, {"a.weight_scale", "U8", "1"}}, {"a.weight_scale", "U8", "F32"}},
};

static size_t bytes_of(const struct part *part)
{
    unsigned a = 1, b = 1;
    size_t size = strstr(part->type, "32") ? 4 : strstr(part->type, "16") ? 2 : 1;
    ck_assert_int_ge(sscanf(part->shape, "%u, %u", &a, &b), 1);
    return a * b * size;
}

/* A folder of these tensors, all bytes 0x11: opens, but has no weights to be had. */
START_TEST(refusals)
{
    static uint8_t data[4096];
    memset(data, 0x11, sizeof data);
    struct test_folder folder = test_folder_begin();
    char config[512];
    struct test_st st = {0};
    struct ak_provider *p;
    struct ak_error error = {0};
    test_st_add(&st, "norm.weight", "F32", "1", data, 4);
    for (size_t i = 0; i < 4 && refused[_i].parts[i].name; i++) {
        const struct part *part = &refused[_i].parts[i];
        test_st_add(&st, part->name, part->type, part->shape, data, bytes_of(part));
    }
    test_st_write(&st, &folder, "model.safetensors", 0);
    snprintf(config, sizeof config, "{\"model_type\": \"llama\", %s}", refused[_i].config);
    test_write_text(&folder, "config.json", config);
    ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s: %s", config, error.message);
    ck_assert_uint_ge(ak_provider_n_tensors(p), 1);
    ck_assert_int_ne(ak_provider_ready(p, &error), AKUNU_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(error.message, refused[_i].named[i]) != NULL, "%s: \"%s\" does not name %s", config, error.message,
                      refused[_i].named[i]);
    ak_provider_close(p);
    ck_assert_ptr_null(akunu_load_model(folder.path, NULL));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), refused[_i].named[0]));
    test_folder_end(&folder);
}
END_TEST

/* A tensor may be quantised or not, but not both. */
START_TEST(twice)
{
    static const uint8_t data[256];
    struct test_folder folder = test_folder_begin();
    struct test_st st = {0};
    struct ak_provider *p;
    struct ak_error error = {0};
    test_st_add(&st, "a.weight", "F32", "1", data, 4);
    test_st_add(&st, "a.qweight", "I32", "4, 8", data, 128);
    test_st_add(&st, "a.qzeros", "I32", "1, 1", data, 4);
    test_st_add(&st, "a.scales", "F16", "1, 8", data, 16);
    test_st_write(&st, &folder, "model.safetensors", 0);
    test_write_text(&folder, "config.json", "{\"quantization_config\": {\"quant_method\": \"gptq\", \"group_size\": 32}}");
    ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "a.weight") && strstr(error.message, "twice"), "%s", error.message);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hf_quant");
    TCase *tests = tcase_create("hf_quant");
    tcase_add_loop_test(tests, logits, 0, N_FOLDERS);
    tcase_add_loop_test(tests, values, 0, N_FOLDERS);
    tcase_add_loop_test(tests, refusals, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, twice);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Quantized checkpoints and folders of NumPy arrays run as they are stored:
 * values equal to those that the scheme defines, logits near those of a float64 pass over them,
 * the same on every ISA; and what is not supported or damaged is refused by name.
 * tests/golden/quantized.py made the folders and the numbers. */
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/golden_model.h"
#include "tests/load.h"
#include "tests/st_files.h"
#include "files/weights/composed.h"

enum { TOKENS = 24, VOCAB = 80 };

/* Floats where rows become F8 or F16, else activations of 8 bits. */
static const struct {
    const char *name, *type; /* what one of its tensors is called */
    double measured;         /* NMSE of the logits */
    /* largest difference of a value that is multiplied with, over the row's largest: factors
     * that become F16 */
    double rounding;
} folders[] = {
    { "mlx", "MLX3_G64", 4.94e-5, 0.0 },
    { "mlx-f16", "MLX5_G32", 3.59e-5, 0x1p-22 },
    { "mlx-mxfp4", "MLX_MXFP4", 3.81e-5, 0.0 },
    { "gptq", "GPTQ4_G32", 4.03e-5, 0x1p-11 },
    { "gptq-act", "GPTQ4_G32_ACT", 4.31e-5, 0.0 },
    { "gptq-v2", "GPTQ8_G64", 3.56e-5, 0.0 },
    { "awq", "AWQ4_G32", 4.03e-5, 0x1p-11 },
    { "fp8", "F8_E4M3_SCALED", 5.8e-8, 0x1p-11 },
    { "fp8-rows", "F8_E4M3_SCALED", 3.1e-8, 0x1p-11 },
    { "fp8-mixed", "F8_E4M3_SCALED", 4.1e-8, 0x1p-11 },
    { "fp8-wide", "F8_E4M3_SCALED", 7.1e-8, 0x1p-11 },
    { "gptq-dynamic", "GPTQ8_G32_ACT", 2.92e-5, 0x1p-11 },
    { "ct-packed", "CT4_G32_Z_ACT", 4.81e-5, 0x1p-11 },
    { "ct-int8", "CT8_ROWS_Z", 3.43e-5, 0.0 },
    { "npy-int8", "INT8_ROWS", 3.39e-5, 0.0 },
    { "npy-int4", "INT3_G64", 4.33e-5, 0x1p-11 },
};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

static const char *folder_path(const char *name)
{
    char relative[128];
    snprintf(relative, sizeof relative, "quantized/%s", name);
    return test_path(relative);
}

/* ---- What comes out of them --------------------------------------------- */
static void run_path(const char *path, const char *cpu, uint32_t batch, float logits[TOKENS][VOCAB])
{
    struct akunu_load_params params;
    struct akunu_batch_token tokens[TOKENS];
    akunu_load_params_default(&params, sizeof params);
    params.strict = true;
    params.no_cache = true;
    params.cpu = cpu;
    params.n_threads = 2;
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s: %s", path, akunu_last_error());
    struct akunu_session *session = golden_session(model, 2, batch, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (struct akunu_batch_token){ (7 * i * i + 3) % 64, sequence, true };
    for (uint32_t i = 0; i < TOKENS; i += batch) {
        uint32_t n = TOKENS - i < batch ? TOKENS - i : batch;
        ck_assert_int_eq(akunu_session_decode(session, tokens + i, n), AKUNU_OK);
        for (uint32_t j = 0; j < n; j++)
            memcpy(logits[i + j], akunu_session_logits(session, j), sizeof logits[0]);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}

static void run(const char *name, const char *cpu, uint32_t batch, float logits[TOKENS][VOCAB])
{
    run_path(folder_path(name), cpu, batch, logits);
}

/* The numbers of NAME.npy, which end the file. */
static void read_logits(const char *name, float logits[TOKENS][VOCAB])
{
    char file[128];
    snprintf(file, sizeof file, "quantized/%s.npy", name);
    struct test_bytes npy = test_read(file);
    size_t bytes = sizeof(float) * TOKENS * VOCAB;
    ck_assert_uint_gt(npy.n, bytes);
    memcpy(logits, npy.data + npy.n - bytes, bytes);
    free(npy.data);
}

static void check_near(const char *name, float got[TOKENS][VOCAB], float wanted[TOKENS][VOCAB],
                       double bound)
{
    double nmse = golden_nmse(got[0], wanted[0], TOKENS * VOCAB);
    ck_assert_msg(nmse <= bound, "%s: NMSE %g", name, nmse);
}

static void check_same(const char *name, float got[TOKENS][VOCAB], float wanted[TOKENS][VOCAB],
                       const char *how)
{
    ck_assert_msg(golden_is_same(got[0], wanted[0], TOKENS * VOCAB), "%s: other logits %s", name,
                  how);
}

START_TEST(logits)
{
    static float wanted[TOKENS][VOCAB], got[TOKENS][VOCAB], other[TOKENS][VOCAB];
    const char *name = folders[_i].name;
    read_logits(name, wanted);
    run(name, NULL, TOKENS, got);
    check_near(name, got, wanted,
               golden_bound(folders[_i].measured, folders[_i].measured > 1e-6 ? 1e-4 : 1e-6));
    run(name, "scalar", TOKENS, other);
    check_same(name, other, got, "by the scalar kernels");
    run(name, NULL, 5, other);
    check_same(name, other, got, "in passes of five tokens");
    run(name, NULL, 1, other);
    check_same(name, other, got, "token by token");
}
END_TEST

/* GGUF has its columns as they are stored. */
START_TEST(converted)
{
    static float wanted[TOKENS][VOCAB], got[TOKENS][VOCAB];
    struct test_folder folder = test_folder_begin();
    char to[128];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    ck_assert_msg(test_convert_weights(folder_path("gptq-act"), to) == AKUNU_OK, "%s",
                  akunu_last_error());
    read_logits("gptq-act", wanted);
    run_path(to, NULL, TOKENS, got);
    check_near(to, got, wanted, golden_bound(5.0e-8, 1e-4));
    test_folder_end(&folder);
}
END_TEST

/* A byte a weight and a scale for each 128, but for the output projection, whose rows of
 * 64 are F16. */
START_TEST(eight_bits_stay)
{
    struct akunu_load_params params;
    struct akunu_memory memory;
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    struct akunu_model *model = akunu_model_load(folder_path("fp8-wide"), &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_model_get_memory(model, NULL, &memory, sizeof memory), AKUNU_OK);
    uint64_t wanted = (128 + 512 + 2 * 128) * 132 + 128 * 64 * 2;
    ck_assert_uint_ge(memory.packed, wanted);
    ck_assert_uint_lt(memory.packed, wanted + 4 * 4096);
    akunu_model_free(model);
}
END_TEST

static size_t find_tensor(const struct akunu_file *file, const char *name,
                          struct akunu_tensor_info *info)
{
    for (size_t i = 0; akunu_file_get_tensor(file, i, info, sizeof *info) == AKUNU_OK; i++)
        if (strcmp(info->name, name) == 0)
            return i;
    ck_abort_msg("%s is not listed", name);
}

/* Each weight is one tensor, whatever it lies in. */
START_TEST(values)
{
    char file_name[128], name[128], wanted[65], got[65];
    snprintf(file_name, sizeof file_name, "quantized/%s.txt", folders[_i].name);
    struct test_bytes list = test_read(file_name);
    struct akunu_file *file = akunu_file_open(folder_path(folders[_i].name));
    ck_assert_msg(file != NULL, "%s", akunu_last_error());
    struct akunu_tensor_info info;
    size_t n = 0;
    bool named = false;
    for (char *line = strtok((char *)list.data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        ck_assert_int_eq(sscanf(line, "%127s %64s", name, wanted), 2);
        size_t i = find_tensor(file, name, &info);
        ck_assert_int_eq(akunu_file_sha256_f32(file, i, got), AKUNU_OK);
        ck_assert_msg(strcmp(got, wanted) == 0, "%s: %s of %s has other values", folders[_i].name,
                      name, info.type);
        ck_assert_ptr_nonnull(info.canonical);
        named = named || strcmp(info.type, folders[_i].type) == 0;
    }
    ck_assert_msg(named, "%s has no %s", folders[_i].name, folders[_i].type);
    ck_assert_int_ne(akunu_file_get_tensor(file, n, &info, sizeof info), AKUNU_OK);
    akunu_file_free(file);
    free(list.data);
}
END_TEST

/* Rows that are multiplied with, against the values: the same, or with factors that were
 * rounded to F16. In the order of the blocks. */
static double worst_row(const struct ak_composed_tensor *a, uint32_t row)
{
    float *wanted = calloc(a->cols, sizeof *wanted), *packed = calloc(a->cols, sizeof *packed);
    uint8_t *blocks = malloc(a->cols * sizeof(float));
    double worst = 0.0, largest = 0.0;
    ck_assert(wanted && packed && blocks);
    ak_composed_dequantize(a, row, 0, a->cols, wanted);
    ak_composed_make_blocks(a, row, 0, a->cols, blocks);
    ak_quant_info(a->type)->dequantize(blocks, packed, a->cols);
    for (uint32_t k = 0; k < a->cols; k++) {
        double value = (double)wanted[a->order ? a->order[k] : k];
        double off = fabs((double)packed[k] - value);
        worst = off > worst ? off : worst;
        largest = fabs(value) > largest ? fabs(value) : largest;
    }
    free(wanted);
    free(packed);
    free(blocks);
    return largest > 0.0 ? worst / largest : worst;
}

START_TEST(packed_values)
{
    struct ak_provider *p;
    struct ak_error error = { 0 };
    struct ak_tensor t;
    size_t n = 0;
    ck_assert_msg(ak_provider_open(folder_path(folders[_i].name), &p, &error) == AKUNU_OK, "%s",
                  error.message);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++)
        for (uint32_t row = 0; t.composed_tensor && row < t.composed_tensor->rows; row++, n++) {
            double worst = worst_row(t.composed_tensor, row);
            ck_assert_msg(worst <= folders[_i].rounding, "%s: row %u of %s is off by %g",
                          folders[_i].name, row, t.name, worst);
        }
    ck_assert_uint_gt(n, 0);
    ak_provider_close(p);
}
END_TEST

/* Weights of one order of inputs are one product, of several orders several. */
START_TEST(orders)
{
    struct ak_model *model;
    struct ak_error error = { 0 };
    struct akunu_load_params params = { .n_threads = 1, .no_cache = true };
    static const struct {
        const char *folder;
        uint32_t qkv, gate_up;
        enum ak_quant_type type;
    } expected[] = {
        { "gptq-act", 3, 2, AK_QUANT_Q4_1 },
        { "gptq-dynamic", 1, 2, AK_QUANT_Q4_1 },
        { "gptq", 1, 1, AK_QUANT_Q4_1 },
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        uint32_t first, n;
        ck_assert_msg(load_from(folder_path(expected[i].folder), &params, &model, &error) ==
                          AKUNU_OK,
                      "%s", error.message);
        ak_pack_find_linear(&model->weights, AK_OP_LINEAR_QKV, 0, &first, &n);
        ck_assert_uint_eq(n, expected[i].qkv);
        ck_assert_int_eq(model->weights.packed[first].type, expected[i].type);
        ck_assert((model->weights.packed[first].order != NULL) == (i < 2));
        ak_pack_find_linear(&model->weights, AK_OP_LINEAR_GATE_UP, 0, &first, &n);
        ck_assert_uint_eq(n, expected[i].gate_up);
        ak_model_free(model);
    }
}
END_TEST

/* ---- Pages of the source ------------------------------------------------ */
static const void *advised_data;
static size_t n_dropped;

static void advise(const struct ak_provider *p, const void *data, uint64_t bytes,
                   enum ak_file_advice use)
{
    (void)p, (void)bytes;
    n_dropped += data == advised_data && use == AK_FILE_DONTNEED;
}

/* Rows of GPTQ are all over its tensors: their pages go when the last one was packed. */
START_TEST(dropped)
{
    struct ak_model *model;
    struct akunu_load_params params = { .n_threads = 1, .no_cache = true };
    struct ak_pack_windows windows;
    ck_assert_int_eq(load_from(folder_path("gptq"), &params, &model, NULL), AKUNU_OK);
    const struct ak_provider_format *format = model->provider->format;
    struct ak_provider_format counting = *format;
    counting.advise = advise;
    model->provider->format = &counting;
    struct ak_pack_job job = { .weights = &model->weights,
                               .backend = model->backend,
                               .source = model->provider };
    ck_assert_int_eq(ak_pack_windows_create(&job, 4096, &windows, NULL), AKUNU_OK);
    const struct ak_pack_part *part = &model->weights.packed[0].parts[0];
    advised_data = part->view->plane[0].data;
    uint64_t all = model->weights.block_bytes, some = part->offset + 16;
    uint8_t *out = malloc(all + ak_pack_slack(&job));
    ck_assert_ptr_nonnull(out);
    ak_pack_range(&job, &(struct ak_pack_range){ .begin = 0, .end = some }, out);
    ck_assert_uint_eq(n_dropped, 0);
    ak_pack_range(&job, &(struct ak_pack_range){ .begin = some, .end = all }, out);
    ck_assert_uint_eq(n_dropped, 1);
    free(out);
    ak_pack_windows_clear(&windows);
    model->provider->format = format;
    ak_model_free(model);
}
END_TEST

/* ---- What is refused ---------------------------------------------------- */
struct part {
    const char *name, *type, *shape;
};

#define MLX(words, scales)                                                                         \
    {                                                                                              \
        { "a.weight", "U32", words }, { "a.scales", "F16", scales },                               \
        {                                                                                          \
            "a.biases", "F16", scales                                                              \
        }                                                                                          \
    }
#define GPTQ(weight, zeros, scales, index)                                                         \
    {                                                                                              \
        { "a.qweight", "I32", weight }, { "a.qzeros", "I32", zeros },                              \
            { "a.scales", "F16", scales },                                                         \
        {                                                                                          \
            "a.g_idx", "I32", index                                                                \
        }                                                                                          \
    }
#define PACKED "\"compressed-tensors\", \"format\": \"pack-quantized\""
#define INT8 "\"compressed-tensors\", \"format\": \"int-quantized\""
#define BYTES                                                                                      \
    {                                                                                              \
        {                                                                                          \
            "a.weight", "U8", "4, 8"                                                               \
        }                                                                                          \
    }
#define LONG_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define CT(weight, scales, third)                                                                  \
    {                                                                                              \
        { "a.weight_packed", "I32", weight }, { "a.weight_scale", "F16", scales },                 \
            { "a.weight_shape", "I64", "2" }, third                                                \
    }
#define METHOD(rest) "\"quantization_config\": {\"quant_method\": " rest "}"

static const struct {
    const char *config;
    struct part parts[4];
    const char *named[3];
} refused[] = {
    { METHOD("\"bitsandbytes\", \"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\""),
      BYTES,
      { "bitsandbytes", "NF4", "not supported" } },
    { METHOD("\"bitsandbytes\", \"load_in_8bit\": true"),
      BYTES,
      { "bitsandbytes", "int8", "not supported" } },
    { METHOD("\"aqlm\""), BYTES, { "quant_method", "aqlm", "gptq" } },
    { METHOD("\"compressed-tensors\", \"format\": \"marlin-24\""),
      BYTES,
      { "compressed-tensors", "marlin-24", "pack-quantized" } },
    { METHOD("7"), BYTES, { "quantization_config", "quant_method", "integer" } },
    { METHOD("\"gptq\", \"bits\": 3"), { { 0 } }, { "gptq", "3 bits", "2, 4 or 8" } },
    { METHOD("\"gptq\", \"group_size\": 48"), { { 0 } }, { "group_size", "48", "32" } },
    { METHOD("\"gptq\", \"checkpoint_format\": \"marlin\""),
      { { 0 } },
      { "checkpoint_format", "marlin", "gptq_v2" } },
    { METHOD("\"awq\", \"bits\": 8"), { { 0 } }, { "awq", "8 bits", "4" } },
    { METHOD("\"awq\", \"version\": \"gemv\""), { { 0 } }, { "version", "gemv", "gemm" } },
    { METHOD("\"fp8\", \"weight_block_size\": [128]"),
      { { 0 } },
      { "weight_block_size", "two", "sizes" } },
    { "\"quantization\": {\"bits\": 7}", { { 0 } }, { "quantization", "7 bits", "8" } },
    { "\"quantization\": {\"bits\": \"4\"}", { { 0 } }, { "quantization", "bits", "string" } },
    { "\"quantization\": {\"group_size\": 16}", { { 0 } }, { "group_size", "16", "128" } },
    { "\"quantization\": {\"group_size\": 16, \"mode\": \"nvfp4\"}",
      { { 0 } },
      { "mode", "nvfp4", "mxfp4" } },
    { "\"quantization\": {}", MLX("4, 7", "4, 1"), { "a.weight", "7 words", "64" } },
    { "\"quantization\": {}", MLX("4, 8", "4, 2"), { "a.scales", "[4, 2]", "[4, 1]" } },
    { "\"quantization\": {\"a\": {\"bits\": 2}}",
      MLX("4, 8", "4, 1"),
      { "a.scales", "[4, 1]", "[4, 2]" } },
    { "\"quantization\": {}",
      { { "a.weight", "U32", "4, 8" }, { "a.scales", "F16", "4, 1" } },
      { "a.biases", "missing", "a" } },
    { "\"quantization\": {}",
      { { "a.weight", "U32", "8" }, { "a.scales", "F16", "1" }, { "a.biases", "F16", "1" } },
      { "a.weight", "one dimension", "matrix" } },
    { "\"quantization\": {\"mode\": \"mxfp4\", \"group_size\": 32}",
      { { "a.weight", "U32", "4, 8" }, { "a.scales", "F16", "4, 2" } },
      { "a.scales", "F16", "U8" } },
    { METHOD("\"gptq\", \"group_size\": 32"),
      GPTQ("8, 8", "2, 1", "2, 8", "64"),
      { "a.g_idx", "group", "2 groups" } },
    { METHOD("\"gptq\", \"group_size\": 32"),
      GPTQ("8, 8", "2, 1", "2, 8", "32"),
      { "a.g_idx", "[32]", "[64]" } },
    { METHOD("\"gptq\", \"group_size\": 32"),
      GPTQ("8, 8", "2, 2", "2, 8", "64"),
      { "a.qzeros", "[2, 2]", "[2, 1]" } },
    { METHOD("\"gptq\", \"group_size\": 32"),
      GPTQ("8, 8", "2, 1", "1, 8", "64"),
      { "a.scales", "[1, 8]", "[2, 8]" } },
    { METHOD("\"gptq\", \"group_size\": 32"),
      GPTQ("5, 8", "2, 1", "2, 8", "64"),
      { "a.qweight", "40 inputs", "32" } },
    { METHOD("\"gptq\", \"group_size\": 32"),
      GPTQ("8, 9", "2, 1", "2, 8", "64"),
      { "a.qweight", "9 outputs", "8" } },
    { METHOD("\"awq\", \"group_size\": 32"),
      GPTQ("64, 1", "2, 2", "2, 8", "1"),
      { "a.qzeros", "[2, 2]", "[2, 1]" } },
    { METHOD("\"awq\", \"group_size\": 32"),
      { { "a.qweight", "I32", "64, 1" }, { "a.scales", "F16", "2, 8" } },
      { "a.qzeros", "missing", "I32" } },
    { METHOD("\"fp8\""),
      { { "a.weight", "F8_E4M3", "4, 8" } },
      { "a.weight_scale", "missing", "a" } },
    { METHOD("\"fp8\""),
      { { "a.weight", "F8_E4M3", "4, 8" }, { "a.weight_scale_inv", "F32", "1, 2" } },
      { "a.weight_scale_inv", "blocks", "weight_block_size" } },
    { METHOD("\"fp8\", \"weight_block_size\": [4, 4]"),
      { { "a.weight", "F8_E4M3", "4, 8" }, { "a.weight_scale_inv", "F32", "2, 2" } },
      { "a.weight_scale_inv", "[2, 2]", "[1, 2]" } },
    { METHOD("\"fp8\""),
      { { "a.weight", "F8_E4M3", "4, 8" }, { "a.weight_scale", "U8", "1" } },
      { "a.weight_scale", "U8", "F32" } },
    { METHOD("\"gptq\", \"dynamic\": []"), { { 0 } }, { "dynamic", "a list", "an object" } },
    { METHOD("\"gptq\", \"dynamic\": {\"+:a(\": {}}"),
      { { 0 } },
      { "dynamic", "+:a(", "regular expression" } },
    { METHOD("\"gptq\", \"dynamic\": {\"+:a\": 4}"),
      { { 0 } },
      { "dynamic", "+:a", "an integer" } },
    { METHOD("\"gptq\", \"group_size\": 32, \"dynamic\": {\"a\": {\"bits\": 3}}"),
      GPTQ("8, 8", "2, 1", "2, 8", "64"),
      { "gptq", "3 bits", "8" } },
    { METHOD("\"gptq\", \"group_size\": 32, \"dynamic\": {\"a\": {\"group_size\": 64}}"),
      GPTQ("8, 8", "2, 1", "2, 8", "64"),
      { "a.scales", "[2, 8]", "[1, 8]" } },
    { METHOD(PACKED ", \"config_groups\": {\"g\": {\"weights\": {\"num_bits\": 3}}}"),
      { { 0 } },
      { "g has weights", "3 bits", "4 or 8" } },
    { METHOD(PACKED ", \"config_groups\": {\"g\": {\"weights\": {\"type\": \"float\"}}}"),
      { { 0 } },
      { "g has weights", "type float", "int" } },
    { METHOD(PACKED ", \"sparsity_config\": {\"format\": \"sparse-24-bitmask\"}"),
      { { 0 } },
      { "sparsity_config", "sparse-24-bitmask", "dense" } },
    { METHOD(PACKED ", \"transform_config\": {\"config_groups\": {\"u\": {}}}"),
      { { 0 } },
      { "quantization_config", "transform_config", "not" } },
    /* which says 0x11111111 */
    { METHOD(PACKED),
      CT("4, 8", "4, 1", { 0 }),
      { "a.weight_packed", "8 words", "a.weight_shape" } },
    { METHOD(PACKED),
      { { "a.weight_packed", "I32", "4, 8" }, { "a.weight_scale", "F16", "4, 1" } },
      { "a.weight_shape", "missing", "I64" } },
    { METHOD(PACKED),
      { { "a.weight_packed", "I32", "4, 8" }, { "a.weight_shape", "I32", "2" } },
      { "a.weight_shape", "I32", "I64" } },
    { METHOD(INT8), { { "a.weight", "I8", "4, 64" } }, { "a.weight_scale", "missing", "a" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 40" }, { "a.weight_scale", "F16", "4, 1" } },
      { "a.weight", "40 inputs", "32" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64" }, { "a.weight_scale", "F16", "4, 3" } },
      { "a.weight_scale", "3 groups", "64" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64" }, { "a.weight_scale", "F16", "3, 1" } },
      { "a.weight_scale", "[3, 1]", "[4, 1]" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64" },
        { "a.weight_scale", "F16", "4, 1" },
        { "a.weight_zero_point", "I32", "4, 1" } },
      { "a.weight_zero_point", "I32", "I8" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64" },
        { "a.weight_scale", "F16", "4, 1" },
        { "a.weight_zero_point", "I8", "4, 2" } },
      { "a.weight_zero_point", "[4, 2]", "[4, 1]" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64" },
        { "a.weight_scale", "F16", "4, 2" },
        { "a.weight_g_idx", "I32", "64" } },
      { "a.weight_g_idx", "group", "2 groups" } },
    { METHOD(INT8 ", \"config_groups\": {\"g\": {\"weights\": {\"symmetric\": true}}}"),
      { { "a.weight", "I8", "4, 64" },
        { "a.weight_scale", "F16", "4, 1" },
        { "a.weight_zero_point", "I8", "4, 1" } },
      { "a.weight_zero_point", "symmetric is true", "0" } },
    { METHOD(INT8 ", \"config_groups\": {\"g\": {\"weights\": {\"symmetric\": false}}}"),
      { { "a.weight", "I8", "4, 64" }, { "a.weight_scale", "F16", "4, 1" } },
      { "a.weight_zero_point", "symmetric is false", "no" } },
    /* Each is refused by one check alone. */
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64" }, { "a.weight_scale", "F16", "4, 0" } },
      { "a.weight_scale has 0 groups a row of 64", "", "" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "1, 2080" }, { "a.weight_scale", "F16", "1, 64" } },
      { "a.weight_scale has 64 groups a row of 2080", "", "" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64" }, { "a.weight_scale", "F16", "4, 4" } },
      { "a.weight_scale has 4 groups a row of 64", "", "" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 64, 1" }, { "a.weight_scale", "F16", "4, 1" } },
      { "a.weight has 3 dimensions; expected a matrix", "", "" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "0, 64" }, { "a.weight_scale", "F16", "0, 1" } },
      { "a.weight has 2 dimensions; expected a matrix", "", "" } },
    { METHOD(INT8),
      { { "a.weight", "I8", "4, 0" }, { "a.weight_scale", "F16", "4, 1" } },
      { "a.weight has 2 dimensions; expected a matrix", "", "" } },
    { METHOD("\"fp8\""),
      { { "a.weight", "F8_E4M3", "4, 64, 1" }, { "a.weight_scale", "F32", "1" } },
      { "a.weight has 3 dimensions; expected a matrix", "", "" } },
    { METHOD("\"fp8\""),
      { { "a.weight", "F8_E4M3", "0, 64" }, { "a.weight_scale", "F32", "1" } },
      { "a.weight has 2 dimensions; expected a matrix", "", "" } },
    { METHOD("\"fp8\""),
      { { "a.weight", "F8_E4M3", "4, 0" }, { "a.weight_scale", "F32", "1" } },
      { "a.weight has 2 dimensions; expected a matrix", "", "" } },
    { METHOD("\"fp8\", \"weight_block_size\": [128, 128, 128]"),
      { { 0 } },
      { "weight_block_size is not a list of two sizes", "", "" } },
    { METHOD("\"fp8\", \"weight_block_size\": [0, 128]"),
      { { 0 } },
      { "weight_block_size is not a list of two sizes", "", "" } },
    { METHOD("\"fp8\", \"weight_block_size\": [128, 0]"),
      { { 0 } },
      { "weight_block_size is not a list of two sizes", "", "" } },
    { METHOD("\"fp8\", \"weight_block_size\": [4294967424, 128]"),
      { { 0 } },
      { "weight_block_size is not a list of two sizes", "", "" } },
    { METHOD("\"fp8\", \"weight_block_size\": [128, 4294967424]"),
      { { 0 } },
      { "weight_block_size is not a list of two sizes", "", "" } },
    { METHOD("\"gptq\", \"group_size\": 0"),
      { { 0 } },
      { "group_size 0; expected -1 or a multiple of 32", "", "" } },
    { METHOD("\"gptq\", \"group_size\": -64"),
      { { 0 } },
      { "group_size -64; expected -1 or a multiple of 32", "", "" } },
    { METHOD("\"gptq\", \"group_size\": 4294967328"),
      { { 0 } },
      { "group_size 4294967328; expected -1 or a multiple of 32", "", "" } },
    { METHOD("\"gptq\""),
      GPTQ("1, 8, 8", "1, 1", "1, 8", "64"),
      { "a.qweight has 3 dimensions, 8 outputs and 8 inputs; expected a matrix", "", "" } },
    { METHOD("\"gptq\""),
      GPTQ("8, 0", "1, 0", "1, 0", "64"),
      { "a.qweight has 2 dimensions, 0 outputs and 64 inputs; expected a matrix", "", "" } },
    { METHOD("\"gptq\""),
      GPTQ("0, 8", "0, 1", "0, 8", "0"),
      { "a.qweight has 2 dimensions, 8 outputs and 0 inputs; expected a matrix", "", "" } },
    { METHOD("\"gptq\""),
      { { "a.qweight", "I32", "8, 8" },
        { "a.qzeros", "F32", "1, 1" },
        { "a.scales", "F16", "1, 8" } },
      { "a.qzeros is F32; expected I32", "", "" } },
    { METHOD("\"gptq\""),
      { { "a.qweight", "I32", "8, 8" },
        { "a.qzeros", "I32", "1, 1" },
        { "a.scales", "F16", "1, 8" },
        { "a.g_idx", "F32", "64" } },
      { "a.g_idx is F32; expected I32", "", "" } },
    { METHOD("\"gptq\", \"dynamic\": {\"(a+)+[xy]\": {}}"),
      { { LONG_A ".qweight", "I32", "8, 8" } },
      { "dynamic: (a+)+[xy] takes too long to be matched", "", "" } },
    { "\"quantization\": {\"bits\": 1}", { { 0 } }, { "1 bits", "", "" } },
    { "\"quantization\": {\"bits\": 9}", { { 0 } }, { "9 bits", "", "" } },
    { "\"quantization\": {\"bits\": 3, \"group_size\": 32}",
      MLX("4, 4", "4, 1"),
      { "a.weight has 4 words a row", "groups of 32 numbers of 3", "bits" } },
    { "\"quantization\": {}",
      { { "a.weight", "U32", "4, 8" },
        { "a.scales", "F16", "4, 1" },
        { "a.biases", "BF16", "4, 1" } },
      { "a.biases is BF16; expected F16 as the scales", "", "" } },
    { "\"quantization\": {\"mode\": \"mxfp4\", \"group_size\": 32, \"bits\": 8}",
      MLX("4, 8", "4, 1"),
      { "mode mxfp4 with 8 bits in groups of 32", "", "" } },
    { "\"quantization\": {\"mode\": \"mxfp4\", \"group_size\": 64}",
      MLX("4, 8", "4, 1"),
      { "mode mxfp4 with 4 bits in groups of 64", "", "" } },
};

static size_t bytes_of(const struct part *part)
{
    unsigned a = 1, b = 1, c = 1;
    size_t size = strstr(part->type, "64") ? 8 :
                  strstr(part->type, "32") ? 4 :
                  strstr(part->type, "16") ? 2 :
                                             1;
    ck_assert_int_ge(sscanf(part->shape, "%u, %u, %u", &a, &b, &c), 1);
    return a * b * c * size;
}

/* A folder of these tensors, all bytes 0x11: opens, but has no weights to be had. */
START_TEST(refusals)
{
    static uint8_t data[4096];
    memset(data, 0x11, sizeof data);
    struct test_folder folder = test_folder_begin();
    char config[512];
    struct test_st st = { 0 };
    struct ak_provider *p;
    struct ak_error error = { 0 };
    test_st_add(&st, "norm.weight", "F32", "1", data, 4);
    for (size_t i = 0; i < 4 && refused[_i].parts[i].name; i++) {
        const struct part *part = &refused[_i].parts[i];
        test_st_add(&st, part->name, part->type, part->shape, data, bytes_of(part));
    }
    test_st_write(&st, &folder, "model.safetensors", 0);
    snprintf(config, sizeof config, "{\"model_type\": \"llama\", %s}", refused[_i].config);
    test_write_text(&folder, "config.json", config);
    ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s: %s", config,
                  error.message);
    ck_assert_uint_ge(ak_provider_n_tensors(p), 1);
    ck_assert_int_ne(ak_provider_check_weights(p, &error), AKUNU_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(error.message, refused[_i].named[i]) != NULL,
                      "%s: \"%s\" does not name %s", config, error.message, refused[_i].named[i]);
    ak_provider_close(p);
    ck_assert_ptr_null(akunu_model_load(folder.path, NULL));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), refused[_i].named[0]));
    test_folder_end(&folder);
}
END_TEST

/* compressed-tensors: a symmetric tensor whose zero points are 0 in its last group alone. */
START_TEST(some_zero_points)
{
    static const uint8_t weights[256], scales[16], zeros[8] = { 1, 0, 1, 0, 1, 0, 1, 0 };
    struct test_folder folder = test_folder_begin();
    struct test_st st = { 0 };
    struct ak_provider *p;
    struct ak_error error = { 0 };
    test_st_add(&st, "a.weight", "I8", "4, 64", weights, sizeof weights);
    test_st_add(&st, "a.weight_scale", "F16", "4, 2", scales, sizeof scales);
    test_st_add(&st, "a.weight_zero_point", "I8", "4, 2", zeros, sizeof zeros);
    test_st_write(&st, &folder, "model.safetensors", 0);
    test_write_text(&folder, "config.json",
                    "{\"model_type\": \"llama\", " METHOD(
                        INT8
                        ", \"config_groups\": {\"g\": {\"weights\": {\"symmetric\": true}}}") "}");
    ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_OK);
    ck_assert_int_ne(ak_provider_check_weights(p, &error), AKUNU_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "symmetric is true"));
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

/* Settings that say what is the rule. */
START_TEST(accepted)
{
    static const struct {
        const char *config;
        struct part parts[3];
    } cases[] = {
        { METHOD(INT8 ", \"sparsity_config\": {\"format\": \"dense\"}"),
          { { "a.weight", "I8", "4, 64" }, { "a.weight_scale", "F16", "4, 1" } } },
        { METHOD("\"fp8\", \"weight_block_size\": null"),
          { { "a.weight", "F8_E4M3", "4, 64" }, { "a.weight_scale", "F32", "1" } } },
        { METHOD("\"gptq\", \"bits\": 2, \"group_size\": null, \"checkpoint_format\": \"gptq\", "
                 "\"dynamic\": null"),
          { { "a.qweight", "I32", "8, 16" },
            { "a.qzeros", "I32", "1, 1" },
            { "a.scales", "F16", "1, 16" } } },
        { METHOD("\"gptq\", \"dynamic\": {\"-:b\": false, \"c\": {\"bits\": 8}}"),
          { { "a.qweight", "I32", "8, 8" },
            { "a.qzeros", "I32", "1, 1" },
            { "a.scales", "F16", "1, 8" } } },
        { "\"quantization\": {\"group_size\": 128}",
          { { "a.weight", "U32", "4, 16" },
            { "a.scales", "F16", "4, 1" },
            { "a.biases", "F16", "4, 1" } } },
    };
    static uint8_t data[4096];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_folder folder = test_folder_begin();
        struct test_st st = { 0 };
        struct ak_provider *p;
        struct ak_tensor tensor;
        struct ak_error error = { 0 };
        char config[256];
        for (size_t k = 0; k < 3 && cases[i].parts[k].name; k++)
            test_st_add(&st, cases[i].parts[k].name, cases[i].parts[k].type,
                        cases[i].parts[k].shape, data, bytes_of(&cases[i].parts[k]));
        test_st_write(&st, &folder, "model.safetensors", 0);
        snprintf(config, sizeof config, "{\"model_type\": \"llama\", %s}", cases[i].config);
        test_write_text(&folder, "config.json", config);
        ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s: %s", config,
                      error.message);
        ck_assert_msg(ak_provider_check_weights(p, &error) == AKUNU_OK, "%s: %s", config,
                      error.message);
        ck_assert_uint_eq(ak_provider_n_tensors(p), 1);
        ck_assert(ak_provider_tensor(p, 0, &tensor) && tensor.composed_tensor);
        ck_assert_str_eq(tensor.name, "a.weight");
        ak_provider_close(p);
        test_folder_end(&folder);
    }
}
END_TEST

/* What keeps the tensors from being weights. False where there is no room for a file of that size:
 * a hole ends it. */
static bool refuse_large(const struct test_folder *folder, const char *config, const char *header,
                         const void *data, size_t n, uint64_t hole, struct ak_error *error)
{
    char text[256];
    struct ak_provider *p;
    snprintf(text, sizeof text, "{\"model_type\": \"llama\", %s}", config);
    test_write_text(folder, "config.json", text);
    test_write_st(folder, "model.safetensors", header, data, n);
    if (truncate(test_in(folder, "model.safetensors"), (off_t)(8 + strlen(header) + n + hole)) != 0)
        return false;
    ak_status status = ak_provider_open(folder->path, &p, error);
    if (status == AKUNU_ERROR_MEMORY)
        return false;
    ck_assert_msg(status == AKUNU_OK, "%s", error->message);
    ck_assert_int_ne(ak_provider_check_weights(p, error), AKUNU_OK);
    ak_provider_close(p);
    return true;
}

#define ENTRY(name, type, shape, begin, end)                                                       \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end  \
    "]}"

/* Rows and columns have 32 bits. Words of several numbers can make more of them; the files are
 * holes of 4 to 64 GiB. */
START_TEST(beyond_32_bits)
{
    static const struct {
        const char *config, *header;
        uint64_t shape[2]; /* the data, which compressed-tensors has */
        uint64_t hole;
        const char *named;
    } cases[] = {
        { METHOD(PACKED),
          "{" ENTRY("a.weight_shape", "I64", "2", "0", "16") "," ENTRY("a.weight_packed", "I32",
                                                                       "0, 8", "16", "16") "}",
          { 0, 64 },
          0,
          "a.weight_packed has 8 words a row, where a.weight_shape has 64 inputs" },
        { METHOD(PACKED),
          "{" ENTRY("a.weight_shape", "I64", "2", "0", "16") "," ENTRY("a.weight_packed", "I32",
                                                                       "4, 0", "16", "16") "}",
          { 4, 0 },
          0,
          "a.weight_packed has 0 words a row, where a.weight_shape has 0 inputs" },
        { METHOD(PACKED),
          "{" ENTRY("a.weight_shape", "I64", "2", "0", "16") "," ENTRY(
              "a.weight_scale", "F16", "1, 1", "16",
              "18") "," ENTRY("a.weight_packed", "I32", "1, 1073741832", "18", "4294967346") "}",
          { 1, (UINT64_C(1) << 32) + 32 },
          (UINT64_C(4) << 30) + 34,
          "a.weight_packed has 1073741832 words a row, where a.weight_shape has 4294967328 "
          "inputs" },
        { METHOD("\"gptq\", \"bits\": 8, \"group_size\": -1"),
          "{" ENTRY("a.qweight", "I32", "1073741832, 4", "0", "17179869312") "}",
          { 0 },
          (UINT64_C(16) << 30) + 112,
          "a.qweight has 2 dimensions, 4 outputs and 4294967328 inputs; expected a matrix" },
        { METHOD("\"awq\", \"group_size\": 32"),
          "{" ENTRY("a.qweight", "I32", "32, 536870916", "0", "68719477248") "}",
          { 0 },
          (UINT64_C(64) << 30) + 496,
          "a.qweight has 2 dimensions, 4294967328 outputs and 32 inputs; expected a matrix" },
        { "\"quantization\": {\"bits\": 2}",
          "{" ENTRY("a.scales", "F16", "1, 1", "0", "2") "," ENTRY(
              "a.biases", "F16", "1, 1", "2", "4") "," ENTRY("a.weight", "U32", "1, 268435460", "4",
                                                             "1073741844") "}",
          { 0 },
          (UINT64_C(1) << 30) + 4,
          "a.weight has 268435460 words a row" },
    };
    struct test_folder folder = test_folder_begin();
    struct ak_error error = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (refuse_large(&folder, cases[i].config, cases[i].header, cases[i].shape, 16,
                         cases[i].hole, &error))
            ck_assert_msg(strstr(error.message, cases[i].named), "\"%s\" does not name %s",
                          error.message, cases[i].named);
    test_folder_end(&folder);
}
END_TEST

/* A checkpoint of these tensors in GPTQ; the caller closes the provider. */
static struct ak_provider *open_gptq(struct test_st *st)
{
    struct test_folder folder = test_folder_begin();
    struct ak_provider *p;
    struct ak_error error = { 0 };
    test_st_write(st, &folder, "model.safetensors", 0);
    test_write_text(&folder, "config.json",
                    "{\"quantization_config\": {\"quant_method\": \"gptq\", \"group_size\": 32}}");
    ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s", error.message);
    test_folder_end(&folder);
    return p;
}

/* Names are built in buffers of 256 bytes: longer ones are tensors like others. */
START_TEST(long_names)
{
    static const uint8_t data[256];
    for (size_t n = 255; n <= 380; n += n < 258 ? 1 : 61) {
        char name[400];
        struct test_st st = { 0 };
        struct ak_error error = { 0 };
        memset(name, 'a', n);
        strcpy(name + n, ".qweight");
        test_st_add(&st, name, "I32", "8, 8", data, 256);
        struct ak_provider *p = open_gptq(&st);
        ck_assert_uint_eq(ak_provider_n_tensors(p), 1);
        /* of a weight, the scales are missing */
        ck_assert((ak_provider_check_weights(p, &error) == AKUNU_OK) == (n > 255));
        ak_provider_close(p);
    }
}
END_TEST

/* Inputs out of order are sorted by group, into blocks of 32, unless a block were of two groups. */
START_TEST(groups_of_odd_sizes)
{
    static const uint8_t data[256];
    for (uint32_t first = 31; first <= 33; first++) {
        uint32_t groups[64];
        struct test_st st = { 0 };
        struct ak_tensor tensor;
        for (uint32_t k = 0; k < 64; k++)
            groups[63 - k] = k >= first;
        test_st_add(&st, "a.qweight", "I32", "8, 8", data, 256);
        test_st_add(&st, "a.qzeros", "I32", "2, 1", data, 8);
        test_st_add(&st, "a.scales", "F16", "2, 8", data, 32);
        test_st_add(&st, "a.g_idx", "I32", "64", groups, sizeof groups);
        struct ak_provider *p = open_gptq(&st);
        ck_assert(ak_provider_tensor(p, 0, &tensor) && tensor.composed_tensor);
        ck_assert((tensor.type == AK_QUANT_F16) == (first != 32));
        ck_assert((tensor.composed_tensor->order == NULL) == (first != 32));
        ak_provider_close(p);
    }
}
END_TEST

/* The patterns of a configuration are few. */
START_TEST(many_patterns)
{
    struct test_folder folder = test_folder_begin();
    struct test_bytes config = { 0 };
    struct test_st st = { 0 };
    struct ak_provider *p;
    struct ak_error error = { 0 };
    char key[32];
    static const char head[] =
        "{\"quantization_config\": {\"quant_method\": \"gptq\", \"dynamic\": {\"x\": {}",
                      tail[] = "}}}";
    test_append(&config, head, strlen(head));
    for (int i = 0; i < 1024; i++) {
        int n = snprintf(key, sizeof key, ", \"%d\": {}", i);
        test_append(&config, key, (size_t)n);
    }
    test_append(&config, tail, strlen(tail));
    test_write(&folder, "config.json", config.data, config.n);
    free(config.data);
    test_st_add(&st, "a", "F32", "1", "0123", 4);
    test_st_write(&st, &folder, "model.safetensors", 0);
    ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_int_ne(ak_provider_check_weights(p, &error), AKUNU_OK);
    ck_assert_msg(
        strstr(error.message,
               "dynamic is an object of 1025; expected an object of at most 1024 patterns"),
        "%s", error.message);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

/* Whatever the method: floats are the weights, and what is beside them are ids. */
START_TEST(floats_alone)
{
    static const char *const configs[] = {
        METHOD("\"bitsandbytes\", \"load_in_4bit\": true"), METHOD("\"aqlm\""), METHOD("7"),
        METHOD("\"compressed-tensors\", \"format\": \"dense\"")
    };
    static const uint8_t data[256];
    char config[256];
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct test_folder folder = test_folder_begin();
        struct test_st st = { 0 };
        struct ak_provider *p;
        struct ak_error error = { 0 };
        test_st_add(&st, "a.weight", "BF16", "4, 8", data, 64);
        test_st_add(&st, "position_ids", "I64", "1, 4", data, 32);
        test_st_add(&st, "mask", "BOOL", "4, 8", data, 32);
        test_st_write(&st, &folder, "model.safetensors", 0);
        snprintf(config, sizeof config, "{\"model_type\": \"llama\", %s}", configs[i]);
        test_write_text(&folder, "config.json", config);
        ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s: %s", config,
                      error.message);
        ck_assert_msg(ak_provider_check_weights(p, &error) == AKUNU_OK, "%s: %s", config,
                      error.message);
        ak_provider_close(p);
        test_folder_end(&folder);
    }
}
END_TEST

/* A tensor may be quantized or not, but not both. */
START_TEST(twice)
{
    static const uint8_t data[256];
    struct test_folder folder = test_folder_begin();
    struct test_st st = { 0 };
    struct ak_provider *p;
    struct ak_error error = { 0 };
    test_st_add(&st, "a.weight", "F32", "1", data, 4);
    test_st_add(&st, "a.qweight", "I32", "4, 8", data, 128);
    test_st_add(&st, "a.qzeros", "I32", "1, 1", data, 4);
    test_st_add(&st, "a.scales", "F16", "1, 8", data, 16);
    test_st_write(&st, &folder, "model.safetensors", 0);
    test_write_text(&folder, "config.json",
                    "{\"quantization_config\": {\"quant_method\": \"gptq\", \"group_size\": 32}}");
    ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "a.weight") && strstr(error.message, "twice"), "%s",
                  error.message);
    test_folder_end(&folder);
}
END_TEST

/* ---- Symmetric modules --------------------------------------------------- */
/* Zero points as stored, what the configuration says of them, and the zero point that the module
 * has, as the formats define it: 2^(bits - 1) if it is symmetric, else what is stored, plus one in
 * the first version of GPTQ. -1: refused, because the two contradict each other. */
static const struct {
    const char *scheme, *settings;
    unsigned bits, stored, last; /* last: stored in the last word; 0: as the others */
    int zero;
} symmetric[] = {
    { "gptq", "\"sym\": true", 4, 7, 0, 8 },
    { "gptq", "\"sym\": true", 4, 8, 0, 8 },
    { "gptq", "\"sym\": true, \"checkpoint_format\": \"gptq\"", 4, 8, 0, 8 },
    { "gptq", "\"sym\": true, \"checkpoint_format\": \"gptq_v2\"", 4, 7, 0, 8 },
    { "gptq", "\"sym\": true, \"checkpoint_format\": \"gptq_v2\"", 4, 8, 0, 8 },
    { "gptq", "\"checkpoint_format\": \"gptq\"", 4, 8, 0, 8 },
    { "gptq", "\"checkpoint_format\": \"gptq_v2\"", 4, 7, 0, 8 },
    { "gptq", "\"checkpoint_format\": \"gptq\"", 4, 8, 5, 9 },
    { "gptq", "\"checkpoint_format\": \"gptq\"", 4, 5, 0, 6 },
    { "gptq", "\"checkpoint_format\": \"gptq_v2\"", 4, 5, 0, 5 },
    { "gptq", "\"sym\": false", 4, 8, 0, 9 },
    { "gptq", "\"sym\": false, \"checkpoint_format\": \"gptq_v2\"", 4, 7, 0, 7 },
    { "gptq", "\"sym\": false", 4, 15, 0, 0 },
    { "gptq", "\"sym\": true, \"bits\": 2", 2, 2, 0, 2 },
    { "gptq", "\"sym\": true, \"bits\": 2, \"checkpoint_format\": \"gptq_v2\"", 2, 1, 0, 2 },
    { "gptq", "\"sym\": true, \"bits\": 8", 8, 128, 0, 128 },
    { "gptq", "\"sym\": true, \"bits\": 8, \"checkpoint_format\": \"gptq_v2\"", 8, 127, 0, 128 },
    { "gptq", "\"sym\": false, \"dynamic\": {\"a\": {\"sym\": true}}", 4, 8, 0, 8 },
    { "gptq", "\"sym\": true, \"dynamic\": {\"a\": {\"sym\": false}}", 4, 8, 0, 9 },
    { "gptq", "\"sym\": true", 4, 5, 0, -1 },
    { "gptq", "\"sym\": true", 4, 9, 0, -1 },
    { "gptq", "\"sym\": true", 4, 7, 8, -1 },
    { "gptq", "\"sym\": true, \"checkpoint_format\": \"gptq_v2\"", 4, 8, 7, -1 },
    { "awq", "\"zero_point\": false", 4, 8, 0, 8 },
    { "awq", "\"zero_point\": true", 4, 7, 0, 7 },
    { "awq", "\"zero_point\": false", 4, 7, 0, -1 },
    { "awq", "\"zero_point\": false", 4, 8, 7, -1 },
};
enum { N_SYMMETRIC = sizeof symmetric / sizeof *symmetric };

/* Writes a module of 64 inputs in two groups and 32 outputs: numbers 1, scales 1. */
static void write_symmetric(const struct test_folder *folder, int i, bool act_order)
{
    enum { IN = 64, OUT = 32, GROUPS = 2 };
    static uint32_t numbers[IN * OUT / 4], zeros[GROUPS * OUT / 4], index[IN];
    static uint16_t scales[GROUPS * OUT];
    char config[512], shape[3][24];
    struct test_st st = { 0 };
    uint32_t bits = symmetric[i].bits, per_word = 32 / bits, mask = (1u << bits) - 1,
             ones = UINT32_MAX / mask, n_zeros = GROUPS * OUT / per_word;
    bool awq = strcmp(symmetric[i].scheme, "awq") == 0;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        numbers[k] = ones;
    for (uint32_t k = 0; k < n_zeros; k++)
        zeros[k] = symmetric[i].stored * ones;
    if (symmetric[i].last)
        zeros[n_zeros - 1] = symmetric[i].last * ones;
    for (size_t k = 0; k < GROUPS * OUT; k++)
        scales[k] = 0x3C00;
    for (uint32_t k = 0; k < IN; k++)
        index[k] = act_order ? (IN - 1 - k) / 32 : k / 32;
    snprintf(shape[0], sizeof shape[0], awq ? "%d, %d" : "%d, %d", awq ? IN : IN / (int)per_word,
             awq ? OUT / 8 : OUT);
    snprintf(shape[1], sizeof shape[1], "%d, %d", GROUPS, OUT / (int)per_word);
    snprintf(shape[2], sizeof shape[2], "%d, %d", GROUPS, OUT);
    test_st_add(&st, "a.qweight", "I32", shape[0], numbers, IN * OUT * bits / 8);
    test_st_add(&st, "a.qzeros", "I32", shape[1], zeros, n_zeros * 4);
    test_st_add(&st, "a.scales", "F16", shape[2], scales, sizeof scales);
    if (!awq)
        test_st_add(&st, "a.g_idx", "I32", "64", index, sizeof index);
    test_st_write(&st, folder, "model.safetensors", 0);
    snprintf(config, sizeof config,
             "{\"model_type\": \"llama\", \"quantization_config\": {\"quant_method\": \"%s\", "
             "\"group_size\": 32, %s}}",
             symmetric[i].scheme, symmetric[i].settings);
    test_write_text(folder, "config.json", config);
}

START_TEST(symmetric_modules)
{
    for (int act_order = 0; act_order < 2; act_order++) {
        struct test_folder folder = test_folder_begin();
        struct ak_provider *p;
        struct ak_error error = { 0 };
        struct ak_tensor tensor;
        float row[64];
        write_symmetric(&folder, _i, act_order);
        ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_OK);
        if (symmetric[_i].zero < 0) {
            ck_assert_int_eq(ak_provider_check_weights(p, &error), AKUNU_ERROR_FORMAT);
            ck_assert_ptr_nonnull(strstr(error.message, "a.qzeros has others"));
        } else {
            ck_assert_msg(ak_provider_check_weights(p, &error) == AKUNU_OK, "%s", error.message);
            ck_assert(ak_provider_tensor(p, 0, &tensor));
            ak_tensor_dequantize(&tensor, 0, 64, row);
            for (int k = 0; k < 64; k++)
                ck_assert_msg(row[k] == (float)(1 - symmetric[_i].zero), "%s: value %g, zero %d",
                              symmetric[_i].settings, (double)row[k], symmetric[_i].zero);
        }
        ak_provider_close(p);
        test_folder_end(&folder);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hf_quant");
    TCase *tests = tcase_create("hf_quant");
    /* what another backend is asked for, too (tests/opencl/test_devices.sh) */
    TCase *any = tcase_create("any");
    tcase_set_timeout(any, 600);
    tcase_add_loop_test(any, logits, 0, N_FOLDERS);
    tcase_add_test(tests, eight_bits_stay);
    tcase_add_loop_test(tests, values, 0, N_FOLDERS);
    tcase_add_test(any, converted);
    tcase_add_loop_test(tests, packed_values, 0, N_FOLDERS);
    tcase_add_test(tests, orders);
    tcase_add_test(tests, dropped);
    tcase_add_test(tests, some_zero_points);
    tcase_add_loop_test(tests, refusals, 0, sizeof refused / sizeof *refused);
    tcase_add_loop_test(tests, symmetric_modules, 0, N_SYMMETRIC);
    tcase_add_test(tests, accepted);
    tcase_add_test(tests, beyond_32_bits);
    tcase_add_test(tests, long_names);
    tcase_add_test(tests, groups_of_odd_sizes);
    tcase_add_test(tests, many_patterns);
    tcase_add_test(tests, twice);
    tcase_add_test(tests, floats_alone);
    suite_add_tcase(suite, any);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

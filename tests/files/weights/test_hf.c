/* Hugging Face folders and SafeTensors files: what is in them,
 * that damaged ones are refused by the name of what is wrong, and that the model of a GGUF file
 * computes the same from such a folder. */
#include "tests/test.h"
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/golden_model.h"
#include "engine/spec/arch.h"
#include "engine/pack/pack.h"
#include "tests/st_files.h"

static const char small_config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"rms_norm_eps\": 1e-6, \"name\": \"é\", "
    "\"nothing\": null, \"use_cache\": true,"
    " \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4}, \"layer_types\": [\"a\", "
    "\"b\"], \"mixed\": [1, 2.5], \"deep\": [{}]}";

static struct ak_provider *open_ok(const char *path)
{
    struct ak_provider *p;
    struct ak_error error;
    ck_assert_msg(ak_provider_open(path, &p, &error) == AKUNU_OK, "%s: %s", path, error.message);
    return p;
}

static void check_refused(const char *path, const char *what, const char *const *named)
{
    struct ak_provider *p;
    struct ak_error error = { 0 };
    ak_status status = ak_provider_open(path, &p, &error);
    ck_assert_msg(status == AKUNU_ERROR_FORMAT || status == AKUNU_ERROR_UNSUPPORTED,
                  "%s: status %d", what, status);
    for (; *named; named++)
        ck_assert_msg(strstr(error.message, *named), "%s: \"%s\" does not name %s", what,
                      error.message, *named);
}

/* Two tensors, with the file's data at an odd address unless `n_spaces` says otherwise. */
static void write_small(const struct test_folder *folder, const char *name, const char *prefix,
                        unsigned n_spaces)
{
    static const float norm[3] = { 1.0f, -2.0f, 0.5f };
    static const int16_t numbers[4] = { 1, -2, 3, -32768 };
    struct test_st st = { 0 };
    char tensor[64];
    snprintf(tensor, sizeof tensor, "%snorm.weight", prefix);
    test_st_add(&st, tensor, "F32", "3", norm, sizeof norm);
    test_st_add(&st, "numbers", "I16", "2,2", numbers, sizeof numbers);
    test_st_add(&st, "scalar", "F32", "", norm, 4);
    test_st_add(&st, "nothing", "F32", "0,3", norm, 0);
    test_st_write(&st, folder, name, n_spaces);
}

/* ---- What is in them ---------------------------------------------------- */
static ak_status add_values(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                            const float *values, void *user)
{
    (void)first;
    double *sums = user;
    for (uint64_t i = 0; i < n; i++)
        sums[tensor->type == AK_QUANT_I16] += (double)values[i];
    return AKUNU_OK;
}

/* Any number of spaces behind the header, so any address of the data. */
START_TEST(contents)
{
    struct test_folder folder = test_folder_begin();
    write_small(&folder, "model.safetensors", _i & 1 ? "" : "model.", (unsigned)_i);
    test_write_text(&folder, "config.json", small_config);
    test_write_text(&folder, "tokenizer.json", "{}");
    struct ak_provider *p = open_ok(folder.path);
    ck_assert_int_eq(ak_provider_naming(p), AK_PROVIDER_NAMING_HF);
    ck_assert_uint_eq(ak_provider_n_tensors(p), 4);

    struct ak_view view;
    ck_assert(
        ak_provider_find(p, AK_ROLE_OUTPUT_NORM, AK_ROLE_NO_LAYER, "model.norm.weight", &view));
    ck_assert_uint_eq(view.n_dims, 1);
    ck_assert_uint_eq(view.cols, 3);
    ck_assert_uint_eq((uintptr_t)view.plane[0].data % sizeof(float), 0);
    ck_assert(((const float *)view.plane[0].data)[1] == -2.0f);
    ck_assert(ak_provider_find(p, AK_ROLE_OUTPUT_NORM, AK_ROLE_NO_LAYER, "norm.weight", &view));
    ck_assert(!ak_provider_find(p, AK_ROLE_OUTPUT_NORM, AK_ROLE_NO_LAYER, "model.weight", &view));
    ck_assert(!ak_provider_find(p, AK_ROLE_OUTPUT_NORM, AK_ROLE_NO_LAYER, NULL, &view));

    struct ak_tensor tensor;
    double sums[2] = { 0 };
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++)
        ck_assert_uint_eq(
            tensor.n_dims,
            strcmp(tensor.name, "numbers") == 0 || strcmp(tensor.name, "nothing") == 0 ? 2 : 1);
    ck_assert_int_eq(ak_provider_stream(p, add_values, sums, NULL), AKUNU_OK);
    ck_assert(sums[0] == -0.5 + 1.0 && sums[1] == 2.0 - 32768.0);

    struct ak_text text;
    ck_assert(ak_provider_file(p, "tokenizer.json", &text) && text.n == 2 &&
              memcmp(text.bytes, "{}", 2) == 0);
    ck_assert(!ak_provider_file(p, "tokenizer.model", &text) && text.n == 0);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

START_TEST(metadata)
{
    struct test_folder folder = test_folder_begin();
    write_small(&folder, "model.safetensors", "", 0);
    test_write_text(&folder, "config.json", small_config);
    test_write_text(&folder, "generation_config.json", "{\"temperature\": 0.5}");
    test_write_text(&folder, "tokenizer_config.json",
                    "{\"model_max_length\": 1000000000000000019884624838656, "
                    "\"added_tokens_decoder\": {\"1\": {\"content\": \"x\"}}}");
    struct ak_provider *p = open_ok(folder.path);
    struct ak_text text;
    uint32_t width;
    float factor;
    bool flag;
    ck_assert(ak_meta_text(p, "general.architecture", &text, NULL) == AKUNU_OK && text.n == 5 &&
              memcmp(text.bytes, "llama", 5) == 0);
    ck_assert(ak_meta_text(p, "name", &text, NULL) == AKUNU_OK && text.n == 2);
    ck_assert(ak_meta_u32(p, "hidden_size", 0, &width, NULL) == AKUNU_OK && width == 8);
    ck_assert(ak_meta_float(p, "rope_scaling.factor", 0, &factor, NULL) == AKUNU_OK &&
              factor == 4.0f);
    ck_assert(ak_meta_float(p, "generation_config.temperature", 0, &factor, NULL) == AKUNU_OK &&
              factor == 0.5f);
    ck_assert(ak_meta_float(p, "tokenizer_config.model_max_length", 0, &factor, NULL) == AKUNU_OK &&
              factor == 1e30f);
    ck_assert(ak_meta_bool(p, "use_cache", false, &flag, NULL) == AKUNU_OK && flag);

    struct ak_meta meta, element;
    ck_assert(!ak_provider_find_meta(p, "nothing", &meta) &&
              !ak_provider_find_meta(p, "rope_scaling", &meta));
    ck_assert(ak_provider_find_meta(p, "layer_types", &meta) && meta.kind == AK_META_ARRAY &&
              meta.n == 2);
    ck_assert_int_eq(meta.element_kind, AK_META_STRING);
    ck_assert(ak_provider_element(p, &meta, 1, &element) && element.n == 1 &&
              *element.as.string == 'b');
    ck_assert(!ak_provider_element(p, &meta, 2, &element));
    ck_assert(ak_provider_find_meta(p, "mixed", &meta) && meta.element_kind == AK_META_FLOAT);
    ck_assert(ak_provider_find_meta(p, "deep", &meta) &&
              ak_provider_element(p, &meta, 0, &element) && element.n == 0);
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        ck_assert(ak_provider_find_meta(p, meta.key, &element) &&
                  !strstr(meta.key, "added_tokens"));
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

/* A bare file is found by content, whatever its name. */
START_TEST(bare)
{
    static const char *const missing[] = { "config.json", NULL }, *const shard[] = { "one of 3",
                                                                                     "folder",
                                                                                     NULL };
    struct test_folder folder = test_folder_begin();
    write_small(&folder, "weights.bin", "", 0);
    check_refused(test_in(&folder, "weights.bin"), "bare", missing);
    test_write_text(&folder, "config.json", small_config);
    ak_provider_close(open_ok(test_in(&folder, "weights.bin")));

    char here[4096];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(folder.path), 0);
    ak_provider_close(open_ok("weights.bin"));
    ck_assert_int_eq(chdir(here), 0);

    write_small(&folder, "m-00002-of-00003.safetensors", "", 0);
    check_refused(test_in(&folder, "m-00002-of-00003.safetensors"), "shard", shard);
    test_folder_end(&folder);
}
END_TEST

/* ---- Shards ------------------------------------------------------------- */
static void write_shards(const struct test_folder *folder)
{
    struct test_st st = { 0 };
    test_write_text(folder, "config.json", small_config);
    test_st_add(&st, "b", "U8", "2", "bb", 2);
    test_st_write(&st, folder, "m-00001-of-00002.safetensors", 0);
    test_st_add(&st, "a", "U8", "1", "a", 1);
    test_st_write(&st, folder, "m-00002-of-00002.safetensors", 0);
}

static const struct {
    const char *index, *named[3];
} bad_indexes[] = {
    { "", { "model.safetensors.index.json", "empty" } },
    { "[]", { "weight_map" } },
    { "{}", { "weight_map", "nothing" } },
    { "{\"weight_map\": []}", { "weight_map", "a list" } },
    { "{\"weight_map\": {}}", { "weight_map" } },
    { "{\"weight_map\": {\"a\": 1}}", { "weight_map", "a is in", "integer" } },
    { "{\"weight_map\": {\"a\": \"../m-00002-of-00002.safetensors\"}}",
      { "weight_map", "../m-00002" } },
    { "{\"weight_map\": {\"a\": \"/etc/hostname\"}}", { "weight_map", "/etc/hostname" } },
    { "{\"weight_map\": {\"a\": \"sub/m-00002-of-00002.safetensors\"}}",
      { "weight_map: a is in \"sub/m-00002-of-00002.safetensors\", where the name of" } },
    { "{\"weight_map\": {\"a\": \"m-00002-of-00002.safetensors\", \"b\": "
      "\"m-00002-of-00002.safetensors\"}}",
      { "weight_map: b is in m-00002-of-00002.safetensors, which does not have it" } },
    { "{\"weight_map\": {\"a\": \"m-00001-of-00002.safetensors\", \"b\": "
      "\"m-00002-of-00002.safetensors\"}}",
      { "weight_map: a is in m-00001-of-00002.safetensors, which does not have it" } },
    { "{\"weight_map\": {\"a\": \"..\"}}", { "weight_map", "\"..\"" } },
    { "{\"weight_map\": {\"a\": \"config.json\"}}", { "weight_map", "config.json" } },
    { "{\"weight_map\": {\"a\": \"m-00003-of-00003.safetensors\"}}",
      { "m-00003-of-00003.safetensors", "no such file" } },
    { "{\"weight_map\": {\"a\": \"m-00001-of-00002.safetensors\"}}",
      { "weight_map", "a is in m-00001" } },
    { "{\"weight_map\": {\"c\": \"m-00002-of-00002.safetensors\"}}",
      { "weight_map", "c is in m-00002" } },
};

START_TEST(shards)
{
    static const char *const twice[] = { "tensor a", "two files", NULL }, *const lost[] = {
        "1 SafeTensors", "one of 2", NULL
    };
    struct test_folder folder = test_folder_begin();
    struct ak_tensor tensor;
    write_shards(&folder);
    for (int with_index = 0; with_index < 2; with_index++) {
        if (with_index)
            test_write_text(&folder, "model.safetensors.index.json",
                            "{\"weight_map\": {\"a\": \"m-00002-of-00002.safetensors\", \"b\": "
                            "\"m-00001-of-00002.safetensors\"}}");
        struct ak_provider *p = open_ok(folder.path);
        ck_assert(ak_provider_tensor(p, 1, &tensor) && strcmp(tensor.name, "a") == 0 &&
                  *(const char *)tensor.data == 'a');
        ak_provider_close(p);
    }
    for (size_t i = 0; i < sizeof bad_indexes / sizeof *bad_indexes; i++) {
        const char *const named[] = { bad_indexes[i].named[0], bad_indexes[i].named[1],
                                      bad_indexes[i].named[2], NULL };
        test_write_text(&folder, "model.safetensors.index.json", bad_indexes[i].index);
        check_refused(folder.path, bad_indexes[i].index, named);
    }
    unlink(test_in(&folder, "model.safetensors.index.json"));

    struct test_st st = { 0 };
    test_st_add(&st, "a", "U8", "1", "a", 1);
    test_st_write(&st, &folder, "m-00001-of-00002.safetensors", 0);
    check_refused(folder.path, "a tensor twice", twice);
    unlink(test_in(&folder, "m-00001-of-00002.safetensors"));
    check_refused(folder.path, "a shard gone", lost);
    test_folder_end(&folder);
}
END_TEST

/* The cache's key changes with any part and with the configuration. */
START_TEST(fingerprint)
{
    struct test_folder folder = test_folder_begin();
    struct ak_provider_fingerprint seen[4];
    write_shards(&folder);
    for (int i = 0; i < 4; i++) {
        struct timespec times[2] = { { .tv_sec = 1000000000 },
                                     { .tv_sec = 1000000000 + (i == 2) } };
        if (i == 3)
            test_write_text(&folder, "config.json", "{\"model_type\": \"qwen2\"}");
        ck_assert_int_eq(utimensat(AT_FDCWD, test_in(&folder, "config.json"), times, 0), 0);
        ck_assert_int_eq(
            utimensat(AT_FDCWD, test_in(&folder, "m-00002-of-00002.safetensors"), times, 0), 0);
        struct ak_provider *p = open_ok(folder.path);
        ak_provider_fingerprint(p, &seen[i]);
        ak_provider_close(p);
    }
    ck_assert_mem_eq(seen[0].hash, seen[1].hash, sizeof seen[0].hash);
    ck_assert_mem_ne(seen[1].hash, seen[2].hash, sizeof seen[0].hash);
    ck_assert_mem_ne(seen[1].hash, seen[3].hash, sizeof seen[0].hash);
    test_folder_end(&folder);
}
END_TEST

/* ---- Hostile headers ---------------------------------------------------- */
#define TENSOR(dtype, shape, offsets)                                                              \
    "{\"x\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}}"

/* Another tensor has all the bytes. */
#define AND_FILLED(dtype, shape)                                                                   \
    "{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},\"x\":{\"dtype\":\"" dtype     \
    "\",\"shape\":[" shape "],\"data_offsets\":[8,8]}}"

/* Each with eight bytes of data. */
static const struct {
    const char *header, *named[3];
} bad_headers[] = {
    { "", { "header", "0" } },
    { "x", { "header", "1" } },
    { "{;", { "header", "JSON" } },
    { "[]", { "header", "a list" } },
    { "{\"\xff\": 1}", { "header", "UTF-8" } },
    { "{\"x\": 1}", { "tensor x", "an integer" } },
    { "{\"__metadata__\": 1}", { "__metadata__" } },
    { "{\"__metadata__\": {\"a\": 1}}", { "__metadata__", "a" } },
    { "{\"x\":{\"shape\":[1],\"data_offsets\":[0,8]}}", { "tensor x", "dtype", "nothing" } },
    { "{\"x\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,8]}}",
      { "tensor x", "dtype", "integer" } },
    { TENSOR("F4", "16", "0,9"), { "tensor x", "beyond", "8" } },
    { TENSOR("F4", "16", "0,4"), { "8 bytes", "last tensor" } },
    { TENSOR("F16", "5", "0,8"), { "tensor x", "8", "10" } },
    { TENSOR("F16", "4", "0,10"), { "tensor x", "beyond", "8" } },
    { TENSOR("F16", "4", "8,0"), { "tensor x", "before" } },
    { TENSOR("F16", "4", "-8,0"), { "tensor x", "-8" } },
    { TENSOR("F16", "4", "0.0,8"), { "tensor x", "real" } },
    { TENSOR("F16", "4", "\"0\",8"), { "tensor x", "string" } },
    { TENSOR("F16", "4", "0,8,8"), { "tensor x", "data_offsets", "3" } },
    { TENSOR("F16", "4", ""), { "tensor x", "data_offsets", "0" } },
    { TENSOR("F16", "-4", "0,8"), { "tensor x", "shape", "-4" } },
    { TENSOR("F16", "4.5", "0,8"), { "tensor x", "shape", "real" } },
    { TENSOR("F16", "4294967296,4294967296", "0,8"), { "tensor x", "4294967296" } },
    { TENSOR("F16", "65536,65536,1,4", "0,8"), { "tensor x", "dimension 1" } },
    { TENSOR("F16", "4611686018427387904,0,2", "0,0"), { "tensor x", "dimension 0" } },
    { TENSOR("F16", "1,1,1,1,4", "0,8"), { "tensor x", "5 dimensions" } },
    { TENSOR("U8", "4", "0,4"), { "8 bytes", "ends at" } },
    { TENSOR("U8", "4", "4,8"), { "bytes 0 to 4", "x" } },
    { "{\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},\"x\":{\"dtype\":\"U8\","
      "\"shape\":[0],\"data_offsets\":[8,8]}}",
      { "duplicate", "\"x\"" } },
    { "{\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},\"y\":{\"dtype\":\"U8\","
      "\"shape\":[1],\"data_offsets\":[4,5]}}",
      { "x and y", "share" } },
    /* Each is refused by one check alone: the eight bytes are all there, or there are none to be
       had. */
    { "{\"x\":{\"dtype\":\"F16\",\"shape\":4,\"data_offsets\":[0,8]}}",
      { "tensor x: shape is an integer, where a list is expected" } },
    { AND_FILLED("U8", "0,4294967296"), { "tensor x: dimension 1" } },
    { AND_FILLED("U8", "65536,65536,0"), { "tensor x: dimension 1" } },
    { AND_FILLED("F32", "2147483648,2147483648"),
      { "tensor x: the size of its shape overflows 64 bits" } },
    { AND_FILLED("F64", "4294967295,4294967295,4294967295"), { "tensor x: dimension 1" } },
    { "{\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[18446744073709551615,"
      "18446744073709551615]}}",
      { "tensor x", "a real number" } },
    { TENSOR("U8", "0", "9223372036854775807,9223372036854775807"),
      { "tensor x: data_offsets are 9223372036854775807 to 9223372036854775807, beyond" } },
    { TENSOR("U8", "0", "9,9"),
      { "tensor x: data_offsets are 9 to 9, beyond the end of the file (which has 8 bytes of "
        "data)" } },
};

static void check_header(const struct test_folder *folder, const char *header,
                         const char *const *named)
{
    test_write_st(folder, "model.safetensors", header, "01234567", 8);
    check_refused(folder->path, header, named);
}

START_TEST(hostile_headers)
{
    struct test_folder folder = test_folder_begin();
    test_write_text(&folder, "config.json", small_config);
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        char end[32];
        snprintf(end, sizeof end, "%s", bad_headers[i].named[0]);
        if (strcmp(bad_headers[i].named[0], "8 bytes") == 0) /* of the whole file */
            snprintf(end, sizeof end, "%zu bytes", 8 + strlen(bad_headers[i].header) + 8);
        const char *const named[] = { end, bad_headers[i].named[1], bad_headers[i].named[2], NULL };
        check_header(&folder, bad_headers[i].header, named);
    }

    static const char *const nesting[] = { "header", "nesting", NULL }, *const values[] = {
        "header", "values", NULL
    };
    static const char *const empty[] = { "model.safetensors", "empty", NULL };
    size_t n = 9 << 20;
    char *long_header = malloc(n + 1);
    ck_assert_ptr_nonnull(long_header);
    memset(long_header, '[', n);
    long_header[n] = 0;
    check_header(&folder, long_header, nesting);
    for (size_t i = 1; i < n; i++)
        long_header[i] = i & 1 ? '0' : ',';
    check_header(&folder, long_header, values);
    free(long_header);

    test_write(&folder, "model.safetensors", "", 0);
    check_refused(folder.path, "empty", empty);
    static const struct {
        const char *bytes;
        size_t n, file_bytes;
        const char *named;
    } lengths[] = {
        { "\x03\0\0", 3, 3,
          "the end of the file (3 bytes) is inside the header length of 8 bytes" },
        { "\0\0\0\0\0\0\0\0{}", 10, 10, "header length of 0 bytes, where at least 2 are expected" },
        { "\1\0\0\0\0\0\0\0{}", 10, 10, "header length of 1 bytes, where at least 2 are expected" },
        { "\0\0\0\0\0\0\0\x80{}", 10, 10,
          "header length of 9223372036854775808 bytes, beyond the end of the file (10 bytes)" },
        { "\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, 10,
          "header length of 18446744073709551608 bytes, beyond the end of the file (10 bytes)" },
        { "\x03\0\0\0\0\0\0\0{}", 10, 10,
          "header length of 3 bytes, beyond the end of the file (10 bytes)" },
        { "\x01\xe1\xf5\x05\0\0\0\0{}", 10, 100000009,
          "header length of 100000001 bytes, where at most 100000000 are possible" },
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const char *const named[] = { lengths[i].named, NULL };
        test_write(&folder, "model.safetensors", lengths[i].bytes, lengths[i].n);
        ck_assert_int_eq(
            truncate(test_in(&folder, "model.safetensors"), (off_t)lengths[i].file_bytes), 0);
        check_refused(folder.path, "length", named);
    }
    test_folder_end(&folder);
}
END_TEST

/* What Python writes: a byte order mark, NaN, infinities and integers of any size. */
START_TEST(files_of_python)
{
    static const char *const nan[] = { "rope_theta", "nan", NULL };
    struct test_folder folder = test_folder_begin();
    struct ak_error error = { 0 };
    struct ak_provider *p;
    struct ak_meta meta, element;
    float x;
    uint32_t n;
    test_write_text(&folder, "config.json",
                    "\xef\xbb\xbf{\"model_type\": \"llama\", \"rope_theta\": NaN, \"limits\": "
                    "[0.0, Infinity, -Infinity], \"eps\": 1e400, \"layers\": 12345678901234567890, "
                    "\"huge\": 1000000000000000019884624838656, \"heads\": 8}");
    test_write_text(&folder, "tokenizer_config.json", "\xef\xbb\xbf{\"x\": -Infinity}");
    test_write_st(&folder, "model.safetensors", "{}", NULL, 0);
    ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert(ak_provider_find_meta(p, "huge", &meta) && meta.kind == AK_META_FLOAT &&
              meta.as.number == 1e30);
    ck_assert(ak_provider_find_meta(p, "limits", &meta) && meta.n == 3);
    ck_assert(ak_provider_element(p, &meta, 1, &element) && element.as.number == INFINITY);
    ck_assert(ak_provider_element(p, &meta, 2, &element) && element.as.number == -INFINITY);
    ck_assert(ak_provider_find_meta(p, "tokenizer_config.x", &meta) && meta.as.number == -INFINITY);
    ck_assert_int_eq(ak_meta_u32(p, "heads", 0, &n, &error), AKUNU_OK);
    ck_assert_uint_eq(n, 8);
    ck_assert_int_eq(ak_meta_u32(p, "layers", 0, &n, &error), AKUNU_ERROR_FORMAT);
    ck_assert(ak_meta_float(p, "eps", 0, &x, &error) == AKUNU_OK && x == INFINITY);
    ck_assert_int_eq(ak_meta_float(p, "rope_theta", 0, &x, &error), AKUNU_ERROR_FORMAT);
    for (int i = 0; nan[i]; i++)
        ck_assert_msg(strstr(error.message, nan[i]) != NULL, "%s", error.message);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

static ak_status take_nothing(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                              const float *values, void *user)
{
    (void)tensor, (void)first, (void)n, (void)values, (void)user;
    return AKUNU_OK;
}

/* A type that akunu lacks is listed by the file's word for it, and its use is an error. */
START_TEST(unknown_types)
{
    static const struct {
        const char *header, *type;
        uint64_t cols;
    } files[] = { { TENSOR("F4", "16", "0,8"), "F4", 16 },
                  { TENSOR("C64", "1", "0,8"), "C64", 1 },
                  { TENSOR("BF17", "9", "0,8"), "BF17", 9 },
                  { TENSOR("a\\u0007", "9", "0,8"), "a\\x07", 9 } };
    struct test_folder folder = test_folder_begin();
    struct ak_tensor tensor;
    struct ak_provider *p;
    test_write_text(&folder, "config.json", small_config);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct ak_error error = { 0 };
        test_write_st(&folder, "model.safetensors", files[i].header, "01234567", 8);
        ck_assert_msg(ak_provider_open(folder.path, &p, &error) == AKUNU_OK, "%s", error.message);
        ck_assert(ak_provider_tensor(p, 0, &tensor));
        ck_assert_str_eq(ak_tensor_type_name(&tensor), files[i].type);
        ck_assert_uint_eq(tensor.bytes, 8);
        ck_assert_uint_eq(tensor.shape[0], files[i].cols);
        ck_assert_int_eq(ak_tensor_stream(&tensor, take_nothing, NULL, &error),
                         AKUNU_ERROR_UNSUPPORTED);
        ck_assert_msg(strstr(error.message, "x has the type") &&
                          strstr(error.message, files[i].type),
                      "%s", error.message);
        ak_provider_close(p);
    }
    test_folder_end(&folder);
}
END_TEST

START_TEST(hostile_configs)
{
    static const char *const texts[] = {
        "", "[]", "{'a': 1}", "{\"a\": ", "{\"a\": 1, \"a\": 2}", "{\"a\": {\"b\": 1}, \"a.b\": 2}"
    };
    static const char *const named[] = { "empty", "a list", "JSON", "JSON", "duplicate", "a.b" };
    struct test_folder folder = test_folder_begin();
    write_small(&folder, "model.safetensors", "", 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *const wanted[] = { i < 5 ? "config.json" : "a.b", named[i], NULL };
        test_write_text(&folder, "config.json", texts[i]);
        check_refused(folder.path, texts[i], wanted);
    }
    /* Sizes that no configuration has; a file of them is a hole. */
    static const char *const large[] = { "config.json",
                                         "67108865 bytes, where at most 67108864 are possible",
                                         NULL };
    ck_assert_int_eq(truncate(test_in(&folder, "config.json"), (64 << 20) + 1), 0);
    check_refused(folder.path, "a large configuration", large);
    static const char *const keys[] = { "config.json", "keys of more than 16777216 bytes together",
                                        NULL };
    struct test_bytes config = { 0 };
    test_append(&config, "{\"", 2);
    for (int i = 0; i < 1 << 15; i++)
        test_append(&config, "0123456789abcdef0123456789abcdef", 32);
    test_append(&config, "\":{", 3);
    for (int i = 0; i < 16; i++) {
        char entry[16];
        snprintf(entry, sizeof entry, "%s\"%c\":1", i ? "," : "", 'a' + i);
        test_append(&config, entry, strlen(entry));
    }
    test_append(&config, "}}", 2);
    test_write(&folder, "config.json", config.data, config.n);
    free(config.data);
    check_refused(folder.path, "long keys", keys);

    /* A file beside it that is too large to be text is none. */
    test_write_text(&folder, "config.json", "{}");
    test_write_text(&folder, "tokenizer.json", "{}");
    for (int i = 0; i < 2; i++) {
        if (i == 1 && truncate(test_in(&folder, "tokenizer.json"), (off_t)UINT32_MAX + 1) != 0)
            break; /* a file system without files of that size */
        struct ak_provider *p = open_ok(folder.path);
        struct ak_text text;
        ck_assert(ak_provider_file(p, "tokenizer.json", &text) == (i == 0));
        ak_provider_close(p);
    }
    unlink(test_in(&folder, "tokenizer.json"));

    static const char *const pipe[] = { "config.json", "pipe", NULL }, *const weights[] = {
        "without SafeTensors", "accepted", NULL
    };
    unlink(test_in(&folder, "config.json"));
    ck_assert_int_eq(mkfifo(test_in(&folder, "config.json"), 0600), 0);
    check_refused(folder.path, "a pipe", pipe);
    unlink(test_in(&folder, "model.safetensors"));
    check_refused(folder.path, "no weights", weights);
    test_folder_end(&folder);
}
END_TEST

/* ---- The same model ----------------------------------------------------- */
struct conversion {
    const struct ak_arch *arch;
    struct ak_spec_config config;
    struct ak_spec_rope rope;
    struct ak_spec_descriptor descriptor;
    char factors[2][1024]; /* LongRoPE's, long and short; "": none */
    bool stacked;          /* experts in one tensor, as MLX has them */
    bool has_output;       /* a matrix of its own */
    struct test_st st;
};

static bool is_named(const struct conversion *c, const char *name)
{
    return strcmp(c->arch->names[0], name) == 0;
}

/* GGUF has the rows of q and k as neighbors where its pairs are, checkpoints as
 * halves of a head. */
static uint64_t gguf_row(const struct conversion *c, const struct ak_tensor *t, uint64_t row)
{
    bool permuted = c->arch->gguf_interleaved &&
                    (t->role == AK_ROLE_ATTENTION_Q || t->role == AK_ROLE_ATTENTION_K);
    uint64_t n = c->config.head_dim, i = row % n;
    return permuted ? row - i + i % (n / 2) * 2 + i / (n / 2) : row;
}

static void fill(const struct conversion *c, const struct ak_tensor *t, uint64_t rows,
                 uint64_t cols, bool transposed, uint8_t *out)
{
    size_t size = ak_quant_info(t->type)->block_bytes;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t col = 0; col < cols; col++)
            memcpy(out + (transposed ? col * rows + row : row * cols + col) * size,
                   (const uint8_t *)t->data + (gguf_row(c, t, row) * cols + col) * size, size);
    float offset = ak_role_kind(t->role) == AK_ROLE_KIND_VECTOR ? c->arch->hf_norm_offset : 0.0f;
    for (uint64_t i = 0; offset != 0.0f && i < cols; i++) {
        ck_assert_int_eq(t->type, AK_QUANT_F32);
        ((float *)(void *)out)[i] -= offset;
    }
}

/* Parts of one tensor have its name. */
static const struct ak_arch_rule *rule_of(const struct ak_arch *arch, enum ak_role role)
{
    for (uint32_t i = 0; i < arch->n_merged_tensors; i++)
        if (arch->merged_tensors[i].stored == role)
            role = arch->merged_tensors[i].parts[0];
    return ak_arch_find_rule(arch, role);
}

/* LongRoPE's factors are lists of the configuration. */
static bool convert_factors(struct conversion *c, const struct ak_tensor *t)
{
    const float *values = t->data;
    if (t->role != AK_ROLE_ROPE_FACTORS_LONG && t->role != AK_ROLE_ROPE_FACTORS_SHORT)
        return false;
    char *list = c->factors[t->role == AK_ROLE_ROPE_FACTORS_SHORT];
    for (uint64_t i = 0; i < t->shape[0]; i++)
        snprintf(list + strlen(list), sizeof c->factors[0] - strlen(list), "%s%.9g", i ? ", " : "",
                 (double)values[i]);
    return true;
}

static const char *stacked_name(const struct conversion *c, enum ak_role role)
{
    uint32_t i = 0;
    while (i < c->arch->n_aliases && c->arch->aliases[i].role != role)
        i++;
    ck_assert_uint_lt(i, c->arch->n_aliases);
    return c->arch->aliases[i].hf;
}

/* gpt-oss: element i of gate and up in turn, `per` of the one and of the other. */
static void interleave(const uint8_t *gate, const uint8_t *up, size_t n, size_t per, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(out + 2 * i * per, gate + i * per, per);
        memcpy(out + (2 * i + 1) * per, up + i * per, per);
    }
}

/* Blocks of MXFP4 as their numbers, two neighbors a byte, and their scales. */
static void split_mxfp4(const uint8_t *stored, size_t n, uint8_t *pairs, uint8_t *scales)
{
    for (size_t b = 0; b < n; b++, stored += 17, pairs += 16) {
        scales[b] = stored[0];
        for (size_t i = 0; i < 32; i += 2)
            pairs[i / 2] = (uint8_t)((stored[1 + i % 16] >> i / 16 * 4 & 15) |
                                     (stored[2 + i % 16] >> i / 16 * 4 & 15) << 4);
    }
}

static void add_mxfp4(struct conversion *c, const char *name, const uint8_t *data,
                      unsigned long long n, unsigned long long rows, unsigned long long cols)
{
    size_t blocks = n * rows * cols / 32;
    uint8_t *pairs = malloc(blocks * 16), *scales = malloc(blocks);
    char text[2 * AK_ROLE_NAME_BYTES], shape[64];
    ck_assert(pairs && scales);
    split_mxfp4(data, blocks, pairs, scales);
    snprintf(text, sizeof text, "%s_blocks", name);
    snprintf(shape, sizeof shape, "%llu, %llu, %llu, 16", n, rows, cols / 32);
    test_st_add(&c->st, text, "U8", shape, pairs, blocks * 16);
    snprintf(text, sizeof text, "%s_scales", name);
    snprintf(shape, sizeof shape, "%llu, %llu, %llu", n, rows, cols / 32);
    test_st_add(&c->st, text, "U8", shape, scales, blocks);
    free(pairs);
    free(scales);
}

/* [n, rows, cols], as floats transposed. */
static void add_transposed(struct conversion *c, const char *name, enum ak_quant_type type,
                           const uint8_t *data, unsigned long long n, unsigned long long rows,
                           unsigned long long cols)
{
    size_t size = ak_quant_info(type)->block_bytes;
    uint8_t *transposed = malloc(n * rows * cols * size);
    char shape[64];
    ck_assert_ptr_nonnull(transposed);
    for (size_t e = 0; e < n; e++)
        for (size_t row = 0; row < rows; row++)
            for (size_t col = 0; col < cols; col++)
                memcpy(transposed + ((e * cols + col) * rows + row) * size,
                       data + ((e * rows + row) * cols + col) * size, size);
    snprintf(shape, sizeof shape, "%llu, %llu, %llu", n, cols, rows);
    test_st_add(&c->st, name, ak_quant_info(type)->name, shape, transposed, n * rows * cols * size);
    free(transposed);
}

/* Of the two parts of a pair the second is the first one's affair. */
static void convert_pairs(struct conversion *c, const struct ak_provider *p,
                          const struct ak_tensor *t)
{
    static const enum ak_role pairs[][2] = { { AK_ROLE_FFN_GATE_EXPERTS, AK_ROLE_FFN_UP_EXPERTS },
                                             { AK_ROLE_FFN_GATE_EXPERTS_BIAS,
                                               AK_ROLE_FFN_UP_EXPERTS_BIAS } };
    char name[AK_ROLE_NAME_BYTES], shape[64];
    struct ak_view up;
    unsigned long long n = t->shape[0], rows = t->n_dims == 3 ? t->shape[1] : 1,
                       cols = t->shape[t->n_dims - 1];
    uint8_t *both = malloc(2 * t->bytes);
    const uint8_t *data = t->data;
    ck_assert_ptr_nonnull(both);
    for (int i = 0; i < 2; i++) {
        if (t->role == pairs[i][1]) {
            free(both);
            return;
        }
        if (t->role != pairs[i][0])
            continue;
        ck_assert(ak_provider_find(p, pairs[i][1], t->layer, NULL, &up));
        size_t elements = t->n_dims == 3 ? n * rows : n * cols;
        interleave(t->data, up.plane[0].data, elements, t->bytes / elements, both);
        data = both;
        *(t->n_dims == 3 ? &rows : &cols) *= 2;
    }
    ak_role_expand(ak_arch_find_rule(c->arch, t->role)->hf, t->layer, name);
    snprintf(shape, sizeof shape, "%llu, %llu", n, cols);
    if (t->n_dims == 2)
        test_st_add(&c->st, name, ak_quant_info(t->type)->name, shape, data,
                    n * cols * ak_quant_info(t->type)->block_bytes);
    else if (t->type == AK_QUANT_MXFP4)
        add_mxfp4(c, name, data, n, rows, cols);
    else
        add_transposed(c, name, t->type, data, n, rows, cols);
    free(both);
}

static void convert_experts(struct conversion *c, const struct ak_tensor *t)
{
    char pattern[AK_ROLE_NAME_BYTES], name[AK_ROLE_NAME_BYTES], shape[64];
    unsigned long long n = t->shape[0], rows = t->shape[1], cols = t->shape[2];
    snprintf(shape, sizeof shape, "%llu, %llu, %llu", n, rows, cols);
    if (c->stacked) {
        test_st_add(&c->st, ak_role_expand(stacked_name(c, t->role), t->layer, name),
                    ak_quant_info(t->type)->name, shape, t->data, t->bytes);
        return;
    }
    for (uint32_t e = 0; e < n; e++) {
        snprintf(shape, sizeof shape, "%llu, %llu", rows, cols);
        ak_role_expand_expert(ak_arch_find_rule(c->arch, t->role)->hf, e, pattern);
        test_st_add(&c->st, ak_role_expand(pattern, t->layer, name), ak_quant_info(t->type)->name,
                    shape, (const uint8_t *)t->data + e * (t->bytes / n), t->bytes / n);
    }
}

static void convert_tensor(struct conversion *c, const struct ak_provider *p,
                           const struct ak_tensor *t)
{
    if (convert_factors(c, t))
        return;
    if (t->has_role && ak_role_is_expert(t->role)) {
        if (c->arch->hf_experts_transposed)
            convert_pairs(c, p, t);
        else
            convert_experts(c, t);
        return;
    }
    char name[AK_ROLE_NAME_BYTES], shape[64];
    uint64_t rows = t->n_dims == 2 ? t->shape[0] : 1, cols = t->shape[t->n_dims - 1];
    const struct ak_arch_rule *rule = rule_of(c->arch, t->role);
    bool transposed = c->arch->hf_transposed && t->n_dims == 2 && t->layer != AK_ROLE_NO_LAYER;
    uint8_t *data = malloc(t->bytes);
    ck_assert(t->has_role && rule && data);
    fill(c, t, rows, cols, transposed, data);
    if (t->role == AK_ROLE_CONV_KERNEL)
        snprintf(shape, sizeof shape, "%llu, 1, %llu", (unsigned long long)rows,
                 (unsigned long long)cols);
    else if (t->n_dims == 2)
        snprintf(shape, sizeof shape, "%llu, %llu", (unsigned long long)(transposed ? cols : rows),
                 (unsigned long long)(transposed ? rows : cols));
    else
        snprintf(shape, sizeof shape, "%s%llu", t->role == AK_ROLE_FFN_SHARED_ROUTER ? "1, " : "",
                 (unsigned long long)cols);
    test_st_add(&c->st, ak_role_expand(rule->hf, t->layer, name), ak_quant_info(t->type)->name,
                shape, data, t->bytes);
    free(data);
}

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *text, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + used, 4096 - used, format, arguments);
    va_end(arguments);
}

static void write_gpt2_config(const struct conversion *c, char *text)
{
    const struct ak_spec_config *k = &c->config;
    ck_assert_uint_eq(k->ffn_width, 4 * k->width);
    append(text,
           "\"n_layer\": %u, \"n_embd\": %u, \"n_inner\": null, \"n_positions\": %u, \"n_head\": "
           "%u, \"layer_norm_epsilon\": %.9g",
           k->n_layers, k->width, k->context, k->n_heads, (double)k->norm_eps);
}

/* Both ways of writing a rotation. */
static void write_rotation(const struct conversion *c, char *text, bool newer)
{
    const struct ak_spec_rope *r = &c->rope;
    bool yarn = r->scaling == AK_SPEC_ROPE_YARN, longer = c->factors[0][0] != 0,
         linear = r->scaling == AK_SPEC_ROPE_LINEAR, by_layers = newer && is_named(c, "gemma3");
    ck_assert_int_ne(r->scaling, AK_SPEC_ROPE_LLAMA3);
    if (!newer)
        append(text, ", \"rope_theta\": %.9g", (double)c->config.rope_base);
    append(text, ", \"%s\": {%s\"rope_theta\": %.9g, \"%s\": \"%s\"",
           newer ? "rope_parameters" : "rope_scaling", by_layers ? "\"full_attention\": {" : "",
           (double)c->config.rope_base, newer || is_named(c, "gemma3") ? "rope_type" : "type",
           yarn   ? "yarn" :
           linear ? "linear" :
           longer ? "longrope" :
                    "default");
    if (yarn)
        append(text,
               ", \"factor\": %.9g, \"original_max_position_embeddings\": %u, \"beta_fast\": %.9g, "
               "\"beta_slow\": %.9g, "
               "\"attention_factor\": %.9g",
               (double)r->factor, r->original_context, (double)r->beta_fast, (double)r->beta_slow,
               (double)(r->magnitude * ak_spec_yarn_magnitude(r->factor)));
    if (linear)
        append(text, ", \"factor\": %.9g", (double)r->factor);
    if (longer)
        append(text,
               ", \"original_max_position_embeddings\": %u, \"attention_factor\": %.9g, "
               "\"long_factor\": [%s], "
               "\"short_factor\": [%s]",
               r->original_context, (double)r->magnitude, c->factors[0], c->factors[1]);
    append(text, "}%s, \"rope_local_base_freq\": %.9g", by_layers ? "}" : "",
           (double)c->descriptor.local_rope_base);
    if (longer)
        append(text, ", \"original_max_position_embeddings\": %u", r->original_context);
}

static void write_scales(const struct conversion *c, char *text)
{
    const struct ak_spec_descriptor *d = &c->descriptor;
    if (is_named(c, "granite"))
        append(text,
               ", \"embedding_multiplier\": %.9g, \"residual_multiplier\": %.9g, "
               "\"attention_multiplier\": %.9g, "
               "\"logits_scaling\": %.9g",
               (double)d->embedding_scale, (double)d->residual_scale, (double)d->attention_scale,
               (double)d->logit_divisor);
    if (is_named(c, "gemma2") || is_named(c, "gemma3"))
        append(text, ", \"query_pre_attn_scalar\": %.9g",
               1.0 / ((double)d->attention_scale * (double)d->attention_scale));
    if (d->attention_cap > 0.0f)
        append(text, ", \"attn_logit_softcapping\": %.9g", (double)d->attention_cap);
    if (d->logit_cap > 0.0f)
        append(text, ", \"final_logit_softcapping\": %.9g", (double)d->logit_cap);
}

static void write_experts(const struct conversion *c, char *text)
{
    const struct ak_spec_config *k = &c->config;
    append(
        text,
        ", \"num_experts\": %u, \"num_experts_per_tok\": %u, \"moe_intermediate_size\": %u, "
        "\"shared_expert_intermediate_size\": %u, \"norm_topk_prob\": %s, \"mlp_only_layers\": []",
        k->n_experts, k->n_experts_used, k->expert_width, k->shared_width,
        c->descriptor.normalized_experts ? "true" : "false");
}

/* lfm2's, both ways, with a feed-forward that is to be adjusted. */
static void write_layer_types(const struct conversion *c, char *text, bool listed)
{
    if (!is_named(c, "lfm2")) {
        append(text, ", \"layer_types\": null");
        return;
    }
    append(text,
           ", \"conv_L_cache\": %u, \"block_ff_dim\": %u, \"block_multiple_of\": 2, \"conv_bias\": "
           "false, \"%s\": [",
           c->config.conv_taps, c->config.ffn_width / 2 * 3,
           listed ? "full_attn_idxs" : "layer_types");
    const char *comma = "";
    for (uint32_t i = 0; i < c->config.n_layers; i++) {
        bool conv = ak_spec_is_recurrent(&c->config, (int)i);
        if (listed && conv)
            continue;
        if (listed)
            append(text, "%s%u", comma, i);
        else
            append(text, "%s\"%s\"", comma, conv ? "conv" : "full_attention");
        comma = ", ";
    }
    append(text, "]");
}

/* Writes the text without the numbers that the class does not know. */
static void write_known(const struct conversion *c, const struct test_folder *folder,
                        const char *text)
{
    json_t *config = json_loads(text, 0, NULL), *value;
    ck_assert_msg(config != NULL, "%s", text);
    json_t *nested = json_object_get(config, "text_config"), *inner = nested ? nested : config;
    const char *type = json_string_value(json_object_get(config, "model_type")), *key;
    const struct ak_text name = { type, (uint32_t)strlen(type) };
    const struct ak_arch_keys *keys = ak_arch_keys(c->arch, &name);
    struct ak_word word;
    void *next;
    json_object_foreach_safe(inner, next, key, value) if (!json_is_object(value) &&
                                                          strcmp(key, "model_type") != 0 &&
                                                          !ak_words_find(keys->reads, key, &word) &&
                                                          !ak_words_find(keys->fixed, key, &word))
        json_object_del(inner, key);
    if (nested) /* the embedding says it */
        json_object_del(nested, "vocab_size");
    char *known = json_dumps(config, JSON_REAL_PRECISION(17));
    test_write_text(folder, "config.json", known);
    free(known);
    json_decref(config);
}

/* GGUF has one name for Llama and for Mistral, which has a window. */
static const char *model_type(const struct conversion *c)
{
    return is_named(c, "llama") && c->config.window > 0 ? "mistral" : c->arch->names[0];
}

static void write_config(const struct conversion *c, const struct test_folder *folder, bool nested)
{
    char text[4096] = "";
    const struct ak_spec_config *k = &c->config;
    append(text, "{\"model_type\": \"%s\", %s ", model_type(c), nested ? "\"text_config\": {" : "");
    if (is_named(c, "gpt2")) {
        write_gpt2_config(c, text);
    } else {
        append(text,
               "\"num_hidden_layers\": %u, \"hidden_size\": %u, \"intermediate_size\": %u, "
               "\"max_position_embeddings\": %u, "
               "\"num_attention_heads\": %u, \"num_key_value_heads\": %u, \"head_dim\": %u, "
               "\"rms_norm_eps\": %.9g, "
               "\"partial_rotary_factor\": %.9g",
               k->n_layers, k->width, k->ffn_width, k->context, k->n_heads, k->n_kv_heads,
               k->head_dim, (double)k->norm_eps, (double)k->rope_dims / (double)k->head_dim);
        write_rotation(c, text, nested);
        write_scales(c, text);
    }
    if (k->n_experts > 0)
        write_experts(c, text);
    if (k->window > 0)
        append(text, ", \"sliding_window\": %u", k->window);
    if (k->global_every > 0)
        append(text, ", \"sliding_window_pattern\": %u", k->global_every);
    write_layer_types(c, text, nested);
    append(text, ", \"vocab_size\": %u, \"pad_token_id\": 0%s, \"tie_word_embeddings\": %s}",
           k->vocab_size, nested ? "}" : "", c->has_output ? "false" : "true");
    write_known(c, folder, text);
}

/* Whether a pass computes the same sums in the same order. */
static bool convert(const char *name, const struct test_folder *folder, unsigned n_spaces)
{
    char path[4096];
    struct conversion c = { .stacked = n_spaces & 1 };
    struct ak_tensor tensor;
    struct ak_provider *p = open_ok(golden_path(name, ".gguf", path));
    ck_assert_int_eq(ak_arch_find(p, &c.arch, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_spec_read_config(p, c.arch, &c.config, &c.rope, NULL), AKUNU_OK);
    ck_assert_int_eq(c.arch->describe(p, &c.config, &c.descriptor, NULL), AKUNU_OK);
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++) {
        convert_tensor(&c, p, &tensor);
        c.has_output |= tensor.has_role && tensor.role == AK_ROLE_OUTPUT;
    }
    write_config(&c, folder, n_spaces & 1);
    test_st_write(&c.st, folder, "model.safetensors", n_spaces);
    ak_provider_close(p);
    return !c.arch->gguf_interleaved && c.arch->hf_norm_offset == 0.0f;
}

static void run(const struct akunu_model *model, const char *name, float *logits)
{
    struct golden_text text;
    struct akunu_batch_token tokens[GOLDEN_TOKENS];
    golden_read_text(name, &text);
    struct akunu_session *session = golden_session(model, 1, GOLDEN_TOKENS, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    struct akunu_model_info info;
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_le(info.vocab_size, GOLDEN_VOCAB);
    for (size_t i = 0; i < text.n_prompt; i++)
        tokens[i] = (struct akunu_batch_token){ text.ids[i], sequence, true };
    ck_assert_int_eq(akunu_session_decode(session, tokens, text.n_prompt), AKUNU_OK);
    memset(logits, 0, GOLDEN_TOKENS * GOLDEN_VOCAB * sizeof *logits);
    for (size_t i = 0; i < text.n_prompt; i++)
        memcpy(logits + i * GOLDEN_VOCAB, akunu_session_logits(session, i),
               info.vocab_size * sizeof *logits);
    akunu_session_free(session);
}

static void check_near(const char *name, const float *a, const float *b, double bound)
{
    double wrong = 0.0, all = 0.0;
    for (size_t i = 0; i < GOLDEN_TOKENS * GOLDEN_VOCAB; i++) {
        wrong += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        all += (double)a[i] * (double)a[i];
    }
    ck_assert(all > 0.0);
    ck_assert_msg(wrong <= bound * all, "%s: NMSE %g", name, wrong / all);
}

/* Where GGUF permutes rows, sums come in another order. */
START_TEST(same_logits)
{
    static float a[GOLDEN_TOKENS * GOLDEN_VOCAB], b[GOLDEN_TOKENS * GOLDEN_VOCAB];
    const char *name = goldens[_i / 2].name;
    struct test_folder folder = test_folder_begin();
    bool same = convert(name, &folder, (unsigned)(_i % 2));

    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.strict = true;
    params.no_cache = true;
    struct akunu_model *gguf = golden_load(name, NULL),
                       *hf = akunu_model_load(folder.path, &params);
    ck_assert_msg(hf != NULL, "%s: %s", name, akunu_last_error());
    run(gguf, name, a);
    run(hf, name, b);
    check_near(name, a, b, same ? 0.0 : 1e-11);
    akunu_model_free(gguf);
    akunu_model_free(hf);
    test_folder_end(&folder);
}
END_TEST

/* Adapters of both naming conventions, whose rows are in another order where GGUF permutes the
 * model's. */
START_TEST(same_logits_with_adapters)
{
    static float a[GOLDEN_TOKENS * GOLDEN_VOCAB], b[GOLDEN_TOKENS * GOLDEN_VOCAB];
    static const char *const names[] = { "llama.gguf", "llama-peft" };
    struct test_folder folder = test_folder_begin();
    char path[4096], of_adapter[4096];
    convert("llama-f32", &folder, 0);
    struct akunu_adapter adapter = { golden_path("../adapters/", names[_i], of_adapter), 1 };
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    params.adapters = &adapter;
    params.n_adapters = 1;
    struct akunu_model *gguf = akunu_model_load(golden_path("llama-f32", ".gguf", path), &params),
                       *hf = akunu_model_load(folder.path, &params);
    ck_assert_msg(gguf && hf, "%s", akunu_last_error());
    run(gguf, "llama-f32", a);
    run(hf, "llama-f32", b);
    check_near(names[_i], a, b, 1e-11);
    akunu_model_free(gguf);
    akunu_model_free(hf);
    test_folder_end(&folder);
}
END_TEST

/* ---- Folders that transformers saved ------------------------------------ */
static const char *stored_name(int i)
{
    return goldens[N_FOLDER_GOLDENS + i].name;
}

static const char *stored_file(const char *name, const char *file, char path[4096])
{
    char inner[128];
    snprintf(inner, sizeof inner, "folders/%s%s%s", name, *file ? "/" : "", file);
    snprintf(path, 4096, "%s", test_path(inner));
    return path;
}

/* The logits of transformers, and what the file that llama.cpp's converter made of the folder
 * gives. */
START_TEST(stored_folders)
{
    static float a[GOLDEN_TOKENS * GOLDEN_VOCAB], b[GOLDEN_TOKENS * GOLDEN_VOCAB];
    const char *name = stored_name(_i);
    char path[4096];
    struct akunu_load_params params;
    struct akunu_model_info info;
    struct golden_text text;
    akunu_load_params_default(&params, sizeof params);
    params.strict = params.no_cache = true;
    struct akunu_model *gguf = golden_load(name, NULL),
                       *hf = akunu_model_load(stored_file(name, "", path), &params);
    ck_assert_msg(hf != NULL, "%s: %s", name, akunu_last_error());
    run(hf, name, a);
    run(gguf, name, b);
    check_near(name, a, b, 1e-11);
    golden_read_text(name, &text);
    ck_assert_int_eq(akunu_model_get_info(hf, &info, sizeof info), AKUNU_OK);
    float *want = golden_read_logits(name, text.n_prompt * info.vocab_size);
    memset(b, 0, sizeof b);
    for (size_t i = 0; i < text.n_prompt; i++)
        memcpy(b + i * GOLDEN_VOCAB, want + i * info.vocab_size, info.vocab_size * sizeof *b);
    check_near(name, b, a, golden_bound(goldens[N_FOLDER_GOLDENS + _i].f32, 1e-9));
    free(want);
    akunu_model_free(gguf);
    akunu_model_free(hf);
}
END_TEST

static void copy_file(const char *from, const struct test_folder *folder, const char *name)
{
    FILE *in = fopen(from, "rb"), *out = fopen(test_in(folder, name), "wb");
    ck_assert_msg(in && out, "%s", from);
    for (int c; (c = fgetc(in)) != EOF;)
        fputc(c, out);
    fclose(in);
    fclose(out);
}

/* Some are floats in the new file whatever they were. */
static bool same_values(const struct ak_tensor *a, const struct ak_tensor *b)
{
    if (a->type == b->type)
        return memcmp(a->data, b->data, a->bytes) == 0;
    size_t n = a->bytes / sizeof(float);
    float *values = malloc(a->bytes);
    ck_assert(a->type == AK_QUANT_F32 && values);
    ak_quant_info(b->type)->dequantize(b->data, values, n);
    bool same = memcmp(a->data, values, a->bytes) == 0;
    free(values);
    return same;
}

/* A vector may be a matrix of one row. */
static bool same_shape(const struct ak_tensor *a, const struct ak_tensor *b)
{
    unsigned skipped = b->n_dims > a->n_dims && b->shape[0] == 1;
    return a->n_dims == b->n_dims - skipped &&
           memcmp(a->shape, b->shape + skipped, a->n_dims * sizeof *a->shape) == 0;
}

/* Back to GGUF: the tensors that llama.cpp's converter made, and the same logits. */
START_TEST(converted)
{
    static float a[GOLDEN_TOKENS * GOLDEN_VOCAB], b[GOLDEN_TOKENS * GOLDEN_VOCAB];
    const char *name = goldens[_i].name;
    struct test_folder folder = test_folder_begin();
    char to[96], path[4096], from[4096];
    bool stored = _i >= N_FOLDER_GOLDENS;
    snprintf(from, sizeof from, "%s", stored ? stored_file(name, "", path) : folder.path);
    if (!stored)
        convert(name, &folder, 0);
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    ck_assert_msg(test_convert_weights(from, to) == AKUNU_OK, "%s: %s", name, akunu_last_error());

    struct ak_provider *golden = open_ok(golden_path(name, ".gguf", path)), *ours = open_ok(to);
    struct ak_tensor theirs, tensor;
    ck_assert_uint_eq(ak_provider_n_tensors(golden), ak_provider_n_tensors(ours));
    for (size_t i = 0; ak_provider_tensor(golden, i, &theirs); i++) {
        size_t at = 0;
        while (ak_provider_tensor(ours, at, &tensor) && strcmp(tensor.name, theirs.name) != 0)
            at++;
        ck_assert_msg(at < ak_provider_n_tensors(ours), "%s: %s is missing", name, theirs.name);
        ck_assert_msg(same_shape(&tensor, &theirs), "%s: %s", name, theirs.name);
        /* added and subtracted */
        bool rounded = strstr(theirs.name, "norm") && strncmp(name, "gemma", 5) == 0;
        /* an exponential */
        rounded = rounded || theirs.role == AK_ROLE_DELTA_DECAY;
        ck_assert_msg(rounded || same_values(&tensor, &theirs), "%s: %s differs", name,
                      theirs.name);
    }
    ak_provider_close(ours);
    ak_provider_close(golden);

    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.strict = true;
    params.no_cache = true;
    struct akunu_model *gguf = golden_load(name, NULL), *back = akunu_model_load(to, &params);
    ck_assert_msg(back != NULL, "%s: %s", name, akunu_last_error());
    run(gguf, name, a);
    run(back, name, b);
    check_near(name, a, b, stored || strncmp(name, "gemma", 5) == 0 ? 1e-11 : 0.0);
    akunu_model_free(gguf);
    akunu_model_free(back);
    test_folder_end(&folder);
}
END_TEST

/* Those who ask for shapes alone get the same ones, and nothing is copied for them. */
START_TEST(shapes_alone)
{
    static const char *const names[] = { "gpt2", "gpt-oss", "qwen2moe" };
    struct test_folder folder = test_folder_begin();
    struct ak_spec spec;
    struct ak_binding whole, shapes;
    convert(names[_i], &folder, 0);
    struct ak_provider *p = open_ok(folder.path);
    ck_assert_int_eq(ak_spec_read(p, &spec, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_bind(p, &spec, AK_BIND_STRICT, NULL, &whole, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_bind(p, &spec, AK_BIND_SHAPES, NULL, &shapes, NULL), AKUNU_OK);
    ck_assert_uint_eq(whole.n_views, shapes.n_views);
    for (uint32_t i = 0; i < whole.n_views; i++) {
        const struct ak_view *a = &whole.views[i], *b = &shapes.views[i];
        ck_assert((a->plane[0].data != NULL) == (b->plane[0].data != NULL));
        ck_assert(a->type == b->type && a->rows == b->rows && a->cols == b->cols &&
                  a->n_dims == b->n_dims);
    }
    if (_i < 2) /* whose matrices are turned */
        ck_assert(whole.n_owned > 0 && shapes.n_owned == 0);
    ak_binding_clear(&whole);
    ak_binding_clear(&shapes);
    ak_spec_clear(&spec);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

/* Canonical names come from the architecture, also without the prefix. */
START_TEST(canonical_names)
{
    struct test_folder folder = test_folder_begin();
    struct test_st st = { 0 };
    test_write_text(&folder, "config.json", small_config);
    test_st_add(&st, "layers.3.mlp.up_proj.weight", "U8", "1", "a", 1);
    test_st_add(&st, "model.norm.weight", "U8", "1", "a", 1);
    test_st_add(&st, "other", "F8_E4M3", "1", "\x08", 1);
    test_st_write(&st, &folder, "model.safetensors", 0);
    struct akunu_file *file = akunu_file_open(folder.path);
    ck_assert_ptr_nonnull(file);
    static const char *const wanted[] = { "layers.3.ffn.up.weight", "output_norm.weight", NULL };
    float value;
    for (size_t i = 0; i < 3; i++) {
        struct akunu_tensor_info info;
        ck_assert_int_eq(akunu_file_get_tensor(file, i, &info, sizeof info), AKUNU_OK);
        ck_assert_pstr_eq(info.canonical, wanted[i]);
    }
    ck_assert_int_eq(akunu_file_read_f32(file, 2, 0, 1, &value), AKUNU_OK);
    ck_assert(value == 0x1p-6f);
    akunu_file_free(file);
    test_folder_end(&folder);
}
END_TEST

#define NUMBERS                                                                                    \
    "\"num_hidden_layers\": 2, \"hidden_size\": 64, \"intermediate_size\": 64, "                   \
    "\"max_position_embeddings\": 8, "                                                             \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"vocab_size\": 4, \"num_experts\": " \
    "4, "                                                                                          \
    "\"num_experts_per_tok\": 2"

#define DELTA(taps, keys, values, key_size, value_size, layers)                                    \
    NUMBERS ", \"linear_conv_kernel_dim\": " #taps ", \"linear_num_key_heads\": " #keys            \
            ", \"linear_num_value_heads\": " #values ", \"linear_key_head_dim\": " #key_size       \
            ", \"linear_value_head_dim\": " #value_size ", " layers

static const struct {
    const char *change, *named[2];
} bad_models[] = {
    { "\"model_type\": \"qwen3_5\", " DELTA(0, 2, 4, 32, 32, "\"full_attention_interval\": 2"),
      { "linear_conv_kernel_dim", "0" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(17, 2, 4, 32, 32, "\"full_attention_interval\": 2"),
      { "linear_conv_kernel_dim", "17" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 0, 4, 32, 32, "\"full_attention_interval\": 2"),
      { "linear_num_key_heads", "0" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 5, 32, 32, "\"full_attention_interval\": 2"),
      { "linear_num_value_heads 5", "divide" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4294967296, 32, 32,
                                            "\"full_attention_interval\": 2"),
      { "linear_num_value_heads", "4294967296" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4, 1024, 32, "\"full_attention_interval\": 2"),
      { "linear_key_head_dim", "1024" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4, 32, 40, "\"full_attention_interval\": 2"),
      { "linear_value_head_dim", "40" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4, 32, 32, "\"full_attention_interval\": 0"),
      { "full_attention_interval", "0" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4, 32, 32, "\"full_attention_interval\": 3"),
      { "layer_types", "attention" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4, 32, 32,
                                            "\"layer_types\": [\"linear_attention\"]"),
      { "layer_types", "layer 1" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4, 32, 32, "\"layer_types\": [1, 2]"),
      { "layer_types", "layer 0" } },
    { "\"model_type\": \"qwen3_5\", " DELTA(4, 2, 4, 32, 32, "\"layer_types\": \"full_attention\""),
      { "layer_types", "layer 0" } },
    { "\"model_type\": \"qwen3_5_moe\", " DELTA(
          4, 2, 4, 32, 32,
          "\"full_attention_interval\": 2, \"attention_bias\": true, "
          "\"shared_expert_intermediate_size\": 8"),
      { "attention_bias", "true" } },
    { "\"model_type\": \"qwen3_next\", " DELTA(4, 2, 4, 32, 32,
                                               "\"full_attention_interval\": 2, "
                                               "\"shared_expert_intermediate_size\": null"),
      { "shared_expert_intermediate_size", "missing" } },
    { "\"model_type\": \"lfm2\", " NUMBERS ", \"conv_L_cache\": 1", { "conv_L_cache", "1" } },
    { "\"model_type\": \"lfm2\", " NUMBERS ", \"conv_L_cache\": 3, \"layer_types\": [\"conv\"]",
      { "layer_types", "layer 1" } },
    { "\"model_type\": \"lfm2\", \"conv_bias\": true, " NUMBERS ", \"conv_L_cache\": 3",
      { "conv_bias", "true" } },
    { "\"model_type\": \"lfm2\", " NUMBERS ", \"conv_L_cache\": 3, \"block_multiple_of\": 0",
      { "block_multiple_of", "0" } },
    { "\"model_type\": \"lfm2\", " NUMBERS
      ", \"conv_L_cache\": 3, \"block_ffn_dim_multiplier\": 1e30",
      { "block_multiple_of", "wide" } },
    { "\"model_type\": \"gpt_oss\", " NUMBERS ", \"swiglu_limit\": 3", { "swiglu_limit", "3" } },
    { "\"model_type\": \"qwen3_moe\", " NUMBERS ", \"decoder_sparse_step\": 2",
      { "decoder_sparse_step", "2" } },
    { "\"model_type\": \"qwen3_moe\", " NUMBERS ", \"mlp_only_layers\": [0]",
      { "mlp_only_layers", "array of 1" } },
    { "\"model_type\": \"qwen2_moe\", " NUMBERS ", \"shared_expert_intermediate_size\": null",
      { "shared_expert_intermediate_size", "missing" } },
    { "\"model_type\": \"gladiator\"", { "gladiator", "supported" } },
    { "\"other\": 1", { "model_type", "missing" } },
    { "\"model_type\": \"llama\"",
      { "model.embed_tokens.weight is missing", "hidden_size by default 4096" } },
    { "\"model_type\": \"llama\", \"tie_word_embeddings\": true, \"num_attention_heads\": 16",
      { "hidden_size by default 4096", "num_attention_heads 16" } },
    { "\"model_type\": \"llama\", \"num_hidden_layers\": -1", { "num_hidden_layers", "-1" } },
    { "\"model_type\": \"llama\", \"num_hidden_layers\": 1000000000000000000",
      { "num_hidden_layers", "1000000000000000000" } },
    { "\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": \"8\"",
      { "hidden_size", "string" } },
    { "\"model_type\": \"llama\", \"quantization_config\": {\"quant_method\": \"bitsandbytes\"}",
      { "quant_method", "bitsandbytes" } },
    { "\"model_type\": \"llama\", \"quantization\": {\"bits\": 7}", { "bits", "7" } },
    { "\"model_type\": \"llama\", \"quantization\": {\"group_size\": 48}", { "group_size", "48" } },
    { "\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 8, "
      "\"intermediate_size\": 8, \"max_position_embeddings\": 8, "
      "\"num_attention_heads\": 3, \"vocab_size\": 4",
      { "num_attention_heads", "hidden_size 8" } },
};

/* Text of a header is changed for text of the same length. */
static const struct {
    const char *model, *from, *to, *named;
} bad_experts[] = {
    { "mixtral", "experts.3.w1.weight", "experts.9.w1.weight", "experts.3.w1.weight is missing" },
    { "mixtral", "experts.0.w2.weight", "experts.9.w2.weight", "experts.0.w2.weight is missing" },
    { "mixtral", "1.block_sparse_moe.experts.3.w1.weight\":{\"dtype\":\"BF16\",\"shape\":[32, 64]",
      "1.block_sparse_moe.experts.3.w1.weight\":{\"dtype\":\"BF16\",\"shape\":[64, 32]",
      "experts.3.w1.weight has the shape [64, 32]" },
    { "gpt-oss", "[6, 64, 64]", "[6, 32,128]", "gate_up_proj has the shape [experts" },
    { "gpt-oss-mxfp4", "gate_up_proj_scales", "gate_up_proj_scalez", "gate_up_proj_scales" },
    { "gpt-oss-mxfp4", "[6, 64, 2, 16]", "[6, 64, 4, 8] ", "gate_up_proj_blocks" },
    { "lfm2", "[64, 1, 3]", "[32, 2, 3]", "conv.conv.weight has the shape" },
};

/* Of stored folders. */
static const struct {
    const char *model, *from, *to, *named;
} bad_deltas[] = {
    { "qwen35", "linear_attn.in_proj_qkv", "linear_attn.in_proj_qkx",
      "linear_attn.in_proj_qkv.weight is missing" },
    { "qwen35", "linear_attn.A_log", "linear_attn.A_lag", "linear_attn.A_log is missing" },
    { "qwen35", "[320,1,4]", "[320,4,1]", "conv1d.weight has the shape" },
    { "qwen3next", "linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkvx",
      "attn_qkv.weight is missing" },
    { "qwen35moe", "mlp.experts.gate_up_proj", "mlp.experts.gate_up_prox",
      "mlp.experts.gate_up_proj is missing" },
    { "qwen35moe", "[6,32,32]", "[6,16,64]", "gate_up_proj has the shape [experts" },
};

static void change_file(const struct test_folder *folder, const char *name, const char *from,
                        const char *to)
{
    static char bytes[1 << 20];
    FILE *f = fopen(test_in(folder, name), "r+b");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    char *at = memmem(bytes, n, from, strlen(from));
    ck_assert_msg(at != NULL, "%s is not in %s", from, name);
    memcpy(at, to, strlen(to));
    ck_assert_int_eq(fseek(f, 0, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void change_header(const struct test_folder *folder, const char *from, const char *to)
{
    change_file(folder, "model.safetensors", from, to);
}

START_TEST(hostile_experts)
{
    struct test_folder folder = test_folder_begin();
    ck_assert_uint_eq(strlen(bad_experts[_i].from), strlen(bad_experts[_i].to));
    (void)convert(bad_experts[_i].model, &folder, 0);
    change_header(&folder, bad_experts[_i].from, bad_experts[_i].to);
    ck_assert_ptr_null(akunu_model_load(folder.path, NULL));
    ck_assert_msg(strstr(akunu_last_error(), bad_experts[_i].named), "\"%s\" does not name %s",
                  akunu_last_error(), bad_experts[_i].named);
    test_folder_end(&folder);
}
END_TEST

START_TEST(hostile_deltas)
{
    struct test_folder folder = test_folder_begin();
    const char *model = bad_deltas[_i].model;
    char path[4096];
    ck_assert_uint_eq(strlen(bad_deltas[_i].from), strlen(bad_deltas[_i].to));
    copy_file(stored_file(model, "config.json", path), &folder, "config.json");
    copy_file(stored_file(model, "model.safetensors", path), &folder, "model.safetensors");
    change_header(&folder, bad_deltas[_i].from, bad_deltas[_i].to);
    ck_assert_ptr_null(akunu_model_load(folder.path, NULL));
    ck_assert_msg(strstr(akunu_last_error(), bad_deltas[_i].named), "\"%s\" does not name %s",
                  akunu_last_error(), bad_deltas[_i].named);
    test_folder_end(&folder);
}
END_TEST

/* Attention in the first layer, where every n-th alone is written. */
START_TEST(irregular_deltas)
{
    struct test_folder folder = test_folder_begin();
    char path[4096], to[96];
    copy_file(stored_file("qwen35", "config.json", path), &folder, "config.json");
    copy_file(stored_file("qwen35", "model.safetensors", path), &folder, "model.safetensors");
    change_file(&folder, "config.json", "\"linear_attention\",", "\"full_attention\",  ");
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    ck_assert_int_eq(test_convert_weights(folder.path, to), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(akunu_last_error(), "every n-th layer"), "\"%s\"", akunu_last_error());
    test_folder_end(&folder);
}
END_TEST

/* Numbers of GGUF; the layers behind the last are left alone, whatever they hold. */
START_TEST(overridden_deltas)
{
    static const struct {
        const char *text, *named;
    } cases[] = {
        { "qwen35.nextn_predict_layers=int:1", NULL },
        { "qwen35.nextn_predict_layers=int:3", "nextn_predict_layers is 3" },
        { "qwen35.ssm.inner_size=int:100", "ssm.inner_size 100" },
        { "qwen35.ssm.inner_size=int:48", "heads of 8" },
        { "qwen35.ssm.time_step_rank=int:0", "ssm.time_step_rank is 0" },
        { "qwen35.ssm.group_count=int:4", "does not divide" },
        { "qwen35.ssm.group_count=int:1", "has the shape" },
        { "qwen35.full_attention_interval=int:0", "full_attention_interval is 0" },
        { "qwen35.full_attention_interval=int:3", "is missing" },
    };
    struct akunu_load_params params;
    char path[4096];
    akunu_load_params_default(&params, sizeof params);
    params.strict = params.no_cache = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const overrides[] = { cases[i].text, NULL };
        params.override_kv = overrides;
        struct akunu_model *model = akunu_model_load(golden_path("qwen35", ".gguf", path), &params);
        ck_assert_msg(!model == !!cases[i].named, "%s: %s", cases[i].text, akunu_last_error());
        if (cases[i].named)
            ck_assert_msg(strstr(akunu_last_error(), cases[i].named), "%s: \"%s\"", cases[i].text,
                          akunu_last_error());
        akunu_model_free(model);
    }
}
END_TEST

/* Which of SmolLM3's layers are not rotated (transformers: 1 is for those that are). */
START_TEST(unrotated_layers)
{
    static const struct {
        const char *layers;
        uint32_t every;
        const char *named; /* of what is refused */
    } cases[] = {
        { "\"no_rope_layers\": [1, 1, 1, 0]", 4, NULL },
        { "\"no_rope_layers\": [1, 0, 1, 0], \"no_rope_layer_interval\": 4", 2, NULL },
        { "\"no_rope_layers\": [1, 1, 1, 1]", 5, NULL },
        { "\"no_rope_layers\": [0, 0, 0, 0]", 1, NULL },
        { "\"no_rope_layer_interval\": 3", 3, NULL },
        { "\"no_rope_layers\": null", 4, NULL },
        { "\"no_rope_layers\": [0, 1, 1, 1]", 1, NULL },
        { "\"no_rope_layers\": [1, 0]", 0, "2 elements" },
        { "\"no_rope_layers\": [1, 1, 1, 2]", 0, "element 3" },
        { "\"no_rope_layer_interval\": 0", 0, "no_rope_layer_interval" },
    };
    struct test_folder folder = test_folder_begin();
    write_small(&folder, "model.safetensors", "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        struct ak_spec spec;
        struct ak_error error = { 0 };
        snprintf(
            text, sizeof text,
            "{\"model_type\": \"smollm3\", \"num_hidden_layers\": 4, \"hidden_size\": 8, "
            "\"intermediate_size\": 8, \"num_key_value_heads\": 2, \"pad_token_id\": null, "
            "\"max_position_embeddings\": 8, \"num_attention_heads\": 2, \"vocab_size\": 4, %s}",
            cases[i].layers);
        test_write_text(&folder, "config.json", text);
        struct ak_provider *p = open_ok(folder.path);
        ak_status status = ak_spec_read(p, &spec, &error);
        ck_assert_msg(status == (cases[i].named ? error.status : AKUNU_OK), "%s: %s", text,
                      error.message);
        if (cases[i].named)
            ck_assert_msg(status != AKUNU_OK && strstr(error.message, cases[i].named), "%s: \"%s\"",
                          text, error.message);
        else
            ck_assert_msg(spec.descriptor.global_every == cases[i].every, "%s: every %u", text,
                          spec.descriptor.global_every);
        ak_spec_clear(&spec);
        ak_provider_close(p);
    }
    test_folder_end(&folder);
}
END_TEST

/* A quarter of a head turns where the configuration says nothing of it. */
START_TEST(turned_quarter)
{
    struct test_folder folder = test_folder_begin();
    struct ak_spec spec;
    struct ak_error error = { 0 };
    write_small(&folder, "model.safetensors", "", 0);
    test_write_text(&folder, "config.json",
                    "{\"model_type\": \"qwen3_5_moe\", " DELTA(
                        4, 2, 4, 32, 64,
                        "\"full_attention_interval\": 2, "
                        "\"shared_expert_intermediate_size\": 16, \"head_dim\": 16, "
                        "\"moe_intermediate_size\": 32") "}");
    struct ak_provider *p = open_ok(folder.path);
    ck_assert_msg(ak_spec_read(p, &spec, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_uint_eq(spec.config.head_dim, 16);
    ck_assert_uint_eq(spec.config.rope_dims, 4);
    ck_assert(ak_spec_is_recurrent(&spec.config, 0) && !ak_spec_is_recurrent(&spec.config, 1));
    ck_assert_uint_eq(ak_spec_state_elems(&spec), 3 * (2 * 2 * 32 + 4 * 64) + 4 * 32 * 64);
    ak_spec_clear(&spec);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

START_TEST(hostile_models)
{
    struct test_folder folder = test_folder_begin();
    write_small(&folder, "model.safetensors", "", 0);
    for (size_t i = 0; i < sizeof bad_models / sizeof *bad_models; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{%s}", bad_models[i].change);
        test_write_text(&folder, "config.json", text);
        ck_assert_ptr_null(akunu_model_load(folder.path, NULL));
        for (int j = 0; j < 2; j++)
            ck_assert_msg(strstr(akunu_last_error(), bad_models[i].named[j]), "%s: \"%s\"", text,
                          akunu_last_error());
    }
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hf");
    TCase *tests = tcase_create("hf");
    tcase_add_loop_test(tests, contents, 0, 9);
    tcase_add_test(tests, metadata);
    tcase_add_test(tests, bare);
    tcase_add_test(tests, shards);
    tcase_add_test(tests, fingerprint);
    tcase_add_test(tests, hostile_headers);
    tcase_add_test(tests, files_of_python);
    tcase_add_test(tests, unknown_types);
    tcase_add_test(tests, hostile_configs);
    tcase_add_loop_test(tests, same_logits, 0, 2 * N_FOLDER_GOLDENS);
    tcase_add_loop_test(tests, same_logits_with_adapters, 0, 2);
    tcase_add_loop_test(tests, converted, 0, N_FOLDER_GOLDENS + N_STORED_FOLDERS);
    tcase_add_loop_test(tests, shapes_alone, 0, 3);
    tcase_add_loop_test(tests, stored_folders, 0, N_STORED_FOLDERS);
    tcase_add_loop_test(tests, hostile_deltas, 0, sizeof bad_deltas / sizeof *bad_deltas);
    tcase_add_test(tests, irregular_deltas);
    tcase_add_test(tests, turned_quarter);
    tcase_add_test(tests, overridden_deltas);
    tcase_add_test(tests, canonical_names);
    tcase_add_loop_test(tests, hostile_experts, 0, sizeof bad_experts / sizeof *bad_experts);
    tcase_add_test(tests, unrotated_layers);
    tcase_add_test(tests, hostile_models);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

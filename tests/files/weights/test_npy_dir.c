/* Folders of NumPy arrays: known by what their manifest says, opened with few
 * descriptors, and refused by the name of what is wrong. What comes out of them is
 * test_hf_quant's. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/st_files.h"

static void put_array(const struct test_folder *folder, const char *name, const char *descr,
                      const char *order, const char *shape, const void *data, size_t n)
{
    char header[256], path[300];
    struct test_bytes file = { 0 };
    int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n",
                 descr, order, shape);
    const uint8_t head[] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)length, 0 };
    test_append(&file, head, sizeof head);
    test_append(&file, header, (size_t)length);
    test_append(&file, data, n);
    snprintf(path, sizeof path, "tensors/%s.npy", name);
    test_write(folder, path, file.data, file.n);
    free(file.data);
}

/* Of each letter a matrix of two rows of 64 in INT8, 128 bytes and 8 of scales; all but "a.b"
 * have one thing wrong. "a.b" is there as INT4 too, and "n" is plain. */
static struct test_folder make(const char *manifest)
{
    static const uint8_t data[512];
    static const int64_t shape[] = { 2, 64 }, vector[] = { 4 }, other[] = { 2, 32 };
    static const char *const names[] = {
        "a__b", "dtype", "order", "shape", "scales", "lost", "told"
    };
    struct test_folder folder = test_folder_begin();
    char name[64];
    ck_assert_int_eq(mkdir(test_in(&folder, "tensors"), 0777), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *is = names[i];
        snprintf(name, sizeof name, "%s__q", is);
        put_array(&folder, name, strcmp(is, "dtype") == 0 ? "|u1" : "|i1",
                  strcmp(is, "order") == 0 ? "True" : "False",
                  strcmp(is, "shape") == 0 ? "64, 2" : "2, 64", data, 128);
        snprintf(name, sizeof name, "%s__s", is);
        if (strcmp(is, "scales") == 0)
            put_array(&folder, name, "<f2", "False", "2,", data, 4);
        else if (strcmp(is, "lost") != 0)
            put_array(&folder, name, "<f4", "False", "2,", data, 8);
        snprintf(name, sizeof name, "%s__shape", is);
        put_array(&folder, name, "<i8", "False", "2,", strcmp(is, "told") == 0 ? other : shape, 16);
    }
    put_array(&folder, "a__b__q4", "|u1", "False", "2, 32", data, 64);
    put_array(&folder, "a__b__s4", "<f4", "False", "2, 1", data, 8);
    put_array(&folder, "n__pt", "<f2", "False", "4,", data, 8);
    put_array(&folder, "n__shape", "<i8", "False", "1,", vector, 8);
    test_write(&folder, "tensors/no__q.npy", "1234567890", 10);
    put_array(&folder, "no__shape", "<i8", "False", "2,", shape, 16);
    put_array(&folder, "wide__shape", "<i8", "False", "2, 1", shape, 16);
    put_array(&folder, "float__shape", "<f8", "False", "2,", shape, 16);
    put_array(&folder, "more__shape", "<i8", "False", "3,", (const int64_t[]){ 2, 64, 1 }, 24);
    test_write_text(&folder, "config.json", "{\"model_type\": \"llama\"}");
    if (manifest)
        test_write_text(&folder, "manifest.json", manifest);
    return folder;
}

#define HEAD "\"format\": \"akunu-npy\", \"version\": 1, \"names\": \"huggingface\""
#define MANIFEST(tensors) "{" HEAD ", \"tensors\": {" tensors "}}"
#define ROWS "\"shape\": [2, 64], \"int8\": {\"bytes\": 136}"
#define ENTRY(name) "\"" name "\": {" ROWS "}"

static const struct {
    const char *manifest, *name, *type;
} good[] = {
    { MANIFEST(ENTRY("a.b")), "a.b", "INT8_ROWS" },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int4\": {\"group\": 64, \"bytes\": 72, \"scales\": "
               "\"f32\"}, \"int8\": {}}"),
      NULL, NULL },
    { "{" HEAD ", \"use\": \"int4\", \"tensors\": {\"a.b\": {\"shape\": [2, 64], \"int4\": "
      "{\"group\": 64, \"bytes\": 72}, \"int8\": {}}}}",
      "a.b", "INT4_G64" },
    { "{" HEAD ", \"use\": \"int3\", \"note\": {\"by\": 1}, \"tensors\": {\"n\": {\"shape\": [4], "
      "\"plain\": {\"bytes\": 8}, \"x\": 1}}}",
      "n", "F16" },
};

/* Which encoding is read; keys that say nothing are passed over. The second one has an INT8
 * that is preferred, and damaged. */
START_TEST(contents)
{
    struct test_folder folder = make(good[_i].manifest);
    struct ak_provider *p = NULL;
    struct ak_tensor t;
    struct ak_error error = { 0 };
    ak_status status = ak_provider_open(folder.path, &p, &error);
    ck_assert_msg((status == AKUNU_OK) == (good[_i].name != NULL), "%s: %s", good[_i].manifest,
                  error.message);
    if (p) {
        ck_assert_str_eq(p->format->name, "npy-dir");
        ck_assert(ak_provider_n_tensors(p) == 1 && ak_provider_tensor(p, 0, &t));
        ck_assert_str_eq(t.name, good[_i].name);
        ck_assert_str_eq(ak_tensor_type_name(&t), good[_i].type);
        ak_provider_close(p);
    }
    test_folder_end(&folder);
}
END_TEST

#define LONG                                                                                       \
    "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."             \
    "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."             \
    "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."

static const struct {
    const char *manifest, *named[2];
} bad[] = {
    { "{\"format\": \"akunu-npy\"", { "manifest.json" } },
    { "[\"akunu-npy\"]", { "format", "akunu-npy" } },
    { "{\"format\": \"not akunu-npy\"}", { "format is not akunu-npy", "expected" } },
    { "{\"format\": \"akunu-npy\", \"version\": 2}", { "version", "2" } },
    { "{\"format\": \"akunu-npy\", \"version\": \"1\"}", { "version", "a string" } },
    { "{\"format\": \"akunu-npy\", \"version\": 1, \"names\": \"gguf\"}",
      { "names is gguf", "huggingface" } },
    { "{" HEAD ", \"use\": \"int5\"}", { "use is int5", "int4" } },
    { "{" HEAD "}", { "tensors", "object" } },
    { "{" HEAD ", \"tensors\": []}", { "tensors", "a list" } },
    { MANIFEST(""), { "tensors", "of 0" } },
    { MANIFEST("\"\": {}"), { "a name is empty" } },
    { MANIFEST(ENTRY("../config")), { "../config", "letters" } },
    { MANIFEST(ENTRY("/etc/passwd")), { "/etc/passwd", "letters" } },
    { MANIFEST(ENTRY(LONG)), { "too long", "file" } },
    { MANIFEST("\"a.b\": 4"), { "a.b", "an integer" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64]}"), { "a.b", "int8, int4, int3 or plain" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": 1}"),
      { "int8 is an integer", "an object" } },
    { MANIFEST("\"a.b\": {\"int8\": {}}"), { "a.b: shape", "list" } },
    { MANIFEST("\"a.b\": {\"shape\": [1, 1, 1, 2, 64], \"int8\": {}}"), { "a.b: shape", "of 5" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, -64], \"int8\": {}}"), { "dimension 1", "-64" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 0], \"int8\": {}}"), { "dimension 1", "0" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64.0], \"int8\": {}}"), { "dimension 1", "a real" } },
    { MANIFEST("\"a.b\": {\"shape\": [4294967295, 4294967295, 64], \"int8\": {}}"),
      { "dimension 1", "4294967295" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {}}"),
      { "bytes of int8", "whole number" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 128}}"),
      { "136 bytes", "128" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"group\": 48}}"),
      { "groups of 48", "32" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"group\": \"64\"}}"),
      { "group of int8", "a string" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"group\": 32}}"),
      { "a__b__s", "[2, 2]" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"scales\": \"f8\"}}"),
      { "scales of int8", "f16" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int4\": {\"bytes\": 72}}"),
      { "group of int4", "whole number" } },
    { MANIFEST("\"a.b\": {\"shape\": [4, 64], \"int8\": {\"bytes\": 136}}"),
      { "a__b__shape", "4" } },
    { MANIFEST("\"a.b\": {\"shape\": [128], \"int8\": {\"bytes\": 136}}"),
      { "a__b__shape", "expected 1" } },
    { MANIFEST(ENTRY("dtype")), { "dtype__q is U8", "I8" } },
    { MANIFEST(ENTRY("order")), { "order__q.npy", "fortran_order" } },
    { MANIFEST(ENTRY("shape")), { "shape__q", "[64, 2]" } },
    { MANIFEST(ENTRY("scales")), { "scales__s is F16", "F32" } },
    { MANIFEST(ENTRY("lost")), { "lost__s.npy", "no such file" } },
    { MANIFEST(ENTRY("told")), { "told__shape", "32" } },
    { MANIFEST(ENTRY("no")), { "no__q.npy", "no NumPy array" } },
    { MANIFEST(ENTRY("none")), { "none__shape.npy", "no such file" } },
    { MANIFEST(ENTRY("a.b") ", " ENTRY("a__b")), { "a__b__q", "two tensors" } },
    { MANIFEST("\"n\": {\"shape\": [4], \"plain\": {\"bytes\": 6}}"), { "8 bytes", "6" } },
    { MANIFEST("\"n\": {\"shape\": [4], \"int8\": {\"bytes\": 6}}"), { "rows of 4", "32" } },
    /* Each is refused by one check alone. */
    { "{\"format\": \"akunu-npy\", \"version\": 1.0, \"names\": \"huggingface\"}",
      { "version is a real number", "expected 1" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 4294967360], \"int8\": {\"bytes\": 136}}"),
      { "a.b: dimension 1 of shape is an integer 4294967360" } },
    { MANIFEST("\"a.b\": {\"shape\": [4294967298, 64], \"int8\": {\"bytes\": 136}}"),
      { "a.b: dimension 0 of shape is an integer 4294967298" } },
    { MANIFEST("\"a.b\": {\"shape\": [65536, 65536, 64], \"int8\": {\"bytes\": 136}}"),
      { "a.b: dimension 1 of shape is an integer 65536" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, \"64\"], \"int8\": {\"bytes\": 136}}"),
      { "a.b: dimension 1 of shape is a string" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": -136}}"),
      { "a.b: bytes of int8 is an integer; expected a whole number above 0" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"group\": 0}}"),
      { "a.b: group of int8 is an integer; expected a whole number" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"group\": 16}}"),
      { "a.b: rows of 64 elements in groups of 16; expected multiples" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"group\": 96}}"),
      { "a.b: rows of 64 elements in groups of 96; expected multiples" } },
    { MANIFEST("\"a.b\": {\"shape\": [2, 64], \"int8\": {\"bytes\": 136, \"group\": 128}}"),
      { "a.b: rows of 64 elements in groups of 128; expected multiples" } },
    { MANIFEST(ENTRY("wide")),
      { "wide__shape is I64 of 2 in 2 dimensions; expected 2 whole numbers of 32 or 64 bits" } },
    { MANIFEST(ENTRY("float")),
      { "float__shape is F64 of 2 in 1 dimensions; expected 2 whole numbers of 32 or 64 bits" } },
    { MANIFEST(ENTRY("more")),
      { "more__shape is I64 of 3 in 1 dimensions; expected 2 whole numbers of 32 or 64 bits" } },
};

START_TEST(hostile)
{
    struct test_folder folder = make(bad[_i].manifest);
    struct ak_provider *p = NULL;
    struct ak_error error = { 0 };
    ak_status status = ak_provider_open(folder.path, &p, &error);
    ck_assert_msg(status == AKUNU_ERROR_FORMAT || status == AKUNU_ERROR_UNSUPPORTED,
                  "%s: status %d", bad[_i].manifest, status);
    for (int i = 0; i < 2 && bad[_i].named[i]; i++)
        ck_assert_msg(strstr(error.message, bad[_i].named[i]) != NULL,
                      "%s: \"%s\" does not name %s", bad[_i].manifest, error.message,
                      bad[_i].named[i]);
    test_folder_end(&folder);
}
END_TEST

/* Limits of a manifest. */
START_TEST(limits)
{
    static const char head[] = "{" HEAD ", \"tensors\": {", *const named[] = {
        "tensors is an object of 65537; expected an object of 1 to 65536",
        "33554433 bytes, where at most 33554432 are possible"
    };
    struct test_bytes manifest = { 0 };
    test_append(&manifest, head, strlen(head));
    for (int i = 0; i <= 1 << 16; i++) {
        char entry[24];
        int n = snprintf(entry, sizeof entry, "%s\"%d\":0", i ? "," : "", i);
        test_append(&manifest, entry, (size_t)n);
    }
    test_append(&manifest, "}}", 2);
    struct test_folder folder = make((const char *)manifest.data);
    for (int i = 0; i < 2; i++) {
        struct ak_provider *p;
        struct ak_error error = { 0 };
        if (i == 1)
            ck_assert_int_eq(truncate(test_in(&folder, "manifest.json"), (32 << 20) + 1), 0);
        ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_ERROR_FORMAT);
        ck_assert_msg(strstr(error.message, named[i]), "\"%s\" does not name %s", error.message,
                      named[i]);
    }
    free(manifest.data);
    test_folder_end(&folder);
}
END_TEST

/* It is looked at in its beginning alone, and read only where it can be a manifest. */
START_TEST(detection)
{
    static const char *const others[] = { "{\"manifest_version\": 3}", "" };
    struct ak_provider *p = NULL;
    struct ak_error error = { 0 };
    struct test_folder folder;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        folder = make(others[i]);
        ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_ERROR_FORMAT);
        ck_assert_msg(strstr(error.message, "manifest.json, which does not begin"), "%s",
                      error.message);
        test_folder_end(&folder);
    }
    folder = make(MANIFEST(ENTRY("a.b")));
    ck_assert_int_eq(truncate(test_in(&folder, "manifest.json"), 100 << 20), 0);
    ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "104857600 bytes"), "%s", error.message);
    test_folder_end(&folder);
    folder = make(MANIFEST(ENTRY("a.b")));
    ck_assert_int_eq(unlink(test_in(&folder, "config.json")), 0);
    ck_assert_int_eq(ak_provider_open(folder.path, &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "config.json is missing"), "%s", error.message);
    test_folder_end(&folder);
}
END_TEST

/* A model has more arrays than a process may have files open. */
START_TEST(descriptors)
{
    struct rlimit before, few;
    struct ak_provider *p;
    struct ak_error error = { 0 };
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 20;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ak_status status = ak_provider_open(test_path("quantized/npy-int8"), &p, &error);
    setrlimit(RLIMIT_NOFILE, &before);
    ck_assert_msg(status == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy_dir");
    TCase *tests = tcase_create("npy_dir");
    tcase_add_loop_test(tests, contents, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(tests, hostile, 0, sizeof bad / sizeof *bad);
    tcase_add_test(tests, limits);
    tcase_add_test(tests, detection);
    tcase_add_test(tests, descriptors);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

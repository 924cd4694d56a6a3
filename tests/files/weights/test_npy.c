/* NumPy's arrays as files: headers as NumPy writes them, and damaged ones
 * refused by the name of what is wrong. */
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

#include "tests/gguf_files.h"

static struct test_bytes make(int version, const char *header, size_t data_bytes)
{
    struct test_bytes out = { 0 };
    const uint8_t head[] = { 0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0 };
    uint32_t n = (uint32_t)strlen(header);
    test_append(&out, head, sizeof head);
    test_append(&out, &n, version == 1 ? 2 : 4); /* the low bytes come first */
    test_append(&out, header, n);
    for (size_t i = 0; i < data_bytes; i++) {
        uint8_t byte = (uint8_t)i;
        test_append(&out, &byte, 1);
    }
    return out;
}

static const struct {
    int version;
    const char *header;
    size_t data_bytes;
    enum ak_quant_type type;
    unsigned n_dims;
    uint64_t shape[4];
} good[] = {
    { 1,
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }          \n",
      64,
      AK_QUANT_F32,
      2,
      { 4, 4 } },
    { 2, "{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }\n", 6, AK_QUANT_F16, 1, { 3 } },
    { 3,
      "{\"shape\": (2,1, 3), \"descr\": \"|i1\", \"fortran_order\": False}",
      6,
      AK_QUANT_I8,
      3,
      { 2, 1, 3 } },
    { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': ()}", 1, AK_QUANT_U8, 1, { 1 } },
    { 1,
      "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 5)}",
      0,
      AK_QUANT_I64,
      2,
      { 0, 5 } },
};

START_TEST(contents)
{
    struct test_bytes bytes = make(good[_i].version, good[_i].header, good[_i].data_bytes);
    struct ak_provider *p;
    struct ak_tensor t;
    struct ak_error error = { 0 };
    ck_assert_msg(test_open(bytes, &p, &error) == AKUNU_OK, "%s: %s", good[_i].header,
                  error.message);
    ck_assert_str_eq(p->format->name, "npy");
    ck_assert(ak_provider_n_tensors(p) == 1 && ak_provider_tensor(p, 0, &t) &&
              !ak_provider_tensor(p, 1, &t));
    ck_assert(t.type == good[_i].type && t.n_dims == good[_i].n_dims &&
              memcmp(t.shape, good[_i].shape, sizeof t.shape) == 0);
    ck_assert(t.bytes == good[_i].data_bytes && (t.bytes < 3 || ((const uint8_t *)t.data)[2] == 2));
    ak_provider_close(p);
    free(bytes.data);
}
END_TEST

static const struct {
    int version;
    const char *header;
    size_t data_bytes;
    const char *named;
} bad[] = {
    { 9, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", 16, "version 9.0" },
    { 1, "[1, 2]", 16, "header: [1, 2]" },
    { 1, "__import__('os').getcwd()", 16, "header" },
    { 1, "", 16, "header" },
    { 1, "{'descr': '<f4', 'fortran_order': False}", 16, "shape is missing" },
    { 1, "{'shape': (4,), 'fortran_order': False}", 16, "descr is missing" },
    { 1, "{'descr': '|O', 'fortran_order': False, 'shape': (4,)}", 32, "Python objects" },
    { 1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}", 16,
      "descr is [('a', '<f4')]" },
    { 1, "{'descr': '<q9', 'fortran_order': False, 'shape': (4,)}", 16, "descr is <q9" },
    { 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (4,)}", 16, "fortran_order is True" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, 4)}", 64, "shape is (-4, 4)" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': '44'}", 64, "shape is '44'" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (8589934592, 8589934592)}", 64,
      "shape" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 4)}", 16, "shape" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,", 16, "shape" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", 15,
      "16 bytes, where the file has 15" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", 17, "the file has 17" },
    { 1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", 16, "twice" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'more': 1}", 16, "more" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} x", 16, "behind" },
    /* Each is refused by one check alone. */
    { 0, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", 16,
      "version 0.0; supported: 1, 2 and 3" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2147483648, 2147483648)}", 0,
      "header: the size of the shape overflows 64 bits" },
    { 1, "{'descr': '|i1', 'fortran_order': False, 'shape': (65536, 65536, 0)}", 0,
      "header: shape is (65536, 65536, 0), where counts" },
    { 1, "{'descr': '|i1', 'fortran_order': False, 'shape': (0, 4294967296)}", 0,
      "header: shape is (0, 4294967296), where counts" },
    { 1, "{'descr': '|i1', 'fortran_order': False, 'shape': (18446744073709551620,)}", 4,
      "header: shape is (18446744073709551620,), where counts" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 4)}", 16,
      "header: shape is (1, 1, 1, 1, 4), where counts" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': 4,)}", 16,
      "header: shape is 4, where counts" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (a)}", 16,
      "header: shape is (a), where counts" },
    { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4 4)}", 16,
      "header: shape is (4 4), where counts" },
    { 1, "{'descr': '<f\\4', 'fortran_order': False, 'shape': (4,)}", 16,
      "header: descr is '<f\\4', where a string is expected" },
    { 1, "{'descr': '<f4', 4: False}", 16,
      "header: 4: False, where a key and its value are expected" },
    { 1, "{'descr", 0, "header: 'descr, where a key and its value are expected" },
    { 1, "{'descr': '<f4", 0, "header: descr is '<f4, where a string is expected" },
    { 1, "{: False}", 0, "header: : False, where a key and its value are expected" },
    { 1, "{'descr' '<f4'}", 16, "header: '<f4', where a key and its value are expected" },
    { 1, "{'descr': '<f4' 'shape': (4,)}", 16,
      "header: 'shape': (4,), where a comma or the end is expected" },
};

START_TEST(hostile)
{
    struct test_bytes bytes = make(bad[_i].version, bad[_i].header, bad[_i].data_bytes);
    struct ak_provider *p;
    struct ak_error error = { 0 };
    ak_status status = test_open(bytes, &p, &error);
    ck_assert_msg(status == AKUNU_ERROR_FORMAT || status == AKUNU_ERROR_UNSUPPORTED,
                  "%s: status %d", bad[_i].header, status);
    ck_assert_msg(strstr(error.message, bad[_i].named), "\"%s\" does not name %s", error.message,
                  bad[_i].named);
    free(bytes.data);
}
END_TEST

/* What the file ends in is named. */
START_TEST(ends)
{
    static const struct {
        int version;
        size_t n;
        const char *named;
    } cases[] = {
        { 1, 6, "the end of the file (6 bytes) is inside the version" },
        { 1, 7, "the end of the file (7 bytes) is inside the version" },
        { 1, 8, "the end of the file (8 bytes) is inside the header" },
        { 1, 9, "the end of the file (9 bytes) is inside the header" },
        { 1, 10, "the end of the file (10 bytes) is inside the header" },
        { 2, 11, "the end of the file (11 bytes) is inside the header" },
        { 2, 12, "the end of the file (12 bytes) is inside the header" },
        { 2, 40, "the end of the file (40 bytes) is inside the header" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_bytes bytes = make(cases[i].version, good[0].header, 64);
        struct ak_provider *p;
        struct ak_error error = { 0 };
        ck_assert_int_eq(
            test_open((struct test_bytes){ .data = bytes.data, .n = cases[i].n }, &p, &error),
            AKUNU_ERROR_FORMAT);
        ck_assert_msg(strstr(error.message, cases[i].named), "\"%s\" does not name %s",
                      error.message, cases[i].named);
        free(bytes.data);
    }
}
END_TEST

START_TEST(cut)
{
    struct test_bytes bytes = make(2, good[0].header, 64);
    struct ak_provider *p;
    for (size_t n = 6; n < bytes.n; n++)
        ck_assert_int_ne(test_open((struct test_bytes){ .data = bytes.data, .n = n }, &p, NULL),
                         AKUNU_OK);
    free(bytes.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy");
    TCase *tests = tcase_create("npy");
    tcase_add_loop_test(tests, contents, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(tests, hostile, 0, sizeof bad / sizeof *bad);
    tcase_add_test(tests, ends);
    tcase_add_test(tests, cut);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

/* GGUF files that one check refuses, and no other: each check of a count, a size, a sum or a
 * product has one here, and its message. Files of many gigabytes are holes. */
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/gguf_files.h"
#include "tests/st_files.h"
#include "base/name_index.h"

enum {
    U8 = 0,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    BOOL = 7,
    STRING = 8,
    ARRAY = 9,
    U64 = 10,
    TYPE_F32 = 0,
    TYPE_F16 = 1
};

static const uint8_t zeros[256];

static struct test_bytes begin(uint64_t n_tensors, uint64_t n_entries)
{
    struct test_bytes b = { 0 };
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, n_tensors);
    test_append_u64(&b, n_entries);
    return b;
}

static void add_key(struct test_bytes *b, const char *key, uint32_t kind)
{
    test_append_text(b, key);
    test_append_u32(b, kind);
}

static void add_u32(struct test_bytes *b, const char *key, uint32_t kind, uint32_t value)
{
    add_key(b, key, kind);
    test_append_u32(b, value);
}

static void add_text(struct test_bytes *b, const char *key, const char *text)
{
    add_key(b, key, STRING);
    test_append_text(b, text);
}

static void add_array(struct test_bytes *b, const char *key, uint32_t kind, uint64_t n)
{
    add_key(b, key, ARRAY);
    test_append_u32(b, kind);
    test_append_u64(b, n);
}

/* Dimensions of 0 end the list. */
static void add_tensor(struct test_bytes *b, const char *name, uint64_t a, uint64_t c, uint64_t d,
                       uint32_t type, uint64_t offset)
{
    const uint64_t dims[] = { a, c, d };
    uint32_t n = 0;
    while (n < 3 && dims[n])
        n++;
    test_append_text(b, name);
    test_append_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        test_append_u64(b, dims[i]);
    test_append_u32(b, type);
    test_append_u64(b, offset);
}

static void add_data(struct test_bytes *b, size_t n)
{
    test_append(b, zeros, (size_t)(-b->n & 31));
    test_append(b, zeros, n);
}

/* Opens and frees the file, and takes the vocabulary if it opens. */
static void check_refused_sparse(struct test_bytes b, uint64_t n, const char *message)
{
    struct ak_provider *p = NULL;
    struct ak_vocab vocab;
    struct ak_error error = { 0 };
    ak_status status;
    if (test_open_sparse(b, n, &status, &p, &error)) { /* else there is no room for such files */
        if (status == AKUNU_OK)
            status = ak_provider_vocab(p, &vocab, &error);
        ck_assert_msg(status != AKUNU_OK && strstr(error.message, message),
                      "\"%s\" where \"%s\" is expected", error.message, message);
        ak_provider_close(p);
    }
    free(b.data);
}

static void check_refused(struct test_bytes b, const char *message)
{
    check_refused_sparse(b, b.n, message);
}

static void check_opens(struct test_bytes b)
{
    struct ak_provider *p;
    struct ak_vocab vocab;
    struct ak_error error = { 0 };
    ck_assert_msg(test_open(b, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_msg(ak_provider_vocab(p, &vocab, &error) == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
    free(b.data);
}

/* ---- Header and counts -------------------------------------------------- */
START_TEST(counts)
{
    struct test_bytes b = begin(0, 3);
    test_append(&b, zeros, 3 * 13 - 1); /* an entry has at least 13 bytes */
    check_refused(b, "metadata count of 3: the end of the file (62 bytes) leaves no room for so "
                     "many keys and values, at least 13 bytes each");
    b = begin(3, 0);
    test_append(&b, zeros, 3 * 32 - 1);
    check_refused(b, "tensor count of 3: the end of the file (119 bytes) leaves no room for so "
                     "many names and shapes, at least 32 bytes each");
    /* An index has 32 bits; a file that has room for more is possible. */
    check_refused_sparse(begin(0, UINT64_C(1) << 32), UINT64_C(60) << 30,
                         "metadata count of 4294967296: the end of the file");
}
END_TEST

START_TEST(versions)
{
    struct test_bytes b = begin(0, 0);
    b.data[4] = 0;
    check_refused(b, "GGUF version 0; versions 2 and 3 are accepted");
    b = begin(0, 0);
    memset(b.data + 4, 1, 4); /* as large from either end */
    check_refused(b, "GGUF version 16843009; versions 2 and 3 are accepted");
    b = begin(0, 0);
    memcpy(b.data + 4, "\0\0\0\3", 4);
    check_refused(b, "a big-endian GGUF file (version 3)");
}
END_TEST

/* Names are terminated in memory: one with a NUL would be another one. */
START_TEST(names)
{
    struct test_bytes b = begin(0, 1);
    add_u32(&b, "a.b", U32, 7);
    b.data[24 + 8 + 1] = 0;
    check_refused(b, "metadata key \"a\\x00b\" is not UTF-8 text");
    b = begin(1, 0);
    add_tensor(&b, "a.b", 8, 0, 0, TYPE_F32, 0);
    b.data[24 + 8 + 1] = 0;
    add_data(&b, 32);
    check_refused(b, "tensor name \"a\\x00b\" is not UTF-8 text");
    b = begin(0, 1);
    add_u32(&b, "", U32, 7);
    test_append(&b, zeros, 16);
    check_refused(b,
                  "metadata key length of 0 bytes in number 1 of 1, where 1 to 65535 are possible");
}
END_TEST

START_TEST(alignments)
{
    struct test_bytes b = begin(0, 1);
    add_u32(&b, "general.alignment", I32, 32);
    check_refused(b, "metadata general.alignment is not an unsigned integer");
    b = begin(0, 1);
    add_u32(&b, "general.alignment", U32, UINT32_C(1) << 31);
    check_refused(b, "metadata general.alignment is 2147483648, where a power of two from 8 to "
                     "1073741824 is expected");
    b = begin(0, 1);
    add_u32(&b, "general.alignment", U32, 4);
    check_refused(b, "metadata general.alignment is 4, where");
    b = begin(0, 1);
    add_u32(&b, "general.alignment", U32, 24);
    check_refused(b, "metadata general.alignment is 24, where");
    b = begin(0, 1);
    add_u32(&b, "general.alignment", U32, UINT32_C(1) << 30);
    check_opens(b);
}
END_TEST

/* Up to its end a part has this message. */
struct part {
    size_t end;
    const char *inside;
};

static void check_cuts(struct test_bytes b, size_t first, const struct part *parts, size_t n)
{
    for (size_t at = first, i = 0; at < parts[n - 1].end; at++) {
        struct test_bytes cut = { 0 };
        i += at == parts[i].end;
        test_append(&cut, b.data, at);
        check_refused(cut, parts[i].inside);
    }
}

/* Where a file ends, the message says what it is inside of. The first entry and the first tensor
 * are long: the counts fit however much of the second ones is missing. */
START_TEST(ends)
{
    static const char long_text[] = "0123456789012345678901234567890123456789";
    struct test_bytes b = begin(2, 3);
    struct part parts[20];
    size_t n = 0;
    add_text(&b, long_text, long_text);
    add_text(&b, "b", long_text);
#define PART(appended, words) (appended, parts[n].end = b.n, parts[n++].inside = words)
    size_t first = b.n;
    PART(test_append_u64(&b, 1), "is inside metadata key 3 of 3");
    PART(test_append(&b, "c", 1), "is inside metadata key 3 of 3");
    PART(test_append_u32(&b, ARRAY), "is inside metadata entry 3 of 3");
    PART(test_append_u32(&b, STRING), "metadata c: the file ends inside the value");
    PART(test_append_u64(&b, 2), "metadata c: the file ends inside the value");
    PART(test_append_u64(&b, 16), "metadata c: an array of 2 × string, where the file has");
    /* 16 bytes at least */
    PART(test_append(&b, "01234567", 8), "metadata c: an array of 2 × string, where the file has");
    PART(test_append(&b, "89abcdef", 8), "metadata c: a string of 16 bytes, where the file has");
    PART(test_append_u64(&b, 1), "metadata c: the file ends inside the value");
    PART(test_append(&b, "1", 1), "metadata c: a string of 1 bytes, where the file has 0 left");
    check_cuts(b, first, parts, n);
    add_tensor(&b, long_text, 8, 0, 0, TYPE_F32, 0);
    n = 0;
    first = b.n;
    PART(test_append_u64(&b, 1), "is inside tensor name 2 of 2");
    PART(test_append(&b, "d", 1), "is inside tensor name 2 of 2");
    PART(test_append_u32(&b, 1), "is inside the tensor info of d, 2 of 2");
    PART(test_append_u64(&b, 8), "is inside the tensor info of d, 2 of 2");
    PART(test_append_u32(&b, TYPE_F32), "is inside the tensor info of d, 2 of 2");
    PART(test_append_u64(&b, 32), "is inside the tensor info of d, 2 of 2");
#undef PART
    check_cuts(b, first, parts, n);
    add_data(&b, 64);
    check_opens(b);
}
END_TEST

/* ---- Values ------------------------------------------------------------- */
START_TEST(values)
{
    static const uint32_t kinds[] = { U8, U32, F32, BOOL, U64 };
    /* a single value that the file ends in */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct test_bytes b = begin(0, 1);
        add_key(&b, "a.long.key", kinds[i]);
        test_append(&b, zeros, kinds[i] == U64 ? 7 : kinds[i] == U32 || kinds[i] == F32 ? 3 : 0);
        check_refused(b, "metadata a.long.key: the file ends inside the value");
    }
    struct test_bytes b = begin(0, 1);
    add_array(&b, "a", U64, UINT64_C(0x2000000000000001)); /* times 8 is 8 in 64 bits */
    test_append(&b, zeros, 8);
    check_refused(
        b, "metadata a: an array of 2305843009213693953 × uint64, where the file has 8 bytes left");
    b = begin(0, 1);
    add_array(&b, "a", U32, 3);
    test_append(&b, zeros, 11);
    check_refused(b, "metadata a: an array of 3 × uint32, where the file has 11 bytes left");
    b = begin(0, 1);
    add_array(&b, "a", BOOL, 3);
    test_append(&b, "\0\1\2", 3);
    check_refused(b, "metadata a: a bool of value 2, where 0 and 1 are possible");
    b = begin(0, 1);
    add_key(&b, "a", STRING);
    test_append_u64(&b, UINT64_MAX - 7);
    test_append(&b, zeros, 8);
    check_refused(b,
                  "metadata a: a string of 18446744073709551608 bytes, where the file has 8 left");
}
END_TEST

/* ---- Tensors ------------------------------------------------------------ */
static void check_tensor(uint64_t a, uint64_t b, uint64_t c, uint32_t type, uint64_t offset,
                         uint64_t hole, const char *message)
{
    struct test_bytes bytes = begin(1, 0);
    add_tensor(&bytes, "t", a, b, c, type, offset);
    add_data(&bytes, 64);
    check_refused_sparse(bytes, bytes.n + hole, message);
}

START_TEST(tensors)
{
    struct test_bytes b = begin(1, 0);
    add_tensor(&b, "t", 16, 0, 0, TYPE_F32, 0);
    add_data(&b, 64);
    const uint64_t data = b.n - 64;
    check_opens(b);
    check_tensor(0, 0, 0, TYPE_F32, 0, 0, "tensor t has 0 dimensions, where 1 to 4 are possible");
    check_tensor((UINT64_C(1) << 32) + 16, 0, 0, TYPE_F32, 0, 0,
                 "tensor t: dimension 0 is 4294967312, which is too large");
    check_tensor(1, (UINT64_C(1) << 32) + 16, 0, TYPE_F32, 0, 0,
                 "tensor t: dimension 1 is 4294967312, which is too large");
    check_tensor(UINT64_C(1) << 63 | 16, 0, 0, TYPE_F32, 0, 0,
                 "tensor t: dimension 0 is -9223372036854775792, where at least 1 is expected");
    /* 2^32 rows of two bytes, which the file has. */
    check_tensor(1, 65536, 65536, TYPE_F16, 0, UINT64_C(8) << 30,
                 "tensor t: dimension 2 is 65536, which is too large");
    /* 2^64 bytes are none in 64 bits. */
    check_tensor(UINT64_C(1) << 31, UINT64_C(1) << 31, 0, TYPE_F32, 0, 0,
                 "tensor t: its size overflows 64 bits");
    /* The data's beginning plus the offset wraps to what is before the data, and overlaps nothing.
     */
    check_tensor(8, 0, 0, TYPE_F32, UINT64_MAX - 31, 0,
                 "tensor t: offset 18446744073709551584 is beyond the end of the file");
    /* The end of the tensor wraps to the beginning of the file. */
    check_tensor(16, 0, 0, TYPE_F32, UINT64_MAX - 31 - data, 0, "tensor t: offset");
    check_tensor(17, 0, 0, TYPE_F32, 0, 0, "beyond the end of the file");
    check_tensor(16, 0, 0, TYPE_F32, 32, 0, "beyond the end of the file");
    check_tensor(1, 0, 0, TYPE_F32, 4, 0,
                 "tensor t: offset 4 is not a multiple of the alignment 32");
}
END_TEST

START_TEST(neighbors)
{
    struct test_bytes b = begin(2, 0);
    add_tensor(&b, "second", 8, 0, 0, TYPE_F32, 32);
    add_tensor(&b, "first", 8, 0, 0, TYPE_F32, 0);
    add_data(&b, 64);
    check_opens(b);
    b = begin(2, 0);
    add_tensor(&b, "second", 8, 0, 0, TYPE_F32, 32);
    add_tensor(&b, "first", 9, 0, 0, TYPE_F32, 0);
    add_data(&b, 64);
    check_refused(b, "tensors first (36 bytes at 128) and second (at 160) share bytes");
    b = begin(2, 0);
    add_tensor(&b, "a", 8, 0, 0, TYPE_F32, 0);
    add_tensor(&b, "b", 8, 0, 0, TYPE_F32, 0);
    add_data(&b, 32);
    check_refused(b, "share bytes");
}
END_TEST

/* ---- Vocabularies ------------------------------------------------------- */
static struct test_bytes begin_vocab(uint64_t more)
{
    struct test_bytes b = begin(0, 2 + more);
    add_text(&b, "tokenizer.ggml.model", "gpt2");
    add_array(&b, "tokenizer.ggml.tokens", STRING, 2);
    test_append_text(&b, "a");
    test_append_text(&b, "b");
    return b;
}

START_TEST(vocabularies)
{
    struct test_bytes b = begin(0, 2);
    add_text(&b, "tokenizer.ggml.model", "gpt2");
    add_text(&b, "tokenizer.ggml.tokens", "a");
    check_refused(b, "metadata tokenizer.ggml.tokens is a value of type string, where an array of "
                     "string is expected");
    b = begin(0, 1);
    add_text(&b, "tokenizer.ggml.model", "gpt2");
    check_refused(b, "metadata tokenizer.ggml.tokens is missing");
    b = begin(0, 1);
    add_u32(&b, "tokenizer.ggml.model", U32, 7);
    check_refused(b, "metadata tokenizer.ggml.model is the integer 7, where a string is expected");
    b = begin_vocab(1);
    add_array(&b, "tokenizer.ggml.token_type", U32, 2);
    test_append(&b, zeros, 8);
    check_opens(b);
    b = begin_vocab(1);
    add_array(&b, "tokenizer.ggml.token_type", I32, 2);
    test_append(&b, "\0\0\0\0\xff\xff\xff\xff", 8);
    check_refused(b, "metadata tokenizer.ggml.token_type: -1 is not a token type");
    b = begin_vocab(1);
    add_array(&b, "tokenizer.ggml.token_type", U32, 3);
    test_append(&b, zeros, 12);
    check_refused(b, "metadata tokenizer.ggml.token_type has 3 elements for 2 tokens");
    b = begin_vocab(1);
    add_text(&b, "tokenizer.ggml.bos_token_id", "a");
    check_refused(b, "metadata tokenizer.ggml.bos_token_id is a value of type string, where a "
                     "token's id is expected");
    /* Sizes are of 32 bits, in files that have more. */
    b = begin_vocab(1);
    add_array(&b, "tokenizer.ggml.precompiled_charsmap", U8, UINT64_C(1) << 31);
    check_refused_sparse(
        b, b.n + (UINT64_C(1) << 31),
        "metadata tokenizer.ggml.precompiled_charsmap has 2147483648 elements, more than 2^31 - 1");
    b = begin(0, 2);
    add_text(&b, "tokenizer.ggml.model", "gpt2");
    add_array(&b, "tokenizer.ggml.tokens", STRING, 1);
    test_append_u64(&b, UINT64_C(1) << 32);
    check_refused_sparse(b, b.n + (UINT64_C(1) << 32),
                         "metadata tokenizer.ggml.tokens has a string of 2^32 bytes or more");
    b = begin(0, 1);
    add_key(&b, "tokenizer.ggml.model", STRING);
    test_append_u64(&b, UINT64_C(1) << 32);
    check_refused_sparse(b, b.n + (UINT64_C(1) << 32), "where a string is expected");
}
END_TEST

/* Ids of no token are none, whatever their kind. */
START_TEST(ids_of_no_token)
{
    struct test_bytes b = begin_vocab(3);
    struct ak_provider *p;
    struct ak_vocab vocab;
    add_u32(&b, "tokenizer.ggml.bos_token_id", U32, 1);
    add_u32(&b, "tokenizer.ggml.eos_token_id", U32, 2);
    add_u32(&b, "tokenizer.ggml.unknown_token_id", I32, UINT32_MAX);
    ck_assert_int_eq(test_open(b, &p, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_provider_vocab(p, &vocab, NULL), AKUNU_OK);
    ck_assert(vocab.bos == 1 && vocab.eos == -1 && vocab.unknown == -1);
    ak_provider_close(p);
    free(b.data);
}
END_TEST

/* ---- Numbers of metadata ------------------------------------------------ */
START_TEST(numbers)
{
    struct test_bytes b = begin(0, 4);
    struct ak_provider *p;
    struct ak_error error = { 0 };
    uint32_t u;
    float f;
    add_key(&b, "a", U64);
    test_append_u64(&b, (UINT64_C(1) << 32) + 7);
    add_u32(&b, "b", I32, UINT32_MAX);
    add_key(&b, "d", BOOL);
    test_append(&b, "\1", 1);
    add_u32(&b, "e", F32, 0x7f800000);
    ck_assert_int_eq(test_open(b, &p, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_meta_u32(p, "d", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ck_assert_str_eq(
        error.message,
        "metadata d is the bool true, where an integer from 0 to 4294967295 is expected");
    ck_assert(ak_meta_float(p, "e", 0, &f, &error) == AKUNU_OK && f == INFINITY);
    ck_assert(ak_meta_float(p, "absent", 0.5f, &f, &error) == AKUNU_OK && f == 0.5f);
    ck_assert_int_eq(ak_meta_u32(p, "a", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ck_assert_str_eq(
        error.message,
        "metadata a is the integer 4294967303, where an integer from 0 to 4294967295 is expected");
    ck_assert_int_eq(ak_meta_u32(p, "b", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ck_assert_str_eq(
        error.message,
        "metadata b is the integer -1, where an integer from 0 to 4294967295 is expected");
    /* What the command line gives. */
    ck_assert_int_eq(ak_provider_override(p, "c=int:9223372036854775808", &error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_provider_override(p, "c=int:-9223372036854775809", &error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_provider_override(p, "c=int:4294967296", &error), AKUNU_OK);
    ck_assert_int_eq(ak_meta_u32(p, "c", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ak_provider_close(p);
    free(b.data);

    /* No file has names enough; a sum of counts may be as large. */
    struct ak_name_index index;
    ck_assert_int_eq(ak_name_index_alloc(&index, (size_t)UINT32_MAX + 1, &error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "4294967296 names, where at most 2^32 - 1 are supported");
}
END_TEST

/* ---- Split files -------------------------------------------------------- */
/* n_tensors is what it says of all parts; 0: nothing. */
static struct test_bytes make_part(uint32_t no, uint32_t count, uint32_t n_tensors,
                                   const char *tensor)
{
    struct test_bytes b = begin(tensor != NULL, 3);
    add_u32(&b, "split.no", U32, no);
    add_u32(&b, "split.count", U32, count);
    add_u32(&b, n_tensors ? "split.tensors.count" : "split.other", U32, n_tensors);
    if (tensor)
        add_tensor(&b, tensor, 8, 0, 0, TYPE_F32, 0);
    add_data(&b, 32);
    return b;
}

/* A second part that says this, beside the first of two with one tensor each. */
static void check_parts(struct test_bytes first, struct test_bytes second, const char *message)
{
    struct test_folder folder = test_folder_begin();
    struct ak_provider *p = NULL;
    struct ak_error error = { 0 };
    test_write(&folder, "m-00001-of-00002.gguf", first.data, first.n);
    test_write(&folder, "m-00002-of-00002.gguf", second.data, second.n);
    ak_status status = ak_provider_open(test_in(&folder, "m-00001-of-00002.gguf"), &p, &error);
    if (message)
        ck_assert_msg(status != AKUNU_OK && strstr(error.message, message),
                      "\"%s\" where \"%s\" is expected", error.message, message);
    else
        ck_assert_msg(status == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
    test_folder_end(&folder);
    free(first.data);
    free(second.data);
}

static void check_second(struct test_bytes second, const char *message)
{
    check_parts(make_part(0, 2, 2, "a"), second, message);
}

START_TEST(splits)
{
    check_refused(make_part(0, 100000, 1, "a"),
                  "metadata split.count is 100000, where at most 99999 is possible");
    check_refused(make_part(2, 2, 1, "a"), "metadata split.no is 2 in a file of 2 split parts");
    check_refused(make_part(0, 2, 1, "a"),
                  "open the first part, named *-00001-of-00002.gguf, with the others beside it");
    struct test_bytes b = begin(0, 1);
    add_u32(&b, "split.count", I32, UINT32_MAX);
    check_refused(b, "metadata split.count is not a count");

    check_second(make_part(1, 2, 2, "b"), NULL);
    check_parts(make_part(0, 2, 0, "a"), make_part(1, 2, 2, "b"), NULL);
    check_second(make_part(0, 2, 2, "b"),
                 "says that it is part 1 of 2, where part 2 of 2 is expected");
    check_second(make_part(1, 3, 2, "b"),
                 "says that it is part 2 of 3, where part 2 of 2 is expected");
    check_second(make_part(1, 2, 2, NULL),
                 "metadata split.tensors.count is 2, but the 2 parts have 1 tensors");
    check_second(make_part(1, 2, 2, "a"), "tensor a is there twice");
    b = make_part(1, 2, 2, "b");
    b.data[3] = 'G';
    check_second(b, "the file does not begin with \"GGUF\"");
    b = make_part(1, 2, 2, "b");
    b.n -= 1;
    check_second(b, "beyond the end of the file");

    /* A name shorter than the ending of a part's. */
    struct test_folder folder = test_folder_begin();
    struct ak_provider *p = NULL;
    struct ak_error error = { 0 };
    b = make_part(0, 2, 2, "a");
    test_write(&folder, "m.gguf", b.data, b.n);
    free(b.data);
    ck_assert_int_eq(chdir(folder.path), 0);
    ck_assert_int_eq(ak_provider_open("m.gguf", &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "open the first part, named *-00001-of-00002.gguf"), "%s",
                  error.message);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gguf_checks");
    TCase *files = tcase_create("files"), *tensor_list = tcase_create("tensors"),
          *metadata = tcase_create("metadata");
    tcase_add_test(files, counts);
    tcase_add_test(files, versions);
    tcase_add_test(files, names);
    tcase_add_test(files, alignments);
    tcase_add_test(files, ends);
    tcase_add_test(files, splits);
    tcase_add_test(tensor_list, tensors);
    tcase_add_test(tensor_list, neighbors);
    tcase_add_test(metadata, values);
    tcase_add_test(metadata, vocabularies);
    tcase_add_test(metadata, ids_of_no_token);
    tcase_add_test(metadata, numbers);
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, tensor_list);
    suite_add_tcase(suite, metadata);
    return test_run(suite);
}

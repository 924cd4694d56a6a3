#include "tests/gguf_files.h"

#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *test_path(const char *name)
{
    static char path[4096];
    const char *folder = getenv("AK_TEST_DATA");
    ck_assert_msg(folder != NULL, "AK_TEST_DATA is not set");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

struct test_bytes test_read(const char *name)
{
    struct test_bytes bytes = { 0 };
    uint8_t block[4096];
    FILE *f = fopen(test_path(name), "rb");
    ck_assert_msg(f != NULL, "%s cannot be read", name);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        test_append(&bytes, block, n);
    fclose(f);
    return bytes;
}

void test_append(struct test_bytes *bytes, const void *data, size_t n)
{
    if (bytes->n + n + 1 > bytes->capacity) {
        bytes->capacity = 2 * (bytes->n + n + 1);
        bytes->data = realloc(bytes->data, bytes->capacity);
        ck_assert_ptr_nonnull(bytes->data);
    }
    if (n > 0)
        memcpy(bytes->data + bytes->n, data, n);
    bytes->n += n;
    bytes->data[bytes->n] = 0;
}

static void append_little_endian(struct test_bytes *bytes, uint64_t value, unsigned n)
{
    uint8_t b[8];
    for (unsigned i = 0; i < n; i++)
        b[i] = (uint8_t)(value >> 8 * i);
    test_append(bytes, b, n);
}

void test_append_u32(struct test_bytes *bytes, uint32_t value)
{
    append_little_endian(bytes, value, 4);
}

void test_append_u64(struct test_bytes *bytes, uint64_t value)
{
    append_little_endian(bytes, value, 8);
}

void test_append_text(struct test_bytes *bytes, const char *text)
{
    test_append_u64(bytes, strlen(text));
    test_append(bytes, text, strlen(text));
}

/* Appends hexadecimal digits up to `end`. */
static void append_hex(struct test_bytes *bytes, const char *hex, const char *end)
{
    for (; hex + 1 < end; hex += 2) {
        char digits[3] = { hex[0], hex[1], 0 };
        uint8_t byte = (uint8_t)strtoul(digits, NULL, 16);
        test_append(bytes, &byte, 1);
    }
}

/* HEX or HEX+N*HEX+HEX, as tests/golden/gguf_data.py writes them. */
static struct test_bytes read_insert(const char *text)
{
    struct test_bytes bytes = { 0 };
    const char *plus = strchr(text, '+'), *end = text + strlen(text);
    test_append(&bytes, "", 0);
    append_hex(&bytes, text, plus ? plus : end);
    if (!plus)
        return bytes;
    char *star;
    unsigned long times = strtoul(plus + 1, &star, 10);
    const char *second = strchr(plus + 1, '+');
    ck_assert(*star == '*' && second != NULL);
    for (unsigned long i = 0; i < times; i++)
        append_hex(&bytes, star + 1, second);
    append_hex(&bytes, second + 1, end);
    return bytes;
}

/* OFFSET:REMOVED:INSERT */
static void splice(struct test_bytes *bytes, const char *change)
{
    char *next;
    size_t offset = strtoul(change, &next, 10);
    ck_assert(*next == ':');
    size_t removed = strtoul(next + 1, &next, 10);
    ck_assert(*next == ':' && offset + removed <= bytes->n);
    struct test_bytes insert = read_insert(next + 1), result = { 0 };
    test_append(&result, bytes->data, offset);
    test_append(&result, insert.data, insert.n);
    test_append(&result, bytes->data + offset + removed, bytes->n - offset - removed);
    free(insert.data);
    free(bytes->data);
    *bytes = result;
}

void test_each_hostile(void (*fn)(const struct test_hostile *file, void *user), void *user)
{
    struct test_bytes lines = test_read("gguf/malformed.txt");
    char *next_line;
    for (char *line = strtok_r((char *)lines.data, "\n", &next_line); line;
         line = strtok_r(NULL, "\n", &next_line)) {
        struct test_hostile file = { .bytes = test_read("gguf/good.gguf") };
        char *next;
        snprintf(file.name, sizeof file.name, "%s", strtok_r(line, " ", &next));
        file.accept = strcmp(strtok_r(NULL, " ", &next), "accept") == 0;
        for (char *change; (change = strtok_r(NULL, " ", &next));)
            splice(&file.bytes, change);
        fn(&file, user);
        free(file.bytes.data);
    }
    free(lines.data);
}

bool test_open_sparse(struct test_bytes bytes, uint64_t n, ak_status *status,
                      struct ak_provider **out, struct ak_error *error)
{
    char path[] = "/tmp/akunu-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes.data, bytes.n), (ssize_t)bytes.n);
    bool made = ftruncate(fd, (off_t)n) == 0;
    close(fd);
    if (made)
        *status = ak_provider_open(path, out, error);
    unlink(path);
    return made && *status != AKUNU_ERROR_MEMORY;
}

ak_status test_open(struct test_bytes bytes, struct ak_provider **out, struct ak_error *error)
{
    ak_status status = AKUNU_OK;
    test_open_sparse(bytes, bytes.n, &status, out, error);
    return status;
}

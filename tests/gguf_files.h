/* Files for tests: those below tests/data, and model files, most of them GGUF, damaged or
 * synthetic. */
#ifndef AK_TESTS_GGUF_FILES_H
#define AK_TESTS_GGUF_FILES_H

#include "files/weights/provider.h"

struct test_bytes {
    uint8_t *data; /* from malloc; 0 follows the n bytes, so that text is a string */
    size_t n, capacity;
};

/* The path of a file below tests/data; valid until the next call. */
const char *test_path(const char *name);

/* Its contents; the test fails where it cannot be read. */
struct test_bytes test_read(const char *name);

void test_append(struct test_bytes *bytes, const void *data, size_t n);
void test_append_u32(struct test_bytes *bytes, uint32_t value);
void test_append_u64(struct test_bytes *bytes, uint64_t value);
void test_append_text(struct test_bytes *bytes, const char *text); /* a GGUF string */

/* A line of gguf/malformed.txt made into a file. */
struct test_hostile {
    char name[64];
    bool accept;
    struct test_bytes bytes;
};

/* Calls `fn` for each of them; the bytes are freed afterwards. */
void test_each_hostile(void (*fn)(const struct test_hostile *file, void *user), void *user);

/* Writes a temporary file, opens it as a model file and removes its name. */
ak_status test_open(struct test_bytes bytes, struct ak_provider **out, struct ak_error *error);

/* The same of a file of n bytes of which only the first ones are written, the others a hole that
 * reads as zeros. False where the file system or the address space has no room for it. */
bool test_open_sparse(struct test_bytes bytes, uint64_t n, ak_status *status,
                      struct ak_provider **out, struct ak_error *error);

#endif

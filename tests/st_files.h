/* SafeTensors files and checkpoint folders, synthetic and damaged, for tests of files/weights/ and
 * conversion/convert/. */
#ifndef AK_TESTS_ST_FILES_H
#define AK_TESTS_ST_FILES_H

#include "akunu/core.h"
#include "tests/gguf_files.h"

/* A folder of its own below /tmp; test_folder_end removes it with its files. */
struct test_folder {
    char path[64];
};
struct test_folder test_folder_begin(void);
void test_folder_end(const struct test_folder *folder);

/* Valid until the next call. */
const char *test_in(const struct test_folder *folder, const char *name);
void test_write(const struct test_folder *folder, const char *name, const void *data, size_t n);
void test_write_text(const struct test_folder *folder, const char *name, const char *text);
/* A header's length, the header and the data. */
void test_write_st(const struct test_folder *folder, const char *name, const char *header,
                   const void *data, size_t n);

/* A header and its data, tensor by tensor. */
struct test_st {
    struct test_bytes header, data;
};
void test_st_add(struct test_st *st, const char *name, const char *dtype, const char *shape,
                 const void *data, size_t n);
/* Closes the header, with n_spaces spaces behind it, writes and frees. */
void test_st_write(struct test_st *st, const struct test_folder *folder, const char *name,
                   unsigned n_spaces);

/* akunu_convert for a model that has weights alone: a file without a vocabulary needs to be
 * asked for. */
enum akunu_status test_convert_weights(const char *from, const char *to);

#endif

#include "tests/st_files.h"

#include "tests/test.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "akunu/akunu.h"

struct test_folder test_folder_begin(void)
{
    struct test_folder folder = { "/tmp/akunu-test-XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(folder.path));
    return folder;
}

/* A folder with what is in it. */
static void remove_folder(const char *path)
{
    char name[512];
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        ck_assert_int_lt(snprintf(name, sizeof name, "%s/%s", path, entry->d_name),
                         (int)sizeof name);
        if (unlink(name) != 0)
            remove_folder(name);
    }
    closedir(dir);
    rmdir(path);
}

void test_folder_end(const struct test_folder *folder)
{
    remove_folder(folder->path);
}

const char *test_in(const struct test_folder *folder, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return path;
}

static void put(FILE *f, const void *data, size_t n)
{
    if (n > 0)
        ck_assert_uint_eq(fwrite(data, 1, n, f), n);
}

void test_write(const struct test_folder *folder, const char *name, const void *data, size_t n)
{
    FILE *f = fopen(test_in(folder, name), "wb");
    ck_assert_ptr_nonnull(f);
    put(f, data, n);
    ck_assert_int_eq(fclose(f), 0);
}

void test_write_text(const struct test_folder *folder, const char *name, const char *text)
{
    test_write(folder, name, text, strlen(text));
}

void test_write_st(const struct test_folder *folder, const char *name, const char *header,
                   const void *data, size_t n)
{
    struct test_bytes file = { 0 };
    test_append_text(&file, header);
    if (n > 0)
        test_append(&file, data, n);
    test_write(folder, name, file.data, file.n);
    free(file.data);
}

void test_st_add(struct test_st *st, const char *name, const char *dtype, const char *shape,
                 const void *data, size_t n)
{
    char entry[512];
    snprintf(entry, sizeof entry,
             "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
             st->header.n ? "," : "{", name, dtype, shape, st->data.n, st->data.n + n);
    test_append(&st->header, entry, strlen(entry));
    if (n > 0)
        test_append(&st->data, data, n);
}

void test_st_write(struct test_st *st, const struct test_folder *folder, const char *name,
                   unsigned n_spaces)
{
    test_append(&st->header, "}", 1);
    for (unsigned i = 0; i < n_spaces; i++)
        test_append(&st->header, " ", 1);
    test_write_st(folder, name, (const char *)st->header.data, st->data.data, st->data.n);
    free(st->header.data);
    free(st->data.data);
    *st = (struct test_st){ 0 };
}

enum akunu_status test_convert_weights(const char *from, const char *to)
{
    struct akunu_convert_params params;
    akunu_convert_params_default(&params, sizeof params);
    params.no_vocab = true;
    return akunu_convert(from, to, &params);
}

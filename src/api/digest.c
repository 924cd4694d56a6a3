/* The SHA-256 of a model's files. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "akunu/akunu.h"
#include "api/handles.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

static ak_status fail_read(struct ak_error *error, const char *path)
{
    return ak_fail(error, AKUNU_ERROR_IO, "%s cannot be read: %s", path, strerror(errno));
}

struct reading {
    struct ak_sha256 hash;
    akunu_cancel_fn *cancel; /* NULL allowed */
    void *user;
};

static ak_status add_file(struct reading *r, const char *path, struct ak_error *error)
{
    enum { CHUNK = 1 << 20 };
    FILE *file = fopen(path, "rbe");
    char *bytes = ak_alloc(1, CHUNK);
    ak_status status = !file ? fail_read(error, path) :
                       bytes ? AKUNU_OK :
                               ak_fail_memory(error, "reading a file", CHUNK);
    for (size_t n = CHUNK; status == AKUNU_OK && n == CHUNK;) {
        n = fread(bytes, 1, CHUNK, file);
        ak_sha256_add(&r->hash, bytes, n);
        if (r->cancel && r->cancel(r->user))
            status = ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled");
    }
    if (status == AKUNU_OK && ferror(file))
        status = fail_read(error, path);
    if (file)
        fclose(file);
    ak_free(bytes);
    return status;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds the name and the digest of a file in a folder; nothing for what is no file. */
static ak_status hash_entry(struct reading *r, const char *dir, const char *name,
                            struct ak_error *error)
{
    uint8_t digest[AK_SHA256_BYTES];
    struct reading own = { .cancel = r->cancel, .user = r->user };
    struct stat st;
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = ak_alloc(1, n);
    if (!path)
        return ak_fail_memory(error, "a path", n);
    snprintf(path, n, "%s/%s", dir, name);
    ak_status status = stat(path, &st) == 0 ? AKUNU_OK : fail_read(error, path);
    if (status == AKUNU_OK && S_ISREG(st.st_mode)) {
        ak_sha256_begin(&own.hash);
        status = add_file(&own, path, error);
        ak_sha256_end(&own.hash, digest);
        ak_sha256_add(&r->hash, name, strlen(name) + 1);
        ak_sha256_add(&r->hash, digest, sizeof digest);
    }
    ak_free(path);
    return status;
}

static ak_status add_folder(struct reading *r, const char *path, struct ak_error *error)
{
    struct dirent **entries;
    ak_status status = AKUNU_OK;
    int n = scandir(path, &entries, is_visible, compare_names);
    if (n < 0)
        return fail_read(error, path);
    for (int i = 0; i < n; i++) {
        if (status == AKUNU_OK)
            status = hash_entry(r, path, entries[i]->d_name, error);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static ak_status digest(struct reading *r, const char *path, char out[AK_SHA256_HEX_BYTES],
                        struct ak_error *error)
{
    struct stat st;
    if (!path || !out)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the path, or the digest, is NULL");
    if (stat(path, &st) != 0)
        return fail_read(error, path);
    ak_sha256_begin(&r->hash);
    AK_TRY(S_ISDIR(st.st_mode) ? add_folder(r, path, error) : add_file(r, path, error));
    ak_sha256_end_hex(&r->hash, out);
    return AKUNU_OK;
}

enum akunu_status akunu_path_sha256(const char *path, akunu_cancel_fn *cancel, void *user,
                                    char out[65])
{
    struct ak_error error = { 0 };
    struct reading reading = { .cancel = cancel, .user = user };
    digest(&reading, path, out, &error);
    return ak_api_finish(&error);
}

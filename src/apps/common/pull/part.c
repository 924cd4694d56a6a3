/* Part files of downloads: their state, their space, and their place when they are whole. */
#include "apps/common/pull/part.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "apps/common/message.h"

enum { MAX_CHUNKS = 1024, STATE_VERSION = 1 };
static const int64_t min_chunk = 8 << 20; /* a request takes about a second at 60 Mbit/s */

static bool is_same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

int app_part_open(struct app_part *part, const char *path, const char *key)
{
    *part = (struct app_part){ .path = path, .fd = -1, .size = -1 };
    snprintf(part->key, sizeof part->key, "%s", key);
    if (asprintf(&part->state, "%s.state", path) < 0) {
        part->state = NULL;
        return app_fail_memory();
    }
    part->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (part->fd < 0)
        return app_fail("%s: %s", path, strerror(errno));
    if (flock(part->fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(part->fd, path))
        return APP_EXIT_OK;
    close(part->fd);
    part->fd = -1;
    return app_fail("%s: another program is downloading it; try again when it is there", path);
}

/* ---- State -------------------------------------------------------------- */
static bool has_text(const json_t *state, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(state, name));
    return value && strcmp(value, text) == 0;
}

static bool read_done(struct app_part *part, const json_t *state)
{
    const json_t *done = json_object_get(state, "done");
    if (json_integer_value(json_object_get(state, "chunk")) != part->chunk ||
        json_array_size(done) != part->n_chunks)
        return false;
    for (size_t i = 0; i < part->n_chunks; i++) {
        part->done[i] = json_integer_value(json_array_get(done, i));
        if (part->done[i] < 0 || part->done[i] > app_part_chunk_length(part, i))
            return false;
    }
    return true;
}

/* Whether the state is of this version of the file, and the file has its length. */
static bool resume(struct app_part *part)
{
    struct stat st;
    json_t *state = json_load_file(part->state, 0, NULL);
    bool ok = (*part->etag || *part->modified) && fstat(part->fd, &st) == 0 &&
              st.st_size == part->size &&
              json_integer_value(json_object_get(state, "version")) == STATE_VERSION &&
              json_integer_value(json_object_get(state, "size")) == part->size &&
              has_text(state, "url", part->key) && has_text(state, "etag", part->etag) &&
              has_text(state, "modified", part->modified) && read_done(part, state);
    json_decref(state);
    if (!ok)
        memset(part->done, 0, part->n_chunks * sizeof *part->done);
    return ok;
}

bool app_write_json(const char *path, const json_t *value)
{
    char *temporary;
    if (asprintf(&temporary, "%s.new", path) < 0)
        return false;
    bool ok = json_dump_file(value, temporary, JSON_COMPACT) == 0 && rename(temporary, path) == 0;
    if (!ok)
        (void)unlink(temporary);
    free(temporary);
    return ok;
}

void app_part_save(struct app_part *part, double seconds)
{
    double now = app_seconds();
    if (part->size < 0 || (!*part->etag && !*part->modified) || now - part->saved < seconds)
        return;
    part->saved = now;
    (void)fdatasync(part->fd); /* the state never tells of bytes that a crash would lose */
    json_t *done = json_array();
    for (size_t i = 0; i < part->n_chunks; i++)
        json_array_append_new(done, json_integer(part->done[i]));
    json_t *state =
        json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:o}", "version", STATE_VERSION, "url", part->key,
                  "etag", part->etag, "modified", part->modified, "size", (json_int_t)part->size,
                  "chunk", (json_int_t)part->chunk, "done", done);
    if (state)
        (void)app_write_json(part->state, state);
    json_decref(state);
}

/* ---- Space -------------------------------------------------------------- */
static int check_space(const struct app_part *part)
{
    struct statvfs fs;
    struct stat st;
    if (fstatvfs(part->fd, &fs) != 0 || fstat(part->fd, &st) != 0)
        return APP_EXIT_OK;
    double free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    double needed = (double)part->size - 512.0 * (double)st.st_blocks;
    if (needed <= free_bytes)
        return APP_EXIT_OK;
    return app_fail("%s: not enough space: %.1f MB are needed, and %.1f MB are free", part->path,
                    needed / 1e6, free_bytes / 1e6);
}

/* Reserves the whole length, so that a full disk shows now. */
static int reserve_space(struct app_part *part)
{
    if (part->size <= 0)
        return APP_EXIT_OK;
    if (fallocate(part->fd, 0, 0, part->size) == 0)
        return APP_EXIT_OK;
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR)
        if (ftruncate(part->fd, part->size) == 0)
            return APP_EXIT_OK;
    return app_fail("%s: no space for %.1f MB: %s", part->path, (double)part->size / 1e6,
                    strerror(errno));
}

int app_part_begin(struct app_part *part, int64_t size, const char *etag, const char *modified,
                   bool may_resume)
{
    part->size = size;
    snprintf(part->etag, sizeof part->etag, "%s", etag);
    snprintf(part->modified, sizeof part->modified, "%s", modified);
    part->chunk = size < 0 ? INT64_MAX : size / MAX_CHUNKS + 1;
    if (part->chunk < min_chunk)
        part->chunk = min_chunk;
    part->n_chunks = size <= 0 ? 1 : (size_t)((size - 1) / part->chunk + 1);
    free(part->done);
    part->done = calloc(part->n_chunks, sizeof *part->done);
    if (!part->done)
        return app_fail_memory();
    if (may_resume && resume(part))
        return APP_EXIT_OK;
    (void)unlink(part->state);
    if (ftruncate(part->fd, 0) != 0)
        return app_fail("%s: %s", part->path, strerror(errno));
    int code = size > 0 ? check_space(part) : APP_EXIT_OK;
    return code == APP_EXIT_OK ? reserve_space(part) : code;
}

/* ---- Chunks ------------------------------------------------------------- */
int64_t app_part_chunk_length(const struct app_part *part, size_t i)
{
    if (part->size < 0)
        return INT64_MAX;
    return i + 1 < part->n_chunks ? part->chunk : part->size - (int64_t)i * part->chunk;
}

int64_t app_part_have(const struct app_part *part)
{
    int64_t have = 0;
    for (size_t i = 0; i < part->n_chunks; i++)
        have += part->done[i];
    return have;
}

bool app_part_is_whole(const struct app_part *part)
{
    return part->size >= 0 && app_part_have(part) == part->size;
}

/* ---- The end ------------------------------------------------------------ */
static void sync_folder_of(const char *path)
{
    char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = '\0';
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            (void)fsync(fd);
            close(fd);
        }
    }
    free(folder);
}

int app_part_place(struct app_part *part, const char *path)
{
    if (fsync(part->fd) != 0 || rename(part->path, path) != 0)
        return app_fail("%s: %s", path, strerror(errno));
    sync_folder_of(path);
    (void)unlink(part->state);
    return APP_EXIT_OK;
}

void app_part_remove(struct app_part *part)
{
    (void)unlink(part->path);
    (void)unlink(part->state);
    part->size = -1; /* nothing is left to go on from */
}

void app_part_close(struct app_part *part)
{
    struct stat st;
    if (part->fd >= 0 && fstat(part->fd, &st) == 0 && st.st_size == 0 &&
        is_same_file(part->fd, part->path))
        (void)unlink(part->path); /* nothing was received */
    if (part->fd >= 0)
        close(part->fd);
    free(part->state);
    free(part->done);
    *part = (struct app_part){ .fd = -1 };
}

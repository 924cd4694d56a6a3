/* A download that is not whole: its file, and beside it which bytes of it are there and of which
 * version of the file, so that a later run goes on. */
#ifndef AK_APPS_COMMON_PULL_PART_H
#define AK_APPS_COMMON_PULL_PART_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file in chunks, each of which grows from its start. */
struct app_part {
    const char *path;
    char *state; /* path of the state */
    int fd;
    int64_t size;  /* of the whole file; -1: not known, and then nothing can be resumed */
    int64_t chunk; /* bytes of each chunk but the last */
    size_t n_chunks;
    int64_t *done; /* bytes of each chunk that are there */
    char key[512], etag[128], modified[64];
    double saved; /* app_seconds() */
};

/* Opens and locks PATH. `key` identifies the file on the network. Returns APP_EXIT_OK, or another
 * code after a message. Call app_part_close in any case. */
int app_part_open(struct app_part *part, const char *path, const char *key);

/* Prepares the file for `size` bytes of the version that the validators name, "" if there are none.
 * Keeps what an earlier run left of the same version, if `may_resume`. Checks the free space.
 * Returns APP_EXIT_OK, or another code after a message. */
int app_part_begin(struct app_part *part, int64_t size, const char *etag, const char *modified,
                   bool may_resume);

int64_t app_part_chunk_length(const struct app_part *part, size_t i);
int64_t app_part_have(const struct app_part *part);
bool app_part_is_whole(const struct app_part *part);

/* Writes the state, if the last one is older than `seconds`. A failure is no error: a later run has
 * less to go on from. */
void app_part_save(struct app_part *part, double seconds);

/* Flushes the file and moves it to `path`; the state is removed. */
int app_part_place(struct app_part *part, const char *path);

/* Removes the file and the state. */
void app_part_remove(struct app_part *part);
void app_part_close(struct app_part *part);

/* Writes a small file so that it appears whole: JSON. False: errno says why. */

bool app_write_json(const char *path, const json_t *value);

#endif

/* A download that is not whole: its file, and beside it which bytes of it are there and of which
 * version of the file, so that a later run goes on. */
#ifndef AK_APPS_COMMON_PULL_PART_H
#define AK_APPS_COMMON_PULL_PART_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file in chunks, each of which grows from its start. */
struct cli_part {
    const char *path;
    char *state; /* path of the state */
    int fd;
    int64_t size;  /* of the whole file; -1: not known, and then nothing can be resumed */
    int64_t chunk; /* bytes of each chunk but the last */
    size_t n_chunks;
    int64_t *done; /* bytes of each chunk that are there */
    char key[512], etag[128], modified[64];
    double saved; /* cli_seconds() */
};

/* Opens and locks PATH. `key` identifies the file on the network. Returns CLI_EXIT_OK, or another
 * code after a message. Call cli_part_close in any case. */
int cli_part_open(struct cli_part *part, const char *path, const char *key);

/* Prepares the file for `size` bytes of the version that the validators name, "" if there are none.
 * Keeps what an earlier run left of the same version, if `may_resume`. Checks the free space.
 * Returns CLI_EXIT_OK, or another code after a message. */
int cli_part_begin(struct cli_part *part, int64_t size, const char *etag, const char *modified,
                   bool may_resume);

int64_t cli_part_chunk_length(const struct cli_part *part, size_t i);
int64_t cli_part_have(const struct cli_part *part);
bool cli_part_is_whole(const struct cli_part *part);

/* Writes the state, if the last one is older than `seconds`. A failure is no error: a later run has
 * less to go on from. */
void cli_part_save(struct cli_part *part, double seconds);

/* Flushes the file and moves it to `path`; the state is removed. */
int cli_part_place(struct cli_part *part, const char *path);

/* Removes the file and the state. */
void cli_part_remove(struct cli_part *part);
void cli_part_close(struct cli_part *part);

/* Writes a small file so that it appears whole: JSON. False: errno says why. */

bool cli_write_json(const char *path, const json_t *value);

#endif

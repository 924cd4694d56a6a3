/* A temporary file without a name, in TMPDIR or /tmp, that is appended to and then read: what comes
 * through a pipe or from memory, and streams that are rewritten for the decoders. */
#ifndef AK_SPEECH_AUDIO_SPOOL_H
#define AK_SPEECH_AUDIO_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ak_spool {
    int fd; /* −1: not opened yet */
    int64_t n;
};

static inline struct ak_spool ak_spool_none(void)
{
    return (struct ak_spool){ .fd = -1 };
}

/* Appends n bytes; the first call makes the file. Messages begin with `name`.
 * AKUNU_ERROR_IO: the file cannot be made, or the disk is full. */
ak_status ak_spool_add(struct ak_spool *s, const char *name, const void *bytes, size_t n,
                       struct ak_error *error);

/* Appends what `fd` gives up to its end. */
ak_status ak_spool_drain(struct ak_spool *s, const char *name, int fd, struct ak_error *error);

/* Reads n bytes at `at`. False: they are not there. */
bool ak_spool_read(const struct ak_spool *s, int64_t at, void *bytes, size_t n);

void ak_spool_close(struct ak_spool *s);

#endif

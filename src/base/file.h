/* Mapped files and a cursor that cannot leave its bounds. */
#ifndef AK_BASE_FILE_H
#define AK_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A whole regular file, mapped read-only. */
struct ak_file {
    char *path;
    const uint8_t *data; /* NULL where the file is empty */
    uint64_t bytes;
    int64_t mtime_ns;       /* identity for caches, with bytes */
    uint64_t device, inode; /* the same file has the same, whatever its path */
    int fd;                 /* open where data is not NULL, −1 once it was given back */
};

/* Maps `path`. Refused with AKUNU_ERROR_FORMAT: anything but a regular file
 * (pipe, device, folder: named in the message), and what cannot be opened.
 * Never blocks on a pipe. On failure *out is all zero. */
ak_status ak_file_open(const char *path, struct ak_file *out, struct ak_error *error);

/* Accepts an all-zero struct. */
void ak_file_close(struct ak_file *file);

/* Gives the descriptor back and keeps the map: for models of more files than a process may
 * have open. */
void ak_file_release(struct ak_file *file);

/* What will become of the pages of [offset, offset + bytes), which lies in the
 * file. Reading them stays possible whatever was said. */
enum ak_file_advice {
    AK_FILE_WILLNEED,  /* read soon: the disk may begin */
    AK_FILE_DONTNEED,  /* not read for now: out of this process */
    AK_FILE_DROP_CACHE /* nor by a later one: out of the page cache, where no other process maps
                          them */
};
void ak_file_advise(const struct ak_file *file, uint64_t offset, uint64_t bytes,
                    enum ak_file_advice advice);
/* The same by address; does nothing where the bytes lie outside the file's map. */
void ak_file_advise_at(const struct ak_file *file, const void *data, uint64_t bytes,
                       enum ak_file_advice advice);

/* Reads little-endian values from [next, end). After a read beyond the end
 * `failed` stays true and every read returns false. */
struct ak_cursor {
    const uint8_t *begin, *next, *end;
    bool failed;
};

struct ak_cursor ak_cursor_init(const void *data, uint64_t bytes);
uint64_t ak_cursor_bytes_left(const struct ak_cursor *c);
uint64_t ak_cursor_offset(const struct ak_cursor *c);
bool ak_cursor_read_u8(struct ak_cursor *c, uint8_t *out);
bool ak_cursor_read_u16(struct ak_cursor *c, uint16_t *out);
bool ak_cursor_read_u32(struct ak_cursor *c, uint32_t *out);
bool ak_cursor_read_u64(struct ak_cursor *c, uint64_t *out);
/* Gives a pointer to the next n bytes and passes them. */
bool ak_cursor_read_bytes(struct ak_cursor *c, uint64_t n, const uint8_t **out);

#endif

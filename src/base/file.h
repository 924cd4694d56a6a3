/* Read-only mapped files, and a bounds-checked cursor over bytes, so that damaged files are never
 * read past their end. */
#ifndef AK_BASE_FILE_H
#define AK_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A whole regular file, mapped read-only. */
struct ak_file {
    char *path;
    const uint8_t *data; /* NULL: the file is empty */
    uint64_t bytes;
    int64_t mtime_ns;       /* with `bytes`: part of the fingerprint for caches */
    uint64_t device, inode; /* identify the file, whatever its path */
    bool has_name;          /* false: deleted, or never in a folder */
    int fd;                 /* −1: released by ak_file_release; unused if data is NULL */
};

/* Maps `path`. AKUNU_ERROR_FORMAT: it cannot be opened, or is not a regular file (the message
 * names its kind). Never blocks on a pipe. On failure *out is all zero. */
ak_status ak_file_open(const char *path, struct ak_file *out, struct ak_error *error);

/* Maps the file of a descriptor, which stays the caller's. `path` is the system's name of the file;
 * if unknown, "descriptor N". AKUNU_ERROR_ARGUMENT: not open. AKUNU_ERROR_FORMAT: not a regular
 * file, or not open for reading. */
ak_status ak_file_open_fd(int fd, struct ak_file *out, struct ak_error *error);

/* Accepts an all-zero struct. */
void ak_file_close(struct ak_file *file);

/* Closes the descriptor and keeps the map: for models of more files than a process may have
 * open. */
void ak_file_release(struct ak_file *file);

/* Memory advice for the pages of [offset, offset + bytes). Reading them stays possible. */
enum ak_file_advice {
    AK_FILE_WILLNEED,   /* read soon: the kernel may read ahead */
    AK_FILE_DONTNEED,   /* not read for now: unmapped from this process */
    AK_FILE_DROP_CACHE, /* the same, and dropped from the page cache if no process maps them */
    AK_FILE_RANDOM,     /* the kernel reads what is asked for, and nothing around it */
    /* there is a copy: unmapped, and not mapped again with its neighbors */
    AK_FILE_COPIED
};
void ak_file_advise(const struct ak_file *file, uint64_t offset, uint64_t bytes,
                    enum ak_file_advice advice);
/* The same by address. Does nothing unless the bytes are inside the map. */
void ak_file_advise_at(const struct ak_file *file, const void *data, uint64_t bytes,
                       enum ak_file_advice advice);

/* Reads little-endian values from [next, end). A read beyond the end sets `failed`; then every
 * read returns false. */
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
/* Sets *out to the next n bytes and skips them. */
bool ak_cursor_read_bytes(struct ak_cursor *c, uint64_t n, const uint8_t **out);

#endif

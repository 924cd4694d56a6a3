/* The cache folder and its files: packed weights of models, keys and values of prompts.
 * engine/pack/ and engine/persist/ write the contents; this layer names, locks, checks, lists and
 * removes the files, for the host too (api/cache.c). opencl/ keeps its compiled programs in the
 * subfolder opencl, engine/session/ its measured chip profiles in the folder itself.
 *
 * The folder holds
 *
 *     KEY.packed          packed weights; KEY is 32 hexadecimal digits
 *     KEY.prompt          keys and values of a text (engine/persist/save.h)
 *     KEY.packed.part     temporary files: being written and locked (flock) by their writer;
 *     KEY.prompt.part     without a lock, left by an interrupted writer
 *
 * A file is a header of one page, then the block: packed weights from 2 MiB on, a text's right
 * after the header.
 *
 *     0     "akunuPKD" ("akunuKVS" of a text), version u32, byte order u32
 *     16    bytes of the block u64, time of building i64 (seconds since 1970)
 *     32    the key, 32 bytes
 *     64    the model file: bytes u64, time of change i64 (ns)
 *     80    tokens of a text u64, reserved u64
 *     96    backend, 32 bytes; path of the model file, 2048; both end in zeros
 *     2176  of a text: hash of its tokens and of its pages' hashes, 16 bytes
 *     4064  SHA-256 of all before
 *
 * The header is written last, after a sync of the block: it is the ready marker. The file's time of
 * change is set to the time of building in whole seconds: a file that was written to since then is
 * known to be damaged.
 *
 * Whoever maps packed weights holds a shared lock (flock), so that the limit of the folder removes
 * nothing that is in use. */
#ifndef AK_FILES_STORE_STORE_H
#define AK_FILES_STORE_STORE_H

#include "base/error.h"
#include "base/hash.h"
#include "files/weights/provider.h"

enum {
    AK_STORE_VERSION = 1,
    AK_STORE_HEADER_BYTES = 4096,
    AK_STORE_BLOCK_OFFSET = 2 << 20, /* offset of a packed block in its file */
    AK_STORE_BACKEND_BYTES = 32,
    AK_STORE_SOURCE_BYTES = 2048,
    AK_STORE_KEY_DIGITS = 32,
    AK_STORE_NAME_BYTES = 64
};
/* The suffix of a cache file's name; TEMP: of the temporary file. */
#define AK_STORE_PACKED_SUFFIX ".packed"
#define AK_STORE_PACKED_TEMP_SUFFIX ".packed.part"
#define AK_STORE_PROMPT_SUFFIX ".prompt"
#define AK_STORE_PROMPT_TEMP_SUFFIX ".prompt.part"

enum ak_store_kind { AK_STORE_PACKED = 0, AK_STORE_PROMPT = 1 };

struct ak_store_key {
    uint8_t digest[AK_SHA256_BYTES];
};

/* "KEY" and a suffix. */
void ak_store_file_name(const struct ak_store_key *key, const char *suffix,
                        char name[AK_STORE_NAME_BYTES]);

/* ---- One file (file.c) -------------------------------------------------- */
struct ak_store_header {
    enum ak_store_kind kind;
    uint64_t block_bytes; /* of a prompt: everything after the header */
    int64_t built;
    struct ak_store_key key;
    uint64_t source_bytes;
    int64_t source_mtime_ns;
    char backend[AK_STORE_BACKEND_BYTES];
    char source[AK_STORE_SOURCE_BYTES]; /* absolute path of the model file; "": too long */
    uint64_t n_tokens;                  /* prompts only, as `digest` */
    uint64_t digest[2];
};

void ak_store_header_write(const struct ak_store_header *header,
                           uint8_t page[AK_STORE_HEADER_BYTES]);
/* False: not a header that this version wrote. */
bool ak_store_header_read(const uint8_t page[AK_STORE_HEADER_BYTES], struct ak_store_header *out);

/* True if `fd` is a complete cache file, unchanged since it was built, that no other user can write
 * to. */
bool ak_store_check(int fd, struct ak_store_header *out);

/* Fills in the header's fields about the model file. */
void ak_store_header_set_source(struct ak_store_header *header, const struct ak_provider *source);

/* A writer's progress, stored where the header will be. put: false if the write failed; get: false
 * if there is none. */
bool ak_store_put_progress(int fd, uint64_t done, uint64_t total);
bool ak_store_get_progress(int fd, uint64_t *done, uint64_t *total);

/* ---- Writing (write.c) -------------------------------------------------- */
/* A file being written: `temp_name` of the folder, locked by the caller. */
struct ak_store_writer {
    int dir, fd;
    const char *temp_name, *name;
    struct ak_store_header header; /* `built` is filled in */
};

/* Writes n bytes at offset `at`. Returns errno, 0: success. */
int ak_store_write(int fd, const void *from, size_t n, uint64_t at);

/* Syncs the block in writer->fd, writes the header and renames the file to writer->name. Returns
 * errno, 0: success. */
int ak_store_commit(struct ak_store_writer *writer);

/* Checks for free space for a cache of that many bytes. Returns NULL, or the reason against it. */
const char *ak_store_check_space(int dir, uint64_t bytes, uint64_t available_memory);
/* Bytes that a new file may take: what is free without the reserve. UINT64_MAX: unknown. */
uint64_t ak_store_free_space(int dir);

/* ---- The folder (dir.c) ------------------------------------------------- */
/* $AKUNU_CACHE_DIR, $XDG_CACHE_HOME/akunu or ~/.cache/akunu; NULL: none is set, or out of memory.
 * The caller frees it. */
char *ak_store_default_dir(void);

/* Opens the folder; `make` creates it with its parents if absent. -1: errno. */
int ak_store_open_dir(const char *path, bool make);

/* Opens the folder, or the nearest of its parents that exists. -1: errno. */
int ak_store_open_nearest(const char *path);

/* Opens a file for inspection, without changing its time of use. -1: errno. */
int ak_store_open_file(int dir, const char *name);

/* Opens and locks `temp_name` in the folder, and truncates it. -1: *busy is true if another process
 * writes it, else errno. */
int ak_store_lock_temp(int dir, const char *temp_name, bool *busy);

struct ak_store_entry {
    char name[AK_STORE_NAME_BYTES];
    enum ak_store_kind kind;
    enum akunu_cache_state state;
    uint64_t bytes;                /* on disk */
    int64_t built, used;           /* seconds since 1970; built 0: unknown */
    struct ak_store_header header; /* if state is READY or STALE */
};

/* Lists all cache files, by name. The caller frees *entries. */
ak_status ak_store_list(int dir, struct ak_store_entry **entries, size_t *n,
                        struct ak_error *error);

/* Removes a file. False: it is being written (errno EBUSY) or cannot be removed. */
bool ak_store_remove(int dir, const char *name);

/* As ak_store_remove, unless a process has locked the file (errno EBUSY). Packed weights are locked
 * while a process has them mapped. */
bool ak_store_remove_unused(int dir, const char *name);

/* ---- Evicting (evict.c) ------------------------------------------------- */
/* The entries are those of ak_store_list; what is removed has bytes 0 afterwards. */

/* Removes every abandoned temporary file, and the packed caches that `keep` replaces, those of the
 * same model file and backend. */
void ak_store_evict_replaced(int dir, struct ak_store_entry *entries, size_t n, const char *keep,
                             const struct ak_store_header *header);

/* Bytes that all packed weights may take unless the host says otherwise: a fifth of the disk. */
uint64_t ak_store_default_limit(int dir);

/* Removes the least recently used files of a kind until all of it take at most `bytes_max`. Neither
 * `keep` nor a file in use is removed. Logs each removal at `level`. */
void ak_store_evict_oldest(int dir, struct ak_store_entry *entries, size_t n,
                           enum ak_store_kind kind, const char *keep, uint64_t bytes_max,
                           const struct ak_log *log, enum akunu_log_level level);

/* True if the folder has no file of this kind except `name`. */
bool ak_store_is_first(const struct ak_store_entry *entries, size_t n, enum ak_store_kind kind,
                       const char *name);

/* "0.4 kB", "12.3 MB", "4.5 GB" */
enum { AK_STORE_SIZE_BYTES = 32 };
const char *ak_store_show_size(uint64_t bytes, char out[AK_STORE_SIZE_BYTES]);

#endif

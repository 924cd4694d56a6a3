/* The cache folder: its place, and the names, locks, list and removal of its files. */
#include "files/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system.h"

static char *join_path(const char *folder, const char *below)
{
    size_t n = strlen(folder) + strlen(below) + 1;
    char *path = ak_alloc(n, 1);
    if (path)
        snprintf(path, n, "%s%s", folder, below);
    return path;
}

char *ak_store_default_dir(void)
{
    const char *own = ak_env("AKUNU_CACHE_DIR"), *cache = ak_env("XDG_CACHE_HOME"),
               *home = ak_env("HOME");
    if (own)
        return join_path(own, "");
    if (cache && cache[0] == '/') /* the XDG specification: relative paths are ignored */
        return join_path(cache, "/akunu");
    return home && home[0] == '/' ? join_path(home, "/.cache/akunu") : NULL;
}

static bool make_folders(const char *path)
{
    char *prefix = join_path(path, "");
    if (!prefix)
        return false;
    for (char *slash = strchr(prefix + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(prefix, 0700); /* only the last one matters */
        *slash = '/';
    }
    bool made = mkdir(prefix, 0700) == 0 || errno == EEXIST;
    ak_free(prefix);
    return made;
}

int ak_store_open_dir(const char *path, bool make)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT && make && path[0] != '\0' && make_folders(path))
        dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir;
}

int ak_store_open_nearest(const char *path)
{
    char *prefix = join_path(path, "");
    int dir = -1;
    errno = ENOMEM;
    while (prefix) {
        char *slash = strrchr(prefix, '/');
        dir = ak_store_open_dir(prefix[0] ? prefix : ".", false);
        if (dir >= 0 || errno != ENOENT || prefix[0] == '\0' || strcmp(prefix, "/") == 0)
            break;
        if (slash == prefix)
            slash++; /* the root */
        *(slash ? slash : prefix) = '\0';
    }
    int failed = errno;
    ak_free(prefix);
    errno = failed;
    return dir;
}

/* Only the file's owner may use O_NOATIME. */
int ak_store_open_file(int dir, const char *name)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(dir, name, flags | O_NOATIME);
    return fd < 0 && errno == EPERM ? openat(dir, name, flags) : fd;
}

/* True if `fd` is still the file called `name`, and this user's alone. */
static bool is_own(int dir, const char *name, int fd)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino &&
           S_ISREG(named.st_mode) && named.st_nlink == 1 && named.st_uid == geteuid();
}

int ak_store_lock_temp(int dir, const char *temp_name, bool *busy)
{
    *busy = false;
    /* The file may be renamed or removed between open and lock: try again. */
    for (int tries = 0; tries < 16; tries++) {
        int fd =
            openat(dir, temp_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
            return -1;
        int failed = flock(fd, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
        *busy = failed == EWOULDBLOCK;
        if (!failed && is_own(dir, temp_name, fd)) {
            if (ftruncate(fd, 0) == 0 && fchmod(fd, 0600) == 0)
                return fd;
            failed = errno;
        }
        close(fd);
        if (failed) {
            errno = failed;
            return -1;
        }
    }
    errno = EPERM;
    return -1;
}

void ak_store_file_name(const struct ak_store_key *key, const char *suffix,
                        char name[AK_STORE_NAME_BYTES])
{
    for (int i = 0; i < AK_STORE_KEY_DIGITS / 2; i++)
        snprintf(name + 2 * i, 3, "%02x", key->digest[i]);
    snprintf(name + AK_STORE_KEY_DIGITS, AK_STORE_NAME_BYTES - AK_STORE_KEY_DIGITS, "%s", suffix);
}

/* ---- What is there ------------------------------------------------------ */
/* Meaning of a file name: 32 hexadecimal digits and a suffix. */
struct parsed_name {
    enum ak_store_kind kind;
    bool is_temp;
};

static bool parse_name(const char *name, struct parsed_name *out)
{
    static const struct {
        const char *suffix;
        struct parsed_name parsed;
    } suffixes[] = {
        { AK_STORE_PACKED_SUFFIX, { AK_STORE_PACKED, false } },
        { AK_STORE_PACKED_TEMP_SUFFIX, { AK_STORE_PACKED, true } },
        { AK_STORE_PROMPT_SUFFIX, { AK_STORE_PROMPT, false } },
        { AK_STORE_PROMPT_TEMP_SUFFIX, { AK_STORE_PROMPT, true } },
    };
    if (strspn(name, "0123456789abcdef") != AK_STORE_KEY_DIGITS)
        return false;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(name + AK_STORE_KEY_DIGITS, suffixes[i].suffix) == 0) {
            *out = suffixes[i].parsed;
            return true;
        }
    return false;
}

/* READY if the model file is unchanged, or unknown. */
static enum akunu_cache_state state_of(const struct ak_store_header *header)
{
    struct stat st;
    if (header->source[0] == '\0')
        return AKUNU_CACHE_READY;
    if (stat(header->source, &st) != 0 || (uint64_t)st.st_size != header->source_bytes ||
        (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec != header->source_mtime_ns)
        return AKUNU_CACHE_STALE;
    return AKUNU_CACHE_READY;
}

static bool read_store_entry(int dir, const char *name, struct parsed_name parsed,
                             struct ak_store_entry *out)
{
    *out = (struct ak_store_entry){ .kind = parsed.kind, .state = AKUNU_CACHE_DAMAGED };
    memcpy(out->name, name, strlen(name)); /* fits: parse_name() checked it */
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    out->bytes = (uint64_t)st.st_blocks * 512;
    out->used = st.st_atim.tv_sec;
    if (!S_ISREG(st.st_mode))
        return true;
    int fd = ak_store_open_file(dir, name);
    if (fd < 0)
        return errno != ENOENT;
    if (parsed.is_temp) {
        out->state = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK ?
                         AKUNU_CACHE_BUILDING :
                         AKUNU_CACHE_UNFINISHED;
    } else if (ak_store_check(fd, &out->header) && out->header.kind == parsed.kind) {
        out->state = state_of(&out->header);
        out->built = out->header.built;
    }
    close(fd);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ak_store_entry *)a)->name,
                  ((const struct ak_store_entry *)b)->name);
}

ak_status ak_store_list(int dir, struct ak_store_entry **entries, size_t *n, struct ak_error *error)
{
    *entries = NULL;
    *n = 0;
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* fdopendir takes ownership */
    DIR *folder = own >= 0 ? fdopendir(own) : NULL;
    if (!folder) {
        if (own >= 0)
            close(own);
        return ak_fail(error, AKUNU_ERROR_IO, "the cache folder cannot be read");
    }
    ak_status status = AKUNU_OK;
    struct parsed_name parsed;
    for (struct dirent *at; status == AKUNU_OK && (at = readdir(folder)) != NULL;) {
        if (!parse_name(at->d_name, &parsed))
            continue;
        struct ak_store_entry *more = ak_realloc(*entries, *n + 1, sizeof *more);
        if (!more) {
            status = ak_fail_memory(error, "the list of caches", (*n + 1) * sizeof *more);
            break;
        }
        *entries = more;
        *n += read_store_entry(dir, at->d_name, parsed, &more[*n]);
    }
    closedir(folder);
    if (status != AKUNU_OK) {
        ak_free(*entries);
        *entries = NULL;
        *n = 0;
    } else if (*n > 0) {
        qsort(*entries, *n, sizeof **entries, by_name);
    }
    return status;
}

/* Under the file's lock, so that nobody starts to write or to map it meanwhile. */
static bool remove_locked(int dir, const char *name, int flags)
{
    int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        errno = EBUSY;
        return false;
    }
    bool removed = unlinkat(dir, name, 0) == 0;
    int failed = errno;
    if (fd >= 0)
        close(fd);
    errno = failed;
    return removed;
}

static bool remove_file(int dir, const char *name, bool unused)
{
    struct parsed_name parsed;
    if (!parse_name(name, &parsed)) {
        errno = EINVAL;
        return false;
    }
    if (parsed.is_temp)
        return remove_locked(dir, name, O_RDWR);
    return unused ? remove_locked(dir, name, O_RDONLY) : unlinkat(dir, name, 0) == 0;
}

bool ak_store_remove(int dir, const char *name)
{
    return remove_file(dir, name, false);
}

bool ak_store_remove_unused(int dir, const char *name)
{
    return remove_file(dir, name, true);
}

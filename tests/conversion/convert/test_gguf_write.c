/* The GGUF writer alone: the bytes that gguf's own writer makes, the widths of numbers, what GGUF
 * cannot have, and a system that refuses or interrupts any of its calls. */
#include "tests/test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "conversion/convert/gguf_write.h"
#include "tests/st_files.h"

/* ---- The system --------------------------------------------------------- */
/* The linker sends the writer's calls through these (tests/local.mk). A call whose error is set
 * fails with it. */
static struct {
    int open, open_temporary, open_folder, access, write, fallocate, linkat, rename, fsync,
        fsync_folder, fstatvfs, getrandom;
    size_t short_write; /* writes take at most so many bytes, and every other one is interrupted;
                           0: all */
    bool takes_nothing; /* writes take no byte */
} faults;
static struct {
    size_t n_writes, largest_write, n_open, n_close, n_temporary;
    uint64_t reserved;
    int descriptor_flags;
    char opened[256], renamed_from[256];
} seen;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
int __real_fallocate(int fd, int mode, off_t at, off_t n);
int __wrap_fallocate(int fd, int mode, off_t at, off_t n);
int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fstatvfs(int fd, struct statvfs *out);
int __wrap_fstatvfs(int fd, struct statvfs *out);
ssize_t __real_getrandom(void *out, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t n, unsigned flags);

static bool fails(int error)
{
    errno = error ? error : errno;
    return error != 0;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, unsigned) : 0;
    va_end(list);
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (unnamed)
        snprintf(seen.opened, sizeof seen.opened, "%s", path);
    if (flags & (O_WRONLY | O_DIRECTORY))
        ck_assert_int_ne(flags & O_CLOEXEC, 0);
    if (fails(unnamed                              ? faults.open :
              flags & O_CREAT                      ? faults.open_temporary :
              (flags & O_DIRECTORY) == O_DIRECTORY ? faults.open_folder :
                                                     0))
        return -1;
    int fd = __real_open(path, flags, mode);
    seen.n_open += fd >= 0;
    seen.n_temporary += fd >= 0 && (flags & O_CREAT);
    return fd;
}

int __wrap_close(int fd)
{
    seen.n_close += fd >= 0;
    return __real_close(fd);
}

int __wrap_access(const char *path, int mode)
{
    return fails(faults.access) ? -1 : __real_access(path, mode);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    seen.n_writes++;
    seen.largest_write = n > seen.largest_write ? n : seen.largest_write;
    if (fails(faults.write))
        return -1;
    if (faults.takes_nothing)
        return 0;
    if (faults.short_write && seen.n_writes % 2)
        return fails(EINTR) ? -1 : 0;
    return __real_write(fd, bytes,
                        faults.short_write && n > faults.short_write ? faults.short_write : n);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t n)
{
    ck_assert(mode == 0 && at == 0);
    seen.reserved = (uint64_t)n;
    return fails(faults.fallocate) ? -1 : __real_fallocate(fd, mode, at, n);
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return fails(faults.linkat) ? -1 : __real_linkat(from_dir, from, to_dir, to, flags);
}

int __wrap_rename(const char *from, const char *to)
{
    snprintf(seen.renamed_from, sizeof seen.renamed_from, "%s", from);
    return fails(faults.rename) ? -1 : __real_rename(from, to);
}

int __wrap_fsync(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return fails(S_ISDIR(st.st_mode) ? faults.fsync_folder : faults.fsync) ? -1 : 0;
}

int __wrap_fstatvfs(int fd, struct statvfs *out)
{
    (void)fd;
    *out = (struct statvfs){ .f_bavail = 3, .f_frsize = 4096, .f_bsize = 512 };
    return fails(faults.fstatvfs) ? -1 : 0;
}

ssize_t __wrap_getrandom(void *out, size_t n, unsigned flags)
{
    (void)flags;
    memset(out, 0xab, n);
    return fails(faults.getrandom) ? -1 : (ssize_t)n;
}

/* ---- Files -------------------------------------------------------------- */
static struct test_folder folder;

static void set_up(void)
{
    memset(&faults, 0, sizeof faults);
    memset(&seen, 0, sizeof seen);
    folder = test_folder_begin();
}

static void tear_down(void)
{
    memset(&faults, 0, sizeof faults);
    test_folder_end(&folder);
}

static size_t files_in(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static struct test_bytes read_file(const char *path)
{
    struct test_bytes bytes = { 0 };
    uint8_t block[65536];
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        test_append(&bytes, block, n);
    fclose(f);
    return bytes;
}

/* Every entry, in the calls' order. */
static void put_entries(struct ak_gguf_writer *w)
{
    static const struct ak_text texts[] = { { "a", 1 }, { "", 0 }, { "bcd", 3 } };
    ak_gguf_writer_put_u32(w, "u32", 0x01020304);
    ak_gguf_writer_put_f32(w, "f32", 1.5f);
    ak_gguf_writer_put_bool(w, "yes", true);
    ak_gguf_writer_put_bool(w, "no", false);
    ak_gguf_writer_put_string(w, "string", "text");
    ak_gguf_writer_put_text(w, "text", (struct ak_text){ "in\0side", 7 });
    ak_gguf_writer_put_texts(w, "texts", texts, 3);
    ak_gguf_writer_put_floats(w, "floats", (const float[]){ 0.5f, -2.0f }, 2);
    ak_gguf_writer_put_ints(w, "ints", (const int32_t[]){ -1, 7, 8 }, 3);
    ak_gguf_writer_put_bytes(w, "bytes", (struct ak_text){ "\1\2\3\xff", 4 });
}

/* The same by the specification: key, kind and value, little-endian. */
static void expect_key(struct test_bytes *b, const char *key, uint32_t kind)
{
    test_append_text(b, key);
    test_append_u32(b, kind);
}

static void expect_array(struct test_bytes *b, const char *key, uint32_t kind, uint64_t n)
{
    expect_key(b, key, 9);
    test_append_u32(b, kind);
    test_append_u64(b, n);
}

static void expect_entries(struct test_bytes *b)
{
    expect_key(b, "u32", 4);
    test_append_u32(b, 0x01020304);
    expect_key(b, "f32", 6);
    test_append_u32(b, 0x3fc00000);
    expect_key(b, "yes", 7);
    test_append(b, "\1", 1);
    expect_key(b, "no", 7);
    test_append(b, "\0", 1);
    expect_key(b, "string", 8);
    test_append_text(b, "text");
    expect_key(b, "text", 8);
    test_append_u64(b, 7);
    test_append(b, "in\0side", 7);
    expect_array(b, "texts", 8, 3);
    test_append_text(b, "a");
    test_append_text(b, "");
    test_append_text(b, "bcd");
    expect_array(b, "floats", 6, 2);
    test_append_u32(b, 0x3f000000);
    test_append_u32(b, 0xc0000000);
    expect_array(b, "ints", 5, 3);
    test_append_u32(b, UINT32_MAX);
    test_append_u32(b, 7);
    test_append_u32(b, 8);
    expect_array(b, "bytes", 0, 4);
    test_append(b, "\1\2\3\xff", 4);
}

static void pad(struct test_bytes *b)
{
    while (b->n % 32)
        test_append(b, "\0", 1);
}

/* ---- Bytes -------------------------------------------------------------- */
enum { LARGE_ROWS = 700, LARGE_COLS = 512 }; /* of floats: 1.4 MiB */
static float large[LARGE_ROWS * LARGE_COLS];
static const float small[] = { 1.0f, 2.0f, 3.0f };

struct heard {
    size_t n, stop_at;
    double fractions[64];
};

static bool on_progress(double fraction, void *user)
{
    struct heard *h = user;
    ck_assert_uint_lt(h->n, 64);
    h->fractions[h->n++] = fraction;
    return h->n != h->stop_at;
}

/* Two tensors, the second of which needs no padding. */
static ak_status write_two(const char *path, struct heard *heard, struct ak_error *error)
{
    struct ak_gguf_writer w = ak_gguf_writer_begin(error);
    w.progress = heard ? on_progress : NULL;
    w.user = heard;
    put_entries(&w);
    ak_gguf_writer_put_tensor(&w, "small", AK_QUANT_F32, 1, (const uint64_t[]){ 3 });
    ak_gguf_writer_put_tensor(&w, "large", AK_QUANT_F32, 3,
                              (const uint64_t[]){ 7, LARGE_ROWS / 7, LARGE_COLS });
    ak_gguf_writer_open(&w, path);
    if (w.status == AKUNU_OK && w.fd >= 0)
        seen.descriptor_flags = fcntl(w.fd, F_GETFD);
    ak_gguf_writer_write(&w, small, sizeof small);
    ak_gguf_writer_end_tensor(&w);
    for (size_t i = 0; i < 2; i++) /* in two pieces */
        ak_gguf_writer_write(&w, (char *)large + i * 100, i ? sizeof large - 100 : 100);
    ak_gguf_writer_end_tensor(&w);
    return ak_gguf_writer_finish(&w);
}

static struct test_bytes expect_two(void)
{
    struct test_bytes b = { 0 };
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, 2);
    test_append_u64(&b, 10);
    expect_entries(&b);
    test_append_text(&b, "small");
    test_append_u32(&b, 1);
    test_append_u64(&b, 3);
    test_append_u32(&b, 0);
    test_append_u64(&b, 0);
    test_append_text(&b, "large");
    test_append_u32(&b, 3);
    test_append_u64(&b, LARGE_COLS); /* GGUF has the dimensions backwards */
    test_append_u64(&b, LARGE_ROWS / 7);
    test_append_u64(&b, 7);
    test_append_u32(&b, 0);
    test_append_u64(&b, 32);
    pad(&b);
    test_append(&b, small, sizeof small);
    pad(&b);
    test_append(&b, large, sizeof large);
    return b;
}

static const char *new_path(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s", test_in(&folder, "new.gguf"));
    return path;
}

static void check_two(void)
{
    struct ak_error error = { 0 };
    struct test_bytes want = expect_two();
    ak_status status = write_two(new_path(), NULL, &error);
    ck_assert_msg(status == AKUNU_OK, "%s", error.message);
    struct test_bytes got = read_file(new_path());
    ck_assert_uint_eq(got.n, want.n);
    ck_assert_mem_eq(got.data, want.data, want.n);
    ck_assert_uint_eq(seen.reserved, want.n);
    ck_assert_uint_eq(seen.n_open, seen.n_close);
    ck_assert_uint_eq(files_in(folder.path), 1);
    free(got.data);
    free(want.data);
}

static void fill_large(void)
{
    for (size_t i = 0; i < LARGE_ROWS * LARGE_COLS; i++)
        large[i] = (float)i;
}

/* As the specification has them, in writes of at least a megabyte; the file is the user's, and no
 * program that the host starts gets it. */
START_TEST(bytes)
{
    struct stat st;
    mode_t mask = umask(027);
    fill_large();
    check_two();
    ck_assert_uint_eq(seen.n_writes, 2);
    ck_assert(seen.largest_write >= 1 << 20 && seen.largest_write < 3 << 20);
    ck_assert_int_eq(seen.descriptor_flags, FD_CLOEXEC);
    ck_assert_str_eq(seen.opened, folder.path);
    ck_assert_int_eq(stat(new_path(), &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0640);
    umask(mask);
}
END_TEST

/* Data begins at the next multiple of 32, wherever the head ends. */
START_TEST(alignment)
{
    static const char text[33];
    for (uint32_t n = 0; n < 32; n++) {
        struct ak_error error = { 0 };
        struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
        ak_gguf_writer_put_text(&w, "k", (struct ak_text){ text, n });
        ak_gguf_writer_put_tensor(&w, "t", AK_QUANT_Q8_0, 2, (const uint64_t[]){ n + 1, 32 });
        ak_gguf_writer_open(&w, new_path());
        for (uint32_t i = 0; i <= n; i++)
            ak_gguf_writer_write(&w, large, 34);
        ak_gguf_writer_end_tensor(&w);
        ck_assert_int_eq(ak_gguf_writer_finish(&w), AKUNU_OK);
        struct test_bytes got = read_file(new_path());
        size_t head = 24 + (8 + 1 + 4 + 8 + n) + (8 + 1 + 4 + 16 + 4 + 8), data = 34 * (n + 1);
        ck_assert_uint_eq(got.n, (head + 31) / 32 * 32 + (data + 31) / 32 * 32);
        free(got.data);
    }
}
END_TEST

/* Where files need a name, cannot be reserved, or are written in pieces. */
START_TEST(other_systems)
{
    struct stat st;
    mode_t mask = umask(022);
    fill_large();
    struct {
        int open, access, fallocate;
        size_t short_write;
    } cases[] = { { .open = EOPNOTSUPP },
                  { .access = ENOENT },
                  { .fallocate = EOPNOTSUPP },
                  { .short_write = 300000 },
                  { .open = EISDIR, .fallocate = ENOSYS, .short_write = 700001 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        faults.open = cases[i].open;
        faults.access = cases[i].access;
        faults.fallocate = cases[i].fallocate;
        faults.short_write = cases[i].short_write;
        seen.n_temporary = 0;
        check_two();
        ck_assert_uint_eq(seen.n_temporary, cases[i].open || cases[i].access);
        ck_assert_int_eq(stat(new_path(), &st), 0);
        ck_assert_int_eq(st.st_mode & 07777, 0644);
    }
    umask(mask);
    /* the temporary name, of random bytes or without any */
    char want[256];
    snprintf(want, sizeof want, "%s/akunu-abababababababab.part", folder.path);
    ck_assert_str_eq(seen.renamed_from, want);
    faults.getrandom = EAGAIN;
    check_two();
    snprintf(want, sizeof want, "%s/akunu-%016llx.part", folder.path, (unsigned long long)getpid());
    ck_assert_str_eq(seen.renamed_from, want);
}
END_TEST

/* The folder of a path: the root, another, the current one. */
START_TEST(folders)
{
    struct ak_error error = { 0 };
    char before[4096];
    faults.open = EOPNOTSUPP;
    faults.open_temporary = EACCES;
    ck_assert_int_eq(write_two("/new.gguf", NULL, &error), AKUNU_ERROR_IO);
    ck_assert_str_eq(error.message, "/new.gguf: cannot write: Permission denied");
    ck_assert_str_eq(seen.opened, "/");
    ck_assert_int_eq(write_two("/a/b/new.gguf", NULL, &error), AKUNU_ERROR_IO);
    ck_assert_str_eq(seen.opened, "/a/b");
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(folder.path), 0);
    memset(&faults, 0, sizeof faults);
    ck_assert_int_eq(write_two("here.gguf", NULL, &error), AKUNU_OK);
    ck_assert_str_eq(seen.opened, ".");
    ck_assert_int_eq(access(test_in(&folder, "here.gguf"), F_OK), 0);
    ck_assert_int_eq(chdir(before), 0);
}
END_TEST

/* Whatever call fails: the message says why, an old file stays, and nothing else is left. */
START_TEST(failures)
{
    static const struct {
        const char *said;
        int open, open_temporary, open_folder, write, fallocate, linkat, rename, fsync,
            fsync_folder, fstatvfs;
        bool takes_nothing, is_replaced;
    } cases[] = {
        { "cannot write: Permission denied", .open = EOPNOTSUPP, .open_temporary = EACCES },
        { "cannot write: Input/output error", .write = EIO },
        { "cannot write: No space left on device", .takes_nothing = true },
        { "cannot write: File too large", .fallocate = EFBIG },
        { "cannot write: Disk quota exceeded", .fallocate = EDQUOT },
        { "cannot write 1434048 bytes: the disk has room for 12288", .fallocate = ENOSPC },
        { "cannot write 1434048 bytes: the disk has room for 0", .fallocate = ENOSPC,
          .fstatvfs = EIO },
        { "cannot write: Too many links", .linkat = EMLINK },
        { "cannot write: Read-only file system", .rename = EROFS },
        { "cannot write: Read-only file system", .open = EOPNOTSUPP, .rename = EROFS },
        { "cannot write: Input/output error", .fsync = EIO },
        { "cannot write: Disk quota exceeded", .open = EOPNOTSUPP, .fsync = EDQUOT },
        { "cannot write: Input/output error", .fsync_folder = EIO, .is_replaced = true },
        { NULL, .fsync_folder = EINVAL, .is_replaced = true },
        { NULL, .open_folder = EACCES, .is_replaced = true },
    };
    fill_large();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_error error = { 0 };
        memset(&seen, 0, sizeof seen);
        test_write_text(&folder, "new.gguf", "precious");
        faults.open = cases[i].open;
        faults.open_temporary = cases[i].open_temporary;
        faults.open_folder = cases[i].open_folder;
        faults.write = cases[i].write;
        faults.fallocate = cases[i].fallocate;
        faults.linkat = cases[i].linkat;
        faults.rename = cases[i].rename;
        faults.fsync = cases[i].fsync;
        faults.fsync_folder = cases[i].fsync_folder;
        faults.fstatvfs = cases[i].fstatvfs;
        faults.takes_nothing = cases[i].takes_nothing;
        ak_status status = write_two(new_path(), NULL, &error);
        size_t n_open = seen.n_open, n_close = seen.n_close, n_writes = seen.n_writes;
        memset(&faults, 0, sizeof faults);
        ck_assert_int_eq(status, cases[i].said ? AKUNU_ERROR_IO : AKUNU_OK);
        ck_assert_msg(!cases[i].said || strstr(error.message, cases[i].said), "%s: %s",
                      cases[i].said, error.message);
        ck_assert_msg(n_open == n_close, "%s: %zu opened, %zu closed", cases[i].said, n_open,
                      n_close);
        ck_assert_uint_le(n_writes, 2); /* none after a failed one */
        struct test_bytes left = read_file(new_path());
        ck_assert_msg((left.n == 8 && memcmp(left.data, "precious", 8) == 0) ==
                          !cases[i].is_replaced,
                      "%s", cases[i].said);
        ck_assert_msg(files_in(folder.path) == 1, "%s", cases[i].said);
        free(left.data);
    }
}
END_TEST

/* A file of the temporary name, whose ever it is, is neither written nor removed. */
START_TEST(foreign_temporary)
{
    static const char name[] = "akunu-abababababababab.part";
    fill_large();
    for (int named = 0; named < 2; named++) {
        struct ak_error error = { 0 };
        test_write_text(&folder, name, "precious");
        test_write_text(&folder, "new.gguf", "old"); /* only what is replaced needs the name */
        faults.open = named ? EOPNOTSUPP : 0;
        ck_assert_int_eq(write_two(new_path(), NULL, &error), AKUNU_ERROR_IO);
        ck_assert_msg(strstr(error.message, "cannot write: File exists"), "%s", error.message);
        struct test_bytes left = read_file(test_in(&folder, name));
        ck_assert(left.n == 8 && memcmp(left.data, "precious", 8) == 0);
        free(left.data);
        ck_assert_uint_eq(files_in(folder.path), 2);
    }
}
END_TEST

START_TEST(progress)
{
    struct ak_error error = { 0 };
    struct heard all = { 0 };
    fill_large();
    ck_assert_int_eq(write_two(new_path(), &all, &error), AKUNU_OK);
    /* begin, the small tensor, a megabyte, the large one, the end */
    ck_assert_uint_eq(all.n, 5);
    ck_assert(all.fractions[0] == 0.0);
    ck_assert(all.fractions[1] == 32.0 / (32.0 + sizeof large));
    for (size_t i = 2; i < 5; i++)
        ck_assert(all.fractions[i] == 1.0);
    for (size_t i = 1; i <= all.n; i++) {
        struct heard some = { .stop_at = i };
        unlink(new_path());
        ck_assert_int_eq(write_two(new_path(), &some, &error), AKUNU_ERROR_CANCELLED);
        ck_assert_str_eq(error.message, "converting was cancelled");
        ck_assert_uint_eq(some.n, i);
        ck_assert_uint_eq(files_in(folder.path), 0);
    }
    /* without tensors it is done at once */
    struct heard none = { 0 };
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    w.progress = on_progress;
    w.user = &none;
    ak_gguf_writer_open(&w, new_path());
    ck_assert_int_eq(ak_gguf_writer_finish(&w), AKUNU_OK);
    ck_assert(none.n > 0 && none.fractions[0] == 1.0);
    struct test_bytes got = read_file(new_path());
    ck_assert_uint_eq(got.n, 32);
    free(got.data);
}
END_TEST

/* ---- What GGUF cannot have ---------------------------------------------- */
START_TEST(refused)
{
    static const char name63[] = "123456789012345678901234567890123456789012345678901234567890123";
    static const char name64[] = "1234567890123456789012345678901234567890123456789012345678901234";
    static const struct {
        const char *name;
        enum ak_quant_type type;
        unsigned n_dims;
        uint64_t shape[3];
        const char *said; /* NULL: possible */
    } cases[] = {
        { name63, AK_QUANT_Q8_0, 2, { 3, 64 }, NULL },
        { name64, AK_QUANT_F32, 1, { 3 }, "a name of 64 bytes, where llama.cpp reads at most 63" },
        { "x", AK_QUANT_A4, 2, { 3, 64 }, "x: GGUF cannot have it as A4" },
        { "x", AK_QUANT_Q8_0, 2, { 3, 48 }, "x: GGUF cannot have it as Q8_0" },
        { "x", AK_QUANT_F32, 2, { UINT64_MAX / 4, 2 }, "x: GGUF cannot have it as F32" },
        { "x", AK_QUANT_F32, 3, { UINT64_MAX / 4, 2, 2 }, "x: GGUF cannot have it as F32" },
        { "x", AK_QUANT_F32, 1, { UINT64_MAX / 2 }, "x: GGUF cannot have it as F32" },
        { "x", AK_QUANT_F32, 2, { UINT64_MAX / 1024, 256 / 2 - 1 }, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_error error = { 0 };
        struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
        ak_gguf_writer_put_tensor(&w, cases[i].name, cases[i].type, cases[i].n_dims,
                                  cases[i].shape);
        ck_assert_msg(w.status == (cases[i].said ? AKUNU_ERROR_UNSUPPORTED : AKUNU_OK), "case %zu",
                      i);
        ck_assert_uint_eq(w.n_tensors, !cases[i].said);
        if (cases[i].said) {
            /* the first failure sticks, and nothing is written */
            ck_assert_msg(strstr(error.message, cases[i].said), "%s", error.message);
            ak_gguf_writer_put_tensor(&w, name64, AK_QUANT_F32, 1, (const uint64_t[]){ 1 });
            ak_gguf_writer_open(&w, new_path());
            ak_gguf_writer_write(&w, small, sizeof small);
            ak_gguf_writer_end_tensor(&w);
            ck_assert_msg(strstr(error.message, cases[i].said), "%s", error.message);
            ck_assert(w.n_tensors == 0 && w.tensors.n == 0 && w.fd < 0);
        }
        ck_assert_int_eq(ak_gguf_writer_finish(&w),
                         cases[i].said ? AKUNU_ERROR_UNSUPPORTED : AKUNU_OK);
        ck_assert_uint_eq(files_in(folder.path), 0);
    }
    /* the sum of all sizes */
    struct ak_error error = { 0 };
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    ak_gguf_writer_put_tensor(&w, "a", AK_QUANT_F32, 1, (const uint64_t[]){ UINT64_MAX / 8 });
    ak_gguf_writer_put_tensor(&w, "b", AK_QUANT_F32, 1, (const uint64_t[]){ UINT64_MAX / 8 - 32 });
    ck_assert_int_eq(w.status, AKUNU_OK);
    ak_gguf_writer_put_tensor(&w, "c", AK_QUANT_F32, 1, (const uint64_t[]){ UINT64_MAX / 8 });
    ck_assert_int_eq(w.status, AKUNU_ERROR_UNSUPPORTED);
    ck_assert_int_eq(ak_gguf_writer_finish(&w), AKUNU_ERROR_UNSUPPORTED);
    ck_assert(w.fd == -1 && !w.metas.bytes && !w.path && !w.temporary); /* it may be freed again */
    ck_assert_int_eq(ak_gguf_writer_finish(&w), AKUNU_ERROR_UNSUPPORTED);
}
END_TEST

/* ---- Entries of another file -------------------------------------------- */
/* Every kind, as gguf's own writer has it: the same bytes. */
START_TEST(kinds)
{
    struct ak_provider *p;
    struct ak_meta meta;
    struct ak_error error = { 0 };
    ck_assert_int_eq(ak_provider_open(test_path("gguf/kinds.gguf"), &p, &error), AKUNU_OK);
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        ak_gguf_writer_put_meta(&w, p, &meta);
    ak_gguf_writer_open(&w, new_path());
    ck_assert_msg(ak_gguf_writer_finish(&w) == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
    struct test_bytes got = read_file(new_path()), want = test_read("gguf/kinds.gguf");
    pad(&want);
    ck_assert_uint_eq(got.n, want.n);
    ck_assert_mem_eq(got.data, want.data, want.n);
    free(got.data);
    free(want.data);
}
END_TEST

/* Numbers of an override: four bytes if they fit, else eight. */
START_TEST(widths)
{
    static const struct {
        struct ak_meta meta;
        uint32_t kind;
        unsigned bytes;
    } cases[] = {
        { { .kind = AK_META_INT, .as.integer = 0 }, 4, 4 },
        { { .kind = AK_META_INT, .as.integer = UINT32_MAX }, 4, 4 },
        { { .kind = AK_META_INT, .as.integer = INT64_C(4294967296) }, 10, 8 },
        { { .kind = AK_META_INT, .as.integer = INT64_MAX }, 10, 8 },
        { { .kind = AK_META_INT, .as.integer = -1 }, 5, 4 },
        { { .kind = AK_META_INT, .as.integer = INT32_MIN }, 5, 4 },
        { { .kind = AK_META_INT, .as.integer = (int64_t)INT32_MIN - 1 }, 11, 8 },
        { { .kind = AK_META_UINT, .as.unsigned_integer = UINT32_MAX }, 4, 4 },
        { { .kind = AK_META_UINT, .as.unsigned_integer = UINT64_MAX }, 10, 8 },
        { { .kind = AK_META_FLOAT, .as.number = 0.1 }, 6, 4 },
        { { .kind = AK_META_BOOL, .as.boolean = true }, 7, 1 },
        /* whose width the file has */
        { { .kind = AK_META_UINT, .width = 1, .as.unsigned_integer = 200 }, 0, 1 },
        { { .kind = AK_META_INT, .width = 8, .as.integer = 5 }, 11, 8 },
        { { .kind = AK_META_FLOAT, .width = 8, .as.number = 0.1 }, 12, 8 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_error error = { 0 };
        struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
        struct test_bytes want = { 0 };
        struct ak_meta meta = cases[i].meta;
        float rounded = (float)meta.as.number;
        meta.key = "key";
        ak_gguf_writer_put_meta(&w, NULL, &meta);
        ck_assert_int_eq(w.status, AKUNU_OK);
        expect_key(&want, "key", cases[i].kind);
        if (cases[i].kind == 6)
            test_append(&want, &rounded, sizeof rounded);
        else if (meta.kind == AK_META_BOOL)
            test_append(&want, "\1", 1);
        else
            test_append(&want, &meta.as.unsigned_integer, cases[i].bytes);
        ck_assert_msg(w.n_metas == 1 && w.metas.n == want.n, "case %zu: %zu bytes", i, w.metas.n);
        ck_assert_msg(memcmp(w.metas.bytes, want.data, want.n) == 0, "case %zu", i);
        free(want.data);
        ck_assert_int_eq(ak_gguf_writer_finish(&w), AKUNU_OK);
    }
}
END_TEST

START_TEST(nested_array)
{
    struct ak_error error = { 0 };
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    struct ak_meta meta = {
        .key = "a.table", .kind = AK_META_ARRAY, .element_kind = AK_META_ARRAY, .n = 2
    };
    for (unsigned width = 0; width <= 16; width++) {
        meta.width = width;
        ak_gguf_writer_put_meta(&w, NULL, &meta);
        ck_assert_int_eq(w.status, AKUNU_ERROR_UNSUPPORTED);
        ck_assert_str_eq(error.message, "metadata a.table: arrays of arrays are not written");
        ck_assert(w.n_metas == 0 && w.metas.n == 0);
        ak_gguf_writer_put_meta(&w, NULL, &(struct ak_meta){ .key = "b", .kind = meta.kind });
        ck_assert_str_eq(error.message, "metadata a.table: arrays of arrays are not written");
        ck_assert_int_eq(ak_gguf_writer_finish(&w), AKUNU_ERROR_UNSUPPORTED);
        w = ak_gguf_writer_begin(&error);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gguf_write");
    TCase *t = tcase_create("gguf_write");
    tcase_add_checked_fixture(t, set_up, tear_down);
    suite_add_tcase(suite, t);
    tcase_add_test(t, bytes);
    tcase_add_test(t, alignment);
    tcase_add_test(t, other_systems);
    tcase_add_test(t, folders);
    tcase_add_test(t, failures);
    tcase_add_test(t, foreign_temporary);
    tcase_add_test(t, progress);
    tcase_add_test(t, refused);
    tcase_add_test(t, kinds);
    tcase_add_test(t, widths);
    tcase_add_test(t, nested_array);
    return test_run(suite);
}

/* Encodes metadata and tensor list in memory, then writes the file in large pieces. The name
 * appears after fsync: a crash leaves the old file or the new one. */
#include "conversion/convert/gguf_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/utf8.h"
#include "files/weights/formats.h"
#include "files/weights/gguf/gguf.h"

enum { VERSION = 3, HEAD_BYTES = 24, WRITE_BYTES = 1 << 20 };

struct ak_gguf_writer ak_gguf_writer_begin(struct ak_error *error)
{
    return (struct ak_gguf_writer){ .status = AKUNU_OK, .error = error, .fd = -1 };
}

static bool is_ok(const struct ak_gguf_writer *w)
{
    return w->status == AKUNU_OK;
}

static void append_bytes(struct ak_gguf_writer *w, struct ak_buffer *b, const void *bytes, size_t n)
{
    if (is_ok(w))
        w->status = ak_buffer_add(b, bytes, n, w->error);
}

/* Little-endian, as are all machines that akunu runs on. */
static void add_u32(struct ak_gguf_writer *w, struct ak_buffer *b, uint32_t value)
{
    append_bytes(w, b, &value, sizeof value);
}

static void add_u64(struct ak_gguf_writer *w, struct ak_buffer *b, uint64_t value)
{
    append_bytes(w, b, &value, sizeof value);
}

static void append_text(struct ak_gguf_writer *w, struct ak_buffer *b, const char *bytes,
                        uint64_t n)
{
    add_u64(w, b, n);
    append_bytes(w, b, bytes, n);
}

/* ---- Metadata ----------------------------------------------------------- */
static void begin_entry(struct ak_gguf_writer *w, const char *key, enum ak_gguf_kind kind)
{
    append_text(w, &w->metas, key, strlen(key));
    add_u32(w, &w->metas, kind);
    w->n_metas++;
}

static void begin_array(struct ak_gguf_writer *w, const char *key, enum ak_gguf_kind element,
                        uint64_t n)
{
    begin_entry(w, key, AK_GGUF_ARRAY);
    add_u32(w, &w->metas, element);
    add_u64(w, &w->metas, n);
}

void ak_gguf_writer_put_u32(struct ak_gguf_writer *w, const char *key, uint32_t value)
{
    begin_entry(w, key, AK_GGUF_U32);
    add_u32(w, &w->metas, value);
}

void ak_gguf_writer_put_f32(struct ak_gguf_writer *w, const char *key, float value)
{
    begin_entry(w, key, AK_GGUF_F32);
    append_bytes(w, &w->metas, &value, sizeof value);
}

void ak_gguf_writer_put_bool(struct ak_gguf_writer *w, const char *key, bool value)
{
    uint8_t byte = value;
    begin_entry(w, key, AK_GGUF_BOOL);
    append_bytes(w, &w->metas, &byte, 1);
}

void ak_gguf_writer_put_text(struct ak_gguf_writer *w, const char *key, struct ak_text value)
{
    begin_entry(w, key, AK_GGUF_STRING);
    append_text(w, &w->metas, value.bytes, value.n);
}

void ak_gguf_writer_put_string(struct ak_gguf_writer *w, const char *key, const char *value)
{
    ak_gguf_writer_put_text(w, key, (struct ak_text){ value, (uint32_t)strlen(value) });
}

void ak_gguf_writer_put_texts(struct ak_gguf_writer *w, const char *key,
                              const struct ak_text *values, uint32_t n)
{
    begin_array(w, key, AK_GGUF_STRING, n);
    for (uint32_t i = 0; i < n; i++)
        append_text(w, &w->metas, values[i].bytes, values[i].n);
}

void ak_gguf_writer_put_floats(struct ak_gguf_writer *w, const char *key, const float *values,
                               uint32_t n)
{
    begin_array(w, key, AK_GGUF_F32, n);
    append_bytes(w, &w->metas, values, n * sizeof *values);
}

void ak_gguf_writer_put_ints(struct ak_gguf_writer *w, const char *key, const int32_t *values,
                             uint32_t n)
{
    begin_array(w, key, AK_GGUF_I32, n);
    append_bytes(w, &w->metas, values, n * sizeof *values);
}

void ak_gguf_writer_put_bools(struct ak_gguf_writer *w, const char *key, const bool *values,
                              uint32_t n)
{
    begin_array(w, key, AK_GGUF_BOOL, n);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t byte = values[i];
        append_bytes(w, &w->metas, &byte, 1);
    }
}

void ak_gguf_writer_put_bytes(struct ak_gguf_writer *w, const char *key, struct ak_text value)
{
    begin_array(w, key, AK_GGUF_U8, value.n);
    append_bytes(w, &w->metas, value.bytes, value.n);
}

/* The GGUF type of a number or text; AK_GGUF_KINDS if there is none. */
static enum ak_gguf_kind find_kind(enum ak_meta_kind kind, unsigned width)
{
    for (int i = 0; i < AK_GGUF_KINDS; i++)
        if (ak_gguf_kinds[i].meta == kind &&
            (kind == AK_META_STRING || kind == AK_META_BOOL || ak_gguf_kinds[i].bytes == width))
            return (enum ak_gguf_kind)i;
    return AK_GGUF_KINDS;
}

static void add_value(struct ak_gguf_writer *w, const struct ak_meta *meta)
{
    float value_f32 = (float)meta->as.number;
    switch (meta->kind) {
    case AK_META_BOOL: append_bytes(w, &w->metas, &meta->as.boolean, 1); break;
    case AK_META_STRING: append_text(w, &w->metas, meta->as.string, meta->n); break;
    case AK_META_FLOAT:
        append_bytes(w, &w->metas,
                     meta->width == sizeof value_f32 ? (const void *)&value_f32 : &meta->as.number,
                     meta->width);
        break;
    /* little-endian: the low bytes come first */
    default: append_bytes(w, &w->metas, &meta->as.unsigned_integer, meta->width); break;
    }
}

/* A number from an override has no width yet: takes 4 bytes if it fits, as GGUF's keys usually
 * do, else 8. */
static struct ak_meta set_width(struct ak_meta meta)
{
    if (meta.width > 0)
        return meta;
    if (meta.kind == AK_META_INT && meta.as.integer >= 0)
        meta.kind = AK_META_UINT; /* the same bits */
    bool small = meta.kind == AK_META_INT ? meta.as.integer >= INT32_MIN :
                                            meta.as.unsigned_integer <= UINT32_MAX;
    meta.width = meta.kind == AK_META_FLOAT || small ? 4 : 8;
    return meta;
}

void ak_gguf_writer_put_meta(struct ak_gguf_writer *w, const struct ak_provider *p,
                             const struct ak_meta *given)
{
    struct ak_meta element, own = set_width(*given);
    const struct ak_meta *meta = &own;
    bool array = meta->kind == AK_META_ARRAY;
    enum ak_gguf_kind kind = find_kind(array ? meta->element_kind : meta->kind, meta->width);
    if (kind == AK_GGUF_KINDS || kind == AK_GGUF_ARRAY) {
        if (is_ok(w))
            w->status = ak_fail(w->error, AKUNU_ERROR_UNSUPPORTED,
                                "metadata %s: arrays of arrays are not written", meta->key);
        return;
    }
    if (!array) {
        begin_entry(w, meta->key, kind);
        add_value(w, meta);
        return;
    }
    begin_array(w, meta->key, kind, meta->n);
    for (uint64_t i = 0; i < meta->n && ak_provider_element(p, meta, i, &element); i++)
        add_value(w, &element);
}

/* ---- Tensors ------------------------------------------------------------ */
static uint64_t align_up(uint64_t n)
{
    return (n + AK_GGUF_WRITER_ALIGNMENT - 1) / AK_GGUF_WRITER_ALIGNMENT * AK_GGUF_WRITER_ALIGNMENT;
}

void ak_gguf_writer_put_tensor(struct ak_gguf_writer *w, const char *name, enum ak_quant_type type,
                               unsigned n_dims, const uint64_t *shape)
{
    uint32_t number;
    uint64_t bytes;
    if (!is_ok(w))
        return;
    bool possible =
        ak_ggml_type_number(type, &number) && ak_quant_row_bytes(type, shape[n_dims - 1], &bytes);
    for (unsigned d = 0; possible && d + 1 < n_dims; d++)
        possible = ak_mul_u64(bytes, shape[d], &bytes);
    if (!possible || !ak_add_u64(w->data_bytes, align_up(bytes), &bytes)) {
        w->status = ak_fail(w->error, AKUNU_ERROR_UNSUPPORTED, "%s: GGUF cannot have it as %s",
                            name, ak_quant_info(type)->name);
        return;
    }
    if (strlen(name) >= AK_GGUF_WRITER_NAME_BYTES) {
        w->status = ak_fail(w->error, AKUNU_ERROR_UNSUPPORTED,
                            "%s: a name of %zu bytes, where llama.cpp reads at most %d", name,
                            strlen(name), AK_GGUF_WRITER_NAME_BYTES - 1);
        return;
    }
    append_text(w, &w->tensors, name, strlen(name));
    add_u32(w, &w->tensors, n_dims);
    for (unsigned d = n_dims; d-- > 0;)
        add_u64(w, &w->tensors, shape[d]);
    add_u32(w, &w->tensors, number);
    add_u64(w, &w->tensors, w->data_bytes);
    w->data_bytes = bytes;
    w->n_tensors++;
}

/* ---- The file ----------------------------------------------------------- */
ak_status ak_gguf_writer_check_path(const char *path, bool overwrite, struct ak_error *error)
{
    struct stat st;
    char shown[AK_SHOW_BYTES];
    if (stat(path, &st) != 0)
        return AKUNU_OK; /* if it cannot be written, writing reports why */
    ak_show_path(path, shown);
    if (!S_ISREG(st.st_mode))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s: exists and is not a regular file", shown);
    if (!overwrite)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%s: exists already; set `overwrite` (--overwrite) to replace it", shown);
    return AKUNU_OK;
}

static void fail_write(struct ak_gguf_writer *w, int code)
{
    char shown[AK_SHOW_BYTES];
    if (is_ok(w))
        w->status = ak_fail(w->error, AKUNU_ERROR_IO, "%s: cannot write: %s",
                            ak_show_path(w->path, shown), strerror(code));
}

static void report_fraction(struct ak_gguf_writer *w)
{
    double fraction = w->data_bytes ? (double)w->written / (double)w->data_bytes : 1.0;
    if (is_ok(w) && w->progress && !w->progress(fraction < 1.0 ? fraction : 1.0, w->user))
        w->status = ak_fail(w->error, AKUNU_ERROR_CANCELLED, "converting was cancelled");
}

static void flush(struct ak_gguf_writer *w)
{
    for (size_t at = 0; is_ok(w) && at < w->pending.n;) {
        ssize_t n = write(w->fd, w->pending.bytes + at, w->pending.n - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            fail_write(w, n < 0 ? errno : ENOSPC);
        else
            at += (size_t)n;
    }
    w->pending.n = 0;
    report_fraction(w);
}

/* Reserves disk space for the whole file, if the file system can. */
static void reserve_space(struct ak_gguf_writer *w, uint64_t bytes)
{
    char shown[AK_SHOW_BYTES];
    struct statvfs disk;
    if (fallocate(w->fd, 0, 0, (off_t)bytes) == 0)
        return;
    if (errno == EFBIG || errno == EDQUOT) {
        fail_write(w, errno);
    } else if (errno == ENOSPC) {
        uint64_t available =
            fstatvfs(w->fd, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : 0;
        w->status = ak_fail(
            w->error, AKUNU_ERROR_IO, "%s: cannot write %llu bytes: the disk has room for %llu",
            ak_show_path(w->path, shown), (unsigned long long)bytes, (unsigned long long)available);
    }
}

/* ---- Its name ----------------------------------------------------------- */
/* The folder that `path` is in, to be freed. */
static char *copy_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? ak_strndup(path, slash == path ? 1 : (size_t)(slash - path)) :
                   ak_strndup(".", 1);
}

/* Path by which an unnamed file is linked. */
enum { LINK_BYTES = 32 };
static const char *format_link(int fd, char out[LINK_BYTES])
{
    snprintf(out, LINK_BYTES, "/proc/self/fd/%d", fd);
    return out;
}

/* Creates the file without a name if the file system can: then nothing remains if the program ends
 * before the file is whole. */
static void create_file(struct ak_gguf_writer *w)
{
    char link[LINK_BYTES];
    w->fd = open(w->folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    w->is_unnamed = w->fd >= 0 && access(format_link(w->fd, link), F_OK) == 0;
    if (w->is_unnamed)
        return;
    if (w->fd >= 0)
        close(w->fd);
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd < 0)
        fail_write(w, errno);
}

static ak_status alloc_paths(struct ak_gguf_writer *w, const char *path)
{
    uint64_t random;
    size_t n = strlen(path) + 48;
    w->path = ak_strndup(path, strlen(path));
    w->folder = copy_folder(path);
    w->temporary = ak_alloc(n, 1);
    if (!w->path || !w->folder || !w->temporary)
        return ak_fail_memory(w->error, "a path", n);
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random = (uint64_t)getpid();
    snprintf(w->temporary, n, "%s/akunu-%016llx.part", w->folder, (unsigned long long)random);
    return AKUNU_OK;
}

/* Gives an unnamed file its name in one step if the name is free. Only rename replaces a file: then
 * the new one has the name `temporary` first, for a moment. */
static bool name_file(struct ak_gguf_writer *w)
{
    char link[LINK_BYTES];
    if (w->is_unnamed) {
        format_link(w->fd, link);
        if (linkat(AT_FDCWD, link, AT_FDCWD, w->path, AT_SYMLINK_FOLLOW) == 0)
            return true;
        if (errno != EEXIST ||
            linkat(AT_FDCWD, link, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) != 0)
            return false;
    }
    w->is_unnamed = false;
    return rename(w->temporary, w->path) == 0;
}

/* Makes the name survive a power cut, as the data does. Not every file system syncs folders, and
 * not every folder can be opened, so only EIO is an error. */
static void sync_folder(struct ak_gguf_writer *w)
{
    int fd = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fsync(fd) != 0 && errno == EIO)
        fail_write(w, errno);
    close(fd);
}

/* ---- The whole ---------------------------------------------------------- */
/* Writes in pieces, so that `pending` stays small. */
static void write_pieces(struct ak_gguf_writer *w, const char *bytes, size_t n)
{
    for (size_t at = 0, taken; at < n && is_ok(w); at += taken) {
        taken = n - at < WRITE_BYTES ? n - at : WRITE_BYTES;
        append_bytes(w, &w->pending, bytes + at, taken);
        if (w->pending.n >= WRITE_BYTES)
            flush(w);
    }
}

uint64_t ak_gguf_writer_header_bytes(const struct ak_gguf_writer *w)
{
    return align_up(HEAD_BYTES + w->metas.n + w->tensors.n);
}

/* Writes all before the data; has_all: space for all of it is reserved first. */
static void write_head(struct ak_gguf_writer *w, bool has_all)
{
    static const char zeros[AK_GGUF_WRITER_ALIGNMENT];
    struct ak_buffer head = { .n = 0 };
    append_bytes(w, &head, "GGUF", 4);
    add_u32(w, &head, VERSION);
    add_u64(w, &head, w->n_tensors);
    add_u64(w, &head, w->n_metas);
    write_pieces(w, head.bytes, head.n);
    ak_free(head.bytes);
    uint64_t bytes = HEAD_BYTES + w->metas.n + w->tensors.n;
    if (is_ok(w) && has_all)
        reserve_space(w, align_up(bytes) + w->data_bytes);
    write_pieces(w, w->metas.bytes, w->metas.n);
    write_pieces(w, w->tensors.bytes, w->tensors.n);
    write_pieces(w, zeros, align_up(bytes) - bytes);
    report_fraction(w);
}

void ak_gguf_writer_open(struct ak_gguf_writer *w, const char *path)
{
    if (!is_ok(w))
        return;
    w->status = alloc_paths(w, path);
    if (is_ok(w))
        create_file(w);
    write_head(w, true);
}

void ak_gguf_writer_open_memory(struct ak_gguf_writer *w)
{
    static const char name[] = "akunu-plan";
    if (!is_ok(w))
        return;
    w->path = ak_strndup(name, sizeof name - 1);
    w->fd = w->path ? memfd_create(name, MFD_CLOEXEC) : -1;
    if (!w->path)
        w->status = ak_fail_memory(w->error, "a name", sizeof name);
    else if (w->fd < 0)
        fail_write(w, errno);
    write_head(w, false);
}

void ak_gguf_writer_skip_tensor(struct ak_gguf_writer *w, uint64_t bytes)
{
    uint64_t skipped = align_up(w->written + bytes) - w->written;
    if (is_ok(w))
        flush(w);
    if (is_ok(w) && (skipped > INT64_MAX || lseek(w->fd, (off_t)skipped, SEEK_CUR) < 0))
        fail_write(w, EFBIG);
    w->written += skipped;
}

void ak_gguf_writer_write(struct ak_gguf_writer *w, const void *data, size_t n)
{
    w->written += n;
    write_pieces(w, data, n);
}

void ak_gguf_writer_end_tensor(struct ak_gguf_writer *w)
{
    static const char zeros[AK_GGUF_WRITER_ALIGNMENT];
    ak_gguf_writer_write(w, zeros, align_up(w->written) - w->written);
    report_fraction(w);
}

static void complete_file(struct ak_gguf_writer *w)
{
    flush(w);
    if (is_ok(w) && fsync(w->fd) != 0)
        fail_write(w, errno);
    if (is_ok(w) && !name_file(w))
        fail_write(w, errno);
    if (is_ok(w))
        sync_folder(w);
}

static ak_status free_writer(struct ak_gguf_writer *w)
{
    ak_status status = w->status;
    ak_free(w->metas.bytes);
    ak_free(w->tensors.bytes);
    ak_free(w->pending.bytes);
    ak_free(w->path);
    ak_free(w->folder);
    ak_free(w->temporary);
    *w = (struct ak_gguf_writer){ .status = status, .fd = -1 };
    return status;
}

ak_status ak_gguf_writer_finish(struct ak_gguf_writer *w)
{
    bool opened = w->fd >= 0;
    if (opened && is_ok(w))
        complete_file(w);
    if (opened)
        close(w->fd); /* fsync has reported any error of writing */
    if (opened && !is_ok(w) && !w->is_unnamed)
        unlink(w->temporary);
    return free_writer(w);
}

ak_status ak_gguf_writer_finish_memory(struct ak_gguf_writer *w, int *fd)
{
    uint64_t bytes = ak_gguf_writer_header_bytes(w) + w->data_bytes;
    *fd = -1;
    if (is_ok(w))
        flush(w);
    if (is_ok(w) && ftruncate(w->fd, (off_t)bytes) != 0)
        fail_write(w, errno);
    if (is_ok(w))
        *fd = w->fd;
    else if (w->fd >= 0)
        close(w->fd);
    return free_writer(w);
}

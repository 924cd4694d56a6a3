/* The folder that is written: its lock, the journal of what is whole, and the manifest.
 *
 * compress.journal has a line per encoding of a tensor, after one that names the source and the
 * settings, and is removed when the manifest is there. The manifest is manifest.json.part until it
 * is checked.
 *
 * A line is added when its arrays are on disk. What a crash left of the last line is dropped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "conversion/compress/compress.h"

static const char manifest_name[] = "manifest.json", journal_name[] = "compress.journal";
enum { SAMPLE_BYTES = 64, SAMPLES = 4, MAX_FILE_BYTES = 64 << 20 };

const struct ak_compress_encoding_info ak_compress_encodings[AK_COMPRESS_ENCODINGS] = {
    [AK_COMPRESS_INT8] = { "int8", "__q", "__s", 8 },
    [AK_COMPRESS_INT4] = { "int4", "__q4", "__s4", 4 },
    [AK_COMPRESS_INT3] = { "int3", "__q3", "__s3", 3 },
    [AK_COMPRESS_PLAIN] = { "plain", "__pt", NULL, 0 },
};

struct ak_compress_folder {
    int dir, arrays, journal; /* descriptors */
    const char *path;         /* as the caller gave it */
    bool is_new;              /* there was no folder */
    bool has_files;           /* a file was written */
    bool is_old;              /* there was a manifest, to which the encoding is added */
    char source[33];          /* identity of the model that is compressed */
    json_t *manifest;         /* that of before; NULL: none */
    json_t *tensors;          /* of the manifest to be */
    struct ak_error *error;
};

int ak_compress_folder_arrays(const struct ak_compress_folder *f)
{
    return f->arrays;
}

bool ak_compress_folder_is_old(const struct ak_compress_folder *f)
{
    return f->is_old;
}

static ak_status fail_io(const struct ak_compress_folder *f, const char *what, const char *name)
{
    char shown[AK_SHOW_BYTES];
    int code = errno;
    return ak_fail(f->error, AKUNU_ERROR_IO, "%s%s%s: cannot %s: %s", ak_show_path(f->path, shown),
                   *name ? "/" : "", name, what, strerror(code));
}

/* ---- The source --------------------------------------------------------- */
/* Names, shapes and a sample of the bytes of all tensors: the same for a copy of the file. */
static void identify_source(const struct ak_provider *p, char out[33])
{
    uint64_t state[2] = { 1, 2 };
    struct ak_tensor t;
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++) {
        ak_hash128(t.name, strlen(t.name), state);
        ak_hash128(t.shape, t.n_dims * sizeof *t.shape, state);
        ak_hash128(&t.bytes, sizeof t.bytes, state);
        for (uint64_t s = 0; !t.composed_tensor && s < SAMPLES && t.bytes >= SAMPLE_BYTES; s++)
            ak_hash128((const uint8_t *)t.data + (t.bytes - SAMPLE_BYTES) / (SAMPLES - 1) * s,
                       SAMPLE_BYTES, state);
    }
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)state[0], (unsigned long long)state[1]);
}

static uint64_t hash_importance(const struct ak_importance *im)
{
    uint64_t state[2] = { 1, 2 };
    for (size_t i = 0; i < im->n; i++) {
        ak_hash128(im->entries[i].name, strlen(im->entries[i].name), state);
        ak_hash128(im->entries[i].values, im->entries[i].n * sizeof *im->entries[i].values, state);
    }
    return state[0];
}

enum { SETTINGS_BYTES = 128 };
static const char *format_settings(const struct ak_compress_job *j, char out[SETTINGS_BYTES])
{
    snprintf(out, SETTINGS_BYTES, "%s, group %u, importance %016llx, awq %016llx",
             ak_compress_encodings[j->options->encoding].name,
             j->options->group ? j->options->group : 64,
             (unsigned long long)hash_importance(&j->importance),
             (unsigned long long)hash_importance(&j->inputs));
    return out;
}

/* ---- Small files -------------------------------------------------------- */
/* A whole file of the folder, with a NUL; *out NULL: there is none, or it cannot be read. */
static ak_status read_folder_file(const struct ak_compress_folder *f, const char *name, char **out,
                                  size_t *n)
{
    struct stat st;
    *out = NULL;
    *n = 0;
    int fd = openat(f->dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? AKUNU_OK : fail_io(f, "read", name);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES) {
        close(fd);
        return ak_fail(f->error, AKUNU_ERROR_FORMAT, "%s/%s: expected a file of at most %d bytes",
                       f->path, name, MAX_FILE_BYTES);
    }
    char *text = ak_alloc((size_t)st.st_size + 1, 1);
    ssize_t got = 0;
    while (text && (got = read(fd, text + *n, (size_t)st.st_size - *n)) > 0)
        *n += (size_t)got;
    ak_status status = !text   ? ak_fail_memory(f->error, name, (uint64_t)st.st_size) :
                       got < 0 ? fail_io(f, "read", name) :
                                 AKUNU_OK;
    close(fd);
    if (status == AKUNU_OK)
        *out = text;
    else
        ak_free(text);
    return status;
}

ak_status ak_compress_folder_write(struct ak_compress_folder *f, const char *name,
                                   const void *bytes, size_t n)
{
    char part[AK_COMPRESS_NAME_BYTES], outer[AK_COMPRESS_NAME_BYTES];
    const char *slash = strchr(name, '/');
    snprintf(part, sizeof part, "%s.part", name);
    snprintf(outer, sizeof outer, "%.*s", slash ? (int)(slash - name) : 0, name);
    if (slash && mkdirat(f->dir, outer, 0777) != 0 && errno != EEXIST)
        return fail_io(f, "create", outer);
    int fd = openat(f->dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_io(f, "write", name);
    f->has_files = true;
    ak_status status = ak_compress_write_all(fd, name, bytes, n, f->error);
    if (status == AKUNU_OK && (fsync(fd) != 0 || renameat(f->dir, part, f->dir, name) != 0))
        status = fail_io(f, "write", name);
    if (status != AKUNU_OK)
        unlinkat(f->dir, part, 0);
    close(fd);
    return status;
}

/* ---- Entries ------------------------------------------------------------ */
bool ak_compress_make_safe(const char *name, char out[AK_COMPRESS_NAME_BYTES])
{
    size_t n = 0;
    for (const char *c = name; *c; c++) {
        if (*c == '/' || n + 3 > AK_COMPRESS_NAME_BYTES)
            return false;
        out[n++] = *c == '.' ? '_' : *c;
        if (*c == '.')
            out[n++] = '_';
    }
    out[n] = '\0';
    return n > 0;
}

/* Size of an array file; 0: there is none. */
static uint64_t get_size(const struct ak_compress_folder *f, const char *safe, const char *suffix)
{
    char name[AK_COMPRESS_NAME_BYTES + 16];
    struct stat st;
    snprintf(name, sizeof name, "%s%s.npy", safe, suffix);
    return fstatat(f->arrays, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

static bool is_whole(const struct ak_compress_folder *f, const char *name,
                     const struct ak_compress_encoding_info *encoding, const json_t *info)
{
    char safe[AK_COMPRESS_NAME_BYTES];
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(info, "bytes")), files = 1;
    if (!ak_compress_make_safe(name, safe) || get_size(f, safe, "__shape") == 0)
        return false;
    uint64_t found = get_size(f, safe, encoding->numbers);
    if (encoding->scales) {
        found += get_size(f, safe, encoding->scales);
        files++;
    }
    return found == bytes + files * AK_COMPRESS_HEADER_BYTES;
}

/* Puts an encoding into the manifest to be; takes the reference to `info`. */
static ak_status put_entry(struct ak_compress_folder *f, const char *name, json_t *shape,
                           const char *encoding, json_t *info)
{
    json_t *entry = json_object_get(f->tensors, name);
    if (!entry) {
        entry = json_object();
        json_object_set(entry, "shape", shape);
        json_object_set_new(f->tensors, name, entry);
    }
    return json_object_set_new(entry, encoding, info) == 0 ?
               AKUNU_OK :
               ak_fail_memory(f->error, "a manifest", 0);
}

const json_t *ak_compress_folder_find(const struct ak_compress_folder *f,
                                      const struct ak_compress_tensor *t,
                                      enum ak_compress_encoding encoding)
{
    return json_object_get(json_object_get(f->tensors, t->name),
                           ak_compress_encodings[encoding].name);
}

/* Appends a line to the journal; takes the reference. */
static ak_status write_line(struct ak_compress_folder *f, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text)
        return ak_fail_memory(f->error, "a line of the journal", 0);
    size_t n = strlen(text);
    text[n] = '\n'; /* in place of the NUL */
    ak_status status = ak_compress_write_all(f->journal, journal_name, text, n + 1, f->error);
    free(text);
    return status;
}

ak_status ak_compress_folder_add(struct ak_compress_folder *f, const struct ak_compress_tensor *t,
                                 enum ak_compress_encoding encoding, json_t *info)
{
    const char *name = ak_compress_encodings[encoding].name;
    json_t *shape = json_array();
    for (unsigned d = 0; d < t->n_dims; d++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[d]));
    ak_status status = write_line(f, json_pack("{sssssOsO}", "tensor", t->name, "encoding", name,
                                               "shape", shape, "info", info));
    if (status == AKUNU_OK)
        status = put_entry(f, t->name, shape, name, info);
    else
        json_decref(info);
    json_decref(shape);
    return status;
}

/* ---- What earlier runs wrote -------------------------------------------- */
/* Puts a line of the journal if its arrays are whole. */
static ak_status put_line(struct ak_compress_folder *f, json_t *line)
{
    const char *name = json_string_value(json_object_get(line, "tensor")),
               *encoding = json_string_value(json_object_get(line, "encoding"));
    json_t *info = json_object_get(line, "info");
    for (int e = 0; name && encoding && info && e < AK_COMPRESS_ENCODINGS; e++)
        if (strcmp(encoding, ak_compress_encodings[e].name) == 0 &&
            is_whole(f, name, &ak_compress_encodings[e], info))
            return put_entry(f, name, json_object_get(line, "shape"), encoding, json_incref(info));
    return AKUNU_OK;
}

/* The next line of the journal, parsed, and its end; NULL: none is whole. */
static json_t *next_line(const char *text, size_t n, size_t *at)
{
    json_t *line = NULL;
    const char *end = memchr(text + *at, '\n', n - *at);
    if (!end || ak_json_parse(text + *at, (size_t)(end - text) - *at, &line, NULL) != AKUNU_OK)
        return NULL;
    *at = (size_t)(end - text) + 1;
    return line;
}

static bool has_text(const json_t *object, const char *key, const char *expected)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, expected) == 0;
}

/* Goes on behind a journal of the same source and settings; *n: its bytes that count. */
static ak_status read_journal(struct ak_compress_folder *f, const char *settings, const char *text,
                              size_t *n)
{
    size_t at = 0;
    char shown[AK_SHOW_BYTES];
    ak_status status = AKUNU_OK;
    json_t *line = next_line(text, *n, &at);
    bool same = has_text(line, "source", f->source) && has_text(line, "settings", settings);
    json_decref(line);
    if (!same && at > 0)
        return ak_fail(f->error, AKUNU_ERROR_ARGUMENT,
                       "%s: an interrupted run with another source or other settings began it; "
                       "set `overwrite` (--overwrite) to begin anew",
                       ak_show_path(f->path, shown));
    while (status == AKUNU_OK && (line = next_line(text, *n, &at))) {
        status = put_line(f, line);
        json_decref(line);
    }
    *n = at;
    return status;
}

static ak_status begin_journal(struct ak_compress_folder *f, const char *settings)
{
    char *text;
    size_t n;
    AK_TRY(read_folder_file(f, journal_name, &text, &n));
    ak_status status = text ? read_journal(f, settings, text, &n) : AKUNU_OK;
    ak_free(text);
    AK_TRY(status);
    f->journal =
        openat(f->dir, journal_name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (f->journal < 0 || ftruncate(f->journal, (off_t)n) != 0)
        return fail_io(f, "write", journal_name);
    return n > 0 ? AKUNU_OK :
                   write_line(f, json_pack("{ssss}", "source", f->source, "settings", settings));
}

/* Removes the arrays of a list of tensors: of the model that is replaced. */
static void remove_arrays(const struct ak_compress_folder *f, json_t *tensors)
{
    char safe[AK_COMPRESS_NAME_BYTES], file[AK_COMPRESS_NAME_BYTES + 16];
    const char *name;
    json_t *entry;
    json_object_foreach (tensors, name, entry) {
        for (int e = 0; ak_compress_make_safe(name, safe) && e < AK_COMPRESS_ENCODINGS; e++) {
            const char *suffixes[] = { "__shape", ak_compress_encodings[e].numbers,
                                       ak_compress_encodings[e].scales };
            for (int i = 0; i < 3 && suffixes[i]; i++) {
                snprintf(file, sizeof file, "%s%s.npy", safe, suffixes[i]);
                unlinkat(f->arrays, file, 0);
            }
        }
    }
}

static ak_status clear_folder(struct ak_compress_folder *f)
{
    char *text;
    size_t n, at = 0;
    json_t *line;
    AK_TRY(read_folder_file(f, journal_name, &text, &n));
    while (text && (line = next_line(text, n, &at))) {
        put_line(f, line);
        json_decref(line);
    }
    ak_free(text);
    if (unlinkat(f->dir, manifest_name, 0) != 0 && errno != ENOENT)
        return fail_io(f, "remove", manifest_name);
    unlinkat(f->dir, journal_name, 0);
    remove_arrays(f, f->tensors);
    remove_arrays(f, json_object_get(f->manifest, "tensors"));
    json_object_clear(f->tensors);
    json_decref(f->manifest);
    f->manifest = NULL;
    return AKUNU_OK;
}

static bool has_encoding(const json_t *manifest, const char *encoding)
{
    const char *name;
    json_t *entry, *tensors = json_object_get(manifest, "tensors");
    json_object_foreach (tensors, name, entry)
        if (json_object_get(entry, encoding))
            return true;
    return false;
}

/* Whether the encoding may join those of the manifest. */
static ak_status check_manifest(const struct ak_compress_folder *f, const struct ak_compress_job *j)
{
    char shown[AK_SHOW_BYTES];
    const char *encoding = ak_compress_encodings[j->options->encoding].name;
    ak_show_path(f->path, shown);
    if (!has_text(f->manifest, "format", "akunu-npy") ||
        !has_text(f->manifest, "source", f->source))
        return ak_fail(f->error, AKUNU_ERROR_ARGUMENT,
                       "%s: holds another model than this source; set `overwrite` (--overwrite) to "
                       "replace it",
                       shown);
    if (has_encoding(f->manifest, encoding))
        return ak_fail(f->error, AKUNU_ERROR_ARGUMENT,
                       "%s: has %s already; set `overwrite` (--overwrite) to replace the model",
                       shown, encoding);
    if (j->options->awq || json_object_get(f->manifest, "awq"))
        return ak_fail(f->error, AKUNU_ERROR_ARGUMENT,
                       "%s: AWQ changes the norms, which all encodings of a folder share; expected "
                       "another folder",
                       shown);
    return AKUNU_OK;
}

static ak_status read_manifest(struct ak_compress_folder *f, const struct ak_compress_job *j)
{
    char *text;
    size_t n;
    AK_TRY(read_folder_file(f, manifest_name, &text, &n));
    struct ak_error *error = j->options->overwrite ? NULL : f->error; /* then it may be anything */
    ak_status status = text ? ak_json_parse(text, n, &f->manifest, error) : AKUNU_OK;
    ak_free(text);
    if (j->options->overwrite || (status == AKUNU_OK && !f->manifest))
        return AKUNU_OK;
    if (status != AKUNU_OK) {
        ak_error_prefix(f->error, manifest_name);
        return status;
    }
    AK_TRY(check_manifest(f, j));
    f->is_old = true;
    return json_object_update(f->tensors, json_object_get(f->manifest, "tensors")) == 0 ?
               AKUNU_OK :
               ak_fail_memory(f->error, "a manifest", n);
}

/* A folder that is neither empty nor the work of a compressor is not touched. */
static ak_status check_contents(const struct ak_compress_folder *f)
{
    char shown[AK_SHOW_BYTES];
    bool is_empty = true, is_ours = false;
    int fd = dup(f->dir);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        is_empty = is_empty && entry->d_name[0] == '.';
        is_ours = is_ours || strcmp(entry->d_name, manifest_name) == 0 ||
                  strcmp(entry->d_name, journal_name) == 0;
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return is_empty || is_ours ?
               AKUNU_OK :
               ak_fail(f->error, AKUNU_ERROR_ARGUMENT,
                       "%s: is not empty, and no compressed model; expected a new folder",
                       ak_show_path(f->path, shown));
}

static ak_status open_folders(struct ak_compress_folder *f)
{
    char shown[AK_SHOW_BYTES];
    f->is_new = mkdir(f->path, 0777) == 0;
    if (!f->is_new && errno != EEXIST)
        return fail_io(f, "create", "");
    f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir < 0)
        return fail_io(f, "open", "");
    if (flock(f->dir, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return ak_fail(f->error, AKUNU_ERROR_BUSY, "%s: another process is writing it",
                       ak_show_path(f->path, shown));
    AK_TRY(check_contents(f));
    if (mkdirat(f->dir, "tensors", 0777) != 0 && errno != EEXIST)
        return fail_io(f, "create", "tensors");
    f->arrays = openat(f->dir, "tensors", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return f->arrays >= 0 ? AKUNU_OK : fail_io(f, "open", "tensors");
}

ak_status ak_compress_folder_open(struct ak_compress_job *j)
{
    char settings[SETTINGS_BYTES];
    struct ak_compress_folder *f = ak_alloc(1, sizeof *f);
    if (!f)
        return ak_fail_memory(j->error, "a folder", sizeof *f);
    *f = (struct ak_compress_folder){ .dir = -1,
                                      .arrays = -1,
                                      .journal = -1,
                                      .path = j->to,
                                      .tensors = json_object(),
                                      .error = j->error };
    j->folder = f;
    identify_source(j->source, f->source);
    AK_TRY(open_folders(f));
    AK_TRY(read_manifest(f, j));
    if (j->options->overwrite)
        AK_TRY(clear_folder(f));
    return begin_journal(f, format_settings(j, settings));
}

/* ---- The manifest ------------------------------------------------------- */
static json_t *make_manifest(const struct ak_compress_job *j)
{
    const struct ak_compress_folder *f = j->folder;
    json_t *manifest =
        json_pack("{sssisssssssO}", "format", "akunu-npy", "version", 1, "names", "huggingface",
                  "use", ak_compress_encodings[j->options->encoding].name, "source", f->source,
                  "tensors", f->tensors);
    if (manifest && j->exponents)
        json_object_set(manifest, "awq", j->exponents);
    return manifest;
}

ak_status ak_compress_folder_draft(struct ak_compress_job *j)
{
    json_t *manifest = make_manifest(j);
    char *text = manifest ? json_dumps(manifest, JSON_INDENT(1)) : NULL;
    json_decref(manifest);
    if (!text)
        return ak_fail_memory(j->error, "the manifest", 0);
    unlinkat(j->folder->dir, AK_COMPRESS_DRAFT, 0);
    ak_status status = ak_compress_folder_write(j->folder, AK_COMPRESS_DRAFT, text, strlen(text));
    free(text);
    return status;
}

/* A file system that cannot sync folders is none that fails. */
static ak_status sync_folder(const struct ak_compress_folder *f, int dir, const char *name)
{
    return fsync(dir) != 0 && errno == EIO ? fail_io(f, "sync", name) : AKUNU_OK;
}

ak_status ak_compress_folder_publish(struct ak_compress_folder *f)
{
    /* the names of the arrays before the manifest that lists them */
    AK_TRY(sync_folder(f, f->arrays, "tensors"));
    if (renameat(f->dir, AK_COMPRESS_DRAFT, f->dir, manifest_name) != 0)
        return fail_io(f, "write", manifest_name);
    AK_TRY(sync_folder(f, f->dir, ""));
    unlinkat(f->dir, journal_name, 0);
    return AKUNU_OK;
}

void ak_compress_folder_sum(const struct ak_compress_folder *f,
                            uint64_t bytes[AK_COMPRESS_ENCODINGS])
{
    const char *name;
    json_t *entry;
    json_object_foreach (f->tensors, name, entry)
        for (int e = 0; e < AK_COMPRESS_ENCODINGS; e++)
            bytes[e] += (uint64_t)json_integer_value(
                json_object_get(json_object_get(entry, ak_compress_encodings[e].name), "bytes"));
}

/* Nothing remains of a run that ended before its first file. A journal that it did not open is that
 * of another run, whose arrays are in the folder. */
static void remove_empty(const struct ak_compress_folder *f)
{
    if (f->journal >= 0)
        unlinkat(f->dir, journal_name, 0);
    unlinkat(f->dir, "tensors", AT_REMOVEDIR);
    if (f->is_new)
        rmdir(f->path);
}

void ak_compress_folder_close(struct ak_compress_folder *f)
{
    if (!f)
        return;
    if (f->dir >= 0)
        unlinkat(f->dir, AK_COMPRESS_DRAFT, 0); /* unless it was published */
    if (f->arrays >= 0 && !f->has_files && json_object_size(f->tensors) == 0)
        remove_empty(f);
    if (f->journal >= 0)
        close(f->journal);
    if (f->arrays >= 0)
        close(f->arrays);
    if (f->dir >= 0)
        close(f->dir);
    json_decref(f->manifest);
    json_decref(f->tensors);
    ak_free(f);
}

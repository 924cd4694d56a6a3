/* Split files are named PREFIX-00001-of-00003.gguf and so on. Each part is a GGUF file with its own
 * tensors. split.no is its number, from 0; split.count and split.tensors.count are totals over all
 * parts. The first part has the model's metadata. */
#include "files/weights/gguf/gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { MAX_PARTS = 99999 };

struct split {
    uint32_t no, count;
    bool has_tensors;
    uint64_t tensors;
};

/* Reads a non-negative integer; refuses anything else. */
static ak_status read_split_count(const struct ak_gguf_metadata *m, const char *key, bool *present,
                                  uint64_t *out, struct ak_error *error)
{
    struct ak_meta meta;
    *present = ak_gguf_find_meta(m, key, &meta);
    if (!*present)
        return AKUNU_OK;
    if (meta.kind == AK_META_UINT)
        *out = meta.as.unsigned_integer;
    else if (meta.kind == AK_META_INT && meta.as.integer >= 0)
        *out = (uint64_t)meta.as.integer;
    else
        return ak_fail(error, AKUNU_ERROR_FORMAT, "metadata %s is not a count", key);
    return AKUNU_OK;
}

static ak_status read_split(const struct ak_gguf_metadata *m, struct split *out,
                            struct ak_error *error)
{
    uint64_t no = 0, count = 1, tensors = 0;
    bool has_no, has_count, has_tensors;
    AK_TRY(read_split_count(m, "split.count", &has_count, &count, error));
    AK_TRY(read_split_count(m, "split.no", &has_no, &no, error));
    AK_TRY(read_split_count(m, "split.tensors.count", &has_tensors, &tensors, error));
    if (count > MAX_PARTS)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "metadata split.count is %llu, where at most %d is possible",
                       (unsigned long long)count, MAX_PARTS);
    if (count <= 1) { /* some writers put 0 into files that are not split */
        *out = (struct split){ .count = 1 };
        return AKUNU_OK;
    }
    if (no >= count)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "metadata split.no is %llu in a file of %llu split parts",
                       (unsigned long long)no, (unsigned long long)count);
    *out = (struct split){ (uint32_t)no, (uint32_t)count, has_tensors, tensors };
    return AKUNU_OK;
}

/* "-00001-of-00003.gguf" */
enum { SUFFIX_BYTES = 32 };
static void suffix(char out[SUFFIX_BYTES], uint32_t no, uint32_t count)
{
    snprintf(out, SUFFIX_BYTES, "-%05u-of-%05u.gguf", no + 1, count);
}

/* The path of part `no`, made from that of part `from`. NULL: `path` is not named as a part, or out
 * of memory. The caller frees it. */
static char *part_path(const char *path, uint32_t from, uint32_t no, uint32_t count)
{
    char own[SUFFIX_BYTES], other[SUFFIX_BYTES];
    suffix(own, from, count);
    suffix(other, no, count);
    size_t n = strlen(path), tail = strlen(own);
    if (n < tail || strcmp(path + n - tail, own) != 0)
        return NULL;
    char *result = ak_strndup(path, n);
    if (result)
        memcpy(result + n - tail, other, tail);
    return result;
}

static ak_status check_first(const char *path, const struct split *split, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], name[SUFFIX_BYTES];
    char *first = part_path(path, split->no, 0, split->count);
    suffix(name, 0, split->count);
    ak_status status = AKUNU_OK;
    if (!first)
        status = ak_fail(error, AKUNU_ERROR_FORMAT,
                         "this is part %u of a split file of %u; open the first part, "
                         "named *%s, with the others beside it",
                         split->no + 1, split->count, name);
    else if (split->no != 0)
        status = ak_fail(error, AKUNU_ERROR_FORMAT,
                         "this is part %u of a split file of %u; open the first part: %s",
                         split->no + 1, split->count, ak_show_path(first, shown));
    ak_free(first);
    return status;
}

static ak_status open_part(struct ak_gguf *g, const char *path, uint32_t no, struct ak_error *error)
{
    AK_TRY(ak_file_open(path, &g->parts[no].file, error));
    g->n_parts = no + 1;
    return AKUNU_OK;
}

static ak_status read_later_part(struct ak_gguf *g, uint32_t no, const struct split *first,
                                 struct ak_error *error)
{
    struct ak_gguf_metadata metadata = { 0 };
    struct split split = { 0 };
    ak_status status = ak_gguf_read_part(g, no, &metadata, error);
    if (status == AKUNU_OK)
        status = read_split(&metadata, &split, error);
    if (status == AKUNU_OK && (split.no != no || split.count != first->count))
        status = ak_fail(error, AKUNU_ERROR_FORMAT,
                         "says that it is part %u of %u, where part %u of %u is expected",
                         split.no + 1, split.count, no + 1, first->count);
    ak_gguf_metadata_free(&metadata);
    return status;
}

static ak_status add_split_part(struct ak_gguf *g, const char *path, uint32_t no,
                                const struct split *first, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], part[64];
    snprintf(part, sizeof part, "split part %u of %u", no + 1, first->count);
    ak_status status = open_part(g, path, no, error);
    if (status == AKUNU_OK) {
        status = read_later_part(g, no, first, error);
        if (status != AKUNU_OK) /* messages of open_part have the path already */
            ak_error_prefix(error, ak_show_path(path, shown));
    }
    if (status != AKUNU_OK)
        ak_error_prefix(error, part);
    return status;
}

static ak_status open_rest(struct ak_gguf *g, const char *path, const struct split *split,
                           struct ak_error *error)
{
    AK_TRY(check_first(path, split, error));
    void *parts = g->parts;
    size_t capacity = 1;
    AK_TRY(ak_gguf_reserve(&parts, &capacity, split->count, sizeof *g->parts, error));
    g->parts = parts;
    for (uint32_t no = 1; no < split->count; no++) {
        char *other = part_path(path, 0, no, split->count);
        if (!other)
            return ak_fail_memory(error, "a file's path", strlen(path) + 1);
        ak_status status = add_split_part(g, other, no, split, error);
        ak_free(other);
        AK_TRY(status);
    }
    if (split->has_tensors && split->tensors != g->n_tensors)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "metadata split.tensors.count is %llu, but the %u parts have %zu tensors",
                       (unsigned long long)split->tensors, split->count, g->n_tensors);
    return AKUNU_OK;
}

/* Opens the file of a descriptor as the first part. */
static ak_status open_descriptor(struct ak_gguf *g, int fd, struct ak_error *error)
{
    const struct ak_file *file = &g->parts[0].file;
    char shown[AK_SHOW_BYTES];
    AK_TRY(ak_file_open_fd(fd, &g->parts[0].file, error));
    g->n_parts = 1;
    if (file->bytes < 4 || memcmp(file->data, "GGUF", 4) != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "begins with \"%s\", where a GGUF file is expected: other formats are "
                       "opened by their path",
                       ak_show(file->data, file->bytes < 4 ? file->bytes : 4, shown));
    return AKUNU_OK;
}

ak_status ak_gguf_open_parts(struct ak_gguf *g, const char *path, int fd, struct ak_error *error)
{
    struct split split;
    g->parts = ak_alloc(1, sizeof *g->parts);
    if (!g->parts)
        return ak_fail_memory(error, "a GGUF file", sizeof *g->parts);
    AK_TRY(path ? open_part(g, path, 0, error) : open_descriptor(g, fd, error));
    AK_TRY(ak_gguf_read_part(g, 0, &g->metadata, error));
    AK_TRY(read_split(&g->metadata, &split, error));
    if (split.count > 1 && !path)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "this is part %u of a split file of %u, and one descriptor has one part: open "
            "the first part by its path",
            split.no + 1, split.count);
    return split.count > 1 ? open_rest(g, path, &split, error) : AKUNU_OK;
}

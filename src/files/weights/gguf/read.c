/* Reads one GGUF file: header, metadata, tensor list. The file is untrusted, so counts and lengths
 * are checked against its size before anything is allocated for them. */
#include "files/weights/gguf/gguf.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "base/array.h"

enum {
    MAX_NAME = 65535, /* the specification's limit of keys; its 64 for tensors is often exceeded */
    MIN_ENTRY = 8 + 4 + 1,
    MIN_TENSOR = 8 + 4 + 8 + 4 + 8,
    DEFAULT_ALIGNMENT = 32,
    MAX_ALIGNMENT = 1 << 30
};

ak_status ak_gguf_reserve(void **array, size_t *capacity, size_t n, size_t size,
                          struct ak_error *error)
{
    return n <= *capacity || ak_reserve_size(array, capacity, 0, n, size) ?
               AKUNU_OK :
               ak_fail_memory(error, "the index of a GGUF file", 0);
}

static ak_status add_name(struct ak_gguf_names *names, const uint8_t *bytes, size_t n,
                          size_t *offset, struct ak_error *error)
{
    void *block = names->bytes;
    AK_TRY(ak_gguf_reserve(&block, &names->capacity, names->n + n + 1, 1, error));
    names->bytes = block;
    *offset = names->n;
    memcpy(names->bytes + names->n, bytes, n);
    names->bytes[names->n + n] = '\0';
    names->n += n + 1;
    return AKUNU_OK;
}

static ak_status fail_truncated(const struct ak_cursor *c, const char *what, size_t i,
                                uint64_t count, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "the end of the file (%llu bytes) is inside %s %zu of %llu",
                   (unsigned long long)(c->end - c->begin), what, i + 1, (unsigned long long)count);
}

/* Reads a key or a tensor's name. `what` is "metadata key" or "tensor name". */
static ak_status read_gguf_name(struct ak_cursor *c, const char *what, size_t i, uint64_t count,
                                struct ak_gguf_names *names, size_t *offset, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    uint64_t n;
    const uint8_t *bytes;
    if (!ak_cursor_read_u64(c, &n))
        return fail_truncated(c, what, i, count, error);
    if (n > MAX_NAME || n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s length of %llu bytes in number %zu of %llu, where 1 to %d are possible",
                       what, (unsigned long long)n, i + 1, (unsigned long long)count, MAX_NAME);
    if (!ak_cursor_read_bytes(c, n, &bytes))
        return fail_truncated(c, what, i, count, error);
    if (!ak_is_utf8(bytes, (size_t)n) || memchr(bytes, 0, (size_t)n))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s \"%s\" is not UTF-8 text", what,
                       ak_show(bytes, (size_t)n, shown));
    return add_name(names, bytes, (size_t)n, offset, error);
}

/* Refuses a count that the rest of the file cannot hold, before anything is read. */
static ak_status check_count(const struct ak_cursor *c, const char *what, const char *items,
                             uint64_t n, unsigned min_bytes, struct ak_error *error)
{
    if (n <= ak_cursor_bytes_left(c) / min_bytes && n <= UINT32_MAX)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "%s of %llu: the end of the file (%llu bytes) leaves no room for so many %s, at "
                   "least %u bytes each",
                   what, (unsigned long long)n, (unsigned long long)(c->end - c->begin), items,
                   min_bytes);
}

static ak_status read_gguf_header(struct ak_cursor *c, uint64_t *n_tensors, uint64_t *n_entries,
                                  struct ak_error *error)
{
    const uint8_t *magic;
    uint32_t version;
    if (!ak_cursor_read_bytes(c, 4, &magic) || !ak_cursor_read_u32(c, &version))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the end of the file (%llu bytes) is inside the header, before the version",
                       (unsigned long long)(c->end - c->begin));
    if (memcmp(magic, "GGUF", 4) != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the file does not begin with \"GGUF\"");
    uint32_t swapped = __builtin_bswap32(version);
    if (version > 0xffff && swapped <= 0xffff)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a big-endian GGUF file (version %u); little-endian ones are accepted",
                       swapped);
    if (version != 2 && version != 3)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "GGUF version %u; versions 2 and 3 are accepted", version);
    if (!ak_cursor_read_u64(c, n_tensors) || !ak_cursor_read_u64(c, n_entries))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the end of the file (%llu bytes) is inside the header's counts",
                       (unsigned long long)(c->end - c->begin));
    return AKUNU_OK;
}

static ak_status read_gguf_entry(struct ak_cursor *c, size_t i, uint64_t count,
                                 struct ak_gguf_metadata *m, struct ak_error *error)
{
    void *entries = m->entries;
    AK_TRY(ak_gguf_reserve(&entries, &m->capacity, m->n + 1, sizeof *m->entries, error));
    m->entries = entries;
    struct ak_gguf_entry *entry = &m->entries[m->n];
    AK_TRY(read_gguf_name(c, "metadata key", i, count, &m->names, &entry->key, error));
    if (!ak_cursor_read_u32(c, &entry->kind))
        return fail_truncated(c, "metadata entry", i, count, error);
    entry->value = c->next;
    entry->first_string = m->string_index.n;
    AK_TRY(
        ak_gguf_check_value(c, entry->kind, m->names.bytes + entry->key, &m->string_index, error));
    m->n++;
    return AKUNU_OK;
}

static ak_status index_entries(struct ak_gguf_metadata *m, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    AK_TRY(ak_name_index_alloc(&m->index, m->n, error));
    for (uint32_t i = 0; i < m->index.n; i++)
        m->index.entries[i] = (struct ak_name_index_entry){ m->names.bytes + m->entries[i].key, i };
    const char *duplicate = ak_name_index_sort(&m->index);
    if (duplicate)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "metadata %s is there twice",
                       ak_show(duplicate, strlen(duplicate), shown));
    return AKUNU_OK;
}

static ak_status read_alignment(const struct ak_gguf_metadata *m, uint64_t *out,
                                struct ak_error *error)
{
    struct ak_meta meta;
    *out = DEFAULT_ALIGNMENT;
    if (!ak_gguf_find_meta(m, "general.alignment", &meta))
        return AKUNU_OK;
    if (meta.kind != AK_META_UINT)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "metadata general.alignment is not an unsigned integer");
    uint64_t n = meta.as.unsigned_integer;
    if (n < 8 || n > MAX_ALIGNMENT || (n & (n - 1)) != 0)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "metadata general.alignment is %llu, where a power of two from 8 to %d is expected",
            (unsigned long long)n, MAX_ALIGNMENT);
    *out = n;
    return AKUNU_OK;
}

static ak_status fail_truncated_info(const struct ak_cursor *c, const char *name, size_t i,
                                     uint64_t count, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "the end of the file (%llu bytes) is inside the tensor info of %s, %zu of %llu",
                   (unsigned long long)(c->end - c->begin), name, i + 1, (unsigned long long)count);
}

static ak_status read_gguf_tensor(struct ak_gguf *g, struct ak_cursor *c, size_t i, uint64_t count,
                                  uint32_t part, uint64_t alignment, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    void *tensors = g->tensors;
    AK_TRY(ak_gguf_reserve(&tensors, &g->tensors_capacity, g->n_tensors + 1, sizeof *g->tensors,
                           error));
    g->tensors = tensors;
    struct ak_gguf_tensor *t = &g->tensors[g->n_tensors];
    *t = (struct ak_gguf_tensor){ .part = part };
    AK_TRY(read_gguf_name(c, "tensor name", i, count, &g->names, &t->name, error));

    const char *name = g->names.bytes + t->name;
    struct ak_gguf_raw_tensor raw = { .name = ak_show(name, strlen(name), shown) };
    if (!ak_cursor_read_u32(c, &raw.n_dims))
        return fail_truncated_info(c, raw.name, i, count, error);
    if (raw.n_dims < 1 || raw.n_dims > AK_TENSOR_DIMS_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensor %s has %u dimensions, where 1 to %d are possible", raw.name,
                       raw.n_dims, AK_TENSOR_DIMS_MAX);
    for (uint32_t d = 0; d < raw.n_dims; d++)
        ak_cursor_read_u64(c, &raw.dims[d]);
    ak_cursor_read_u32(c, &raw.type);
    if (!ak_cursor_read_u64(c, &raw.offset))
        return fail_truncated_info(c, raw.name, i, count, error);
    AK_TRY(ak_gguf_check_tensor(&raw, alignment, t, error));
    t->has_role = ak_gguf_role(name, &t->role, &t->layer);
    g->n_tensors++;
    return AKUNU_OK;
}

ak_status ak_gguf_read_part(struct ak_gguf *g, uint32_t index, struct ak_gguf_metadata *metadata,
                            struct ak_error *error)
{
    struct ak_gguf_part *part = &g->parts[index];
    struct ak_cursor c = ak_cursor_init(part->file.data, part->file.bytes);
    uint64_t n_tensors, n_entries, alignment;
    AK_TRY(read_gguf_header(&c, &n_tensors, &n_entries, error));

    AK_TRY(check_count(&c, "metadata count", "keys and values", n_entries, MIN_ENTRY, error));
    for (size_t i = 0; i < n_entries; i++)
        AK_TRY(read_gguf_entry(&c, i, n_entries, metadata, error));
    AK_TRY(index_entries(metadata, error));
    AK_TRY(read_alignment(metadata, &alignment, error));

    AK_TRY(check_count(&c, "tensor count", "names and shapes", n_tensors, MIN_TENSOR, error));
    part->first_tensor = g->n_tensors;
    for (size_t i = 0; i < n_tensors; i++)
        AK_TRY(read_gguf_tensor(g, &c, i, n_tensors, index, alignment, error));
    part->n_tensors = g->n_tensors - part->first_tensor;
    part->data = ak_round_up(ak_cursor_offset(&c), alignment);
    return ak_gguf_place_tensors(g, part, error);
}

void ak_gguf_metadata_free(struct ak_gguf_metadata *m)
{
    ak_name_index_free(&m->index);
    ak_free(m->names.bytes);
    ak_free(m->entries);
    ak_free(m->string_index.strings);
    *m = (struct ak_gguf_metadata){ 0 };
}

/* ZIP archives of stored entries. All is read through the central directory; local headers must
 * agree with it, so that no other reader sees another file. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/torch/torch.h"
#include "base/array.h"

enum {
    END_BYTES = 22, /* of the end record, without its comment */
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    CENTRAL_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = UINT16_MAX,
    NAME_MAX_BYTES = 1024,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1
};

enum {
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR = 0x07064b50,
    CENTRAL = 0x02014b50,
    LOCAL = 0x04034b50
};

struct archive {
    const uint8_t *data;
    uint64_t n;
    struct ak_zip *out;
    struct ak_error *error;
};

/* Where the central directory lies, and how many entries it has. */
struct directory {
    uint64_t offset, bytes, n;
};

/* The range is inside the archive. */
static uint64_t get(const struct archive *a, uint64_t at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)a->data[at + (uint64_t)i] << (8 * i);
    return value;
}

static bool is_inside(const struct archive *a, uint64_t at, uint64_t bytes)
{
    return at <= a->n && bytes <= a->n - at;
}

/* The end record: the last one whose comment ends where the archive does. */
static ak_status find_end(const struct archive *a, uint64_t *out)
{
    uint64_t last = a->n >= END_BYTES ? a->n - END_BYTES : 0,
             first = last > COMMENT_MAX ? last - COMMENT_MAX : 0;
    for (uint64_t at = last + 1; a->n >= END_BYTES && at-- > first;)
        if (get(a, at, 4) == END && get(a, at + 20, 2) == a->n - at - END_BYTES) {
            *out = at;
            return AKUNU_OK;
        }
    return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                   "a ZIP archive of %llu bytes without the record of its end: it is cut off",
                   (unsigned long long)a->n);
}

static ak_status read_end64(const struct archive *a, uint64_t end, struct directory *out)
{
    uint64_t at = get(a, end - LOCATOR_BYTES + 8, 8);
    if (!is_inside(a, at, END64_BYTES) || get(a, at, 4) != END64)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                       "ZIP: no ZIP64 record of the end at %llu, where its locator says",
                       (unsigned long long)at);
    *out = (struct directory){ .n = get(a, at + 32, 8),
                               .bytes = get(a, at + 40, 8),
                               .offset = get(a, at + 48, 8) };
    return AKUNU_OK;
}

static ak_status find_directory(const struct archive *a, struct directory *out)
{
    uint64_t end = 0;
    AK_TRY(find_end(a, &end));
    *out = (struct directory){ .n = get(a, end + 10, 2),
                               .bytes = get(a, end + 12, 4),
                               .offset = get(a, end + 16, 4) };
    if (get(a, end + 4, 2) != get(a, end + 6, 2) || get(a, end + 8, 2) != out->n)
        return ak_fail(a->error, AKUNU_ERROR_UNSUPPORTED,
                       "a ZIP archive of several parts; expected one");
    if (end >= LOCATOR_BYTES && get(a, end - LOCATOR_BYTES, 4) == LOCATOR)
        AK_TRY(read_end64(a, end, out));
    if (!is_inside(a, out->offset, out->bytes) || out->offset + out->bytes > end)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                       "ZIP: the directory lies at bytes %llu to %llu, where the record of the end "
                       "begins at %llu",
                       (unsigned long long)out->offset,
                       (unsigned long long)(out->offset + out->bytes), (unsigned long long)end);
    if (out->n > out->bytes / CENTRAL_BYTES)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                       "ZIP: %llu entries in a directory of %llu bytes", (unsigned long long)out->n,
                       (unsigned long long)out->bytes);
    return AKUNU_OK;
}

/* ---- Entries ------------------------------------------------------------ */
struct entry {
    uint64_t method, flags, stored, bytes, header, n_name, n_extra, n_comment;
    const char *name;
    char shown[AK_SHOW_BYTES];
};

/* ZIP64's extra field has those of the three numbers that do not fit 32 bits, in this order. */
static ak_status read_extra(const struct archive *a, uint64_t at, struct entry *e)
{
    uint64_t *const numbers[] = { &e->bytes, &e->stored, &e->header };
    uint64_t end = at + e->n_extra;
    bool wanted = e->bytes == UINT32_MAX || e->stored == UINT32_MAX || e->header == UINT32_MAX;
    while (wanted && end - at >= 4 && get(a, at, 2) != EXTRA_ZIP64) {
        uint64_t step = 4 + get(a, at + 2, 2);
        at = step <= end - at ? at + step : end;
    }
    if (!wanted)
        return AKUNU_OK;
    uint64_t left = end - at >= 4 ? get(a, at + 2, 2) : 0;
    if (end - at < 4 || left > end - at - 4)
        left = 0;
    at += 4;
    for (int i = 0; i < 3; i++) {
        if (*numbers[i] != UINT32_MAX)
            continue;
        if (left < 8)
            return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                           "ZIP: entry %s lacks the ZIP64 field of its size or offset", e->shown);
        *numbers[i] = get(a, at, 8);
        at += 8;
        left -= 8;
    }
    return AKUNU_OK;
}

/* Reads the entry at *at of the directory and moves *at behind it. */
static ak_status read_central(const struct archive *a, uint64_t end, uint64_t *at, struct entry *e)
{
    if (end - *at < CENTRAL_BYTES || get(a, *at, 4) != CENTRAL)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT, "ZIP: no entry of the directory at byte %llu",
                       (unsigned long long)*at);
    *e = (struct entry){ .flags = get(a, *at + 8, 2),
                         .method = get(a, *at + 10, 2),
                         .stored = get(a, *at + 20, 4),
                         .bytes = get(a, *at + 24, 4),
                         .n_name = get(a, *at + 28, 2),
                         .n_extra = get(a, *at + 30, 2),
                         .n_comment = get(a, *at + 32, 2),
                         .header = get(a, *at + 42, 4) };
    uint64_t rest = e->n_name + e->n_extra + e->n_comment;
    if (rest > end - *at - CENTRAL_BYTES || e->n_name == 0 || e->n_name > NAME_MAX_BYTES)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                       "ZIP: the entry at byte %llu has a name of %llu bytes; expected 1 to %d, "
                       "inside the directory",
                       (unsigned long long)*at, (unsigned long long)e->n_name, NAME_MAX_BYTES);
    e->name = (const char *)a->data + *at + CENTRAL_BYTES;
    ak_show(e->name, (size_t)e->n_name, e->shown);
    AK_TRY(read_extra(a, *at + CENTRAL_BYTES + e->n_name, e));
    *at += CENTRAL_BYTES + rest;
    return AKUNU_OK;
}

static ak_status check_method(const struct archive *a, const struct entry *e)
{
    if (e->flags & FLAG_ENCRYPTED)
        return ak_fail(a->error, AKUNU_ERROR_UNSUPPORTED, "ZIP: entry %s is encrypted", e->shown);
    if (e->method != 0)
        return ak_fail(a->error, AKUNU_ERROR_UNSUPPORTED,
                       "ZIP: entry %s is compressed (method %llu); PyTorch stores them", e->shown,
                       (unsigned long long)e->method);
    if (e->stored != e->bytes)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                       "ZIP: entry %s is stored in %llu bytes and has %llu", e->shown,
                       (unsigned long long)e->stored, (unsigned long long)e->bytes);
    return AKUNU_OK;
}

/* Finds the data behind the local header. */
static ak_status find_data(const struct archive *a, const struct directory *d,
                           const struct entry *e, uint64_t *out)
{
    if (!is_inside(a, e->header, LOCAL_BYTES) || e->header + LOCAL_BYTES > d->offset ||
        get(a, e->header, 4) != LOCAL)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT, "ZIP: entry %s has no local header at %llu",
                       e->shown, (unsigned long long)e->header);
    uint64_t n_name = get(a, e->header + 26, 2), n_extra = get(a, e->header + 28, 2),
             room = d->offset - e->header - LOCAL_BYTES;
    if (n_name != e->n_name || n_name > room ||
        memcmp(a->data + e->header + LOCAL_BYTES, e->name, (size_t)n_name) != 0)
        return ak_fail(a->error, AKUNU_ERROR_FORMAT,
                       "ZIP: entry %s has another name in its local header at %llu", e->shown,
                       (unsigned long long)e->header);
    if (n_extra > room - n_name || e->bytes > room - n_name - n_extra)
        return ak_fail(
            a->error, AKUNU_ERROR_FORMAT,
            "ZIP: entry %s has %llu bytes from %llu on, and the directory begins at %llu", e->shown,
            (unsigned long long)e->bytes,
            (unsigned long long)(e->header + LOCAL_BYTES + n_name + n_extra),
            (unsigned long long)d->offset);
    *out = e->header + LOCAL_BYTES + n_name + n_extra;
    return AKUNU_OK;
}

static ak_status add_zip_entry(const struct archive *a, const struct directory *d,
                               const struct entry *e)
{
    struct ak_zip *zip = a->out;
    struct ak_zip_entry added = { .header = e->header, .bytes = e->bytes };
    AK_TRY(check_method(a, e));
    AK_TRY(find_data(a, d, e, &added.offset));
    AK_TRY(ak_reserve_or_fail(&zip->entries, &zip->capacity, zip->n, 1, "a list of entries",
                              a->error));
    added.name = ak_strndup(e->name, (size_t)e->n_name);
    if (!added.name)
        return ak_fail_memory(a->error, "an entry's name", e->n_name);
    zip->entries[zip->n++] = added;
    return AKUNU_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct ak_zip_entry *x = a, *y = b;
    return (x->header > y->header) - (x->header < y->header);
}

/* Sorts the entries by offset and by name. */
static ak_status sort_entries(const struct archive *a)
{
    struct ak_zip *zip = a->out;
    char shown[AK_SHOW_BYTES];
    if (zip->n > 0)
        qsort(zip->entries, zip->n, sizeof *zip->entries, compare_offsets);
    for (size_t i = 1; i < zip->n; i++)
        if (zip->entries[i].header < zip->entries[i - 1].offset + zip->entries[i - 1].bytes)
            return ak_fail(
                a->error, AKUNU_ERROR_FORMAT,
                "ZIP: the entry at %llu begins inside the one before it, %s",
                (unsigned long long)zip->entries[i].header,
                ak_show(zip->entries[i - 1].name, strlen(zip->entries[i - 1].name), shown));
    AK_TRY(ak_name_index_alloc(&zip->index, zip->n, a->error));
    for (uint32_t i = 0; i < zip->index.n; i++)
        zip->index.entries[i] = (struct ak_name_index_entry){ zip->entries[i].name, i };
    const char *twice = ak_name_index_sort(&zip->index);
    return twice ? ak_fail(a->error, AKUNU_ERROR_FORMAT, "ZIP: entry %s is there twice",
                           ak_show(twice, strlen(twice), shown)) :
                   AKUNU_OK;
}

ak_status ak_zip_read(const uint8_t *data, uint64_t n, struct ak_zip *out, struct ak_error *error)
{
    const struct archive a = { data, n, out, error };
    struct directory d;
    struct entry e;
    *out = (struct ak_zip){ .n = 0 };
    AK_TRY(find_directory(&a, &d));
    uint64_t at = d.offset;
    for (uint64_t i = 0; i < d.n; i++) {
        AK_TRY(read_central(&a, d.offset + d.bytes, &at, &e));
        AK_TRY(add_zip_entry(&a, &d, &e));
    }
    return sort_entries(&a);
}

void ak_zip_free(struct ak_zip *zip)
{
    ak_name_index_free(&zip->index);
    for (size_t i = 0; i < zip->n; i++)
        ak_free(zip->entries[i].name);
    ak_free(zip->entries);
    *zip = (struct ak_zip){ .n = 0 };
}

const struct ak_zip_entry *ak_zip_find(const struct ak_zip *zip, const char *name)
{
    uint32_t i;
    return ak_name_index_find(&zip->index, name, &i) ? &zip->entries[i] : NULL;
}

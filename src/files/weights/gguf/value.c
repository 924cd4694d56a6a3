/* Checks metadata values when a file is opened, so that reading them later cannot leave the map. */
#include "files/weights/gguf/gguf.h"

#include <string.h>

#include "base/utf8.h"

enum { MAX_NESTING = 4 };

const struct ak_gguf_kind_info ak_gguf_kinds[AK_GGUF_KINDS] = {
    [AK_GGUF_U8] = { "uint8", AK_META_UINT, 1 },
    [AK_GGUF_I8] = { "int8", AK_META_INT, 1 },
    [AK_GGUF_U16] = { "uint16", AK_META_UINT, 2 },
    [AK_GGUF_I16] = { "int16", AK_META_INT, 2 },
    [AK_GGUF_U32] = { "uint32", AK_META_UINT, 4 },
    [AK_GGUF_I32] = { "int32", AK_META_INT, 4 },
    [AK_GGUF_F32] = { "float32", AK_META_FLOAT, 4 },
    [AK_GGUF_BOOL] = { "bool", AK_META_BOOL, 1 },
    [AK_GGUF_STRING] = { "string", AK_META_STRING, 8 },
    [AK_GGUF_ARRAY] = { "array", AK_META_ARRAY, AK_GGUF_ARRAY_HEADER },
    [AK_GGUF_U64] = { "uint64", AK_META_UINT, 8 },
    [AK_GGUF_I64] = { "int64", AK_META_INT, 8 },
    [AK_GGUF_F64] = { "float64", AK_META_FLOAT, 8 },
};

/* Context of checking one value. */
struct check {
    struct ak_cursor *c;
    const char *key; /* escaped for messages */
    struct ak_gguf_string_index *string_index;
    struct ak_error *error;
};

static ak_status check_value(const struct check *k, uint32_t kind, unsigned nesting);

static ak_status check_kind(const struct check *k, uint32_t kind, const char *what)
{
    if (kind < AK_GGUF_KINDS)
        return AKUNU_OK;
    return ak_fail(k->error, AKUNU_ERROR_FORMAT,
                   "metadata %s: %s of type %u, which GGUF does not have (types are 0 to %d)",
                   k->key, what, kind, AK_GGUF_KINDS - 1);
}

static ak_status fail_truncated(const struct check *k)
{
    return ak_fail(k->error, AKUNU_ERROR_FORMAT, "metadata %s: the file ends inside the value",
                   k->key);
}

static ak_status check_string(const struct check *k)
{
    uint64_t n;
    const uint8_t *bytes;
    if (!ak_cursor_read_u64(k->c, &n))
        return fail_truncated(k);
    uint64_t left = ak_cursor_bytes_left(k->c);
    if (!ak_cursor_read_bytes(k->c, n, &bytes))
        return ak_fail(k->error, AKUNU_ERROR_FORMAT,
                       "metadata %s: a string of %llu bytes, where the file has %llu left", k->key,
                       (unsigned long long)n, (unsigned long long)left);
    return AKUNU_OK;
}

/* The specification allows 0 and 1 only. */
static ak_status check_bools(const struct check *k, const uint8_t *bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (bytes[i] > 1)
            return ak_fail(k->error, AKUNU_ERROR_FORMAT,
                           "metadata %s: a bool of value %d, where 0 and 1 are possible", k->key,
                           bytes[i]);
    return AKUNU_OK;
}

/* Checks n values of fixed size. The caller has checked that n elements fit the file. */
static ak_status check_fixed(const struct check *k, uint32_t kind, uint64_t n)
{
    const uint8_t *bytes;
    if (!ak_cursor_read_bytes(k->c, n * ak_gguf_kinds[kind].bytes, &bytes))
        return fail_truncated(k);
    return kind == AK_GGUF_BOOL ? check_bools(k, bytes, n) : AKUNU_OK;
}

static ak_status add_string(const struct check *k)
{
    struct ak_gguf_string_index *m = k->string_index;
    void *strings = m->strings;
    AK_TRY(ak_gguf_reserve(&strings, &m->capacity, m->n + 1, sizeof *m->strings, k->error));
    m->strings = strings;
    m->strings[m->n++] = k->c->next;
    return AKUNU_OK;
}

static ak_status check_array(const struct check *k, unsigned nesting)
{
    uint32_t kind;
    uint64_t n;
    if (!ak_cursor_read_u32(k->c, &kind) || !ak_cursor_read_u64(k->c, &n))
        return fail_truncated(k);
    AK_TRY(check_kind(k, kind, "an array"));
    if (nesting >= MAX_NESTING)
        return ak_fail(k->error, AKUNU_ERROR_FORMAT, "metadata %s: arrays nested more than %d deep",
                       k->key, MAX_NESTING);
    if (n > ak_cursor_bytes_left(k->c) / ak_gguf_kinds[kind].bytes)
        return ak_fail(k->error, AKUNU_ERROR_FORMAT,
                       "metadata %s: an array of %llu × %s, where the file has %llu bytes left",
                       k->key, (unsigned long long)n, ak_gguf_kinds[kind].name,
                       (unsigned long long)ak_cursor_bytes_left(k->c));
    if (kind != AK_GGUF_STRING && kind != AK_GGUF_ARRAY)
        return check_fixed(k, kind, n);
    for (uint64_t i = 0; i < n; i++) {
        if (kind == AK_GGUF_STRING && nesting == 0 && i > 0 && i % AK_GGUF_STRIDE == 0)
            AK_TRY(add_string(k));
        AK_TRY(check_value(k, kind, nesting + 1));
    }
    return AKUNU_OK;
}

static ak_status check_value(const struct check *k, uint32_t kind, unsigned nesting)
{
    AK_TRY(check_kind(k, kind, "a value"));
    if (kind == AK_GGUF_STRING)
        return check_string(k);
    if (kind == AK_GGUF_ARRAY)
        return check_array(k, nesting);
    return check_fixed(k, kind, 1);
}

ak_status ak_gguf_check_value(struct ak_cursor *c, uint32_t kind, const char *key,
                              struct ak_gguf_string_index *string_index, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct check k = { c, ak_show(key, strlen(key), shown), string_index, error };
    return check_value(&k, kind, 0);
}

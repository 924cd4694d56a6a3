/* Reads metadata values in the map. All were checked when the file was opened (value.c), so nothing
 * here can fail. */
#include "files/weights/gguf/gguf.h"

#include <assert.h>
#include <string.h>

static uint64_t load_little_endian(const uint8_t *bytes, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = n; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static double load_float(const uint8_t *bytes, unsigned n)
{
    if (n == sizeof(float)) {
        float x;
        memcpy(&x, bytes, sizeof x);
        return (double)x;
    }
    double x;
    memcpy(&x, bytes, sizeof x);
    return x;
}

static void decode_value(uint32_t kind, const uint8_t *value, struct ak_meta *out)
{
    assert(kind < AK_GGUF_KINDS);
    unsigned bytes = ak_gguf_kinds[kind].bytes;
    *out = (struct ak_meta){ .key = "", .kind = ak_gguf_kinds[kind].meta, .n = 1, .width = bytes };
    switch (out->kind) {
    case AK_META_BOOL: out->as.boolean = value[0] != 0; break;
    case AK_META_UINT: out->as.unsigned_integer = load_little_endian(value, bytes); break;
    case AK_META_INT: {
        unsigned unused = 64 - 8 * bytes; /* for sign extension */
        out->as.integer = (int64_t)(load_little_endian(value, bytes) << unused) >> unused;
        break;
    }
    case AK_META_FLOAT: out->as.number = load_float(value, bytes); break;
    case AK_META_STRING:
        out->n = load_little_endian(value, 8);
        out->as.string = (const char *)value + 8;
        break;
    default:
        out->element_kind = ak_gguf_kinds[load_little_endian(value, 4)].meta;
        out->width = ak_gguf_kinds[load_little_endian(value, 4)].bytes;
        out->n = load_little_endian(value + 4, 8);
        out->as.elements = value;
        break;
    }
}

/* Address after the value. */
static const uint8_t *skip_value(uint32_t kind, const uint8_t *value)
{
    if (kind == AK_GGUF_STRING)
        return value + 8 + load_little_endian(value, 8);
    if (kind != AK_GGUF_ARRAY)
        return value + ak_gguf_kinds[kind].bytes;
    uint32_t element = (uint32_t)load_little_endian(value, 4);
    uint64_t n = load_little_endian(value + 4, 8);
    const uint8_t *next = value + AK_GGUF_ARRAY_HEADER;
    if (element != AK_GGUF_STRING && element != AK_GGUF_ARRAY)
        return next + n * ak_gguf_kinds[element].bytes;
    for (uint64_t i = 0; i < n; i++)
        next = skip_value(element, next);
    return next;
}

void ak_gguf_meta(const struct ak_gguf_metadata *m, size_t i, struct ak_meta *out)
{
    const struct ak_gguf_entry *entry = &m->entries[i];
    decode_value(entry->kind, entry->value, out);
    out->key = m->names.bytes + entry->key;
}

bool ak_gguf_find_meta(const struct ak_gguf_metadata *m, const char *key, struct ak_meta *out)
{
    uint32_t i;
    if (!ak_name_index_find(&m->index, key, &i))
        return false;
    ak_gguf_meta(m, i, out);
    return true;
}

/* The entry of a value, by bisection: entries are in file order. NULL: the value is nested in
 * another one. */
static const struct ak_gguf_entry *entry_of(const struct ak_gguf_metadata *m, const uint8_t *value)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->entries[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->n && m->entries[low].value == value ? &m->entries[low] : NULL;
}

bool ak_gguf_element(const struct ak_gguf_metadata *m, const struct ak_meta *array, uint64_t i,
                     struct ak_meta *out)
{
    if (array->kind != AK_META_ARRAY || i >= array->n)
        return false;
    const uint8_t *header = array->as.elements, *next = header + AK_GGUF_ARRAY_HEADER;
    uint32_t kind = (uint32_t)load_little_endian(header, 4);
    if (kind != AK_GGUF_STRING && kind != AK_GGUF_ARRAY) {
        decode_value(kind, next + i * ak_gguf_kinds[kind].bytes, out);
        return true;
    }
    const struct ak_gguf_entry *entry = kind == AK_GGUF_STRING ? entry_of(m, header) : NULL;
    if (entry && i >= AK_GGUF_STRIDE) {
        next = m->string_index.strings[entry->first_string + i / AK_GGUF_STRIDE - 1];
        i %= AK_GGUF_STRIDE;
    }
    for (; i > 0; i--)
        next = skip_value(kind, next);
    decode_value(kind, next, out);
    return true;
}

bool ak_gguf_texts(const struct ak_meta *array, struct ak_text *out)
{
    const uint8_t *next = (const uint8_t *)array->as.elements + AK_GGUF_ARRAY_HEADER;
    for (uint64_t i = 0; i < array->n; i++, next = skip_value(AK_GGUF_STRING, next)) {
        uint64_t n = load_little_endian(next, 8);
        if (n > UINT32_MAX)
            return false;
        out[i] = (struct ak_text){ (const char *)next + 8, (uint32_t)n };
    }
    return true;
}

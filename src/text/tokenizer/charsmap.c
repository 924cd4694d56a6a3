/* SentencePiece's precompiled character map: loading with bounds checks, and lookup by walking the
 * double array. */
#include "text/tokenizer/pipeline.h"

#include <string.h>

#include "base/mem.h"

static uint32_t load_u32(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

ak_status ak_tok_charsmap_load(struct ak_tok_charsmap *map, struct ak_text bytes,
                               struct ak_error *error)
{
    if (bytes.n == 0)
        return AKUNU_OK;
    uint32_t n_array = bytes.n < 4 ? UINT32_MAX : load_u32(bytes.bytes);
    if (n_array >= bytes.n - 4 || n_array % 4 != 0)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "the precompiled character map has %u bytes, which its array of %u bytes does not fit",
            bytes.n, n_array);
    map->n_nodes = n_array / 4;
    map->n_text_bytes = bytes.n - 4 - n_array;
    map->nodes = ak_alloc((size_t)map->n_nodes + 1, sizeof *map->nodes);
    map->texts = ak_alloc(map->n_text_bytes, 1);
    if (!map->nodes || !map->texts)
        return ak_fail_memory(error, "the precompiled character map", bytes.n);
    for (uint32_t i = 0; i < map->n_nodes; i++)
        map->nodes[i] = load_u32(bytes.bytes + 4 + 4 * (size_t)i);
    memcpy(map->texts, bytes.bytes + 4 + n_array, map->n_text_bytes);
    if (map->texts[map->n_text_bytes - 1] != '\0')
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the precompiled character map does not end with NUL");
    return AKUNU_OK;
}

void ak_tok_charsmap_free(struct ak_tok_charsmap *map)
{
    ak_free(map->nodes);
    ak_free(map->texts);
    *map = (struct ak_tok_charsmap){ 0 };
}

/* A node: bits 0–7 and 31 are its label, bit 8 says that a string ends here, bits 10–30 are the
 * offset of its children, times 256 if bit 9 is set. */
static uint32_t get_children(uint32_t node)
{
    return (node >> 10) << ((node & (1u << 9)) >> 6);
}

size_t ak_tok_charsmap_find(const struct ak_tok_charsmap *map, const char *text, size_t n,
                            bool shortest, struct ak_text *replacement)
{
    size_t found = 0;
    uint32_t at = map->n_nodes ? get_children(map->nodes[0]) : 0;

    for (size_t i = 0; i < n && text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        at ^= c;
        if (at >= map->n_nodes || (map->nodes[at] & ((1u << 31) | 0xFF)) != c)
            break;
        uint32_t node = map->nodes[at];
        at ^= get_children(node);
        if (!(node >> 8 & 1))
            continue;
        uint32_t value = at < map->n_nodes ? map->nodes[at] & 0x7FFFFFFF : UINT32_MAX;
        if (value >= map->n_text_bytes)
            break;
        *replacement = (struct ak_text){ map->texts + value, (uint32_t)strlen(map->texts + value) };
        found = i + 1;
        if (shortest)
            break;
    }
    return found;
}

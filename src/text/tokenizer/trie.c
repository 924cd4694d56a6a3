/* Trie over the token bytes table: a sorted array of ids, searched by binary search per byte. */
#include "text/tokenizer/token_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Order of the heap sort below. qsort takes no context; a heap sort is n log n for any input. */
static bool sorts_before(const struct ak_tok_bytes *p, uint32_t a, uint32_t b)
{
    struct ak_text x = ak_tok_bytes_get(p, a), y = ak_tok_bytes_get(p, b);
    int order = memcmp(x.bytes, y.bytes, ak_min_size(x.n, y.n));

    if (order == 0)
        order = (x.n > y.n) - (x.n < y.n);
    return order ? order < 0 : a > b;
}

static void sift(const struct ak_tok_bytes *p, uint32_t *heap, size_t n, size_t at)
{
    uint32_t entry = heap[at];

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && sorts_before(p, heap[child], heap[child + 1]))
            child++;
        if (!sorts_before(p, entry, heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

static void sort(const struct ak_tok_bytes *p, uint32_t *order, size_t n)
{
    for (size_t at = n / 2; at-- > 0;)
        sift(p, order, n, at);
    for (size_t left = n; left-- > 1;) {
        uint32_t last = order[left];
        order[left] = order[0];
        order[0] = last;
        sift(p, order, left, 0);
    }
}

void ak_tok_trie_init(struct ak_tok_trie *t, const struct ak_tok_bytes *table, uint32_t *order,
                      uint32_t n)
{
    *t = (struct ak_tok_trie){ .table = table, .order = order, .n = n };
    sort(table, order, n);
    uint32_t i = 0;
    for (unsigned b = 0; b < 256; b++) {
        t->first[b] = i;
        while (i < n && (unsigned char)ak_tok_bytes_get(table, order[i]).bytes[0] == b)
            i++;
    }
    t->first[256] = n;
}

void ak_tok_trie_free(struct ak_tok_trie *t)
{
    ak_free(t->order);
    *t = (struct ak_tok_trie){ 0 };
}

/* The byte at `depth` plus 1, or 0 at the end. */
static unsigned get_key(const struct ak_tok_trie *t, uint32_t i, uint32_t depth)
{
    struct ak_text piece = ak_tok_bytes_get(t->table, t->order[i]);
    return depth < piece.n ? (unsigned char)piece.bytes[depth] + 1u : 0u;
}

/* The first of [low, high) with a key >= `key` at `depth`. */
static uint32_t lower_bound(const struct ak_tok_trie *t, uint32_t low, uint32_t high,
                            uint32_t depth, unsigned key)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (get_key(t, middle, depth) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ak_tok_trie_descend(const struct ak_tok_trie *t, struct ak_tok_trie_node *node,
                         unsigned char byte)
{
    if (node->depth == 0) {
        node->low = t->first[byte];
        node->high = t->first[byte + 1];
    } else {
        node->low = lower_bound(t, node->low, node->high, node->depth, byte + 1u);
        node->high = lower_bound(t, node->low, node->high, node->depth, byte + 2u);
    }
    node->depth++;
    return node->low < node->high;
}

int32_t ak_tok_trie_token(const struct ak_tok_trie *t, const struct ak_tok_trie_node *node)
{
    if (node->low == node->high || get_key(t, node->low, node->depth) != 0)
        return -1;
    return (int32_t)t->order[node->low];
}

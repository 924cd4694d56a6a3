/* Finds special and added tokens in a text with a sorted array as a trie. */
#include "text/tokenizer/token_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int compare_bytes(const void *a, const void *b)
{
    const struct ak_tok_special *x = a, *y = b;
    int order = memcmp(x->text, y->text, ak_min_size(x->n, y->n));

    if (order == 0)
        order = (x->n > y->n) - (x->n < y->n);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

void ak_tok_specials_init(struct ak_tok_specials *s, struct ak_tok_special *sorted, uint32_t n)
{
    *s = (struct ak_tok_specials){ .sorted = sorted, .n = n };
    if (n)
        qsort(sorted, n, sizeof *sorted, compare_bytes);
    uint32_t i = 0;
    for (unsigned b = 0; b < 256; b++) {
        s->first[b] = i;
        while (i < n && (unsigned char)sorted[i].text[0] == b)
            i++;
    }
    s->first[256] = n;
}

void ak_tok_specials_free(struct ak_tok_specials *s)
{
    ak_free(s->sorted);
    *s = (struct ak_tok_specials){ 0 };
}

/* The byte at `depth` plus 1, or 0 at the end, so that a text sorts before its continuations. */
static unsigned get_key(const struct ak_tok_special *special, uint32_t depth)
{
    return depth < special->n ? (unsigned char)special->text[depth] + 1u : 0u;
}

/* The first of [low, high) with a key >= `key` at `depth`. All are equal before `depth`. */
static uint32_t lower_bound(const struct ak_tok_specials *s, uint32_t low, uint32_t high,
                            uint32_t depth, unsigned key)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (get_key(&s->sorted[middle], depth) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest special token at the beginning of the text. A range of the sorted array is a node of
 * the trie. */
static const struct ak_tok_special *find_longest(const struct ak_tok_specials *s, bool control,
                                                 const char *text, size_t n)
{
    const struct ak_tok_special *best = NULL;
    uint32_t low = s->first[(unsigned char)text[0]], high = s->first[(unsigned char)text[0] + 1];

    for (uint32_t depth = 1; low < high; depth++) {
        /* ends here; several tokens may have the same text */
        while (low < high && s->sorted[low].n == depth) {
            if ((control || s->sorted[low].matches_always) && (!best || best->n < depth))
                best = &s->sorted[low];
            low++;
        }
        if (depth == n)
            break;
        unsigned key = (unsigned char)text[depth] + 1u;
        low = lower_bound(s, low, high, depth, key);
        high = lower_bound(s, low, high, depth, key + 1);
    }
    return best;
}

const struct ak_tok_special *ak_tok_specials_next(const struct ak_tok_specials *s, bool control,
                                                  const char *text, size_t n, size_t from,
                                                  size_t *at)
{
    for (size_t i = from; s->n && i < n; i++) {
        unsigned char b = (unsigned char)text[i];
        if (s->first[b] == s->first[b + 1])
            continue;
        const struct ak_tok_special *found = find_longest(s, control, text + i, n - i);
        if (found) {
            *at = i;
            return found;
        }
    }
    return NULL;
}

const struct ak_tok_special *ak_tok_specials_find(const struct ak_tok_specials *s, const char *name)
{
    const struct ak_tok_special *found = find_longest(s, true, name, strlen(name));
    return found && found->n == strlen(name) ? found : NULL;
}

/* What must come next, as tokens. */
#include <string.h>

#include "grammar/matcher_state.h"

enum { MOST_BYTES = 512 };

/* The one byte that may come, -1 where there are several, or where the text may end or go
 * on with a token. */
static int only_byte(const struct ak_grammar_matcher *m, uint32_t place)
{
    const struct ak_machine *machine = &m->machine;
    const struct ak_place *p = &machine->places[place];
    int only = -1;
    if (p->may_end)
        return -1;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct ak_frame *f = &machine->frames[machine->pool[p->first + i]];
        const struct ak_part *part = &m->g->parts[f->part];
        int byte = -1;
        if (part->kind == AK_PART_LITERAL) {
            byte = (unsigned char)m->g->bytes[part->a + f->at];
        } else if (part->kind == AK_PART_BYTES) {
            const struct ak_byte_set *s = &m->g->sets[part->a];
            for (int w = 0; w < 4; w++) {
                if (!s->bits[w])
                    continue;
                if (byte >= 0 || (s->bits[w] & (s->bits[w] - 1)))
                    return -1;
                byte = w * 64 + __builtin_ctzll(s->bits[w]);
            }
        }
        if (byte < 0 || (only >= 0 && only != byte))
            return -1;
        only = byte;
    }
    return only;
}

/* Do the token's bytes begin the text? */
static bool fits(const struct ak_token_trie *t, int32_t token, const char *text, size_t n,
                 uint32_t *bytes)
{
    if (token < 0 || (uint32_t)token >= t->n_tokens)
        return false;
    *bytes = t->first[token + 1] - t->first[token];
    return *bytes > 0 && *bytes <= n && !ak_mask_has(t->others, (uint32_t)token) &&
           memcmp(t->bytes + t->first[token], text, *bytes) == 0;
}

ak_status ak_grammar_matcher_forced(struct ak_grammar_matcher *m, int32_t *tokens, size_t capacity,
                                    size_t *n, struct ak_error *error)
{
    char text[MOST_BYTES];
    size_t n_bytes = 0, n_tokens = 0, at = 0;
    uint32_t place = m->place;
    int byte;

    *n = 0;
    ak_matcher_tidy(m, 0);
    place = m->place;
    while (n_bytes < MOST_BYTES && (byte = only_byte(m, place)) >= 0) {
        text[n_bytes++] = (char)byte;
        place = ak_machine_step(&m->machine, place, (unsigned char)byte);
        if (place == AK_PLACE_UNKNOWN)
            return ak_matcher_failure(m, error);
    }
    if (n_bytes < 2 || capacity == 0)
        return AKUNU_OK;
    AK_TRY(ak_tok_encode(m->trie->tokenizer, text, n_bytes, 0, tokens, capacity, &n_tokens, error));
    const struct ak_place *end = &m->machine.places[place];
    size_t most = end->may_end && end->n == 0 ? n_tokens : n_tokens - (n_tokens > 0);
    most = most < capacity ? most : capacity;
    for (uint32_t bytes = 0;
         *n < most && fits(m->trie, tokens[*n], text + at, n_bytes - at, &bytes); ++*n)
        at += bytes;
    return AKUNU_OK;
}

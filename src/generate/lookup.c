#include "generate/lookup.h"

#include "base/mem.h"

enum { MOST_PLACES = 32 }; /* looked at; more make a text of one word slow */

ak_status ak_lookup_create(uint32_t room, struct ak_lookup *out, struct ak_error *error)
{
    uint32_t n_heads = 1024;
    while (n_heads < room && n_heads < UINT32_C(1) << 24)
        n_heads *= 2;
    *out = (struct ak_lookup){ .room = room, .mask = n_heads - 1 };
    out->tokens = ak_alloc((size_t)room + AK_LOOKUP_SPARE, sizeof *out->tokens);
    out->earlier = ak_alloc((size_t)room + 1, sizeof *out->earlier);
    out->heads = ak_alloc(n_heads, sizeof *out->heads);
    if (out->tokens && out->earlier && out->heads)
        return AKUNU_OK;
    ak_lookup_clear(out);
    return ak_fail_memory(error, "the lookup of drafts", 0);
}

void ak_lookup_clear(struct ak_lookup *l)
{
    ak_free(l->tokens);
    ak_free(l->earlier);
    ak_free(l->heads);
    *l = (struct ak_lookup){ 0 };
}

static uint32_t *head_of(const struct ak_lookup *l, const int32_t *two)
{
    uint64_t both = (uint64_t)(uint32_t)two[0] << 32 | (uint32_t)two[1];
    return &l->heads[(both * 0x9e3779b97f4a7c15u >> 40) & l->mask];
}

/* A place is in its chain once the token there is known. */
void ak_lookup_push(struct ak_lookup *l, int32_t token)
{
    if (l->n == l->room)
        return;
    if (l->n >= AK_LOOKUP_LEAST) {
        uint32_t *head = head_of(l, l->tokens + l->n - AK_LOOKUP_LEAST);
        l->earlier[l->n] = *head;
        *head = l->n + 1;
    }
    l->tokens[l->n++] = token;
}

/* Tokens alike before `at` and at the end. */
static uint32_t alike(const struct ak_lookup *l, uint32_t at)
{
    uint32_t n = 0;
    while (n < AK_LOOKUP_MOST && n < at && l->tokens[at - 1 - n] == l->tokens[l->n - 1 - n])
        n++;
    return n;
}

/* Of places that are equally good the last one is taken. */
uint32_t ak_lookup_find(const struct ak_lookup *l, uint32_t *at)
{
    uint32_t best = AK_LOOKUP_LEAST - 1;
    if (l->n < AK_LOOKUP_LEAST)
        return AK_LOOKUP_NONE;
    uint32_t place = *head_of(l, l->tokens + l->n - AK_LOOKUP_LEAST);
    for (int i = 0; i < MOST_PLACES && place > 0 && best < AK_LOOKUP_MOST; i++) {
        uint32_t n = alike(l, place - 1);
        if (n > best) {
            best = n;
            *at = place - 1;
        }
        place = l->earlier[place - 1];
    }
    return best < AK_LOOKUP_LEAST ? AK_LOOKUP_NONE : best;
}

void ak_lookup_copy(const struct ak_lookup *l, uint32_t at, uint32_t n, int32_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = at + i < l->n ? l->tokens[at + i] : out[at + i - l->n];
}

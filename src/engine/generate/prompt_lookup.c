/* Prompt lookup drafter: hash chains over pairs of tokens, as LZ77 compressors use them. */
#include "engine/generate/draft.h"

#include "base/mem.h"

enum { CHAIN_MAX = 32 }; /* compared per search; bounds the time on a text of one repeated token */

ak_status ak_draft_lookup_create(uint32_t capacity, struct ak_draft_lookup *out,
                                 struct ak_error *error)
{
    uint32_t n_heads = 1024;
    while (n_heads < capacity && n_heads < UINT32_C(1) << 24)
        n_heads *= 2;
    *out = (struct ak_draft_lookup){ .capacity = capacity, .mask = n_heads - 1 };
    out->tokens = ak_alloc((size_t)capacity + AK_DRAFT_LOOKUP_SPARE, sizeof *out->tokens);
    out->previous = ak_alloc((size_t)capacity + 1, sizeof *out->previous);
    out->heads = ak_alloc(n_heads, sizeof *out->heads);
    if (out->tokens && out->previous && out->heads)
        return AKUNU_OK;
    ak_draft_lookup_clear(out);
    return ak_fail_memory(error, "the lookup of drafts", 0);
}

void ak_draft_lookup_clear(struct ak_draft_lookup *l)
{
    ak_free(l->tokens);
    ak_free(l->previous);
    ak_free(l->heads);
    *l = (struct ak_draft_lookup){ 0 };
}

static uint32_t *find_head(const struct ak_draft_lookup *l, const int32_t *two)
{
    uint64_t both = (uint64_t)(uint32_t)two[0] << 32 | (uint32_t)two[1];
    return &l->heads[(both * 0x9e3779b97f4a7c15u >> 40) & l->mask];
}

/* A position enters its chain once the token there is known. */
void ak_draft_lookup_push(struct ak_draft_lookup *l, int32_t token)
{
    if (l->n == l->capacity)
        return;
    if (l->n >= AK_DRAFT_LOOKUP_MIN) {
        uint32_t *head = find_head(l, l->tokens + l->n - AK_DRAFT_LOOKUP_MIN);
        l->previous[l->n] = *head;
        *head = l->n + 1;
    }
    l->tokens[l->n++] = token;
}

/* Number of equal tokens before `at` and before the end, at most AK_DRAFT_LOOKUP_MAX. */
static uint32_t count_match(const struct ak_draft_lookup *l, uint32_t at)
{
    uint32_t n = 0;
    while (n < AK_DRAFT_LOOKUP_MAX && n < at && l->tokens[at - 1 - n] == l->tokens[l->n - 1 - n])
        n++;
    return n;
}

/* Of equally long matches the latest wins. */
uint32_t ak_draft_lookup_find(const struct ak_draft_lookup *l, uint32_t *at)
{
    uint32_t best = AK_DRAFT_LOOKUP_MIN - 1;
    if (l->n < AK_DRAFT_LOOKUP_MIN)
        return AK_DRAFT_LOOKUP_NONE;
    uint32_t position = *find_head(l, l->tokens + l->n - AK_DRAFT_LOOKUP_MIN);
    for (int i = 0; i < CHAIN_MAX && position > 0 && best < AK_DRAFT_LOOKUP_MAX; i++) {
        uint32_t n = count_match(l, position - 1);
        if (n > best) {
            best = n;
            *at = position - 1;
        }
        position = l->previous[position - 1];
    }
    return best < AK_DRAFT_LOOKUP_MIN ? AK_DRAFT_LOOKUP_NONE : best;
}

void ak_draft_lookup_copy(const struct ak_draft_lookup *l, uint32_t at, uint32_t n, int32_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = at + i < l->n ? l->tokens[at + i] : out[at + i - l->n];
}

/* Forced tokens: collects the bytes that the grammar forces next and splits them as the tokenizer
 * would, so that a session can run them in one pass. */
#include <string.h>

#include "text/grammar/matcher_state.h"

enum { BYTES_MAX = 512 };

/* The only byte that may follow. −1: several may, or the text may end or continue with a token. */
static int find_only_byte(const struct ak_grammar_matcher *m, uint32_t state)
{
    const struct ak_pda *pda = &m->pda;
    const struct ak_pda_state *p = &pda->states[state];
    int only = -1;
    if (p->accepting)
        return -1;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct ak_pda_node *f = &pda->nodes[pda->pool[p->first + i]];
        const struct ak_grammar_expr *expr = &m->g->exprs[f->expr];
        int byte = -1;
        if (expr->kind == AK_GRAMMAR_EXPR_LITERAL) {
            byte = (unsigned char)m->g->bytes[expr->a + f->position];
        } else if (expr->kind == AK_GRAMMAR_EXPR_BYTES) {
            const struct ak_grammar_byte_set *s = &m->g->sets[expr->a];
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

/* Does the text begin with the token's bytes? *bytes: how many they are. */
static bool token_begins_text(const struct ak_grammar_token_trie *t, int32_t token,
                              const char *text, size_t n, uint32_t *bytes)
{
    if (token < 0 || (uint32_t)token >= t->n_tokens)
        return false;
    *bytes = t->first[token + 1] - t->first[token];
    return *bytes > 0 && *bytes <= n && !ak_grammar_mask_has(t->non_text_tokens, (uint32_t)token) &&
           memcmp(t->bytes + t->first[token], text, *bytes) == 0;
}

ak_status ak_grammar_matcher_find_forced_tokens(struct ak_grammar_matcher *m, int32_t *tokens,
                                                size_t capacity, size_t *n, struct ak_error *error)
{
    char text[BYTES_MAX];
    size_t n_bytes = 0, n_tokens = 0, at = 0;
    uint32_t state = m->state;
    int byte;

    *n = 0;
    ak_grammar_matcher_collect_garbage(m, 0);
    state = m->state;
    while (n_bytes < BYTES_MAX && (byte = find_only_byte(m, state)) >= 0) {
        text[n_bytes++] = (char)byte;
        state = ak_pda_get_transition(&m->pda, state, (unsigned char)byte);
        if (state == AK_PDA_STATE_UNKNOWN)
            return ak_grammar_matcher_fail(m, error);
    }
    if (n_bytes < 2 || capacity == 0)
        return AKUNU_OK;
    AK_TRY(ak_tok_encode(m->trie->tokenizer, text, n_bytes, 0, tokens, capacity, &n_tokens, error));
    const struct ak_pda_state *end = &m->pda.states[state];
    size_t n_max = end->accepting && end->n == 0 ? n_tokens : n_tokens - (n_tokens > 0);
    n_max = n_max < capacity ? n_max : capacity;
    for (uint32_t bytes = 0;
         *n < n_max && token_begins_text(m->trie, tokens[*n], text + at, n_bytes - at, &bytes);
         ++*n)
        at += bytes;
    return AKUNU_OK;
}

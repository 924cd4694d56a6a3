/* Token masks: walks the token trie and skips subtrees below a forbidden byte. Masks are cached by
 * the representative of the state. */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/matcher_state.h"

/* COLLECT_INTERVAL: trie nodes between checks for garbage. VISITS_MIN: visits of a
 * state before its mask is computed, which takes as long as testing some tens of tokens a few
 * times. */
enum { COLLECT_INTERVAL = 4096, VISITS_MIN = 8 };

/* Adds tokens by their bytes; m->path[0] is the state. Nodes with little below them use short
 * transitions, so fewer states are computed. */
static bool walk_trie(struct ak_grammar_matcher *m, uint32_t *bits)
{
    const struct ak_grammar_token_trie *t = m->trie;
    for (uint32_t i = 0, n = 0; i < t->n_nodes; n++) {
        const struct ak_grammar_trie_node *trie_node = &t->nodes[i];
        uint32_t from = m->path[trie_node->depth - 1];
        uint32_t to = (trie_node->height > AK_GRAMMAR_LOOKAHEAD_BYTES ?
                           ak_pda_get_transition :
                           ak_pda_get_short_transition)(&m->pda, from, trie_node->byte);
        if (to == AK_PDA_STATE_UNKNOWN)
            return false;
        if (to == AK_PDA_STATE_DEAD) {
            i = trie_node->skip;
            continue;
        }
        m->path[trie_node->depth] = to;
        if (trie_node->token >= 0)
            ak_grammar_mask_set(bits, (uint32_t)trie_node->token);
        if (n % COLLECT_INTERVAL == 0)
            ak_grammar_matcher_collect_garbage(m, trie_node->depth + 1u);
        i++;
    }
    for (uint32_t i = 0; i < t->n_aliases; i++)
        if (ak_grammar_mask_has(bits, t->aliases[i].canonical_token))
            ak_grammar_mask_set(bits, t->aliases[i].token);
    return true;
}

/* Adds tokens that the grammar names, and non-text tokens that keyword automata accept. */
static void add_named_tokens(const struct ak_grammar_matcher *m, uint32_t state, uint32_t *bits)
{
    const struct ak_grammar_token_trie *t = m->trie;
    const struct ak_pda *pda = &m->pda;
    for (uint32_t i = 0; i < pda->states[state].n; i++) {
        uint32_t node = pda->pool[pda->states[state].first + i], keyword_state;
        const struct ak_grammar_expr *p = &m->g->exprs[pda->nodes[node].expr];
        if (p->kind == AK_GRAMMAR_EXPR_TOKEN && !p->b) {
            ak_grammar_mask_set(bits, (uint32_t)m->token_ids[p->a]);
        } else if (p->kind == AK_GRAMMAR_EXPR_TOKEN) {
            for (uint32_t token = 0; token < t->n_tokens; token++)
                if (m->token_ids[p->a] != (int32_t)token &&
                    !ak_grammar_mask_has(t->end_tokens, token))
                    ak_grammar_mask_set(bits, token);
        } else if (p->kind == AK_GRAMMAR_EXPR_UNTIL) {
            for (uint32_t w = 0; w < ak_grammar_mask_n_words(t); w++)
                for (uint32_t left = t->non_text_tokens[w], token; left; left &= left - 1) {
                    token = w * 32 + (uint32_t)__builtin_ctz(left);
                    if (ak_grammar_matcher_advance_keyword(m, node, token, &keyword_state))
                        ak_grammar_mask_set(bits, token);
                }
        }
    }
}

static bool compute_mask(struct ak_grammar_matcher *m, uint32_t *bits)
{
    uint32_t words = ak_grammar_mask_n_words(m->trie);
    memset(bits, 0, words * sizeof *bits);
    if (!walk_trie(m, bits))
        return false;
    add_named_tokens(m, m->path[0], bits);
    if (m->pda.states[m->path[0]].accepting)
        for (uint32_t w = 0; w < words; w++)
            bits[w] |= m->trie->end_tokens[w];
    return true;
}

ak_status ak_grammar_matcher_mask_pays(struct ak_grammar_matcher *m, bool *pays,
                                       struct ak_error *error)
{
    ak_grammar_matcher_collect_garbage(m, 0);
    uint32_t representative = ak_pda_find_representative(&m->pda, m->state, AK_PDA_LOOKAHEAD_FULL);
    if (representative == AK_PDA_STATE_UNKNOWN)
        return ak_grammar_matcher_fail(m, error);
    struct ak_pda_state *p = &m->pda.states[representative];
    if (p->visits < VISITS_MIN)
        p->visits++;
    *pays = p->mask > 0 || p->visits == VISITS_MIN;
    return AKUNU_OK;
}

ak_status ak_grammar_matcher_get_mask(struct ak_grammar_matcher *m, const uint32_t **mask,
                                      struct ak_error *error)
{
    ak_grammar_matcher_collect_garbage(m, 0);
    m->path[0] = ak_pda_find_representative(&m->pda, m->state, AK_PDA_LOOKAHEAD_FULL);
    if (m->path[0] == AK_PDA_STATE_UNKNOWN)
        return ak_grammar_matcher_fail(m, error);
    uint32_t cached = m->pda.states[m->path[0]].mask;
    if (cached > 0) {
        *mask = m->masks[cached - 1].bits;
        return AKUNU_OK;
    }
    struct ak_grammar_mask_entry *entry = &m->masks[m->oldest_mask];
    m->pda.states[entry->state].mask = 0;
    entry->state = AK_PDA_STATE_DEAD;
    if (!entry->bits)
        entry->bits = ak_alloc(ak_grammar_mask_n_words(m->trie), sizeof *entry->bits);
    if (!entry->bits)
        return ak_fail_memory(error, "a mask of tokens", 0);
    if (!compute_mask(m, entry->bits))
        return ak_grammar_matcher_fail(m, error);
    entry->state = m->path[0];
    m->pda.states[entry->state].mask = m->oldest_mask + 1;
    m->oldest_mask = (m->oldest_mask + 1) % m->n_masks;
    *mask = entry->bits;
    return AKUNU_OK;
}

/* Which tokens are allowed: the trie of the vocabulary is walked, and what is below a byte
 * that is not allowed is passed over. */
#include <string.h>

#include "base/mem.h"
#include "grammar/matcher_state.h"

/* Making a mask takes as long as testing some tens of tokens a few times. */
enum { TIDY_EACH = 4096, PAYS_AFTER = 8 };

/* Tokens by their bytes; m->walk[0] is the place. Where few bytes are below a node, places
 * that differ further ahead are one, so that few are to be found. */
static bool walk(struct ak_grammar_matcher *m, uint32_t *bits)
{
    const struct ak_token_trie *t = m->trie;
    for (uint32_t i = 0, n = 0; i < t->n_nodes; n++) {
        const struct ak_trie_byte *node = &t->nodes[i];
        uint32_t from = m->walk[node->depth - 1];
        uint32_t to = (node->below > AK_NEAR_BYTES ? ak_machine_step : ak_machine_step_near)(
            &m->machine, from, node->byte);
        if (to == AK_PLACE_UNKNOWN)
            return false;
        if (to == AK_PLACE_NOWHERE) {
            i = node->skip;
            continue;
        }
        m->walk[node->depth] = to;
        if (node->token >= 0)
            ak_mask_set(bits, (uint32_t)node->token);
        if (n % TIDY_EACH == 0)
            ak_matcher_tidy(m, node->depth + 1u);
        i++;
    }
    for (uint32_t i = 0; i < t->n_twins; i++)
        if (ak_mask_has(bits, t->twins[i].like))
            ak_mask_set(bits, t->twins[i].token);
    return true;
}

/* Tokens that the grammar names, and those that no text has where it waits. */
static void add_named(const struct ak_grammar_matcher *m, uint32_t place, uint32_t *bits)
{
    const struct ak_token_trie *t = m->trie;
    const struct ak_machine *machine = &m->machine;
    for (uint32_t i = 0; i < machine->places[place].n; i++) {
        uint32_t frame = machine->pool[machine->places[place].first + i], state;
        const struct ak_part *p = &m->g->parts[machine->frames[frame].part];
        if (p->kind == AK_PART_TOKEN && !p->b) {
            ak_mask_set(bits, (uint32_t)m->token_ids[p->a]);
        } else if (p->kind == AK_PART_TOKEN) {
            for (uint32_t token = 0; token < t->n_tokens; token++)
                if (m->token_ids[p->a] != (int32_t)token && !ak_mask_has(t->ends, token))
                    ak_mask_set(bits, token);
        } else if (p->kind == AK_PART_UNTIL) {
            for (uint32_t w = 0; w < ak_mask_words(t); w++)
                for (uint32_t left = t->others[w], token; left; left &= left - 1) {
                    token = w * 32 + (uint32_t)__builtin_ctz(left);
                    if (ak_matcher_waits(m, frame, token, &state))
                        ak_mask_set(bits, token);
                }
        }
    }
}

static bool make(struct ak_grammar_matcher *m, uint32_t *bits)
{
    uint32_t words = ak_mask_words(m->trie);
    memset(bits, 0, words * sizeof *bits);
    if (!walk(m, bits))
        return false;
    add_named(m, m->walk[0], bits);
    if (m->machine.places[m->walk[0]].may_end)
        for (uint32_t w = 0; w < words; w++)
            bits[w] |= m->trie->ends[w];
    return true;
}

ak_status ak_grammar_matcher_mask_pays(struct ak_grammar_matcher *m, bool *pays,
                                       struct ak_error *error)
{
    ak_matcher_tidy(m, 0);
    uint32_t like = ak_machine_like(&m->machine, m->place, AK_LOOK_FAR);
    if (like == AK_PLACE_UNKNOWN)
        return ak_matcher_failure(m, error);
    struct ak_place *p = &m->machine.places[like];
    if (p->visits < PAYS_AFTER)
        p->visits++;
    *pays = p->mask > 0 || p->visits == PAYS_AFTER;
    return AKUNU_OK;
}

ak_status ak_grammar_matcher_mask(struct ak_grammar_matcher *m, const uint32_t **mask,
                                  struct ak_error *error)
{
    ak_matcher_tidy(m, 0);
    m->walk[0] = ak_machine_like(&m->machine, m->place, AK_LOOK_FAR);
    if (m->walk[0] == AK_PLACE_UNKNOWN)
        return ak_matcher_failure(m, error);
    uint32_t kept = m->machine.places[m->walk[0]].mask;
    if (kept > 0) {
        *mask = m->masks[kept - 1].bits;
        return AKUNU_OK;
    }
    struct ak_kept_mask *slot = &m->masks[m->oldest];
    m->machine.places[slot->place].mask = 0;
    slot->place = AK_PLACE_NOWHERE;
    if (!slot->bits)
        slot->bits = ak_alloc(ak_mask_words(m->trie), sizeof *slot->bits);
    if (!slot->bits)
        return ak_fail_memory(error, "a mask of tokens", 0);
    if (!make(m, slot->bits))
        return ak_matcher_failure(m, error);
    slot->place = m->walk[0];
    m->machine.places[slot->place].mask = m->oldest + 1;
    m->oldest = (m->oldest + 1) % m->n_masks;
    *mask = slot->bits;
    return AKUNU_OK;
}

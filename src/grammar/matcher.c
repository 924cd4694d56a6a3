#include "grammar/matcher_state.h"

#include <string.h>

#include "base/mem.h"
#include "base/show.h"

enum { MASK_BYTES = 16 << 20, LEAST_MASKS = 16, MOST_MASKS = 1024 };

ak_status ak_matcher_failure(const struct ak_grammar_matcher *m, struct ak_error *error)
{
    if (m->machine.crowded)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the grammar is too ambiguous: there are too many ways to read the text");
    return ak_fail_memory(error, "a grammar's matcher", 0);
}

/* The token of that text: what the tokenizer cuts it to, if that is one token. */
static ak_status find_token(const struct ak_tokenizer *t, const struct ak_token_name *name,
                            int32_t *id, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], text[AK_TOKEN_MOST_BYTES];
    size_t n = 0, n_bytes = 0;
    AK_TRY(ak_tok_encode(t, name->text, name->n, AKUNU_PARSE_SPECIAL, id, 1, &n, error));
    if (n == 1)
        AK_TRY(ak_tok_decode(t, id, 1, AKUNU_CONTINUE, text, sizeof text, &n_bytes, error));
    if (n != 1 || n_bytes != name->n || memcmp(text, name->text, n_bytes) != 0)
        return ak_fail(
            error, AKUNU_ERROR_ARGUMENT,
            "the grammar names the token \"%s\", which the vocabulary does not have as one token",
            ak_show(name->text, name->n, shown));
    return AKUNU_OK;
}

static ak_status find_tokens(struct ak_grammar_matcher *m, struct ak_error *error)
{
    for (uint32_t i = 0; i < m->g->n_tokens; i++) {
        const struct ak_token_name *name = &m->g->tokens[i];
        if (name->text) {
            AK_TRY(find_token(m->trie->tokenizer, name, &m->token_ids[i], error));
        } else if (name->id >= m->trie->n_tokens) {
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "the grammar names token %u: the vocabulary has %u tokens", name->id,
                           m->trie->n_tokens);
        } else {
            m->token_ids[i] = (int32_t)name->id;
        }
    }
    return AKUNU_OK;
}

/* Without a vocabulary a token's text stands for it. */
static ak_status check_texts(const struct ak_grammar *g, struct ak_error *error)
{
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct ak_part *p = &g->parts[i];
        if (p->kind != AK_PART_TOKEN || (g->tokens[p->a].text && !p->b))
            continue;
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the grammar refers to a token %s: that needs a vocabulary",
                       p->b ? "by what it is not" : "by its number");
    }
    return AKUNU_OK;
}

static ak_status create(struct ak_grammar_matcher *m, struct ak_error *error)
{
    if (m->trie) {
        m->token_ids = ak_alloc(m->g->n_tokens, sizeof *m->token_ids);
        size_t n = MASK_BYTES / (ak_mask_words(m->trie) * sizeof(uint32_t) + 1);
        m->n_masks = (uint32_t)ak_max_size(LEAST_MASKS, ak_min_size(n, MOST_MASKS));
        m->masks = ak_alloc(m->n_masks, sizeof *m->masks);
        if (!m->token_ids || !m->masks)
            return ak_fail_memory(error, "a grammar's matcher", 0);
        AK_TRY(find_tokens(m, error));
    } else {
        AK_TRY(check_texts(m->g, error));
    }
    if (!ak_machine_init(&m->machine, m->g, m->token_ids, m->trie ? m->trie->longest : 0))
        return ak_fail_memory(error, "a grammar's matcher", 0);
    return ak_grammar_matcher_reset(m, error);
}

ak_status ak_grammar_matcher_create(const struct ak_grammar *g, const struct ak_token_trie *trie,
                                    struct ak_grammar_matcher **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_grammar_matcher *m = ak_alloc(1, sizeof *m);
    if (!m)
        return ak_fail_memory(error, "a grammar's matcher", sizeof *m);
    m->g = g;
    m->trie = trie;
    ak_status status = create(m, error);
    if (status != AKUNU_OK) {
        ak_grammar_matcher_free(m);
        return status;
    }
    *out = m;
    return AKUNU_OK;
}

void ak_grammar_matcher_free(struct ak_grammar_matcher *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n_masks && m->masks; i++)
        ak_free(m->masks[i].bits);
    ak_machine_free(&m->machine);
    ak_free(m->masks);
    ak_free(m->token_ids);
    ak_free(m);
}

ak_status ak_grammar_matcher_reset(struct ak_grammar_matcher *m, struct ak_error *error)
{
    struct ak_machine *machine = &m->machine;
    ak_machine_open(machine);
    if (m->g->parts[m->g->root].possible)
        ak_machine_enter(machine, ak_machine_frame(machine, m->g->root, 0, AK_FRAME_END));
    uint32_t place = ak_machine_close(machine);
    if (place == AK_PLACE_UNKNOWN)
        return ak_matcher_failure(m, error);
    m->place = place;
    m->n_before = 0;
    return AKUNU_OK;
}

void ak_matcher_tidy(struct ak_grammar_matcher *m, uint32_t n)
{
    uint32_t *roots[1 + AK_GRAMMAR_MOST_BACK + AK_TOKEN_MOST_BYTES + 1];
    size_t n_roots = 0;
    if (!ak_machine_is_full(&m->machine))
        return;
    roots[n_roots++] = &m->place;
    for (uint32_t i = 0; i < m->n_before; i++)
        roots[n_roots++] =
            &m->before[(m->newest + AK_GRAMMAR_MOST_BACK - i) % AK_GRAMMAR_MOST_BACK];
    for (uint32_t i = 0; i < n; i++)
        roots[n_roots++] = &m->walk[i];
    ak_machine_collect(&m->machine, roots, n_roots);
    for (uint32_t i = 0; i < m->n_masks; i++)
        m->masks[i].place = AK_PLACE_NOWHERE;
}

ak_status ak_grammar_matcher_bytes(struct ak_grammar_matcher *m, const char *bytes, size_t n,
                                   size_t *taken, struct ak_error *error)
{
    m->walk[0] = m->place;
    for (*taken = 0; *taken < n; ++*taken) {
        uint32_t to = ak_machine_step(&m->machine, m->walk[0], (unsigned char)bytes[*taken]);
        if (to == AK_PLACE_UNKNOWN)
            return ak_matcher_failure(m, error);
        if (to == AK_PLACE_NOWHERE)
            break;
        m->walk[0] = to;
        ak_matcher_tidy(m, 1);
    }
    m->place = m->walk[0];
    m->n_before = 0;
    return AKUNU_OK;
}

bool ak_grammar_matcher_may_end(const struct ak_grammar_matcher *m)
{
    return m->machine.places[m->place].may_end;
}

bool ak_grammar_matcher_must_end(const struct ak_grammar_matcher *m)
{
    const struct ak_place *p = &m->machine.places[m->place];
    return p->may_end && p->n == 0;
}

/* Where the token's bytes lead. */
static uint32_t after_bytes(struct ak_grammar_matcher *m, int32_t token)
{
    const struct ak_token_trie *t = m->trie;
    uint32_t first = t->first[token], n = t->first[token + 1] - first;
    uint32_t place =
        n > 0 && !ak_mask_has(t->others, (uint32_t)token) ? m->place : AK_PLACE_NOWHERE;
    for (uint32_t i = 0; i < n && place != AK_PLACE_NOWHERE && place != AK_PLACE_UNKNOWN; i++)
        place = ak_machine_step(&m->machine, place, (unsigned char)t->bytes[first + i]);
    return place;
}

bool ak_matcher_waits(const struct ak_grammar_matcher *m, uint32_t frame, uint32_t token,
                      uint32_t *state)
{
    const struct ak_token_trie *t = m->trie;
    const struct ak_frame *f = &m->machine.frames[frame];
    const struct ak_words *w = &m->g->words[m->g->parts[f->part].a];
    *state = f->at;
    for (uint32_t i = t->first[token]; i < t->first[token + 1]; i++) {
        if (*state >= w->n) /* a word ends inside of it */
            return false;
        *state = w->next[*state][(unsigned char)t->bytes[i]];
    }
    return ak_words_go_on(m->g, w, *state);
}

/* The frames that take the token as a token: those that name it, and those that wait for
 * words, which may be control tokens or parts of these. */
static void enter_token(struct ak_grammar_matcher *m, int32_t token)
{
    struct ak_machine *machine = &m->machine;
    bool end = ak_mask_has(m->trie->ends, (uint32_t)token),
         other = ak_mask_has(m->trie->others, (uint32_t)token);
    for (uint32_t i = 0; i < machine->places[m->place].n; i++) {
        uint32_t frame = machine->pool[machine->places[m->place].first + i], state;
        struct ak_frame f = machine->frames[frame];
        const struct ak_part *p = &m->g->parts[f.part];
        if (p->kind == AK_PART_TOKEN &&
            (p->b ? !end && m->token_ids[p->a] != token : m->token_ids[p->a] == token))
            ak_machine_enter(machine, f.rest);
        else if (p->kind == AK_PART_UNTIL && other &&
                 ak_matcher_waits(m, frame, (uint32_t)token, &state))
            ak_machine_enter_until(machine, frame, state);
    }
}

uint32_t ak_matcher_after(struct ak_grammar_matcher *m, int32_t token)
{
    if (token < 0 || (uint32_t)token >= m->trie->n_tokens)
        return AK_PLACE_NOWHERE;
    uint32_t place = after_bytes(m, token);
    if (place == AK_PLACE_UNKNOWN || m->g->n_tokens + m->g->n_words == 0)
        return place;
    ak_machine_open(&m->machine);
    enter_token(m, token);
    ak_machine_enter_place(&m->machine, place);
    return ak_machine_close(&m->machine);
}

static bool ends(const struct ak_grammar_matcher *m, int32_t token)
{
    return token >= 0 && (uint32_t)token < m->trie->n_tokens &&
           ak_mask_has(m->trie->ends, (uint32_t)token) && ak_grammar_matcher_may_end(m);
}

ak_status ak_grammar_matcher_allows(struct ak_grammar_matcher *m, int32_t token, bool *allowed,
                                    struct ak_error *error)
{
    ak_matcher_tidy(m, 0);
    uint32_t to = ak_matcher_after(m, token);
    if (to == AK_PLACE_UNKNOWN)
        return ak_matcher_failure(m, error);
    *allowed = to != AK_PLACE_NOWHERE || ends(m, token);
    return AKUNU_OK;
}

ak_status ak_grammar_matcher_token(struct ak_grammar_matcher *m, int32_t token, bool *allowed,
                                   struct ak_error *error)
{
    ak_matcher_tidy(m, 0);
    uint32_t to = ak_matcher_after(m, token);
    if (to == AK_PLACE_UNKNOWN)
        return ak_matcher_failure(m, error);
    *allowed = to != AK_PLACE_NOWHERE || ends(m, token);
    if (!*allowed)
        return AKUNU_OK;
    m->newest = (m->newest + 1) % AK_GRAMMAR_MOST_BACK;
    m->before[m->newest] = m->place;
    m->n_before += m->n_before < AK_GRAMMAR_MOST_BACK;
    m->place = to;
    return AKUNU_OK;
}

void ak_grammar_matcher_back(struct ak_grammar_matcher *m, unsigned n)
{
    for (; n > 0 && m->n_before > 0; n--, m->n_before--) {
        m->place = m->before[m->newest];
        m->newest = (m->newest + AK_GRAMMAR_MOST_BACK - 1) % AK_GRAMMAR_MOST_BACK;
    }
}

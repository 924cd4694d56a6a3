/* Matcher: moves between states of the PDA by bytes and tokens, and remembers the latest states for
 * a rollback. Token references are resolved to token numbers once, at creation. */
#include "text/grammar/matcher_state.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { MASK_BYTES = 16 << 20, MASKS_MIN = 16, MASKS_MAX = 1024 };

ak_status ak_grammar_matcher_fail(const struct ak_grammar_matcher *m, struct ak_error *error)
{
    if (m->pda.over_limit)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the grammar is too ambiguous: there are too many ways to read the text");
    return ak_fail_memory(error, "a grammar's matcher", 0);
}

/* The token with that text: the tokenizer must encode the text as this token alone. */
static ak_status find_token(const struct ak_tokenizer *t, const struct ak_grammar_token_ref *name,
                            int32_t *id, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], text[AK_GRAMMAR_TOKEN_BYTES_MAX];
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
        const struct ak_grammar_token_ref *name = &m->g->tokens[i];
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

/* Without a vocabulary a token is matched by its text, so it needs one and cannot be negated. */
static ak_status check_token_texts(const struct ak_grammar *g, struct ak_error *error)
{
    for (uint32_t i = 0; i < g->n_exprs; i++) {
        const struct ak_grammar_expr *p = &g->exprs[i];
        if (p->kind != AK_GRAMMAR_EXPR_TOKEN || (g->tokens[p->a].text && !p->b))
            continue;
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the grammar refers to a token %s: that needs a vocabulary",
                       p->b ? "by negation" : "by its number");
    }
    return AKUNU_OK;
}

static ak_status init_matcher(struct ak_grammar_matcher *m, struct ak_error *error)
{
    if (m->trie) {
        m->token_ids = ak_alloc(m->g->n_tokens, sizeof *m->token_ids);
        size_t n = MASK_BYTES / (ak_grammar_mask_n_words(m->trie) * sizeof(uint32_t) + 1);
        m->n_masks = (uint32_t)ak_max_size(MASKS_MIN, ak_min_size(n, MASKS_MAX));
        m->masks = ak_alloc(m->n_masks, sizeof *m->masks);
        if (!m->token_ids || !m->masks)
            return ak_fail_memory(error, "a grammar's matcher", 0);
        AK_TRY(find_tokens(m, error));
    } else {
        AK_TRY(check_token_texts(m->g, error));
    }
    if (!ak_pda_init(&m->pda, m->g, m->token_ids, m->trie ? m->trie->max_token_bytes : 0))
        return ak_fail_memory(error, "a grammar's matcher", 0);
    return ak_grammar_matcher_reset(m, error);
}

ak_status ak_grammar_matcher_create(struct ak_grammar *g, const struct ak_grammar_token_trie *trie,
                                    struct ak_grammar_matcher **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_grammar_matcher *m = ak_alloc(1, sizeof *m);
    if (!m)
        return ak_fail_memory(error, "a grammar's matcher", sizeof *m);
    m->g = ak_grammar_ref(g);
    m->trie = trie;
    ak_status status = init_matcher(m, error);
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
    ak_pda_free(&m->pda);
    ak_free(m->masks);
    ak_free(m->token_ids);
    ak_grammar_free(m->g);
    ak_free(m);
}

ak_status ak_grammar_matcher_reset(struct ak_grammar_matcher *m, struct ak_error *error)
{
    struct ak_pda *pda = &m->pda;
    ak_pda_closure_begin(pda);
    if (m->g->exprs[m->g->root].productive)
        ak_pda_closure_add(pda, ak_pda_intern_node(pda, m->g->root, 0, AK_PDA_NODE_END));
    uint32_t state = ak_pda_closure_finish(pda);
    if (state == AK_PDA_STATE_UNKNOWN)
        return ak_grammar_matcher_fail(m, error);
    m->state = state;
    return AKUNU_OK;
}

void ak_grammar_matcher_collect_garbage(struct ak_grammar_matcher *m, uint32_t n)
{
    uint32_t *roots[1 + AK_GRAMMAR_TOKEN_BYTES_MAX + 1];
    size_t n_roots = 0;
    if (!ak_pda_is_full(&m->pda))
        return;
    roots[n_roots++] = &m->state;
    for (uint32_t i = 0; i < n; i++)
        roots[n_roots++] = &m->path[i];
    ak_pda_collect_garbage(&m->pda, roots, n_roots);
    for (uint32_t i = 0; i < m->n_masks; i++)
        m->masks[i].state = AK_PDA_STATE_DEAD;
}

ak_status ak_grammar_matcher_accept_bytes(struct ak_grammar_matcher *m, const char *bytes, size_t n,
                                          size_t *taken, struct ak_error *error)
{
    m->path[0] = m->state;
    for (*taken = 0; *taken < n; ++*taken) {
        uint32_t to = ak_pda_get_transition(&m->pda, m->path[0], (unsigned char)bytes[*taken]);
        if (to == AK_PDA_STATE_UNKNOWN)
            return ak_grammar_matcher_fail(m, error);
        if (to == AK_PDA_STATE_DEAD)
            break;
        m->path[0] = to;
        ak_grammar_matcher_collect_garbage(m, 1);
    }
    m->state = m->path[0];
    return AKUNU_OK;
}

bool ak_grammar_matcher_is_accepting(const struct ak_grammar_matcher *m)
{
    return m->pda.states[m->state].accepting;
}

bool ak_grammar_matcher_must_end(const struct ak_grammar_matcher *m)
{
    const struct ak_pda_state *p = &m->pda.states[m->state];
    return p->accepting && p->n == 0;
}

/* State after the token's bytes. */
static uint32_t find_bytes_transition(struct ak_grammar_matcher *m, int32_t token)
{
    const struct ak_grammar_token_trie *t = m->trie;
    uint32_t first = t->first[token], n = t->first[token + 1] - first;
    uint32_t state = n > 0 && !ak_grammar_mask_has(t->non_text_tokens, (uint32_t)token) ?
                         m->state :
                         AK_PDA_STATE_DEAD;
    for (uint32_t i = 0; i < n && state != AK_PDA_STATE_DEAD && state != AK_PDA_STATE_UNKNOWN; i++)
        state = ak_pda_get_transition(&m->pda, state, (unsigned char)t->bytes[first + i]);
    return state;
}

bool ak_grammar_matcher_advance_keyword(const struct ak_grammar_matcher *m, uint32_t node,
                                        uint32_t token, uint32_t *keyword_state)
{
    const struct ak_grammar_token_trie *t = m->trie;
    const struct ak_pda_node *f = &m->pda.nodes[node];
    const struct ak_grammar_keyword_automaton *w = &m->g->automata[m->g->exprs[f->expr].a];
    *keyword_state = f->position;
    for (uint32_t i = t->first[token]; i < t->first[token + 1]; i++) {
        if (*keyword_state >= w->n) /* a keyword ends before the token does */
            return false;
        *keyword_state = w->next[*keyword_state][(unsigned char)t->bytes[i]];
    }
    return ak_pda_keyword_state_is_live(m->g, w, *keyword_state);
}

/* Adds the successors of stack nodes that take the whole token: token references, and keyword
 * searches, which also read the text of control tokens. */
static void add_token_nodes(struct ak_grammar_matcher *m, int32_t token)
{
    struct ak_pda *pda = &m->pda;
    bool end = ak_grammar_mask_has(m->trie->end_tokens, (uint32_t)token),
         other = ak_grammar_mask_has(m->trie->non_text_tokens, (uint32_t)token);
    for (uint32_t i = 0; i < pda->states[m->state].n; i++) {
        uint32_t node = pda->pool[pda->states[m->state].first + i], keyword_state;
        struct ak_pda_node f = pda->nodes[node];
        const struct ak_grammar_expr *p = &m->g->exprs[f.expr];
        if (p->kind == AK_GRAMMAR_EXPR_TOKEN &&
            (p->b ? !end && m->token_ids[p->a] != token : m->token_ids[p->a] == token))
            ak_pda_closure_add(pda, f.rest);
        else if (p->kind == AK_GRAMMAR_EXPR_UNTIL && other &&
                 ak_grammar_matcher_advance_keyword(m, node, (uint32_t)token, &keyword_state))
            ak_pda_closure_add_until(pda, node, keyword_state);
    }
}

uint32_t ak_grammar_matcher_find_transition(struct ak_grammar_matcher *m, int32_t token)
{
    if (token < 0 || (uint32_t)token >= m->trie->n_tokens)
        return AK_PDA_STATE_DEAD;
    uint32_t state = find_bytes_transition(m, token);
    if (state == AK_PDA_STATE_UNKNOWN || m->g->n_tokens + m->g->n_automata == 0)
        return state;
    ak_pda_closure_begin(&m->pda);
    add_token_nodes(m, token);
    ak_pda_closure_add_state(&m->pda, state);
    return ak_pda_closure_finish(&m->pda);
}

static bool ends_text(const struct ak_grammar_matcher *m, int32_t token)
{
    return token >= 0 && (uint32_t)token < m->trie->n_tokens &&
           ak_grammar_mask_has(m->trie->end_tokens, (uint32_t)token) &&
           ak_grammar_matcher_is_accepting(m);
}

ak_status ak_grammar_matcher_allows(struct ak_grammar_matcher *m, int32_t token, bool *allowed,
                                    struct ak_error *error)
{
    ak_grammar_matcher_collect_garbage(m, 0);
    uint32_t to = ak_grammar_matcher_find_transition(m, token);
    if (to == AK_PDA_STATE_UNKNOWN)
        return ak_grammar_matcher_fail(m, error);
    *allowed = to != AK_PDA_STATE_DEAD || ends_text(m, token);
    return AKUNU_OK;
}

ak_status ak_grammar_matcher_accept_token(struct ak_grammar_matcher *m, int32_t token,
                                          bool *allowed, struct ak_error *error)
{
    ak_grammar_matcher_collect_garbage(m, 0);
    uint32_t to = ak_grammar_matcher_find_transition(m, token);
    if (to == AK_PDA_STATE_UNKNOWN)
        return ak_grammar_matcher_fail(m, error);
    *allowed = to != AK_PDA_STATE_DEAD || ends_text(m, token);
    if (!*allowed)
        return AKUNU_OK;
    m->state = to;
    return AKUNU_OK;
}

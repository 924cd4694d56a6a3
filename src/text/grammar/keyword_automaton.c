/* Keyword automaton (Aho and Corasick, 1975): finds keywords in a text that grows byte by byte.
 * Keywords that count only at the start have their own trie, which falls back to the automaton of
 * the others. */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/builder.h"

enum { NONE = 0xffff };

/* During construction next[state][c] is a state or NONE, and keyword[state] the keyword that ends
 * there or NONE. */
struct automaton_builder {
    const struct ak_gb_keyword *keywords;
    size_t n;
    uint16_t (*next)[256];
    uint16_t *fail, *queue, *keyword;
    uint16_t n_states;
};

static uint16_t add_state(struct automaton_builder *m)
{
    memset(m->next[m->n_states], 0xff, sizeof m->next[0]);
    m->keyword[m->n_states] = NONE;
    return m->n_states++;
}

/* Adds a trie of the keywords that count only at the start, or of the others. If one keyword begins
 * with another, the shorter one completes first, so the longer one is cut off there. */
static uint16_t add_trie(struct automaton_builder *m, bool start)
{
    uint16_t root = add_state(m);
    for (size_t i = 0; i < m->n; i++) {
        uint16_t at = root;
        for (size_t j = 0;
             m->keywords[i].at_start == start && j < m->keywords[i].n && m->keyword[at] == NONE;
             j++) {
            unsigned char c = (unsigned char)m->keywords[i].text[j];
            if (m->next[at][c] == NONE)
                m->next[at][c] = add_state(m);
            at = m->next[at][c];
        }
        if (m->keywords[i].at_start == start && m->keyword[at] == NONE)
            m->keyword[at] = (uint16_t)i;
    }
    return root;
}

/* Fills in missing transitions, level by level: a state takes them from its longest suffix that is
 * a state of `others`, the trie of keywords that count anywhere. Leading
 * whitespace stays in the start state, so keywords that count only at the start may follow it. */
static void close_trie(struct automaton_builder *m, uint16_t root, uint16_t others)
{
    size_t head = 0, tail = 0;
    m->queue[tail++] = root;
    m->fail[root] = others;
    while (head < tail) {
        uint16_t at = m->queue[head++];
        if (m->keyword[at] == NONE)
            m->keyword[at] = m->keyword[m->fail[at]];
        for (unsigned c = 0; c < 256; c++) {
            uint16_t over = at == others ? others : m->next[m->fail[at]][c], *to = &m->next[at][c];
            if (*to == NONE) {
                *to = at == root && root != others && c && strchr(" \t\r\n", (int)c) ? root : over;
            } else {
                m->fail[*to] = over;
                m->queue[tail++] = *to;
            }
        }
    }
}

bool ak_grammar_build_keyword_automaton(const struct ak_gb_keyword *keywords, size_t n,
                                        size_t bytes, struct ak_grammar_keyword_automaton *out)
{
    struct automaton_builder m = { .keywords = keywords, .n = n };
    bool start = false;

    for (size_t i = 0; i < n; i++)
        start |= keywords[i].at_start;
    m.next = ak_alloc(bytes + 2, sizeof *m.next);
    m.fail = ak_alloc(bytes + 2, sizeof *m.fail);
    m.queue = ak_alloc(bytes + 2, sizeof *m.queue);
    m.keyword = ak_alloc(bytes + 2, sizeof *m.keyword);
    bool ok = m.next && m.fail && m.queue && m.keyword;
    if (ok) {
        uint16_t first = start ? add_trie(&m, true) : 0, others = add_trie(&m, false);
        close_trie(&m, others, others);
        if (start)
            close_trie(&m, first, others);
        for (size_t i = 0; i < m.n_states; i++)
            for (unsigned c = 0; c < 256; c++)
                if (m.keyword[m.next[i][c]] != NONE)
                    m.next[i][c] = (uint16_t)(m.n_states + m.keyword[m.next[i][c]]);
    }
    ak_free(m.fail);
    ak_free(m.queue);
    ak_free(m.keyword);
    if (!ok) {
        ak_free(m.next);
        return false;
    }
    out->next = m.next;
    out->n = m.n_states;
    return true;
}

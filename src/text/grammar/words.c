/* Words that a text is searched for while it grows (Aho and Corasick, 1975). */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/build.h"

enum { NONE = 0xffff };

bool ak_words_make(const struct ak_word *words, size_t n, size_t bytes, struct ak_words *out)
{
    uint16_t (*next)[256] = ak_alloc(bytes + 1, sizeof *next);
    uint16_t *fail = ak_alloc(bytes + 1, sizeof *fail), *queue = ak_alloc(bytes + 1, sizeof *queue);
    bool *ends = ak_alloc(bytes + 1, sizeof *ends);
    uint16_t n_states = 1;
    bool ok = next && fail && queue && ends;

    if (ok)
        memset(next[0], 0xff, sizeof next[0]);
    for (size_t i = 0; ok && i < n; i++) {
        uint16_t at = 0;
        for (size_t j = 0; j < words[i].n && !ends[at]; j++) {
            uint16_t *to = &next[at][(unsigned char)words[i].text[j]];
            if (*to == NONE) {
                memset(next[n_states], 0xff, sizeof next[0]);
                *to = n_states++;
            }
            at = *to;
        }
        ends[at] = true;
    }
    /* level by level: what a state lacks it takes from the longest suffix that is a state */
    size_t head = 0, tail = 0;
    for (unsigned c = 0; ok && c < 256; c++) {
        if (next[0][c] == NONE)
            next[0][c] = 0;
        else
            queue[tail++] = next[0][c];
    }
    while (ok && head < tail) {
        uint16_t at = queue[head++];
        ends[at] = ends[at] || ends[fail[at]];
        for (unsigned c = 0; c < 256; c++) {
            uint16_t over = next[fail[at]][c];
            if (next[at][c] == NONE) {
                next[at][c] = over;
            } else {
                fail[next[at][c]] = over;
                queue[tail++] = next[at][c];
            }
        }
    }
    for (size_t i = 0; ok && i < n_states; i++)
        for (unsigned c = 0; c < 256; c++)
            if (ends[next[i][c]])
                next[i][c] = n_states;
    ak_free(fail);
    ak_free(queue);
    ak_free(ends);
    if (!ok) {
        ak_free(next);
        return false;
    }
    out->next = next;
    out->n = n_states;
    return true;
}

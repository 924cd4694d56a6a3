/* WordPiece: from the left the longest piece each time; a word of which a part is
 * no piece is one unknown token. */
#include <string.h>

#include "tokenizer/state.h"
#include "base/utf8.h"

static bool go_down(const struct ak_trie *trie, struct ak_trie_node *node, const char *mark)
{
    for (; *mark; mark++)
        if (!ak_trie_step(trie, node, (unsigned char)*mark))
            return false;
    return true;
}

/* The longest piece that is `mark` and a beginning of the text; *taken gets the
 * bytes of the text that it covers. With an empty mark that is at least one. */
static int32_t longest(const struct ak_pipeline *p, const char *mark, const char *text, size_t n,
                       size_t *taken)
{
    struct ak_trie_node node = ak_trie_root(&p->trie);
    int32_t best = -1;

    if (!go_down(&p->trie, &node, mark))
        return -1;
    if (*mark && mark == p->first_mark)
        best = ak_trie_here(&p->trie, &node);
    *taken = 0;
    for (size_t i = 0; i < n && ak_trie_step(&p->trie, &node, (unsigned char)text[i]); i++) {
        int32_t id = ak_trie_here(&p->trie, &node);
        if (id < 0)
            continue;
        best = id;
        *taken = i + 1;
    }
    return best;
}

static bool too_long(const char *text, size_t n, uint32_t most)
{
    uint32_t n_characters = 0;

    for (size_t at = 0; at < n && most > 0; at += ak_utf8_next(text + at, n - at).bytes)
        if (++n_characters > most)
            return true;
    return false;
}

ak_status ak_wordpiece_word(struct ak_run *r, const char *text, size_t n, struct ak_error *error)
{
    const struct ak_pipeline *p = r->t->pipeline;
    size_t first = r->n, at = 0, taken;
    int32_t id = -1;

    (void)error;
    if (!too_long(text, n, p->max_word)) {
        id = longest(p, p->first_mark, text, n, &taken);
        while (id >= 0) {
            ak_run_push(r, id);
            at += taken;
            if (at == n)
                return AKUNU_OK;
            id = longest(p, p->next_mark, text + at, n - at, &taken);
        }
    }
    r->n = first;
    if (r->t->unknown >= 0)
        ak_run_push(r, r->t->unknown);
    return AKUNU_OK;
}

static uint32_t replace(char *text, uint32_t n, const char *what, const char *by)
{
    uint32_t n_what = (uint32_t)strlen(what), n_by = (uint32_t)strlen(by), out = 0;

    for (uint32_t at = 0; at < n;) {
        if (n - at >= n_what && memcmp(text + at, what, n_what) == 0) {
            memcpy(text + out, by, n_by);
            at += n_what;
            out += n_by;
        } else {
            text[out++] = text[at++];
        }
    }
    return out;
}

uint32_t ak_wordpiece_text(const char *text, uint32_t n, bool begins, char *out)
{
    static const char *const changes[][2] = {
        { " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
        { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
        { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
    };

    if (begins)
        out[0] = ' ';
    memcpy(out + begins, text, n);
    n += begins;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        n = replace(out, n, changes[i][0], changes[i][1]);
    return n;
}

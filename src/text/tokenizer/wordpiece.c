/* WordPiece: takes the longest token from the left each time. If no token fits somewhere, the whole
 * word is one unknown token. */
#include <string.h>

#include "text/tokenizer/internal.h"
#include "base/utf8.h"

static bool descend_prefix(const struct ak_tok_trie *trie, struct ak_tok_trie_node *node,
                           const char *mark)
{
    for (; *mark; mark++)
        if (!ak_tok_trie_descend(trie, node, (unsigned char)*mark))
            return false;
    return true;
}

/* The longest token that is `mark` followed by a beginning of the text; *taken gets the bytes of
 * the text that it covers, at least one if `mark` is empty. */
static int32_t find_longest(const struct ak_tok_pipeline *p, const char *mark, const char *text,
                            size_t n, size_t *taken)
{
    struct ak_tok_trie_node node = ak_tok_trie_root(&p->trie);
    int32_t best = -1;

    if (!descend_prefix(&p->trie, &node, mark))
        return -1;
    if (*mark && mark == p->word_prefix)
        best = ak_tok_trie_token(&p->trie, &node);
    *taken = 0;
    for (size_t i = 0; i < n && ak_tok_trie_descend(&p->trie, &node, (unsigned char)text[i]); i++) {
        int32_t id = ak_tok_trie_token(&p->trie, &node);
        if (id < 0)
            continue;
        best = id;
        *taken = i + 1;
    }
    return best;
}

static bool is_too_long(const char *text, size_t n, uint32_t max_chars)
{
    uint32_t n_characters = 0;

    for (size_t at = 0; at < n && max_chars > 0; at += ak_utf8_next(text + at, n - at).bytes)
        if (++n_characters > max_chars)
            return true;
    return false;
}

ak_status ak_tok_wordpiece_encode_word(struct ak_tok_encoding *r, const char *text, size_t n,
                                       struct ak_error *error)
{
    const struct ak_tok_pipeline *p = r->t->pipeline;
    size_t first = r->n, at = 0, taken;
    int32_t id = -1;

    (void)error;
    if (!is_too_long(text, n, p->max_word_chars)) {
        id = find_longest(p, p->word_prefix, text, n, &taken);
        while (id >= 0) {
            ak_tok_push(r, id);
            at += taken;
            if (at == n)
                return AKUNU_OK;
            id = find_longest(p, p->subword_prefix, text + at, n - at, &taken);
        }
    }
    r->n = first;
    if (r->t->unknown >= 0)
        ak_tok_push(r, r->t->unknown);
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

uint32_t ak_tok_wordpiece_decode(const char *text, uint32_t n, bool begins, char *out)
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

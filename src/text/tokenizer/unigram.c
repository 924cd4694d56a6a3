/* Unigram (Kudo 2018): the segmentation with the highest sum of scores, by Viterbi's algorithm.
 * Sums are doubles, added from left to right; of equal segmentations the first one found wins. */
#include "base/mem.h"
#include "text/tokenizer/internal.h"
#include "base/utf8.h"

static ak_status reserve_lattice(struct ak_tok_scratch *w, size_t n, struct ak_error *error)
{
    if (n <= w->capacity)
        return AKUNU_OK;
    size_t capacity = n + n / 4;
    double *scores = ak_realloc(w->scores, capacity, sizeof *scores);
    if (scores)
        w->scores = scores;
    uint32_t *lengths = ak_realloc(w->lengths, capacity, sizeof *lengths);
    if (lengths)
        w->lengths = lengths;
    int32_t *tokens = ak_realloc(w->tokens, capacity, sizeof *tokens);
    if (tokens)
        w->tokens = tokens;
    if (!scores || !lengths || !tokens)
        return ak_fail_memory(error, "tokenizing a text",
                              capacity * (sizeof *scores + sizeof *lengths + sizeof *tokens));
    w->capacity = capacity;
    return AKUNU_OK;
}

/* Records `token` for [from, to) if it gives the best score of a segmentation up to `to` so far. */
static void offer(struct ak_tok_scratch *w, size_t from, size_t to, int32_t token, double score)
{
    if (w->lengths[to] != 0 && score <= w->scores[to])
        return;
    w->scores[to] = score;
    w->lengths[to] = (uint32_t)(to - from);
    w->tokens[to] = token;
}

static void offer_all(const struct ak_tok_pipeline *p, struct ak_tok_scratch *w, const char *text,
                      size_t n, size_t at, size_t character)
{
    struct ak_tok_trie_node node = ak_tok_trie_root(&p->trie);
    bool single = false;

    for (size_t to = at; to < n && ak_tok_trie_descend(&p->trie, &node, (unsigned char)text[to]);
         to++) {
        int32_t id = ak_tok_trie_token(&p->trie, &node);
        if (id < 0)
            continue;
        offer(w, at, to + 1, id, w->scores[at] + p->scores[id]);
        single = single || to + 1 - at == character;
    }
    if (!single)
        offer(w, at, at + character, -1, w->scores[at] + p->unknown_score);
}

/* Pushes [begin, end), for which there is no token: its bytes, or one unknown token. */
static void push_unknown(struct ak_tok_encoding *r, const char *text, size_t begin, size_t end)
{
    const struct ak_tokenizer *t = r->t;
    bool bytes = t->pipeline->byte_fallback;

    for (size_t i = begin; i < end && bytes; i++)
        bytes = t->byte_tokens[(unsigned char)text[i]] >= 0;
    for (size_t i = begin; i < end && bytes; i++)
        ak_tok_push(r, t->byte_tokens[(unsigned char)text[i]]);
    if (!bytes && t->unknown >= 0)
        ak_tok_push(r, t->unknown);
}

static void push_path(struct ak_tok_encoding *r, const char *text, size_t n)
{
    const struct ak_tok_scratch *w = &r->scratch;
    size_t unknown = 0; /* bytes before `at` without a token */

    for (size_t at = 0; at < n; at += w->lengths[at]) {
        if (unknown > 0 && (w->tokens[at] >= 0 || !r->t->pipeline->fuse_unknown)) {
            push_unknown(r, text, at - unknown, at);
            unknown = 0;
        }
        if (w->tokens[at] >= 0)
            ak_tok_push(r, w->tokens[at]);
        else
            unknown += w->lengths[at];
    }
    if (unknown > 0)
        push_unknown(r, text, n - unknown, n);
}

ak_status ak_tok_unigram_encode_word(struct ak_tok_encoding *r, const char *text, size_t n,
                                     struct ak_error *error)
{
    struct ak_tok_scratch *w = &r->scratch;

    AK_TRY(reserve_lattice(w, n + 1, error));
    memset(w->lengths, 0, (n + 1) * sizeof *w->lengths);
    w->scores[0] = 0;
    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        size_t character = c.valid ? c.bytes : 1;
        offer_all(r->t->pipeline, w, text, n, at, character);
        at += character;
    }
    /* Lengths and tokens are at the ends of pieces; move them to the beginnings. */
    uint32_t length = w->lengths[n];
    int32_t token = w->tokens[n];
    for (size_t at = n; at > 0;) {
        at -= length;
        uint32_t next_length = w->lengths[at];
        int32_t next_token = w->tokens[at];
        w->lengths[at] = length;
        w->tokens[at] = token;
        length = next_length;
        token = next_token;
    }
    push_path(r, text, n);
    return AKUNU_OK;
}

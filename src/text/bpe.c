/* Byte-level BPE, as GPT-2 introduced it: a vocabulary of byte strings, written
 * in the file with a printable character for each byte, and an ordered list of
 * pairs to merge. Here everything is bytes and ids; the printable form is undone
 * once, at loading. */
#include <string.h>

#include "base/mem.h"
#include "text/state.h"

/* The byte that a character of the printable form stands for, -1 for none. Bytes
 * that print as Latin-1 characters are themselves; the other 68 follow from
 * U+0100 on. */
static int byte_of(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xFF && code != 0xAD))
        return (int)code;
    if (code >= 0x100 && code <= 0x120)
        return (int)code - 0x100;
    if (code >= 0x121 && code <= 0x142)
        return (int)code - 0x121 + 0x7F;
    return code == 0x143 ? 0xAD : -1;
}

/* Undoes the printable form into out, at least n bytes. False where the text has
 * other characters: then it stands for itself. */
static bool decode(const char *text, uint32_t n, char *out, uint32_t *n_out)
{
    *n_out = 0;
    for (uint32_t at = 0; at < n;) {
        if (text[at] > 0x20 && text[at] < 0x7F) { /* most of them */
            out[(*n_out)++] = text[at++];
            continue;
        }
        /* The others of the printable form have two bytes in UTF-8. */
        bool two = n - at >= 2 && (text[at] & 0xE0) == 0xC0 && (text[at + 1] & 0xC0) == 0x80;
        uint32_t code = two ? (uint32_t)(text[at] & 0x1F) << 6 | (uint32_t)(text[at + 1] & 0x3F) : 0;
        int byte = code >= 0x80 ? byte_of(code) : -1;
        if (byte < 0)
            return false;
        out[(*n_out)++] = (char)byte;
        at += 2;
    }
    return true;
}

/* Appends all pieces, and makes findable those that words can become: no control
 * tokens, and none that were added by hand, which are taken out of the text before. */
static void load_pieces(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    struct ak_pieces_batch findable = {.n = 0};

    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        struct ak_text text = vocab->tokens[id];
        uint8_t kind = ak_kind(t, id);
        char *out = ak_pieces_next(&t->pieces);
        uint32_t n = 0;
        bool decoded = kind == AK_TOKEN_NORMAL && decode(text.bytes, text.n, out, &n);
        if (!decoded && kind != AK_TOKEN_UNUSED) { /* unused ones fill a vocabulary up and stand for nothing */
            n = text.n;
            memcpy(out, text.bytes, n);
        }
        ak_pieces_append(&t->pieces, n);
        if (decoded)
            ak_pieces_index(&t->pieces, &findable, id);
    }
    ak_pieces_index_end(&t->pieces, &findable);
    for (unsigned b = 0; b < 256; b++) {
        char byte = (char)b;
        t->byte_tokens[b] = ak_pieces_find(&t->pieces, &byte, 1);
    }
}

static uint32_t hash_pair(uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

static void add_pair(struct ak_tokenizer *t, struct ak_pair pair)
{
    uint32_t at = hash_pair(pair.left, pair.right) & t->pair_mask;

    for (; t->pairs[at].left != UINT32_MAX; at = (at + 1) & t->pair_mask)
        if (t->pairs[at].left == pair.left && t->pairs[at].right == pair.right)
            return; /* the first one ranks */
    t->pairs[at] = pair;
}

enum { MERGES_AT_ONCE = AK_PIECES_AT_ONCE / 3 };

/* One line of the list: "left right". The bytes of both go to out, at least the
 * line's; false where the line is none. */
static bool decode_merge(struct ak_text line, char *out, struct ak_text parts[3])
{
    /* A blank at the start would be a token of its own. */
    const char *blank = line.n > 1 ? memchr(line.bytes + 1, ' ', line.n - 1) : NULL;
    uint32_t n_left, n_right;

    if (!blank)
        return false;
    uint32_t left_bytes = (uint32_t)(blank - line.bytes);
    if (!decode(line.bytes, left_bytes, out, &n_left) || !decode(blank + 1, line.n - left_bytes - 1, out + n_left, &n_right))
        return false;
    parts[0] = (struct ak_text){out, n_left};
    parts[1] = (struct ak_text){out + n_left, n_right};
    parts[2] = (struct ak_text){out, n_left + n_right};
    return true;
}

/* Lines [first, first + n) of the list. A pair of which a part or the whole is no
 * token can never be wanted. */
static void load_some_merges(struct ak_tokenizer *t, const struct ak_vocab *vocab, uint32_t first, uint32_t n, char *scratch)
{
    struct ak_text parts[AK_PIECES_AT_ONCE] = {{NULL, 0}};
    int32_t ids[AK_PIECES_AT_ONCE];
    uint32_t ranks[MERGES_AT_ONCE];
    size_t n_pairs = 0;

    for (uint32_t i = first; i < first + n; i++) {
        if (!decode_merge(vocab->merges[i], scratch, &parts[3 * n_pairs]))
            continue;
        scratch += vocab->merges[i].n;
        ranks[n_pairs++] = i;
    }
    ak_pieces_find_all(&t->pieces, parts, 3 * n_pairs, ids);
    for (size_t i = 0; i < n_pairs; i++)
        __builtin_prefetch(&t->pairs[hash_pair((uint32_t)ids[3 * i], (uint32_t)ids[3 * i + 1]) & t->pair_mask], 1);
    for (size_t i = 0; i < n_pairs; i++) {
        const int32_t *id = &ids[3 * i];
        if (id[0] >= 0 && id[1] >= 0 && id[2] >= 0)
            add_pair(t, (struct ak_pair){(uint32_t)id[0], (uint32_t)id[1], ranks[i], id[2]});
    }
}

static uint32_t merges_from(const struct ak_vocab *vocab, uint32_t first)
{
    return vocab->n_merges - first < MERGES_AT_ONCE ? vocab->n_merges - first : MERGES_AT_ONCE;
}

/* Room for the bytes of any lines that are loaded at once. */
static size_t scratch_bytes(const struct ak_vocab *vocab)
{
    size_t most = 1;
    for (uint32_t first = 0; first < vocab->n_merges; first += MERGES_AT_ONCE) {
        size_t bytes = 0;
        for (uint32_t i = first; i < first + merges_from(vocab, first); i++)
            bytes += vocab->merges[i].n;
        most = ak_max_size(most, bytes);
    }
    return most;
}

static ak_status load_merges(struct ak_tokenizer *t, const struct ak_vocab *vocab, struct ak_error *error)
{
    if (!vocab->merges)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the byte-level BPE vocabulary has no merges (tokenizer.ggml.merges)");
    if (vocab->n_merges > INT32_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%u merges: at most 2^31 are supported", vocab->n_merges);

    size_t n_pairs = 16;
    while (n_pairs / 3 * 2 < vocab->n_merges)
        n_pairs *= 2;
    char *scratch = ak_alloc(scratch_bytes(vocab), 1);
    t->pairs = ak_alloc(n_pairs, sizeof *t->pairs);
    if (!scratch || !t->pairs) {
        ak_free(scratch);
        return ak_fail_memory(error, "the merges of the vocabulary", (unsigned long long)n_pairs * sizeof *t->pairs);
    }
    t->pair_mask = (uint32_t)(n_pairs - 1);
    for (size_t i = 0; i < n_pairs; i++)
        t->pairs[i].left = UINT32_MAX;
    for (uint32_t first = 0; first < vocab->n_merges; first += MERGES_AT_ONCE)
        load_some_merges(t, vocab, first, merges_from(vocab, first), scratch);
    ak_free(scratch);
    return AKUNU_OK;
}

ak_status ak_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab, struct ak_error *error)
{
    AK_TRY(ak_pretokenizer_create(vocab->pre, &t->pre, error));
    load_pieces(t, vocab);
    AK_TRY(load_merges(t, vocab, error));
    if (!ak_pretokenizer_whole_words(t->pre))
        ak_pieces_drop_index(&t->pieces);
    return AKUNU_OK;
}

static bool join(const void *context, const struct ak_node *left, const struct ak_node *right, uint32_t *priority, int32_t *joined)
{
    const struct ak_tokenizer *t = context;
    uint32_t l = (uint32_t)left->id, r = (uint32_t)right->id, at = hash_pair(l, r) & t->pair_mask;

    for (; t->pairs[at].left != UINT32_MAX; at = (at + 1) & t->pair_mask) {
        if (t->pairs[at].left == l && t->pairs[at].right == r) {
            *priority = t->pairs[at].rank;
            *joined = t->pairs[at].joined;
            return true;
        }
    }
    return false;
}

static ak_status add_word(void *context, const char *word, size_t n, struct ak_error *error)
{
    struct ak_run *r = context;
    const struct ak_tokenizer *t = r->t;

    int32_t whole = ak_pretokenizer_whole_words(t->pre) ? ak_pieces_find(&t->pieces, word, n) : -1;
    if (whole >= 0) {
        ak_run_push(r, whole);
        return AKUNU_OK;
    }
    AK_TRY(ak_merge_begin(&r->merge, n, error));
    for (size_t i = 0; i < n; i++) {
        int32_t id = t->byte_tokens[(unsigned char)word[i]];
        if (id >= 0) /* few vocabularies lack a byte; it is left out, as elsewhere */
            ak_merge_add(&r->merge, (uint32_t)i, 1, id);
    }
    if (r->merge.n_nodes == 0)
        return AKUNU_OK;
    ak_merge_run(&r->merge, join, t);
    for (uint32_t i = 0; i != AK_NO_NODE; i = r->merge.nodes[i].next)
        ak_run_push(r, r->merge.nodes[i].id);
    return AKUNU_OK;
}

ak_status ak_bpe_text(struct ak_run *r, const char *text, size_t n, struct ak_error *error)
{
    if (!r->matcher)
        AK_TRY(ak_matcher_create(&r->matcher, error));
    return ak_cut_words(r->t->pre, r->matcher, text, n, add_word, r, error);
}

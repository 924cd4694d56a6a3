/* Byte-level BPE of GPT-2: a vocabulary of byte strings and an ordered list of merges. Files write
 * each byte as a printable character; that form is decoded once, at load, and the rest works on
 * bytes and ids. In vocabularies of OpenAI's tiktoken, ids are ranks: two tokens merge if their
 * bytes together are a token, the lowest id first. */
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/internal.h"
#include "base/utf8.h"

static void find_byte_tokens(struct ak_tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char byte = (char)b;
        t->byte_tokens[b] = ak_tok_bytes_find(&t->token_bytes, &byte, 1);
    }
}

/* Indexes the tokens that words can become. Control and added tokens are not among them: they are
 * matched before the model runs. */
void ak_tok_bpe_load_bytes(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    struct ak_tok_bytes_batch findable = { .n = 0 };

    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        struct ak_text text = vocab->tokens[id];
        uint8_t kind = ak_tok_kind(t, id);
        char *out = ak_tok_bytes_next(&t->token_bytes);
        uint32_t n = 0;
        bool decoded =
            kind == AK_TOK_KIND_NORMAL && ak_tok_decode_printable(text.bytes, text.n, out, &n);
        /* unused tokens pad a vocabulary and decode to nothing */
        if (!decoded && kind != AK_TOK_KIND_UNUSED) {
            n = text.n;
            memcpy(out, text.bytes, n);
        }
        ak_tok_bytes_append(&t->token_bytes, n);
        if (decoded)
            ak_tok_bytes_index(&t->token_bytes, &findable, id);
    }
    ak_tok_bytes_index_end(&t->token_bytes, &findable);
    find_byte_tokens(t);
}

static uint32_t hash_pair(uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

/* Of equal merges the last one counts if `replace`, else the first one. */
static void add_pair(struct ak_tokenizer *t, struct ak_tok_pair pair, bool replace)
{
    uint32_t at = hash_pair(pair.left, pair.right) & t->pair_mask;

    while (t->pairs[at].left != UINT32_MAX &&
           (t->pairs[at].left != pair.left || t->pairs[at].right != pair.right))
        at = (at + 1) & t->pair_mask;
    if (replace || t->pairs[at].left == UINT32_MAX)
        t->pairs[at] = pair;
}

enum { MERGES_AT_ONCE = AK_TOK_BATCH_MAX / 3 };

/* Decodes one token of a line into `out`. */
static bool decode_half(const struct ak_tokenizer *t, const char *text, uint32_t n, char *out,
                        uint32_t *n_out)
{
    if (t->byte_level)
        return ak_tok_decode_printable(text, n, out, n_out);
    memcpy(out, text, n);
    *n_out = n;
    return true;
}

/* Decodes a line: parts gets left, right and both joined. Their bytes go to `out`, line.n at most.
 * False: not a merge. */
static bool decode_merge(const struct ak_tokenizer *t, struct ak_text line, char *out,
                         struct ak_text parts[3])
{
    /* A space at the start belongs to the first token. */
    const char *gap = line.n > 1 ? memchr(line.bytes + 1, '\0', line.n - 1) : NULL;
    uint32_t n_left, n_right;

    if (!gap && line.n > 1)
        gap = memchr(line.bytes + 1, ' ', line.n - 1);
    if (!gap)
        return false;
    uint32_t left_bytes = (uint32_t)(gap - line.bytes);
    if (!decode_half(t, line.bytes, left_bytes, out, &n_left) ||
        !decode_half(t, gap + 1, line.n - left_bytes - 1, out + n_left, &n_right))
        return false;
    parts[0] = (struct ak_text){ out, n_left };
    parts[1] = (struct ak_text){ out + n_left, n_right };
    parts[2] = (struct ak_text){ out, n_left + n_right };
    return true;
}

/* Loads lines [first, first + n). Skips a line unless its two parts and its result are tokens,
 * since such a merge can never apply. Returns the first of these; UINT32_MAX: none. */
static uint32_t load_some_merges(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                 uint32_t first, uint32_t n, bool replace, char *scratch)
{
    struct ak_text parts[AK_TOK_BATCH_MAX] = { { NULL, 0 } };
    int32_t ids[AK_TOK_BATCH_MAX];
    uint32_t ranks[MERGES_AT_ONCE];
    size_t n_pairs = 0;
    uint32_t first_bad = UINT32_MAX;

    for (uint32_t i = first; i < first + n; i++) {
        if (!decode_merge(t, vocab->merges[i], scratch, &parts[3 * n_pairs])) {
            first_bad = i < first_bad ? i : first_bad;
            continue;
        }
        scratch += vocab->merges[i].n;
        ranks[n_pairs++] = i;
    }
    ak_tok_bytes_find_all(ak_tok_bpe_index(t), parts, 3 * n_pairs, ids);
    for (size_t i = 0; i < n_pairs; i++)
        __builtin_prefetch(
            &t->pairs[hash_pair((uint32_t)ids[3 * i], (uint32_t)ids[3 * i + 1]) & t->pair_mask], 1);
    for (size_t i = 0; i < n_pairs; i++) {
        const int32_t *id = &ids[3 * i];
        if (id[0] >= 0 && id[1] >= 0 && id[2] >= 0)
            add_pair(t, (struct ak_tok_pair){ (uint32_t)id[0], (uint32_t)id[1], ranks[i], id[2] },
                     replace);
        else
            first_bad = ranks[i] < first_bad ? ranks[i] : first_bad;
    }
    return first_bad;
}

static uint32_t count_merges(const struct ak_vocab *vocab, uint32_t first)
{
    return vocab->n_merges - first < MERGES_AT_ONCE ? vocab->n_merges - first : MERGES_AT_ONCE;
}

/* Bytes needed to decode any lines that are loaded at once. */
static size_t max_scratch_bytes(const struct ak_vocab *vocab)
{
    size_t max_bytes = 1;
    for (uint32_t first = 0; first < vocab->n_merges; first += MERGES_AT_ONCE) {
        size_t bytes = 0;
        for (uint32_t i = first; i < first + count_merges(vocab, first); i++)
            bytes += vocab->merges[i].n;
        max_bytes = ak_max_size(max_bytes, bytes);
    }
    return max_bytes;
}

ak_status ak_tok_bpe_load_merges(struct ak_tokenizer *t, const struct ak_vocab *vocab, bool is_json,
                                 struct ak_error *error)
{
    if (vocab->n_merges > INT32_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%u merges: at most 2^31 are supported",
                       vocab->n_merges);

    size_t n_pairs = 16;
    while (n_pairs / 3 * 2 < vocab->n_merges)
        n_pairs *= 2;
    char *scratch = ak_alloc(max_scratch_bytes(vocab), 1);
    t->pairs = ak_alloc(n_pairs, sizeof *t->pairs);
    if (!scratch || !t->pairs) {
        ak_free(scratch);
        return ak_fail_memory(error, "the merges of the vocabulary",
                              (unsigned long long)n_pairs * sizeof *t->pairs);
    }
    t->pair_mask = (uint32_t)(n_pairs - 1);
    for (size_t i = 0; i < n_pairs; i++)
        t->pairs[i].left = UINT32_MAX;
    ak_status status = AKUNU_OK;
    for (uint32_t first = 0; first < vocab->n_merges && status == AKUNU_OK;
         first += MERGES_AT_ONCE) {
        uint32_t first_bad =
            load_some_merges(t, vocab, first, count_merges(vocab, first), is_json, scratch);
        if (first_bad != UINT32_MAX && is_json)
            status = ak_fail(error, AKUNU_ERROR_FORMAT,
                             "tokenizer.json: model.merges[%u] '%.*s' is not a pair of tokens that "
                             "together are a token",
                             first_bad, (int)ak_min_size(vocab->merges[first_bad].n, 64),
                             vocab->merges[first_bad].bytes);
    }
    ak_free(scratch);
    return status;
}

ak_status ak_tok_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error)
{
    if (!vocab->merges)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the byte-level BPE vocabulary has no merges (tokenizer.ggml.merges)");
    AK_TRY(ak_tok_pretokenizer_create(vocab->pre, &t->pretokenizer, error));
    ak_tok_bpe_load_bytes(t, vocab);
    AK_TRY(ak_tok_bpe_load_merges(t, vocab, false, error));
    t->ignore_merges = ak_tok_pretokenizer_ignores_merges(t->pretokenizer);
    if (!t->ignore_merges)
        ak_tok_bytes_drop_index(&t->token_bytes);
    return AKUNU_OK;
}

ak_status ak_tok_bpe_load_ranks(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                struct ak_error *error)
{
    struct ak_tok_bytes_batch findable = { .n = 0 };
    AK_TRY(ak_tok_pretokenizer_create(vocab->pre, &t->pretokenizer, error));
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        memcpy(ak_tok_bytes_next(&t->token_bytes), vocab->tokens[id].bytes, vocab->tokens[id].n);
        ak_tok_bytes_append(&t->token_bytes, vocab->tokens[id].n);
        ak_tok_bytes_index(&t->token_bytes, &findable, id);
    }
    ak_tok_bytes_index_end(&t->token_bytes, &findable);
    find_byte_tokens(t);
    t->ranked = t->ignore_merges = true;
    return AKUNU_OK;
}

enum { RANKED_BYTES_MAX = 1024 }; /* of a token that two others make */

static bool merge_ranked(const void *context, const struct ak_tok_node *left,
                         const struct ak_tok_node *right, uint32_t *priority, int32_t *merged)
{
    const struct ak_tok_bytes *tokens = &((const struct ak_tokenizer *)context)->token_bytes;
    struct ak_text l = ak_tok_bytes_get(tokens, (uint32_t)left->id),
                   r = ak_tok_bytes_get(tokens, (uint32_t)right->id);
    char joined[RANKED_BYTES_MAX];
    if ((uint64_t)l.n + r.n > sizeof joined)
        return false;
    memcpy(joined, l.bytes, l.n);
    memcpy(joined + l.n, r.bytes, r.n);
    *merged = ak_tok_bytes_find(tokens, joined, l.n + r.n);
    *priority = (uint32_t)*merged;
    return *merged >= 0;
}

/* Ranked merges of tokens below a limit. */
struct below {
    const struct ak_tokenizer *t;
    uint32_t limit;
};

static bool merge_below(const void *context, const struct ak_tok_node *left,
                        const struct ak_tok_node *right, uint32_t *priority, int32_t *merged)
{
    const struct below *below = context;
    return merge_ranked(below->t, left, right, priority, merged) && *priority < below->limit;
}

/* False: the merges before the token leave more than two parts of it, so that none makes it. */
static ak_status find_merge(const struct ak_tokenizer *t, uint32_t id, struct ak_tok_merge *m,
                            struct ak_tok_pair *out, bool *found, struct ak_error *error)
{
    const struct below below = { t, id };
    struct ak_text text = ak_tok_bytes_get(&t->token_bytes, id);
    *found = false;
    AK_TRY(ak_tok_merge_begin(m, text.n, error));
    for (uint32_t i = 0; i < text.n; i++) {
        int32_t byte = t->byte_tokens[(unsigned char)text.bytes[i]];
        if (byte < 0)
            return AKUNU_OK;
        ak_tok_merge_add(m, i, 1, byte);
    }
    if (m->n_nodes < 2)
        return AKUNU_OK;
    ak_tok_merge_run(m, merge_below, &below);
    uint32_t second = m->nodes[0].next;
    if (second == AK_TOK_NO_NODE || m->nodes[second].next != AK_TOK_NO_NODE)
        return AKUNU_OK;
    *out = (struct ak_tok_pair){ (uint32_t)m->nodes[0].id, (uint32_t)m->nodes[second].id, id,
                                 (int32_t)id };
    *found = true;
    return AKUNU_OK;
}

ak_status ak_tok_bpe_find_merges(const struct ak_tokenizer *t, struct ak_tok_pair **out,
                                 uint32_t *n, struct ak_error *error)
{
    struct ak_tok_merge m = { .n_nodes = 0 };
    ak_status status = AKUNU_OK;
    *n = 0;
    *out = ak_alloc(t->token_bytes.n, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "the merges of a vocabulary",
                              (unsigned long long)t->token_bytes.n * sizeof **out);
    for (uint32_t id = 0; id < t->token_bytes.n && status == AKUNU_OK; id++) {
        bool found;
        status = find_merge(t, id, &m, &(*out)[*n], &found, error);
        *n += status == AKUNU_OK && found;
    }
    ak_tok_merge_free(&m);
    if (status == AKUNU_OK)
        return AKUNU_OK;
    ak_free(*out);
    *out = NULL;
    return status;
}

static bool merge_pair(const void *context, const struct ak_tok_node *left,
                       const struct ak_tok_node *right, uint32_t *priority, int32_t *merged)
{
    const struct ak_tokenizer *t = context;
    uint32_t l = (uint32_t)left->id, r = (uint32_t)right->id, at = hash_pair(l, r) & t->pair_mask;

    for (; t->pairs[at].left != UINT32_MAX; at = (at + 1) & t->pair_mask) {
        if (t->pairs[at].left == l && t->pairs[at].right == r) {
            *priority = t->pairs[at].rank;
            *merged = t->pairs[at].merged;
            return true;
        }
    }
    return false;
}

static void add_bytes(struct ak_tok_encoding *r, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id = r->t->byte_tokens[(unsigned char)word[i]];
        if (id >= 0) /* a byte without a token is dropped, as in other implementations */
            ak_tok_merge_add(&r->merge, (uint32_t)i, 1, id);
    }
}

static bool has_bytes(const struct ak_tokenizer *t, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t->byte_tokens[(unsigned char)text[i]] < 0)
            return false;
    return t->pipeline->byte_fallback;
}

/* Adds one node per character; for a character without a token its bytes, or the unknown token. */
static void add_characters(struct ak_tok_encoding *r, const char *word, size_t n)
{
    const struct ak_tokenizer *t = r->t;
    bool unknown = false;

    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(word + at, n - at);
        size_t bytes = c.valid ? c.bytes : 1;
        int32_t id = ak_tok_bytes_find(ak_tok_bpe_index(t), word + at, bytes);
        if (id >= 0) {
            ak_tok_merge_add(&r->merge, (uint32_t)at, (uint32_t)bytes, id);
            unknown = false;
        } else if (has_bytes(t, word + at, bytes)) {
            for (size_t i = at; i < at + bytes; i++)
                ak_tok_merge_add(&r->merge, (uint32_t)i, 1, t->byte_tokens[(unsigned char)word[i]]);
            unknown = false;
        } else if (t->unknown >= 0) {
            if (!unknown || !t->pipeline->fuse_unknown)
                ak_tok_merge_add(&r->merge, (uint32_t)at, (uint32_t)bytes, t->unknown);
            unknown = true;
        }
        at += bytes;
    }
}

ak_status ak_tok_bpe_encode_word(struct ak_tok_encoding *r, const char *word, size_t n,
                                 struct ak_error *error)
{
    const struct ak_tokenizer *t = r->t;

    bool ignore = t->ignore_merges ||
                  (t->pipeline && t->pipeline->ignore_newline_merges && n > 0 && word[0] == '\n');
    int32_t word_id = ignore ? ak_tok_bytes_find(ak_tok_bpe_index(t), word, n) : -1;
    if (word_id >= 0) {
        ak_tok_push(r, word_id);
        return AKUNU_OK;
    }
    AK_TRY(ak_tok_merge_begin(&r->merge, n, error));
    if (t->byte_level)
        add_bytes(r, word, n);
    else
        add_characters(r, word, n);
    if (r->merge.n_nodes == 0)
        return AKUNU_OK;
    ak_tok_merge_run(&r->merge, t->ranked ? merge_ranked : merge_pair, t);
    for (uint32_t i = 0; i != AK_TOK_NO_NODE; i = r->merge.nodes[i].next)
        ak_tok_push(r, r->merge.nodes[i].id);
    return AKUNU_OK;
}

static ak_status add_word(void *context, const char *word, size_t n, struct ak_error *error)
{
    return ak_tok_bpe_encode_word(context, word, n, error);
}

ak_status ak_tok_bpe_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                            struct ak_error *error)
{
    if (!r->matcher)
        AK_TRY(ak_tok_matcher_create(&r->matcher, error));
    return ak_tok_pretokenize(r->t->pretokenizer, r->matcher, text, n, add_word, r, error);
}

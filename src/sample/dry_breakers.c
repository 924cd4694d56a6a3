#include "sample/dry_breakers.h"

#include <string.h>

#include "base/mem.h"

static const char *const usual[] = { "\n", ":", "\"", "*", NULL };

enum { NO_TAIL = -1 };

/* One string: the tail behind each of its beginnings, by how many bytes these have; the
 * whole string's is the empty one. */
struct breaker {
    const char *text;
    size_t n;
    uint32_t tails[AK_DRY_BREAKER_BYTES + 1];
};

/* The text of one token after another, in a buffer that grows. */
struct pieces {
    const struct ak_tokenizer *tokenizer;
    char *text;
    size_t n, capacity;
};

static ak_status read_piece(struct pieces *p, int32_t token, struct ak_error *error)
{
    AK_TRY(ak_tok_decode(p->tokenizer, &token, 1, 0, p->text, p->capacity, &p->n, error));
    if (p->n <= p->capacity)
        return AKUNU_OK;
    char *larger = ak_realloc(p->text, p->n, 1);
    if (!larger)
        return ak_fail_memory(error, "the sequence breakers of DRY", p->n);
    p->text = larger;
    p->capacity = p->n;
    return ak_tok_decode(p->tokenizer, &token, 1, 0, p->text, p->capacity, &p->n, error);
}

static ak_status add_head(struct ak_dry_breakers *b, uint32_t tail, struct ak_error *error)
{
    if (b->n_heads == b->capacity) {
        uint32_t capacity = b->capacity ? 2 * b->capacity : 1024;
        uint32_t *larger = ak_realloc(b->tail_of, capacity, sizeof *larger);
        if (!larger)
            return ak_fail_memory(error, "the sequence breakers of DRY",
                                  (unsigned long long)capacity * sizeof *larger);
        b->tail_of = larger;
        b->capacity = capacity;
    }
    b->tail_of[b->n_heads++] = tail;
    return AKUNU_OK;
}

/* The tails that begin in a token whose text is the n bytes at `piece`. */
static ak_status add_heads(struct ak_dry_breakers *b, const struct breaker *s, const char *piece,
                           size_t n, struct ak_error *error)
{
    if (memmem(piece, n, s->text, s->n))
        return add_head(b, s->tails[s->n], error);
    size_t longest = n < s->n ? n : s->n - 1;
    for (size_t begun = longest; begun > 0; begun--)
        if (memcmp(piece + n - begun, s->text, begun) == 0)
            AK_TRY(add_head(b, s->tails[begun], error));
    return AKUNU_OK;
}

/* The tails of a string, as numbers from b->n_tails on. */
static ak_status cut_tails(struct ak_dry_breakers *b, struct breaker *s,
                           const struct ak_tokenizer *tokenizer, struct ak_error *error)
{
    for (size_t begun = 1; begun <= s->n; begun++) {
        struct ak_dry_tail *tail = &b->tails[b->n_tails];
        size_t n = 0;
        if (begun < s->n)
            AK_TRY(ak_tok_encode(tokenizer, s->text + begun, s->n - begun, 0, tail->tokens,
                                 AK_DRY_MOST_TAIL, &n, error));
        tail->n = n < AK_DRY_MOST_TAIL ? (uint32_t)n : AK_DRY_MOST_TAIL;
        s->tails[begun] = b->n_tails++;
    }
    return AKUNU_OK;
}

static ak_status find_heads(struct ak_dry_breakers *b, const struct breaker *strings,
                            size_t n_strings, struct pieces *pieces, uint32_t n_vocab,
                            struct ak_error *error)
{
    size_t n_known = ak_tok_n_tokens(pieces->tokenizer);
    for (uint32_t token = 0; token < n_vocab; token++) {
        b->first[token] = b->n_heads;
        if (token >= n_known)
            continue;
        AK_TRY(read_piece(pieces, (int32_t)token, error));
        for (size_t i = 0; i < n_strings; i++)
            AK_TRY(add_heads(b, &strings[i], pieces->text, pieces->n, error));
    }
    b->first[n_vocab] = b->n_heads;
    return AKUNU_OK;
}

static ak_status fill(struct ak_dry_breakers *b, struct breaker *strings, const char *const *texts,
                      size_t n_strings, struct pieces *pieces, uint32_t n_vocab,
                      struct ak_error *error)
{
    size_t n_tails = 0;
    for (size_t i = 0; i < n_strings; i++) {
        strings[i] = (struct breaker){ .text = texts[i], .n = strlen(texts[i]) };
        n_tails += strings[i].n;
    }
    b->tails = ak_alloc(n_tails, sizeof *b->tails);
    b->first = ak_alloc((size_t)n_vocab + 1, sizeof *b->first);
    pieces->capacity = 256;
    pieces->text = ak_alloc(pieces->capacity, 1);
    if (!b->tails || !b->first || !pieces->text)
        return ak_fail_memory(error, "the sequence breakers of DRY", 0);
    for (size_t i = 0; i < n_strings; i++)
        AK_TRY(cut_tails(b, &strings[i], pieces->tokenizer, error));
    return find_heads(b, strings, n_strings, pieces, n_vocab, error);
}

ak_status ak_dry_breakers_init(struct ak_dry_breakers *b, const char *const *texts,
                               const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                               struct ak_error *error)
{
    size_t n = 0;
    *b = (struct ak_dry_breakers){ 0 };
    for (texts = texts ? texts : usual; texts[n];)
        n++;
    if (n == 0)
        return AKUNU_OK;
    if (!tokenizer)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "DRY's sequence breakers need a vocabulary, and the model has none");
    struct pieces pieces = { .tokenizer = tokenizer };
    struct breaker *strings = ak_alloc(n, sizeof *strings);
    ak_status status =
        strings ? fill(b, strings, texts, n, &pieces, n_vocab, error) :
                  ak_fail_memory(error, "the sequence breakers of DRY", n * sizeof *strings);
    ak_free(strings);
    ak_free(pieces.text);
    return status;
}

void ak_dry_breakers_release(struct ak_dry_breakers *b)
{
    ak_free(b->first);
    ak_free(b->tail_of);
    ak_free(b->tails);
}

/* The length of the tail where it follows the head at place i, else NO_TAIL. */
static int64_t follows(const struct ak_dry_tail *tail, const int32_t *newest_first, uint32_t i)
{
    if (tail->n > i)
        return NO_TAIL;
    for (uint32_t j = 0; j < tail->n; j++)
        if (tail->tokens[j] != newest_first[i - j - 1])
            return NO_TAIL;
    return tail->n;
}

uint32_t ak_dry_unbroken(const struct ak_dry_breakers *b, const int32_t *newest_first, uint32_t n)
{
    for (uint32_t i = 0; b->first && i < n; i++) {
        int64_t longest = NO_TAIL;
        for (uint32_t head = b->first[newest_first[i]]; head < b->first[newest_first[i] + 1];
             head++) {
            int64_t length = follows(&b->tails[b->tail_of[head]], newest_first, i);
            longest = length > longest ? length : longest;
        }
        if (longest != NO_TAIL)
            return i - (uint32_t)longest;
    }
    return n;
}

bool ak_dry_is_breaker(const struct ak_dry_breakers *b, int32_t token)
{
    if (!b->first)
        return false;
    for (uint32_t head = b->first[token]; head < b->first[token + 1]; head++)
        if (b->tails[b->tail_of[head]].n == 0)
            return true;
    return false;
}

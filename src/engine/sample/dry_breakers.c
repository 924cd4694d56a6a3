/* Builds the table of sequence breakers: decodes every token, finds breakers and prefixes of
 * breakers in its text, and encodes what must follow a prefix. Done once per sampler, so that a
 * generated token costs a table lookup. */
#include "engine/sample/dry_breakers.h"

#include <string.h>

#include "base/mem.h"
#include "base/array.h"

static const char *const default_breakers[] = { "\n", ":", "\"", "*", NULL };

enum { NO_TAIL = -1 };

/* One string. tails[i] is the index of the tail after its first i bytes; the tail after the whole
 * string is empty. */
struct breaker {
    const char *text;
    size_t n;
    uint32_t tails[AK_SAMPLE_DRY_BREAKER_BYTES_MAX + 1];
};

/* Text of the current token, in a buffer that grows. */
struct token_text {
    const struct ak_tokenizer *tokenizer;
    char *text;
    size_t n, capacity;
};

static ak_status read_token_text(struct token_text *p, int32_t token, struct ak_error *error)
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

static ak_status add_head(struct ak_sample_dry_breakers *b, uint32_t tail, struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&b->head_tails, &b->capacity, b->n_heads, 1,
                              "the sequence breakers of DRY", error));
    b->head_tails[b->n_heads++] = tail;
    return AKUNU_OK;
}

/* Adds the heads of a token with the n bytes at `bytes` as its text. */
static ak_status add_heads(struct ak_sample_dry_breakers *b, const struct breaker *s,
                           const char *bytes, size_t n, struct ak_error *error)
{
    if (memmem(bytes, n, s->text, s->n))
        return add_head(b, s->tails[s->n], error);
    size_t longest = n < s->n ? n : s->n - 1;
    for (size_t begun = longest; begun > 0; begun--)
        if (memcmp(bytes + n - begun, s->text, begun) == 0)
            AK_TRY(add_head(b, s->tails[begun], error));
    return AKUNU_OK;
}

/* Encodes the tails of a string, from index b->n_tails on. */
static ak_status tokenize_tails(struct ak_sample_dry_breakers *b, struct breaker *s,
                                const struct ak_tokenizer *tokenizer, struct ak_error *error)
{
    for (size_t begun = 1; begun <= s->n; begun++) {
        struct ak_sample_dry_tail *tail = &b->tails[b->n_tails];
        size_t n = 0;
        if (begun < s->n)
            AK_TRY(ak_tok_encode(tokenizer, s->text + begun, s->n - begun, 0, tail->tokens,
                                 AK_SAMPLE_DRY_TAIL_MAX, &n, error));
        tail->n = n < AK_SAMPLE_DRY_TAIL_MAX ? (uint32_t)n : AK_SAMPLE_DRY_TAIL_MAX;
        s->tails[begun] = b->n_tails++;
    }
    return AKUNU_OK;
}

static ak_status find_heads(struct ak_sample_dry_breakers *b, const struct breaker *strings,
                            size_t n_strings, struct token_text *token_text, uint32_t n_vocab,
                            struct ak_error *error)
{
    size_t n_known = ak_tok_n_tokens(token_text->tokenizer);
    for (uint32_t token = 0; token < n_vocab; token++) {
        b->first_head[token] = b->n_heads;
        if (token >= n_known)
            continue;
        AK_TRY(read_token_text(token_text, (int32_t)token, error));
        for (size_t i = 0; i < n_strings; i++)
            AK_TRY(add_heads(b, &strings[i], token_text->text, token_text->n, error));
    }
    b->first_head[n_vocab] = b->n_heads;
    return AKUNU_OK;
}

static ak_status fill_tables(struct ak_sample_dry_breakers *b, struct breaker *strings,
                             const char *const *texts, size_t n_strings,
                             struct token_text *token_text, uint32_t n_vocab,
                             struct ak_error *error)
{
    size_t n_tails = 0;
    for (size_t i = 0; i < n_strings; i++) {
        strings[i] = (struct breaker){ .text = texts[i], .n = strlen(texts[i]) };
        n_tails += strings[i].n;
    }
    b->tails = ak_alloc(n_tails, sizeof *b->tails);
    b->first_head = ak_alloc((size_t)n_vocab + 1, sizeof *b->first_head);
    token_text->capacity = 256;
    token_text->text = ak_alloc(token_text->capacity, 1);
    if (!b->tails || !b->first_head || !token_text->text)
        return ak_fail_memory(error, "the sequence breakers of DRY", 0);
    for (size_t i = 0; i < n_strings; i++)
        AK_TRY(tokenize_tails(b, &strings[i], token_text->tokenizer, error));
    return find_heads(b, strings, n_strings, token_text, n_vocab, error);
}

ak_status ak_sample_dry_breakers_init(struct ak_sample_dry_breakers *b, const char *const *texts,
                                      const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                                      struct ak_error *error)
{
    size_t n = 0;
    *b = (struct ak_sample_dry_breakers){ 0 };
    for (texts = texts ? texts : default_breakers; texts[n];)
        n++;
    if (n == 0)
        return AKUNU_OK;
    if (!tokenizer)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "DRY's sequence breakers need a vocabulary, and the model has none");
    struct token_text token_text = { .tokenizer = tokenizer };
    struct breaker *strings = ak_alloc(n, sizeof *strings);
    ak_status status =
        strings ? fill_tables(b, strings, texts, n, &token_text, n_vocab, error) :
                  ak_fail_memory(error, "the sequence breakers of DRY", n * sizeof *strings);
    ak_free(strings);
    ak_free(token_text.text);
    return status;
}

void ak_sample_dry_breakers_release(struct ak_sample_dry_breakers *b)
{
    ak_free(b->first_head);
    ak_free(b->head_tails);
    ak_free(b->tails);
}

/* Length of the tail if it follows the head at index i, else NO_TAIL. */
static int64_t match_tail(const struct ak_sample_dry_tail *tail, const int32_t *newest_first,
                          uint32_t i)
{
    if (tail->n > i)
        return NO_TAIL;
    for (uint32_t j = 0; j < tail->n; j++)
        if (tail->tokens[j] != newest_first[i - j - 1])
            return NO_TAIL;
    return tail->n;
}

uint32_t ak_sample_dry_count_unbroken(const struct ak_sample_dry_breakers *b,
                                      const int32_t *newest_first, uint32_t n)
{
    for (uint32_t i = 0; b->first_head && i < n; i++) {
        int64_t longest = NO_TAIL;
        for (uint32_t head = b->first_head[newest_first[i]];
             head < b->first_head[newest_first[i] + 1]; head++) {
            int64_t length = match_tail(&b->tails[b->head_tails[head]], newest_first, i);
            longest = length > longest ? length : longest;
        }
        if (longest != NO_TAIL)
            return i - (uint32_t)longest;
    }
    return n;
}

bool ak_sample_dry_is_breaker(const struct ak_sample_dry_breakers *b, int32_t token)
{
    if (!b->first_head)
        return false;
    for (uint32_t head = b->first_head[token]; head < b->first_head[token + 1]; head++)
        if (b->tails[b->head_tails[head]].n == 0)
            return true;
    return false;
}

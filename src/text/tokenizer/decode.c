/* Token ids to text: at once (ak_tok_decode) or token by token (ak_tok_stream). The stream holds
 * back incomplete UTF-8 characters and replaces invalid bytes, so what it gives is always UTF-8. */
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/internal.h"
#include "base/utf8.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
enum { REPLACEMENT_BYTES = 3, MAX_CARRY_BYTES = 3 };

static ak_status fail_outside_vocab(const struct ak_tokenizer *t, int32_t token,
                                    struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_ARGUMENT, "token %d is outside the vocabulary of %u tokens",
                   token, t->token_bytes.n);
}

/* Whether a space at the beginning of the decoded text was added by the tokenizer. */
static bool strips_first_space(const struct ak_tokenizer *t, unsigned flags)
{
    bool adds = t->add_space_prefix || (t->pipeline && t->pipeline->inserts_spaces);
    return !t->byte_level && adds && !(flags & AKUNU_CONTINUE);
}

/* The bytes that a token decodes to. *strip_space: remove a leading space; cleared once the text
 * has begun. */
static struct ak_text get_token_bytes(const struct ak_tokenizer *t, int32_t token, unsigned flags,
                                      bool *strip_space)
{
    if ((flags & AKUNU_SKIP_SPECIAL) && ak_tok_kind(t, (uint32_t)token) == AK_TOK_KIND_CONTROL)
        return (struct ak_text){ NULL, 0 };
    struct ak_text piece = ak_tok_bytes_get(&t->token_bytes, (uint32_t)token);
    if (*strip_space && t->pipeline && t->pipeline->inserts_spaces) {
        /* The first word is as the vocabulary writes it, without the prefix. */
        struct ak_text word = ak_tok_bytes_get(&t->pipeline->words, (uint32_t)token);
        uint32_t mark = (uint32_t)strlen(t->pipeline->word_prefix);
        bool marked = word.n >= mark && memcmp(word.bytes, t->pipeline->word_prefix, mark) == 0;
        *strip_space = word.n == 0;
        return marked ? (struct ak_text){ word.bytes + mark, word.n - mark } : word;
    }
    if (*strip_space && piece.n > 0) {
        *strip_space = false;
        if (piece.bytes[0] == ' ')
            return (struct ak_text){ piece.bytes + 1, piece.n - 1 };
    }
    return piece;
}

ak_status ak_tok_decode(const struct ak_tokenizer *t, const int32_t *ids, size_t n_ids,
                        unsigned flags, char *text, size_t capacity, size_t *n_bytes,
                        struct ak_error *error)
{
    bool strip_space = strips_first_space(t, flags);
    size_t n = 0;

    *n_bytes = 0;
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= t->token_bytes.n)
            return fail_outside_vocab(t, ids[i], error);
        struct ak_text piece = get_token_bytes(t, ids[i], flags, &strip_space);
        if (n < capacity && piece.n)
            memcpy(text + n, piece.bytes, ak_min_size(piece.n, capacity - n));
        n += piece.n;
    }
    *n_bytes = n;
    return AKUNU_OK;
}

struct ak_tok_stream {
    struct ak_tokenizer *t; /* a reference */
    unsigned flags;
    bool strip_space;
    char carry[MAX_CARRY_BYTES]; /* first bytes of an incomplete character */
    uint8_t n_carry;
    char *pending; /* the carry, then the bytes of the token */
    char *out;     /* result; at worst three bytes per byte of `pending` */
};

static size_t max_token_bytes(const struct ak_tok_bytes *table)
{
    size_t longest = 0;

    for (uint32_t id = 0; id < table->n; id++)
        longest = ak_max_size(longest, ak_tok_bytes_get(table, id).n);
    return longest;
}

ak_status ak_tok_stream_create(struct ak_tokenizer *t, unsigned flags, struct ak_tok_stream **out,
                               struct ak_error *error)
{
    size_t longest = max_token_bytes(&t->token_bytes);

    *out = NULL;
    if (t->pipeline &&
        t->pipeline->inserts_spaces) /* a token may be longer at the start of a text */
        longest = ak_max_size(longest, max_token_bytes(&t->pipeline->words));
    longest += MAX_CARRY_BYTES;
    struct ak_tok_stream *s = ak_alloc(1, sizeof *s);
    if (s) {
        s->pending = ak_alloc(longest, 1);
        s->out = ak_alloc(longest, REPLACEMENT_BYTES);
    }
    if (!s || !s->pending || !s->out) {
        ak_tok_stream_free(s);
        return ak_fail_memory(error, "a text stream", longest * (1 + REPLACEMENT_BYTES));
    }
    s->t = ak_tok_ref(t);
    s->flags = flags;
    s->strip_space = strips_first_space(t, flags);
    *out = s;
    return AKUNU_OK;
}

void ak_tok_stream_free(struct ak_tok_stream *s)
{
    if (!s)
        return;
    ak_tok_free(s->t);
    ak_free(s->pending);
    ak_free(s->out);
    ak_free(s);
}

static size_t put_replacement(struct ak_tok_stream *s, size_t n)
{
    memcpy(s->out + n, replacement, REPLACEMENT_BYTES);
    return n + REPLACEMENT_BYTES;
}

ak_status ak_tok_stream_push(struct ak_tok_stream *s, int32_t token, const char **text,
                             size_t *n_bytes, struct ak_error *error)
{
    *text = s->out;
    *n_bytes = 0;
    if (token < 0 || (uint32_t)token >= s->t->token_bytes.n)
        return fail_outside_vocab(s->t, token, error);
    struct ak_text piece = get_token_bytes(s->t, token, s->flags, &s->strip_space);
    if (piece.n == 0)
        return AKUNU_OK;

    size_t n = s->n_carry + (size_t)piece.n, at = 0, n_out = 0;
    memcpy(s->pending, s->carry, s->n_carry);
    memcpy(s->pending + s->n_carry, piece.bytes, piece.n);
    s->n_carry = 0;
    while (at < n) {
        size_t valid = ak_utf8_valid_bytes(s->pending + at, n - at);
        memcpy(s->out + n_out, s->pending + at, valid);
        at += valid;
        n_out += valid;
        if (at == n)
            break;
        struct ak_utf8 bad = ak_utf8_next(s->pending + at, n - at);
        if (bad.truncated) {
            s->n_carry = bad.bytes;
            memcpy(s->carry, s->pending + at, bad.bytes);
        } else {
            n_out = put_replacement(s, n_out);
        }
        at += bad.bytes;
    }
    *n_bytes = n_out;
    return AKUNU_OK;
}

void ak_tok_stream_end(struct ak_tok_stream *s, const char **text, size_t *n_bytes)
{
    *text = s->out;
    *n_bytes = s->n_carry ? put_replacement(s, 0) : 0;
    s->n_carry = 0;
    s->strip_space = strips_first_space(s->t, s->flags);
}

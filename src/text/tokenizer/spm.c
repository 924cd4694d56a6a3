/* SentencePiece BPE, as in Llama 2: merges the pair of the best-scored piece first; characters that
 * are no piece fall back to byte tokens. Files write ▁ for a space; in memory it is a space. */
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "text/tokenizer/internal.h"
#include "base/utf8.h"

/* Whether the end of a word, a space after another character, lies inside. */
static bool spans_words(struct ak_text piece)
{
    for (uint32_t i = 1; i < piece.n; i++)
        if (piece.bytes[i] == ' ' && piece.bytes[i - 1] != ' ')
            return true;
    return false;
}

/* Appends all tokens and indexes those that text can become. Control and added tokens are not among
 * them: they are matched before the model runs. */
static void load_bytes(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    struct ak_tok_bytes_batch findable = { .n = 0 };

    memset(t->byte_tokens, 0xFF, sizeof t->byte_tokens);
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        struct ak_text text = vocab->tokens[id];
        uint8_t kind = ak_tok_kind(t, id);
        char *out = ak_tok_bytes_next(&t->token_bytes);
        uint32_t n = text.n;
        int byte = kind == AK_TOK_KIND_BYTE || !vocab->types ? ak_tok_parse_byte(text) : -1;
        bool plain = byte < 0 && (kind == AK_TOK_KIND_NORMAL || kind == AK_TOK_KIND_UNUSED);
        if (byte >= 0) {
            n = 1;
            out[0] = (char)byte;
            if (t->byte_tokens[byte] < 0)
                t->byte_tokens[byte] = (int32_t)id;
        } else if (plain) {
            n = ak_tok_decode_metaspace(text.bytes, text.n, out);
        } else {
            memcpy(out, text.bytes, n);
        }
        ak_tok_bytes_append(&t->token_bytes, n);
        if (plain && !memchr(text.bytes, ' ', text.n))
            ak_tok_bytes_index(&t->token_bytes, &findable, id);
    }
    ak_tok_bytes_index_end(&t->token_bytes, &findable);
}

/* Maps scores to integers in reverse order: the best score becomes the lowest. */
static uint32_t convert_score(float score)
{
    uint32_t bits = ak_float_bits(score + 0.0f); /* -0 becomes +0 */
    uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ascending == 0 ? UINT32_MAX - 1 : ~ascending;
}

ak_status ak_tok_spm_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error)
{
    if (!vocab->scores)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the SentencePiece vocabulary has no scores (tokenizer.ggml.scores)");
    t->priorities = ak_alloc(vocab->n_tokens, sizeof *t->priorities);
    if (!t->priorities)
        return ak_fail_memory(error, "the scores of the vocabulary",
                              (unsigned long long)vocab->n_tokens * sizeof *t->priorities);
    load_bytes(t, vocab);
    t->merges_within_words = true;
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        t->priorities[id] = convert_score(vocab->scores[id]);
        if ((ak_tok_kind(t, id) == AK_TOK_KIND_NORMAL ||
             ak_tok_kind(t, id) == AK_TOK_KIND_UNUSED) &&
            spans_words(ak_tok_bytes_get(&t->token_bytes, id)))
            t->merges_within_words = false;
    }
    t->add_space_prefix = vocab->add_space_prefix != 0;
    return AKUNU_OK;
}

static bool merge_pair(const void *context, const struct ak_tok_node *left,
                       const struct ak_tok_node *right, uint32_t *priority, int32_t *merged)
{
    const struct ak_tok_encoding *r = context;
    int32_t id = ak_tok_bytes_find(&r->t->token_bytes, r->text + left->begin,
                                   (size_t)left->bytes + right->bytes);

    if (id < 0)
        return false;
    *priority = r->t->priorities[id];
    *merged = id;
    return true;
}

/* Text without a token: byte tokens, or one unknown token for a run of any length. */
static void push_bytes(struct ak_tok_encoding *r, const struct ak_tok_node *node, bool *unknown)
{
    for (uint32_t i = 0; i < node->bytes; i++) {
        int32_t id = r->t->byte_tokens[(unsigned char)r->text[node->begin + i]];
        if (id >= 0)
            ak_tok_push(r, id);
        else if (!*unknown && r->t->unknown >= 0)
            ak_tok_push(r, r->t->unknown);
        *unknown = id < 0;
    }
}

/* Merges [begin, end) of r->text and pushes the tokens. */
static ak_status add_word(struct ak_tok_encoding *r, size_t begin, size_t end, bool *unknown,
                          struct ak_error *error)
{
    AK_TRY(ak_tok_merge_begin(&r->merge, end - begin, error));
    while (begin < end) {
        struct ak_utf8 c = ak_utf8_next(r->text + begin, end - begin);
        uint8_t n = c.valid ? c.bytes : 1;
        ak_tok_merge_add(&r->merge, (uint32_t)begin, n,
                         ak_tok_bytes_find(&r->t->token_bytes, r->text + begin, n));
        begin += n;
    }
    ak_tok_merge_run(&r->merge, merge_pair, r);
    for (uint32_t i = 0; i != AK_TOK_NO_NODE; i = r->merge.nodes[i].next) {
        const struct ak_tok_node *node = &r->merge.nodes[i];
        if (node->id < 0) {
            push_bytes(r, node, unknown);
            continue;
        }
        ak_tok_push(r, node->id);
        *unknown = false;
    }
    return AKUNU_OK;
}

ak_status ak_tok_spm_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                            struct ak_error *error)
{
    if (n == 0)
        return AKUNU_OK;
    if (r->text_capacity < n + 1) {
        char *grown = ak_realloc(r->text, n + 1, 1);
        if (!grown)
            return ak_fail_memory(error, "tokenizing a text", n + 1);
        r->text = grown;
        r->text_capacity = n + 1;
    }
    size_t end = 0;
    if (r->t->add_space_prefix)
        r->text[end++] = ' ';
    end += ak_tok_decode_metaspace(text, n, r->text + end);

    bool unknown = false;
    size_t begin = 0;
    for (size_t i = 1; i < end && r->t->merges_within_words; i++) {
        if (r->text[i] != ' ' || r->text[i - 1] == ' ')
            continue;
        AK_TRY(add_word(r, begin, i, &unknown, error));
        begin = i;
    }
    return add_word(r, begin, end, &unknown, error);
}

#include "text/tokenizer.h"

#include <string.h>

#include "base/mem.h"
#include "text/state.h"

enum { MAX_TEXT_BYTES = INT32_MAX };

/* GGUF's numbers of token types. */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_BYTE = 6 };

static uint8_t kind_of(const struct ak_vocab *vocab, uint32_t id)
{
    switch (vocab->types ? vocab->types[id] : TYPE_NORMAL) {
    case TYPE_NORMAL:
        return AK_TOKEN_NORMAL;
    case TYPE_BYTE:
        return AK_TOKEN_BYTE;
    case TYPE_USER_DEFINED:
        return AK_TOKEN_ADDED;
    case TYPE_UNKNOWN:
    case TYPE_CONTROL:
        return AK_TOKEN_CONTROL;
    default:
        return AK_TOKEN_UNUSED;
    }
}

/* The id that the file gives, else the one its kind has by custom; -1 where that
 * is outside the vocabulary. */
static int32_t id_or(const struct ak_vocab *vocab, int64_t id, int32_t custom)
{
    if (id >= 0 && id < (int64_t)vocab->n_tokens)
        return (int32_t)id;
    return custom < (int64_t)vocab->n_tokens ? custom : -1;
}

static ak_status load_specials(struct ak_tokenizer *t, struct ak_error *error)
{
    uint32_t n = 0;

    for (uint32_t id = 0; id < t->pieces.n; id++)
        n += ak_kind(t, id) == AK_TOKEN_CONTROL || ak_kind(t, id) == AK_TOKEN_ADDED;
    struct ak_special *specials = ak_alloc(n, sizeof *specials);
    if (!specials)
        return ak_fail_memory(error, "the control tokens of the vocabulary", (unsigned long long)n * sizeof *specials);
    n = 0;
    for (uint32_t id = 0; id < t->pieces.n; id++) {
        struct ak_text text = ak_pieces_get(&t->pieces, id);
        bool added = ak_kind(t, id) == AK_TOKEN_ADDED;
        if (text.n > 0 && (added || ak_kind(t, id) == AK_TOKEN_CONTROL))
            specials[n++] = (struct ak_special){text.bytes, text.n, (int32_t)id, added};
    }
    ak_specials_init(&t->specials, specials, n);
    return AKUNU_OK;
}

static bool is(struct ak_text text, const char *name)
{
    return text.n == strlen(name) && memcmp(text.bytes, name, text.n) == 0;
}

static ak_status check(const struct ak_vocab *vocab, struct ak_error *error)
{
    if (vocab->model.n == 0 || vocab->n_tokens == 0 || !vocab->tokens)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the file has no vocabulary (tokenizer.ggml.model, tokenizer.ggml.tokens)");
    if (!is(vocab->model, "gpt2") && !is(vocab->model, "llama"))
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "the tokenizer '%.*s' (tokenizer.ggml.model) is not supported; gpt2 and llama (byte-level and SentencePiece BPE) are",
            (int)ak_min_size(vocab->model.n, 64), vocab->model.bytes);
    return AKUNU_OK;
}

static ak_status load(struct ak_tokenizer *t, const struct ak_vocab *vocab, struct ak_error *error)
{
    uint64_t bytes = 0;

    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        bytes += vocab->tokens[id].n; /* 2^32 summands below 2^32: no overflow */
    AK_TRY(ak_pieces_reserve(&t->pieces, vocab->n_tokens, bytes, error));
    t->marks = ak_alloc(vocab->n_tokens, 1);
    if (!t->marks)
        return ak_fail_memory(error, "the vocabulary", vocab->n_tokens);
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        t->marks[id] = kind_of(vocab, id);

    t->byte_level = is(vocab->model, "gpt2");
    if (t->byte_level) {
        AK_TRY(ak_bpe_load(t, vocab, error));
        t->bos = id_or(vocab, vocab->bos, -1);
        t->eos = id_or(vocab, vocab->eos, -1);
        t->unknown = id_or(vocab, vocab->unknown, -1);
        t->add_bos = vocab->add_bos < 0 ? ak_pretokenizer_adds_bos(t->pre) : vocab->add_bos;
    } else {
        AK_TRY(ak_spm_load(t, vocab, error));
        t->unknown = id_or(vocab, vocab->unknown, 0); /* <unk>, <s>, </s> come first by SentencePiece's custom */
        t->bos = id_or(vocab, vocab->bos, 1);
        t->eos = id_or(vocab, vocab->eos, 2);
        t->add_bos = vocab->add_bos != 0;
    }
    t->add_eos = vocab->add_eos == 1;
    AK_TRY(load_specials(t, error));
    ak_mark_ends(t, vocab);
    return AKUNU_OK;
}

ak_status ak_tokenizer_create(const struct ak_vocab *vocab, struct ak_tokenizer **out, struct ak_error *error)
{
    *out = NULL;
    AK_TRY(check(vocab, error));
    struct ak_tokenizer *t = ak_alloc(1, sizeof *t);
    if (!t)
        return ak_fail_memory(error, "the tokenizer", sizeof *t);
    ak_status status = load(t, vocab, error);
    if (status != AKUNU_OK) {
        ak_tokenizer_free(t);
        return status;
    }
    *out = t;
    return AKUNU_OK;
}

void ak_tokenizer_free(struct ak_tokenizer *t)
{
    if (!t)
        return;
    ak_pieces_free(&t->pieces);
    ak_specials_free(&t->specials);
    ak_pretokenizer_free(t->pre);
    ak_free(t->marks);
    ak_free(t->pairs);
    ak_free(t->priorities);
    ak_free(t);
}

size_t ak_tokenizer_n_tokens(const struct ak_tokenizer *t)
{
    return t->pieces.n;
}

uint64_t ak_tokenizer_bytes(const struct ak_tokenizer *t)
{
    uint64_t bytes = sizeof *t + ak_pieces_bytes(&t->pieces) + t->pieces.n + t->specials.n * sizeof *t->specials.sorted;

    if (t->byte_level)
        return bytes + ((uint64_t)t->pair_mask + 1) * sizeof *t->pairs + ak_pretokenizer_bytes(t->pre);
    return bytes + t->pieces.n * sizeof *t->priorities;
}

static bool in_vocabulary(const struct ak_tokenizer *t, int32_t token)
{
    return token >= 0 && (uint32_t)token < t->pieces.n;
}

bool ak_tokenizer_is_end(const struct ak_tokenizer *t, int32_t token)
{
    return in_vocabulary(t, token) && (t->marks[token] & AK_TOKEN_END);
}

bool ak_tokenizer_is_control(const struct ak_tokenizer *t, int32_t token)
{
    return in_vocabulary(t, token) && ak_kind(t, (uint32_t)token) == AK_TOKEN_CONTROL;
}

int32_t ak_tokenizer_bos(const struct ak_tokenizer *t)
{
    return t->bos;
}

static ak_status add_text(struct ak_run *r, const char *text, size_t n, struct ak_error *error)
{
    if (n == 0)
        return AKUNU_OK;
    return r->t->byte_level ? ak_bpe_text(r, text, n, error) : ak_spm_text(r, text, n, error);
}

/* Special tokens cut the text into parts that know nothing of each other. */
static ak_status add_parts(struct ak_run *r, const char *text, size_t n, bool control, struct ak_error *error)
{
    size_t from = 0, at;
    const struct ak_special *special;

    while ((special = ak_specials_next(&r->t->specials, control, text, n, from, &at)) != NULL) {
        AK_TRY(add_text(r, text + from, at - from, error));
        ak_run_push(r, special->id);
        from = at + special->n;
    }
    return add_text(r, text + from, n - from, error);
}

ak_status ak_tokenize(const struct ak_tokenizer *t, const char *text, size_t n_bytes, unsigned flags, int32_t *ids, size_t capacity,
                      size_t *n_ids, struct ak_error *error)
{
    struct ak_run r = {.t = t, .ids = ids, .capacity = capacity};

    *n_ids = 0;
    if (n_bytes > MAX_TEXT_BYTES)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "a text of %zu bytes: at most %d are tokenized at once", n_bytes, MAX_TEXT_BYTES);
    if ((flags & AKUNU_ADD_SPECIAL) && t->add_bos && t->bos >= 0)
        ak_run_push(&r, t->bos);
    ak_status status = add_parts(&r, text, n_bytes, (flags & AKUNU_PARSE_SPECIAL) != 0, error);
    if ((flags & AKUNU_ADD_SPECIAL) && t->add_eos && t->eos >= 0)
        ak_run_push(&r, t->eos);
    ak_merge_free(&r.merge);
    ak_matcher_free(r.matcher);
    ak_free(r.text);
    if (status == AKUNU_OK)
        *n_ids = r.n;
    return status;
}

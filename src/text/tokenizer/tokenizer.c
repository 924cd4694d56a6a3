/* Creation of a tokenizer from a GGUF vocabulary, and ak_tok_encode: special tokens first, then the
 * model for the parts between them. */
#include "text/tokenizer/tokenizer.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "text/tokenizer/internal.h"
#include "base/unicode.h"
#include "base/utf8.h"

enum { MAX_TEXT_BYTES = INT32_MAX };

/* Token types of GGUF. */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_BYTE = 6 };

static uint8_t get_kind(const struct ak_vocab *vocab, uint32_t id)
{
    switch (vocab->types ? vocab->types[id] : TYPE_NORMAL) {
    case TYPE_NORMAL: return AK_TOK_KIND_NORMAL;
    case TYPE_BYTE: return AK_TOK_KIND_BYTE;
    case TYPE_USER_DEFINED: return AK_TOK_KIND_ADDED;
    case TYPE_UNKNOWN:
    case TYPE_CONTROL: return AK_TOK_KIND_CONTROL;
    default: return AK_TOK_KIND_UNUSED;
    }
}

/* The id in the file, else the conventional one of this kind of tokenizer; -1: outside the
 * vocabulary. */
static int32_t resolve_id(const struct ak_vocab *vocab, int64_t id, int32_t custom)
{
    if (id >= 0 && id < (int64_t)vocab->n_tokens)
        return (int32_t)id;
    return custom < (int64_t)vocab->n_tokens ? custom : -1;
}

static bool name_contains(struct ak_text name, const char *part)
{
    for (size_t i = 0, n = strlen(part); i + n <= name.n; i++)
        if (strncasecmp(name.bytes + i, part, n) == 0)
            return true;
    return false;
}

/* Control tokens of Phi-3 strip the whitespace to their right. GGUF has no key for it; llama.cpp
 * looks at the model name. */
static bool strips_right(const struct ak_vocab *vocab, struct ak_text text)
{
    return (name_contains(vocab->name, "phi-3") || name_contains(vocab->name, "phi3")) &&
           !ak_text_equals(text, "<unk>") && !ak_text_equals(text, "<s>") &&
           !ak_text_equals(text, "<|endoftext|>");
}

static ak_status load_specials(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                               struct ak_error *error)
{
    /* as the file writes them: what they decode to may have one more space */
    const struct ak_tok_bytes *written = t->pipeline ? &t->pipeline->words : &t->token_bytes;
    uint32_t n = 0;

    for (uint32_t id = 0; id < t->token_bytes.n; id++)
        n += ak_tok_kind(t, id) == AK_TOK_KIND_CONTROL || ak_tok_kind(t, id) == AK_TOK_KIND_ADDED;
    struct ak_tok_special *specials = ak_alloc(n, sizeof *specials);
    if (!specials)
        return ak_fail_memory(error, "the control tokens of the vocabulary",
                              (unsigned long long)n * sizeof *specials);
    n = 0;
    for (uint32_t id = 0; id < t->token_bytes.n; id++) {
        struct ak_text text = ak_tok_bytes_get(written, id);
        bool added = ak_tok_kind(t, id) == AK_TOK_KIND_ADDED;
        if (text.n > 0 && (added || ak_tok_kind(t, id) == AK_TOK_KIND_CONTROL))
            specials[n++] = (struct ak_tok_special){ .text = text.bytes,
                                                     .n = text.n,
                                                     .id = (int32_t)id,
                                                     .matches_always = added,
                                                     .rstrip = strips_right(vocab, text) };
    }
    ak_tok_specials_init(&t->specials, specials, n);
    return AKUNU_OK;
}

static ak_status check_vocab(const struct ak_vocab *vocab, struct ak_error *error)
{
    if (vocab->model.n == 0 || vocab->n_tokens == 0 || !vocab->tokens)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the file has no vocabulary (tokenizer.ggml.model, tokenizer.ggml.tokens)");
    return AKUNU_OK;
}

static ak_status load_byte_level(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                 struct ak_error *error)
{
    t->byte_level = true;
    AK_TRY(ak_tok_bpe_load(t, vocab, error));
    t->bos = resolve_id(vocab, vocab->bos, -1);
    t->eos = resolve_id(vocab, vocab->eos, -1);
    t->unknown = resolve_id(vocab, vocab->unknown, -1);
    t->add_bos =
        vocab->add_bos < 0 ? ak_tok_pretokenizer_adds_bos(t->pretokenizer) : vocab->add_bos;
    t->add_eos = vocab->add_eos == 1;
    return AKUNU_OK;
}

static ak_status load_ranked(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                             struct ak_error *error)
{
    t->byte_level = true;
    t->bos = t->eos = t->unknown = -1;
    return ak_tok_bpe_load_ranks(t, vocab, error);
}

static ak_status load_char_bpe(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                               const struct ak_tok_char_rule *rule, struct ak_error *error)
{
    AK_TRY(ak_tok_char_bpe_load(t, vocab, rule, error));
    t->bos = resolve_id(vocab, vocab->bos, -1);
    t->eos = resolve_id(vocab, vocab->eos, -1);
    t->add_bos = rule->adds_bos || vocab->add_bos == 1;
    t->add_eos = vocab->add_eos == 1;
    return AKUNU_OK;
}

static ak_status load_sentencepiece(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                    struct ak_error *error)
{
    AK_TRY(ak_tok_spm_load(t, vocab, error));
    /* <unk>, <s>, </s> are the first ids of SentencePiece by convention */
    t->unknown = resolve_id(vocab, vocab->unknown, 0);
    t->bos = resolve_id(vocab, vocab->bos, 1);
    t->eos = resolve_id(vocab, vocab->eos, 2);
    t->add_bos = vocab->add_bos != 0;
    t->add_eos = vocab->add_eos == 1;
    return AKUNU_OK;
}

/* BOS and EOS are added whatever the file states, as in llama.cpp. */
static ak_status load_wordpiece(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                struct ak_error *error)
{
    AK_TRY(ak_tok_wordpiece_load(t, vocab, error));
    t->unknown = resolve_id(vocab, vocab->unknown, 100); /* [UNK], [CLS], [SEP] of the first BERT */
    t->bos = resolve_id(vocab, vocab->bos, 101);
    t->eos = resolve_id(vocab, vocab->separator, 102);
    t->add_bos = t->add_eos = true;
    return AKUNU_OK;
}

static ak_status load_unigram(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                              struct ak_error *error)
{
    AK_TRY(ak_tok_unigram_load(t, vocab, error));
    t->unknown = resolve_id(vocab, vocab->unknown, 2); /* <pad>, </s>, <unk> of T5 */
    t->bos = resolve_id(vocab, vocab->bos, -1);
    t->eos = resolve_id(vocab, vocab->eos, 1);
    t->add_bos = vocab->add_bos == 1;
    t->add_eos = vocab->add_eos != 0;
    return AKUNU_OK;
}

/* GGUF's names of the kinds of tokenizers. */
static const struct {
    const char *model;
    ak_status (*load)(struct ak_tokenizer *t, const struct ak_vocab *vocab, struct ak_error *error);
} kinds[] = { { "gpt2", load_byte_level },
              { "tiktoken", load_ranked },
              { "llama", load_sentencepiece },
              { "bert", load_wordpiece },
              { "t5", load_unigram } };

static ak_status load_kind(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                           struct ak_error *error)
{
    const struct ak_tok_char_rule *rule =
        ak_tok_find_char_rule(ak_text_equals(vocab->model, "gpt2") ? vocab->pre : vocab->model);
    if (rule)
        return load_char_bpe(t, vocab, rule, error);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ak_text_equals(vocab->model, kinds[i].model))
            return kinds[i].load(t, vocab, error);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "the tokenizer '%.*s' (tokenizer.ggml.model) is not supported; gpt2, "
                   "gemma4, whitespace and llama (BPE of bytes, characters, SentencePiece), "
                   "bert (WordPiece) and t5 (Unigram) are",
                   (int)ak_min_size(vocab->model.n, 64), vocab->model.bytes);
}

static ak_status load_ids(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error)
{
    uint64_t bytes = 0;

    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        bytes += (uint64_t)vocab->tokens[id].n +
                 1; /* at most 2^32 times 2^32: no overflow; 1: WordPiece may add a space */
    AK_TRY(ak_tok_bytes_reserve(&t->token_bytes, vocab->n_tokens, bytes, error));
    t->token_flags = ak_alloc(vocab->n_tokens, 1);
    if (!t->token_flags)
        return ak_fail_memory(error, "the vocabulary", vocab->n_tokens);
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        t->token_flags[id] = get_kind(vocab, id);

    AK_TRY(load_kind(t, vocab, error));
    AK_TRY(load_specials(t, vocab, error));
    ak_tok_find_fim(t, vocab);
    ak_tok_mark_ends(t, vocab);
    ak_tok_find_special_tokens(t, vocab);
    return AKUNU_OK;
}

ak_status ak_tok_create(const struct ak_vocab *vocab, struct ak_tokenizer **out,
                        struct ak_error *error)
{
    *out = NULL;
    AK_TRY(check_vocab(vocab, error));
    struct ak_tokenizer *t = ak_alloc(1, sizeof *t);
    if (!t)
        return ak_fail_memory(error, "the tokenizer", sizeof *t);
    ak_status status = load_ids(t, vocab, error);
    if (status != AKUNU_OK) {
        ak_tok_free(t);
        return status;
    }
    *out = t;
    return AKUNU_OK;
}

struct ak_tokenizer *ak_tok_ref(struct ak_tokenizer *t)
{
    ak_refs_take(&t->refs);
    return t;
}

void ak_tok_free(struct ak_tokenizer *t)
{
    if (!t || !ak_refs_drop(&t->refs))
        return;
    ak_tok_bytes_free(&t->token_bytes);
    ak_tok_specials_free(&t->specials);
    ak_tok_pretokenizer_free(t->pretokenizer);
    ak_tok_pipeline_free(t->pipeline);
    ak_free(t->token_flags);
    ak_free(t->pairs);
    ak_free(t->priorities);
    ak_free(t);
}

size_t ak_tok_n_tokens(const struct ak_tokenizer *t)
{
    return t->token_bytes.n;
}

uint64_t ak_tok_memory_bytes(const struct ak_tokenizer *t)
{
    uint64_t bytes = sizeof *t + ak_tok_bytes_memory(&t->token_bytes) + t->token_bytes.n +
                     t->specials.n * sizeof *t->specials.sorted;

    if (t->pairs)
        bytes += ((uint64_t)t->pair_mask + 1) * sizeof *t->pairs;
    if (t->pretokenizer)
        bytes += ak_tok_pretokenizer_memory(t->pretokenizer);
    if (t->priorities)
        bytes += t->token_bytes.n * sizeof *t->priorities;
    return bytes + ak_tok_pipeline_memory(t->pipeline);
}

static bool in_vocabulary(const struct ak_tokenizer *t, int32_t token)
{
    return token >= 0 && (uint32_t)token < t->token_bytes.n;
}

bool ak_tok_is_end(const struct ak_tokenizer *t, int32_t token)
{
    return in_vocabulary(t, token) && (t->token_flags[token] & AK_TOK_END_FLAG);
}

bool ak_tok_is_control(const struct ak_tokenizer *t, int32_t token)
{
    return in_vocabulary(t, token) && ak_tok_kind(t, (uint32_t)token) == AK_TOK_KIND_CONTROL;
}

int32_t ak_tok_bos(const struct ak_tokenizer *t)
{
    return t->bos;
}

static ak_status encode_text(struct ak_tok_encoding *r, const char *text, size_t n, bool control,
                             bool start, struct ak_error *error)
{
    if (r->t->pipeline)
        return ak_tok_pipeline_encode(r, text, n, control, start, error);
    return r->t->byte_level ? ak_tok_bpe_encode(r, text, n, error) :
                              ak_tok_spm_encode(r, text, n, error);
}

static bool has_word_before(const char *text, size_t n)
{
    size_t at = n;

    while (at > 0 && n - at < 4 && ((unsigned char)text[--at] & 0xC0) == 0x80)
        ;
    struct ak_utf8 c = n ? ak_utf8_next(text + at, n - at) : (struct ak_utf8){ 0 };
    return c.valid && at + c.bytes == n && ak_is_word_char(c.code);
}

static bool has_word_after(const char *text, size_t n)
{
    struct ak_utf8 c = n ? ak_utf8_next(text, n) : (struct ak_utf8){ 0 };
    return c.valid && ak_is_word_char(c.code);
}

size_t ak_tok_find_whitespace_begin(const char *text, size_t from, size_t to)
{
    size_t begin = to;

    while (begin > from) {
        size_t at = begin - 1;
        while (at > from && begin - at < 4 && ((unsigned char)text[at] & 0xC0) == 0x80)
            at--;
        struct ak_utf8 c = ak_utf8_next(text + at, begin - at);
        if (!c.valid || at + c.bytes != begin || !ak_is_whitespace(c.code))
            break;
        begin = at;
    }
    return begin;
}

static size_t find_whitespace_end(const char *text, size_t at, size_t n)
{
    while (at < n) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        if (!c.valid || !ak_is_whitespace(c.code))
            break;
        at += c.bytes;
    }
    return at;
}

ak_status ak_tok_encode_parts(struct ak_tok_encoding *r, const struct ak_tok_specials *specials,
                              const char *text, size_t n, bool control, bool start,
                              ak_tok_part_fn *fn, struct ak_error *error)
{
    size_t from = 0, search = 0, at;
    const struct ak_tok_special *special;

    while ((special = ak_tok_specials_next(specials, control, text, n, search, &at)) != NULL) {
        size_t end = at + special->n;
        search = end;
        if (special->single_word &&
            (has_word_before(text, at) || has_word_after(text + end, n - end)))
            continue;
        if (at < from) /* in whitespace that the previous token took */
            continue;
        if (special->lstrip)
            at = ak_tok_find_whitespace_begin(text, from, at);
        if (special->rstrip)
            end = find_whitespace_end(text, end, n);
        if (at > from)
            AK_TRY(fn(r, text + from, at - from, control, start && from == 0, error));
        ak_tok_push(r, special->id);
        from = end;
        search = ak_max_size(search, from);
    }
    return n > from ? fn(r, text + from, n - from, control, start && from == 0, error) : AKUNU_OK;
}

static void push_all(struct ak_tok_encoding *r, const int32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ak_tok_push(r, ids[i]);
}

void ak_tok_count_added(const struct ak_tokenizer *t, size_t *n_before, size_t *n_after)
{
    *n_before = (size_t)(t->add_bos && t->bos >= 0) + (t->pipeline ? t->pipeline->n_prefix : 0);
    *n_after = (size_t)(t->add_eos && t->eos >= 0) + (t->pipeline ? t->pipeline->n_suffix : 0);
}

ak_status ak_tok_encode(const struct ak_tokenizer *t, const char *text, size_t n_bytes,
                        unsigned flags, int32_t *ids, size_t capacity, size_t *n_ids,
                        struct ak_error *error)
{
    struct ak_tok_encoding r = { .t = t, .ids = ids, .capacity = capacity };

    *n_ids = 0;
    if (n_bytes > MAX_TEXT_BYTES)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "a text of %zu bytes: at most %d are tokenized at once", n_bytes,
                       MAX_TEXT_BYTES);
    if ((flags & AKUNU_ADD_SPECIAL) && t->add_bos && t->bos >= 0)
        ak_tok_push(&r, t->bos);
    if ((flags & AKUNU_ADD_SPECIAL) && t->pipeline)
        push_all(&r, t->pipeline->prefix_ids, t->pipeline->n_prefix);
    ak_status status =
        ak_tok_encode_parts(&r, &t->specials, text, n_bytes, (flags & AKUNU_PARSE_SPECIAL) != 0,
                            true, encode_text, error);
    if ((flags & AKUNU_ADD_SPECIAL) && t->pipeline)
        push_all(&r, t->pipeline->suffix_ids, t->pipeline->n_suffix);
    if ((flags & AKUNU_ADD_SPECIAL) && t->add_eos && t->eos >= 0)
        ak_tok_push(&r, t->eos);
    ak_tok_scratch_free(&r.scratch);
    ak_tok_merge_free(&r.merge);
    ak_tok_matcher_free(r.matcher);
    ak_free(r.text);
    if (status == AKUNU_OK)
        *n_ids = r.n;
    return status;
}

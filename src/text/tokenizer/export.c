/* Writes a tokenizer as GGUF vocabulary keys: the reverse of loading one. It undoes what loading
 * did to the tokens: spaces become ▁ again, bytes their printable form, merges scores. */
#include "text/tokenizer/tokenizer.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/tokenizer/internal.h"

/* Token types of GGUF. */
enum {
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_USER_DEFINED = 4,
    TYPE_UNUSED = 5,
    TYPE_BYTE = 6
};

/* An export in progress. Texts are offsets into out->bytes until set_addresses. */
struct exporter {
    const struct ak_tokenizer *t;
    struct ak_tok_export *out;
    uint32_t n;
    struct ak_error *error;
};

static bool is_wordpiece(const struct ak_tokenizer *t)
{
    return t->pipeline && t->pipeline->model == AK_TOK_MODEL_WORDPIECE;
}

static ak_status add_bytes(struct exporter *e, const char *bytes, size_t n)
{
    return ak_buffer_add(&e->out->bytes, bytes, n, e->error);
}

/* Adds the printable form of the bytes. */
static ak_status add_printable(struct exporter *e, struct ak_text text)
{
    char out[4];
    for (uint32_t i = 0; i < text.n; i++)
        AK_TRY(add_bytes(e, out, ak_tok_encode_printable((unsigned char)text.bytes[i], out)));
    return AKUNU_OK;
}

/* WordPiece: GGUF marks tokens that begin a word, vocabularies mark the others. */
static ak_status add_wordpiece(struct exporter *e, struct ak_text text)
{
    size_t n_next = strlen(e->t->pipeline->subword_prefix);
    if (n_next > 0 && text.n > n_next &&
        memcmp(text.bytes, e->t->pipeline->subword_prefix, n_next) == 0)
        return add_bytes(e, text.bytes + n_next, text.n - n_next);
    AK_TRY(add_bytes(e, AK_TOK_METASPACE, AK_TOK_METASPACE_BYTES));
    return add_bytes(e, text.bytes, text.n);
}

/* SentencePiece: loading has turned ▁ into spaces. */
static ak_status add_metaspace(struct exporter *e, struct ak_text text)
{
    for (uint32_t i = 0; i < text.n; i++)
        AK_TRY(text.bytes[i] == ' ' ? add_bytes(e, AK_TOK_METASPACE, AK_TOK_METASPACE_BYTES) :
                                      add_bytes(e, &text.bytes[i], 1));
    return AKUNU_OK;
}

static ak_status add_byte_token(struct exporter *e, unsigned byte)
{
    char text[8];
    return add_bytes(e, text, (size_t)snprintf(text, sizeof text, "<0x%02X>", byte));
}

/* The byte of a byte token; -1: another token. */
static int find_byte(const struct ak_tokenizer *t, uint32_t id)
{
    if (t->byte_level || (t->pipeline && !t->pipeline->byte_fallback))
        return -1;
    for (int b = 0; b < 256; b++)
        if (t->byte_tokens[b] == (int32_t)id)
            return b;
    return -1;
}

static ak_status add_normal(struct exporter *e, uint32_t id)
{
    const struct ak_tokenizer *t = e->t;
    if (t->byte_level)
        return add_printable(e, ak_tok_bytes_get(&t->token_bytes, id));
    if (!t->pipeline)
        return add_metaspace(e, ak_tok_bytes_get(&t->token_bytes, id));
    struct ak_text word = ak_tok_bytes_get(&t->pipeline->words, id);
    return is_wordpiece(t) ? add_wordpiece(e, word) : add_bytes(e, word.bytes, word.n);
}

/* Added tokens. In SentencePiece vocabularies llama.cpp matches them before spaces become ▁. */
static ak_status add_added(struct exporter *e, struct ak_text text)
{
    const struct ak_tokenizer *t = e->t;
    if (t->byte_level || is_wordpiece(t))
        return add_bytes(e, text.bytes, text.n);
    AK_TRY(ak_buffer_reserve(&e->out->bytes, text.n, e->error));
    e->out->bytes.n +=
        ak_tok_decode_metaspace(text.bytes, text.n, e->out->bytes.bytes + e->out->bytes.n);
    return AKUNU_OK;
}

static ak_status add_unused(struct exporter *e, uint32_t id)
{
    char text[24];
    e->out->types[id] = TYPE_UNUSED;
    if (is_wordpiece(e->t))
        AK_TRY(add_bytes(e, AK_TOK_METASPACE, AK_TOK_METASPACE_BYTES));
    return add_bytes(e, text, (size_t)snprintf(text, sizeof text, "[PAD%u]", (unsigned)id));
}

static ak_status add_token(struct exporter *e, uint32_t id)
{
    const struct ak_tokenizer *t = e->t;
    const struct ak_tok_bytes *written =
        t->byte_level || !t->pipeline ? &t->token_bytes : &t->pipeline->words;
    if (id >= t->token_bytes.n ||
        (ak_tok_kind(t, id) == AK_TOK_KIND_UNUSED && ak_tok_bytes_get(written, id).n == 0))
        return add_unused(e, id);
    struct ak_text text = ak_tok_bytes_get(written, id);
    int byte = find_byte(t, id);
    switch (ak_tok_kind(t, id)) {
    case AK_TOK_KIND_CONTROL:
        e->out->types[id] = (int32_t)id == t->unknown && !t->byte_level && !is_wordpiece(t) ?
                                TYPE_UNKNOWN :
                                TYPE_CONTROL;
        return add_bytes(e, text.bytes, text.n);
    case AK_TOK_KIND_ADDED: e->out->types[id] = TYPE_USER_DEFINED; return add_added(e, text);
    case AK_TOK_KIND_UNUSED:
        e->out->types[id] = TYPE_UNUSED;
        return add_bytes(e, text.bytes, text.n);
    default: break;
    }
    e->out->types[id] = byte >= 0                                   ? TYPE_BYTE :
                        (int32_t)id == t->unknown && !t->byte_level ? TYPE_UNKNOWN :
                                                                      TYPE_NORMAL;
    return byte >= 0 ? add_byte_token(e, (unsigned)byte) : add_normal(e, id);
}

static ak_status add_tokens(struct exporter *e)
{
    struct ak_tok_export *out = e->out;
    uint64_t *ends = ak_alloc(e->n, sizeof *ends);
    out->tokens = ak_alloc(e->n, sizeof *out->tokens);
    out->types = ak_alloc(e->n, sizeof *out->types);
    ak_status status = ends && out->tokens && out->types ?
                           AKUNU_OK :
                           ak_fail_memory(e->error, "a vocabulary", e->n * sizeof *out->tokens);
    for (uint32_t id = 0; id < e->n && status == AKUNU_OK; id++) {
        status = add_token(e, id);
        ends[id] = out->bytes.n;
    }
    for (uint32_t id = 0; id < e->n && status == AKUNU_OK; id++) {
        uint64_t begin = id ? ends[id - 1] : 0;
        /* an offset, until set_addresses */
        out->tokens[id] =
            (struct ak_text){ (const char *)(uintptr_t)begin, (uint32_t)(ends[id] - begin) };
    }
    ak_free(ends);
    return status;
}

/* ---- Merges ------------------------------------------------------------- */
static int compare_rank(const void *a, const void *b)
{
    const struct ak_tok_pair *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The merges by rank. The caller frees *out. */
static ak_status sort_pairs(const struct ak_tokenizer *t, struct ak_tok_pair **out, uint32_t *n,
                            struct ak_error *error)
{
    if (t->ranked)
        return ak_tok_bpe_find_merges(t, out, n, error);
    *n = 0;
    *out = ak_alloc(t->pairs ? (size_t)t->pair_mask + 1 : 0, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "the merges of a vocabulary",
                              (size_t)t->pair_mask * sizeof **out);
    for (uint32_t i = 0; t->pairs && i <= t->pair_mask; i++)
        if (t->pairs[i].left != UINT32_MAX)
            (*out)[(*n)++] = t->pairs[i];
    qsort(*out, *n, sizeof **out, compare_rank);
    return AKUNU_OK;
}

static ak_status add_merges(struct exporter *e, const struct ak_tok_pair *pairs, uint32_t n)
{
    e->out->merges = ak_alloc(n, sizeof *e->out->merges);
    if (!e->out->merges)
        return ak_fail_memory(e->error, "the merges of a vocabulary", n * sizeof *e->out->merges);
    for (uint32_t i = 0; i < n; i++) {
        size_t begin = e->out->bytes.n;
        AK_TRY(add_printable(e, ak_tok_bytes_get(&e->t->token_bytes, pairs[i].left)));
        AK_TRY(add_bytes(e, " ", 1));
        AK_TRY(add_printable(e, ak_tok_bytes_get(&e->t->token_bytes, pairs[i].right)));
        e->out->merges[i] =
            (struct ak_text){ (const char *)(uintptr_t)begin, (uint32_t)(e->out->bytes.n - begin) };
    }
    e->out->vocab.n_merges = n;
    return AKUNU_OK;
}

/* SentencePiece BPE merges the pair that makes the best-scored token, so an earlier merge gets a
 * better score. Tokens without a merge are single characters, or never come from text. */
static void score_by_merges(struct exporter *e, const struct ak_tok_pair *pairs, uint32_t n)
{
    for (uint32_t i = 0; i < e->n; i++)
        e->out->scores[i] = e->out->types[i] == TYPE_NORMAL ? -(float)n - 1.0f : 0.0f;
    for (uint32_t i = n; i-- > 0;) /* backwards: the earliest merge of a token wins */
        if ((uint32_t)pairs[i].merged < e->n)
            e->out->scores[pairs[i].merged] = -(float)i;
}

static void score_by_priorities(struct exporter *e)
{
    for (uint32_t i = 0; i < e->n && i < e->t->token_bytes.n; i++)
        e->out->scores[i] = -(float)e->t->priorities[i];
}

static ak_status add_scores(struct exporter *e)
{
    struct ak_tok_pair *pairs;
    uint32_t n;
    e->out->scores = ak_alloc(e->n, sizeof *e->out->scores);
    if (!e->out->scores)
        return ak_fail_memory(e->error, "the scores of a vocabulary", e->n * sizeof(float));
    if (!e->t->pipeline) {
        score_by_priorities(e);
    } else if (e->t->pipeline->model == AK_TOK_MODEL_UNIGRAM) {
        for (uint32_t i = 0; i < e->n && i < e->t->token_bytes.n && e->t->pipeline->scores; i++)
            e->out->scores[i] = (float)e->t->pipeline->scores[i];
    } else {
        AK_TRY(sort_pairs(e->t, &pairs, &n, e->error));
        score_by_merges(e, pairs, n);
        ak_free(pairs);
    }
    e->out->vocab.scores = e->out->scores;
    return AKUNU_OK;
}

/* ---- Other keys --------------------------------------------------------- */
static const struct ak_tok_transform *find_transform(const struct ak_tok_transforms *steps,
                                                     enum ak_tok_transform_kind kind)
{
    for (uint32_t i = 0; i < steps->n; i++)
        if (steps->list[i].kind == kind)
            return &steps->list[i];
    return NULL;
}

/* Whether the tokenizer puts a space before the text. */
static bool adds_space_prefix(const struct ak_tokenizer *t)
{
    if (!t->pipeline)
        return t->add_space_prefix;
    const struct ak_tok_transform *prepend =
        find_transform(&t->pipeline->normalizers, AK_TOK_NORM_PREPEND);
    const struct ak_tok_transform *normalizer =
        find_transform(&t->pipeline->normalizers, AK_TOK_NORM_METASPACE);
    const struct ak_tok_transform *pretokenizer =
        find_transform(&t->pipeline->pretokenizers, AK_TOK_PRE_METASPACE);
    return prepend || (normalizer && (normalizer->add_prefix || normalizer->merge_spaces)) ||
           (pretokenizer && pretokenizer->prepend != AK_TOK_PREPEND_NEVER);
}

/* Whether two spaces count as one: tries it. */
static ak_status collapses_spaces(const struct ak_tokenizer *t, bool *out, struct ak_error *error)
{
    static const char one[] = "a a", two[] = "a  a";
    int32_t a[8], b[8];
    size_t n, m;
    AK_TRY(ak_tok_encode(t, one, strlen(one), 0, a, sizeof a / sizeof *a, &n, error));
    AK_TRY(ak_tok_encode(t, two, strlen(two), 0, b, sizeof b / sizeof *b, &m, error));
    *out = n == m && n <= sizeof a / sizeof *a && memcmp(a, b, n * sizeof *a) == 0;
    return AKUNU_OK;
}

/* llama.cpp strips accents if it lowercases, unless the file states otherwise. */
static bool strips_accents(const struct ak_tokenizer *t)
{
    static const enum ak_tok_transform_kind kinds[] = { AK_TOK_NORM_STRIP_ACCENTS,
                                                        AK_TOK_NORM_STRIP_MN,
                                                        AK_TOK_NORM_BASE_CHARS };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (find_transform(&t->pipeline->normalizers, kinds[i]))
            return true;
    return false;
}

/* In the format of the file: size of the array, the array, the texts. */
static ak_status add_charsmap(struct exporter *e)
{
    const struct ak_tok_transform *step =
        find_transform(&e->t->pipeline->normalizers, AK_TOK_NORM_PRECOMPILED);
    if (!step || step->map.n_nodes == 0)
        return AKUNU_OK;
    uint32_t array = step->map.n_nodes * 4;
    size_t begin = e->out->bytes.n;
    AK_TRY(add_bytes(e, (const char *)&array, sizeof array));
    AK_TRY(add_bytes(e, (const char *)step->map.nodes, array));
    AK_TRY(add_bytes(e, step->map.texts, step->map.n_text_bytes));
    e->out->vocab.charsmap =
        (struct ak_text){ (const char *)(uintptr_t)begin, (uint32_t)(e->out->bytes.n - begin) };
    return AKUNU_OK;
}

/* GGUF's BOS and EOS are the tokens that the tokenizer puts before and after each text. If
 * the model's own EOS is another token, it is written as EOT. */
static void add_ends(struct exporter *e)
{
    const struct ak_tokenizer *t = e->t;
    const struct ak_tok_pipeline *p = t->pipeline;
    struct ak_vocab *v = &e->out->vocab;
    bool begins = p && p->n_prefix > 0, ends = p && p->n_suffix > 0;
    v->bos = begins ? p->prefix_ids[0] : t->bos;
    v->eos = ends ? p->suffix_ids[p->n_suffix - 1] : t->eos;
    v->eot = ends && t->eos >= 0 && t->eos != v->eos ? t->eos : -1;
    v->unknown = t->unknown;
    v->padding = t->padding;
    for (int i = 0; i < AK_VOCAB_FIM_COUNT; i++)
        e->out->fim[i] = t->fim[i];
    v->fim = e->out->fim;
    v->add_bos = t->add_bos || begins;
    v->add_eos = t->add_eos || ends;
    e->out->add_separator = p && p->n_separators > 0 ? p->n_separators > p->n_suffix : -1;
    if (is_wordpiece(t)) {
        v->separator = v->eos;
        v->cls = v->bos;
    }
}

static ak_status fill_byte_level(struct exporter *e, struct ak_text pre)
{
    struct ak_tok_pair *pairs;
    uint32_t n;
    struct ak_vocab *v = &e->out->vocab;
    v->model = (struct ak_text){ "gpt2", 4 };
    if (pre.n == 0 && e->t->pipeline)
        AK_TRY(ak_tok_find_pre_name(e->t, &pre, e->error));
    if (pre.n == 0)
        return ak_fail(
            e->error, AKUNU_ERROR_UNSUPPORTED,
            "tokenizer.json: none of the known pre-tokenizers splits words as its "
            "pre_tokenizer does. Where one comes near enough, its name can be given (--pre)");
    v->pre = pre;
    AK_TRY(sort_pairs(e->t, &pairs, &n, e->error));
    ak_status status = add_merges(e, pairs, n);
    ak_free(pairs);
    return status;
}

static ak_status fill_export(struct exporter *e, struct ak_text pre)
{
    const struct ak_tokenizer *t = e->t;
    struct ak_vocab *v = &e->out->vocab;
    *v = ak_vocab_none;
    if (t->pipeline && !is_wordpiece(t) &&
        find_transform(&t->pipeline->normalizers, AK_TOK_NORM_LOWERCASE))
        return ak_fail(e->error, AKUNU_ERROR_UNSUPPORTED,
                       "the tokenizer makes text lower case (tokenizer.json, or do_lower_case of "
                       "sentence_bert_config.json), which GGUF stores for WordPiece only");
    AK_TRY(add_tokens(e));
    add_ends(e);
    if (t->byte_level)
        return fill_byte_level(e, pre);
    v->pre = pre.n ? pre : (struct ak_text){ "default", 7 };
    if (is_wordpiece(t)) {
        v->model = (struct ak_text){ "bert", 4 };
        v->lowercase = find_transform(&t->pipeline->normalizers, AK_TOK_NORM_LOWERCASE) != NULL;
        v->strip_accents = strips_accents(t) == v->lowercase ? -1 : !v->lowercase;
        return AKUNU_OK;
    }
    v->add_space_prefix = adds_space_prefix(t);
    AK_TRY(add_scores(e));
    v->model = (struct ak_text){ "llama", 5 };
    if (!t->pipeline || t->pipeline->model != AK_TOK_MODEL_UNIGRAM)
        return AKUNU_OK;
    bool collapsed;
    v->model = (struct ak_text){ "t5", 2 };
    AK_TRY(collapses_spaces(t, &collapsed, e->error));
    v->remove_extra_whitespaces = collapsed;
    return add_charsmap(e);
}

/* Turns the offsets into addresses. */
static void set_addresses(struct ak_tok_export *out, uint32_t n)
{
    const char *base = out->bytes.bytes ? out->bytes.bytes : "";
    for (uint32_t i = 0; i < n; i++)
        out->tokens[i].bytes = base + (uintptr_t)out->tokens[i].bytes;
    for (uint32_t i = 0; i < out->vocab.n_merges; i++)
        out->merges[i].bytes = base + (uintptr_t)out->merges[i].bytes;
    if (out->vocab.charsmap.n)
        out->vocab.charsmap.bytes = base + (uintptr_t)out->vocab.charsmap.bytes;
    out->vocab.tokens = out->tokens;
    out->vocab.merges = out->merges;
    out->vocab.types = out->types;
    out->vocab.n_tokens = n;
}

bool ak_tok_has_rstrip_control(const struct ak_tokenizer *t)
{
    for (uint32_t i = 0; i < t->specials.n; i++)
        if (t->specials.sorted[i].rstrip && !t->specials.sorted[i].matches_always)
            return true;
    return false;
}

ak_status ak_tok_export_vocab(const struct ak_tokenizer *t, uint32_t n_tokens, struct ak_text pre,
                              struct ak_tok_export *out, struct ak_error *error)
{
    struct exporter e = { .t = t, .out = out, .n = n_tokens, .error = error };
    *out = (struct ak_tok_export){ .tokens = NULL };
    AK_TRY(fill_export(&e, pre));
    set_addresses(out, n_tokens);
    return AKUNU_OK;
}

void ak_tok_export_free(struct ak_tok_export *e)
{
    ak_free(e->bytes.bytes);
    ak_free(e->tokens);
    ak_free(e->merges);
    ak_free(e->scores);
    ak_free(e->types);
    *e = (struct ak_tok_export){ .tokens = NULL };
}

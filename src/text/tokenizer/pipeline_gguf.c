/* GGUF tokenizers that are built as pipelines: bert (WordPiece), t5 (Unigram) and BPE over
 * characters. They give the ids that llama.cpp gives. */
#include <float.h>

#include "base/mem.h"
#include "text/tokenizer/internal.h"

/* The unknown token scores this much below the worst token, as in llama.cpp and SentencePiece. */
static const double unknown_penalty = 10.0;

static bool is_word(const struct ak_tokenizer *t, uint32_t id)
{
    uint8_t kind = ak_tok_kind(t, id);
    return kind == AK_TOK_KIND_NORMAL || kind == AK_TOK_KIND_UNUSED || kind == AK_TOK_KIND_ADDED;
}

/* Builds the trie of the tokens that text can become. */
static ak_status load_trie(struct ak_tokenizer *t, struct ak_error *error)
{
    struct ak_tok_pipeline *p = t->pipeline;
    uint32_t *order = ak_alloc((size_t)p->words.n + 1, sizeof *order), n = 0;

    if (!order)
        return ak_fail_memory(error, "the vocabulary", p->words.n * sizeof *order);
    for (uint32_t id = 0; id < p->words.n; id++)
        if (p->words.offsets[id + 1] > p->words.offsets[id] && is_word(t, id))
            order[n++] = id;
    ak_tok_trie_init(&p->trie, &p->words, order, n);
    return AKUNU_OK;
}

static ak_status load_words(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                            struct ak_error *error)
{
    uint64_t bytes = 0;

    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        bytes += vocab->tokens[id].n;
    AK_TRY(ak_tok_bytes_reserve(&t->pipeline->words, vocab->n_tokens, bytes, error));
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        memcpy(ak_tok_bytes_next(&t->pipeline->words), vocab->tokens[id].bytes,
               vocab->tokens[id].n);
        ak_tok_bytes_append(&t->pipeline->words, vocab->tokens[id].n);
    }
    return AKUNU_OK;
}

static ak_status create_pipeline(struct ak_tokenizer *t, enum ak_tok_model model,
                                 const struct ak_vocab *vocab, struct ak_error *error)
{
    t->pipeline = ak_alloc(1, sizeof *t->pipeline);
    if (!t->pipeline)
        return ak_fail_memory(error, "the tokenizer", sizeof *t->pipeline);
    t->pipeline->model = model;
    memset(t->byte_tokens, 0xFF, sizeof t->byte_tokens);
    AK_TRY(load_words(t, vocab, error));
    return model == AK_TOK_MODEL_BPE ? AKUNU_OK : load_trie(t, error);
}

static ak_status add_transform(struct ak_tok_transforms *steps, enum ak_tok_transform_kind kind,
                               enum ak_tok_behavior behavior, struct ak_error *error)
{
    struct ak_tok_transform *s = ak_tok_transforms_add(steps, kind);

    if (!s)
        return ak_fail_memory(error, "the tokenizer", sizeof *s);
    s->behavior = behavior;
    return AKUNU_OK;
}

ak_status ak_tok_wordpiece_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                struct ak_error *error)
{
    AK_TRY(create_pipeline(t, AK_TOK_MODEL_WORDPIECE, vocab, error));
    struct ak_tok_pipeline *p = t->pipeline;
    bool lower = vocab->lowercase != 0,
         strip = vocab->strip_accents < 0 ? lower : vocab->strip_accents;

    memcpy(p->word_prefix, AK_TOK_METASPACE, sizeof AK_TOK_METASPACE);
    p->inserts_spaces = true;
    if (strip)
        AK_TRY(add_transform(&p->normalizers, AK_TOK_NORM_BASE_CHARS, AK_TOK_REMOVED, error));
    AK_TRY(add_transform(&p->normalizers, AK_TOK_NORM_CLEAN_TEXT_GGUF, AK_TOK_REMOVED, error));
    AK_TRY(add_transform(&p->normalizers, AK_TOK_NORM_CHINESE_CHARS, AK_TOK_REMOVED, error));
    if (lower)
        AK_TRY(add_transform(&p->normalizers, AK_TOK_NORM_LOWERCASE, AK_TOK_REMOVED, error));
    AK_TRY(add_transform(&p->pretokenizers, AK_TOK_PRE_WHITESPACE_SPLIT, AK_TOK_REMOVED, error));
    AK_TRY(add_transform(&p->pretokenizers, AK_TOK_PRE_PUNCTUATION, AK_TOK_ISOLATED, error));
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        struct ak_text text = vocab->tokens[id];
        char *out = ak_tok_bytes_next(&t->token_bytes);
        bool begins = text.n > AK_TOK_METASPACE_BYTES &&
                      memcmp(text.bytes, AK_TOK_METASPACE, AK_TOK_METASPACE_BYTES) == 0;
        ak_tok_bytes_append(
            &t->token_bytes,
            ak_tok_wordpiece_decode(begins ? text.bytes + AK_TOK_METASPACE_BYTES : text.bytes,
                                    begins ? text.n - AK_TOK_METASPACE_BYTES : text.n,
                                    begins || !is_word(t, id), out));
    }
    return AKUNU_OK;
}

static void load_scores(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    float worst = FLT_MAX;

    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        t->pipeline->scores[id] =
            ak_tok_kind(t, id) == AK_TOK_KIND_ADDED ? 0 : (double)vocab->scores[id];
        if (ak_tok_kind(t, id) == AK_TOK_KIND_NORMAL && vocab->scores[id] < worst)
            worst = vocab->scores[id];
    }
    t->pipeline->unknown_score = (double)(float)((double)worst - unknown_penalty);
}

static void load_texts(struct ak_tokenizer *t, const struct ak_vocab *vocab, bool uses_metaspace)
{
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        struct ak_text text = vocab->tokens[id];
        char *out = ak_tok_bytes_next(&t->token_bytes);
        int byte = ak_tok_kind(t, id) == AK_TOK_KIND_BYTE ? ak_tok_parse_byte(text) : -1;
        uint32_t n = 1;
        if (byte >= 0) {
            out[0] = (char)byte;
            t->byte_tokens[byte] = (int32_t)id;
        } else if (uses_metaspace && (ak_tok_kind(t, id) == AK_TOK_KIND_NORMAL ||
                                      ak_tok_kind(t, id) == AK_TOK_KIND_UNUSED)) {
            n = ak_tok_decode_metaspace(text.bytes, text.n, out);
        } else {
            n = text.n;
            memcpy(out, text.bytes, n);
        }
        ak_tok_bytes_append(&t->token_bytes, n);
    }
}

ak_status ak_tok_unigram_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                              struct ak_error *error)
{
    if (!vocab->scores)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the Unigram vocabulary has no scores (tokenizer.ggml.scores)");
    AK_TRY(create_pipeline(t, AK_TOK_MODEL_UNIGRAM, vocab, error));
    struct ak_tok_pipeline *p = t->pipeline;
    p->scores = ak_alloc(vocab->n_tokens, sizeof *p->scores);
    struct ak_tok_transform *map = ak_tok_transforms_add(&p->normalizers, AK_TOK_NORM_PRECOMPILED);
    if (!p->scores || !map)
        return ak_fail_memory(error, "the scores of the vocabulary",
                              vocab->n_tokens * sizeof *p->scores);
    AK_TRY(ak_tok_charsmap_load(&map->map, vocab->charsmap, error));
    struct ak_tok_transform *metaspace =
        ak_tok_transforms_add(&p->normalizers, AK_TOK_NORM_METASPACE);
    if (!metaspace)
        return ak_fail_memory(error, "the tokenizer", sizeof *metaspace);
    t->add_space_prefix = vocab->add_space_prefix != 0;
    metaspace->add_prefix = t->add_space_prefix;
    metaspace->merge_spaces = vocab->remove_extra_whitespaces == 1;
    p->fuse_unknown = true;
    load_scores(t, vocab);
    load_texts(t, vocab, true);
    return AKUNU_OK;
}

/* ---- BPE over characters ------------------------------------------------ */
static ak_status copy_text(const char *text, char **to, uint32_t *n, struct ak_error *error)
{
    *n = (uint32_t)strlen(text);
    *to = ak_strndup(text, *n);
    return *to ? AKUNU_OK : ak_fail_memory(error, "the tokenizer", *n);
}

static ak_status add_char_transforms(struct ak_tok_pipeline *p, const struct ak_tok_char_rule *rule,
                                     bool lower, struct ak_error *error)
{
    if (rule->uses_metaspace) {
        struct ak_tok_transform *replace =
            ak_tok_transforms_add(&p->normalizers, AK_TOK_NORM_REPLACE);
        if (!replace)
            return ak_fail_memory(error, "the tokenizer", sizeof *replace);
        AK_TRY(copy_text(" ", &replace->literal, &replace->n_literal, error));
        AK_TRY(copy_text(AK_TOK_METASPACE, &replace->text, &replace->n_text, error));
    }
    if (lower)
        AK_TRY(add_transform(&p->normalizers, AK_TOK_NORM_LOWERCASE, AK_TOK_REMOVED, error));
    if (!rule->pattern)
        return add_transform(&p->pretokenizers, AK_TOK_PRE_WHITESPACE_SPLIT, AK_TOK_REMOVED, error);
    struct ak_tok_transform *split = ak_tok_transforms_add(&p->pretokenizers, AK_TOK_PRE_SPLIT);
    if (!split)
        return ak_fail_memory(error, "the tokenizer", sizeof *split);
    split->behavior = AK_TOK_ISOLATED;
    return ak_tok_regex_compile((struct ak_text){ rule->pattern, (uint32_t)strlen(rule->pattern) },
                                false, &split->pattern, error);
}

ak_status ak_tok_char_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                               const struct ak_tok_char_rule *rule, struct ak_error *error)
{
    struct ak_tok_bytes_batch findable = { .n = 0 };

    if (!vocab->merges)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the BPE vocabulary has no merges (tokenizer.ggml.merges)");
    t->unknown = -1;
    AK_TRY(create_pipeline(t, AK_TOK_MODEL_BPE, vocab, error));
    t->pipeline->byte_fallback = true;
    t->pipeline->ignore_newline_merges = rule->ignore_newline_merges;
    AK_TRY(add_char_transforms(t->pipeline, rule, vocab->lowercase == 1, error));
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        if (is_word(t, id))
            ak_tok_bytes_index(&t->pipeline->words, &findable, id);
    ak_tok_bytes_index_end(&t->pipeline->words, &findable);
    load_texts(t, vocab, rule->uses_metaspace);
    return ak_tok_bpe_load_merges(t, vocab, false, error);
}

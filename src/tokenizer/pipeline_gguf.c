/* The tokenizers of GGUF that are pipelines: bert (WordPiece), t5 (Unigram) and BPE over
 * characters, as llama.cpp runs them. */
#include <float.h>

#include "base/mem.h"
#include "tokenizer/state.h"

/* llama.cpp's distance of the unknown token from the worst piece; SentencePiece has the same. */
static const double unknown_penalty = 10.0;

static const char mark[] = "▁"; /* U+2581 */
enum { MARK_BYTES = 3 };

static bool is_word(const struct ak_tokenizer *t, uint32_t id)
{
    uint8_t kind = ak_kind(t, id);
    return kind == AK_TOKEN_NORMAL || kind == AK_TOKEN_UNUSED || kind == AK_TOKEN_ADDED;
}

/* Makes a trie of the pieces that text can become. */
static ak_status load_trie(struct ak_tokenizer *t, struct ak_error *error)
{
    struct ak_pipeline *p = t->pipeline;
    uint32_t *order = ak_alloc((size_t)p->words.n + 1, sizeof *order), n = 0;

    if (!order)
        return ak_fail_memory(error, "the vocabulary", p->words.n * sizeof *order);
    for (uint32_t id = 0; id < p->words.n; id++)
        if (p->words.offsets[id + 1] > p->words.offsets[id] && is_word(t, id))
            order[n++] = id;
    ak_trie_init(&p->trie, &p->words, order, n);
    return AKUNU_OK;
}

static ak_status load_words(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                            struct ak_error *error)
{
    uint64_t bytes = 0;

    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        bytes += vocab->tokens[id].n;
    AK_TRY(ak_pieces_reserve(&t->pipeline->words, vocab->n_tokens, bytes, error));
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        memcpy(ak_pieces_next(&t->pipeline->words), vocab->tokens[id].bytes, vocab->tokens[id].n);
        ak_pieces_append(&t->pipeline->words, vocab->tokens[id].n);
    }
    return AKUNU_OK;
}

static ak_status create(struct ak_tokenizer *t, enum ak_core core, const struct ak_vocab *vocab,
                        struct ak_error *error)
{
    t->pipeline = ak_alloc(1, sizeof *t->pipeline);
    if (!t->pipeline)
        return ak_fail_memory(error, "the tokenizer", sizeof *t->pipeline);
    t->pipeline->core = core;
    memset(t->byte_tokens, 0xFF, sizeof t->byte_tokens);
    AK_TRY(load_words(t, vocab, error));
    return core == AK_CORE_BPE ? AKUNU_OK : load_trie(t, error);
}

static ak_status add_step(struct ak_steps *steps, enum ak_step_kind kind, bool flag, bool flag2,
                          enum ak_tok_behavior behaviour, struct ak_error *error)
{
    struct ak_step *s = ak_steps_add(steps, kind);

    if (!s)
        return ak_fail_memory(error, "the tokenizer", sizeof *s);
    s->flag = flag;
    s->flag2 = flag2;
    s->behaviour = behaviour;
    return AKUNU_OK;
}

ak_status ak_wordpiece_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                            struct ak_error *error)
{
    AK_TRY(create(t, AK_CORE_WORDPIECE, vocab, error));
    struct ak_pipeline *p = t->pipeline;
    bool lower = vocab->lowercase != 0,
         strip = vocab->strip_accents < 0 ? lower : vocab->strip_accents;

    memcpy(p->first_mark, mark, sizeof mark);
    p->joins_words = true;
    if (strip)
        AK_TRY(add_step(&p->normalizers, AK_STEP_BASE, false, false, AK_REMOVED, error));
    AK_TRY(add_step(&p->normalizers, AK_STEP_CLEAN_GGUF, false, false, AK_REMOVED, error));
    AK_TRY(add_step(&p->normalizers, AK_STEP_CHINESE, false, false, AK_REMOVED, error));
    if (lower)
        AK_TRY(add_step(&p->normalizers, AK_STEP_LOWERCASE, false, false, AK_REMOVED, error));
    AK_TRY(add_step(&p->splits, AK_STEP_WHITESPACE, false, false, AK_REMOVED, error));
    AK_TRY(add_step(&p->splits, AK_STEP_PUNCTUATION, false, false, AK_ISOLATED, error));
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        struct ak_text text = vocab->tokens[id];
        char *out = ak_pieces_next(&t->pieces);
        bool begins = text.n > MARK_BYTES && memcmp(text.bytes, mark, MARK_BYTES) == 0;
        ak_pieces_append(&t->pieces,
                         ak_wordpiece_text(begins ? text.bytes + MARK_BYTES : text.bytes,
                                           begins ? text.n - MARK_BYTES : text.n,
                                           begins || !is_word(t, id), out));
    }
    return AKUNU_OK;
}

static void load_scores(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    float worst = FLT_MAX;

    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        t->pipeline->scores[id] = ak_kind(t, id) == AK_TOKEN_ADDED ? 0 : (double)vocab->scores[id];
        if (ak_kind(t, id) == AK_TOKEN_NORMAL && vocab->scores[id] < worst)
            worst = vocab->scores[id];
    }
    t->pipeline->unknown_score = (double)(float)((double)worst - unknown_penalty);
}

static void load_texts(struct ak_tokenizer *t, const struct ak_vocab *vocab, bool marks_blanks)
{
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        struct ak_text text = vocab->tokens[id];
        char *out = ak_pieces_next(&t->pieces);
        int byte = ak_kind(t, id) == AK_TOKEN_BYTE ? ak_byte_of(text) : -1;
        uint32_t n = 1;
        if (byte >= 0) {
            out[0] = (char)byte;
            t->byte_tokens[byte] = (int32_t)id;
        } else if (marks_blanks &&
                   (ak_kind(t, id) == AK_TOKEN_NORMAL || ak_kind(t, id) == AK_TOKEN_UNUSED)) {
            n = ak_unmark(text.bytes, text.n, out);
        } else {
            n = text.n;
            memcpy(out, text.bytes, n);
        }
        ak_pieces_append(&t->pieces, n);
    }
}

ak_status ak_unigram_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error)
{
    if (!vocab->scores)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the Unigram vocabulary has no scores (tokenizer.ggml.scores)");
    AK_TRY(create(t, AK_CORE_UNIGRAM, vocab, error));
    struct ak_pipeline *p = t->pipeline;
    p->scores = ak_alloc(vocab->n_tokens, sizeof *p->scores);
    struct ak_step *map = ak_steps_add(&p->normalizers, AK_STEP_PRECOMPILED);
    if (!p->scores || !map)
        return ak_fail_memory(error, "the scores of the vocabulary",
                              vocab->n_tokens * sizeof *p->scores);
    AK_TRY(ak_charsmap_load(&map->map, vocab->charsmap, error));
    t->add_space_prefix = vocab->add_space_prefix != 0;
    AK_TRY(add_step(&p->normalizers, AK_STEP_MARK_BLANKS, t->add_space_prefix,
                    vocab->remove_extra_whitespaces == 1, AK_REMOVED, error));
    p->fuse_unknown = true;
    load_scores(t, vocab);
    load_texts(t, vocab, true);
    return AKUNU_OK;
}

/* ---- BPE over characters ------------------------------------------------ */
static ak_status copy(const char *text, char **to, uint32_t *n, struct ak_error *error)
{
    *n = (uint32_t)strlen(text);
    *to = ak_strndup(text, *n);
    return *to ? AKUNU_OK : ak_fail_memory(error, "the tokenizer", *n);
}

static ak_status add_raw_steps(struct ak_pipeline *p, const struct ak_raw_rule *rule, bool lower,
                               struct ak_error *error)
{
    if (rule->marks_blanks) {
        struct ak_step *blanks = ak_steps_add(&p->normalizers, AK_STEP_REPLACE);
        if (!blanks)
            return ak_fail_memory(error, "the tokenizer", sizeof *blanks);
        AK_TRY(copy(" ", &blanks->literal, &blanks->n_literal, error));
        AK_TRY(copy(mark, &blanks->text, &blanks->n_text, error));
    }
    if (lower)
        AK_TRY(add_step(&p->normalizers, AK_STEP_LOWERCASE, false, false, AK_REMOVED, error));
    if (!rule->pattern)
        return add_step(&p->splits, AK_STEP_WHITESPACE, false, false, AK_REMOVED, error);
    struct ak_step *cuts = ak_steps_add(&p->splits, AK_STEP_SPLIT);
    if (!cuts)
        return ak_fail_memory(error, "the tokenizer", sizeof *cuts);
    cuts->behaviour = AK_ISOLATED;
    return ak_regex_compile((struct ak_text){ rule->pattern, (uint32_t)strlen(rule->pattern) },
                            false, &cuts->pattern, error);
}

ak_status ak_raw_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          const struct ak_raw_rule *rule, struct ak_error *error)
{
    struct ak_pieces_batch findable = { .n = 0 };

    if (!vocab->merges)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the BPE vocabulary has no merges (tokenizer.ggml.merges)");
    t->unknown = -1;
    AK_TRY(create(t, AK_CORE_BPE, vocab, error));
    t->pipeline->byte_fallback = true;
    t->pipeline->whole_lines = rule->whole_lines;
    AK_TRY(add_raw_steps(t->pipeline, rule, vocab->lowercase == 1, error));
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        if (is_word(t, id))
            ak_pieces_index(&t->pipeline->words, &findable, id);
    ak_pieces_index_end(&t->pipeline->words, &findable);
    load_texts(t, vocab, rule->marks_blanks);
    return ak_bpe_load_merges(t, vocab, false, error);
}

/* The "model" of a tokenizer.json, BPE, Unigram or WordPiece, and its vocabulary. */
#include <float.h>

#include "base/mem.h"
#include "text/tokenizer/json_parts.h"

/* The unknown token scores this much below the worst token, as in SentencePiece. */
static const double unknown_penalty = 10.0;

enum { MAX_WORD_CHARACTERS = 100 };

static const char where_model[] = "tokenizer.json: model";

ak_status ak_tok_json_find_model(struct ak_tok_json_loader *m)
{
    struct ak_tok_pipeline *p = m->t->pipeline;
    struct ak_text type;

    AK_TRY(ak_tok_json_text(m->model, "type", false, where_model, &type, m->error));
    if (type.bytes ? ak_text_equals(type, "BPE") :
                     json_object_get(m->model, "merges") != NULL) /* old files have no type */
        p->model = AK_TOK_MODEL_BPE;
    else if (type.bytes && ak_text_equals(type, "Unigram"))
        p->model = AK_TOK_MODEL_UNIGRAM;
    else if (type.bytes && ak_text_equals(type, "WordPiece"))
        p->model = AK_TOK_MODEL_WORDPIECE;
    else
        return ak_fail(m->error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: the type '%.*s' is not supported; BPE, Unigram and WordPiece are",
                       where_model, (int)ak_min_size(type.n, 64), type.bytes ? type.bytes : "");
    if (p->model == AK_TOK_MODEL_UNIGRAM)
        return ak_tok_json_list(m->model, "vocab", true, where_model, &m->vocab, m->error);
    return ak_tok_json_object(m->model, "vocab", true, where_model, &m->vocab, m->error);
}

static ak_status read_scored_tokens(struct ak_tok_json_loader *m)
{
    struct ak_tok_pipeline *p = m->t->pipeline;
    json_t *element;
    size_t i;
    double worst = DBL_MAX;

    p->scores = ak_alloc(m->n, sizeof *p->scores);
    if (!p->scores)
        return ak_fail_memory(m->error, "the scores of the vocabulary", m->n * sizeof *p->scores);
    json_array_foreach (m->vocab, i, element) {
        const json_t *piece = json_array_get(element, 0), *score = json_array_get(element, 1);
        if (!json_is_string(piece) || !json_is_number(score))
            return ak_fail(
                m->error, AKUNU_ERROR_FORMAT,
                "tokenizer.json: model.vocab[%zu] is not a list of a string and a number", i);
        m->tokens[i] = ak_tok_json_string(piece);
        m->is_model_token[i] = true;
        p->scores[i] = json_number_value(score);
        worst = p->scores[i] < worst ? p->scores[i] : worst;
    }
    p->unknown_score = worst - unknown_penalty;
    return AKUNU_OK;
}

ak_status ak_tok_json_load_vocab(struct ak_tok_json_loader *m)
{
    void *at;

    if (m->t->pipeline->model == AK_TOK_MODEL_UNIGRAM)
        return read_scored_tokens(m);
    for (at = json_object_iter(m->vocab); at; at = json_object_iter_next(m->vocab, at)) {
        int64_t id = 0;
        ak_tok_json_integer(json_object_iter_value(at), &id); /* checked by count_ids */
        m->tokens[id] = (struct ak_text){ json_object_iter_key(at),
                                          (uint32_t)strlen(json_object_iter_key(at)) };
        m->is_model_token[id] = true;
    }
    return AKUNU_OK;
}

ak_status ak_tok_json_load_words(struct ak_tok_json_loader *m)
{
    struct ak_tok_bytes *words = &m->t->pipeline->words;
    struct ak_tok_bytes_batch findable = { .n = 0 };
    uint64_t bytes = 0;

    for (uint32_t id = 0; id < m->n; id++)
        bytes += m->tokens[id].n;
    AK_TRY(ak_tok_bytes_reserve(words, m->n, bytes, m->error));
    for (uint32_t id = 0; id < m->n; id++) {
        if (m->tokens[id].n)
            memcpy(ak_tok_bytes_next(words), m->tokens[id].bytes, m->tokens[id].n);
        ak_tok_bytes_append(words, m->tokens[id].n);
        if (m->is_model_token[id])
            ak_tok_bytes_index(words, &findable, id);
    }
    ak_tok_bytes_index_end(words, &findable);
    return AKUNU_OK;
}

static ak_status load_trie(struct ak_tok_json_loader *m)
{
    struct ak_tok_pipeline *p = m->t->pipeline;
    uint32_t *order = ak_alloc(m->n, sizeof *order), n = 0;

    if (!order)
        return ak_fail_memory(m->error, "the vocabulary", m->n * sizeof *order);
    for (uint32_t id = 0; id < m->n; id++)
        if (m->is_model_token[id] && m->tokens[id].n > 0)
            order[n++] = id;
    ak_tok_trie_init(&p->trie, &p->words, order, n);
    return AKUNU_OK;
}

static void load_byte_tokens(struct ak_tok_json_loader *m)
{
    const char digits[] = "0123456789ABCDEF";

    for (unsigned b = 0; b < 256; b++) {
        const char text[6] = { '<', '0', 'x', digits[b >> 4], digits[b & 15], '>' };
        m->t->byte_tokens[b] = ak_tok_bytes_find(&m->t->pipeline->words, text, sizeof text);
    }
}

/* ---- BPE ---------------------------------------------------------------- */
/* A merge is a string "left right" or a list of two strings, which may contain spaces. Lists
 * become lines with NUL between the two. */
static ak_status read_merges(struct ak_tok_json_loader *m)
{
    json_t *element;
    size_t i, n_bytes = 0, at = 0;

    AK_TRY(ak_tok_json_list(m->model, "merges", true, where_model, &m->merges, m->error));
    m->lines = ak_alloc(json_array_size(m->merges) + 1, sizeof *m->lines);
    if (!m->lines)
        return ak_fail_memory(m->error, "the merges of the vocabulary",
                              json_array_size(m->merges) * sizeof *m->lines);
    json_array_foreach (m->merges, i, element) {
        const json_t *left = json_array_get(element, 0), *right = json_array_get(element, 1);
        bool pair = json_is_string(left) && json_is_string(right) && json_array_size(element) == 2;
        if (!pair && !json_is_string(element))
            return ak_fail(m->error, AKUNU_ERROR_FORMAT,
                           "tokenizer.json: model.merges[%zu] is neither a string nor two", i);
        n_bytes += pair ? json_string_length(left) + json_string_length(right) + 1 : 0;
    }
    AK_TRY(ak_buffer_reserve(&m->merge_text, n_bytes + 1, m->error));
    json_array_foreach (m->merges, i, element) {
        if (json_is_string(element)) {
            m->lines[i] = ak_tok_json_string(element);
            continue;
        }
        struct ak_text left = ak_tok_json_string(json_array_get(element, 0)),
                       right = ak_tok_json_string(json_array_get(element, 1));
        char *line = m->merge_text.bytes + at;
        memcpy(line, left.bytes, left.n);
        line[left.n] = '\0';
        memcpy(line + left.n + 1, right.bytes, right.n);
        m->lines[i] = (struct ak_text){ line, left.n + right.n + 1 };
        at += m->lines[i].n;
    }
    return AKUNU_OK;
}

static ak_status check_affix(struct ak_tok_json_loader *m, const char *key)
{
    struct ak_text text;

    AK_TRY(ak_tok_json_text(m->model, key, false, where_model, &text, m->error));
    if (text.n == 0)
        return AKUNU_OK;
    return ak_fail(m->error, AKUNU_ERROR_UNSUPPORTED, "%s: %s '%.*s' is not supported", where_model,
                   key, (int)ak_min_size(text.n, 64), text.bytes);
}

static ak_status read_unknown(struct ak_tok_json_loader *m)
{
    struct ak_text name;

    AK_TRY(ak_tok_json_text(m->model, "unk_token", false, where_model, &name, m->error));
    m->t->unknown = -1;
    for (uint32_t id = 0; id < m->n && name.n > 0 && m->t->unknown < 0; id++)
        if (m->tokens[id].n == name.n && memcmp(m->tokens[id].bytes, name.bytes, name.n) == 0)
            m->t->unknown = (int32_t)id;
    return AKUNU_OK;
}

static ak_status load_bpe(struct ak_tok_json_loader *m)
{
    struct ak_tokenizer *t = m->t;
    struct ak_vocab vocab = { .n_tokens = m->n, .tokens = m->tokens };

    AK_TRY(check_affix(m, "continuing_subword_prefix"));
    AK_TRY(check_affix(m, "end_of_word_suffix"));
    AK_TRY(read_unknown(m));
    AK_TRY(ak_tok_json_bool(m->model, "byte_fallback", false, where_model,
                            &t->pipeline->byte_fallback, m->error));
    AK_TRY(ak_tok_json_bool(m->model, "fuse_unk", false, where_model, &t->pipeline->fuse_unknown,
                            m->error));
    AK_TRY(ak_tok_json_bool(m->model, "ignore_merges", false, where_model, &t->ignore_merges,
                            m->error));
    AK_TRY(read_merges(m));
    vocab.merges = m->lines;
    vocab.n_merges = (uint32_t)json_array_size(m->merges);
    if (t->byte_level)
        ak_tok_bpe_load_bytes(t, &vocab);
    else
        load_byte_tokens(m);
    ak_status status = ak_tok_bpe_load_merges(t, &vocab, true, m->error);
    if (status == AKUNU_OK && t->byte_level && !t->ignore_merges)
        ak_tok_bytes_drop_index(&t->token_bytes);
    return status;
}

/* ---- Unigram, WordPiece ------------------------------------------------- */
static ak_status load_unigram(struct ak_tok_json_loader *m)
{
    int64_t id = -1;
    const json_t *unknown = json_object_get(m->model, "unk_id");

    if (unknown && !json_is_null(unknown) &&
        (!ak_tok_json_integer(unknown, &id) || id < 0 || id >= (int64_t)m->n))
        return ak_fail(m->error, AKUNU_ERROR_FORMAT, "%s: unk_id is not an id of the %u tokens",
                       where_model, m->n);
    m->t->unknown = (int32_t)id;
    m->t->pipeline->fuse_unknown = true;
    load_byte_tokens(m);
    AK_TRY(ak_tok_json_bool(m->model, "byte_fallback", false, where_model,
                            &m->t->pipeline->byte_fallback, m->error));
    return load_trie(m);
}

static ak_status load_wordpiece(struct ak_tok_json_loader *m)
{
    struct ak_tok_pipeline *p = m->t->pipeline;
    struct ak_text prefix;
    int64_t max_chars = MAX_WORD_CHARACTERS;
    const json_t *value = json_object_get(m->model, "max_input_chars_per_word");

    AK_TRY(ak_tok_json_text(m->model, "continuing_subword_prefix", true, where_model, &prefix,
                            m->error));
    if (prefix.n >= sizeof p->subword_prefix)
        return ak_fail(m->error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: continuing_subword_prefix has %u bytes, more than %zu", where_model,
                       prefix.n, sizeof p->subword_prefix - 1);
    memcpy(p->subword_prefix, prefix.bytes, prefix.n);
    if (value &&
        (!ak_tok_json_integer(value, &max_chars) || max_chars < 1 || max_chars > INT32_MAX))
        return ak_fail(m->error, AKUNU_ERROR_FORMAT,
                       "%s: max_input_chars_per_word is not a number of characters", where_model);
    p->max_word_chars = (uint32_t)max_chars;
    AK_TRY(read_unknown(m));
    return load_trie(m);
}

ak_status ak_tok_json_load_model(struct ak_tok_json_loader *m)
{
    switch (m->t->pipeline->model) {
    case AK_TOK_MODEL_UNIGRAM: return load_unigram(m);
    case AK_TOK_MODEL_WORDPIECE: return load_wordpiece(m);
    default: return load_bpe(m);
    }
}

/* Creates a tokenizer from a tokenizer.json of the `tokenizers` package, with the
 * tokenizer_config.json and generation_config.json beside it. */
#include "base/mem.h"
#include "text/tokenizer/json_parts.h"
#include "text/tokenizer/slow.h"

/* Ids may have holes; the limit bounds the memory that a few tokens can take. */
enum { HOLES_MAX = 65536 };

/* If the model has a token of the same text, its id wins, as in the `tokenizers` package. */
static const json_t *get_added_id(const struct ak_tok_json_loader *m, const json_t *element)
{
    const char *content = json_string_value(json_object_get(element, "content"));
    const json_t *id =
        json_is_object(m->vocab) && content ? json_object_get(m->vocab, content) : NULL;

    return id ? id : json_object_get(element, "id");
}

static ak_status check_id(struct ak_tok_json_loader *m, const char *where, const char *token,
                          const json_t *value, uint32_t *id)
{
    int64_t number;

    if (!ak_tok_json_integer(value, &number) || number < 0 || (uint64_t)number >= m->limit)
        return ak_fail(
            m->error, AKUNU_ERROR_FORMAT,
            "%s: the id of '%.64s' is %s, where an integer from 0 on, below %llu, is expected",
            where, token, json_is_integer(value) ? "out of range" : ak_json_kind(value),
            (unsigned long long)m->limit);
    *id = (uint32_t)number;
    m->n = *id >= m->n ? *id + 1 : m->n;
    return AKUNU_OK;
}

static ak_status count_ids(struct ak_tok_json_loader *m)
{
    const char *token;
    json_t *value, *element;
    size_t i;
    uint32_t id;

    AK_TRY(ak_tok_json_list(m->root, "added_tokens", false, "tokenizer.json", &m->added, m->error));
    m->limit = (uint64_t)(json_is_array(m->vocab) ? json_array_size(m->vocab) :
                                                    json_object_size(m->vocab)) +
               json_array_size(m->added) + HOLES_MAX;
    if (json_is_array(m->vocab))
        m->n = (uint32_t)json_array_size(m->vocab);
    else
        json_object_foreach (m->vocab, token, value)
            AK_TRY(check_id(m, m->where_vocab, token, value, &id));
    json_array_foreach (m->added, i, element) {
        struct ak_text content;
        AK_TRY(ak_tok_json_text(element, "content", true, m->where_added, &content, m->error));
        AK_TRY(check_id(m, m->where_added, content.bytes, get_added_id(m, element), &id));
    }
    if (m->n == 0)
        return ak_fail(m->error, AKUNU_ERROR_FORMAT, "%s is empty", m->where_vocab);
    m->tokens = ak_alloc(m->n, sizeof *m->tokens);
    m->is_model_token = ak_alloc(m->n, sizeof *m->is_model_token);
    m->t->token_flags = ak_alloc(m->n, 1);
    if (!m->tokens || !m->is_model_token || !m->t->token_flags)
        return ak_fail_memory(m->error, "the vocabulary", m->n * sizeof *m->tokens);
    memset(m->t->token_flags, AK_TOK_KIND_UNUSED, m->n);
    return AKUNU_OK;
}

/* ---- Added tokens ------------------------------------------------------- */
struct special {
    struct ak_tok_special found;
    size_t at; /* offset of its text in the arena, which may move */
    bool normalized;
};

static ak_status read_special(struct ak_tok_json_loader *m, const json_t *element,
                              struct special *out, struct ak_tok_matcher *matcher,
                              struct ak_tok_scratch *w)
{
    struct ak_tok_pipeline *p = m->t->pipeline;
    bool special;
    struct ak_text content;
    int64_t id = 0;

    AK_TRY(ak_tok_json_text(element, "content", true, m->where_added, &content, m->error));
    AK_TRY(ak_tok_json_bool(element, "special", false, m->where_added, &special, m->error));
    AK_TRY(ak_tok_json_bool(element, "normalized", !special, m->where_added, &out->normalized,
                            m->error));
    AK_TRY(ak_tok_json_bool(element, "single_word", false, m->where_added, &out->found.single_word,
                            m->error));
    AK_TRY(
        ak_tok_json_bool(element, "lstrip", false, m->where_added, &out->found.lstrip, m->error));
    AK_TRY(
        ak_tok_json_bool(element, "rstrip", false, m->where_added, &out->found.rstrip, m->error));
    ak_tok_json_integer(get_added_id(m, element), &id); /* checked by count_ids */
    out->found.id = (int32_t)id;
    out->found.matches_always = !special;
    m->t->token_flags[id] = special ? AK_TOK_KIND_CONTROL : AK_TOK_KIND_ADDED;
    if (out->normalized) {
        AK_TRY(ak_tok_normalize(&p->normalizers, content.bytes, content.n, matcher, w, m->error));
        content = (struct ak_text){ w->text.bytes, (uint32_t)w->text.n };
    }
    out->at = p->added_text.n;
    out->found.n = content.n;
    return ak_buffer_add(&p->added_text, content.bytes, content.n, m->error);
}

/* Collects those that match the normalized text, or those that match the text itself. */
static ak_status gather(struct ak_tok_json_loader *m, const struct special *all, size_t n_all,
                        bool normalized, struct ak_tok_specials *out)
{
    struct ak_tok_special *list = ak_alloc(n_all + 1, sizeof *list);
    uint32_t n = 0;

    if (!list)
        return ak_fail_memory(m->error, "the added tokens", n_all * sizeof *list);
    for (size_t i = 0; i < n_all; i++) {
        if (all[i].normalized != normalized || all[i].found.n == 0)
            continue;
        list[n] = all[i].found;
        list[n++].text = m->t->pipeline->added_text.bytes + all[i].at;
    }
    ak_tok_specials_init(out, list, n);
    return AKUNU_OK;
}

static ak_status load_added(struct ak_tok_json_loader *m)
{
    size_t n = json_array_size(m->added);
    struct special *all = ak_alloc(n + 1, sizeof *all);
    struct ak_tok_matcher *matcher = NULL;
    struct ak_tok_scratch work = { .capacity = 0 };
    ak_status status = all ? ak_tok_matcher_create(&matcher, m->error) :
                             ak_fail_memory(m->error, "the added tokens", n * sizeof *all);

    for (size_t i = 0; i < n && status == AKUNU_OK; i++)
        status = read_special(m, json_array_get(m->added, i), &all[i], matcher, &work);
    if (status == AKUNU_OK)
        status = gather(m, all, n, false, &m->t->specials);
    if (status == AKUNU_OK)
        status = gather(m, all, n, true, &m->t->pipeline->normalized_specials);
    ak_tok_scratch_free(&work);
    ak_tok_matcher_free(matcher);
    ak_free(all);
    return status;
}

/* ---- Decoding of each token --------------------------------------------- */
/* Writes what token `id` decodes to into w->text. */
static ak_status decode_token(struct ak_tok_json_loader *m, uint32_t id,
                              struct ak_tok_matcher *matcher, struct ak_tok_scratch *w)
{
    const struct ak_tok_pipeline *p = m->t->pipeline;
    struct ak_text token = m->tokens[id];
    int byte = m->decoder.byte_fallback ? ak_tok_parse_byte(token) : -1;
    char bytes[1] = { (char)byte };

    if (byte >= 0)
        token = (struct ak_text){ bytes, 1 };
    if (!m->decoder.wordpiece)
        return ak_tok_normalize(&m->decoder.steps, token.bytes, token.n, matcher, w, m->error);
    uint32_t mark = (uint32_t)strlen(p->subword_prefix);
    bool begins = mark == 0 || token.n < mark || memcmp(token.bytes, p->subword_prefix, mark) != 0;
    w->text.n = 0;
    AK_TRY(ak_buffer_reserve(&w->text, (size_t)token.n + 1, m->error));
    if (!begins)
        token = (struct ak_text){ token.bytes + mark, token.n - mark };
    if (m->decoder.cleanup) {
        w->text.n = ak_tok_wordpiece_decode(token.bytes, token.n, begins, w->text.bytes);
        return AKUNU_OK;
    }
    if (begins)
        AK_TRY(ak_buffer_add(&w->text, " ", 1, m->error));
    return ak_buffer_add(&w->text, token.bytes, token.n, m->error);
}

static ak_status decode_all(struct ak_tok_json_loader *m, struct ak_tok_matcher *matcher,
                            struct ak_tok_scratch *w, struct ak_buffer *all, uint32_t *sizes)
{
    for (uint32_t id = 0; id < m->n; id++) {
        if (m->tokens[id].bytes) {
            AK_TRY(decode_token(m, id, matcher, w));
            AK_TRY(ak_buffer_add(all, w->text.bytes, w->text.n, m->error));
            sizes[id] = (uint32_t)w->text.n;
        }
    }
    AK_TRY(ak_tok_bytes_reserve(&m->t->token_bytes, m->n, all->n, m->error));
    size_t at = 0;
    for (uint32_t id = 0; id < m->n; id++) {
        if (sizes[id])
            memcpy(ak_tok_bytes_next(&m->t->token_bytes), all->bytes + at, sizes[id]);
        ak_tok_bytes_append(&m->t->token_bytes, sizes[id]);
        at += sizes[id];
    }
    return AKUNU_OK;
}

static ak_status load_texts(struct ak_tok_json_loader *m)
{
    struct ak_tok_matcher *matcher = NULL;
    struct ak_tok_scratch work = { .capacity = 0 };
    struct ak_buffer all = { .n = 0 };
    uint32_t *sizes = ak_alloc(m->n, sizeof *sizes);
    ak_status status = sizes ? ak_tok_matcher_create(&matcher, m->error) :
                               ak_fail_memory(m->error, "the vocabulary", m->n * sizeof *sizes);

    if (status == AKUNU_OK)
        status = decode_all(m, matcher, &work, &all, sizes);
    ak_buffer_free(&all);
    ak_tok_scratch_free(&work);
    ak_tok_matcher_free(matcher);
    ak_free(sizes);
    m->t->add_space_prefix = m->decoder.strips_space;
    m->t->pipeline->inserts_spaces = m->decoder.wordpiece;
    return status;
}

/* ---- The whole ---------------------------------------------------------- */
static ak_status read_parts(struct ak_tok_json_loader *m)
{
    struct ak_tok_pipeline *p = m->t->pipeline;
    json_t *part;

    AK_TRY(ak_tok_json_object(m->root, "normalizer", false, "tokenizer.json", &part, m->error));
    if (part)
        AK_TRY(ak_tok_json_read_normalizer(part, &p->normalizers, m->error));
    AK_TRY(ak_tok_json_object(m->root, "pre_tokenizer", false, "tokenizer.json", &part, m->error));
    if (part)
        AK_TRY(ak_tok_json_read_pretokenizer(part, &p->pretokenizers, &m->t->byte_level, m->error));
    AK_TRY(ak_tok_json_object(m->root, "decoder", false, "tokenizer.json", &part, m->error));
    if (part)
        AK_TRY(ak_tok_json_read_decoder(part, &m->decoder, m->error));
    AK_TRY(ak_tok_json_object(m->root, "post_processor", false, "tokenizer.json", &part, m->error));
    if (part)
        AK_TRY(ak_tok_json_read_post_processor(part, p, m->error));
    if (m->t->byte_level && p->model != AK_TOK_MODEL_BPE)
        return ak_fail(m->error, AKUNU_ERROR_UNSUPPORTED,
                       "tokenizer.json: ByteLevel is supported only with a model of type BPE");
    return AKUNU_OK;
}

/* Byte-level BPE looks words up as bytes, in the token bytes table itself. */
static ak_status load_tokens(struct ak_tok_json_loader *m)
{
    struct ak_tokenizer *t = m->t;
    uint64_t bytes = 0;

    AK_TRY(ak_tok_json_load_vocab(m));
    for (uint32_t id = 0; id < m->n; id++)
        t->token_flags[id] = m->is_model_token[id] ? AK_TOK_KIND_NORMAL : AK_TOK_KIND_UNUSED;
    json_t *element;
    size_t i;
    json_array_foreach (m->added, i, element) {
        int64_t id = 0;
        ak_tok_json_integer(get_added_id(m, element), &id);
        m->tokens[id] = ak_tok_json_string(json_object_get(element, "content"));
        t->token_flags[id] = m->is_model_token[id] ? AK_TOK_KIND_NORMAL : AK_TOK_KIND_ADDED;
    }
    if (!t->byte_level)
        return ak_tok_json_load_words(m);
    for (uint32_t id = 0; id < m->n; id++)
        bytes += m->tokens[id].n;
    return ak_tok_bytes_reserve(&t->token_bytes, m->n, bytes, m->error);
}

static ak_status check_affixes(const struct ak_tok_json_loader *m)
{
    const struct ak_tok_pipeline *p = m->t->pipeline;

    for (uint32_t i = 0; i < p->n_prefix + p->n_suffix; i++) {
        int32_t id = i < p->n_prefix ? p->prefix_ids[i] : p->suffix_ids[i - p->n_prefix];
        if ((uint32_t)id >= m->n)
            return ak_fail(m->error, AKUNU_ERROR_FORMAT,
                           "tokenizer.json: post_processor: %d is not an id of the %u tokens", id,
                           m->n);
    }
    return AKUNU_OK;
}

static ak_status load_parts(struct ak_tok_json_loader *m)
{
    struct ak_tokenizer *t = m->t;

    if (!json_is_object(m->root))
        return ak_fail(m->error, AKUNU_ERROR_FORMAT,
                       "tokenizer.json is %s, where an object is expected", ak_json_kind(m->root));
    AK_TRY(ak_tok_json_object(m->root, "model", true, "tokenizer.json", &m->model, m->error));
    AK_TRY(ak_tok_json_find_model(m));
    AK_TRY(read_parts(m));
    AK_TRY(count_ids(m));
    AK_TRY(check_affixes(m));
    AK_TRY(load_tokens(m));
    AK_TRY(ak_tok_json_load_model(m));
    AK_TRY(load_added(m));
    return t->byte_level ? AKUNU_OK : load_texts(m);
}

/* ---- Files beside it ---------------------------------------------------- */
/* The token under `key` of tokenizer_config.json, a string or an added token. */
static int32_t find_token(const struct ak_tokenizer *t, const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);
    const char *name =
        json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);

    return name ? ak_tok_find_special(t, name) : -1;
}

static void mark_end(struct ak_tokenizer *t, const json_t *id)
{
    int64_t value;

    if (ak_tok_json_integer(id, &value) && value >= 0 && value < (int64_t)t->token_bytes.n)
        t->token_flags[value] |= AK_TOK_END_FLAG;
}

/* Marks the ends and finds the other special tokens. */
static void find_specials(struct ak_tokenizer *t, const json_t *config, const json_t *generation)
{
    struct ak_vocab named = ak_vocab_none;
    const json_t *ids = json_object_get(generation, "eos_token_id");

    ak_tok_find_fim(t, &named);
    ak_tok_mark_ends(t, &named);
    if (!json_is_array(ids))
        mark_end(t, ids);
    for (size_t i = 0; i < json_array_size(ids); i++)
        mark_end(t, json_array_get(ids, i));
    named.padding = find_token(t, config, "pad_token");
    ak_tok_find_special_tokens(t, &named);
}

ak_status ak_tok_json_parse(struct ak_text bytes, const char *name, json_t **out,
                            struct ak_error *error)
{
    struct ak_error why = { 0 };

    *out = NULL;
    if (bytes.n == 0)
        return AKUNU_OK;
    ak_status status = ak_json_parse_file(bytes.bytes, bytes.n, out, &why);
    return status == AKUNU_OK ? AKUNU_OK : ak_fail(error, status, "%s: %s", name, why.message);
}

static ak_status load_all(struct ak_tok_json_loader *m, const struct ak_tok_json_source *source)
{
    AK_TRY(load_parts(m));
    m->t->bos = find_token(m->t, source->config, "bos_token");
    m->t->eos = find_token(m->t, source->config, "eos_token");
    if (m->t->bos < 0 && m->t->pipeline->n_prefix > 0)
        m->t->bos = m->t->pipeline->prefix_ids[0];
    find_specials(m->t, source->config, source->generation);
    return AKUNU_OK;
}

ak_status ak_tok_json_create(const struct ak_tok_json_source *source, struct ak_tokenizer **out,
                             struct ak_error *error)
{
    struct ak_tok_json_loader m = { .t = ak_alloc(1, sizeof *m.t),
                                    .root = source->root,
                                    .where_vocab = source->where_vocab,
                                    .where_added = source->where_added,
                                    .error = error };

    *out = NULL;
    if (m.t)
        m.t->pipeline = ak_alloc(1, sizeof *m.t->pipeline);
    ak_status status = AKUNU_OK;
    if (!m.t || !m.t->pipeline)
        status = ak_fail_memory(error, "the tokenizer", sizeof *m.t);
    else
        status = load_all(&m, source);
    ak_free(m.tokens);
    ak_free(m.is_model_token);
    ak_free(m.lines);
    ak_buffer_free(&m.merge_text);
    ak_tok_transforms_free(&m.decoder.steps);
    if (status == AKUNU_OK)
        *out = m.t;
    else
        ak_tok_free(m.t);
    return status;
}

ak_status ak_tok_from_json(const struct ak_tok_files *files, struct ak_tokenizer **out,
                           struct ak_error *error)
{
    json_t *root = NULL, *config = NULL, *generation = NULL;

    *out = NULL;
    ak_status status = ak_tok_json_parse(files->tokenizer, "tokenizer.json", &root, error);
    if (status == AKUNU_OK)
        status = ak_tok_json_parse(files->config, "tokenizer_config.json", &config, error);
    if (status == AKUNU_OK)
        status = ak_tok_json_parse(files->generation, "generation_config.json", &generation, error);
    const struct ak_tok_json_source source = { .root = root,
                                               .config = config,
                                               .generation = generation,
                                               .where_vocab = "tokenizer.json: model.vocab",
                                               .where_added = "tokenizer.json: added_tokens" };
    if (status == AKUNU_OK)
        status = ak_tok_json_create(&source, out, error);
    json_decref(root);
    json_decref(config);
    json_decref(generation);
    return status;
}

static ak_status open_files(const struct ak_provider *p, struct ak_tokenizer **out,
                            struct ak_error *error)
{
    struct ak_tok_files files = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
    struct ak_vocab vocab;

    *out = NULL;
    AK_TRY(ak_provider_vocab(p, &vocab, error));
    if (vocab.model.n > 0)
        return ak_tok_create(&vocab, out, error);
    if (!ak_provider_file(p, "tokenizer.json", &files.tokenizer))
        return ak_tok_slow_open(p, out, error);
    ak_provider_file(p, "tokenizer_config.json", &files.config);
    ak_provider_file(p, "generation_config.json", &files.generation);
    if (files.tokenizer.n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tokenizer.json is empty");
    return ak_tok_from_json(&files, out, error);
}

ak_status ak_tok_open(const struct ak_provider *p, struct ak_tokenizer **out,
                      struct ak_error *error)
{
    AK_TRY(open_files(p, out, error));
    ak_status status = *out ? ak_tok_apply_lower_case(p, *out, error) : AKUNU_OK;
    if (status != AKUNU_OK) {
        ak_tok_free(*out);
        *out = NULL;
    }
    return status;
}

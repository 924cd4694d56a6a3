/* Added and special tokens of a slow tokenizer. Their ids are stated by added_tokens_decoder of
 * tokenizer_config.json, else by added_tokens.json. The special tokens that the options name are
 * added too, under the ids that they have in the vocabulary, else under new ids after all others.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer/json_parts.h"
#include "text/tokenizer/slow.h"

static const char where_config[] = "tokenizer_config.json", decoder_key[] = "added_tokens_decoder";

static const char *const named_keys[] = { "bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token" };
enum { N_NAMED = sizeof named_keys / sizeof *named_keys };

static const char *const extra_keys[] = { "additional_special_tokens", "extra_special_tokens" };
enum { N_EXTRA = sizeof extra_keys / sizeof *extra_keys };

/* The text of a token, which is a string or an object; NULL: neither. */
static const char *get_content(const json_t *token)
{
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

const char *ak_tok_slow_name(const struct ak_tok_slow *s, const char *key)
{
    return get_content(json_object_get(s->options, key));
}

ak_status ak_tok_slow_flag(const struct ak_tok_slow *s, const char *key, bool fallback, bool *out)
{
    return ak_tok_json_bool(s->options, key, fallback, where_config, out, s->error);
}

/* ---- Ids ---------------------------------------------------------------- */
/* The id of a token of the vocabulary; -1: none. */
static int64_t find_in_vocab(const struct ak_tok_slow *s, const char *content)
{
    int64_t id;
    return ak_tok_json_integer(json_object_get(s->ids, content), &id) ? id : -1;
}

/* Makes s->ids: the vocabulary itself, or an index of its list of pieces. */
static ak_status index_vocab(struct ak_tok_slow *s)
{
    json_t *vocab = json_object_get(json_object_get(s->root, "model"), "vocab"), *piece;
    int64_t id;
    const char *key;
    size_t i;

    s->ids = json_is_object(vocab) ? json_incref(vocab) : json_object();
    if (!s->ids)
        return ak_tok_slow_fail_memory(s);
    json_array_foreach (vocab, i, piece) {
        key = json_string_value(json_array_get(piece, 0));
        if (json_object_set_new_nocheck(s->ids, key, json_integer((json_int_t)i)) != 0)
            return ak_tok_slow_fail_memory(s);
    }
    s->next_id = (int64_t)json_array_size(vocab);
    json_object_foreach (s->ids, key, piece)
        if (ak_tok_json_integer(piece, &id) && id >= s->next_id && id < INT32_MAX)
            s->next_id = id + 1;
    return AKUNU_OK;
}

int64_t ak_tok_slow_find_id(const struct ak_tok_slow *s, const char *content)
{
    int64_t id, own = find_in_vocab(s, content);

    if (own >= 0)
        return own;
    return ak_tok_json_integer(json_object_get(json_object_get(s->added, content), "id"), &id) ?
               id :
               -1;
}

/* ---- Tokens ------------------------------------------------------------- */
/* Adds a token, or replaces the one of the same content. */
static ak_status add_token(struct ak_tok_slow *s, const json_t *token, int64_t id, bool special,
                           bool lstrip, const char *where)
{
    static const char *const flags[] = { "single_word", "lstrip", "rstrip" };
    const char *content = get_content(token);
    bool normalized, value;

    if (!content)
        return ak_fail(s->error, AKUNU_ERROR_FORMAT,
                       "%s: a token is %s, where a string or an object with content is expected",
                       where, ak_json_kind(token));
    AK_TRY(ak_tok_json_bool(token, "normalized", !special, where, &normalized, s->error));
    json_t *element = json_pack("{s:s,s:I,s:b,s:b}", "content", content, "id", (json_int_t)id,
                                "special", special, "normalized", normalized);
    if (!element || json_object_set_new_nocheck(s->added, content, element) != 0)
        return ak_tok_slow_fail_memory(s);
    s->next_id = id >= s->next_id && id < INT32_MAX ? id + 1 : s->next_id;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool fallback = lstrip && strcmp(flags[i], "lstrip") == 0;
        AK_TRY(ak_tok_json_bool(token, flags[i], fallback, where, &value, s->error));
        if (json_object_set_new(element, flags[i], json_boolean(value)) != 0)
            return ak_tok_slow_fail_memory(s);
    }
    return AKUNU_OK;
}

/* The texts of all special tokens that the options name, as keys of an object; NULL: out of
 * memory. */
static json_t *collect_named(const struct ak_tok_slow *s)
{
    const json_t *element;
    json_t *set = json_object();
    const char *name;
    bool good = set != NULL;
    size_t i;

    for (size_t k = 0; k < N_NAMED && good; k++)
        if ((name = ak_tok_slow_name(s, named_keys[k])))
            good = json_object_set_new_nocheck(set, name, json_true()) == 0;
    for (size_t k = 0; k < N_EXTRA && good; k++)
        json_array_foreach (json_object_get(s->options, extra_keys[k]), i, element)
            if (good && (name = get_content(element)))
                good = json_object_set_new_nocheck(set, name, json_true()) == 0;
    if (good)
        return set;
    json_decref(set);
    return NULL;
}

static ak_status fail_id(const struct ak_tok_slow *s, const char *token)
{
    char shown[AK_SHOW_BYTES];
    return ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s: the id of \"%s\" is not an integer from 0 on",
                   s->added_file, ak_show(token, strlen(token), shown));
}

static ak_status read_decoder(struct ak_tok_slow *s, json_t *decoder)
{
    const char *key;
    json_t *token;
    bool special;

    json_object_foreach (decoder, key, token) {
        char *end;
        errno = 0;
        long long id = strtoll(key, &end, 10);
        if (*key < '0' || *key > '9' || *end || errno || id > INT32_MAX)
            return fail_id(s, get_content(token) ? get_content(token) : key);
        AK_TRY(ak_tok_json_bool(token, "special", false, s->added_file, &special, s->error));
        AK_TRY(add_token(s, token, id, special, false, s->added_file));
    }
    return AKUNU_OK;
}

static ak_status add_from_file(struct ak_tok_slow *s, json_t *tokens, const json_t *named)
{
    const char *content;
    json_t *value;
    int64_t id;

    json_object_foreach (tokens, content, value) {
        if (!ak_tok_json_integer(value, &id) || id < 0 || id > INT32_MAX)
            return fail_id(s, content);
        json_t *token = json_string(content);
        bool special = json_object_get(named, content) != NULL;
        ak_status status = token ? add_token(s, token, id, special, false, s->added_file) :
                                   ak_tok_slow_fail_memory(s);
        json_decref(token);
        AK_TRY(status);
    }
    return AKUNU_OK;
}

static ak_status read_added_file(struct ak_tok_slow *s, json_t *tokens)
{
    if (!json_is_object(tokens))
        return ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s is %s, where an object is expected",
                       s->added_file, ak_json_kind(tokens));
    json_t *named = collect_named(s);
    ak_status status = named ? add_from_file(s, tokens, named) : ak_tok_slow_fail_memory(s);
    json_decref(named);
    return status;
}

/* added_tokens.json counts only if there is no added_tokens_decoder. */
static ak_status read_stated(struct ak_tok_slow *s)
{
    json_t *decoder, *tokens;

    s->added_file = "tokenizer_config.json: added_tokens_decoder";
    AK_TRY(ak_tok_json_object(s->options, decoder_key, false, where_config, &decoder, s->error));
    if (decoder)
        return read_decoder(s, decoder);
    s->added_file = "added_tokens.json";
    AK_TRY(ak_provider_json(s->p, s->added_file, &tokens, s->error));
    ak_status status = tokens ? read_added_file(s, tokens) : AKUNU_OK;
    json_decref(tokens);
    return status;
}

/* Adds a token that the options name, unless it is there. One that is there becomes special. */
static ak_status add_named(struct ak_tok_slow *s, const json_t *token, bool lstrip)
{
    const char *content = get_content(token);
    json_t *there = content ? json_object_get(s->added, content) : NULL;

    if (there)
        return json_object_set_new(there, "special", json_true()) == 0 ? AKUNU_OK :
                                                                         ak_tok_slow_fail_memory(s);
    if (content && *content == '\0')
        return AKUNU_OK;
    int64_t id = content ? find_in_vocab(s, content) : -1;
    return add_token(s, token, id >= 0 ? id : s->next_id, true, lstrip, where_config);
}

/* The list of further special tokens, or the object of them. */
static ak_status add_extra(struct ak_tok_slow *s, const char *name)
{
    json_t *extra = json_object_get(s->options, name), *token;
    const char *key;
    size_t i;

    if (extra && !json_is_null(extra) && !json_is_array(extra) && !json_is_object(extra))
        return ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s: %s is %s, where a list is expected",
                       where_config, name, ak_json_kind(extra));
    json_array_foreach (extra, i, token)
        AK_TRY(add_named(s, token, false));
    json_object_foreach (extra, key, token)
        AK_TRY(add_named(s, token, false));
    return AKUNU_OK;
}

/* Whether it is a key such as "image_token" of a token that classes of transformers do not know. */
static bool is_other_token(const char *key, const json_t *value)
{
    static const char end[] = "_token";
    size_t n = strlen(key), n_end = sizeof end - 1;

    if (!json_is_string(value) || n < n_end || strcmp(key + n - n_end, end) != 0)
        return false;
    for (size_t k = 0; k < N_NAMED; k++)
        if (strcmp(key, named_keys[k]) == 0)
            return false;
    return true;
}

static ak_status add_all_named(struct ak_tok_slow *s)
{
    const char *key;
    json_t *value;

    for (size_t k = 0; k < N_NAMED; k++) {
        json_t *token = json_object_get(s->options, named_keys[k]);
        bool lstrip = s->class->mask_strips && strcmp(named_keys[k], "mask_token") == 0;
        if (token && !json_is_null(token))
            AK_TRY(add_named(s, token, lstrip && json_is_string(token)));
    }
    json_object_foreach (s->options, key, value)
        if (is_other_token(key, value))
            AK_TRY(add_named(s, value, false));
    for (size_t k = 0; k < N_EXTRA; k++)
        AK_TRY(add_extra(s, extra_keys[k]));
    return AKUNU_OK;
}

/* Control and user-defined pieces of a SentencePiece model. */
static ak_status add_pieces(struct ak_tok_slow *s)
{
    for (uint32_t i = 0; i < s->spm.n; i++) {
        bool control = s->spm.types[i] == AK_TOK_PIECE_CONTROL;
        struct ak_text piece = s->spm.pieces[i];
        if ((!control && s->spm.types[i] != AK_TOK_PIECE_ADDED) || piece.n == 0)
            continue;
        json_t *token =
            json_pack("{s:s%,s:b}", "content", piece.bytes, (size_t)piece.n, "normalized", 0);
        if (!token)
            return ak_tok_slow_fail_memory(s);
        ak_status status = AKUNU_OK;
        int64_t id = find_in_vocab(s, get_content(token));
        if (id >= 0 && !json_object_get(s->added, get_content(token)))
            status = add_token(s, token, id, control, false, s->vocab_file);
        json_decref(token);
        AK_TRY(status);
    }
    return AKUNU_OK;
}

/* In BPE of SentencePiece they match the text before spaces become ▁, so that each text between two
 * of them begins anew. */
static ak_status match_as_written(struct ak_tok_slow *s, json_t *token)
{
    if (s->class->kind != AK_TOK_SLOW_SPM_BPE)
        return AKUNU_OK;
    return json_object_set_new(token, "normalized", json_false()) == 0 ? AKUNU_OK :
                                                                         ak_tok_slow_fail_memory(s);
}

ak_status ak_tok_slow_add_tokens(struct ak_tok_slow *s)
{
    const char *content;
    json_t *token, *list = json_array();

    if (!list || json_object_set_new(s->root, "added_tokens", list) != 0)
        return ak_tok_slow_fail_memory(s);
    s->added = json_object();
    if (!s->added)
        return ak_tok_slow_fail_memory(s);
    AK_TRY(index_vocab(s));
    AK_TRY(read_stated(s));
    AK_TRY(add_all_named(s));
    AK_TRY(add_pieces(s));
    json_object_foreach (s->added, content, token) {
        AK_TRY(match_as_written(s, token));
        if (json_array_append(list, token) != 0)
            return ak_tok_slow_fail_memory(s);
    }
    return AKUNU_OK;
}

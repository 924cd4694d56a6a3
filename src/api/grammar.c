/* Grammars behind handles: from GBNF or JSON Schema, lazy ones with triggers, and checking a
 * text. */
#include <string.h>

#include "api/handles.h"
#include "base/mem.h"
#include "text/grammar/matcher.h"
#include "text/grammar/schema/schema.h"

/* Wraps a grammar in a handle; `made` is the status of its creation. */
static struct akunu_grammar *wrap(struct ak_grammar *inner, ak_status made, struct ak_error *error)
{
    struct akunu_grammar *grammar = made == AKUNU_OK ? ak_alloc(1, sizeof *grammar) : NULL;
    if (grammar) {
        grammar->inner = inner;
        return grammar;
    }
    if (made == AKUNU_OK)
        ak_fail_memory(error, "a grammar", sizeof *grammar);
    ak_grammar_free(inner);
    ak_api_finish(error);
    return NULL;
}

struct akunu_grammar *akunu_grammar_parse(const char *text, size_t n_bytes)
{
    return akunu_grammar_parse_rule(text, n_bytes, "root");
}

struct akunu_grammar *akunu_grammar_parse_rule(const char *text, size_t n_bytes, const char *rule)
{
    struct ak_error error = { 0 };
    struct ak_grammar *inner = NULL;
    ak_status status = text && rule ?
                           ak_grammar_from_gbnf(text, n_bytes, rule, &inner, &error) :
                           ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the %s is NULL",
                                   text ? "name of the grammar's first rule" : "grammar");
    return wrap(inner, status, &error);
}

void akunu_schema_params_default(struct akunu_schema_params *params, size_t size)
{
    static const struct akunu_schema_params full = { .form = AKUNU_SCHEMA_WRITING };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status from_schema(const char *schema, size_t n_bytes,
                             const struct akunu_schema_params *given, struct ak_grammar **out,
                             struct ak_error *error)
{
    struct akunu_schema_params params;
    akunu_schema_params_default(&params, sizeof params);
    if (!schema)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the schema is NULL");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_schema_params", error));
    if (params.form != AKUNU_SCHEMA_WRITING && params.form != AKUNU_SCHEMA_READING)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the form of a schema's texts is %d, which is none of those that there are",
                       (int)params.form);
    struct ak_schema_options options = { .form = params.form == AKUNU_SCHEMA_READING ?
                                                     AK_SCHEMA_READING :
                                                     AK_SCHEMA_WRITING,
                                         .lax = params.lax,
                                         .log = { params.log, params.user } };
    return ak_grammar_from_schema_text(schema, n_bytes, &options, out, error);
}

struct akunu_grammar *akunu_grammar_from_schema(const char *schema, size_t n_bytes,
                                                const struct akunu_schema_params *params)
{
    struct ak_error error = { 0 };
    struct ak_grammar *inner = NULL;
    ak_status status = from_schema(schema, n_bytes, params, &inner, &error);
    return wrap(inner, status, &error);
}

static ak_status make_lazy(const struct akunu_grammar *grammar, const char *const *triggers,
                           bool again, struct ak_grammar **out, struct ak_error *error)
{
    size_t n = 0;
    if (!grammar || !triggers)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the grammar or the triggers are NULL");
    while (triggers[n])
        n++;
    struct ak_grammar_trigger *list = ak_alloc(n, sizeof *list);
    if (!list)
        return ak_fail_memory(error, "a grammar", 0);
    for (size_t i = 0; i < n; i++)
        list[i] = (struct ak_grammar_trigger){ triggers[i], strlen(triggers[i]) };
    ak_status status = ak_grammar_make_lazy(grammar->inner, list, n, again, out, error);
    ak_free(list);
    return status;
}

struct akunu_grammar *akunu_grammar_make_lazy(const struct akunu_grammar *grammar,
                                              const char *const *triggers, bool again)
{
    struct ak_error error = { 0 };
    struct ak_grammar *inner = NULL;
    ak_status status = make_lazy(grammar, triggers, again, &inner, &error);
    return wrap(inner, status, &error);
}

void akunu_grammar_free(struct akunu_grammar *grammar)
{
    if (!grammar)
        return;
    ak_grammar_free(grammar->inner);
    ak_free(grammar);
}

/* ---- Checking ----------------------------------------------------------- */
/* Checks a text token by token, control tokens included. *at counts the accepted bytes. */
static ak_status check_tokens(struct ak_grammar_matcher *m, const struct ak_tokenizer *t,
                              const char *text, size_t n, size_t *at, struct ak_error *error)
{
    size_t n_ids = 0, n_bytes;
    AK_TRY(ak_tok_encode(t, text, n, AKUNU_PARSE_SPECIAL, NULL, 0, &n_ids, error));
    int32_t *ids = ak_alloc(n_ids, sizeof *ids);
    if (!ids)
        return ak_fail_memory(error, "tokens", n_ids);
    bool allowed = true;
    ak_status status = ak_tok_encode(t, text, n, AKUNU_PARSE_SPECIAL, ids, n_ids, &n_ids, error);
    for (size_t i = 0; status == AKUNU_OK && allowed && i < n_ids; i++) {
        status = ak_tok_decode(t, &ids[i], 1, AKUNU_CONTINUE, NULL, 0, &n_bytes, error);
        if (status == AKUNU_OK)
            status = ak_grammar_matcher_accept_token(m, ids[i], &allowed, error);
        if (status == AKUNU_OK && allowed)
            *at += n_bytes;
    }
    ak_free(ids);
    return status;
}

static ak_status check_text(struct ak_grammar *g, const struct akunu_tokenizer *tokenizer,
                            const char *text, size_t n, bool *allowed, size_t *at,
                            struct ak_error *error)
{
    struct ak_grammar_token_trie *trie = NULL;
    struct ak_grammar_matcher *m = NULL;
    const struct ak_tokenizer *t = tokenizer ? tokenizer->inner : NULL;
    ak_status status = AKUNU_OK;
    *at = 0;
    if (t && ak_tok_n_tokens(t) <= INT32_MAX)
        status = ak_grammar_token_trie_create(t, (uint32_t)ak_tok_n_tokens(t), &trie, error);
    if (status == AKUNU_OK)
        status = ak_grammar_matcher_create(g, trie, &m, error);
    if (status == AKUNU_OK)
        status = t ? check_tokens(m, t, text, n, at, error) :
                     ak_grammar_matcher_accept_bytes(m, text, n, at, error);
    *allowed = status == AKUNU_OK && *at >= n && ak_grammar_matcher_is_accepting(m);
    ak_grammar_matcher_free(m);
    ak_grammar_token_trie_free(trie);
    return status;
}

enum akunu_status akunu_grammar_check(const struct akunu_grammar *grammar,
                                      const struct akunu_tokenizer *tokenizer, const char *text,
                                      size_t n_bytes, bool *allowed, size_t *at)
{
    struct ak_error error = { 0 };
    size_t offset = 0;
    if (!grammar || (!text && n_bytes > 0) || !allowed)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                "the grammar, the text or the answer's place is NULL");
    else
        check_text(grammar->inner, tokenizer, text, n_bytes, allowed, &offset, &error);
    if (at)
        *at = offset;
    return ak_api_finish(&error);
}

/* Many grammars and texts in one process, for tests/golden/json_schema_suite.py.
 *
 * A line of stdin is {"gbnf": TEXT} or {"schema": ANY, "lax": BOOL, "writing": BOOL}, and
 * "texts": [TEXT, …]; a line of stdout is {"accept": [BOOL, …]} or {"error": TEXT,
 * "status": NAME}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/grammar/matcher.h"
#include "text/grammar/schema/schema.h"

static ak_status grammar_of(const json_t *line, struct ak_grammar **g, struct ak_error *error)
{
    const json_t *gbnf = json_object_get(line, "gbnf");
    struct ak_schema_options options = {
        .form =
            json_is_true(json_object_get(line, "writing")) ? AK_SCHEMA_WRITING : AK_SCHEMA_READING,
        .lax = json_is_true(json_object_get(line, "lax")),
    };
    if (gbnf)
        return ak_grammar_from_gbnf(json_string_value(gbnf), json_string_length(gbnf), "root", g,
                                    error);
    return ak_grammar_from_schema(json_object_get(line, "schema"), &options, g, error);
}

static ak_status accept(struct ak_grammar *g, const json_t *texts, json_t *out,
                        struct ak_error *error)
{
    struct ak_grammar_matcher *m;
    const json_t *text;
    size_t i;
    AK_TRY(ak_grammar_matcher_create(g, NULL, &m, error));
    ak_status status = AKUNU_OK;
    json_array_foreach (texts, i, text) {
        size_t n = json_string_length(text), taken = 0;
        status = ak_grammar_matcher_reset(m, error);
        if (status == AKUNU_OK)
            status = ak_grammar_matcher_accept_bytes(m, json_string_value(text), n, &taken, error);
        if (status != AKUNU_OK)
            break;
        json_array_append_new(out, json_boolean(taken == n && ak_grammar_matcher_is_accepting(m)));
    }
    ak_grammar_matcher_free(m);
    return status;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) >= 0;) {
        struct ak_error error = { 0 };
        struct ak_grammar *g = NULL;
        json_t *in = json_loadb(line, (size_t)n, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
        json_t *out = json_object(), *list = json_array();
        ak_status status = grammar_of(in, &g, &error);
        if (status == AKUNU_OK)
            status = accept(g, json_object_get(in, "texts"), list, &error);
        if (status == AKUNU_OK) {
            json_object_set(out, "accept", list);
        } else {
            json_object_set_new(out, "status", json_string(akunu_status_name(status)));
            json_object_set_new(out, "error", json_string(error.message));
        }
        json_dumpf(out, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(in);
        json_decref(out);
        json_decref(list);
        ak_grammar_free(g);
    }
    free(line);
    return 0;
}

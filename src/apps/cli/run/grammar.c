/* Reads the grammar of --grammar, --grammar-file or -j. */
#include "apps/common/sampling.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/message.h"

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)user;
    if (level >= AKUNU_LOG_NOTICE)
        app_warn("%s", line);
}

/* An invalid or unsupported grammar is a usage error of the flag. */
static int fail_grammar(const char *flag)
{
    if (akunu_last_status() == AKUNU_ERROR_MEMORY)
        return app_fail_memory();
    return app_fail_usage("%s: %s", flag, akunu_last_error());
}

static int parse_grammar(const struct app_options *o, const char *flag, const char *text, size_t n,
                         struct akunu_grammar **out)
{
    *out = akunu_grammar_parse_rule(text, n, o->grammar.rule ? o->grammar.rule : "root");
    return *out ? APP_EXIT_OK : fail_grammar(flag);
}

static int from_schema(const struct app_options *o, const char *text, size_t n,
                       enum akunu_schema_form form, struct akunu_grammar **out)
{
    struct akunu_schema_params params;
    akunu_schema_params_default(&params, sizeof params);
    params.form = form;
    params.lax = o->grammar.schema_lax;
    params.log = on_log;
    *out = akunu_grammar_from_schema(text, n, &params);
    return *out ? APP_EXIT_OK : fail_grammar("-j");
}

int app_read_grammar(const struct app_options *o, enum akunu_schema_form form,
                     struct akunu_grammar **out)
{
    struct app_text file = { 0 };
    int code;
    *out = NULL;
    if (o->grammar.text)
        return parse_grammar(o, "--grammar", o->grammar.text, strlen(o->grammar.text), out);
    if (o->grammar.json_schema &&
        o->grammar.json_schema[strspn(o->grammar.json_schema, " \t\r\n")] == '{')
        return from_schema(o, o->grammar.json_schema, strlen(o->grammar.json_schema), form, out);
    if (!o->grammar.file && !o->grammar.json_schema)
        return APP_EXIT_OK;
    code = app_read_file(o->grammar.file ? "--grammar-file" : "-j",
                         o->grammar.file ? o->grammar.file : o->grammar.json_schema, &file);
    if (code == APP_EXIT_FAILURE)
        code = APP_EXIT_USAGE;
    if (code == APP_EXIT_OK)
        code = o->grammar.file ? parse_grammar(o, "--grammar-file", file.bytes, file.n, out) :
                                 from_schema(o, file.bytes, file.n, form, out);
    free(file.bytes);
    return code;
}

/* The interface of Jinja: parse and render. Their setjmp is where failures arrive. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/template/jinja/exec.h"

/* All parts of a template are in its arena. */
struct ak_jinja {
    struct ak_jarena arena;
    struct ak_jnode *statements, *hidden;
    struct ak_jspecials specials;
};

/* Failures return through this setjmp. After one, only *j is valid; j->steps holds the status. */
static ak_status run_parse(struct ak_jenv *j, const char *text, size_t n, struct ak_jinja *out)
{
    if (setjmp(j->failed))
        return (ak_status)j->steps;
    out->statements = ak_j_parse(j, text, n, &out->specials);
    out->hidden = ak_j_resolve_names(j, out->statements);
    return AKUNU_OK;
}

ak_status ak_jinja_parse(const char *text, size_t n, struct ak_jinja **out, struct ak_error *error)
{
    *out = NULL;
    if (n > AK_JINJA_TEMPLATE_BYTES_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a chat template of %zu bytes, where at most %d are possible", n,
                       AK_JINJA_TEMPLATE_BYTES_MAX);
    if (!ak_is_utf8(text, n))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the chat template is not UTF-8");
    struct ak_jinja *template = ak_alloc(1, sizeof *template);
    if (!template)
        return ak_fail_memory(error, "a chat template", sizeof *template);
    struct ak_jenv j = { .arena = { .max_bytes = AK_JINJA_PARSED_BYTES_MAX },
                         .error = error,
                         .steps = AK_JINJA_STEPS_MAX };
    ak_status status = run_parse(&j, text, n, template);
    template->arena = j.arena;
    if (status == AKUNU_OK)
        *out = template;
    else
        ak_jinja_free(template);
    return status;
}

void ak_jinja_free(struct ak_jinja *template)
{
    if (!template)
        return;
    ak_j_arena_free(&template->arena);
    ak_free(template);
}

static ak_status run_render(struct ak_jenv *j, const struct ak_jinja *template,
                            const json_t *variables)
{
    if (setjmp(j->failed))
        return (ak_status)j->steps;
    j->out = ak_j_alloc(j, 1, sizeof *j->out);
    j->scope = ak_j_open_scope(j, NULL, template->hidden);
    j->scope->context = ak_j_from_json(j, variables).as.dict;
    ak_j_exec(j, template->statements);
    return AKUNU_OK;
}

ak_status ak_jinja_render(const struct ak_jinja *template, const json_t *variables, int64_t now,
                          char **out, size_t *n_bytes, struct ak_error *error)
{
    *out = NULL;
    *n_bytes = 0;
    if (!json_is_object(variables))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the variables of a template must be an object");
    struct ak_jenv j = { .arena = { .max_bytes = AK_JINJA_MEMORY_BYTES_MAX },
                         .error = error,
                         .steps = AK_JINJA_STEPS_MAX,
                         .now = now,
                         .specials = &template->specials };
    ak_status status = run_render(&j, template, variables);
    if (status == AKUNU_OK) {
        *out = ak_strndup(j.out->n ? j.out->bytes : "", j.out->n);
        *n_bytes = *out ? j.out->n : 0;
        if (!*out)
            status = ak_fail_memory(error, "a prompt", j.out->n);
    }
    ak_j_arena_free(&j.arena);
    return status;
}

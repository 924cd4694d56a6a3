/* Grammar of text that may contain reasoning and calls. It reacts to the same markers in the same
 * places as the parser, so no call escapes the grammar. */
#include <string.h>

#include "text/toolcall/builder.h"

enum { TRIGGERS_MAX = 48 };

struct triggers {
    struct ak_gb_keyword list[TRIGGERS_MAX];
    size_t n;
};

static bool begins_with(const char *text, const char *begin)
{
    return text && strncmp(text, begin, strlen(begin)) == 0;
}

/* What may follow a marker, as the parser would read it. If several syntaxes have the marker, the
 * first one counts, since the model was taught that. Later syntaxes count only if they can express
 * every schema. */
static uint32_t build_behind_marker(struct ak_tc_builder *r, const char *marker)
{
    const struct ak_tc_format *f = r->params->format;
    uint32_t expr = AK_GB_NOTHING;

    for (unsigned i = 0; i < f->n_syntaxes; i++) {
        const struct ak_tc_syntax *s = &f->syntaxes[i];
        const char *whole = begins_with(s->section, marker) ? s->section :
                            begins_with(s->begin, marker)   ? s->begin :
                                                              NULL;
        bool bracket =
            !s->section && !s->begin && marker[0] == (s->is_list ? '[' : '{') && marker[1] == '\0';
        if (!whole && !bracket)
            continue;
        if (i > 0 && s->arguments != AK_TC_ARGS_JSON_CALL && s->arguments != AK_TC_ARGS_JSON &&
            s->arguments != f->syntaxes[0].arguments)
            continue;
        r->syntax = s;
        uint32_t rest =
            whole ? ak_tc_build_marker(r, whole + strlen(marker)) : (uint32_t)AK_GB_EMPTY;
        expr = ak_gb_concat(&r->gb, rest, ak_tc_build_calls(r, whole ? whole : marker));
        break;
    }
    r->syntax = &f->syntaxes[0];
    if (!r->params->parallel)
        return expr;
    return ak_gb_concat(&r->gb, expr, ak_gb_rule_ref(&r->gb, r->text_rule));
}

/* Adds a trigger. If the text has one already, that one stays. */
static void add_trigger(struct ak_tc_builder *r, struct triggers *w, const char *text, bool start,
                        uint32_t then)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].text, text) == 0) {
            w->list[i].at_start &= start;
            return;
        }
    if (w->n == TRIGGERS_MAX)
        ak_gb_fail(&r->gb, AKUNU_ERROR_UNSUPPORTED,
                   "more than %d markers of calls and of reasoning", TRIGGERS_MAX);
    else
        w->list[w->n++] = (struct ak_gb_keyword){
            .text = text, .n = strlen(text), .continuation = then, .at_start = start
        };
}

static void add_call(struct ak_tc_builder *r, struct triggers *w, const char *marker, bool start,
                     bool constrained)
{
    add_trigger(r, w, marker, start,
                constrained ? build_behind_marker(r, marker) : (uint32_t)AK_GB_NOTHING);
}

/* Adds the markers of calls; in_reasoning: only those that also count there. `constrained`: the
 * grammar of calls follows a marker; otherwise markers are forbidden. */
static void add_calls(struct ak_tc_builder *r, struct triggers *w, bool in_reasoning,
                      bool constrained)
{
    const struct ak_tc_format *f = r->params->format;

    for (unsigned i = 0; i < f->n_syntaxes; i++) {
        const struct ak_tc_syntax *s = &f->syntaxes[i];
        if (in_reasoning && !s->ends_reasoning)
            continue;
        if (s->section)
            add_call(r, w, s->section, s->is_bare, constrained);
        if (s->begin)
            add_call(r, w, s->begin, s->is_bare, constrained);
        if (s->section || s->begin)
            continue;
        add_call(r, w, "[", true, constrained);
        if (s->arguments == AK_TC_ARGS_JSON_CALL)
            add_call(r, w, "{", true, constrained);
    }
}

uint32_t ak_tc_build_reasoning(struct ak_tc_builder *r, const struct ak_tc_reasoning *t,
                               const uint32_t *then)
{
    struct triggers w = { .n = 0 };

    add_trigger(r, &w, t->end, false,
                then ? ak_gb_concat(&r->gb, ak_tc_build_whitespace(r), *then) :
                       ak_gb_rule_ref(&r->gb, r->text_rule));
    add_calls(r, &w, true, !then);
    return ak_gb_until(&r->gb, w.list, w.n, !then);
}

uint32_t ak_tc_build_text(struct ak_tc_builder *r)
{
    struct ak_grammar_builder *b = &r->gb;
    const struct ak_tc_reasoning *t;
    struct triggers w = { .n = 0 };

    r->text_rule = ak_gb_declare_rule(b, "text", 4);
    add_calls(r, &w, false, true);
    for (size_t i = 0; (t = ak_tc_reasoning_at(i)); i++) {
        add_trigger(r, &w, t->begin, !t->begins_anywhere, ak_tc_build_reasoning(r, t, NULL));
        add_trigger(r, &w, t->end, true, ak_gb_rule_ref(b, r->text_rule));
    }
    ak_gb_define_rule(b, r->text_rule, ak_gb_until(b, w.list, w.n, true));
    return ak_gb_rule_ref(b, r->text_rule);
}

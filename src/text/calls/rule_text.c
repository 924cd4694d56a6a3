/* Texts in which calls may come. Every marker that the parser looks for is looked for here,
 * at the places where it counts, so that no call escapes the grammar. */
#include <string.h>

#include "text/calls/rules.h"

enum { MOST_WORDS = 48 };

struct words {
    struct ak_ending list[MOST_WORDS];
    size_t n;
};

static bool begins_with(const char *text, const char *begin)
{
    return text && strncmp(text, begin, strlen(begin)) == 0;
}

/* What the parser would read where this marker was written. Markers of two shapes are the first one's,
 * since that is what the model was taught; of its other shapes those remain that can hold all that a
 * schema asks for. */
static uint32_t behind(struct ak_rules *r, const char *marker)
{
    const struct ak_call_format *f = r->given->format;
    uint32_t part = AK_BUILD_NOTHING;

    for (unsigned i = 0; i < f->n_shapes; i++) {
        const struct ak_call_shape *s = &f->shapes[i];
        const char *whole = begins_with(s->section, marker) ? s->section : begins_with(s->begin, marker) ? s->begin : NULL;
        bool bracket = !s->section && !s->begin && marker[0] == (s->list ? '[' : '{') && marker[1] == '\0';
        if (!whole && !bracket)
            continue;
        if (i > 0 && s->body != AK_BODY_JSON && s->body != AK_BODY_ARGUMENTS && s->body != f->shapes[0].body)
            continue;
        r->shape = s;
        uint32_t rest = whole ? ak_rules_marker(r, whole + strlen(marker)) : (uint32_t)AK_BUILD_EMPTY;
        part = ak_build_two(&r->build, rest, ak_rules_row(r, whole ? whole : marker));
        break;
    }
    r->shape = &f->shapes[0];
    if (!r->given->parallel)
        return part;
    return ak_build_two(&r->build, part, ak_build_call(&r->build, r->text));
}

static void add(struct words *w, const char *text, bool start)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].text, text) == 0) {
            w->list[i].start &= start;
            return;
        }
    if (w->n < MOST_WORDS)
        w->list[w->n++] = (struct ak_ending){.text = text, .n = strlen(text), .start = start};
}

/* The markers of calls; those alone that count in reasoning too. */
static void add_calls(const struct ak_call_format *f, struct words *w, bool in_reasoning)
{

    for (unsigned i = 0; i < f->n_shapes; i++) {
        const struct ak_call_shape *s = &f->shapes[i];
        if (in_reasoning && !s->in_reasoning)
            continue;
        if (s->section)
            add(w, s->section, s->bare);
        if (s->begin)
            add(w, s->begin, s->bare);
        if (s->section || s->begin)
            continue;
        add(w, "[", true);
        if (s->body == AK_BODY_JSON)
            add(w, "{", true);
    }
}

uint32_t ak_rules_reasoning(struct ak_rules *r, const struct ak_thinking *t, const uint32_t *then)
{
    struct words w = {.n = 0};

    add(&w, t->close, false);
    add_calls(r->given->format, &w, true);
    w.list[0].then = then ? ak_build_two(&r->build, ak_rules_blanks(r), *then) : ak_build_call(&r->build, r->text);
    for (size_t i = 1; i < w.n && !then; i++) /* else they are not to come here */
        w.list[i].then = behind(r, w.list[i].text);
    return ak_build_until(&r->build, w.list, w.n, !then);
}

uint32_t ak_rules_text(struct ak_rules *r)
{
    struct ak_build *b = &r->build;
    const struct ak_thinking *t;
    struct words w = {.n = 0};

    r->text = ak_build_rule(b, "text", 4);
    add_calls(r->given->format, &w, false);
    for (size_t i = 0; i < w.n; i++)
        w.list[i].then = behind(r, w.list[i].text);
    for (size_t i = 0; (t = ak_thinking_at(i)); i++) {
        size_t open = w.n;
        add(&w, t->open, !t->anywhere);
        add(&w, t->close, true);
        w.list[open].then = ak_rules_reasoning(r, t, NULL);
        w.list[open + 1].then = ak_build_call(b, r->text);
    }
    ak_build_define(b, r->text, ak_build_until(b, w.list, w.n, true));
    return ak_build_call(b, r->text);
}

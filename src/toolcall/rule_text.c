/* Texts in which calls may come. Every marker that the parser looks for is looked for here,
 * at the places where it counts, so that no call escapes the grammar. */
#include <string.h>

#include "toolcall/rules.h"

enum { MOST_WORDS = 48 };

struct words {
    struct ak_ending list[MOST_WORDS];
    size_t n;
};

static bool begins_with(const char *text, const char *begin)
{
    return text && strncmp(text, begin, strlen(begin)) == 0;
}

/* What the parser would read where this marker was written. Markers of two shapes are the first
 * one's, since that is what the model was taught; of its other shapes those remain that can hold
 * all that a schema asks for. */
static uint32_t behind(struct ak_rules *r, const char *marker)
{
    const struct ak_call_format *f = r->given->format;
    uint32_t part = AK_BUILD_NOTHING;

    for (unsigned i = 0; i < f->n_shapes; i++) {
        const struct ak_call_shape *s = &f->shapes[i];
        const char *whole = begins_with(s->section, marker) ? s->section :
                            begins_with(s->begin, marker)   ? s->begin :
                                                              NULL;
        bool bracket =
            !s->section && !s->begin && marker[0] == (s->list ? '[' : '{') && marker[1] == '\0';
        if (!whole && !bracket)
            continue;
        if (i > 0 && s->body != AK_BODY_JSON && s->body != AK_BODY_ARGUMENTS &&
            s->body != f->shapes[0].body)
            continue;
        r->shape = s;
        uint32_t rest =
            whole ? ak_rules_marker(r, whole + strlen(marker)) : (uint32_t)AK_BUILD_EMPTY;
        part = ak_build_two(&r->build, rest, ak_rules_row(r, whole ? whole : marker));
        break;
    }
    r->shape = &f->shapes[0];
    if (!r->given->parallel)
        return part;
    return ak_build_two(&r->build, part, ak_build_call(&r->build, r->text));
}

/* What a word was added with first stands. */
static void add(struct ak_rules *r, struct words *w, const char *text, bool start, uint32_t then)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].text, text) == 0) {
            w->list[i].start &= start;
            return;
        }
    if (w->n == MOST_WORDS)
        ak_build_fail(&r->build, AKUNU_ERROR_UNSUPPORTED,
                      "more than %d markers of calls and of reasoning", MOST_WORDS);
    else
        w->list[w->n++] =
            (struct ak_ending){ .text = text, .n = strlen(text), .then = then, .start = start };
}

static void add_call(struct ak_rules *r, struct words *w, const char *marker, bool start, bool held)
{
    add(r, w, marker, start, held ? behind(r, marker) : (uint32_t)AK_BUILD_NOTHING);
}

/* The markers of calls; those alone that count in reasoning too. Unless calls are `held` to what
 * follows them, they are not to come. */
static void add_calls(struct ak_rules *r, struct words *w, bool in_reasoning, bool held)
{
    const struct ak_call_format *f = r->given->format;

    for (unsigned i = 0; i < f->n_shapes; i++) {
        const struct ak_call_shape *s = &f->shapes[i];
        if (in_reasoning && !s->in_reasoning)
            continue;
        if (s->section)
            add_call(r, w, s->section, s->bare, held);
        if (s->begin)
            add_call(r, w, s->begin, s->bare, held);
        if (s->section || s->begin)
            continue;
        add_call(r, w, "[", true, held);
        if (s->body == AK_BODY_JSON)
            add_call(r, w, "{", true, held);
    }
}

uint32_t ak_rules_reasoning(struct ak_rules *r, const struct ak_thinking *t, const uint32_t *then)
{
    struct words w = { .n = 0 };

    add(r, &w, t->close, false,
        then ? ak_build_two(&r->build, ak_rules_blanks(r), *then) :
               ak_build_call(&r->build, r->text));
    add_calls(r, &w, true, !then);
    return ak_build_until(&r->build, w.list, w.n, !then);
}

uint32_t ak_rules_text(struct ak_rules *r)
{
    struct ak_build *b = &r->build;
    const struct ak_thinking *t;
    struct words w = { .n = 0 };

    r->text = ak_build_rule(b, "text", 4);
    add_calls(r, &w, false, true);
    for (size_t i = 0; (t = ak_thinking_at(i)); i++) {
        add(r, &w, t->open, !t->anywhere, ak_rules_reasoning(r, t, NULL));
        add(r, &w, t->close, true, ak_build_call(b, r->text));
    }
    ak_build_define(b, r->text, ak_build_until(b, w.list, w.n, true));
    return ak_build_call(b, r->text);
}

/* Strings: lengths, patterns and formats. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "grammar/schema/schema_parts.h"
#include "base/utf8.h"

static const struct ak_dfa *no_memory(struct ak_compiler *c)
{
    if (ak_schema_ok(c))
        c->build.status = ak_fail_memory(c->build.error, "a pattern", 0);
    return NULL;
}

/* Tells of a failed machine as the keyword's. */
static void tell(struct ak_compiler *c, const json_t *schema, const char *keyword,
                 const struct ak_error *e)
{
    char why[AK_ERROR_MESSAGE_BYTES];
    if (e->status == AKUNU_ERROR_MEMORY) {
        no_memory(c);
    } else if (e->status == AKUNU_ERROR_FORMAT) {
        snprintf(why, sizeof why, "a regular expression of ECMAScript (%.200s)", e->message);
        ak_schema_wrong(c, schema, keyword, why);
    } else {
        snprintf(why, sizeof why, "%.200s", e->message);
        ak_schema_refuse(c, schema, keyword, why);
    }
}

const struct ak_dfa *ak_schema_pattern(struct ak_compiler *c, const json_t *schema,
                                       const char *keyword, const char *text, size_t n)
{
    struct ak_error e = { 0 };
    for (uint32_t i = 0; i < c->n_known; i++)
        if (c->known[i]->n == n && memcmp(c->known[i]->text, text, n) == 0)
            return c->known[i]->failed ? NULL : &c->known[i]->dfa;
    if (c->n_known == c->room_known) {
        struct ak_known_dfa **grown =
            ak_realloc(c->known, (size_t)c->room_known * 2 + 8, sizeof *grown);
        if (!grown)
            return no_memory(c);
        c->known = grown;
        c->room_known = c->room_known * 2 + 8;
    }
    struct ak_known_dfa *k = ak_alloc(1, sizeof *k);
    if (!k || !(k->text = ak_strndup(text, n))) {
        ak_free(k);
        return no_memory(c);
    }
    k->n = n;
    c->known[c->n_known++] = k;
    k->failed = ak_dfa_pattern(text, n, &k->dfa, &e) != AKUNU_OK;
    if (k->failed)
        tell(c, schema, keyword, &e);
    return k->failed ? NULL : &k->dfa;
}

/* Keeps of d what is in `by`, or is not. Too large a machine is a failure even of the lax. */
void ak_schema_narrow(struct ak_compiler *c, struct ak_dfa *d, const struct ak_dfa *by, bool not_by)
{
    struct ak_dfa out;
    struct ak_error e = { 0 };
    if (!ak_schema_ok(c))
        return;
    if (ak_dfa_both(d, by, not_by, &out, &e) != AKUNU_OK) {
        ak_dfa_free(&out);
        ak_build_fail(&c->build, e.status,
                      "strings with these patterns, lengths and names together: the machine %s",
                      e.message);
        return;
    }
    ak_dfa_free(d);
    *d = out;
}

/* Adds a pattern to the limits. */
static void add_dfa(struct ak_compiler *c, struct ak_string_limits *l, const struct ak_dfa *d)
{
    struct ak_error e = { 0 };
    if (!d || !ak_schema_ok(c))
        return;
    if (!l->has_dfa && ak_dfa_all(&l->dfa, &e) != AKUNU_OK) {
        no_memory(c);
        return;
    }
    l->has_dfa = true;
    ak_schema_narrow(c, &l->dfa, d, false);
}

static void add_format(struct ak_compiler *c, struct ak_string_limits *l, const json_t *schema)
{
    const json_t *format = json_object_get(schema, "format");
    if (!format)
        return;
    if (!json_is_string(format)) {
        ak_schema_wrong(c, schema, "format", "a string");
        return;
    }
    const char *pattern = ak_format_pattern(json_string_value(format));
    char why[AK_ERROR_MESSAGE_BYTES];
    snprintf(why, sizeof why,
             "of formats date, time, date-time, uuid and ipv4 are, \"%.100s\" is not",
             json_string_value(format));
    if (pattern)
        add_dfa(c, l, ak_schema_pattern(c, schema, "format", pattern, strlen(pattern)));
    else
        ak_schema_refuse(c, schema, "format", why);
}

bool ak_schema_string_limits(struct ak_compiler *c, const struct ak_terms *t,
                             struct ak_string_limits *l)
{
    *l = (struct ak_string_limits){ .high = AK_MANY };
    ak_schema_counts(c, t, "minLength", "maxLength", &l->low, &l->high);
    for (uint32_t i = 0; i < t->n && ak_schema_ok(c); i++) {
        const json_t *schema = t->items[i].schema, *pattern = json_object_get(schema, "pattern");
        if (pattern && !json_is_string(pattern))
            ak_schema_wrong(c, schema, "pattern", "a string");
        else if (pattern)
            add_dfa(c, l,
                    ak_schema_pattern(c, schema, "pattern", json_string_value(pattern),
                                      json_string_length(pattern)));
        add_format(c, l, schema);
    }
    return ak_schema_ok(c) && l->low <= l->high && !(l->has_dfa && ak_dfa_is_empty(&l->dfa));
}

/* Lengths join the machine. */
static void add_lengths(struct ak_compiler *c, struct ak_string_limits *l)
{
    struct ak_error e = { 0 };
    struct ak_dfa lengths;
    if (l->low == 0 && l->high == AK_MANY)
        return;
    if (ak_dfa_lengths(l->low, l->high, &lengths, &e) == AKUNU_OK)
        add_dfa(c, l, &lengths);
    else
        ak_build_fail(&c->build, e.status,
                      "strings with a pattern and a length of %u to %u: the machine %s", l->low,
                      l->high, e.message);
    ak_dfa_free(&lengths);
}

void ak_schema_string_dfa(struct ak_compiler *c, const struct ak_terms *t, struct ak_dfa *out)
{
    struct ak_string_limits l;
    bool some = ak_schema_string_limits(c, t, &l);
    if (some)
        add_lengths(c, &l);
    if (some && !l.has_dfa)
        ak_dfa_all(&l.dfa, NULL);
    if (!some) {
        ak_dfa_free(&l.dfa);
        ak_dfa_lengths(1, 0, &l.dfa, NULL);
    }
    *out = l.dfa;
    if (!out->states)
        no_memory(c);
}

/* ---- as parts ----------------------------------------------------------- */
/* A character of a set, each set once. */
static uint32_t char_part(struct ak_compiler *c, const struct ak_char_set *s, bool any)
{
    for (uint32_t i = 0; i < c->n_char_parts; i++)
        if (c->char_sets[i].n == s->n &&
            memcmp(c->char_sets[i].ranges, s->ranges, s->n * sizeof *s->ranges) == 0)
            return c->char_parts[i];
    uint32_t part = ak_build_json_chars(&c->build, s, any);
    if (c->n_char_parts == c->room_char_sets) {
        struct ak_char_set *sets =
            ak_realloc(c->char_sets, (size_t)c->room_char_sets * 2 + 16, sizeof *sets);
        if (sets)
            c->char_sets = sets;
        uint32_t *parts =
            ak_realloc(c->char_parts, (size_t)c->room_char_sets * 2 + 16, sizeof *parts);
        if (parts)
            c->char_parts = parts;
        if (!sets || !parts)
            return part;
        c->room_char_sets = c->room_char_sets * 2 + 16;
    }
    c->char_sets[c->n_char_parts] = (struct ak_char_set){ 0 };
    ak_char_set_copy(&c->build, &c->char_sets[c->n_char_parts], s);
    c->char_parts[c->n_char_parts++] = part;
    return part;
}

static uint32_t quote(struct ak_compiler *c)
{
    return ak_build_text(&c->build, "\"");
}

/* A rule for each state, called calls[state]. */
static void declare_states(struct ak_build *b, const struct ak_dfa *d, uint32_t *calls,
                           const uint32_t *like)
{
    uint32_t base = b->g ? b->g->n_rules : 0;
    for (uint32_t i = 0; i < d->n_states; i++)
        ak_build_rule(b, "", 0);
    for (uint32_t i = 0; i < d->n_states; i++)
        calls[i] = ak_build_call(b, base + i);
    for (uint32_t i = 0; i < d->n_states; i++)
        ak_build_alike(b, calls[i], calls[like[i]]);
}

/* What may follow in a state: the end, or a character and what follows it. done: of all
 * edges, those that were looked at. */
static uint32_t state_part(struct ak_compiler *c, const struct ak_dfa *d, uint32_t state,
                           const uint32_t *calls, uint8_t *done)
{
    struct ak_part_list list = { 0 };
    struct ak_char_set s = { 0 };
    const struct ak_dfa_edge *edges = ak_dfa_edges(d, state);
    uint32_t n = d->states[state].n;
    done += d->states[state].first;
    if (d->states[state].accepts)
        ak_build_append(&c->build, &list, quote(c));
    for (uint32_t i = 0; i < n; i++) {
        if (done[i])
            continue;
        s.n = 0;
        for (uint32_t j = i; j < n; j++) { /* all that go the same way */
            if (edges[j].to != edges[i].to)
                continue;
            done[j] = 1;
            ak_char_set_add(&c->build, &s, edges[j].low, edges[j].high);
        }
        ak_build_append(&c->build, &list,
                        ak_build_two(&c->build, char_part(c, &s, c->reading), calls[edges[i].to]));
    }
    uint32_t part = ak_build_choice(&c->build, list.items, list.n);
    ak_char_set_free(&s);
    ak_free(list.items);
    return part;
}

uint32_t ak_schema_quoted_dfa(struct ak_compiler *c, const struct ak_dfa *d)
{
    struct ak_build *b = &c->build;
    uint8_t *done = ak_alloc(d->n_edges, 1);
    uint32_t *calls = ak_alloc(d->n_states, sizeof *calls),
             *like = ak_alloc(d->n_states, sizeof *like);
    uint32_t part = AK_BUILD_NOTHING;
    if (done && calls && like && ak_dfa_alike(d, AK_NEAR_BYTES, like)) {
        declare_states(b, d, calls, like);
        for (uint32_t i = 0; i < d->n_states && ak_schema_ok(c); i++)
            ak_build_define(b, b->g->parts[calls[i]].a, state_part(c, d, i, calls, done));
        part = ak_build_two(b, quote(c), calls[0]);
    } else {
        ak_build_fail(b, AKUNU_ERROR_MEMORY, "no memory for a pattern");
    }
    ak_free(done);
    ak_free(calls);
    ak_free(like);
    return part;
}

uint32_t ak_schema_quoted(struct ak_compiler *c, const char *text, size_t n)
{
    struct ak_build *b = &c->build;
    struct ak_part_list list = { 0 };
    struct ak_char_set one = { 0 };
    size_t plain = 0; /* what stands for itself is a literal */
    ak_build_append(b, &list, quote(c));
    for (size_t at = 0; at < n && ak_schema_ok(c);) {
        struct ak_utf8 u = ak_utf8_next(text + at, n - at);
        if (c->reading || u.code < 0x20 || u.code == '"' || u.code == '\\') {
            ak_build_append(b, &list, ak_build_literal(b, text + plain, at - plain));
            one.n = 0;
            ak_char_set_add(b, &one, u.code, u.code);
            ak_build_append(b, &list, char_part(c, &one, c->reading));
            plain = at + u.bytes;
        }
        at += u.bytes;
    }
    ak_build_append(b, &list, ak_build_literal(b, text + plain, n - plain));
    ak_build_append(b, &list, quote(c));
    uint32_t part = ak_build_sequence(b, list.items, list.n);
    ak_free(list.items);
    ak_char_set_free(&one);
    return part;
}

/* Any character, however it is spelled: what nothing says more about. */
static uint32_t any_char(struct ak_compiler *c)
{
    struct ak_char_set all = { 0 };
    if (c->string_chars == 0 && ak_schema_ok(c)) {
        ak_char_set_all(&c->build, &all);
        c->string_chars = ak_build_json_chars(&c->build, &all, true);
        ak_char_set_free(&all);
    }
    return c->string_chars;
}

uint32_t ak_schema_string(struct ak_compiler *c, const struct ak_terms *t)
{
    struct ak_string_limits l;
    uint32_t part = AK_BUILD_NOTHING;
    if (ak_schema_string_limits(c, t, &l)) {
        if (l.has_dfa) {
            add_lengths(c, &l);
            part = ak_schema_ok(c) ? ak_schema_quoted_dfa(c, &l.dfa) : (uint32_t)AK_BUILD_NOTHING;
        } else {
            uint32_t parts[] = { quote(c), ak_build_repeat(&c->build, any_char(c), l.low, l.high),
                                 quote(c) };
            part = ak_build_sequence(&c->build, parts, 3);
        }
    }
    ak_dfa_free(&l.dfa);
    return part;
}

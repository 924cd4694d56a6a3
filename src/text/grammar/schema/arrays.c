/* Arrays: items, prefixItems, contains, unevaluatedItems, minItems and maxItems, and the counts of
 * other keywords. */
#include "base/mem.h"
#include "text/grammar/schema/compiler.h"
#include "base/json/wide.h"

/* *low: the largest `min_keyword` of the terms; *high: the smallest `max_keyword`. */
void ak_schema_read_counts(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                           const char *min_keyword, const char *max_keyword, uint32_t *low,
                           uint32_t *high)
{
    *low = 0;
    *high = AK_GRAMMAR_UNBOUNDED;
    for (uint32_t i = 0; i < t->n; i++) {
        for (int j = 0; j < 2; j++) {
            const char *keyword = j ? max_keyword : min_keyword;
            const json_t *value = json_object_get(t->items[i].schema, keyword);
            if (!value)
                continue;
            const char *wide = ak_wide_text(value);
            double n = wide ? ak_wide_double(wide) : json_number_value(value);
            if (wide && ak_wide_is_integer(wide) && n > 0)
                n = AK_GRAMMAR_UNBOUNDED;
            if ((!json_is_number(value) && !wide) || n < 0 ||
                n != (double)(uint64_t)(n < 1e15 ? n : 0)) {
                ak_schema_fail_invalid(c, t->items[i].schema, keyword, "a whole number, 0 or more");
                continue;
            }
            uint32_t count =
                n < (double)(AK_GRAMMAR_UNBOUNDED - 1) ? (uint32_t)n : AK_GRAMMAR_UNBOUNDED - 1;
            if (j == 0)
                *low = count > *low ? count : *low;
            else
                *high = count < *high ? count : *high;
        }
    }
}

/* The schemas of the first items: prefixItems or, before draft 2020-12, an array in `items`. */
static const json_t *get_prefix_items(struct ak_schema_compiler *c, const json_t *schema)
{
    const json_t *prefix = json_object_get(schema, "prefixItems"),
                 *items = json_object_get(schema, "items");
    if (prefix && !json_is_array(prefix))
        ak_schema_fail_invalid(c, schema, "prefixItems", "a list of schemas");
    return prefix ? prefix : json_is_array(items) ? items : NULL;
}

static const json_t *get_rest_items(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");
    return json_is_array(items) ? json_object_get(schema, "additionalItems") : items;
}

/* Does the term, or one that it adds, have a schema for the item at index i, or the `contains` that
 * the item matches? */
static bool is_evaluated(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                         uint32_t term, size_t i, uint32_t matched)
{
    for (uint32_t j = term; j < t->n; j++) {
        const json_t *schema = t->items[j].schema;
        if (ak_schema_terms_evaluates(t, j, term) &&
            (j == matched || i < json_array_size(get_prefix_items(c, schema)) ||
             get_rest_items(schema) || (j > term && json_object_get(schema, "unevaluatedItems"))))
            return true;
    }
    return false;
}

void ak_schema_add_item_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                              size_t i, uint32_t matched, struct ak_schema_terms *out)
{
    for (uint32_t j = 0; j < t->n; j++) {
        const json_t *schema = t->items[j].schema, *prefix = get_prefix_items(c, schema),
                     *unevaluated = json_object_get(schema, "unevaluatedItems");
        const json_t *item =
            i < json_array_size(prefix) ? json_array_get(prefix, i) : get_rest_items(schema);
        if (item)
            ak_schema_terms_add(c, out, item, 0);
        if (j == matched)
            ak_schema_terms_add(c, out, json_object_get(schema, "contains"), 0);
        if (unevaluated && !is_evaluated(c, t, j, i, matched))
            ak_schema_terms_add(c, out, unevaluated, 0);
    }
}

struct array {
    struct ak_schema_compiler *c;
    const struct ak_schema_terms *t;
    uint32_t low, high;                     /* number of items */
    uint32_t n_prefix;                      /* items with schemas of their own */
    uint32_t contains;                      /* the term that has it; AK_SCHEMA_NO_TERM: none */
    uint32_t contained_low, contained_high; /* number of items that match it */
    uint32_t comma;
};

/* An item that matches `contains`, or any item. If matches must not be too many, any other item. */
static uint32_t build_item(const struct array *a, uint32_t i, bool matching)
{
    struct ak_schema_terms one = { 0 };
    ak_schema_add_item_terms(a->c, a->t, i < a->n_prefix ? i : a->n_prefix,
                             matching ? a->contains : AK_SCHEMA_NO_TERM, &one);
    if (!matching && a->contains != AK_SCHEMA_NO_TERM &&
        a->contained_high != AK_GRAMMAR_UNBOUNDED) {
        const json_t *not_it =
            ak_schema_make_not(a->c, json_object_get(a->t->items[a->contains].schema, "contains"));
        if (not_it)
            ak_schema_terms_add(a->c, &one, not_it, 0);
    }
    uint32_t expr = ak_schema_compile(a->c, &one);
    ak_schema_terms_free(&one);
    return expr;
}

/* ---- contains ----------------------------------------------------------- */
/* Finds the term with `contains` and how many items must match. */
static void read_contains(struct array *a)
{
    a->contains = AK_SCHEMA_NO_TERM;
    for (uint32_t i = 0; i < a->t->n; i++) {
        const json_t *schema = a->t->items[i].schema;
        if (!json_object_get(schema, "contains"))
            continue;
        if (a->contains != AK_SCHEMA_NO_TERM) {
            ak_schema_refuse(a->c, schema, "contains", "two of them together");
            return;
        }
        struct ak_schema_terms one = { .items = &a->t->items[i], .n = 1 };
        ak_schema_read_counts(a->c, &one, "minContains", "maxContains", &a->contained_low,
                              &a->contained_high);
        if (!json_object_get(schema, "minContains"))
            a->contained_low = 1;
        a->contains = i;
    }
}

/* The rest of an array that begins with the item at index i: the item and what `next` refers to. */
static uint32_t build_rest(const struct array *a, uint32_t i, uint32_t item, uint32_t next)
{
    struct ak_grammar_builder *b = &a->c->builder;
    uint32_t rest = ak_gb_concat(b, item, ak_gb_rule_ref(b, next));
    return i > 0 ? ak_gb_concat(b, a->comma, rest) : rest;
}

/* The items of an array with `contains`: a rule for each number of items so far, up to the one from
 * which on all are alike, and each number of those that match, for what may follow. Unless they
 * must not be too many, items that match need not be counted. */
static uint32_t build_containing(const struct array *a)
{
    struct ak_grammar_builder *b = &a->c->builder;
    bool is_bounded = a->high != AK_GRAMMAR_UNBOUNDED,
         counts_all = a->contained_high != AK_GRAMMAR_UNBOUNDED,
         frees = ak_schema_terms_find_with(a->t, "unevaluatedItems"); /* it is for others only */
    uint32_t alike = a->n_prefix > a->low ? a->n_prefix : a->low,
             n = counts_all ? a->contained_high : a->contained_low;
    uint32_t last = is_bounded ? a->high : alike > 0 ? alike : 1;
    if (a->contained_low > n)
        return AK_GB_NOTHING;
    if (((uint64_t)last + 1) * ((uint64_t)n + 1) > AK_SCHEMA_MEMBERS_MAX) {
        ak_schema_refuse(a->c, a->t->items[a->contains].schema, "contains",
                         "with so large counts of items");
        return AK_GB_NOTHING;
    }
    uint32_t first = b->g ? b->g->n_rules : 0;
    for (uint32_t i = 0; i < (last + 1) * (n + 1); i++)
        ak_gb_declare_rule(b, "", 0);
    for (uint32_t i = 0; i <= last && ak_schema_ok(a->c); i++) {
        bool is_full = is_bounded && i == last;
        uint32_t plain = is_full ? (uint32_t)AK_GB_NOTHING : build_item(a, i, false),
                 match = is_full ? (uint32_t)AK_GB_NOTHING : build_item(a, i, true),
                 row = first + (i < last ? i + 1 : i) * (n + 1);
        for (uint32_t met = 0; met <= n; met++) {
            bool may_match = met < n || (frees && !counts_all);
            uint32_t ways[] = {
                i >= a->low && met >= a->contained_low ? AK_GB_EMPTY : AK_GB_NOTHING,
                build_rest(a, i, plain, row + met),
                may_match ? build_rest(a, i, match, row + (met < n ? met + 1 : n)) :
                            (uint32_t)AK_GB_NOTHING,
            };
            ak_gb_define_rule(b, first + i * (n + 1) + met, ak_gb_alternation(b, ways, 3));
        }
    }
    return ak_schema_ok(a->c) ? ak_gb_rule_ref(b, first) : (uint32_t)AK_GB_NOTHING;
}

/* ---- items -------------------------------------------------------------- */
/* Built from the last item to the first: the rest is optional once there are enough items. */
static uint32_t build_items(const struct array *a)
{
    struct ak_grammar_builder *b = &a->c->builder;
    uint32_t n = a->n_prefix, low = a->low, high = a->high, all = AK_GB_EMPTY,
             one = build_item(a, n, false);
    if (n > 0 || high > 1)
        all = ak_gb_repeat(b, ak_gb_concat(b, a->comma, one), low > n ? low - (n ? n : 1) : 0,
                           high == AK_GRAMMAR_UNBOUNDED ? AK_GRAMMAR_UNBOUNDED :
                           high > n                     ? high - (n ? n : 1) :
                                                          0);
    if (n == 0 && high > 0)
        all = ak_gb_repeat(b, ak_gb_concat(b, one, all), low > 0, 1);
    for (uint32_t i = n; i-- > 0 && ak_schema_ok(a->c);) {
        uint32_t here = ak_gb_concat(b, build_item(a, i, false), all);
        if (i > 0)
            here = ak_gb_concat(b, a->comma, here);
        all = i < high ? ak_gb_repeat(b, here, i < low, 1) : (uint32_t)AK_GB_EMPTY;
    }
    return all;
}

uint32_t ak_schema_build_array(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    struct ak_grammar_builder *b = &c->builder;
    struct array a = { .c = c, .t = t };
    ak_schema_read_counts(c, t, "minItems", "maxItems", &a.low, &a.high);
    read_contains(&a);
    for (uint32_t i = 0; i < t->n; i++) {
        size_t n = json_array_size(get_prefix_items(c, t->items[i].schema));
        if (n > a.n_prefix)
            a.n_prefix = (uint32_t)ak_min_size(n, AK_GRAMMAR_UNBOUNDED - 1);
    }
    if (a.n_prefix > AK_SCHEMA_MEMBERS_MAX)
        return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED,
                          "\"prefixItems\" has %u schemas: %d are the most", a.n_prefix,
                          AK_SCHEMA_MEMBERS_MAX);
    if (a.low > a.high || !ak_schema_ok(c))
        return AK_GB_NOTHING;
    uint32_t space = ak_schema_build_space(c),
             space_before = c->reading ? space : (uint32_t)AK_GB_EMPTY;
    a.comma = ak_gb_concat(b, space_before, ak_gb_concat(b, ak_gb_text(b, ","), space));
    uint32_t items = a.contains == AK_SCHEMA_NO_TERM ? build_items(&a) : build_containing(&a);
    uint32_t exprs[] = { ak_gb_text(b, "["), space, items, space, ak_gb_text(b, "]") };
    return ak_gb_sequence(b, exprs, 5);
}

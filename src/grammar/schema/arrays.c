/* Arrays: items, prefixItems, minItems and maxItems, and the counts of other keywords. */
#include "base/mem.h"
#include "grammar/schema/compiler.h"

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
            double n = json_number_value(value);
            if (!json_is_number(value) || n < 0 || n != (double)(uint64_t)(n < 1e15 ? n : 0)) {
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

void ak_schema_add_item_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                              size_t i, struct ak_schema_terms *out)
{
    for (uint32_t j = 0; j < t->n; j++) {
        const json_t *schema = t->items[j].schema, *prefix = get_prefix_items(c, schema);
        const json_t *item =
            i < json_array_size(prefix) ? json_array_get(prefix, i) : get_rest_items(schema);
        if (item)
            ak_schema_terms_add(c, out, item, 0);
    }
}

static uint32_t build_item(struct ak_schema_compiler *c, const struct ak_schema_terms *t, size_t i)
{
    struct ak_schema_terms one = { 0 };
    ak_schema_add_item_terms(c, t, i, &one);
    uint32_t expr = ak_schema_compile(c, &one);
    ak_schema_terms_free(&one);
    return expr;
}

uint32_t ak_schema_build_array(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    struct ak_grammar_builder *b = &c->builder;
    uint32_t low, high, n_prefix = 0;
    ak_schema_read_counts(c, t, "minItems", "maxItems", &low, &high);
    for (uint32_t i = 0; i < t->n; i++) {
        size_t n = json_array_size(get_prefix_items(c, t->items[i].schema));
        n_prefix = n > n_prefix ? (uint32_t)ak_min_size(n, AK_GRAMMAR_UNBOUNDED - 1) : n_prefix;
    }
    if (n_prefix > AK_SCHEMA_MEMBERS_MAX)
        return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED,
                          "\"prefixItems\" has %u schemas: %d are the most", n_prefix,
                          AK_SCHEMA_MEMBERS_MAX);
    if (low > high || !ak_schema_ok(c))
        return AK_GB_NOTHING;
    uint32_t space = ak_schema_build_space(c),
             space_before = c->reading ? space : (uint32_t)AK_GB_EMPTY;
    uint32_t comma = ak_gb_concat(b, space_before, ak_gb_concat(b, ak_gb_text(b, ","), space));
    /* built from the last item to the first: the rest is optional once there are enough items */
    uint32_t all = AK_GB_EMPTY, one = build_item(c, t, n_prefix);
    if (n_prefix > 0 || high > 1)
        all = ak_gb_repeat(b, ak_gb_concat(b, comma, one),
                           low > n_prefix ? low - (n_prefix ? n_prefix : 1) : 0,
                           high == AK_GRAMMAR_UNBOUNDED ? AK_GRAMMAR_UNBOUNDED :
                           high > n_prefix              ? high - (n_prefix ? n_prefix : 1) :
                                                          0);
    if (n_prefix == 0 && high > 0)
        all = ak_gb_repeat(b, ak_gb_concat(b, one, all), low > 0, 1);
    for (uint32_t i = n_prefix; i-- > 0 && ak_schema_ok(c);) {
        uint32_t here = ak_gb_concat(b, build_item(c, t, i), all);
        if (i > 0)
            here = ak_gb_concat(b, comma, here);
        all = i < high ? ak_gb_repeat(b, here, i < low, 1) : (uint32_t)AK_GB_EMPTY;
    }
    uint32_t exprs[] = { ak_gb_text(b, "["), space, all, space, ak_gb_text(b, "]") };
    return ak_gb_sequence(b, exprs, 5);
}

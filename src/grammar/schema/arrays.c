/* Arrays. */
#include "base/mem.h"
#include "grammar/schema/schema_parts.h"

/* The largest `least` and the smallest `most` of the terms. */
void ak_schema_counts(struct ak_compiler *c, const struct ak_terms *t, const char *least,
                      const char *most, uint32_t *low, uint32_t *high)
{
    *low = 0;
    *high = AK_MANY;
    for (uint32_t i = 0; i < t->n; i++) {
        for (int j = 0; j < 2; j++) {
            const char *keyword = j ? most : least;
            const json_t *value = json_object_get(t->items[i].schema, keyword);
            if (!value)
                continue;
            double n = json_number_value(value);
            if (!json_is_number(value) || n < 0 || n != (double)(uint64_t)(n < 1e15 ? n : 0)) {
                ak_schema_wrong(c, t->items[i].schema, keyword, "a whole number, 0 or more");
                continue;
            }
            uint32_t count = n < (double)(AK_MANY - 1) ? (uint32_t)n : AK_MANY - 1;
            if (j == 0)
                *low = count > *low ? count : *low;
            else
                *high = count < *high ? count : *high;
        }
    }
}

/* The schemas of the first items: prefixItems, or before 2020-12 a list of items. */
static const json_t *prefix_of(struct ak_compiler *c, const json_t *schema)
{
    const json_t *prefix = json_object_get(schema, "prefixItems"),
                 *items = json_object_get(schema, "items");
    if (prefix && !json_is_array(prefix))
        ak_schema_wrong(c, schema, "prefixItems", "a list of schemas");
    return prefix ? prefix : json_is_array(items) ? items : NULL;
}

static const json_t *rest_of(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");
    return json_is_array(items) ? json_object_get(schema, "additionalItems") : items;
}

void ak_schema_item_terms(struct ak_compiler *c, const struct ak_terms *t, size_t i,
                          struct ak_terms *out)
{
    for (uint32_t j = 0; j < t->n; j++) {
        const json_t *schema = t->items[j].schema, *prefix = prefix_of(c, schema);
        const json_t *item =
            i < json_array_size(prefix) ? json_array_get(prefix, i) : rest_of(schema);
        if (item)
            ak_terms_add(c, out, item, 0);
    }
}

static uint32_t item(struct ak_compiler *c, const struct ak_terms *t, size_t i)
{
    struct ak_terms one = { 0 };
    ak_schema_item_terms(c, t, i, &one);
    uint32_t part = ak_schema_compile(c, &one);
    ak_terms_free(&one);
    return part;
}

uint32_t ak_schema_array(struct ak_compiler *c, const struct ak_terms *t)
{
    struct ak_build *b = &c->build;
    uint32_t low, high, n_prefix = 0;
    ak_schema_counts(c, t, "minItems", "maxItems", &low, &high);
    for (uint32_t i = 0; i < t->n; i++) {
        size_t n = json_array_size(prefix_of(c, t->items[i].schema));
        n_prefix = n > n_prefix ? (uint32_t)ak_min_size(n, AK_MANY - 1) : n_prefix;
    }
    if (n_prefix > AK_SCHEMA_MOST_MEMBERS)
        return ak_build_fail(b, AKUNU_ERROR_UNSUPPORTED,
                             "\"prefixItems\" has %u schemas: %d are the most", n_prefix,
                             AK_SCHEMA_MOST_MEMBERS);
    if (low > high || !ak_schema_ok(c))
        return AK_BUILD_NOTHING;
    uint32_t space = ak_schema_space(c), before = c->reading ? space : (uint32_t)AK_BUILD_EMPTY;
    uint32_t comma = ak_build_two(b, before, ak_build_two(b, ak_build_text(b, ","), space));
    /* from the last item to the first: what follows one is optional once there are enough */
    uint32_t all = AK_BUILD_EMPTY, one = item(c, t, n_prefix);
    if (n_prefix > 0 || high > 1)
        all = ak_build_repeat(b, ak_build_two(b, comma, one),
                              low > n_prefix ? low - (n_prefix ? n_prefix : 1) : 0,
                              high == AK_MANY ? AK_MANY :
                              high > n_prefix ? high - (n_prefix ? n_prefix : 1) :
                                                0);
    if (n_prefix == 0 && high > 0)
        all = ak_build_repeat(b, ak_build_two(b, one, all), low > 0, 1);
    for (uint32_t i = n_prefix; i-- > 0 && ak_schema_ok(c);) {
        uint32_t here = ak_build_two(b, item(c, t, i), all);
        if (i > 0)
            here = ak_build_two(b, comma, here);
        all = i < high ? ak_build_repeat(b, here, i < low, 1) : (uint32_t)AK_BUILD_EMPTY;
    }
    uint32_t parts[] = { ak_build_text(b, "["), space, all, space, ak_build_text(b, "]") };
    return ak_build_sequence(b, parts, 5);
}

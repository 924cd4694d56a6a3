/* Can no value satisfy both of two lists of schemas? What oneOf needs to know: where its
 * alternatives have nothing in common, exactly one is as good as any. */
#include <string.h>

#include "base/mem.h"
#include "grammar/schema/schema_parts.h"

enum { MOST_NESTED = 6 };

static bool numbers(struct ak_compiler *c, const struct ak_terms *a, const struct ak_terms *b)
{
    struct ak_number_range ra, rb;
    bool some_a = ak_schema_range(c, a, false, &ra), some_b = ak_schema_range(c, b, false, &rb);
    bool apart = !some_a || !some_b || !ak_schema_ranges_meet(&ra, &rb);
    ak_schema_range_free(&ra);
    ak_schema_range_free(&rb);
    return apart;
}

static bool strings(struct ak_compiler *c, const struct ak_terms *a, const struct ak_terms *b)
{
    struct ak_dfa da = { 0 }, db = { 0 };
    bool apart = false;
    ak_schema_string_dfa(c, a, &da);
    ak_schema_string_dfa(c, b, &db);
    if (ak_schema_ok(c)) {
        ak_schema_narrow(c, &da, &db, false);
        apart = ak_schema_ok(c) && ak_dfa_is_empty(&da);
    }
    ak_dfa_free(&da);
    ak_dfa_free(&db);
    return apart;
}

static bool arrays(struct ak_compiler *c, const struct ak_terms *a, const struct ak_terms *b,
                   unsigned depth)
{
    uint32_t low_a, high_a, low_b, high_b;
    ak_schema_counts(c, a, "minItems", "maxItems", &low_a, &high_a);
    ak_schema_counts(c, b, "minItems", "maxItems", &low_b, &high_b);
    if (low_a > high_b || low_b > high_a)
        return true;
    bool apart = false;
    for (uint32_t i = 0; i < (low_a > low_b ? low_a : low_b) && i < 8 && !apart && ak_schema_ok(c);
         i++) {
        struct ak_terms ia = { 0 }, ib = { 0 };
        ak_schema_item_terms(c, a, i, &ia);
        ak_schema_item_terms(c, b, i, &ib);
        apart = ak_schema_disjoint(c, &ia, &ib, depth + 1);
        ak_terms_free(&ia);
        ak_terms_free(&ib);
    }
    return apart;
}

/* A member that one of them requires and whose values have nothing in common. */
static bool objects(struct ak_compiler *c, const struct ak_terms *a, const struct ak_terms *b,
                    unsigned depth)
{
    for (int side = 0; side < 2; side++) {
        const struct ak_terms *t = side ? b : a;
        for (uint32_t i = 0; i < t->n; i++) {
            const json_t *name;
            size_t j;
            json_array_foreach (json_object_get(t->items[i].schema, "required"), j, name) {
                struct ak_terms va = { 0 }, vb = { 0 };
                if (!json_is_string(name))
                    continue;
                ak_schema_member_terms(c, a, json_string_value(name), json_string_length(name),
                                       &va);
                ak_schema_member_terms(c, b, json_string_value(name), json_string_length(name),
                                       &vb);
                bool apart = ak_schema_ok(c) && ak_schema_disjoint(c, &va, &vb, depth + 1);
                ak_terms_free(&va);
                ak_terms_free(&vb);
                if (apart)
                    return true;
            }
        }
    }
    return false;
}

/* Every value that a lists is none of b's. */
static bool values(struct ak_compiler *c, const struct ak_terms *a, const struct ak_terms *b,
                   bool *listed)
{
    json_t *list = ak_schema_values(c, a), *value;
    size_t i;
    bool apart = list != NULL;
    *listed = list != NULL;
    json_array_foreach (list, i, value)
        apart = apart && !ak_schema_allows(c, b, value);
    json_decref(list);
    return apart;
}

/* Each way to make the next choice of t is apart from the other one. */
static bool choices(struct ak_compiler *c, const struct ak_terms *t, const struct ak_terms *other,
                    unsigned depth, bool *has)
{
    uint32_t term;
    bool one, apart = true;
    const json_t *alternatives = ak_terms_choice(c, t, &term, &one);
    *has = alternatives != NULL;
    for (size_t i = 0; i < json_array_size(alternatives) && apart && ak_schema_ok(c); i++) {
        struct ak_terms some = { 0 };
        ak_terms_copy(c, &some, t);
        if (ak_schema_ok(c))
            some.items[term].choices++;
        ak_terms_add(c, &some, json_array_get(alternatives, i), term + 1);
        apart = ak_schema_disjoint(c, &some, other, depth + 1);
        ak_terms_free(&some);
    }
    return apart;
}

bool ak_schema_disjoint(struct ak_compiler *c, const struct ak_terms *a, const struct ak_terms *b,
                        unsigned depth)
{
    bool is;
    if (!ak_schema_ok(c) || depth > MOST_NESTED || ++*c->trials > AK_SCHEMA_MOST_TRIALS)
        return false;
    unsigned common = ak_terms_types(c, a) & ak_terms_types(c, b);
    if (common == 0)
        return true;
    if (values(c, a, b, &is) || values(c, b, a, &is))
        return true;
    bool apart = choices(c, a, b, depth, &is);
    if (is)
        return apart;
    apart = choices(c, b, a, depth, &is);
    if (is)
        return apart;
    if (common & (AK_TYPE_NULL | AK_TYPE_BOOLEAN))
        return false;
    if ((common & (AK_TYPE_INTEGER | AK_TYPE_FRACTION)) && !numbers(c, a, b))
        return false;
    if ((common & AK_TYPE_STRING) && !strings(c, a, b))
        return false;
    if ((common & AK_TYPE_ARRAY) && !arrays(c, a, b, depth))
        return false;
    return !(common & AK_TYPE_OBJECT) || objects(c, a, b, depth);
}

/* Decides whether two lists of terms have no value in common. Used for oneOf: if its alternatives
 * are disjoint, "exactly one" is the same as "any". */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/schema/compiler.h"

enum { NESTING_MAX = 6 };

static bool are_numbers_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                                 const struct ak_schema_terms *b)
{
    struct ak_schema_number_range ra, rb;
    bool some_a = ak_schema_read_number_range(c, a, false, &ra),
         some_b = ak_schema_read_number_range(c, b, false, &rb);
    bool is_disjoint = !some_a || !some_b || !ak_schema_number_ranges_overlap(&ra, &rb);
    ak_schema_number_range_free(&ra);
    ak_schema_number_range_free(&rb);
    return is_disjoint;
}

static bool are_strings_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                                 const struct ak_schema_terms *b)
{
    struct ak_grammar_dfa da = { 0 }, db = { 0 };
    bool is_disjoint = false;
    ak_schema_build_string_dfa(c, a, &da);
    ak_schema_build_string_dfa(c, b, &db);
    if (ak_schema_ok(c)) {
        ak_schema_intersect_dfa(c, &da, &db, false);
        is_disjoint = ak_schema_ok(c) && ak_grammar_dfa_is_empty(&da);
    }
    ak_grammar_dfa_free(&da);
    ak_grammar_dfa_free(&db);
    return is_disjoint;
}

static bool are_arrays_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                                const struct ak_schema_terms *b, unsigned depth)
{
    uint32_t low_a, high_a, low_b, high_b;
    ak_schema_read_counts(c, a, "minItems", "maxItems", &low_a, &high_a);
    ak_schema_read_counts(c, b, "minItems", "maxItems", &low_b, &high_b);
    if (low_a > high_b || low_b > high_a)
        return true;
    bool is_disjoint = false;
    for (uint32_t i = 0;
         i < (low_a > low_b ? low_a : low_b) && i < 8 && !is_disjoint && ak_schema_ok(c); i++) {
        struct ak_schema_terms ia = { 0 }, ib = { 0 };
        ak_schema_add_item_terms(c, a, i, AK_SCHEMA_NO_TERM, &ia);
        ak_schema_add_item_terms(c, b, i, AK_SCHEMA_NO_TERM, &ib);
        is_disjoint = ak_schema_are_disjoint(c, &ia, &ib, depth + 1);
        ak_schema_terms_free(&ia);
        ak_schema_terms_free(&ib);
    }
    return is_disjoint;
}

/* Does either require a member for which the two allow no common value? */
static bool are_objects_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                                 const struct ak_schema_terms *b, unsigned depth)
{
    for (int side = 0; side < 2; side++) {
        const struct ak_schema_terms *t = side ? b : a;
        for (uint32_t i = 0; i < t->n; i++) {
            const json_t *name;
            size_t j;
            json_array_foreach (json_object_get(t->items[i].schema, "required"), j, name) {
                struct ak_schema_terms va = { 0 }, vb = { 0 };
                if (!json_is_string(name))
                    continue;
                ak_schema_add_member_terms(c, a, json_string_value(name), json_string_length(name),
                                           &va);
                ak_schema_add_member_terms(c, b, json_string_value(name), json_string_length(name),
                                           &vb);
                bool is_disjoint =
                    ak_schema_ok(c) && ak_schema_are_disjoint(c, &va, &vb, depth + 1);
                ak_schema_terms_free(&va);
                ak_schema_terms_free(&vb);
                if (is_disjoint)
                    return true;
            }
        }
    }
    return false;
}

/* Does `a` list values, and does `b` allow none of them? */
static bool are_values_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                                const struct ak_schema_terms *b, bool *listed)
{
    json_t *list = ak_schema_collect_values(c, a), *value;
    size_t i;
    bool is_disjoint = list != NULL;
    *listed = list != NULL;
    json_array_foreach (list, i, value)
        is_disjoint = is_disjoint && !ak_schema_allows(c, b, value);
    json_decref(list);
    return is_disjoint;
}

/* Is each alternative of the next choice of `t` disjoint from `other`? *has: there is a choice. */
static bool are_choices_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                 const struct ak_schema_terms *other, unsigned depth, bool *has)
{
    uint32_t term;
    bool one, is_disjoint = true;
    const json_t *alternatives = ak_schema_terms_find_alternatives(c, t, &term, &one);
    *has = alternatives != NULL;
    for (size_t i = 0; i < json_array_size(alternatives) && is_disjoint && ak_schema_ok(c); i++) {
        struct ak_schema_terms some = { 0 };
        ak_schema_terms_copy(c, &some, t);
        if (ak_schema_ok(c))
            some.items[term].n_choices++;
        ak_schema_terms_add(c, &some, json_array_get(alternatives, i), term + 1);
        is_disjoint = ak_schema_are_disjoint(c, &some, other, depth + 1);
        ak_schema_terms_free(&some);
    }
    return is_disjoint;
}

bool ak_schema_are_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                            const struct ak_schema_terms *b, unsigned depth)
{
    bool is;
    if (!ak_schema_ok(c) || depth > NESTING_MAX || ++*c->trials > AK_SCHEMA_TRIALS_MAX)
        return false;
    unsigned common = ak_schema_terms_get_types(c, a) & ak_schema_terms_get_types(c, b);
    if (common == 0)
        return true;
    if (are_values_disjoint(c, a, b, &is) || are_values_disjoint(c, b, a, &is))
        return true;
    bool is_disjoint = are_choices_disjoint(c, a, b, depth, &is);
    if (is)
        return is_disjoint;
    is_disjoint = are_choices_disjoint(c, b, a, depth, &is);
    if (is)
        return is_disjoint;
    if (common & (AK_SCHEMA_TYPE_NULL | AK_SCHEMA_TYPE_BOOLEAN))
        return false;
    if ((common & (AK_SCHEMA_TYPE_INTEGER | AK_SCHEMA_TYPE_FRACTION)) &&
        !are_numbers_disjoint(c, a, b))
        return false;
    if ((common & AK_SCHEMA_TYPE_STRING) && !are_strings_disjoint(c, a, b))
        return false;
    if ((common & AK_SCHEMA_TYPE_ARRAY) && !are_arrays_disjoint(c, a, b, depth))
        return false;
    return !(common & AK_SCHEMA_TYPE_OBJECT) || are_objects_disjoint(c, a, b, depth);
}

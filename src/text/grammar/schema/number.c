/* Numbers: bounds and multiples. Multiples within bounds are listed; without bounds, digits are
 * divided as they are read. Other bounds are left to range.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/grammar/schema/compiler.h"

enum { LISTED_MAX = 4096, DIVISOR_MAX = 2000, SHORT_DIGITS_MAX = 17 };

static bool number_no_memory(struct ak_schema_compiler *c)
{
    if (ak_schema_ok(c))
        c->builder.status = ak_fail_memory(c->builder.error, "a schema", 0);
    return false;
}

/* Takes the bound of the keyword if it is tighter. `low`: it is a lower bound. */
static void add_bound(struct ak_schema_compiler *c, const json_t *schema, const char *keyword,
                      bool low, bool strict, struct ak_schema_number_range *r)
{
    const json_t *value = json_object_get(schema, keyword);
    bool *has_bound = low ? &r->has_low : &r->has_high,
         *is_strict = low ? &r->low_strict : &r->high_strict;
    struct ak_schema_decimal *known = low ? &r->low : &r->high, d;
    char text[AK_SCHEMA_NUMBER_BYTES];
    if (!value)
        return;
    if (!ak_schema_is_number(value)) {
        ak_schema_fail_invalid(c, schema, keyword, "a number");
        return;
    }
    if (!ak_schema_decimal_read(ak_schema_write_number(value, text), &d)) {
        number_no_memory(c);
        return;
    }
    int order = *has_bound ? ak_schema_decimal_compare(&d, known) : low ? 1 : -1;
    if (low ? order > 0 : order < 0) {
        ak_schema_decimal_free(known);
        *known = d;
        *has_bound = true;
        *is_strict = strict;
        return;
    }
    *is_strict = *is_strict || (order == 0 && strict);
    ak_schema_decimal_free(&d);
}

static void add_multiple(struct ak_schema_compiler *c, const json_t *schema,
                         struct ak_schema_number_range *r)
{
    const json_t *value = json_object_get(schema, "multipleOf");
    char text[AK_SCHEMA_NUMBER_BYTES];
    struct ak_schema_decimal d;
    if (!value)
        return;
    if (!ak_schema_is_number(value) || json_number_value(value) < 0) {
        ak_schema_fail_invalid(c, schema, "multipleOf", "a number above 0");
        return;
    }
    if (!ak_schema_decimal_read(ak_schema_write_number(value, text), &d)) {
        number_no_memory(c);
        return;
    }
    if (d.negative || d.n_whole + d.n_fraction == 0)
        ak_schema_fail_invalid(c, schema, "multipleOf", "a number above 0");
    size_t n_zeros = 0;
    while (n_zeros < d.n_fraction && d.fraction[n_zeros] == '0')
        n_zeros++;
    uint64_t whole = 0;
    for (size_t i = 0; i < d.n_whole; i++)
        whole = i < SHORT_DIGITS_MAX ? whole * 10 + (uint64_t)(d.whole[i] - '0') : UINT64_MAX;
    if (d.n_fraction == 0 && d.n_whole <= SHORT_DIGITS_MAX &&
        (whole % r->multiple == 0 || r->multiple % whole == 0)) {
        r->integer = true;
        r->multiple = whole > r->multiple ? whole : r->multiple;
    } else if (d.n_whole == 0 && n_zeros + 1 == d.n_fraction && d.fraction[n_zeros] == '1') {
        r->decimals = d.n_fraction < r->decimals ? (uint32_t)d.n_fraction : r->decimals;
    } else {
        ak_schema_refuse(c, schema, "multipleOf",
                         "only multiples of one integer are, or of 0.1, 0.01 …");
    }
    ak_schema_decimal_free(&d);
}

/* Rounds the bounds of integers inwards, to integers that are allowed themselves. */
static void round_bounds(struct ak_schema_compiler *c, struct ak_schema_number_range *r)
{
    bool fine = true;
    if (r->has_low && (r->low_strict || r->low.n_fraction > 0))
        fine = ak_schema_decimal_step(&r->low, true);
    if (r->has_high && (r->high_strict || r->high.n_fraction > 0))
        fine = ak_schema_decimal_step(&r->high, false) && fine;
    r->low_strict = r->high_strict = false;
    if (!fine)
        number_no_memory(c);
}

bool ak_schema_read_number_range(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                 bool integer, struct ak_schema_number_range *r)
{
    *r = (struct ak_schema_number_range){ .integer = integer,
                                          .decimals = AK_GRAMMAR_UNBOUNDED,
                                          .multiple = 1 };
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *schema = t->items[i].schema;
        add_bound(c, schema, "minimum", true, false, r);
        add_bound(c, schema, "exclusiveMinimum", true, true, r);
        add_bound(c, schema, "maximum", false, false, r);
        add_bound(c, schema, "exclusiveMaximum", false, true, r);
        add_multiple(c, schema, r);
    }
    if (r->integer)
        round_bounds(c, r);
    if (!ak_schema_ok(c))
        return false;
    int order = r->has_low && r->has_high ? ak_schema_decimal_compare(&r->low, &r->high) : -1;
    return order < 0 || (order == 0 && !r->low_strict && !r->high_strict);
}

void ak_schema_number_range_free(struct ak_schema_number_range *r)
{
    ak_schema_decimal_free(&r->low);
    ak_schema_decimal_free(&r->high);
}

bool ak_schema_number_ranges_overlap(const struct ak_schema_number_range *a,
                                     const struct ak_schema_number_range *b)
{
    for (int i = 0; i < 2; i++) {
        const struct ak_schema_number_range *x = i ? b : a, *y = i ? a : b;
        int order = x->has_high && y->has_low ? ak_schema_decimal_compare(&x->high, &y->low) : 1;
        if (order < 0 || (order == 0 && (x->high_strict || y->low_strict)))
            return false;
    }
    return true;
}

/* ---- multiples ---------------------------------------------------------- */
static int64_t to_int64(const struct ak_schema_decimal *d)
{
    int64_t value = 0;
    for (size_t i = 0; i < d->n_whole; i++)
        value = value * 10 + (d->whole[i] - '0');
    return d->negative ? -value : value;
}

static uint32_t build_zero_fraction(struct ak_schema_compiler *c)
{
    if (!c->reading)
        return AK_GB_EMPTY;
    uint32_t some = ak_gb_concat(&c->builder, ak_gb_text(&c->builder, "."),
                                 ak_gb_repeat(&c->builder, ak_gb_byte_range(&c->builder, '0', '0'),
                                              1, AK_GRAMMAR_UNBOUNDED));
    return ak_gb_repeat(&c->builder, some, 0, 1);
}

/* The multiples of `step`, as an alternation. */
static uint32_t build_listed(struct ak_schema_compiler *c, int64_t low, int64_t high, int64_t step)
{
    struct ak_gb_list list = { 0 };
    int64_t first = low - low % step;
    for (int64_t v = first < low ? first + step : first; v <= high && ak_schema_ok(c); v += step) {
        char text[AK_SCHEMA_NUMBER_BYTES];
        snprintf(text, sizeof text, "%lld", (long long)v);
        ak_gb_append(&c->builder, &list, ak_gb_text(&c->builder, text));
    }
    uint32_t expr = ak_gb_concat(&c->builder, ak_gb_alternation(&c->builder, list.items, list.n),
                                 build_zero_fraction(c));
    ak_free(list.items);
    return expr;
}

/* Multiples by long division: a rule for each remainder of the digits so far. */
static uint32_t build_divided(struct ak_schema_compiler *c, uint32_t divisor, bool positive)
{
    struct ak_grammar_builder *b = &c->builder;
    struct ak_gb_list list = { 0 };
    uint32_t base = b->g->n_rules;
    for (uint32_t i = 0; i < divisor; i++)
        ak_gb_declare_rule(b, "", 0);
    for (uint32_t i = 0; i <= divisor && ak_schema_ok(c); i++) {
        list.n = 0;
        /* i = divisor: the first digit, which is not 0 */
        for (uint32_t d = i == divisor; d < 10; d++) {
            uint32_t from = i == divisor ? 0 : i;
            ak_gb_append(b, &list,
                         ak_gb_concat(b,
                                      ak_gb_byte_range(b, (unsigned char)('0' + d),
                                                       (unsigned char)('0' + d)),
                                      ak_gb_rule_ref(b, base + (from * 10 + d) % divisor)));
        }
        if (i == 0)
            ak_gb_append(b, &list, AK_GB_EMPTY);
        if (i < divisor)
            ak_gb_define_rule(b, base + i, ak_gb_alternation(b, list.items, list.n));
    }
    uint32_t number = ak_gb_either(b, ak_gb_text(b, "0"), ak_gb_alternation(b, list.items, list.n));
    ak_free(list.items);
    if (!positive)
        number = ak_gb_concat(b, ak_gb_repeat(b, ak_gb_text(b, "-"), 0, 1), number);
    return ak_gb_concat(b, number, build_zero_fraction(c));
}

static uint32_t build_multiples(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                const struct ak_schema_number_range *r)
{
    bool short_enough = r->low.n_whole <= SHORT_DIGITS_MAX && r->high.n_whole <= SHORT_DIGITS_MAX;
    if (r->has_low && r->has_high && short_enough && r->multiple <= INT32_MAX &&
        (to_int64(&r->high) - to_int64(&r->low)) / (int64_t)r->multiple < LISTED_MAX)
        return build_listed(c, to_int64(&r->low), to_int64(&r->high), (int64_t)r->multiple);
    bool from_zero = r->has_low && r->low.n_whole == 0;
    if (!r->has_high && (!r->has_low || from_zero) && r->multiple <= DIVISOR_MAX)
        return build_divided(c, (uint32_t)r->multiple, r->has_low);
    ak_schema_refuse(c, ak_schema_terms_find_with(t, "multipleOf"), "multipleOf",
                     "for a number this large, or with these bounds");
    return AK_GB_NOTHING;
}

/* ---- numbers without bounds --------------------------------------------- */
static uint32_t build_digits(struct ak_grammar_builder *b, uint32_t low, uint32_t high)
{
    return ak_gb_repeat(b, ak_gb_byte_range(b, '0', '9'), low, high);
}

/* Digits of an exponent above 0 that a model may write: with AK_SCHEMA_WRITTEN_DIGITS_MAX digits
 * before the point, up to 259 leaves every number below the largest double, 1.8e308. */
static uint32_t build_written_exponent(struct ak_grammar_builder *b)
{
    uint32_t digit = ak_gb_byte_range(b, '0', '9');
    uint32_t exprs[] = {
        build_digits(b, 1, 2),
        ak_gb_concat(b, ak_gb_text(b, "1"), build_digits(b, 2, 2)),
        ak_gb_concat(b, ak_gb_text(b, "2"), ak_gb_concat(b, ak_gb_byte_range(b, '0', '5'), digit)),
    };
    return ak_gb_alternation(b, exprs, 3);
}

static uint32_t build_exponent(struct ak_schema_compiler *c, bool integer)
{
    struct ak_grammar_builder *b = &c->builder;
    struct ak_grammar_byte_set e = { { 0 } };
    e.bits[1] = UINT64_C(1) << ('e' - 64) | UINT64_C(1) << ('E' - 64);
    uint32_t up = c->reading ? build_digits(b, 1, AK_GRAMMAR_UNBOUNDED) : build_written_exponent(b),
             down = build_digits(b, 1, c->reading ? AK_GRAMMAR_UNBOUNDED : 3);
    uint32_t positive = ak_gb_concat(b, ak_gb_repeat(b, ak_gb_text(b, "+"), 0, 1), up),
             negative =
                 integer ? (uint32_t)AK_GB_NOTHING : ak_gb_concat(b, ak_gb_text(b, "-"), down);
    return ak_gb_repeat(b, ak_gb_concat(b, ak_gb_bytes(b, &e), ak_gb_either(b, positive, negative)),
                        0, 1);
}

/* Digits after the point, of numbers that are no integers: the last is not 0. */
static uint32_t build_some_fraction(struct ak_schema_compiler *c, uint32_t digits_max)
{
    struct ak_grammar_builder *b = &c->builder;
    uint32_t zeros = c->reading ? ak_gb_repeat(b, ak_gb_text(b, "0"), 0, AK_GRAMMAR_UNBOUNDED) :
                                  (uint32_t)AK_GB_EMPTY;
    uint32_t exprs[] = { ak_gb_text(b, "."), build_digits(b, 0, digits_max),
                         ak_gb_byte_range(b, '1', '9'), zeros };
    return ak_gb_sequence(b, exprs, 4);
}

static uint32_t build_any_number(struct ak_schema_compiler *c, unsigned types)
{
    struct ak_grammar_builder *b = &c->builder;
    bool integer = !(types & AK_SCHEMA_TYPE_FRACTION), fraction = !(types & AK_SCHEMA_TYPE_INTEGER);
    uint32_t digits_max = c->reading ? AK_GRAMMAR_UNBOUNDED : AK_SCHEMA_WRITTEN_DIGITS_MAX - 1;
    uint32_t whole = ak_gb_either(
        b, ak_gb_text(b, "0"),
        ak_gb_concat(b, ak_gb_byte_range(b, '1', '9'), build_digits(b, 0, digits_max)));
    uint32_t decimals =
        integer ?
            build_zero_fraction(c) :
        fraction ?
            build_some_fraction(c, digits_max) :
            ak_gb_repeat(b,
                         ak_gb_concat(b, ak_gb_text(b, "."),
                                      build_digits(b, 1,
                                                   c->reading ? AK_GRAMMAR_UNBOUNDED :
                                                                AK_SCHEMA_WRITTEN_DIGITS_MAX)),
                         0, 1);
    uint32_t exprs[] = { ak_gb_repeat(b, ak_gb_text(b, "-"), 0, 1), whole, decimals,
                         fraction || (integer && !c->reading) ? (uint32_t)AK_GB_EMPTY :
                                                                build_exponent(c, integer) };
    return ak_gb_sequence(b, exprs, 4);
}

uint32_t ak_schema_build_number(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                unsigned types)
{
    struct ak_schema_number_range r;
    uint32_t expr = AK_GB_NOTHING;
    if (ak_schema_read_number_range(c, t, !(types & AK_SCHEMA_TYPE_FRACTION), &r)) {
        r.fraction = types == AK_SCHEMA_TYPE_FRACTION;
        bool is_limited = r.has_low || r.has_high || r.decimals != AK_GRAMMAR_UNBOUNDED;
        types &=
            r.integer ? AK_SCHEMA_TYPE_INTEGER : AK_SCHEMA_TYPE_INTEGER | AK_SCHEMA_TYPE_FRACTION;
        if (types == 0)
            expr = AK_GB_NOTHING; /* no integer is a fraction */
        else if (r.multiple > 1)
            expr = build_multiples(c, t, &r);
        else if (is_limited)
            expr = ak_schema_build_number_range(c, &r);
        else
            expr = build_any_number(c, types);
    }
    ak_schema_number_range_free(&r);
    return expr;
}

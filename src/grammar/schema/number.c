/* Numbers: what bounds and multiples leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/schema/schema_parts.h"

enum { MOST_LISTED = 4096, MOST_DIVISOR = 2000, MOST_SHORT_DIGITS = 17 };

static bool no_memory(struct ak_compiler *c)
{
    if (ak_schema_ok(c))
        c->build.status = ak_fail_memory(c->build.error, "a schema", 0);
    return false;
}

/* Takes the bound of the keyword where it is tighter. `low`: it is one from below. */
static void bound(struct ak_compiler *c, const json_t *schema, const char *keyword, bool low,
                  bool strict, struct ak_number_range *r)
{
    const json_t *value = json_object_get(schema, keyword);
    bool *there = low ? &r->has_low : &r->has_high,
         *is_strict = low ? &r->low_strict : &r->high_strict;
    struct ak_decimal *known = low ? &r->low : &r->high, d;
    char text[AK_NUMBER_BYTES];
    if (!value)
        return;
    if (!json_is_number(value)) {
        ak_schema_wrong(c, schema, keyword, "a number");
        return;
    }
    if (!ak_decimal_read(ak_number_text(value, text), &d)) {
        no_memory(c);
        return;
    }
    int order = *there ? ak_decimal_compare(&d, known) : low ? 1 : -1;
    if (low ? order > 0 : order < 0) {
        ak_decimal_free(known);
        *known = d;
        *there = true;
        *is_strict = strict;
        return;
    }
    *is_strict = *is_strict || (order == 0 && strict);
    ak_decimal_free(&d);
}

static void multiple(struct ak_compiler *c, const json_t *schema, struct ak_number_range *r)
{
    const json_t *value = json_object_get(schema, "multipleOf");
    char text[AK_NUMBER_BYTES];
    struct ak_decimal d;
    if (!value)
        return;
    if (!json_is_number(value) || json_number_value(value) <= 0) {
        ak_schema_wrong(c, schema, "multipleOf", "a number above 0");
        return;
    }
    if (!ak_decimal_read(ak_number_text(value, text), &d)) {
        no_memory(c);
        return;
    }
    size_t n_zeros = 0;
    while (n_zeros < d.n_after && d.after[n_zeros] == '0')
        n_zeros++;
    uint64_t whole = 0;
    for (size_t i = 0; i < d.n_before; i++)
        whole = i < MOST_SHORT_DIGITS ? whole * 10 + (uint64_t)(d.before[i] - '0') : UINT64_MAX;
    if (d.n_after == 0 && d.n_before <= MOST_SHORT_DIGITS &&
        (whole % r->multiple == 0 || r->multiple % whole == 0)) {
        r->integer = true;
        r->multiple = whole > r->multiple ? whole : r->multiple;
    } else if (d.n_before == 0 && n_zeros + 1 == d.n_after && d.after[n_zeros] == '1') {
        r->decimals = d.n_after < r->decimals ? (uint32_t)d.n_after : r->decimals;
    } else {
        ak_schema_refuse(c, schema, "multipleOf",
                         "multiples are kept of one integer, or of 0.1, 0.01 …");
    }
    ak_decimal_free(&d);
}

/* Bounds of integers become integers that may be reached. */
static void make_whole(struct ak_compiler *c, struct ak_number_range *r)
{
    bool fine = true;
    if (r->has_low && (r->low_strict || r->low.n_after > 0))
        fine = ak_decimal_step(&r->low, true);
    if (r->has_high && (r->high_strict || r->high.n_after > 0))
        fine = ak_decimal_step(&r->high, false) && fine;
    r->low_strict = r->high_strict = false;
    if (!fine)
        no_memory(c);
}

bool ak_schema_range(struct ak_compiler *c, const struct ak_terms *t, bool integer,
                     struct ak_number_range *r)
{
    *r = (struct ak_number_range){ .integer = integer, .decimals = AK_MANY, .multiple = 1 };
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *schema = t->items[i].schema;
        bound(c, schema, "minimum", true, false, r);
        bound(c, schema, "exclusiveMinimum", true, true, r);
        bound(c, schema, "maximum", false, false, r);
        bound(c, schema, "exclusiveMaximum", false, true, r);
        multiple(c, schema, r);
    }
    if (r->integer)
        make_whole(c, r);
    if (!ak_schema_ok(c))
        return false;
    int order = r->has_low && r->has_high ? ak_decimal_compare(&r->low, &r->high) : -1;
    return order < 0 || (order == 0 && !r->low_strict && !r->high_strict);
}

void ak_schema_range_free(struct ak_number_range *r)
{
    ak_decimal_free(&r->low);
    ak_decimal_free(&r->high);
}

bool ak_schema_ranges_meet(const struct ak_number_range *a, const struct ak_number_range *b)
{
    for (int i = 0; i < 2; i++) {
        const struct ak_number_range *x = i ? b : a, *y = i ? a : b;
        int order = x->has_high && y->has_low ? ak_decimal_compare(&x->high, &y->low) : 1;
        if (order < 0 || (order == 0 && (x->high_strict || y->low_strict)))
            return false;
    }
    return true;
}

/* ---- multiples ---------------------------------------------------------- */
static int64_t small(const struct ak_decimal *d)
{
    int64_t value = 0;
    for (size_t i = 0; i < d->n_before; i++)
        value = value * 10 + (d->before[i] - '0');
    return d->negative ? -value : value;
}

static uint32_t zeros(struct ak_compiler *c)
{
    if (!c->reading)
        return AK_BUILD_EMPTY;
    uint32_t some = ak_build_two(
        &c->build, ak_build_text(&c->build, "."),
        ak_build_repeat(&c->build, ak_build_byte_range(&c->build, '0', '0'), 1, AK_MANY));
    return ak_build_repeat(&c->build, some, 0, 1);
}

/* One after another. */
static uint32_t listed(struct ak_compiler *c, int64_t low, int64_t high, int64_t step)
{
    struct ak_part_list list = { 0 };
    int64_t first = low - low % step;
    for (int64_t v = first < low ? first + step : first; v <= high && ak_schema_ok(c); v += step) {
        char text[AK_NUMBER_BYTES];
        snprintf(text, sizeof text, "%lld", (long long)v);
        ak_build_append(&c->build, &list, ak_build_text(&c->build, text));
    }
    uint32_t part =
        ak_build_two(&c->build, ak_build_choice(&c->build, list.items, list.n), zeros(c));
    ak_free(list.items);
    return part;
}

/* Digits by what is left of them after division: a rule for each remainder. */
static uint32_t divided(struct ak_compiler *c, uint32_t divisor, bool positive)
{
    struct ak_build *b = &c->build;
    struct ak_part_list list = { 0 };
    uint32_t base = b->g->n_rules;
    for (uint32_t i = 0; i < divisor; i++)
        ak_build_rule(b, "", 0);
    for (uint32_t i = 0; i <= divisor && ak_schema_ok(c); i++) {
        list.n = 0;
        /* i = divisor: the first digit, which is no 0 */
        for (uint32_t d = i == divisor; d < 10; d++) {
            uint32_t from = i == divisor ? 0 : i;
            ak_build_append(b, &list,
                            ak_build_two(b,
                                         ak_build_byte_range(b, (unsigned char)('0' + d),
                                                             (unsigned char)('0' + d)),
                                         ak_build_call(b, base + (from * 10 + d) % divisor)));
        }
        if (i == 0)
            ak_build_append(b, &list, AK_BUILD_EMPTY);
        if (i < divisor)
            ak_build_define(b, base + i, ak_build_choice(b, list.items, list.n));
    }
    uint32_t number =
        ak_build_either(b, ak_build_text(b, "0"), ak_build_choice(b, list.items, list.n));
    ak_free(list.items);
    if (!positive)
        number = ak_build_two(b, ak_build_repeat(b, ak_build_text(b, "-"), 0, 1), number);
    return ak_build_two(b, number, zeros(c));
}

static const json_t *with(const struct ak_terms *t, const char *keyword)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (json_object_get(t->items[i].schema, keyword))
            return t->items[i].schema;
    return NULL;
}

static uint32_t multiples(struct ak_compiler *c, const struct ak_terms *t,
                          const struct ak_number_range *r)
{
    bool short_enough =
        r->low.n_before <= MOST_SHORT_DIGITS && r->high.n_before <= MOST_SHORT_DIGITS;
    if (r->has_low && r->has_high && short_enough && r->multiple <= INT32_MAX &&
        (small(&r->high) - small(&r->low)) / (int64_t)r->multiple < MOST_LISTED)
        return listed(c, small(&r->low), small(&r->high), (int64_t)r->multiple);
    bool from_zero = r->has_low && r->low.n_before == 0;
    if (!r->has_high && (!r->has_low || from_zero) && r->multiple <= MOST_DIVISOR)
        return divided(c, (uint32_t)r->multiple, r->has_low);
    ak_schema_refuse(c, with(t, "multipleOf"), "multipleOf",
                     "of a number this large, or with these bounds");
    return AK_BUILD_NOTHING;
}

/* ---- numbers without bounds --------------------------------------------- */
static uint32_t digits(struct ak_build *b, uint32_t low, uint32_t high)
{
    return ak_build_repeat(b, ak_build_byte_range(b, '0', '9'), low, high);
}

static uint32_t exponent(struct ak_compiler *c, bool integer)
{
    struct ak_build *b = &c->build;
    struct ak_byte_set e = { { 0 } }, sign = { { 0 } };
    e.bits[1] = UINT64_C(1) << ('e' - 64) | UINT64_C(1) << ('E' - 64);
    sign.bits[0] = UINT64_C(1) << '+' | (integer ? 0 : UINT64_C(1) << '-');
    uint32_t parts[] = { ak_build_bytes(b, &e), ak_build_repeat(b, ak_build_bytes(b, &sign), 0, 1),
                         digits(b, 1, c->reading ? AK_MANY : 2) };
    return ak_build_repeat(b, ak_build_sequence(b, parts, 3), 0, 1);
}

/* A model that writes digits without end is stopped after so many. */
enum { MOST_WRITTEN = 16 };

static uint32_t any_number(struct ak_compiler *c, bool integer)
{
    struct ak_build *b = &c->build;
    uint32_t most = c->reading ? AK_MANY : MOST_WRITTEN - 1;
    uint32_t whole =
        ak_build_either(b, ak_build_text(b, "0"),
                        ak_build_two(b, ak_build_byte_range(b, '1', '9'), digits(b, 0, most)));
    uint32_t fraction =
        integer ? zeros(c) :
                  ak_build_repeat(b,
                                  ak_build_two(b, ak_build_text(b, "."),
                                               digits(b, 1, c->reading ? AK_MANY : MOST_WRITTEN)),
                                  0, 1);
    uint32_t parts[] = { ak_build_repeat(b, ak_build_text(b, "-"), 0, 1), whole, fraction,
                         integer && !c->reading ? (uint32_t)AK_BUILD_EMPTY : exponent(c, integer) };
    return ak_build_sequence(b, parts, 4);
}

uint32_t ak_schema_number(struct ak_compiler *c, const struct ak_terms *t, bool integer)
{
    struct ak_number_range r;
    uint32_t part = AK_BUILD_NOTHING;
    if (ak_schema_range(c, t, integer, &r)) {
        if (r.multiple > 1)
            part = multiples(c, t, &r);
        else if (r.has_low || r.has_high || r.decimals != AK_MANY)
            part = ak_schema_digits(c, &r);
        else
            part = any_number(c, r.integer);
    }
    ak_schema_range_free(&r);
    return part;
}

/* Decimal numbers between two bounds, digit by digit.
 *
 * As long as what was read equals the beginning of a bound, the next digit is held to it;
 * after the first difference, digits are free. No exponents: 5e2 is not read. */
#include <string.h>

#include "base/mem.h"
#include "grammar/schema/schema_parts.h"

/* Sizes without a sign, between `low` and `high`; NULL: no bound. */
struct sizes {
    struct ak_compiler *c;
    struct ak_build *b;
    const struct ak_decimal *low, *high;
    bool low_strict, high_strict;
    bool integer;
    uint32_t decimals;
    size_t length;   /* digits before the point */
    size_t n_after;  /* decimals after which nothing changes */
    uint32_t *rules; /* of the places behind the point: [n_after + 1][4], UINT32_MAX: not made */
};

enum { MOST_WRITTEN = 16 };

static uint32_t digit(struct sizes *s, unsigned from, unsigned to)
{
    return from > to ?
               (uint32_t)AK_BUILD_NOTHING :
               ak_build_byte_range(s->b, (unsigned char)('0' + from), (unsigned char)('0' + to));
}

static uint32_t decimals_left(const struct sizes *s, size_t at)
{
    if (s->decimals == AK_MANY)
        return s->c->reading ? AK_MANY : at < MOST_WRITTEN ? (uint32_t)(MOST_WRITTEN - at) : 0;
    return at < s->decimals ? s->decimals - (uint32_t)at : 0;
}

/* What may follow `at` decimals where no bound is near: with none yet, a point first. */
static uint32_t free_decimals(struct sizes *s, size_t at)
{
    struct ak_build *b = s->b;
    uint32_t left = decimals_left(s, at), zero = digit(s, 0, 0);
    uint32_t zeros = s->c->reading && s->decimals != AK_MANY ?
                         ak_build_repeat(b, zero, 0, AK_MANY) :
                         (uint32_t)AK_BUILD_EMPTY;
    if (at > 0)
        return ak_build_two(b, ak_build_repeat(b, digit(s, 0, 9), 0, left), zeros);
    uint32_t some = left > 0 ? ak_build_two(b, ak_build_repeat(b, digit(s, 0, 9), 1, left), zeros) :
                    s->c->reading ? ak_build_repeat(b, zero, 1, AK_MANY) :
                                    (uint32_t)AK_BUILD_NOTHING;
    return ak_build_repeat(b, ak_build_two(b, ak_build_text(b, "."), some), 0, 1);
}

static unsigned decimal(const struct ak_decimal *d, size_t at)
{
    return at < d->n_after ? (unsigned)(d->after[at] - '0') : 0;
}

/* After `at` decimals, held to the bounds or not. */
static uint32_t fraction(struct sizes *s, size_t at, bool low, bool high);

static uint32_t fraction_body(struct sizes *s, size_t at, bool low, bool high)
{
    struct ak_build *b = s->b;
    bool low_spent = low && at >= s->low->n_after, high_spent = high && at >= s->high->n_after;
    bool low_fine = !low || (low_spent && !s->low_strict),
         high_fine = !high || !high_spent || !s->high_strict;
    unsigned from = low ? decimal(s->low, at) : 0, to = high ? decimal(s->high, at) : 9;
    uint32_t end = low_fine && high_fine ? AK_BUILD_EMPTY : AK_BUILD_NOTHING, more[3] = { 0 };
    bool only_zero = decimals_left(s, at) == 0;
    if (only_zero && !s->c->reading)
        return end;
    if (only_zero)
        to = from > 0 ? from - 1 : 0; /* no digit where the bound wants one above 0 */
    if (only_zero && from > 0)
        return end;
    if (low && high && from == to) {
        more[0] = ak_build_two(b, digit(s, from, from), fraction(s, at + 1, true, true));
    } else if (from <= to) {
        more[0] = low ? ak_build_two(b, digit(s, from, from),
                                     fraction(s, at + 1, true, high && from == to)) :
                        (uint32_t)AK_BUILD_NOTHING;
        more[1] = high && !(low && from == to) ?
                      ak_build_two(b, digit(s, to, to),
                                   fraction(s, at + 1, false, high && to == decimal(s->high, at))) :
                      (uint32_t)AK_BUILD_NOTHING;
        unsigned first = from + (low ? 1 : 0), last = high ? to : to + 1;
        if (last > first)
            more[2] = ak_build_two(b, digit(s, first, last - 1), fraction(s, at + 1, false, false));
    }
    uint32_t next = ak_build_choice(b, more, 3);
    if (at == 0)
        next = ak_build_two(b, ak_build_text(b, "."), next);
    return ak_build_either(b, end, next);
}

static uint32_t fraction(struct sizes *s, size_t at, bool low, bool high)
{
    if (at > 0 && low && at >= s->low->n_after && !s->low_strict)
        low = false; /* whatever follows, it is no smaller */
    if (!low && !high)
        return free_decimals(s, at);
    at = at < s->n_after ? at : s->n_after;
    uint32_t *rule = &s->rules[at * 4 + (size_t)low * 2 + high];
    if (*rule == UINT32_MAX) {
        *rule = ak_build_rule(s->b, "", 0);
        uint32_t which = *rule;
        ak_build_define(s->b, which, fraction_body(s, at, low, high));
    }
    return ak_build_call(s->b, *rule);
}

/* The number is complete but for what is behind the point. */
static uint32_t after_point(struct sizes *s, bool low, bool high)
{
    if (!s->integer)
        return fraction(s, 0, low, high);
    uint32_t zeros = ak_build_two(s->b, ak_build_text(s->b, "."),
                                  ak_build_repeat(s->b, digit(s, 0, 0), 1, AK_MANY));
    return s->c->reading ? ak_build_repeat(s->b, zeros, 0, 1) : (uint32_t)AK_BUILD_EMPTY;
}

/* Digit `at` of those before the point and all that follows; built from the last digit on,
 * so that long bounds need no recursion. */
static uint32_t before_point(struct sizes *s, bool low, bool high)
{
    struct ak_build *b = s->b;
    size_t n = s->length;
    uint32_t held[2][2]; /* what follows, held to [low][high] */
    for (int l = 0; l < 2; l++)
        for (int h = 0; h < 2; h++)
            held[l][h] =
                (l && !low) || (h && !high) ? (uint32_t)AK_BUILD_NOTHING : after_point(s, l, h);
    uint32_t end = held[0][0];
    for (size_t at = n; at-- > 0;) {
        uint32_t next[2][2] = { { 0 } };
        unsigned least = at == 0 && n > 1;
        for (int l = 0; l < 2; l++) {
            for (int h = 0; h < 2; h++) {
                if ((l && !low) || (h && !high))
                    continue;
                if (!l && !h) {
                    next[0][0] = ak_build_two(
                        b,
                        ak_build_two(b, digit(s, least, 9),
                                     ak_build_repeat(b, digit(s, 0, 9), (uint32_t)(n - at - 1),
                                                     (uint32_t)(n - at - 1))),
                        end);
                    continue;
                }
                unsigned from =
                    l ? (unsigned)((n > s->low->n_before ? '0' : s->low->before[at]) - '0') : least;
                unsigned to =
                    h ? (unsigned)((n > s->high->n_before ? '0' : s->high->before[at]) - '0') : 9;
                uint32_t parts[3] = { 0 };
                if (from > to)
                    continue;
                if (l && h && from == to) {
                    parts[0] = ak_build_two(b, digit(s, from, from), held[1][1]);
                } else {
                    unsigned first = from + (l ? 1u : 0u), last = h ? to : to + 1;
                    parts[0] = l ? ak_build_two(b, digit(s, from, from), held[1][0]) :
                                   (uint32_t)AK_BUILD_NOTHING;
                    parts[1] = h ? ak_build_two(b, digit(s, to, to), held[0][1]) :
                                   (uint32_t)AK_BUILD_NOTHING;
                    if (last > first)
                        parts[2] = ak_build_two(b, digit(s, first, last - 1), held[0][0]);
                }
                next[l][h] = ak_build_choice(b, parts, 3);
            }
        }
        memcpy(held, next, sizeof held);
    }
    return held[low][high];
}

/* All sizes: those as long as a bound are held to it, those between are not. */
static uint32_t sizes(struct sizes *s)
{
    struct ak_build *b = s->b;
    static const struct ak_decimal zero = { 0 };
    struct ak_part_list list = { 0 };
    if (!s->low)
        s->low = &zero;
    size_t low = s->low->n_before > 0 ? s->low->n_before : 1,
           high = s->high && s->high->n_before > 0 ? s->high->n_before : 1;
    size_t n_low = s->low->n_after, n_high = s->high ? s->high->n_after : 0;
    s->n_after = ak_max_size(n_low, n_high);
    if (s->decimals != AK_MANY)
        s->n_after = ak_max_size(s->n_after, s->decimals);
    s->n_after++;
    size_t n_rules = (s->n_after + 1) * 4;
    s->rules = ak_alloc(n_rules, sizeof *s->rules);
    if (!s->rules) {
        b->status = ak_build_ok(b) ? ak_fail_memory(b->error, "a schema", 0) : b->status;
        return AK_BUILD_NOTHING;
    }
    memset(s->rules, 0xff, n_rules * sizeof *s->rules);
    s->length = low;
    ak_build_append(b, &list, before_point(s, true, s->high && high == low));
    if (!s->high || high > low + 1) {
        /* longer than the one and, where there is another bound, shorter than it */
        uint32_t most = s->high       ? (uint32_t)high - 2 :
                        s->c->reading ? AK_MANY :
                                        (uint32_t)ak_max_size(MOST_WRITTEN - 1, low + 1);
        uint32_t whole = ak_build_two(b, digit(s, 1, 9),
                                      ak_build_repeat(b, digit(s, 0, 9), (uint32_t)low, most));
        ak_build_append(b, &list, ak_build_two(b, whole, after_point(s, false, false)));
    }
    if (s->high && high > low) {
        s->length = high;
        ak_build_append(b, &list, before_point(s, false, true));
    }
    uint32_t part = ak_build_choice(b, list.items, list.n);
    ak_free(list.items);
    ak_free(s->rules);
    return part;
}

uint32_t ak_schema_digits(struct ak_compiler *c, const struct ak_number_range *r)
{
    struct ak_build *b = &c->build;
    bool below = !r->has_low || r->low.negative, above = !r->has_high || !r->high.negative;
    uint32_t positive = AK_BUILD_NOTHING, negative = AK_BUILD_NOTHING;
    struct sizes s = { .c = c, .b = b, .integer = r->integer, .decimals = r->decimals };
    if (above) {
        s.low = r->has_low && !r->low.negative ? &r->low : NULL;
        s.low_strict = s.low && r->low_strict;
        s.high = r->has_high ? &r->high : NULL;
        s.high_strict = s.high && r->high_strict;
        positive = sizes(&s);
    }
    if (below) {
        /* by size, the bounds change places */
        s.low = r->has_high && (r->high.negative ||
                                (r->high.n_before + r->high.n_after == 0 && r->high_strict)) ?
                    &r->high :
                    NULL;
        s.low_strict = s.low && r->high_strict;
        s.high = r->has_low ? &r->low : NULL;
        s.high_strict = s.high && r->low_strict;
        negative = ak_build_two(b, ak_build_text(b, "-"), sizes(&s));
    }
    return ak_build_either(b, positive, negative);
}

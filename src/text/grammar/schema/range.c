/* Grammar of the decimal numbers between two bounds (minimum, maximum and their exclusive forms),
 * digit by digit. Used by number.c.
 *
 * As long as the digits so far equal those of a bound, the bound limits the next digit; after the
 * first difference, digits are free. Exponents are not accepted: 5e2 is refused. */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/schema/compiler.h"

/* What the digits so far say: they equal those of a bound, and all those after the point are 0. */
enum { IS_LOW = 1, IS_HIGH = 2, IS_WHOLE = 4, N_STATES = 8 };

/* Numbers without a sign, between `low` and `high`; NULL: no bound. */
struct magnitudes {
    struct ak_schema_compiler *c;
    struct ak_grammar_builder *b;
    const struct ak_schema_decimal *low, *high;
    bool low_strict, high_strict;
    bool integer, fraction; /* fraction: no integers, so a digit after the point is not 0 */
    uint32_t decimals;      /* digits after the point, at most; AK_GRAMMAR_UNBOUNDED: no limit */
    size_t length;          /* digits before the point */
    size_t n_positions; /* positions after the point with rules of their own; later ones repeat */
    /* rules of the digits after the point, [n_positions + 1][N_STATES]; none: UINT32_MAX */
    uint32_t *rules;
};

static uint32_t build_digit(struct magnitudes *s, unsigned from, unsigned to)
{
    return from > to ?
               (uint32_t)AK_GB_NOTHING :
               ak_gb_byte_range(s->b, (unsigned char)('0' + from), (unsigned char)('0' + to));
}

static uint32_t count_decimals_left(const struct magnitudes *s, size_t at)
{
    if (s->decimals == AK_GRAMMAR_UNBOUNDED)
        return s->c->reading                     ? AK_GRAMMAR_UNBOUNDED :
               at < AK_SCHEMA_WRITTEN_DIGITS_MAX ? (uint32_t)(AK_SCHEMA_WRITTEN_DIGITS_MAX - at) :
                                                   0;
    return at < s->decimals ? s->decimals - (uint32_t)at : 0;
}

/* Decimals that are not all 0: the last of them is written. */
static uint32_t build_free_fraction(struct magnitudes *s, size_t at)
{
    struct ak_grammar_builder *b = s->b;
    uint32_t left = count_decimals_left(s, at);
    uint32_t exprs[] = {
        at == 0 ? ak_gb_text(b, ".") : (uint32_t)AK_GB_EMPTY,
        ak_gb_repeat(b, build_digit(s, 0, 9), 0, left == AK_GRAMMAR_UNBOUNDED ? left : left - 1),
        build_digit(s, 1, 9),
        s->c->reading ? ak_gb_repeat(b, build_digit(s, 0, 0), 0, AK_GRAMMAR_UNBOUNDED) :
                        (uint32_t)AK_GB_EMPTY,
    };
    return left > 0 ? ak_gb_sequence(b, exprs, 4) : (uint32_t)AK_GB_NOTHING;
}

/* What may follow `at` decimals once no bound limits them; at = 0: the point comes first. */
static uint32_t build_free_decimals(struct magnitudes *s, size_t at)
{
    struct ak_grammar_builder *b = s->b;
    uint32_t left = count_decimals_left(s, at), zero = build_digit(s, 0, 0);
    uint32_t zeros = s->c->reading && s->decimals != AK_GRAMMAR_UNBOUNDED ?
                         ak_gb_repeat(b, zero, 0, AK_GRAMMAR_UNBOUNDED) :
                         (uint32_t)AK_GB_EMPTY;
    if (at > 0)
        return ak_gb_concat(b, ak_gb_repeat(b, build_digit(s, 0, 9), 0, left), zeros);
    uint32_t some = left > 0 ?
                        ak_gb_concat(b, ak_gb_repeat(b, build_digit(s, 0, 9), 1, left), zeros) :
                    s->c->reading ? ak_gb_repeat(b, zero, 1, AK_GRAMMAR_UNBOUNDED) :
                                    (uint32_t)AK_GB_NOTHING;
    return ak_gb_repeat(b, ak_gb_concat(b, ak_gb_text(b, "."), some), 0, 1);
}

static unsigned get_decimal(const struct ak_schema_decimal *d, size_t at)
{
    return at < d->n_fraction ? (unsigned)(d->fraction[at] - '0') : 0;
}

/* What may follow `at` decimals in a state. */
static uint32_t build_fraction(struct magnitudes *s, size_t at, unsigned state);

/* A digit after `at` decimals, of first … last, and what follows it. */
static uint32_t build_decimal(struct magnitudes *s, size_t at, unsigned first, unsigned last,
                              unsigned state)
{
    struct ak_grammar_builder *b = s->b;
    uint32_t zero = AK_GB_NOTHING;
    if (first > last)
        return AK_GB_NOTHING;
    if (first == 0 && (state & IS_WHOLE)) {
        zero = ak_gb_concat(b, build_digit(s, 0, 0), build_fraction(s, at + 1, state));
        first = 1;
    }
    if (first > last)
        return zero;
    return ak_gb_either(b, zero,
                        ak_gb_concat(b, build_digit(s, first, last),
                                     build_fraction(s, at + 1, state & ~(unsigned)IS_WHOLE)));
}

static uint32_t build_fraction_body(struct magnitudes *s, size_t at, unsigned state)
{
    struct ak_grammar_builder *b = s->b;
    bool low = state & IS_LOW, high = state & IS_HIGH;
    unsigned whole = state & IS_WHOLE;
    bool low_ended = low && at >= s->low->n_fraction,
         high_ended = high && at >= s->high->n_fraction;
    bool low_allows_end = !low || (low_ended && !s->low_strict),
         high_allows_end = !high || !high_ended || !s->high_strict;
    unsigned from = low ? get_decimal(s->low, at) : 0, to = high ? get_decimal(s->high, at) : 9;
    uint32_t end =
        low_allows_end && high_allows_end && !whole ? AK_GB_EMPTY : (uint32_t)AK_GB_NOTHING;
    uint32_t more[3] = { 0 };
    bool only_zero = count_decimals_left(s, at) == 0;
    if (only_zero && (!s->c->reading || whole))
        return end;
    if (only_zero)
        to = from > 0 ? from - 1 : 0; /* only zeros may follow: none if the bound needs more */
    if (only_zero && from > 0)
        return end;
    if (low && high && from == to) {
        more[0] = build_decimal(s, at, from, from, state);
    } else if (from <= to) {
        unsigned at_low = IS_LOW | whole | (high && from == to ? IS_HIGH : 0u),
                 at_high = whole | (high && to == get_decimal(s->high, at) ? IS_HIGH : 0u);
        unsigned first = from + (low ? 1 : 0), last = high ? to : to + 1;
        more[0] = low ? build_decimal(s, at, from, from, at_low) : (uint32_t)AK_GB_NOTHING;
        more[1] = high && !(low && from == to) ? build_decimal(s, at, to, to, at_high) :
                                                 (uint32_t)AK_GB_NOTHING;
        if (last > first)
            more[2] = build_decimal(s, at, first, last - 1, whole);
    }
    uint32_t next = ak_gb_alternation(b, more, 3);
    if (at == 0)
        next = ak_gb_concat(b, ak_gb_text(b, "."), next);
    return ak_gb_either(b, end, next);
}

static uint32_t build_fraction(struct magnitudes *s, size_t at, unsigned state)
{
    if (at > 0 && (state & IS_LOW) && at >= s->low->n_fraction && !s->low_strict)
        state &=
            ~(unsigned)IS_LOW; /* the bound is reached; further digits only add to the number */
    if (!(state & (IS_LOW | IS_HIGH)))
        return state & IS_WHOLE ? build_free_fraction(s, at) : build_free_decimals(s, at);
    at = at < s->n_positions ? at : s->n_positions;
    uint32_t *rule = &s->rules[at * N_STATES + state];
    if (*rule == UINT32_MAX) {
        *rule = ak_gb_declare_rule(s->b, "", 0);
        ak_gb_define_rule(s->b, *rule, build_fraction_body(s, at, state));
    }
    return ak_gb_rule_ref(s->b, *rule);
}

/* The decimal point and what follows it. */
static uint32_t build_after_point(struct magnitudes *s, bool low, bool high)
{
    if (!s->integer)
        return build_fraction(
            s, 0, (low ? IS_LOW : 0u) | (high ? IS_HIGH : 0u) | (s->fraction ? IS_WHOLE : 0u));
    uint32_t zeros =
        ak_gb_concat(s->b, ak_gb_text(s->b, "."),
                     ak_gb_repeat(s->b, build_digit(s, 0, 0), 1, AK_GRAMMAR_UNBOUNDED));
    return s->c->reading ? ak_gb_repeat(s->b, zeros, 0, 1) : (uint32_t)AK_GB_EMPTY;
}

/* The digits before the point and all that follows. Built from the last digit to the first, so that
 * long bounds need no recursion. */
static uint32_t build_before_point(struct magnitudes *s, bool low, bool high)
{
    struct ak_grammar_builder *b = s->b;
    size_t n = s->length;
    uint32_t rest[2][2]; /* what follows if the digits so far equal those of [low][high] */
    for (int l = 0; l < 2; l++)
        for (int h = 0; h < 2; h++)
            rest[l][h] =
                (l && !low) || (h && !high) ? (uint32_t)AK_GB_NOTHING : build_after_point(s, l, h);
    uint32_t end = rest[0][0];
    for (size_t at = n; at-- > 0;) {
        uint32_t next[2][2] = { { 0 } };
        unsigned digit_min = at == 0 && n > 1;
        for (int l = 0; l < 2; l++) {
            for (int h = 0; h < 2; h++) {
                if ((l && !low) || (h && !high))
                    continue;
                if (!l && !h) {
                    next[0][0] = ak_gb_concat(
                        b,
                        ak_gb_concat(b, build_digit(s, digit_min, 9),
                                     ak_gb_repeat(b, build_digit(s, 0, 9), (uint32_t)(n - at - 1),
                                                  (uint32_t)(n - at - 1))),
                        end);
                    continue;
                }
                unsigned from =
                    l ? (unsigned)((n > s->low->n_whole ? '0' : s->low->whole[at]) - '0') :
                        digit_min;
                unsigned to =
                    h ? (unsigned)((n > s->high->n_whole ? '0' : s->high->whole[at]) - '0') : 9;
                uint32_t exprs[3] = { 0 };
                if (from > to)
                    continue;
                if (l && h && from == to) {
                    exprs[0] = ak_gb_concat(b, build_digit(s, from, from), rest[1][1]);
                } else {
                    unsigned first = from + (l ? 1u : 0u), last = h ? to : to + 1;
                    exprs[0] = l ? ak_gb_concat(b, build_digit(s, from, from), rest[1][0]) :
                                   (uint32_t)AK_GB_NOTHING;
                    exprs[1] = h ? ak_gb_concat(b, build_digit(s, to, to), rest[0][1]) :
                                   (uint32_t)AK_GB_NOTHING;
                    if (last > first)
                        exprs[2] = ak_gb_concat(b, build_digit(s, first, last - 1), rest[0][0]);
                }
                next[l][h] = ak_gb_alternation(b, exprs, 3);
            }
        }
        memcpy(rest, next, sizeof rest);
    }
    return rest[low][high];
}

/* Numbers of every length: those as long as a bound are compared with it, the digits of those in
 * between are free. */
static uint32_t build_magnitudes(struct magnitudes *s)
{
    struct ak_grammar_builder *b = s->b;
    static const struct ak_schema_decimal zero = { 0 };
    struct ak_gb_list list = { 0 };
    if (!s->low)
        s->low = &zero;
    size_t low = s->low->n_whole > 0 ? s->low->n_whole : 1,
           high = s->high && s->high->n_whole > 0 ? s->high->n_whole : 1;
    size_t n_low = s->low->n_fraction, n_high = s->high ? s->high->n_fraction : 0;
    s->n_positions = ak_max_size(n_low, n_high);
    if (s->decimals != AK_GRAMMAR_UNBOUNDED)
        s->n_positions = ak_max_size(s->n_positions, s->decimals);
    s->n_positions++;
    size_t n_rules = (s->n_positions + 1) * N_STATES;
    s->rules = ak_alloc(n_rules, sizeof *s->rules);
    if (!s->rules) {
        b->status = ak_gb_ok(b) ? ak_fail_memory(b->error, "a schema", 0) : b->status;
        return AK_GB_NOTHING;
    }
    memset(s->rules, 0xff, n_rules * sizeof *s->rules);
    s->length = low;
    ak_gb_append(b, &list, build_before_point(s, true, s->high && high == low));
    if (!s->high || high > low + 1) {
        /* more digits than `low` and, if there is an upper bound, fewer than `high` */
        uint32_t digits_max =
            s->high       ? (uint32_t)high - 2 :
            s->c->reading ? AK_GRAMMAR_UNBOUNDED :
                            (uint32_t)ak_max_size(AK_SCHEMA_WRITTEN_DIGITS_MAX - 1, low + 1);
        uint32_t whole =
            ak_gb_concat(b, build_digit(s, 1, 9),
                         ak_gb_repeat(b, build_digit(s, 0, 9), (uint32_t)low, digits_max));
        ak_gb_append(b, &list, ak_gb_concat(b, whole, build_after_point(s, false, false)));
    }
    if (s->high && high > low) {
        s->length = high;
        ak_gb_append(b, &list, build_before_point(s, false, true));
    }
    uint32_t expr = ak_gb_alternation(b, list.items, list.n);
    ak_free(list.items);
    ak_free(s->rules);
    return expr;
}

uint32_t ak_schema_build_number_range(struct ak_schema_compiler *c,
                                      const struct ak_schema_number_range *r)
{
    struct ak_grammar_builder *b = &c->builder;
    bool has_negative = !r->has_low || r->low.negative,
         has_positive = !r->has_high || !r->high.negative;
    uint32_t positive = AK_GB_NOTHING, negative = AK_GB_NOTHING;
    struct magnitudes s = {
        .c = c, .b = b, .integer = r->integer, .fraction = r->fraction, .decimals = r->decimals
    };
    if (has_positive) {
        s.low = r->has_low && !r->low.negative ? &r->low : NULL;
        s.low_strict = s.low && r->low_strict;
        s.high = r->has_high ? &r->high : NULL;
        s.high_strict = s.high && r->high_strict;
        positive = build_magnitudes(&s);
    }
    if (has_negative) {
        /* negated, the bounds are swapped */
        s.low = r->has_high && (r->high.negative ||
                                (r->high.n_whole + r->high.n_fraction == 0 && r->high_strict)) ?
                    &r->high :
                    NULL;
        s.low_strict = s.low && r->high_strict;
        s.high = r->has_low ? &r->low : NULL;
        s.high_strict = s.high && r->low_strict;
        negative = ak_gb_concat(b, ak_gb_text(b, "-"), build_magnitudes(&s));
    }
    return ak_gb_either(b, positive, negative);
}

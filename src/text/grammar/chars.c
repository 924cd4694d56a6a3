/* Character sets as ranges, and their spellings. UTF-8 and \uXXXX are numbers written in base 64
 * and base 16, so one routine builds both, digit by digit. Digits that may be followed by the same
 * remaining digits share an expression. */
#include "text/grammar/chars.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/array.h"

enum {
    SURROGATE_FIRST = 0xd800,
    SURROGATE_LAST = 0xdfff,
    LOW_SURROGATE = 0xdc00,
    PLANE_1 = 0x10000
};

void ak_grammar_char_set_add(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                             uint32_t low, uint32_t high)
{
    if (low > high || !ak_gb_ok(b))
        return;
    if (!ak_reserve(&s->ranges, &s->capacity, s->n, 1)) {
        b->status = ak_fail_memory(b->error, "a set of characters", 0);
        return;
    }
    s->ranges[s->n++] = (struct ak_grammar_char_range){ low, high };
}

static int compare_low(const void *a, const void *b)
{
    uint32_t x = ((const struct ak_grammar_char_range *)a)->low,
             y = ((const struct ak_grammar_char_range *)b)->low;
    return (x > y) - (x < y);
}

/* Appends a range to a normalized set; `low` is not below that of the last range. */
static void append_range(struct ak_grammar_char_set *s, uint32_t low, uint32_t high)
{
    if (s->n > 0 && low <= s->ranges[s->n - 1].high + 1) {
        if (high > s->ranges[s->n - 1].high)
            s->ranges[s->n - 1].high = high;
    } else {
        s->ranges[s->n++] = (struct ak_grammar_char_range){ low, high };
    }
}

void ak_grammar_char_set_normalize(struct ak_grammar_char_set *s)
{
    uint32_t n = s->n;
    if (n > 0)
        qsort(s->ranges, n, sizeof *s->ranges, compare_low);
    s->n = 0;
    for (uint32_t i = 0; i < n; i++)
        append_range(s, s->ranges[i].low, s->ranges[i].high);
}

void ak_grammar_char_set_copy(struct ak_grammar_builder *b, struct ak_grammar_char_set *to,
                              const struct ak_grammar_char_set *from)
{
    to->n = 0;
    for (uint32_t i = 0; i < from->n; i++)
        ak_grammar_char_set_add(b, to, from->ranges[i].low, from->ranges[i].high);
}

void ak_grammar_char_set_free(struct ak_grammar_char_set *s)
{
    ak_free(s->ranges);
    *s = (struct ak_grammar_char_set){ 0 };
}

void ak_grammar_char_set_invert(struct ak_grammar_builder *b, struct ak_grammar_char_set *s)
{
    struct ak_grammar_char_set out = { 0 };
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->ranges[i].low > next)
            ak_grammar_char_set_add(b, &out, next, s->ranges[i].low - 1);
        next = s->ranges[i].high + 1;
    }
    if (next <= AK_GRAMMAR_CODE_POINT_MAX)
        ak_grammar_char_set_add(b, &out, next, AK_GRAMMAR_CODE_POINT_MAX);
    ak_grammar_char_set_free(s);
    *s = out;
}

void ak_grammar_char_set_fill(struct ak_grammar_builder *b, struct ak_grammar_char_set *s)
{
    s->n = 0;
    ak_grammar_char_set_add(b, s, 0, AK_GRAMMAR_CODE_POINT_MAX);
}

void ak_grammar_char_set_clip(struct ak_grammar_char_set *s, uint32_t low, uint32_t high)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct ak_grammar_char_range r = s->ranges[i];
        r.low = r.low < low ? low : r.low;
        r.high = r.high > high ? high : r.high;
        if (r.low <= r.high)
            s->ranges[kept++] = r;
    }
    s->n = kept;
}

bool ak_grammar_char_set_has(const struct ak_grammar_char_set *s, uint32_t c)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (s->ranges[middle].high < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n && s->ranges[low].low <= c;
}

static bool sets_equal(const struct ak_grammar_char_set *a, const struct ak_grammar_char_set *b)
{
    return a->n == b->n &&
           (a->n == 0 || memcmp(a->ranges, b->ranges, a->n * sizeof *a->ranges) == 0);
}

/* ---- numbers digit by digit --------------------------------------------- */
/* From digit to byte: the value to add; HEX: hexadecimal digits in both cases. */
enum alphabet {
    LEAD_2 = 0xc0,
    LEAD_3 = 0xe0,
    LEAD_4 = 0xf0,
    CONTINUATION = 0x80,
    ASCII = 0,
    HEX = -1
};

static void add_digit(struct ak_grammar_byte_set *set, enum alphabet alphabet, uint32_t digit)
{
    uint32_t byte = alphabet == HEX ? (digit < 10 ? '0' + digit : 'a' + digit - 10) :
                                      (uint32_t)alphabet + digit;
    set->bits[byte >> 6] |= UINT64_C(1) << (byte & 63);
    if (alphabet == HEX && digit >= 10) {
        byte -= 'a' - 'A';
        set->bits[byte >> 6] |= UINT64_C(1) << (byte & 63);
    }
}

/* Digits that may be followed by the same remaining digits. */
struct group {
    struct ak_grammar_char_set rest;
    struct ak_grammar_byte_set digits;
};

/* A number of the set as 1 + n_more digits of `bits` bits each. The first digit uses alphabet
 * `first`, the others `more`. */
static uint32_t build_digits(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s,
                             unsigned n_more, unsigned bits, enum alphabet first,
                             enum alphabet more)
{
    unsigned shift = n_more * bits;
    uint32_t n_groups = 0, expr = AK_GB_NOTHING;
    struct group *groups = s->n > 0 ? ak_alloc(128, sizeof *groups) : NULL;
    struct ak_grammar_char_set rest = { 0 };
    if (!groups) {
        if (s->n > 0 && ak_gb_ok(b))
            b->status = ak_fail_memory(b->error, "a set of characters", 0);
        return AK_GB_NOTHING;
    }
    for (uint32_t d = s->ranges[0].low >> shift;
         d <= s->ranges[s->n - 1].high >> shift && ak_gb_ok(b); d++) {
        uint32_t base = d << shift, i = 0;
        ak_grammar_char_set_copy(b, &rest, s);
        ak_grammar_char_set_clip(&rest, base, base + ((uint32_t)1 << shift) - 1);
        if (rest.n == 0)
            continue;
        for (uint32_t j = 0; j < rest.n; j++)
            rest.ranges[j] = (struct ak_grammar_char_range){ rest.ranges[j].low - base,
                                                             rest.ranges[j].high - base };
        while (i < n_groups && !sets_equal(&groups[i].rest, &rest))
            i++;
        if (i == n_groups)
            ak_grammar_char_set_copy(b, &groups[n_groups++].rest, &rest);
        add_digit(&groups[i].digits, first, d);
    }
    for (uint32_t i = 0; i < n_groups; i++) {
        uint32_t follows = n_more == 0 ?
                               (uint32_t)AK_GB_EMPTY :
                               build_digits(b, &groups[i].rest, n_more - 1, bits, more, more);
        expr = ak_gb_either(b, expr, ak_gb_concat(b, ak_gb_bytes(b, &groups[i].digits), follows));
        ak_grammar_char_set_free(&groups[i].rest);
    }
    ak_grammar_char_set_free(&rest);
    ak_free(groups);
    return expr;
}

/* The same for the numbers of the set from `low` to `high`. */
static uint32_t build_digit_range(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s,
                                  uint32_t low, uint32_t high, unsigned n_more, unsigned bits,
                                  enum alphabet first, enum alphabet more)
{
    struct ak_grammar_char_set some = { 0 };
    ak_grammar_char_set_copy(b, &some, s);
    ak_grammar_char_set_clip(&some, low, high);
    uint32_t expr = build_digits(b, &some, n_more, bits, first, more);
    ak_grammar_char_set_free(&some);
    return expr;
}

uint32_t ak_gb_chars(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s)
{
    uint32_t exprs[] = {
        build_digit_range(b, s, 0, 0x7f, 0, 7, ASCII, ASCII),
        build_digit_range(b, s, 0x80, 0x7ff, 1, 6, LEAD_2, CONTINUATION),
        build_digit_range(b, s, 0x800, SURROGATE_FIRST - 1, 2, 6, LEAD_3, CONTINUATION),
        build_digit_range(b, s, SURROGATE_LAST + 1, 0xffff, 2, 6, LEAD_3, CONTINUATION),
        build_digit_range(b, s, PLANE_1, AK_GRAMMAR_CODE_POINT_MAX, 3, 6, LEAD_4, CONTINUATION),
    };
    return ak_gb_alternation(b, exprs, sizeof exprs / sizeof *exprs);
}

/* ---- JSON strings ------------------------------------------------------- */
static uint32_t build_hex_escapes(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s,
                                  uint32_t low, uint32_t high)
{
    uint32_t number = build_digit_range(b, s, low, high, 3, 4, HEX, HEX);
    return number == AK_GB_NOTHING ? number : ak_gb_concat(b, ak_gb_text(b, "\\u"), number);
}

/* High surrogates that may be followed by the same low ones. */
struct pairs {
    struct ak_grammar_char_set high, low;
};

static uint32_t build_surrogate_pairs(struct ak_grammar_builder *b,
                                      const struct ak_grammar_char_set *s)
{
    enum { N_HIGH_SURROGATES = 1024 };
    uint32_t n = 0, expr = AK_GB_NOTHING;
    struct pairs *pairs = ak_alloc(N_HIGH_SURROGATES, sizeof *pairs);
    struct ak_grammar_char_set low = { 0 };
    if (!pairs) {
        b->status = ak_gb_ok(b) ? ak_fail_memory(b->error, "a set of characters", 0) : b->status;
        return AK_GB_NOTHING;
    }
    for (uint32_t h = 0; h < N_HIGH_SURROGATES && ak_gb_ok(b); h++) {
        uint32_t base = PLANE_1 + h * 1024, i = 0;
        ak_grammar_char_set_copy(b, &low, s);
        ak_grammar_char_set_clip(&low, base, base + 1023);
        if (low.n == 0)
            continue;
        for (uint32_t j = 0; j < low.n; j++)
            low.ranges[j] =
                (struct ak_grammar_char_range){ low.ranges[j].low - base + LOW_SURROGATE,
                                                low.ranges[j].high - base + LOW_SURROGATE };
        while (i < n && !sets_equal(&pairs[i].low, &low))
            i++;
        if (i == n)
            ak_grammar_char_set_copy(b, &pairs[n++].low, &low);
        ak_grammar_char_set_add(b, &pairs[i].high, SURROGATE_FIRST + h, SURROGATE_FIRST + h);
    }
    for (uint32_t i = 0; i < n; i++) {
        ak_grammar_char_set_normalize(&pairs[i].high);
        expr = ak_gb_either(b, expr,
                            ak_gb_concat(b, build_hex_escapes(b, &pairs[i].high, 0, 0xffff),
                                         build_hex_escapes(b, &pairs[i].low, 0, 0xffff)));
        ak_grammar_char_set_free(&pairs[i].high);
        ak_grammar_char_set_free(&pairs[i].low);
    }
    ak_grammar_char_set_free(&low);
    ak_free(pairs);
    return expr;
}

/* Characters with a short escape, and its letter. JSON does not require an escape for the slash. */
static const char short_escapes[][2] = { { '"', '"' },  { '\\', '\\' }, { '\b', 'b' },
                                         { '\f', 'f' }, { '\n', 'n' },  { '\r', 'r' },
                                         { '\t', 't' }, { '/', '/' } };

static uint32_t build_short_escapes(struct ak_grammar_builder *b,
                                    const struct ak_grammar_char_set *s, bool any)
{
    struct ak_grammar_byte_set letters = { { 0 } };
    for (size_t i = 0; i < sizeof short_escapes / sizeof *short_escapes; i++) {
        unsigned char c = (unsigned char)short_escapes[i][0],
                      letter = (unsigned char)short_escapes[i][1];
        if (ak_grammar_char_set_has(s, c) && (any || c != '/'))
            letters.bits[letter >> 6] |= UINT64_C(1) << (letter & 63);
    }
    uint32_t expr = ak_gb_bytes(b, &letters);
    return expr == AK_GB_NOTHING ? expr : ak_gb_concat(b, ak_gb_text(b, "\\"), expr);
}

/* `plain`: characters that need no escape; otherwise those that only \u00XX can spell. */
static uint32_t build_unescaped(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s,
                                bool plain)
{
    struct ak_grammar_char_set some = { 0 };
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t low = s->ranges[i].low, high = s->ranges[i].high;
        for (; low <= high && low < 128; low++) {
            bool control = low < 0x20,
                 is_short = low == '\b' || low == '\f' || low == '\n' || low == '\r' || low == '\t';
            if (plain ? !control && low != '"' && low != '\\' : control && !is_short)
                ak_grammar_char_set_add(b, &some, low, low);
        }
        if (plain)
            ak_grammar_char_set_add(b, &some, low, high);
    }
    ak_grammar_char_set_normalize(&some);
    uint32_t expr = plain ? ak_gb_chars(b, &some) : build_hex_escapes(b, &some, 0, 0x1f);
    ak_grammar_char_set_free(&some);
    return expr;
}

uint32_t ak_gb_json_chars(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s,
                          bool any)
{
    uint32_t exprs[5] = { build_unescaped(b, s, true), build_short_escapes(b, s, any) };
    if (any) {
        exprs[2] = build_hex_escapes(b, s, 0, SURROGATE_FIRST - 1);
        exprs[3] = build_hex_escapes(b, s, SURROGATE_LAST + 1, 0xffff);
        exprs[4] = build_surrogate_pairs(b, s);
    } else {
        exprs[2] = build_unescaped(b, s, false);
    }
    return ak_gb_alternation(b, exprs, sizeof exprs / sizeof *exprs);
}

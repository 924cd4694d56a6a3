#include "grammar/chars.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    SURROGATE_FIRST = 0xd800,
    SURROGATE_LAST = 0xdfff,
    LOW_SURROGATE = 0xdc00,
    PLANE_1 = 0x10000
};

void ak_char_set_add(struct ak_build *b, struct ak_char_set *s, uint32_t low, uint32_t high)
{
    if (low > high || !ak_build_ok(b))
        return;
    if (s->n == s->room) {
        struct ak_char_range *grown = ak_realloc(s->ranges, (size_t)s->room * 2 + 8, sizeof *grown);
        if (!grown) {
            b->status = ak_fail_memory(b->error, "a set of characters", 0);
            return;
        }
        s->ranges = grown;
        s->room = s->room * 2 + 8;
    }
    s->ranges[s->n++] = (struct ak_char_range){ low, high };
}

static int by_low(const void *a, const void *b)
{
    uint32_t x = ((const struct ak_char_range *)a)->low, y = ((const struct ak_char_range *)b)->low;
    return (x > y) - (x < y);
}

/* Adds a range to settled ones that lie before it. */
static void append(struct ak_char_set *s, uint32_t low, uint32_t high)
{
    if (s->n > 0 && low <= s->ranges[s->n - 1].high + 1) {
        if (high > s->ranges[s->n - 1].high)
            s->ranges[s->n - 1].high = high;
    } else {
        s->ranges[s->n++] = (struct ak_char_range){ low, high };
    }
}

void ak_char_set_settle(struct ak_char_set *s)
{
    uint32_t n = s->n;
    if (n > 0)
        qsort(s->ranges, n, sizeof *s->ranges, by_low);
    s->n = 0;
    for (uint32_t i = 0; i < n; i++)
        append(s, s->ranges[i].low, s->ranges[i].high);
}

void ak_char_set_copy(struct ak_build *b, struct ak_char_set *to, const struct ak_char_set *from)
{
    to->n = 0;
    for (uint32_t i = 0; i < from->n; i++)
        ak_char_set_add(b, to, from->ranges[i].low, from->ranges[i].high);
}

void ak_char_set_free(struct ak_char_set *s)
{
    ak_free(s->ranges);
    *s = (struct ak_char_set){ 0 };
}

void ak_char_set_invert(struct ak_build *b, struct ak_char_set *s)
{
    struct ak_char_set out = { 0 };
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->ranges[i].low > next)
            ak_char_set_add(b, &out, next, s->ranges[i].low - 1);
        next = s->ranges[i].high + 1;
    }
    if (next <= AK_CHAR_MOST)
        ak_char_set_add(b, &out, next, AK_CHAR_MOST);
    ak_char_set_free(s);
    *s = out;
}

void ak_char_set_all(struct ak_build *b, struct ak_char_set *s)
{
    s->n = 0;
    ak_char_set_add(b, s, 0, AK_CHAR_MOST);
}

void ak_char_set_clip(struct ak_char_set *s, uint32_t low, uint32_t high)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct ak_char_range r = s->ranges[i];
        r.low = r.low < low ? low : r.low;
        r.high = r.high > high ? high : r.high;
        if (r.low <= r.high)
            s->ranges[kept++] = r;
    }
    s->n = kept;
}

bool ak_char_set_has(const struct ak_char_set *s, uint32_t c)
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

static bool equal(const struct ak_char_set *a, const struct ak_char_set *b)
{
    return a->n == b->n &&
           (a->n == 0 || memcmp(a->ranges, b->ranges, a->n * sizeof *a->ranges) == 0);
}

/* ---- numbers digit by digit --------------------------------------------- */
/* How a digit becomes a byte. */
enum alphabet {
    LEAD_2 = 0xc0,
    LEAD_3 = 0xe0,
    LEAD_4 = 0xf0,
    CONTINUATION = 0x80,
    ASCII = 0,
    HEX = -1
};

static void add_digit(struct ak_byte_set *set, enum alphabet alphabet, uint32_t digit)
{
    uint32_t byte = alphabet == HEX ? (digit < 10 ? '0' + digit : 'a' + digit - 10) :
                                      (uint32_t)alphabet + digit;
    set->bits[byte >> 6] |= UINT64_C(1) << (byte & 63);
    if (alphabet == HEX && digit >= 10) {
        byte -= 'a' - 'A';
        set->bits[byte >> 6] |= UINT64_C(1) << (byte & 63);
    }
}

/* Digits after which the same numbers may follow. */
struct group {
    struct ak_char_set rest;
    struct ak_byte_set digits;
};

/* A text of 1 + n_more digits of `bits` bits each that spells a number of the set; the
 * first has an alphabet of its own. */
static uint32_t digits(struct ak_build *b, const struct ak_char_set *s, unsigned n_more,
                       unsigned bits, enum alphabet first, enum alphabet more)
{
    unsigned shift = n_more * bits;
    uint32_t n_groups = 0, part = AK_BUILD_NOTHING;
    struct group *groups = s->n > 0 ? ak_alloc(128, sizeof *groups) : NULL;
    struct ak_char_set rest = { 0 };
    if (!groups) {
        if (s->n > 0 && ak_build_ok(b))
            b->status = ak_fail_memory(b->error, "a set of characters", 0);
        return AK_BUILD_NOTHING;
    }
    for (uint32_t d = s->ranges[0].low >> shift;
         d <= s->ranges[s->n - 1].high >> shift && ak_build_ok(b); d++) {
        uint32_t base = d << shift, i = 0;
        ak_char_set_copy(b, &rest, s);
        ak_char_set_clip(&rest, base, base + ((uint32_t)1 << shift) - 1);
        if (rest.n == 0)
            continue;
        for (uint32_t j = 0; j < rest.n; j++)
            rest.ranges[j] =
                (struct ak_char_range){ rest.ranges[j].low - base, rest.ranges[j].high - base };
        while (i < n_groups && !equal(&groups[i].rest, &rest))
            i++;
        if (i == n_groups)
            ak_char_set_copy(b, &groups[n_groups++].rest, &rest);
        add_digit(&groups[i].digits, first, d);
    }
    for (uint32_t i = 0; i < n_groups; i++) {
        uint32_t follows = n_more == 0 ? (uint32_t)AK_BUILD_EMPTY :
                                         digits(b, &groups[i].rest, n_more - 1, bits, more, more);
        part = ak_build_either(b, part,
                               ak_build_two(b, ak_build_bytes(b, &groups[i].digits), follows));
        ak_char_set_free(&groups[i].rest);
    }
    ak_char_set_free(&rest);
    ak_free(groups);
    return part;
}

/* The characters of [low, high], digit by digit. */
static uint32_t clipped(struct ak_build *b, const struct ak_char_set *s, uint32_t low,
                        uint32_t high, unsigned n_more, unsigned bits, enum alphabet first,
                        enum alphabet more)
{
    struct ak_char_set some = { 0 };
    ak_char_set_copy(b, &some, s);
    ak_char_set_clip(&some, low, high);
    uint32_t part = digits(b, &some, n_more, bits, first, more);
    ak_char_set_free(&some);
    return part;
}

uint32_t ak_build_chars(struct ak_build *b, const struct ak_char_set *s)
{
    uint32_t parts[] = {
        clipped(b, s, 0, 0x7f, 0, 7, ASCII, ASCII),
        clipped(b, s, 0x80, 0x7ff, 1, 6, LEAD_2, CONTINUATION),
        clipped(b, s, 0x800, SURROGATE_FIRST - 1, 2, 6, LEAD_3, CONTINUATION),
        clipped(b, s, SURROGATE_LAST + 1, 0xffff, 2, 6, LEAD_3, CONTINUATION),
        clipped(b, s, PLANE_1, AK_CHAR_MOST, 3, 6, LEAD_4, CONTINUATION),
    };
    return ak_build_choice(b, parts, sizeof parts / sizeof *parts);
}

/* ---- within a JSON string ----------------------------------------------- */
static uint32_t hex(struct ak_build *b, const struct ak_char_set *s, uint32_t low, uint32_t high)
{
    uint32_t number = clipped(b, s, low, high, 3, 4, HEX, HEX);
    return number == AK_BUILD_NOTHING ? number : ak_build_two(b, ak_build_text(b, "\\u"), number);
}

/* High surrogates after which the same low ones may follow. */
struct pairs {
    struct ak_char_set high, low;
};

static uint32_t surrogates(struct ak_build *b, const struct ak_char_set *s)
{
    enum { MOST = 1024 };
    uint32_t n = 0, part = AK_BUILD_NOTHING;
    struct pairs *pairs = ak_alloc(MOST, sizeof *pairs);
    struct ak_char_set low = { 0 };
    if (!pairs) {
        b->status = ak_build_ok(b) ? ak_fail_memory(b->error, "a set of characters", 0) : b->status;
        return AK_BUILD_NOTHING;
    }
    for (uint32_t h = 0; h < MOST && ak_build_ok(b); h++) {
        uint32_t base = PLANE_1 + h * 1024, i = 0;
        ak_char_set_copy(b, &low, s);
        ak_char_set_clip(&low, base, base + 1023);
        if (low.n == 0)
            continue;
        for (uint32_t j = 0; j < low.n; j++)
            low.ranges[j] = (struct ak_char_range){ low.ranges[j].low - base + LOW_SURROGATE,
                                                    low.ranges[j].high - base + LOW_SURROGATE };
        while (i < n && !equal(&pairs[i].low, &low))
            i++;
        if (i == n)
            ak_char_set_copy(b, &pairs[n++].low, &low);
        ak_char_set_add(b, &pairs[i].high, SURROGATE_FIRST + h, SURROGATE_FIRST + h);
    }
    for (uint32_t i = 0; i < n; i++) {
        ak_char_set_settle(&pairs[i].high);
        part = ak_build_either(
            b, part,
            ak_build_two(b, hex(b, &pairs[i].high, 0, 0xffff), hex(b, &pairs[i].low, 0, 0xffff)));
        ak_char_set_free(&pairs[i].high);
        ak_char_set_free(&pairs[i].low);
    }
    ak_char_set_free(&low);
    ak_free(pairs);
    return part;
}

/* Characters with an escape of their own, and the letter. JSON need not escape a slash. */
static const char short_escapes[][2] = { { '"', '"' },  { '\\', '\\' }, { '\b', 'b' },
                                         { '\f', 'f' }, { '\n', 'n' },  { '\r', 'r' },
                                         { '\t', 't' }, { '/', '/' } };

static uint32_t escapes(struct ak_build *b, const struct ak_char_set *s, bool any)
{
    struct ak_byte_set letters = { { 0 } };
    for (size_t i = 0; i < sizeof short_escapes / sizeof *short_escapes; i++) {
        unsigned char c = (unsigned char)short_escapes[i][0],
                      letter = (unsigned char)short_escapes[i][1];
        if (ak_char_set_has(s, c) && (any || c != '/'))
            letters.bits[letter >> 6] |= UINT64_C(1) << (letter & 63);
    }
    uint32_t part = ak_build_bytes(b, &letters);
    return part == AK_BUILD_NOTHING ? part : ak_build_two(b, ak_build_text(b, "\\"), part);
}

/* The characters that may stand for themselves, or those that nothing but \u00XX spells. */
static uint32_t without(struct ak_build *b, const struct ak_char_set *s, bool plain)
{
    struct ak_char_set some = { 0 };
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t low = s->ranges[i].low, high = s->ranges[i].high;
        for (; low <= high && low < 128; low++) {
            bool control = low < 0x20,
                 is_short = low == '\b' || low == '\f' || low == '\n' || low == '\r' || low == '\t';
            if (plain ? !control && low != '"' && low != '\\' : control && !is_short)
                ak_char_set_add(b, &some, low, low);
        }
        if (plain)
            ak_char_set_add(b, &some, low, high);
    }
    ak_char_set_settle(&some);
    uint32_t part = plain ? ak_build_chars(b, &some) : hex(b, &some, 0, 0x1f);
    ak_char_set_free(&some);
    return part;
}

uint32_t ak_build_json_chars(struct ak_build *b, const struct ak_char_set *s, bool any)
{
    uint32_t parts[5] = { without(b, s, true), escapes(b, s, any) };
    if (any) {
        parts[2] = hex(b, s, 0, SURROGATE_FIRST - 1);
        parts[3] = hex(b, s, SURROGATE_LAST + 1, 0xffff);
        parts[4] = surrogates(b, s);
    } else {
        parts[2] = without(b, s, false);
    }
    return ak_build_choice(b, parts, sizeof parts / sizeof *parts);
}

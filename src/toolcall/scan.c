#include "toolcall/scan.h"

#include <string.h>

/* A number, by what was read last. */
enum number { SIGN, ZERO, WHOLE, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, POWER };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool in_object(const struct ak_scan *s)
{
    return s->depth && s->objects >> (s->depth - 1) & 1;
}

static enum ak_scan_step after_value(struct ak_scan *s)
{
    s->state = AK_SCAN_AFTER;
    return s->depth ? AK_SCAN_MORE : AK_SCAN_DONE;
}

static enum ak_scan_step open(struct ak_scan *s, bool object)
{
    if (s->depth == AK_SCAN_MOST_DEPTH)
        return AK_SCAN_BAD;
    uint64_t bit = (uint64_t)1 << s->depth++;
    s->objects = object ? s->objects | bit : s->objects & ~bit;
    s->state = object ? AK_SCAN_FIRST_NAME : AK_SCAN_FIRST_VALUE;
    return AK_SCAN_MORE;
}

static enum ak_scan_step close(struct ak_scan *s, bool object)
{
    if (in_object(s) != object)
        return AK_SCAN_BAD;
    s->depth--;
    return after_value(s);
}

static enum ak_scan_step string(struct ak_scan *s, bool name)
{
    s->name = name;
    s->state = AK_SCAN_STRING;
    return AK_SCAN_MORE;
}

static enum ak_scan_step word(struct ak_scan *s, const char *rest)
{
    s->word = rest;
    s->state = AK_SCAN_WORD;
    return AK_SCAN_MORE;
}

static enum ak_scan_step value(struct ak_scan *s, char c)
{
    if (c == '{' || c == '[')
        return open(s, c == '{');
    if (c == '"')
        return string(s, false);
    if (!s->depth)
        return AK_SCAN_BAD;
    switch (c) {
    case ']': return s->state == AK_SCAN_FIRST_VALUE ? close(s, false) : AK_SCAN_BAD;
    case 't': return word(s, "rue");
    case 'f': return word(s, "alse");
    case 'n': return word(s, "ull");
    }
    if (c != '-' && !is_digit(c))
        return AK_SCAN_BAD;
    s->number = c == '-' ? SIGN : c == '0' ? ZERO : WHOLE;
    s->state = AK_SCAN_NUMBER;
    return AK_SCAN_MORE;
}

static enum ak_scan_step after(struct ak_scan *s, char c)
{
    if (c == '}' || c == ']')
        return close(s, c == '}');
    if (c != ',')
        return AK_SCAN_BAD;
    s->state = in_object(s) ? AK_SCAN_NAME : AK_SCAN_VALUE;
    return AK_SCAN_MORE;
}

/* Where a number goes on with c; -1: it does not. */
static int number_next(enum number n, char c)
{
    bool e = c == 'e' || c == 'E';
    switch (n) {
    case SIGN: return c == '0' ? ZERO : is_digit(c) ? WHOLE : -1;
    case ZERO: return c == '.' ? POINT : e ? EXPONENT : -1;
    case WHOLE: return is_digit(c) ? WHOLE : c == '.' ? POINT : e ? EXPONENT : -1;
    case POINT:
    case FRACTION: return is_digit(c) ? FRACTION : n == FRACTION && e ? EXPONENT : -1;
    case EXPONENT: return c == '+' || c == '-' ? EXPONENT_SIGN : is_digit(c) ? POWER : -1;
    case EXPONENT_SIGN:
    case POWER: return is_digit(c) ? POWER : -1;
    }
    return -1;
}

static enum ak_scan_step number(struct ak_scan *s, char c)
{
    enum number n = (enum number)s->number;
    int next = number_next(n, c);

    if (next >= 0) {
        s->number = (uint8_t)next;
        return AK_SCAN_MORE;
    }
    if (n != ZERO && n != WHOLE && n != FRACTION && n != POWER)
        return AK_SCAN_BAD;
    s->state = AK_SCAN_AFTER;
    return ak_is_blank(c) ? AK_SCAN_MORE : after(s, c);
}

static enum ak_scan_step in_string(struct ak_scan *s, char c)
{
    if (c == '\\') {
        s->state = AK_SCAN_ESCAPE;
    } else if (c == '"') {
        if (!s->name)
            return after_value(s);
        s->state = AK_SCAN_COLON;
    } else if ((unsigned char)c < 0x20) {
        return AK_SCAN_BAD;
    }
    return AK_SCAN_MORE;
}

static enum ak_scan_step escape(struct ak_scan *s, char c)
{
    if (!c || !strchr("\"\\/bfnrtu", c))
        return AK_SCAN_BAD;
    s->state = c == 'u' ? AK_SCAN_HEX : AK_SCAN_STRING;
    s->n_left = 4;
    return AK_SCAN_MORE;
}

static enum ak_scan_step hex(struct ak_scan *s, char c)
{
    if (!is_hex(c))
        return AK_SCAN_BAD;
    if (--s->n_left == 0)
        s->state = AK_SCAN_STRING;
    return AK_SCAN_MORE;
}

static enum ak_scan_step in_word(struct ak_scan *s, char c)
{
    if (c != *s->word)
        return AK_SCAN_BAD;
    if (!*++s->word)
        s->state = AK_SCAN_AFTER;
    return AK_SCAN_MORE;
}

static enum ak_scan_step name(struct ak_scan *s, char c)
{
    if (c == '"')
        return string(s, true);
    return c == '}' && s->state == AK_SCAN_FIRST_NAME ? close(s, true) : AK_SCAN_BAD;
}

enum ak_scan_step ak_scan_byte(struct ak_scan *s, char c)
{
    switch ((enum ak_scan_state)s->state) {
    case AK_SCAN_STRING: return in_string(s, c);
    case AK_SCAN_ESCAPE: return escape(s, c);
    case AK_SCAN_HEX: return hex(s, c);
    case AK_SCAN_NUMBER: return number(s, c);
    case AK_SCAN_WORD: return in_word(s, c);
    default: break;
    }
    if (ak_is_blank(c))
        return AK_SCAN_MORE;
    switch ((enum ak_scan_state)s->state) {
    case AK_SCAN_NAME:
    case AK_SCAN_FIRST_NAME: return name(s, c);
    case AK_SCAN_AFTER: return s->depth ? after(s, c) : AK_SCAN_BAD;
    case AK_SCAN_COLON: s->state = AK_SCAN_VALUE; return c == ':' ? AK_SCAN_MORE : AK_SCAN_BAD;
    default: return value(s, c);
    }
}

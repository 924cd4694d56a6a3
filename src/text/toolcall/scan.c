/* Incremental validator of JSON: one state per expected token, a bit per open container. */
#include "text/toolcall/scan.h"

#include <string.h>

/* State within a number: what was read last. */
enum number { SIGN, ZERO, WHOLE, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, POWER };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_in_object(const struct ak_tc_scan *s)
{
    return s->depth && s->objects >> (s->depth - 1) & 1;
}

static enum ak_tc_scan_result end_value(struct ak_tc_scan *s)
{
    s->state = AK_TC_SCAN_VALUE_END;
    return s->depth ? AK_TC_SCAN_MORE : AK_TC_SCAN_DONE;
}

static enum ak_tc_scan_result open_container(struct ak_tc_scan *s, bool object)
{
    if (s->depth == AK_TC_SCAN_DEPTH_MAX)
        return AK_TC_SCAN_BAD;
    uint64_t bit = (uint64_t)1 << s->depth++;
    s->objects = object ? s->objects | bit : s->objects & ~bit;
    s->state = object ? AK_TC_SCAN_FIRST_NAME : AK_TC_SCAN_FIRST_VALUE;
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result close_container(struct ak_tc_scan *s, bool object)
{
    if (is_in_object(s) != object)
        return AK_TC_SCAN_BAD;
    s->depth--;
    return end_value(s);
}

static enum ak_tc_scan_result begin_string(struct ak_tc_scan *s, bool name)
{
    s->name = name;
    s->state = AK_TC_SCAN_STRING;
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result begin_word(struct ak_tc_scan *s, const char *rest)
{
    s->word = rest;
    s->state = AK_TC_SCAN_WORD;
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result scan_value(struct ak_tc_scan *s, char c)
{
    if (c == '{' || c == '[')
        return open_container(s, c == '{');
    if (c == '"')
        return begin_string(s, false);
    if (!s->depth)
        return AK_TC_SCAN_BAD;
    switch (c) {
    case ']':
        return s->state == AK_TC_SCAN_FIRST_VALUE ? close_container(s, false) : AK_TC_SCAN_BAD;
    case 't': return begin_word(s, "rue");
    case 'f': return begin_word(s, "alse");
    case 'n': return begin_word(s, "ull");
    }
    if (c != '-' && !is_digit(c))
        return AK_TC_SCAN_BAD;
    s->number = c == '-' ? SIGN : c == '0' ? ZERO : WHOLE;
    s->state = AK_TC_SCAN_NUMBER;
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result scan_separator(struct ak_tc_scan *s, char c)
{
    if (c == '}' || c == ']')
        return close_container(s, c == '}');
    if (c != ',')
        return AK_TC_SCAN_BAD;
    s->state = is_in_object(s) ? AK_TC_SCAN_NAME : AK_TC_SCAN_VALUE;
    return AK_TC_SCAN_MORE;
}

/* The next state of a number; -1: c does not continue it. */
static int next_number_state(enum number n, char c)
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

static enum ak_tc_scan_result scan_number(struct ak_tc_scan *s, char c)
{
    enum number n = (enum number)s->number;
    int next = next_number_state(n, c);

    if (next >= 0) {
        s->number = (uint8_t)next;
        return AK_TC_SCAN_MORE;
    }
    if (n != ZERO && n != WHOLE && n != FRACTION && n != POWER)
        return AK_TC_SCAN_BAD;
    s->state = AK_TC_SCAN_VALUE_END;
    return ak_tc_is_whitespace(c) ? AK_TC_SCAN_MORE : scan_separator(s, c);
}

static enum ak_tc_scan_result scan_string(struct ak_tc_scan *s, char c)
{
    if (c == '\\') {
        s->state = AK_TC_SCAN_ESCAPE;
    } else if (c == '"') {
        if (!s->name)
            return end_value(s);
        s->state = AK_TC_SCAN_COLON;
    } else if ((unsigned char)c < 0x20) {
        return AK_TC_SCAN_BAD;
    }
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result scan_escape(struct ak_tc_scan *s, char c)
{
    if (!c || !strchr("\"\\/bfnrtu", c))
        return AK_TC_SCAN_BAD;
    s->state = c == 'u' ? AK_TC_SCAN_HEX : AK_TC_SCAN_STRING;
    s->n_left = 4;
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result scan_hex(struct ak_tc_scan *s, char c)
{
    if (!is_hex(c))
        return AK_TC_SCAN_BAD;
    if (--s->n_left == 0)
        s->state = AK_TC_SCAN_STRING;
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result scan_word(struct ak_tc_scan *s, char c)
{
    if (c != *s->word)
        return AK_TC_SCAN_BAD;
    if (!*++s->word)
        s->state = AK_TC_SCAN_VALUE_END;
    return AK_TC_SCAN_MORE;
}

static enum ak_tc_scan_result scan_name(struct ak_tc_scan *s, char c)
{
    if (c == '"')
        return begin_string(s, true);
    return c == '}' && s->state == AK_TC_SCAN_FIRST_NAME ? close_container(s, true) :
                                                           AK_TC_SCAN_BAD;
}

enum ak_tc_scan_result ak_tc_scan_byte(struct ak_tc_scan *s, char c)
{
    switch ((enum ak_tc_scan_state)s->state) {
    case AK_TC_SCAN_STRING: return scan_string(s, c);
    case AK_TC_SCAN_ESCAPE: return scan_escape(s, c);
    case AK_TC_SCAN_HEX: return scan_hex(s, c);
    case AK_TC_SCAN_NUMBER: return scan_number(s, c);
    case AK_TC_SCAN_WORD: return scan_word(s, c);
    default: break;
    }
    if (ak_tc_is_whitespace(c))
        return AK_TC_SCAN_MORE;
    switch ((enum ak_tc_scan_state)s->state) {
    case AK_TC_SCAN_NAME:
    case AK_TC_SCAN_FIRST_NAME: return scan_name(s, c);
    case AK_TC_SCAN_VALUE_END: return s->depth ? scan_separator(s, c) : AK_TC_SCAN_BAD;
    case AK_TC_SCAN_COLON:
        s->state = AK_TC_SCAN_VALUE;
        return c == ':' ? AK_TC_SCAN_MORE : AK_TC_SCAN_BAD;
    default: return scan_value(s, c);
    }
}

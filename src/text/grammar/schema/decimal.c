/* Decimal numbers of any length, as digits: bounds are compared and rounded exactly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/grammar/schema/compiler.h"
#include "base/json/wide.h"

const char *ak_schema_write_number(const json_t *number, char text[AK_SCHEMA_NUMBER_BYTES])
{
    const char *wide = ak_wide_text(number);
    if (wide)
        return wide;
    if (json_is_integer(number)) {
        snprintf(text, AK_SCHEMA_NUMBER_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
        return text;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, AK_SCHEMA_NUMBER_BYTES, "%.*g", digits, json_real_value(number));
        if (strtod(text, NULL) == json_real_value(number))
            break;
    }
    return text;
}

bool ak_schema_is_number(const json_t *value)
{
    enum {
        DIGITS_MAX = 400
    }; /* a double has 309 before the point; a rule is built for each digit */
    const char *wide = ak_wide_text(value);
    return json_is_number(value) ||
           (wide && ak_wide_is_integer(wide) && strlen(wide) <= DIGITS_MAX);
}

void ak_schema_decimal_free(struct ak_schema_decimal *d)
{
    ak_free(d->whole);
    ak_free(d->fraction);
    *d = (struct ak_schema_decimal){ 0 };
}

/* Collects the digits, then moves the point by the exponent and drops outer zeros. */
bool ak_schema_decimal_read(const char *text, struct ak_schema_decimal *out)
{
    size_t n = 0, point = 0;
    bool seen = false;
    char *digits = ak_alloc(strlen(text) + 1, 1);
    *out = (struct ak_schema_decimal){ .negative = *text == '-' };
    if (!digits)
        return false;
    text += *text == '-';
    for (; *text && *text != 'e' && *text != 'E'; text++) {
        if (*text >= '0' && *text <= '9') {
            digits[n++] = *text;
            point += !seen;
        } else {
            seen = true; /* the decimal point, which depends on the locale */
        }
    }
    long exponent = *text ? strtol(text + 1, NULL, 10) : 0, at = (long)point + exponent;
    size_t capacity = n + (size_t)labs(at) + 2;
    out->whole = ak_alloc(capacity, 1);
    out->fraction = ak_alloc(capacity, 1);
    if (!out->whole || !out->fraction) {
        ak_free(digits);
        ak_schema_decimal_free(out);
        return false;
    }
    for (long i = at < 0 ? at : 0; i < (at > (long)n ? at : (long)n); i++) {
        char digit = i >= 0 && i < (long)n ? digits[i] : '0';
        if (i >= at)
            out->fraction[out->n_fraction++] = digit;
        else if (digit != '0' || out->n_whole > 0)
            out->whole[out->n_whole++] = digit;
    }
    ak_free(digits);
    while (out->n_fraction > 0 && out->fraction[out->n_fraction - 1] == '0')
        out->n_fraction--;
    out->negative = out->negative && out->n_whole + out->n_fraction > 0;
    return true;
}

static int compare_magnitude(const struct ak_schema_decimal *a, const struct ak_schema_decimal *b)
{
    if (a->n_whole != b->n_whole)
        return a->n_whole < b->n_whole ? -1 : 1;
    int order = memcmp(a->whole, b->whole, a->n_whole);
    if (order == 0)
        order = memcmp(a->fraction, b->fraction, ak_min_size(a->n_fraction, b->n_fraction));
    if (order == 0)
        order = (a->n_fraction > b->n_fraction) - (a->n_fraction < b->n_fraction);
    return (order > 0) - (order < 0);
}

int ak_schema_decimal_compare(const struct ak_schema_decimal *a, const struct ak_schema_decimal *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? compare_magnitude(b, a) : compare_magnitude(a, b);
}

/* Adds 1 to the magnitude of an integer, or subtracts 1 unless it is 0. */
static bool add_one(struct ak_schema_decimal *d, bool up)
{
    char from = up ? '9' : '0', to = up ? '0' : '9';
    size_t i = d->n_whole;
    for (; i > 0 && d->whole[i - 1] == from; i--)
        d->whole[i - 1] = to;
    if (i > 0) {
        d->whole[i - 1] = (char)(d->whole[i - 1] + (up ? 1 : -1));
    } else if (up) {
        char *grown = ak_realloc(d->whole, d->n_whole + 2, 1);
        if (!grown)
            return false;
        memmove(grown + 1, grown, d->n_whole);
        grown[0] = '1';
        d->whole = grown;
        d->n_whole++;
    }
    if (d->n_whole > 0 && d->whole[0] == '0') {
        memmove(d->whole, d->whole + 1, --d->n_whole);
    }
    return true;
}

bool ak_schema_decimal_step(struct ak_schema_decimal *d, bool up)
{
    bool whole = d->n_fraction == 0;
    d->n_fraction = 0;
    bool fine = true;
    if (whole && d->n_whole == 0) { /* from 0 */
        d->negative = !up;
        fine = add_one(d, true);
    } else if (d->negative != up) { /* away from 0 */
        fine = add_one(d, true);
    } else if (whole) {
        fine = add_one(d, false);
    }
    d->negative = d->negative && d->n_whole > 0;
    return fine;
}

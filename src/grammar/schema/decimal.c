/* Decimal numbers of any length, as digits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/schema/schema_parts.h"

const char *ak_number_text(const json_t *number, char text[AK_NUMBER_BYTES])
{
    if (json_is_integer(number)) {
        snprintf(text, AK_NUMBER_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
        return text;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, AK_NUMBER_BYTES, "%.*g", digits, json_real_value(number));
        if (strtod(text, NULL) == json_real_value(number))
            break;
    }
    return text;
}

void ak_decimal_free(struct ak_decimal *d)
{
    ak_free(d->before);
    ak_free(d->after);
    *d = (struct ak_decimal){ 0 };
}

/* Digits around a point that is moved by the exponent. */
bool ak_decimal_read(const char *text, struct ak_decimal *out)
{
    char digits[AK_NUMBER_BYTES];
    size_t n = 0, point = 0;
    bool seen = false;
    *out = (struct ak_decimal){ .negative = *text == '-' };
    text += *text == '-';
    for (; *text && *text != 'e' && *text != 'E'; text++) {
        if (*text >= '0' && *text <= '9') {
            digits[n++] = *text;
            point += !seen;
        } else {
            seen = true; /* the point, whatever the locale has for it */
        }
    }
    long exponent = *text ? strtol(text + 1, NULL, 10) : 0, at = (long)point + exponent;
    size_t room = n + (size_t)labs(at) + 2;
    out->before = ak_alloc(room, 1);
    out->after = ak_alloc(room, 1);
    if (!out->before || !out->after) {
        ak_decimal_free(out);
        return false;
    }
    for (long i = at < 0 ? at : 0; i < (at > (long)n ? at : (long)n); i++) {
        char digit = i >= 0 && i < (long)n ? digits[i] : '0';
        if (i >= at)
            out->after[out->n_after++] = digit;
        else if (digit != '0' || out->n_before > 0)
            out->before[out->n_before++] = digit;
    }
    while (out->n_after > 0 && out->after[out->n_after - 1] == '0')
        out->n_after--;
    out->negative = out->negative && out->n_before + out->n_after > 0;
    return true;
}

static int compare_size(const struct ak_decimal *a, const struct ak_decimal *b)
{
    if (a->n_before != b->n_before)
        return a->n_before < b->n_before ? -1 : 1;
    int order = memcmp(a->before, b->before, a->n_before);
    if (order == 0)
        order = memcmp(a->after, b->after, ak_min_size(a->n_after, b->n_after));
    if (order == 0)
        order = (a->n_after > b->n_after) - (a->n_after < b->n_after);
    return (order > 0) - (order < 0);
}

int ak_decimal_compare(const struct ak_decimal *a, const struct ak_decimal *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? compare_size(b, a) : compare_size(a, b);
}

/* Adds one to the size of an integer, or takes one from it where it is not 0. */
static bool count(struct ak_decimal *d, bool up)
{
    char from = up ? '9' : '0', to = up ? '0' : '9';
    size_t i = d->n_before;
    for (; i > 0 && d->before[i - 1] == from; i--)
        d->before[i - 1] = to;
    if (i > 0) {
        d->before[i - 1] = (char)(d->before[i - 1] + (up ? 1 : -1));
    } else if (up) {
        char *grown = ak_realloc(d->before, d->n_before + 2, 1);
        if (!grown)
            return false;
        memmove(grown + 1, grown, d->n_before);
        grown[0] = '1';
        d->before = grown;
        d->n_before++;
    }
    if (d->n_before > 0 && d->before[0] == '0') {
        memmove(d->before, d->before + 1, --d->n_before);
    }
    return true;
}

bool ak_decimal_step(struct ak_decimal *d, bool up)
{
    bool whole = d->n_after == 0;
    d->n_after = 0;
    bool fine = true;
    if (whole && d->n_before == 0) { /* from 0 */
        d->negative = !up;
        fine = count(d, true);
    } else if (d->negative != up) { /* away from 0 */
        fine = count(d, true);
    } else if (whole) {
        fine = count(d, false);
    }
    d->negative = d->negative && d->n_before > 0;
    return fine;
}

/* Parses numbers and lists of token ids, and checks ids against a vocabulary. */
#include "apps/common/input.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"

bool app_parse_int(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*digits)) /* strtoll would skip whitespace */
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *out = value;
    return true;
}

bool app_parse_real(const char *text, double *out)
{
    if (*text == '\0' ||
        text[strspn(text, "0123456789+-.eE")] != '\0') /* no hexadecimal, no inf, no nan */
        return false;
    char *end;
    double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value))
        return false;
    *out = value;
    return true;
}

bool app_parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMG";
    char number[32];
    size_t n = strlen(text);
    const char *unit = n > 0 ? strchr(units, toupper((unsigned char)text[n - 1])) : NULL;
    double value, factor = 1.0;
    n -= unit != NULL;
    if (n >= sizeof number)
        return false;
    memcpy(number, text, n);
    number[n] = '\0';
    for (const char *u = units; unit && u <= unit; u++)
        factor *= 1000.0;
    if (!app_parse_real(number, &value) || !(value * factor >= 1.0 && value * factor < 1e18))
        return false;
    *out = (uint64_t)(value * factor);
    return true;
}

static bool is_separator(char c)
{
    return c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r';
}

/* Reads the id in the `n` bytes at `word`. */
static bool parse_id(const char *word, size_t n, akunu_token *out)
{
    char text[16];
    int64_t value;
    if (n >= sizeof text || memchr(word, '\0', n))
        return false;
    memcpy(text, word, n);
    text[n] = '\0';
    if (!app_parse_int(text, &value) || value < 0 || value > INT32_MAX)
        return false;
    *out = (akunu_token)value;
    return true;
}

int app_parse_ids(const char *what, const char *text, size_t n_bytes, akunu_token **ids, size_t *n)
{
    const char *p = text, *end = text + n_bytes;
    while (p < end && is_separator(*p))
        p++;
    while (end > p && is_separator(end[-1]))
        end--;
    if (end - p >= 2 && *p == '[' && end[-1] == ']') {
        p++;
        end--;
    }

    /* an id and its separator take at least two bytes */
    size_t capacity = (size_t)(end - p) / 2 + 1;
    *n = 0;
    *ids = malloc(capacity * sizeof **ids);
    if (!*ids)
        return app_fail_memory();
    while (p < end) {
        const char *word = p;
        while (p < end && !is_separator(*p))
            p++;
        if (p > word) {
            if (!parse_id(word, (size_t)(p - word), &(*ids)[*n])) {
                int shown = p - word > 32 ? 32 : (int)(p - word);
                free(*ids);
                *ids = NULL;
                return app_fail_usage("%s: '%.*s' is not a token id", what, shown, word);
            }
            ++*n;
        }
        if (p < end)
            p++;
    }
    return APP_EXIT_OK;
}

int app_check_ids(const char *what, const akunu_token *ids, size_t n, size_t n_vocab)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= n_vocab)
            return app_fail_usage("%s: %d is not a token of this model, which has 0 to %zu", what,
                                  (int)ids[i], n_vocab - 1);
    return APP_EXIT_OK;
}

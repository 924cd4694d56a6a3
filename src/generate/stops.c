#include "generate/stops.h"

ak_status ak_stops_begin(struct ak_stops *s, const char *const *texts, size_t n,
                         struct ak_error *error)
{
    if (n > AK_STOPS_MOST || (n > 0 && !texts))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%zu texts that end the text: at most %d are expected", n, AK_STOPS_MOST);
    for (size_t i = 0; i < n; i++) {
        size_t length = texts[i] ? strlen(texts[i]) : 0;
        if (length == 0 || length > AK_STOP_MOST_BYTES)
            return ak_fail(
                error, AKUNU_ERROR_ARGUMENT,
                "text %zu of those that end the text has %zu bytes: 1 to %d are expected", i + 1,
                length, AK_STOP_MOST_BYTES);
    }
    s->texts = texts;
    s->n = n;
    return AKUNU_OK;
}

void ak_stops_clear(struct ak_stops *s)
{
    ak_buffer_free(&s->held);
}

/* How many of the n bytes are before the text that ends with the last of them, the longest
 * one; n: none does. */
static size_t before_stop(const struct ak_stops *s, const char *bytes, size_t n)
{
    size_t before = n;
    for (size_t i = 0; i < s->n; i++) {
        size_t length = strlen(s->texts[i]);
        if (length <= n && n - length < before &&
            memcmp(bytes + n - length, s->texts[i], length) == 0)
            before = n - length;
    }
    return before;
}

/* How many of the last bytes begin one of the texts. */
static size_t n_begun(const struct ak_stops *s, const char *bytes, size_t n)
{
    size_t begun = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t length = ak_min_size(strlen(s->texts[i]) - 1, n);
        while (length > begun && memcmp(bytes + n - length, s->texts[i], length) != 0)
            length--;
        begun = ak_max_size(begun, length);
    }
    return begun;
}

/* Forgets what was told. */
static void forget(struct ak_stops *s)
{
    s->held.n -= s->n_told;
    if (s->held.n > 0)
        memmove(s->held.bytes, s->held.bytes + s->n_told, s->held.n);
    s->n_told = 0;
}

ak_status ak_stops_push(struct ak_stops *s, const char **text, size_t *n, bool *ended,
                        struct ak_error *error)
{
    *ended = false;
    if (s->n == 0 || *n == 0)
        return AKUNU_OK;
    forget(s);
    size_t at = s->held.n, before;
    AK_TRY(ak_buffer_add(&s->held, *text, *n, error));
    *text = s->held.bytes;
    while (at < s->held.n) {
        before = before_stop(s, s->held.bytes, ++at);
        if (before < at) {
            s->held.n = s->n_told = *n = before;
            *ended = true;
            return AKUNU_OK;
        }
    }
    s->n_told = *n = s->held.n - n_begun(s, s->held.bytes, s->held.n);
    return AKUNU_OK;
}

void ak_stops_end(struct ak_stops *s, const char **text, size_t *n)
{
    forget(s);
    *text = s->held.bytes;
    *n = s->held.n;
}

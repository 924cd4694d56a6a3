/* Stop sequences in streamed text. The buffer holds the withheld bytes, which are at most a proper
 * prefix of the longest stop sequence. */
#include "engine/generate/completion.h"

ak_status ak_gen_stops_begin(struct ak_gen_stops *s, const char *const *texts, size_t n,
                             struct ak_error *error)
{
    if (n > AK_GEN_STOPS_MAX || (n > 0 && !texts))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%zu stop sequences: at most %d are expected",
                       n, AK_GEN_STOPS_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t length = texts[i] ? strlen(texts[i]) : 0;
        if (length == 0 || length > AK_GEN_STOP_BYTES_MAX)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "stop sequence %zu has %zu bytes: 1 to %d are expected", i + 1, length,
                           AK_GEN_STOP_BYTES_MAX);
    }
    s->texts = texts;
    s->n = n;
    return AKUNU_OK;
}

void ak_gen_stops_clear(struct ak_gen_stops *s)
{
    ak_buffer_free(&s->holdback);
}

/* Number of bytes before the longest stop sequence that ends at byte n, which s->found tells; n:
 * none does. */
static size_t find_stop(struct ak_gen_stops *s, const char *bytes, size_t n)
{
    size_t before = n;
    for (size_t i = 0; i < s->n; i++) {
        size_t length = strlen(s->texts[i]);
        if (length <= n && n - length < before &&
            memcmp(bytes + n - length, s->texts[i], length) == 0) {
            before = n - length;
            s->found = i;
        }
    }
    return before;
}

/* Length of the longest end of the text that begins a stop sequence. */
static size_t find_partial_stop(const struct ak_gen_stops *s, const char *bytes, size_t n)
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

/* Drops the reported text from the buffer. */
static void drop_reported(struct ak_gen_stops *s)
{
    s->holdback.n -= s->n_reported;
    if (s->holdback.n > 0)
        memmove(s->holdback.bytes, s->holdback.bytes + s->n_reported, s->holdback.n);
    s->n_reported = 0;
}

ak_status ak_gen_stops_push(struct ak_gen_stops *s, const char **text, size_t *n, bool *ended,
                            struct ak_error *error)
{
    *ended = false;
    if (s->n == 0 || *n == 0)
        return AKUNU_OK;
    drop_reported(s);
    size_t at = s->holdback.n, before;
    AK_TRY(ak_buffer_add(&s->holdback, *text, *n, error));
    *text = s->holdback.bytes;
    while (at < s->holdback.n) {
        before = find_stop(s, s->holdback.bytes, ++at);
        if (before < at) {
            s->holdback.n = s->n_reported = *n = before;
            *ended = true;
            return AKUNU_OK;
        }
    }
    s->n_reported = *n = s->holdback.n - find_partial_stop(s, s->holdback.bytes, s->holdback.n);
    return AKUNU_OK;
}

void ak_gen_stops_end(struct ak_gen_stops *s, const char **text, size_t *n)
{
    drop_reported(s);
    *text = s->holdback.bytes;
    *n = s->holdback.n;
}

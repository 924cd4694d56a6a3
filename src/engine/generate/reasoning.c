/* Counts the tokens of reasoning, and forces its end. */
#include "engine/generate/reasoning.h"

#include <string.h>

#include "base/mem.h"

static ak_status check_marker(const char *name, const char *marker, struct ak_error *error)
{
    size_t n = marker ? strlen(marker) : 0;
    if (n == 0 || n > AK_GEN_MARKER_BYTES_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "reasoning: the marker `%s` has %zu bytes; expected 1 to %d", name, n,
                       AK_GEN_MARKER_BYTES_MAX);
    return AKUNU_OK;
}

/* Ends reasoning that has used up the budget. */
static void spend(struct ak_gen_reasoning *r)
{
    if (r->is_inside && r->left == 0 && !r->is_forcing) {
        r->is_forcing = true;
        r->n_forced = 0;
    }
}

ak_status ak_gen_reasoning_begin(struct ak_gen_reasoning *r, const struct akunu_reasoning *given,
                                 const struct ak_tokenizer *tokenizer, struct ak_error *error)
{
    *r = (struct ak_gen_reasoning){ .given = NULL };
    if (!given || given->budget < 0 || !given->begin)
        return AKUNU_OK;
    if (!tokenizer)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "reasoning: the model has no vocabulary in which to find its markers");
    AK_TRY(check_marker("begin", given->begin, error));
    AK_TRY(check_marker("end", given->end, error));
    AK_TRY(check_marker("closing", given->closing, error));
    AK_TRY(ak_tok_encode(tokenizer, given->closing, strlen(given->closing), AKUNU_PARSE_SPECIAL,
                         r->closing, AK_GEN_CLOSING_MAX, &r->n_closing, error));
    if (r->n_closing == 0 || r->n_closing > AK_GEN_CLOSING_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "reasoning: the marker `closing` has %zu tokens; expected 1 to %d",
                       r->n_closing, AK_GEN_CLOSING_MAX);
    r->given = given;
    r->tokenizer = tokenizer;
    r->left = given->budget;
    r->is_inside = given->is_open;
    r->at_start = true;
    spend(r);
    return AKUNU_OK;
}

int32_t ak_gen_reasoning_forced(const struct ak_gen_reasoning *r)
{
    return r->is_forcing ? r->closing[r->n_forced] : -1;
}

void ak_gen_reasoning_stop(struct ak_gen_reasoning *r)
{
    r->given = NULL;
    r->is_forcing = false;
}

/* ---- Markers ------------------------------------------------------------ */
static void drop(struct ak_gen_reasoning *r, size_t n)
{
    r->n_tail -= n;
    memmove(r->tail, r->tail + n, r->n_tail);
}

static bool is_whitespace(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Consumes the tail up to and with the marker, if it is there; else all that cannot begin it. */
static bool find_anywhere(struct ak_gen_reasoning *r, const char *marker)
{
    size_t n = strlen(marker);
    const char *found = memmem(r->tail, r->n_tail, marker, n);
    if (found) {
        drop(r, (size_t)(found - r->tail) + n);
        return true;
    }
    if (r->n_tail >= n)
        drop(r, r->n_tail - (n - 1));
    return false;
}

/* The same for a marker that only whitespace may precede. */
static bool find_at_start(struct ak_gen_reasoning *r, const char *marker)
{
    size_t n = strlen(marker), n_blank = 0;
    while (n_blank < r->n_tail && is_whitespace(r->tail[n_blank]))
        n_blank++;
    drop(r, n_blank);
    size_t n_common = ak_min_size(n, r->n_tail);
    if (memcmp(r->tail, marker, n_common) != 0) {
        r->at_start = false;
        r->n_tail = 0;
        return false;
    }
    if (n_common < n)
        return false;
    drop(r, n);
    return true;
}

static bool find_marker(struct ak_gen_reasoning *r)
{
    if (r->is_inside)
        return find_anywhere(r, r->given->end);
    if (r->given->begins_anywhere)
        return find_anywhere(r, r->given->begin);
    return r->at_start && find_at_start(r, r->given->begin);
}

/* Follows the markers in n more bytes. */
static void read_bytes(struct ak_gen_reasoning *r, const char *bytes, size_t n)
{
    while (n > 0) {
        size_t taken = ak_min_size(n, sizeof r->tail - r->n_tail);
        memcpy(r->tail + r->n_tail, bytes, taken);
        r->n_tail += taken;
        bytes += taken;
        n -= taken;
        while (find_marker(r)) {
            r->is_inside = !r->is_inside;
            r->at_start = true;
        }
        if (!r->is_inside && !r->at_start && !r->given->begins_anywhere)
            r->n_tail = 0;
    }
}

ak_status ak_gen_reasoning_add(struct ak_gen_reasoning *r, int32_t token, struct ak_error *error)
{
    char bytes[256];
    size_t n;
    if (!r->given)
        return AKUNU_OK;
    bool was_forced = r->is_forcing, was_inside = r->is_inside;
    if (was_forced && ++r->n_forced == r->n_closing)
        r->is_forcing = false;
    AK_TRY(ak_tok_decode(r->tokenizer, &token, 1, AKUNU_CONTINUE, bytes, sizeof bytes, &n, error));
    read_bytes(r, bytes, ak_min_size(n, sizeof bytes));
    if (was_inside && r->is_inside && !was_forced && r->left > 0)
        r->left--;
    /* `closing` may be another text than `end` */
    if (was_forced && !r->is_forcing) {
        r->is_inside = false;
        r->n_tail = 0;
        r->at_start = true;
    }
    spend(r);
    return AKUNU_OK;
}

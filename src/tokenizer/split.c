#include "base/mem.h"
#include "tokenizer/pipeline.h"
#include "base/unicode.h"
#include "base/utf8.h"

static ak_status add(struct ak_cuts *cuts, size_t begin, size_t end, bool start,
                     struct ak_error *error)
{
    if (begin == end)
        return AKUNU_OK;
    if (cuts->n == cuts->capacity) {
        size_t capacity = cuts->capacity * 2 + 16;
        struct ak_cut *list = ak_realloc(cuts->list, capacity, sizeof *list);
        if (!list)
            return ak_fail_memory(error, "cutting a text", capacity * sizeof *list);
        cuts->list = list;
        cuts->capacity = capacity;
    }
    cuts->list[cuts->n++] = (struct ak_cut){ begin, end, start };
    return AKUNU_OK;
}

/* Parts are matches and what is between them, in order; `start` is a match. */
static ak_status add_part(struct ak_work *w, size_t begin, size_t end, bool match,
                          struct ak_error *error)
{
    return add(&w->parts, begin, end, match, error);
}

static ak_status find_pattern(const struct ak_step *s, const char *text, struct ak_cut cut,
                              struct ak_matcher *m, struct ak_work *w, struct ak_error *error)
{
    size_t n = cut.end - cut.begin, at = 0, begin, end;
    const char *piece = text + cut.begin, *seen = piece;

    if (s->pattern)
        AK_TRY(ak_matcher_see(m, piece, n, &seen, error));
    while (at < n) {
        if (s->pattern) {
            AK_TRY(ak_regex_find(s->pattern, m, seen, n, at, false, &begin, &end, error));
        } else {
            const char *found = memmem(piece + at, n - at, s->literal, s->n_literal);
            begin = found ? (size_t)(found - piece) : SIZE_MAX;
            end = begin + s->n_literal;
        }
        if (begin == SIZE_MAX)
            break;
        AK_TRY(add_part(w, cut.begin + at, cut.begin + begin, s->flag, error));
        AK_TRY(add_part(w, cut.begin + begin, cut.begin + end, !s->flag, error));
        at = end;
    }
    return add_part(w, cut.begin + at, cut.end, s->flag, error);
}

/* Characters of a kind are matches one by one, others together. */
static ak_status find_characters(bool (*is)(uint32_t c), const char *text, struct ak_cut cut,
                                 struct ak_work *w, struct ak_error *error)
{
    size_t from = cut.begin;

    for (size_t at = cut.begin; at < cut.end;) {
        struct ak_utf8 c = ak_utf8_next(text + at, cut.end - at);
        if (c.valid && is(c.code)) {
            AK_TRY(add_part(w, from, at, false, error));
            AK_TRY(add_part(w, at, at + c.bytes, true, error));
            from = at + c.bytes;
        }
        at += c.bytes;
    }
    return add_part(w, from, cut.end, false, error);
}

static int word_kind(const char *text, size_t n, uint8_t *bytes)
{
    struct ak_utf8 c = ak_utf8_next(text, n);

    *bytes = c.bytes;
    if (c.valid && ak_is_whitespace(c.code))
        return 0;
    return c.valid && ak_is_word_char(c.code) ? 1 : 2;
}

/* Runs of word characters and runs of others are kept, blanks are matches. */
static ak_status find_words(const char *text, struct ak_cut cut, struct ak_work *w,
                            struct ak_error *error)
{
    for (size_t at = cut.begin; at < cut.end;) {
        uint8_t bytes;
        size_t from = at;
        int kind = word_kind(text + at, cut.end - at, &bytes), next = kind;
        while (next == kind) {
            at += bytes;
            next = at < cut.end ? word_kind(text + at, cut.end - at, &bytes) : -1;
        }
        AK_TRY(add_part(w, from, at, kind == 0, error));
    }
    return AKUNU_OK;
}

/* Makes pieces of the parts of `cut`. */
static ak_status behave(enum ak_tok_behavior behaviour, struct ak_cut cut, struct ak_work *w,
                        struct ak_error *error)
{
    const struct ak_cuts *parts = &w->parts;

    for (size_t i = 0; i < parts->n;) {
        size_t from = i, to = i + 1;
        bool match = parts->list[i].start;
        if (behaviour == AK_CONTIGUOUS)
            while (to < parts->n && parts->list[to].start == match)
                to++;
        if (behaviour == AK_MERGED_WITH_PREVIOUS && !match && to < parts->n &&
            parts->list[to].start)
            to++;
        if (behaviour == AK_MERGED_WITH_NEXT && match && to < parts->n && !parts->list[to].start)
            to++;
        size_t begin = parts->list[from].begin, end = parts->list[to - 1].end;
        if (behaviour != AK_REMOVED || !match)
            AK_TRY(add(&w->spare_cuts, begin, end, cut.start && begin == cut.begin, error));
        i = to;
    }
    return AKUNU_OK;
}

static ak_status cut_piece(const struct ak_step *s, const char *text, struct ak_cut cut,
                           struct ak_matcher *m, struct ak_work *w, struct ak_error *error)
{
    w->parts.n = 0;
    switch (s->kind) {
    case AK_STEP_DIGITS: AK_TRY(find_characters(ak_is_number, text, cut, w, error)); break;
    case AK_STEP_PUNCTUATION:
        AK_TRY(find_characters(ak_is_punctuation, text, cut, w, error));
        break;
    case AK_STEP_WHITESPACE: AK_TRY(find_characters(ak_is_whitespace, text, cut, w, error)); break;
    case AK_STEP_WORDS: AK_TRY(find_words(text, cut, w, error)); break;
    default: AK_TRY(find_pattern(s, text, cut, m, w, error));
    }
    return behave(s->behaviour, cut, w, error);
}

/* Writes the piece anew with a mark for each blank, and cuts it before the marks. */
static ak_status metaspace(const struct ak_step *s, const char *text, struct ak_cut cut,
                           struct ak_work *w, struct ak_error *error)
{
    struct ak_buffer *out = &w->spare;
    size_t from = out->n, n = cut.end - cut.begin;
    bool marked = text[cut.begin] == ' ' ||
                  (n >= s->n_text && memcmp(text + cut.begin, s->text, s->n_text) == 0);

    if (!marked && (s->first == AK_FIRST_ALWAYS || (s->first == AK_FIRST_START && cut.start)))
        AK_TRY(ak_buffer_add(out, s->text, s->n_text, error));
    for (size_t i = cut.begin; i < cut.end; i++)
        AK_TRY(text[i] == ' ' ? ak_buffer_add(out, s->text, s->n_text, error) :
                                ak_buffer_add(out, text + i, 1, error));
    if (!s->flag)
        return add(&w->spare_cuts, from, out->n, cut.start, error);
    size_t begin = from;
    for (size_t at = from + 1; at + s->n_text <= out->n; at++) {
        if (memcmp(out->bytes + at, s->text, s->n_text) != 0)
            continue;
        AK_TRY(add(&w->spare_cuts, begin, at, cut.start && begin == from, error));
        begin = at;
    }
    return add(&w->spare_cuts, begin, out->n, cut.start && begin == from, error);
}

static ak_status blank_first(const char *text, struct ak_cut cut, struct ak_work *w,
                             struct ak_error *error)
{
    size_t from = w->spare.n;

    if (text[cut.begin] != ' ')
        AK_TRY(ak_buffer_add(&w->spare, " ", 1, error));
    AK_TRY(ak_buffer_add(&w->spare, text + cut.begin, cut.end - cut.begin, error));
    return add(&w->spare_cuts, from, w->spare.n, cut.start, error);
}

ak_status ak_split_text(const struct ak_steps *steps, size_t begin, size_t end, bool start,
                        struct ak_matcher *m, struct ak_work *w, struct ak_error *error)
{
    w->cuts.n = 0;
    AK_TRY(add(&w->cuts, begin, end, start, error));
    for (uint32_t i = 0; i < steps->n; i++) {
        const struct ak_step *s = &steps->list[i];
        bool writes = s->kind == AK_STEP_METASPACE || s->kind == AK_STEP_BLANK_FIRST;
        w->spare_cuts.n = 0;
        w->spare.n = 0;
        for (size_t k = 0; k < w->cuts.n; k++) {
            struct ak_cut cut = w->cuts.list[k];
            if (s->kind == AK_STEP_METASPACE)
                AK_TRY(metaspace(s, w->text.bytes, cut, w, error));
            else if (writes)
                AK_TRY(blank_first(w->text.bytes, cut, w, error));
            else
                AK_TRY(cut_piece(s, w->text.bytes, cut, m, w, error));
        }
        struct ak_cuts cuts = w->cuts;
        w->cuts = w->spare_cuts;
        w->spare_cuts = cuts;
        if (writes)
            ak_buffer_swap(&w->text, &w->spare);
    }
    return AKUNU_OK;
}

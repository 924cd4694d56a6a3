/* The pre-tokenizers of a pipeline: each splits the spans of the one before. */
#include "base/mem.h"
#include "text/tokenizer/pipeline.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "base/array.h"

static ak_status add_span(struct ak_tok_spans *spans, size_t begin, size_t end, bool start,
                          struct ak_error *error)
{
    if (begin == end)
        return AKUNU_OK;
    AK_TRY(
        ak_reserve_or_fail(&spans->list, &spans->capacity, spans->n, 1, "splitting a text", error));
    spans->list[spans->n++] = (struct ak_tok_span){ begin, end, start };
    return AKUNU_OK;
}

/* Adds a match or the text between two matches; `start` of a part says which. */
static ak_status add_match(struct ak_tok_scratch *w, size_t begin, size_t end, bool match,
                           struct ak_error *error)
{
    return add_span(&w->parts, begin, end, match, error);
}

static ak_status find_pattern(const struct ak_tok_transform *s, const char *text,
                              struct ak_tok_span span, struct ak_tok_matcher *m,
                              struct ak_tok_scratch *w, struct ak_error *error)
{
    size_t n = span.end - span.begin, at = 0, begin, end;
    const char *piece = text + span.begin, *subject = piece;

    if (s->pattern)
        AK_TRY(ak_tok_matcher_prepare(m, piece, n, &subject, error));
    while (at < n) {
        AK_TRY(ak_tok_find_match(s, m, subject, n, at, false, &begin, &end, error));
        if (begin == SIZE_MAX)
            break;
        AK_TRY(add_match(w, span.begin + at, span.begin + begin, s->invert, error));
        AK_TRY(add_match(w, span.begin + begin, span.begin + end, !s->invert, error));
        at = end;
    }
    return add_match(w, span.begin + at, span.end, s->invert, error);
}

/* Each character of the kind is a match of its own; a run of others is one part. */
static ak_status find_characters(bool (*is)(uint32_t c), const char *text, struct ak_tok_span span,
                                 struct ak_tok_scratch *w, struct ak_error *error)
{
    size_t from = span.begin;

    for (size_t at = span.begin; at < span.end;) {
        struct ak_utf8 c = ak_utf8_next(text + at, span.end - at);
        if (c.valid && is(c.code)) {
            AK_TRY(add_match(w, from, at, false, error));
            AK_TRY(add_match(w, at, at + c.bytes, true, error));
            from = at + c.bytes;
        }
        at += c.bytes;
    }
    return add_match(w, from, span.end, false, error);
}

static int get_word_kind(const char *text, size_t n, uint8_t *bytes)
{
    struct ak_utf8 c = ak_utf8_next(text, n);

    *bytes = c.bytes;
    if (c.valid && ak_is_whitespace(c.code))
        return 0;
    return c.valid && ak_is_word_char(c.code) ? 1 : 2;
}

/* Runs of word characters and runs of others are parts, whitespace is a match. */
static ak_status find_words(const char *text, struct ak_tok_span span, struct ak_tok_scratch *w,
                            struct ak_error *error)
{
    for (size_t at = span.begin; at < span.end;) {
        uint8_t bytes;
        size_t from = at;
        int kind = get_word_kind(text + at, span.end - at, &bytes), next = kind;
        while (next == kind) {
            at += bytes;
            next = at < span.end ? get_word_kind(text + at, span.end - at, &bytes) : -1;
        }
        AK_TRY(add_match(w, from, at, kind == 0, error));
    }
    return AKUNU_OK;
}

/* Joins the parts of `span` to new spans. */
static ak_status apply_behavior(enum ak_tok_behavior behavior, struct ak_tok_span span,
                                struct ak_tok_scratch *w, struct ak_error *error)
{
    const struct ak_tok_spans *parts = &w->parts;

    for (size_t i = 0; i < parts->n;) {
        size_t from = i, to = i + 1;
        bool match = parts->list[i].start;
        if (behavior == AK_TOK_CONTIGUOUS)
            while (to < parts->n && parts->list[to].start == match)
                to++;
        if (behavior == AK_TOK_MERGED_WITH_PREVIOUS && !match && to < parts->n &&
            parts->list[to].start)
            to++;
        if (behavior == AK_TOK_MERGED_WITH_NEXT && match && to < parts->n && !parts->list[to].start)
            to++;
        size_t begin = parts->list[from].begin, end = parts->list[to - 1].end;
        if (behavior != AK_TOK_REMOVED || !match)
            AK_TRY(add_span(&w->spare_spans, begin, end, span.start && begin == span.begin, error));
        i = to;
    }
    return AKUNU_OK;
}

static ak_status split_span(const struct ak_tok_transform *s, const char *text,
                            struct ak_tok_span span, struct ak_tok_matcher *m,
                            struct ak_tok_scratch *w, struct ak_error *error)
{
    w->parts.n = 0;
    switch (s->kind) {
    case AK_TOK_PRE_DIGITS: AK_TRY(find_characters(ak_is_number, text, span, w, error)); break;
    case AK_TOK_PRE_PUNCTUATION:
        AK_TRY(find_characters(ak_is_punctuation, text, span, w, error));
        break;
    case AK_TOK_PRE_WHITESPACE_SPLIT:
        AK_TRY(find_characters(ak_is_whitespace, text, span, w, error));
        break;
    case AK_TOK_PRE_WORDS: AK_TRY(find_words(text, span, w, error)); break;
    default: AK_TRY(find_pattern(s, text, span, m, w, error));
    }
    return apply_behavior(s->behavior, span, w, error);
}

/* Rewrites the span with s->text for each space; if s->split, splits it before each. */
static ak_status split_metaspace(const struct ak_tok_transform *s, const char *text,
                                 struct ak_tok_span span, struct ak_tok_scratch *w,
                                 struct ak_error *error)
{
    struct ak_buffer *out = &w->spare;
    size_t from = out->n, n = span.end - span.begin;
    bool marked = text[span.begin] == ' ' ||
                  (n >= s->n_text && memcmp(text + span.begin, s->text, s->n_text) == 0);

    if (!marked &&
        (s->prepend == AK_TOK_PREPEND_ALWAYS || (s->prepend == AK_TOK_PREPEND_FIRST && span.start)))
        AK_TRY(ak_buffer_add(out, s->text, s->n_text, error));
    for (size_t i = span.begin; i < span.end; i++)
        AK_TRY(text[i] == ' ' ? ak_buffer_add(out, s->text, s->n_text, error) :
                                ak_buffer_add(out, text + i, 1, error));
    if (!s->split)
        return add_span(&w->spare_spans, from, out->n, span.start, error);
    size_t begin = from;
    for (size_t at = from + 1; at + s->n_text <= out->n; at++) {
        if (memcmp(out->bytes + at, s->text, s->n_text) != 0)
            continue;
        AK_TRY(add_span(&w->spare_spans, begin, at, span.start && begin == from, error));
        begin = at;
    }
    return add_span(&w->spare_spans, begin, out->n, span.start && begin == from, error);
}

static ak_status add_prefix_space(const char *text, struct ak_tok_span span,
                                  struct ak_tok_scratch *w, struct ak_error *error)
{
    size_t from = w->spare.n;

    if (text[span.begin] != ' ')
        AK_TRY(ak_buffer_add(&w->spare, " ", 1, error));
    AK_TRY(ak_buffer_add(&w->spare, text + span.begin, span.end - span.begin, error));
    return add_span(&w->spare_spans, from, w->spare.n, span.start, error);
}

ak_status ak_tok_apply_pretokenizers(const struct ak_tok_transforms *steps, size_t begin,
                                     size_t end, bool start, struct ak_tok_matcher *m,
                                     struct ak_tok_scratch *w, struct ak_error *error)
{
    w->spans.n = 0;
    AK_TRY(add_span(&w->spans, begin, end, start, error));
    for (uint32_t i = 0; i < steps->n; i++) {
        const struct ak_tok_transform *s = &steps->list[i];
        bool writes = s->kind == AK_TOK_PRE_METASPACE || s->kind == AK_TOK_PRE_PREFIX_SPACE;
        w->spare_spans.n = 0;
        w->spare.n = 0;
        for (size_t k = 0; k < w->spans.n; k++) {
            struct ak_tok_span span = w->spans.list[k];
            if (s->kind == AK_TOK_PRE_METASPACE)
                AK_TRY(split_metaspace(s, w->text.bytes, span, w, error));
            else if (writes)
                AK_TRY(add_prefix_space(w->text.bytes, span, w, error));
            else
                AK_TRY(split_span(s, w->text.bytes, span, m, w, error));
        }
        struct ak_tok_spans spans = w->spans;
        w->spans = w->spare_spans;
        w->spare_spans = spans;
        if (writes)
            ak_buffer_swap(&w->text, &w->spare);
    }
    return AKUNU_OK;
}

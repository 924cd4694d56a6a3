/* The normalizers of a pipeline, one after another, each from one buffer to the next. */
#include <stdlib.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "text/tokenizer/pipeline.h"
#include "base/unicode.h"
#include "base/utf8.h"

struct ak_tok_transform *ak_tok_transforms_add(struct ak_tok_transforms *s,
                                               enum ak_tok_transform_kind kind)
{
    struct ak_tok_transform *list = ak_realloc(s->list, (size_t)s->n + 1, sizeof *list);

    if (!list)
        return NULL;
    s->list = list;
    s->list[s->n] = (struct ak_tok_transform){ .kind = kind };
    return &s->list[s->n++];
}

void ak_tok_transforms_free(struct ak_tok_transforms *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        ak_free(s->list[i].text);
        ak_free(s->list[i].literal);
        ak_tok_regex_free(s->list[i].pattern);
        ak_tok_charsmap_free(&s->list[i].map);
    }
    ak_free(s->list);
    *s = (struct ak_tok_transforms){ 0 };
}

void ak_tok_scratch_free(struct ak_tok_scratch *w)
{
    ak_buffer_free(&w->text);
    ak_buffer_free(&w->spare);
    ak_buffer_free(&w->piece);
    ak_free(w->spans.list);
    ak_free(w->spare_spans.list);
    ak_free(w->parts.list);
    ak_free(w->scores);
    ak_free(w->lengths);
    ak_free(w->tokens);
}

/* Appends a Unicode normal form of valid UTF-8. No character of the part may combine with one
 * outside. */
static ak_status add_normal_form_part(struct ak_buffer *out, const char *text, size_t n,
                                      utf8proc_option_t options, struct ak_error *error)
{
    utf8proc_uint8_t *form = NULL;
    utf8proc_ssize_t n_form =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &form, options);

    if (n_form < 0)
        return ak_fail_memory(error, "the normal form of a text", n);
    ak_status status = ak_buffer_add(out, (const char *)form, (size_t)n_form, error);
    free(form);
    return status;
}

/* ASCII does not change and combines only with what follows it. So a stretch to normalize runs from
 * the last ASCII character before other characters to the next ASCII one. Its length is bounded
 * because utf8proc sorts marks in quadratic time. */
enum { MAX_STRETCH = 4096 };

static ak_status add_normal_form(const char *text, size_t n, utf8proc_option_t options,
                                 struct ak_buffer *out, struct ak_error *error)
{
    size_t at = 0;

    while (at < n) {
        size_t begin = at;
        while (at < n && (unsigned char)text[at] < 0x80)
            at++;
        if (at == n)
            return ak_buffer_add(out, text + begin, n - begin, error);
        size_t from = at > begin ? at - 1 : at;
        AK_TRY(ak_buffer_add(out, text + begin, from - begin, error));
        size_t to = at;
        while (to < n && (unsigned char)text[to] >= 0x80) {
            struct ak_utf8 c = ak_utf8_next(text + to, n - to);
            if (!c.valid || (to - from >= MAX_STRETCH &&
                             utf8proc_get_property((utf8proc_int32_t)c.code)->combining_class == 0))
                break;
            to += c.bytes;
        }
        AK_TRY(add_normal_form_part(out, text + from, to - from, options, error));
        at = to;
        if (at < n && (unsigned char)text[at] >= 0x80) {
            struct ak_utf8 c = ak_utf8_next(text + at, n - at);
            if (!c.valid) {
                AK_TRY(ak_buffer_add(out, text + at, c.bytes, error));
                at += c.bytes;
            }
        }
    }
    return AKUNU_OK;
}

static ak_status add_base_char(uint32_t c, struct ak_buffer *out, struct ak_error *error)
{
    utf8proc_int32_t codes[32];
    int last = 0;
    char bytes[4];

    if (c >= 0x80 &&
        utf8proc_decompose_char((utf8proc_int32_t)c, codes, 32, UTF8PROC_DECOMPOSE, &last) > 0)
        c = (uint32_t)codes[0];
    return ak_is_mark(c) ? AKUNU_OK : ak_buffer_add(out, bytes, ak_utf8_encode(c, bytes), error);
}

/* Appends the result for one character, for normalizers that look at no others. */
static ak_status put_char(const struct ak_tok_transform *s, uint32_t c, const char *text, size_t n,
                          struct ak_buffer *out, struct ak_error *error)
{
    char bytes[4];

    switch (s->kind) {
    case AK_TOK_NORM_LOWERCASE: return ak_buffer_add(out, bytes, ak_to_lower(c, bytes), error);
    case AK_TOK_NORM_STRIP_ACCENTS:
        return ak_is_mark(c) ? AKUNU_OK : ak_buffer_add(out, text, n, error);
    case AK_TOK_NORM_STRIP_MN:
        return ak_is_nonspacing_mark(c) ? AKUNU_OK : ak_buffer_add(out, text, n, error);
    case AK_TOK_NORM_BASE_CHARS: return add_base_char(c, out, error);
    case AK_TOK_NORM_CLEAN_TEXT:
        if (c == 0 || c == 0xFFFD || (ak_is_control(c) && c != '\t' && c != '\n' && c != '\r'))
            return AKUNU_OK;
        return ak_is_whitespace(c) ? ak_buffer_add(out, " ", 1, error) :
                                     ak_buffer_add(out, text, n, error);
    case AK_TOK_NORM_CLEAN_TEXT_GGUF:
        if (ak_is_whitespace(c))
            return ak_buffer_add(out, " ", 1, error);
        return c == 0 || c == 0xFFFD || ak_is_control(c) ? AKUNU_OK :
                                                           ak_buffer_add(out, text, n, error);
    default: /* AK_TOK_NORM_CHINESE_CHARS */
        if (!ak_is_chinese(c))
            return ak_buffer_add(out, text, n, error);
        AK_TRY(ak_buffer_add(out, " ", 1, error));
        AK_TRY(ak_buffer_add(out, text, n, error));
        return ak_buffer_add(out, " ", 1, error);
    }
}

static ak_status put_chars(const struct ak_tok_transform *s, const char *text, size_t n,
                           struct ak_buffer *out, struct ak_error *error)
{
    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        if (c.valid)
            AK_TRY(put_char(s, c.code, text + at, c.bytes, out, error));
        else if (s->kind != AK_TOK_NORM_CLEAN_TEXT &&
                 s->kind != AK_TOK_NORM_CLEAN_TEXT_GGUF) /* these drop it, like U+FFFD */
            AK_TRY(ak_buffer_add(out, text + at, c.bytes, error));
        at += c.bytes;
    }
    return AKUNU_OK;
}

static ak_status replace(const struct ak_tok_transform *s, const char *text, size_t n,
                         struct ak_tok_matcher *m, struct ak_buffer *out, struct ak_error *error)
{
    const char *subject = text;
    size_t at = 0, begin, end;
    bool empty = true;

    if (s->pattern)
        AK_TRY(ak_tok_matcher_prepare(m, text, n, &subject, error));
    while (at <= n) {
        AK_TRY(ak_tok_find_match(s, m, subject, n, at, empty, &begin, &end, error));
        if (begin == SIZE_MAX)
            break;
        AK_TRY(ak_buffer_add(out, text + at, begin - at, error));
        AK_TRY(ak_buffer_add(out, s->text, s->n_text, error));
        empty = false; /* an empty match right behind a match is none */
        at = end;
    }
    return at < n ? ak_buffer_add(out, text + at, n - at, error) : AKUNU_OK;
}

static ak_status strip_whitespace(const struct ak_tok_transform *s, const char *text, size_t n,
                                  struct ak_buffer *out, struct ak_error *error)
{
    size_t begin = 0, end = 0;

    while (s->strip_left && begin < n) {
        struct ak_utf8 c = ak_utf8_next(text + begin, n - begin);
        if (!c.valid || !ak_is_whitespace(c.code))
            break;
        begin += c.bytes;
    }
    for (size_t at = begin; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        at += c.bytes;
        if (!s->strip_right || !c.valid || !ak_is_whitespace(c.code))
            end = at;
    }
    return end > begin ? ak_buffer_add(out, text + begin, end - begin, error) : AKUNU_OK;
}

/* As in SentencePiece and llama.cpp: replaces the longest string of the map, else copies one
 * character. */
static ak_status put_longest(const struct ak_tok_transform *s, const char *text, size_t n,
                             struct ak_buffer *out, struct ak_error *error)
{
    for (size_t at = 0; at < n;) {
        struct ak_text replacement;
        size_t taken = ak_tok_charsmap_find(&s->map, text + at, n - at, false, &replacement);
        if (taken > 0) {
            AK_TRY(ak_buffer_add(out, replacement.bytes, replacement.n, error));
            at += taken;
            continue;
        }
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        if (c.valid)
            AK_TRY(ak_buffer_add(out, text + at, c.bytes, error));
        else
            AK_TRY(ak_buffer_add(out, "\xEF\xBF\xBD", 3, error));
        at += c.valid ? c.bytes : 1;
    }
    return AKUNU_OK;
}

enum { SHORT_GRAPHEME = 6 };

/* As in the `tokenizers` package: if a string of the map begins a short grapheme, its replacement
 * replaces the whole grapheme; otherwise characters are replaced one by one. */
static ak_status put_grapheme(const struct ak_tok_transform *s, const char *text, size_t n,
                              struct ak_buffer *out, struct ak_error *error)
{
    struct ak_text replacement;

    if (n < SHORT_GRAPHEME && ak_tok_charsmap_find(&s->map, text, n, true, &replacement) > 0)
        return ak_buffer_add(out, replacement.bytes, replacement.n, error);
    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        if (c.valid && ak_tok_charsmap_find(&s->map, text + at, c.bytes, true, &replacement) > 0)
            AK_TRY(ak_buffer_add(out, replacement.bytes, replacement.n, error));
        else
            AK_TRY(ak_buffer_add(out, text + at, c.bytes, error));
        at += c.bytes;
    }
    return AKUNU_OK;
}

static ak_status put_graphemes(const struct ak_tok_transform *s, const char *text, size_t n,
                               struct ak_buffer *out, struct ak_error *error)
{
    utf8proc_int32_t state = 0, last = -1;
    size_t begin = 0;

    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        utf8proc_int32_t code = c.valid ? (utf8proc_int32_t)c.code : 0xFFFD;
        if (last >= 0 && utf8proc_grapheme_break_stateful(last, code, &state)) {
            AK_TRY(put_grapheme(s, text + begin, at - begin, out, error));
            begin = at;
        }
        last = code;
        at += c.bytes;
    }
    return begin < n ? put_grapheme(s, text + begin, n - begin, out, error) : AKUNU_OK;
}

/* Replaces spaces by ▁ as SentencePiece does; see AK_TOK_NORM_METASPACE. */
static ak_status put_metaspace(const struct ak_tok_transform *s, const char *text, size_t n,
                               struct ak_buffer *out, struct ak_error *error)
{
    bool in_word = false, prefixed = false;

    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ') {
            in_word = false;
            if (!s->merge_spaces)
                AK_TRY(ak_buffer_add(out, AK_TOK_METASPACE, AK_TOK_METASPACE_BYTES, error));
            continue;
        }
        if (!in_word && ((s->add_prefix && !prefixed) || s->merge_spaces)) {
            AK_TRY(ak_buffer_add(out, AK_TOK_METASPACE, AK_TOK_METASPACE_BYTES, error));
            prefixed = true;
        }
        in_word = true;
        AK_TRY(ak_buffer_add(out, text + i, 1, error));
    }
    return AKUNU_OK;
}

static ak_status apply_normalizer(const struct ak_tok_transform *s, const char *text, size_t n,
                                  struct ak_tok_matcher *m, struct ak_buffer *out,
                                  struct ak_error *error)
{
    const utf8proc_option_t stable = UTF8PROC_STABLE;

    switch (s->kind) {
    case AK_TOK_NORM_NFC: return add_normal_form(text, n, stable | UTF8PROC_COMPOSE, out, error);
    case AK_TOK_NORM_NFD: return add_normal_form(text, n, stable | UTF8PROC_DECOMPOSE, out, error);
    case AK_TOK_NORM_NFKC:
        return add_normal_form(text, n, stable | UTF8PROC_COMPOSE | UTF8PROC_COMPAT, out, error);
    case AK_TOK_NORM_NFKD:
        return add_normal_form(text, n, stable | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, out, error);
    case AK_TOK_NORM_STRIP: return strip_whitespace(s, text, n, out, error);
    case AK_TOK_NORM_REPLACE: return replace(s, text, n, m, out, error);
    case AK_TOK_NORM_PREPEND:
        if (n > 0)
            AK_TRY(ak_buffer_add(out, s->text, s->n_text, error));
        return ak_buffer_add(out, text, n, error);
    case AK_TOK_NORM_PRECOMPILED:
        return s->per_grapheme ? put_graphemes(s, text, n, out, error) :
                                 put_longest(s, text, n, out, error);
    case AK_TOK_NORM_METASPACE: return put_metaspace(s, text, n, out, error);
    default: return put_chars(s, text, n, out, error);
    }
}

/* A chain of normalizers that write more than they read could make a short text arbitrarily long.
 * Limit: OUTPUT_BASE_MAX bytes plus OUTPUT_PER_BYTE_MAX per input byte, far above what published
 * tokenizers need. */
enum { OUTPUT_PER_BYTE_MAX = 64, OUTPUT_BASE_MAX = 4096 };

ak_status ak_tok_normalize(const struct ak_tok_transforms *steps, const char *text, size_t n,
                           struct ak_tok_matcher *m, struct ak_tok_scratch *w,
                           struct ak_error *error)
{
    w->text.max = w->spare.max = w->piece.max = OUTPUT_BASE_MAX + OUTPUT_PER_BYTE_MAX * n;
    w->text.what = w->spare.what = w->piece.what = "the normalized text";
    w->text.n = 0;
    AK_TRY(ak_buffer_add(&w->text, text, n, error));
    for (uint32_t i = 0; i < steps->n; i++) {
        w->spare.n = 0;
        AK_TRY(apply_normalizer(&steps->list[i], w->text.bytes, w->text.n, m, &w->spare, error));
        ak_buffer_swap(&w->text, &w->spare);
    }
    return AKUNU_OK;
}

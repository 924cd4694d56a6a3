/* Reasoning and content: reports text up to the next marker and decides what the marker begins. */
#include "text/toolcall/parser.h"

static void add_marker(struct ak_tc_parser *r, const char *text, enum ak_tc_marker_kind kind,
                       bool at_start, bool ends_reasoning, const struct ak_tc_reasoning *reasoning)
{
    for (size_t i = 0; i < r->n_markers; i++)
        if (strcmp(r->markers[i].text, text) == 0 && r->markers[i].kind == kind) {
            r->markers[i].at_start &= at_start;
            r->markers[i].ends_reasoning |= ends_reasoning;
            return;
        }
    r->markers[r->n_markers++] =
        (struct ak_tc_marker){ text, strlen(text), kind, reasoning, at_start, ends_reasoning };
    r->begins_marker[(unsigned char)text[0]] = true;
}

static void add_syntax(struct ak_tc_parser *r, const struct ak_tc_syntax *syntax)
{
    if (syntax->section)
        add_marker(r, syntax->section, AK_TC_MARKER_CALL, syntax->is_bare, syntax->ends_reasoning,
                   NULL);
    if (syntax->begin) /* also within a section: models tend to forget the first marker */
        add_marker(r, syntax->begin, AK_TC_MARKER_CALL, syntax->is_bare, syntax->ends_reasoning,
                   NULL);
    if (!syntax->section && !syntax->begin) {
        add_marker(r, "[", AK_TC_MARKER_CALL, true, false, NULL);
        if (syntax->arguments == AK_TC_ARGS_JSON_CALL)
            add_marker(r, "{", AK_TC_MARKER_CALL, true, false, NULL);
    }
}

static void add_harmony(struct ak_tc_parser *r)
{
    static const char *const heads[] = { "<|start|>", "<|channel|>" }, *const ends[] = {
        "<|end|>", "<|call|>", "<|return|>"
    };
    for (size_t i = 0; i < 2; i++)
        add_marker(r, heads[i], AK_TC_MARKER_HEADER, false, true, NULL);
    for (size_t i = 0; i < 3; i++)
        add_marker(r, ends[i], AK_TC_MARKER_MESSAGE_END, false, true, NULL);
}

void ak_tc_set_markers(struct ak_tc_parser *r)
{
    const struct ak_tc_format *f = r->format;
    const struct ak_tc_reasoning *t;

    for (size_t i = 0; (t = ak_tc_reasoning_at(i)); i++) {
        add_marker(r, t->begin, AK_TC_MARKER_REASONING, !t->begins_anywhere, true, t);
        add_marker(r, t->end, AK_TC_MARKER_REASONING_END, false, true, t);
    }
    for (unsigned i = 0; r->parses_calls && !f->harmony && i < f->n_syntaxes; i++)
        add_syntax(r, &f->syntaxes[i]);
    for (size_t i = 0; i < AK_TC_IGNORED_MAX && f->ignored_markers[i]; i++)
        add_marker(r, f->ignored_markers[i], AK_TC_MARKER_IGNORED, false, false, NULL);
    if (f->harmony)
        add_harmony(r);
}

static bool is_active(const struct ak_tc_parser *r, const struct ak_tc_marker *m)
{
    switch (m->kind) {
    /* in content: the end of an empty block, of which the model omitted the beginning */
    case AK_TC_MARKER_REASONING_END:
        return r->reasoning ? r->reasoning == m->reasoning : r->at_start;
    case AK_TC_MARKER_REASONING:
        return r->reasoning ? r->at_start && r->reasoning == m->reasoning :
                              r->at_start || !m->at_start;
    default: return r->reasoning ? m->ends_reasoning : r->at_start || !m->at_start;
    }
}

/* The longest marker at byte i. *part: the text may continue to a longer one. */
static const struct ak_tc_marker *marker_at(const struct ak_tc_parser *r, size_t i, bool *part)
{
    const struct ak_tc_marker *best = NULL;

    *part = false;
    for (size_t k = 0; k < r->n_markers; k++) {
        const struct ak_tc_marker *m = &r->markers[k];
        if (!is_active(r, m) || (best && m->n <= best->n))
            continue;
        enum ak_tc_match match = ak_tc_match_marker(r, i, m->text);
        if (match == AK_TC_MATCH_YES)
            best = m;
        *part |= match == AK_TC_MATCH_PARTIAL;
    }
    return best;
}

enum ak_tc_result ak_tc_begin_content(struct ak_tc_parser *r,
                                      const struct ak_tc_reasoning *reasoning)
{
    r->state = AK_TC_STATE_TEXT;
    r->reasoning = reasoning;
    r->at_start = r->after_marker = true;
    r->section = NULL;
    r->scanned = r->pos;
    return AK_TC_CONTINUE;
}

/* Without parsing of reasoning, its markers are content. */
static enum ak_tc_result keep_marker(struct ak_tc_parser *r,
                                     const struct ak_tc_reasoning *reasoning, size_t after)
{
    AK_TC_TRY(ak_tc_emit_text(r, r->text.bytes + r->pos, after - r->pos));
    r->pos = r->scanned = after;
    r->reasoning = reasoning;
    r->at_start = true;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result handle_marker(struct ak_tc_parser *r, const struct ak_tc_marker *m,
                                       size_t i)
{
    size_t after = i + m->n;
    const struct ak_tc_reasoning *reasoning =
        m->kind == AK_TC_MARKER_REASONING ? m->reasoning : NULL;

    switch (m->kind) {
    case AK_TC_MARKER_REASONING:
    case AK_TC_MARKER_REASONING_END:
        if (!r->parses_reasoning)
            return keep_marker(r, reasoning, after);
        break;
    case AK_TC_MARKER_CALL:
        if (m->text[1] == '\0') /* a bracket is part of the call */
            return ak_tc_begin_call(r, NULL, r->pos, i);
        return ak_tc_begin_call(r, m->text, r->pos, after);
    case AK_TC_MARKER_HEADER:
        r->pos = r->scanned = i;
        r->state = AK_TC_STATE_HEADER;
        return AK_TC_CONTINUE;
    case AK_TC_MARKER_IGNORED:
    case AK_TC_MARKER_MESSAGE_END: break;
    }
    r->pos = after;
    return ak_tc_begin_content(r, reasoning);
}

/* Reports text up to its last byte that is not whitespace. Trailing whitespace is held back, since
 * it is dropped if a marker follows. */
enum ak_tc_result ak_tc_read_content(struct ak_tc_parser *r)
{
    const char *text = r->text.bytes;
    const struct ak_tc_marker *marker = NULL;
    size_t text_end = r->pos, i;
    bool part = false;

    for (i = ak_max_size(r->pos, r->scanned); i < r->text.n; i++) {
        if (ak_tc_is_whitespace(text[i]))
            continue;
        if (r->begins_marker[(unsigned char)text[i]]) {
            marker = marker_at(r, i, &part);
            part = part && !r->is_closed;
            if (marker || part)
                break;
        }
        text_end = i + 1;
        r->at_start = false;
    }
    AK_TC_TRY(ak_tc_emit_text(r, text + r->pos, text_end - r->pos));
    r->pos = text_end;
    r->scanned = i;
    if (marker && !part)
        return handle_marker(r, marker, i);
    if (r->is_closed && r->pos < r->text.n) {
        AK_TC_TRY(ak_tc_emit_text(r, text + r->pos, r->text.n - r->pos));
        r->pos = r->text.n;
    }
    return AK_TC_NEED_MORE;
}

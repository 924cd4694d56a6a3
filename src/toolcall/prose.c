/* Reasoning and content: text up to the next marker. */
#include "toolcall/state.h"

static void add(struct ak_reply *r, const char *text, enum ak_marker_kind kind, bool start,
                bool in_reasoning, const struct ak_thinking *thinking)
{
    for (size_t i = 0; i < r->n_markers; i++)
        if (strcmp(r->markers[i].text, text) == 0 && r->markers[i].kind == kind) {
            r->markers[i].start &= start;
            r->markers[i].in_reasoning |= in_reasoning;
            return;
        }
    r->markers[r->n_markers++] =
        (struct ak_marker){ text, strlen(text), kind, thinking, start, in_reasoning };
    r->first[(unsigned char)text[0]] = true;
}

static void add_shape(struct ak_reply *r, const struct ak_call_shape *shape)
{
    if (shape->section)
        add(r, shape->section, AK_MARK_CALL, shape->bare, shape->in_reasoning, NULL);
    if (shape->begin) /* of a section too: models forget the first marker, seldom the second */
        add(r, shape->begin, AK_MARK_CALL, shape->bare, shape->in_reasoning, NULL);
    if (!shape->section && !shape->begin) {
        add(r, "[", AK_MARK_CALL, true, false, NULL);
        if (shape->body == AK_BODY_JSON)
            add(r, "{", AK_MARK_CALL, true, false, NULL);
    }
}

static void add_harmony(struct ak_reply *r)
{
    static const char *const heads[] = { "<|start|>", "<|channel|>" }, *const ends[] = {
        "<|end|>", "<|call|>", "<|return|>"
    };
    for (size_t i = 0; i < 2; i++)
        add(r, heads[i], AK_MARK_HEADER, false, true, NULL);
    for (size_t i = 0; i < 3; i++)
        add(r, ends[i], AK_MARK_MESSAGE_END, false, true, NULL);
}

void ak_prose_markers(struct ak_reply *r)
{
    const struct ak_call_format *f = r->format;
    const struct ak_thinking *t;

    for (size_t i = 0; (t = ak_thinking_at(i)); i++) {
        add(r, t->open, AK_MARK_THINK, !t->anywhere, true, t);
        add(r, t->close, AK_MARK_ANSWER, false, true, t);
    }
    for (unsigned i = 0; r->calls && !f->harmony && i < f->n_shapes; i++)
        add_shape(r, &f->shapes[i]);
    for (size_t i = 0; i < AK_MOST_DROPS && f->drops[i]; i++)
        add(r, f->drops[i], AK_MARK_DROP, false, false, NULL);
    if (f->harmony)
        add_harmony(r);
}

static bool counts(const struct ak_reply *r, const struct ak_marker *m)
{
    switch (m->kind) {
    /* of a block left out */
    case AK_MARK_ANSWER: return r->thinking ? r->thinking == m->thinking : r->fresh;
    case AK_MARK_THINK:
        return r->thinking ? r->fresh && r->thinking == m->thinking : r->fresh || !m->start;
    default: return r->thinking ? m->in_reasoning : r->fresh || !m->start;
    }
}

/* The longest marker at byte i; *part where a longer one could become of it. */
static const struct ak_marker *marker_at(const struct ak_reply *r, size_t i, bool *part)
{
    const struct ak_marker *best = NULL;

    *part = false;
    for (size_t k = 0; k < r->n_markers; k++) {
        const struct ak_marker *m = &r->markers[k];
        if (!counts(r, m) || (best && m->n <= best->n))
            continue;
        enum ak_match match = ak_match(r, i, m->text);
        if (match == AK_MATCH_YES)
            best = m;
        *part |= match == AK_MATCH_PART;
    }
    return best;
}

enum ak_progress ak_prose_begin(struct ak_reply *r, const struct ak_thinking *thinking)
{
    r->place = AK_PLACE_TEXT;
    r->thinking = thinking;
    r->fresh = r->beside = true;
    r->section = NULL;
    r->seen = r->at;
    return AK_ON;
}

/* Reasoning that is not told apart keeps its markers. */
static enum ak_progress keep_marker(struct ak_reply *r, const struct ak_thinking *thinking,
                                    size_t after)
{
    AK_GO(ak_emit_text(r, r->text.bytes + r->at, after - r->at));
    r->at = r->seen = after;
    r->thinking = thinking;
    r->fresh = true;
    return AK_ON;
}

static enum ak_progress take(struct ak_reply *r, const struct ak_marker *m, size_t i)
{
    size_t after = i + m->n;
    const struct ak_thinking *thinking = m->kind == AK_MARK_THINK ? m->thinking : NULL;

    switch (m->kind) {
    case AK_MARK_THINK:
    case AK_MARK_ANSWER:
        if (!r->reasoning)
            return keep_marker(r, thinking, after);
        break;
    case AK_MARK_CALL:
        if (m->text[1] == '\0') /* a bracket: the call's own */
            return ak_call_open(r, NULL, r->at, i);
        return ak_call_open(r, m->text, r->at, after);
    case AK_MARK_HEADER:
        r->at = r->seen = i;
        r->place = AK_PLACE_HEADER;
        return AK_ON;
    case AK_MARK_DROP:
    case AK_MARK_MESSAGE_END: break;
    }
    r->at = after;
    return ak_prose_begin(r, thinking);
}

/* Text is passed on up to the last byte that is no blank: blanks wait, since they may
 * stand beside a marker. */
enum ak_progress ak_prose(struct ak_reply *r)
{
    const char *text = r->text.bytes;
    const struct ak_marker *marker = NULL;
    size_t solid = r->at, i;
    bool part = false;

    for (i = ak_max_size(r->at, r->seen); i < r->text.n; i++) {
        if (ak_is_blank(text[i]))
            continue;
        if (r->first[(unsigned char)text[i]]) {
            marker = marker_at(r, i, &part);
            part = part && !r->closed;
            if (marker || part)
                break;
        }
        solid = i + 1;
        r->fresh = false;
    }
    AK_GO(ak_emit_text(r, text + r->at, solid - r->at));
    r->at = solid;
    r->seen = i;
    if (marker && !part)
        return take(r, marker, i);
    if (r->closed && r->at < r->text.n) {
        AK_GO(ak_emit_text(r, text + r->at, r->text.n - r->at));
        r->at = r->text.n;
    }
    return AK_WAIT;
}

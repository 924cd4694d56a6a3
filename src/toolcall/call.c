/* Around the body of a call: which shape it has, its section, its name, its end. */
#include "toolcall/state.h"

enum ak_progress ak_call_open(struct ak_reply *r, const char *marker, size_t raw, size_t after)
{
    r->raw = raw;
    r->at = r->seen = after;
    r->opened = marker;
    r->shape = NULL;
    r->section = NULL;
    r->thinking = NULL;
    r->complete = false;
    r->body = (struct ak_body){ 0 };
    r->place = AK_PLACE_SHAPE;
    return AK_ON;
}

enum ak_progress ak_call_break(struct ak_reply *r)
{
    r->beside |= r->complete; /* the blanks after the call before it */
    AK_GO(ak_emit_broken(r));
    r->place = AK_PLACE_TEXT;
    r->section = NULL;
    r->fresh = r->beside = false;
    r->seen = r->at;
    return AK_ON;
}

static bool named(const struct ak_call_shape *shape)
{
    return shape->body == AK_BODY_ARGUMENTS || shape->body == AK_BODY_PARAMETERS ||
           shape->body == AK_BODY_GEMMA;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What the text of a call looks like, by its first bytes that are no blanks. */
enum look { LOOK_CUT, LOOK_OBJECT, LOOK_LIST, LOOK_OTHER };

static enum look look_at(const struct ak_reply *r)
{
    size_t after;

    if (ak_match_loosely(r, r->at, " {", &after) == AK_MATCH_YES ||
        ak_match_loosely(r, r->at, " ```", &after) == AK_MATCH_YES)
        return LOOK_OBJECT;
    if (ak_match_loosely(r, r->at, " [", &after) == AK_MATCH_YES) {
        size_t ignored;
        enum ak_match object = ak_match_loosely(r, after, " {", &ignored),
                      end = ak_match_loosely(r, after, " ]", &ignored);
        if (object == AK_MATCH_PART)
            return LOOK_CUT;
        return object == AK_MATCH_YES || end == AK_MATCH_YES ? LOOK_OBJECT : LOOK_LIST;
    }
    return ak_match_loosely(r, r->at, " {", &after) == AK_MATCH_PART ||
                   ak_match_loosely(r, r->at, " ```", &after) == AK_MATCH_PART ?
               LOOK_CUT :
               LOOK_OTHER;
}

/* How well a shape goes with that. */
static int suits(const struct ak_call_shape *shape, enum look look)
{
    switch (shape->body) {
    case AK_BODY_JSON: return look == LOOK_OBJECT ? 3 : 0;
    case AK_BODY_PYTHON: return look == LOOK_LIST ? 3 : look == LOOK_OTHER && !shape->bare ? 1 : 0;
    default: return look == LOOK_OTHER ? 2 : 0;
    }
}

static enum ak_progress choose(struct ak_reply *r)
{
    const struct ak_call_shape *best = NULL;
    int best_suits = -1;
    enum look look = look_at(r);

    if (look == LOOK_CUT && !r->closed)
        return AK_WAIT;
    for (unsigned i = 0; i < r->format->n_shapes; i++) {
        const struct ak_call_shape *shape = &r->format->shapes[i];
        bool bare = !r->opened && !shape->section && !shape->begin;
        bool opened =
            r->opened && (same(shape->section, r->opened) || same(shape->begin, r->opened));
        if ((bare || opened) && suits(shape, look) > best_suits) {
            best_suits = suits(shape, look);
            best = shape;
        }
    }
    r->shape = best;
    if (!best || (!r->opened && best_suits == 0))
        return ak_broken(r, "it is neither an object nor a function");
    r->section = best->section;
    if (r->section && same(r->section, r->opened))
        r->place = AK_PLACE_SECTION;
    else
        r->place = named(best) ? AK_PLACE_NAME : AK_PLACE_BODY;
    return AK_ON;
}

static enum ak_progress begin_in_section(struct ak_reply *r, const struct ak_call_shape *shape)
{
    r->shape = shape;
    r->at += strlen(shape->begin);
    r->body = (struct ak_body){ 0 };
    r->place = AK_PLACE_NAME;
    return AK_ON;
}

/* Between calls: the longest beginning of one, or the section's end. */
static enum ak_progress section(struct ak_reply *r)
{
    const struct ak_call_shape *best = NULL;
    bool part = false;

    if (ak_skip_blanks(r, ",;") != AK_ON)
        return AK_WAIT;
    enum ak_match end = ak_match(r, r->at, r->shape->section_end);
    if (end == AK_MATCH_YES) {
        r->at += strlen(r->shape->section_end);
        return ak_prose_begin(r, NULL);
    }
    for (unsigned i = 0; i < r->format->n_shapes; i++) {
        const struct ak_call_shape *shape = &r->format->shapes[i];
        if (!same(shape->section, r->section) ||
            (best && strlen(shape->begin) <= strlen(best->begin)))
            continue;
        enum ak_match match = ak_match(r, r->at, shape->begin);
        if (match == AK_MATCH_YES)
            best = shape;
        part |= match == AK_MATCH_PART;
    }
    if ((part || end == AK_MATCH_PART) && !r->closed)
        return AK_WAIT;
    if (best)
        return begin_in_section(r, best);
    if (part || end == AK_MATCH_PART) { /* the beginning of a marker, and nothing after it */
        r->at = r->complete ? r->raw = r->text.n : r->at;
        return AK_WAIT;
    }
    if (!r->complete)
        return ak_broken(r, "neither \"%s\" nor \"%s\" follows", r->shape->begin,
                         r->shape->section_end);
    r->at = r->raw; /* the section was not ended */
    return ak_prose_begin(r, NULL);
}

/* functions.NAME:NUMBER */
static void split_id(struct ak_reply *r)
{
    char *from = strncmp(r->name, "functions.", 10) == 0 ? r->name + 10 : r->name,
         *colon = strrchr(from, ':');

    strcpy(r->id, r->name);
    size_t n = colon ? (size_t)(colon - from) : strlen(from);
    memmove(r->name, from, n);
    r->name[n] = '\0';
}

static enum ak_progress no_name_end(struct ak_reply *r, const char *end)
{
    return ak_broken(r, "its name is followed by something else than \"%s\"",
                     end + strspn(end, " "));
}

static enum ak_progress name(struct ak_reply *r)
{
    const struct ak_call_shape *shape = r->shape;
    const char *end = shape->name_end ? shape->name_end : "";
    size_t n, n_id = 0, after, from;

    if (ak_skip_blanks(r, "") != AK_ON)
        return AK_WAIT;
    AK_GO(ak_read_word(r, "<>[](){}\"'=,;|`", &n));
    if (n == 0)
        return ak_broken(r, "no name stands where one is expected");
    from = r->at + n;
    if (shape->id_begin) {
        enum ak_match match = ak_match(r, from, shape->id_begin);
        if (match == AK_MATCH_PART)
            return AK_WAIT;
        size_t n_begin = match == AK_MATCH_YES ? strlen(shape->id_begin) : 0;
        for (from += n_begin;
             n_begin && from + n_id < r->text.n && r->text.bytes[from + n_id] != '['; n_id++)
            if (n_id == AK_MOST_NAME)
                return ak_broken(r, "an id of more than %d bytes", AK_MOST_NAME);
    }
    enum ak_match match = ak_match_loosely(r, from + n_id, end, &after);
    if (match == AK_MATCH_PART)
        return AK_WAIT;
    if (match == AK_MATCH_NO)
        return no_name_end(r, end);
    memcpy(r->name, r->text.bytes + r->at, n);
    memcpy(r->id, r->text.bytes + from, n_id);
    r->name[n] = r->id[n_id] = '\0';
    if (shape->id_name)
        split_id(r);
    r->at = r->seen = after;
    r->place = AK_PLACE_BODY;
    return AK_ON;
}

static enum ak_progress body(struct ak_reply *r)
{
    switch (r->shape->body) {
    case AK_BODY_JSON: return ak_json_body(r);
    case AK_BODY_ARGUMENTS: return ak_arguments_body(r);
    case AK_BODY_PARAMETERS: return ak_parameters_body(r);
    case AK_BODY_GEMMA: return ak_gemma_body(r);
    case AK_BODY_PYTHON: return ak_python_body(r);
    }
    return AK_BROKEN;
}

/* Another object follows, with a comma, a semicolon or nothing between. */
static enum ak_match another(const struct ak_reply *r, size_t *at)
{
    static const char *const between[] = { " {", " ; {", " , {" };
    enum ak_match best = AK_MATCH_NO;

    for (size_t i = 0, after; i < 3 && r->shape->body == AK_BODY_JSON; i++) {
        enum ak_match match = ak_match_loosely(r, r->at, between[i], &after);
        if (match == AK_MATCH_YES)
            *at = after - 1;
        best = match > best ? match : best;
    }
    return best;
}

/* The call is told already: without its end marker it is one too. */
static enum ak_progress end(struct ak_reply *r)
{
    size_t after = r->at;
    enum ak_match more = another(r, &after);

    if (more == AK_MATCH_YES) {
        r->at = after;
        r->body = (struct ak_body){ 0 };
        r->place = AK_PLACE_BODY;
        return AK_ON;
    }
    enum ak_match match =
        r->shape->end ? ak_match_loosely(r, r->at, r->shape->end, &after) : AK_MATCH_NO;
    if ((match == AK_MATCH_PART || more == AK_MATCH_PART) && match != AK_MATCH_YES) {
        if (!r->closed)
            return AK_WAIT;
        if (match == AK_MATCH_PART) /* the beginning of the marker, and nothing after it */
            after = r->text.n;
    }
    r->at = r->raw = after; /* the marker is the call's, also where the text ends here */
    if (!r->section)
        return ak_prose_begin(r, NULL);
    r->place = AK_PLACE_SECTION;
    return AK_ON;
}

static enum ak_progress step(struct ak_reply *r)
{
    switch (r->place) {
    case AK_PLACE_SHAPE: return choose(r);
    case AK_PLACE_SECTION: return section(r);
    case AK_PLACE_NAME: return name(r);
    case AK_PLACE_BODY: return body(r);
    default: return end(r);
    }
}

/* The last call is complete, and only what may separate calls stands after it. */
static bool nothing_open(const struct ak_reply *r)
{
    bool nothing = r->complete && !r->begun;

    for (size_t i = r->raw; nothing && i < r->text.n; i++)
        nothing =
            ak_is_blank(r->text.bytes[i]) || r->text.bytes[i] == ',' || r->text.bytes[i] == ';';
    return nothing;
}

enum ak_progress ak_call(struct ak_reply *r)
{
    enum ak_progress went = step(r);

    if (went != AK_WAIT || !r->closed)
        return went;
    bool broken = !nothing_open(r);
    r->at = r->text.n;
    r->place = AK_PLACE_TEXT;
    return broken ? ak_broken(r, "the text ends before the call does") : AK_WAIT;
}

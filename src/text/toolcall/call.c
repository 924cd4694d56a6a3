/* A call apart from its arguments: its syntax, section, name and end. */
#include "text/toolcall/parser.h"

enum ak_tc_result ak_tc_begin_call(struct ak_tc_parser *r, const char *marker, size_t raw_begin,
                                   size_t after)
{
    r->raw_begin = raw_begin;
    r->pos = r->scanned = after;
    r->open_marker = marker;
    r->syntax = NULL;
    r->section = NULL;
    r->reasoning = NULL;
    r->has_call = false;
    r->call = (struct ak_tc_call){ 0 };
    r->state = AK_TC_STATE_SYNTAX;
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_reject_call(struct ak_tc_parser *r)
{
    r->after_marker |= r->has_call; /* whitespace after the previous call */
    AK_TC_TRY(ak_tc_emit_malformed(r));
    r->state = AK_TC_STATE_TEXT;
    r->section = NULL;
    r->at_start = r->after_marker = false;
    r->scanned = r->pos;
    return AK_TC_CONTINUE;
}

static bool has_name(const struct ak_tc_syntax *syntax)
{
    return syntax->arguments == AK_TC_ARGS_JSON || syntax->arguments == AK_TC_ARGS_PARAMETERS ||
           syntax->arguments == AK_TC_ARGS_GEMMA;
}

static bool strings_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What a call looks like by its first bytes after whitespace; CUT: the text ends too early. */
enum opening { OPENING_CUT, OPENING_OBJECT, OPENING_LIST, OPENING_OTHER };

static enum opening detect_opening(const struct ak_tc_parser *r)
{
    size_t after;

    if (ak_tc_match_loose_marker(r, r->pos, " {", &after) == AK_TC_MATCH_YES ||
        ak_tc_match_loose_marker(r, r->pos, " ```", &after) == AK_TC_MATCH_YES)
        return OPENING_OBJECT;
    if (ak_tc_match_loose_marker(r, r->pos, " [", &after) == AK_TC_MATCH_YES) {
        size_t ignored;
        enum ak_tc_match object = ak_tc_match_loose_marker(r, after, " {", &ignored),
                         end = ak_tc_match_loose_marker(r, after, " ]", &ignored);
        if (object == AK_TC_MATCH_PARTIAL)
            return OPENING_CUT;
        return object == AK_TC_MATCH_YES || end == AK_TC_MATCH_YES ? OPENING_OBJECT : OPENING_LIST;
    }
    return ak_tc_match_loose_marker(r, r->pos, " {", &after) == AK_TC_MATCH_PARTIAL ||
                   ak_tc_match_loose_marker(r, r->pos, " ```", &after) == AK_TC_MATCH_PARTIAL ?
               OPENING_CUT :
               OPENING_OTHER;
}

/* How well a syntax fits the opening. */
static int score_syntax(const struct ak_tc_syntax *syntax, enum opening opening)
{
    switch (syntax->arguments) {
    case AK_TC_ARGS_JSON_CALL: return opening == OPENING_OBJECT ? 3 : 0;
    case AK_TC_ARGS_PYTHON:
        return opening == OPENING_LIST ? 3 : opening == OPENING_OTHER && !syntax->is_bare ? 1 : 0;
    default: return opening == OPENING_OTHER ? 2 : 0;
    }
}

static enum ak_tc_result select_syntax(struct ak_tc_parser *r)
{
    const struct ak_tc_syntax *best = NULL;
    int best_score = -1;
    enum opening opening = detect_opening(r);

    if (opening == OPENING_CUT && !r->is_closed)
        return AK_TC_NEED_MORE;
    for (unsigned i = 0; i < r->format->n_syntaxes; i++) {
        const struct ak_tc_syntax *syntax = &r->format->syntaxes[i];
        bool is_bare = !r->open_marker && !syntax->section && !syntax->begin;
        bool is_opened = r->open_marker && (strings_equal(syntax->section, r->open_marker) ||
                                            strings_equal(syntax->begin, r->open_marker));
        if ((is_bare || is_opened) && score_syntax(syntax, opening) > best_score) {
            best_score = score_syntax(syntax, opening);
            best = syntax;
        }
    }
    r->syntax = best;
    if (!best || (!r->open_marker && best_score == 0))
        return ak_tc_set_malformed(r, "it is neither an object nor a function");
    r->section = best->section;
    if (r->section && strings_equal(r->section, r->open_marker))
        r->state = AK_TC_STATE_SECTION;
    else
        r->state = has_name(best) ? AK_TC_STATE_NAME : AK_TC_STATE_ARGUMENTS;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result begin_in_section(struct ak_tc_parser *r, const struct ak_tc_syntax *syntax)
{
    r->syntax = syntax;
    r->pos += strlen(syntax->begin);
    r->call = (struct ak_tc_call){ 0 };
    r->state = AK_TC_STATE_NAME;
    return AK_TC_CONTINUE;
}

/* Between calls: begins the call with the longest matching marker, or ends the section. */
static enum ak_tc_result read_section(struct ak_tc_parser *r)
{
    const struct ak_tc_syntax *best = NULL;
    bool part = false;

    if (ak_tc_skip_whitespace(r, ",;") != AK_TC_CONTINUE)
        return AK_TC_NEED_MORE;
    enum ak_tc_match end = ak_tc_match_marker(r, r->pos, r->syntax->section_end);
    if (end == AK_TC_MATCH_YES) {
        r->pos += strlen(r->syntax->section_end);
        return ak_tc_begin_content(r, NULL);
    }
    for (unsigned i = 0; i < r->format->n_syntaxes; i++) {
        const struct ak_tc_syntax *syntax = &r->format->syntaxes[i];
        if (!strings_equal(syntax->section, r->section) ||
            (best && strlen(syntax->begin) <= strlen(best->begin)))
            continue;
        enum ak_tc_match match = ak_tc_match_marker(r, r->pos, syntax->begin);
        if (match == AK_TC_MATCH_YES)
            best = syntax;
        part |= match == AK_TC_MATCH_PARTIAL;
    }
    if ((part || end == AK_TC_MATCH_PARTIAL) && !r->is_closed)
        return AK_TC_NEED_MORE;
    if (best)
        return begin_in_section(r, best);
    if (part || end == AK_TC_MATCH_PARTIAL) { /* the text ends inside a marker */
        r->pos = r->has_call ? r->raw_begin = r->text.n : r->pos;
        return AK_TC_NEED_MORE;
    }
    if (!r->has_call)
        return ak_tc_set_malformed(r, "neither \"%s\" nor \"%s\" follows", r->syntax->begin,
                                   r->syntax->section_end);
    r->pos = r->raw_begin; /* without the end marker of the section */
    return ak_tc_begin_content(r, NULL);
}

/* Splits "functions.NAME:NUMBER": all of it is the id, NAME the name. */
static void split_id(struct ak_tc_parser *r)
{
    char *from = strncmp(r->name, "functions.", 10) == 0 ? r->name + 10 : r->name,
         *colon = strrchr(from, ':');

    strcpy(r->id, r->name);
    size_t n = colon ? (size_t)(colon - from) : strlen(from);
    memmove(r->name, from, n);
    r->name[n] = '\0';
}

static enum ak_tc_result fail_name_end(struct ak_tc_parser *r, const char *end)
{
    return ak_tc_set_malformed(r, "its name is followed by something else than \"%s\"",
                               end + strspn(end, " "));
}

static enum ak_tc_result read_call_name(struct ak_tc_parser *r)
{
    const struct ak_tc_syntax *syntax = r->syntax;
    const char *end = syntax->name_end ? syntax->name_end : "";
    size_t n, n_id = 0, after, from;

    if (ak_tc_skip_whitespace(r, "") != AK_TC_CONTINUE)
        return AK_TC_NEED_MORE;
    AK_TC_TRY(ak_tc_read_word(r, "<>[](){}\"'=,;|`", &n));
    if (n == 0)
        return ak_tc_set_malformed(r, "no name stands where one is expected");
    from = r->pos + n;
    if (syntax->id_begin) {
        enum ak_tc_match match = ak_tc_match_marker(r, from, syntax->id_begin);
        if (match == AK_TC_MATCH_PARTIAL)
            return AK_TC_NEED_MORE;
        size_t n_begin = match == AK_TC_MATCH_YES ? strlen(syntax->id_begin) : 0;
        for (from += n_begin;
             n_begin && from + n_id < r->text.n && r->text.bytes[from + n_id] != '['; n_id++)
            if (n_id == AK_TC_NAME_MAX)
                return ak_tc_set_malformed(r, "an id of more than %d bytes", AK_TC_NAME_MAX);
    }
    enum ak_tc_match match = ak_tc_match_loose_marker(r, from + n_id, end, &after);
    if (match == AK_TC_MATCH_PARTIAL)
        return AK_TC_NEED_MORE;
    if (match == AK_TC_MATCH_NO)
        return fail_name_end(r, end);
    memcpy(r->name, r->text.bytes + r->pos, n);
    memcpy(r->id, r->text.bytes + from, n_id);
    r->name[n] = r->id[n_id] = '\0';
    if (syntax->name_is_id)
        split_id(r);
    r->pos = r->scanned = after;
    r->state = AK_TC_STATE_ARGUMENTS;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result read_arguments(struct ak_tc_parser *r)
{
    switch (r->syntax->arguments) {
    case AK_TC_ARGS_JSON_CALL: return ak_tc_read_json_call(r);
    case AK_TC_ARGS_JSON: return ak_tc_read_json_arguments(r);
    case AK_TC_ARGS_PARAMETERS: return ak_tc_read_parameters(r);
    case AK_TC_ARGS_GEMMA: return ak_tc_read_gemma(r);
    case AK_TC_ARGS_PYTHON: return ak_tc_read_python(r);
    }
    return AK_TC_MALFORMED;
}

/* Whether another object follows, after a comma, a semicolon or nothing. *at gets its beginning. */
static enum ak_tc_match match_next_call(const struct ak_tc_parser *r, size_t *at)
{
    static const char *const between[] = { " {", " ; {", " , {" };
    enum ak_tc_match best = AK_TC_MATCH_NO;

    for (size_t i = 0, after; i < 3 && r->syntax->arguments == AK_TC_ARGS_JSON_CALL; i++) {
        enum ak_tc_match match = ak_tc_match_loose_marker(r, r->pos, between[i], &after);
        if (match == AK_TC_MATCH_YES)
            *at = after - 1;
        best = match > best ? match : best;
    }
    return best;
}

/* The call was reported already, so a missing end marker is not an error. */
static enum ak_tc_result read_end(struct ak_tc_parser *r)
{
    size_t after = r->pos;
    enum ak_tc_match more = match_next_call(r, &after);

    if (more == AK_TC_MATCH_YES) {
        r->pos = after;
        r->call = (struct ak_tc_call){ 0 };
        r->state = AK_TC_STATE_ARGUMENTS;
        return AK_TC_CONTINUE;
    }
    enum ak_tc_match match = r->syntax->end ?
                                 ak_tc_match_loose_marker(r, r->pos, r->syntax->end, &after) :
                                 AK_TC_MATCH_NO;
    if ((match == AK_TC_MATCH_PARTIAL || more == AK_TC_MATCH_PARTIAL) && match != AK_TC_MATCH_YES) {
        if (!r->is_closed)
            return AK_TC_NEED_MORE;
        if (match == AK_TC_MATCH_PARTIAL) /* the text ends inside the marker */
            after = r->text.n;
    }
    r->pos = r->raw_begin = after; /* the marker belongs to the call */
    if (!r->section)
        return ak_tc_begin_content(r, NULL);
    r->state = AK_TC_STATE_SECTION;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result read_state(struct ak_tc_parser *r)
{
    switch (r->state) {
    case AK_TC_STATE_SYNTAX: return select_syntax(r);
    case AK_TC_STATE_SECTION: return read_section(r);
    case AK_TC_STATE_NAME: return read_call_name(r);
    case AK_TC_STATE_ARGUMENTS: return read_arguments(r);
    default: return read_end(r);
    }
}

/* Whether the last call is complete and only separators of calls follow. */
static bool is_finished(const struct ak_tc_parser *r)
{
    bool nothing = r->has_call && !r->call_reported;

    for (size_t i = r->raw_begin; nothing && i < r->text.n; i++)
        nothing = ak_tc_is_whitespace(r->text.bytes[i]) || r->text.bytes[i] == ',' ||
                  r->text.bytes[i] == ';';
    return nothing;
}

enum ak_tc_result ak_tc_read_call(struct ak_tc_parser *r)
{
    enum ak_tc_result result = read_state(r);

    if (result != AK_TC_NEED_MORE || !r->is_closed)
        return result;
    bool broken = !is_finished(r);
    r->pos = r->text.n;
    r->state = AK_TC_STATE_TEXT;
    return broken ? ak_tc_set_malformed(r, "the text ends before the call does") : AK_TC_NEED_MORE;
}

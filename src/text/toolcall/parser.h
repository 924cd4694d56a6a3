/* State and steps of the reply parser. parser.c runs the steps of utf8_input.c, content.c,
 * harmony.c, call.c, the readers of arguments, match.c and emit.c. Private to these files.
 *
 * Unread text is r->text from r->pos. The function of the current state consumes what it can and
 * returns AK_TC_CONTINUE (r->pos or r->state changed), AK_TC_NEED_MORE, AK_TC_MALFORMED (not a
 * call; the reason is in r->call_error) or AK_TC_FAILED (out of memory). Text from r->raw_begin is
 * kept during a call and becomes content if the call is malformed. r->scanned bounds rescans, so
 * the cost per byte is constant. */
#ifndef AK_TEXT_TOOLCALL_PARSER_H
#define AK_TEXT_TOOLCALL_PARSER_H

#include "base/buffer.h"
#include "text/toolcall/scan.h"
#include "text/toolcall/toolcall.h"

enum ak_tc_result {
    AK_TC_NEED_MORE, /* need more input: the text ends too early */
    AK_TC_CONTINUE,
    AK_TC_MALFORMED,
    AK_TC_FAILED /* out of memory: r->error */
};

/* Parser state: the part of a reply that the unread text belongs to. */
enum ak_tc_state {
    AK_TC_STATE_TEXT,      /* content.c: in reasoning or content */
    AK_TC_STATE_HEADER,    /* harmony.c: before or in the header of a message */
    AK_TC_STATE_SYNTAX,    /* call.c: after the first marker, the syntax is not known yet */
    AK_TC_STATE_SECTION,   /* call.c: between the calls of a section */
    AK_TC_STATE_NAME,      /* call.c: before the name */
    AK_TC_STATE_ARGUMENTS, /* call.c: in the arguments */
    AK_TC_STATE_END,       /* call.c: after the arguments */
};

/* bytes, except the last */
enum {
    AK_TC_NAME_MAX = 256,
    AK_TC_WHITESPACE_MAX = 256,
    AK_TC_ID_BYTES = 9,
    AK_TC_MARKERS_MAX = 48
};

enum ak_tc_marker_kind {
    AK_TC_MARKER_REASONING,
    AK_TC_MARKER_REASONING_END,
    AK_TC_MARKER_CALL,
    AK_TC_MARKER_IGNORED,
    AK_TC_MARKER_HEADER,
    AK_TC_MARKER_MESSAGE_END
};

struct ak_tc_marker {
    const char *text;
    size_t n;
    enum ak_tc_marker_kind kind;
    const struct ak_tc_reasoning *reasoning; /* of the two REASONING kinds, else NULL */
    bool at_start;                           /* counts only if just whitespace precedes it */
    bool ends_reasoning;                     /* also counts in reasoning */
};

/* Progress within the arguments of one call. */
struct ak_tc_call {
    unsigned step;          /* enum step of the file that reads this kind of arguments */
    bool in_list, in_print; /* a list is open; inside print( */
    struct ak_tc_scan scan;
    struct ak_tc_literal literal;
    unsigned level; /* JSON: depth of the members of a call */
    enum ak_tc_member {
        AK_TC_MEMBER_OTHER,
        AK_TC_MEMBER_NAME,
        AK_TC_MEMBER_ARGUMENTS,
        AK_TC_MEMBER_ID,
        AK_TC_MEMBER_FUNCTION
    } member;                            /* JSON: the member being read */
    size_t value_begin;                  /* offset in r->text of the string or value being read */
    bool is_streamed;                    /* arguments are reported as they come */
    size_t arguments_begin, n_arguments; /* otherwise: range in r->text; n 0: not seen yet */
    bool is_string;                      /* PARAMETERS: the value is a string */
    bool has_parameter;                  /* PARAMETERS: one was reported */
    bool on_lines; /* PARAMETERS: the value has lines of its own, which a newline ends */
    bool has_text; /* PARAMETERS: the value has more than whitespace */
    size_t
        loose_end; /* PARAMETERS: where the value ends without a line of its own; 0: nowhere yet */
};

struct ak_tc_parser {
    const struct ak_tc_format *format;
    struct ak_tc_tools tools;
    bool parses_calls, parses_reasoning;
    uint64_t seed;
    akunu_reply_fn *on_event;
    void *user;

    struct ak_tc_marker markers[AK_TC_MARKERS_MAX];
    size_t n_markers;
    bool begins_marker[256]; /* whether some marker begins with this byte */

    struct ak_buffer text;          /* UTF-8 not yet dropped */
    size_t pos, scanned, raw_begin; /* offsets in text; see the top of this file */
    char partial[4];                /* first bytes of an incomplete character */
    size_t n_partial;
    bool is_closed; /* no more text will come */
    enum ak_tc_state state;

    const struct ak_tc_reasoning *reasoning; /* NULL: in content */
    bool at_start;     /* only whitespace since the beginning or since a marker */
    bool after_marker; /* a marker precedes, apart from whitespace */

    const struct ak_tc_syntax *syntax; /* of the current call; NULL: not known yet */
    const char *section;               /* marker of the open section; NULL: none */
    const char *open_marker;           /* marker that began the call; NULL: a bare call */
    struct ak_tc_call call;
    bool call_reported; /* AKUNU_REPLY_CALL was reported for the current call */
    bool has_call;      /* a call was completed since open_marker */
    size_t n_calls;     /* reported so far */
    char name[AK_TC_NAME_MAX + 1], id[AK_TC_NAME_MAX + 1]; /* of the current call */
    struct ak_buffer arguments;                            /* of the current call, JSON */
    struct ak_error call_error;                            /* why the call is malformed */

    struct ak_buffer outputs[2]; /* the whole content, the whole reasoning */
    struct ak_buffer notes;      /* on malformed calls, for the caller */
    json_t *tool_calls;          /* list, as in OpenAI's message */
    char *message;               /* result of ak_tc_parser_message; NULL: not made yet */
    struct ak_error error;
};

/* utf8_input.c: appends bytes to r->text as valid UTF-8. */
enum ak_tc_result ak_tc_add_bytes(struct ak_tc_parser *r, const char *bytes, size_t n);
enum ak_tc_result ak_tc_add_end(struct ak_tc_parser *r);

/* content.c */
void ak_tc_set_markers(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_content(struct ak_tc_parser *r);
/* Continues as `reasoning`, NULL: as content, after a marker that ended at r->pos. */
enum ak_tc_result ak_tc_begin_content(struct ak_tc_parser *r,
                                      const struct ak_tc_reasoning *reasoning);

/* harmony.c */
extern const struct ak_tc_reasoning ak_tc_harmony_analysis;
enum ak_tc_result ak_tc_read_harmony_header(struct ak_tc_parser *r);

/* call.c */
enum ak_tc_result ak_tc_read_call(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_begin_call(struct ak_tc_parser *r, const char *marker, size_t raw_begin,
                                   size_t after);
/* Turns the text of a malformed call into content. */
enum ak_tc_result ak_tc_reject_call(struct ak_tc_parser *r);

/* Argument readers. They end with r->state = AK_TC_STATE_END, r->pos after their last byte. */
enum ak_tc_result ak_tc_read_json_call(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_json_arguments(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_parameters(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_gemma(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_python(struct ak_tc_parser *r);

/* match.c: matches r->text at `from`. */
enum ak_tc_match {
    AK_TC_MATCH_NO,
    AK_TC_MATCH_PARTIAL, /* the text ends inside the marker */
    AK_TC_MATCH_YES
};
enum ak_tc_match ak_tc_match_marker(const struct ak_tc_parser *r, size_t from, const char *marker);
/* The same; a space of the marker stands for any whitespace. *after gets the end of the match. */
enum ak_tc_match ak_tc_match_loose_marker(const struct ak_tc_parser *r, size_t from,
                                          const char *marker, size_t *after);
/* Skips whitespace and bytes of `also`; AK_TC_NEED_MORE: the text ends there. */
enum ak_tc_result ak_tc_skip_whitespace(struct ak_tc_parser *r, const char *also);
/* *n gets the number of bytes from r->pos to the first whitespace, NUL or byte of `stops`.
 * AK_TC_MALFORMED: more than AK_TC_NAME_MAX. */
enum ak_tc_result ak_tc_read_word(struct ak_tc_parser *r, const char *stops, size_t *n);
enum ak_tc_result ak_tc_set_malformed(struct ak_tc_parser *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* emit.c: reports events and collects the message. AK_TC_CONTINUE, or AK_TC_FAILED. */
enum ak_tc_result ak_tc_emit_text(struct ak_tc_parser *r, const char *text, size_t n);
/* Reports r->name; makes r->id unless the model gave one. */
enum ak_tc_result ak_tc_emit_call(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_emit_arguments(struct ak_tc_parser *r, const char *text, size_t n);
/* The same for the JSON that r->call.literal makes of the text from r->pos; *step: its result. */
enum ak_tc_result ak_tc_emit_literal(struct ak_tc_parser *r, enum ak_tc_literal_result *step);
/* AK_TC_MALFORMED: the arguments are not a JSON object. */
enum ak_tc_result ak_tc_emit_call_end(struct ak_tc_parser *r);
/* The text since r->raw_begin is not a call; r->call_error says why. */
enum ak_tc_result ak_tc_emit_malformed(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_check(struct ak_tc_parser *r, ak_status status);

/* Returns from the calling function unless the result is AK_TC_CONTINUE. */
#define AK_TC_TRY(call)                                                                            \
    do {                                                                                           \
        enum ak_tc_result ak_tc_tried = (call);                                                    \
        if (ak_tc_tried != AK_TC_CONTINUE)                                                         \
            return ak_tc_tried;                                                                    \
    } while (0)

#endif

/* The inside of a reply, and how its parts work together.
 *
 * Text that is not done with lies in r->text from r->pos on. The part whose state it is
 * takes what it can and says how it went: AK_TC_CONTINUE, r->pos or r->state moved and there may be
 * more to do; AK_TC_NEED_MORE, only more text can tell; AK_TC_MALFORMED, this is no call:
 * r->call_error tells. The text from r->raw_begin on is kept while a call is read, and becomes
 * content if it breaks. Every byte is looked at a bounded number of times: what waits is short, or
 * remembers in r->scanned how far it looked. */
#ifndef AK_TOOLCALL_PARSER_H
#define AK_TOOLCALL_PARSER_H

#include "base/buffer.h"
#include "toolcall/scan.h"
#include "toolcall/toolcall.h"

enum ak_tc_result {
    AK_TC_NEED_MORE,
    AK_TC_CONTINUE,
    AK_TC_MALFORMED,
    AK_TC_FAILED /* out of memory: r->error */
};

enum ak_tc_state {
    AK_TC_STATE_TEXT,    /* reasoning or content: content.c */
    AK_TC_STATE_HEADER,  /* of a message in the harmony format: harmony.c */
    AK_TC_STATE_SYNTAX,  /* after the first marker: which syntax is it? call.c from here on */
    AK_TC_STATE_SECTION, /* between the calls of a section */
    AK_TC_STATE_NAME,
    AK_TC_STATE_ARGUMENTS,
    AK_TC_STATE_END, /* after the arguments */
};

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
    const struct ak_tc_reasoning
        *reasoning;      /* of AK_TC_MARKER_REASONING and AK_TC_MARKER_REASONING_END */
    bool at_start;       /* only where nothing but blanks stands before */
    bool ends_reasoning; /* counts there too */
};

/* Where in a body, each kind of body with its own names. */
struct ak_tc_call {
    unsigned step;
    bool in_list, in_print; /* a list is open; inside of print( */
    struct ak_tc_scan scan;
    struct ak_tc_literal literal;
    unsigned level; /* of JSON: the depth at which a call's members stand */
    enum ak_tc_member {
        AK_TC_MEMBER_OTHER,
        AK_TC_MEMBER_NAME,
        AK_TC_MEMBER_ARGUMENTS,
        AK_TC_MEMBER_ID,
        AK_TC_MEMBER_FUNCTION
    } member;
    size_t value_begin; /* where the string or the value began that is being read */
    bool is_streamed;   /* the arguments are passed on as they come */
    size_t arguments_begin, n_arguments; /* else where they are; n 0: not seen */
    bool is_string;                      /* of parameters: the value is a string */
    bool has_parameter;                  /* a parameter was written */
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
    bool begins_marker[256]; /* a marker begins with this byte */

    struct ak_buffer text;
    size_t pos, scanned, raw_begin;
    char partial[4]; /* a character whose last bytes are to come */
    size_t n_partial;
    bool is_closed; /* nothing more comes */
    enum ak_tc_state state;

    const struct ak_tc_reasoning *reasoning; /* NULL: this is content */
    bool at_start;     /* nothing but blanks since the beginning, or since a marker */
    bool after_marker; /* a marker stands right before, blanks aside */

    const struct ak_tc_syntax *syntax; /* of the call that is being read */
    const char *section;               /* inside of which this is */
    const char *open_marker;           /* the marker that began it, NULL: a bare call */
    struct ak_tc_call call;
    bool call_reported; /* AKUNU_REPLY_CALL was told */
    bool has_call;      /* there was a whole call since the first marker */
    size_t n_calls;
    char name[AK_TC_NAME_MAX + 1], id[AK_TC_NAME_MAX + 1];
    struct ak_buffer arguments;
    struct ak_error call_error;

    struct ak_buffer outputs[2]; /* the whole content, the whole reasoning */
    struct ak_buffer notes;
    json_t *tool_calls;
    char *message;
    struct ak_error error;
};

/* utf8_input.c: adds bytes to r->text, as UTF-8 without gaps. */
enum ak_tc_result ak_tc_add_bytes(struct ak_tc_parser *r, const char *bytes, size_t n);
enum ak_tc_result ak_tc_add_end(struct ak_tc_parser *r);

/* content.c */
void ak_tc_set_markers(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_content(struct ak_tc_parser *r);
/* At a place where text goes on, after a marker that ended at r->pos. */
enum ak_tc_result ak_tc_begin_content(struct ak_tc_parser *r,
                                      const struct ak_tc_reasoning *reasoning);

/* harmony.c */
extern const struct ak_tc_reasoning ak_tc_harmony_analysis;
enum ak_tc_result ak_tc_read_harmony_header(struct ak_tc_parser *r);

/* call.c */
enum ak_tc_result ak_tc_read_call(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_begin_call(struct ak_tc_parser *r, const char *marker, size_t raw_begin,
                                   size_t after);
/* Gives the text of a broken call back as content. */
enum ak_tc_result ak_tc_reject_call(struct ak_tc_parser *r);

/* The bodies. They stop with r->state = AK_TC_STATE_END behind the last byte of theirs. */
enum ak_tc_result ak_tc_read_json_call(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_json_arguments(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_parameters(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_gemma(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_read_python(struct ak_tc_parser *r);

/* match.c: looking at r->text from `from` on. */
enum ak_tc_match {
    AK_TC_MATCH_NO,
    AK_TC_MATCH_PARTIAL /* the text ends inside of it */,
    AK_TC_MATCH_YES
};
enum ak_tc_match ak_tc_match_marker(const struct ak_tc_parser *r, size_t from, const char *marker);
/* The same where a blank of the marker stands for any blanks; *after gets where it ends. */
enum ak_tc_match ak_tc_match_loose_marker(const struct ak_tc_parser *r, size_t from,
                                          const char *marker, size_t *after);
/* Moves r->pos over blanks, and over any of `also`; AK_TC_NEED_MORE where the text ends there. */
enum ak_tc_result ak_tc_skip_whitespace(struct ak_tc_parser *r, const char *also);
/* From r->pos to the first byte of `stops` or a blank: AK_TC_CONTINUE with the bytes' number,
 * AK_TC_MALFORMED where that is more than AK_TC_NAME_MAX. */
enum ak_tc_result ak_tc_read_word(struct ak_tc_parser *r, const char *stops, size_t *n);
enum ak_tc_result ak_tc_set_malformed(struct ak_tc_parser *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* emit.c: everything that leaves. AK_TC_CONTINUE, or AK_TC_FAILED. */
enum ak_tc_result ak_tc_emit_text(struct ak_tc_parser *r, const char *text, size_t n);
enum ak_tc_result
ak_tc_emit_call(struct ak_tc_parser *r); /* r->name, and r->id where the model gave one */
enum ak_tc_result ak_tc_emit_arguments(struct ak_tc_parser *r, const char *text, size_t n);
/* The same of what r->call.literal reads from r->pos on; *step is how far it came. */
enum ak_tc_result ak_tc_emit_literal(struct ak_tc_parser *r, enum ak_tc_literal_result *step);
/* AK_TC_MALFORMED where the arguments are no object. */
enum ak_tc_result ak_tc_emit_call_end(struct ak_tc_parser *r);
/* What the model wrote since r->raw_begin is no call, because of r->call_error. */
enum ak_tc_result ak_tc_emit_malformed(struct ak_tc_parser *r);
enum ak_tc_result ak_tc_check(struct ak_tc_parser *r, ak_status status);

/* Goes on in the calling function only where the call went fine. */
#define AK_TC_TRY(call)                                                                            \
    do {                                                                                           \
        enum ak_tc_result ak_tc_tried = (call);                                                    \
        if (ak_tc_tried != AK_TC_CONTINUE)                                                         \
            return ak_tc_tried;                                                                    \
    } while (0)

#endif

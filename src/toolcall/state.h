/* The inside of a reply, and how its parts work together.
 *
 * Text that is not done with lies in r->text from r->at on. The part whose place it is
 * takes what it can and says how it went: AK_ON, r->at or r->place moved and there may be
 * more to do; AK_WAIT, only more text can tell; AK_BROKEN, this is no call: r->why tells.
 * The text from r->raw on is kept while a call is read, and becomes content if it breaks.
 * Every byte is looked at a bounded number of times: what waits is short, or remembers in
 * r->seen how far it looked. */
#ifndef AK_TEXT_CALLS_STATE_H
#define AK_TEXT_CALLS_STATE_H

#include "base/buffer.h"
#include "toolcall/literal.h"
#include "toolcall/reply.h"
#include "toolcall/scan.h"
#include "toolcall/tools.h"

enum ak_progress { AK_WAIT, AK_ON, AK_BROKEN, AK_FAILED /* out of memory: r->error */ };

enum ak_place {
    AK_PLACE_TEXT,    /* reasoning or content: prose.c */
    AK_PLACE_HEADER,  /* of a message in the harmony format: harmony.c */
    AK_PLACE_SHAPE,   /* after the first marker: which shape is it? call.c from here on */
    AK_PLACE_SECTION, /* between the calls of a section */
    AK_PLACE_NAME,
    AK_PLACE_BODY,
    AK_PLACE_END, /* after a body */
};

enum { AK_MOST_NAME = 256, AK_MOST_BLANKS = 256, AK_CALL_ID_BYTES = 9, AK_MOST_MARKERS = 48 };

enum ak_marker_kind {
    AK_MARK_THINK,
    AK_MARK_ANSWER,
    AK_MARK_CALL,
    AK_MARK_DROP,
    AK_MARK_HEADER,
    AK_MARK_MESSAGE_END
};

struct ak_marker {
    const char *text;
    size_t n;
    enum ak_marker_kind kind;
    const struct ak_thinking *thinking; /* of AK_MARK_THINK and AK_MARK_ANSWER */
    bool start;                         /* only where nothing but blanks stands before */
    bool in_reasoning;                  /* counts there too */
};

/* Where in a body, each kind of body with its own names. */
struct ak_body {
    unsigned step;
    bool list, print; /* a list is open; inside of print( */
    struct ak_scan scan;
    struct ak_literal literal;
    unsigned level; /* of JSON: the depth at which a call's members stand */
    enum ak_member_name {
        AK_MEMBER_OTHER,
        AK_MEMBER_NAME,
        AK_MEMBER_ARGUMENTS,
        AK_MEMBER_ID,
        AK_MEMBER_FUNCTION
    } member;
    size_t mark;                   /* where the string or the value began that is being read */
    bool streams;                  /* the arguments are passed on as they come */
    size_t arguments, n_arguments; /* else where they are; n 0: not seen */
    bool string;                   /* of parameters: the value is a string */
    bool any;                      /* a parameter was written */
};

struct ak_reply {
    const struct ak_call_format *format;
    struct ak_tools tools;
    bool calls, reasoning;
    uint64_t seed;
    akunu_reply_fn *on_event;
    void *user;

    struct ak_marker markers[AK_MOST_MARKERS];
    size_t n_markers;
    bool first[256]; /* a marker begins with this byte */

    struct ak_buffer text;
    size_t at, seen, raw;
    char cut[4]; /* a character whose last bytes are to come */
    size_t n_cut;
    bool closed; /* nothing more comes */
    enum ak_place place;

    const struct ak_thinking *thinking; /* NULL: this is content */
    bool fresh;  /* nothing but blanks since the beginning, or since a marker */
    bool beside; /* a marker stands right before, blanks aside */

    const struct ak_call_shape *shape; /* of the call that is being read */
    const char *section;               /* inside of which this is */
    const char *opened;                /* the marker that began it, NULL: a bare call */
    struct ak_body body;
    bool begun;    /* AKUNU_REPLY_CALL was told */
    bool complete; /* there was a whole call since the first marker */
    size_t n_begun;
    char name[AK_MOST_NAME + 1], id[AK_MOST_NAME + 1];
    struct ak_buffer arguments;
    struct ak_error why;

    struct ak_buffer said[2]; /* the whole content, the whole reasoning */
    struct ak_buffer notes;
    json_t *tool_calls;
    char *message;
    struct ak_error error;
};

/* intake.c: adds bytes to r->text, as UTF-8 without gaps. */
enum ak_progress ak_intake(struct ak_reply *r, const char *bytes, size_t n);
enum ak_progress ak_intake_end(struct ak_reply *r);

/* prose.c */
void ak_prose_markers(struct ak_reply *r);
enum ak_progress ak_prose(struct ak_reply *r);
/* At a place where text goes on, after a marker that ended at r->at. */
enum ak_progress ak_prose_begin(struct ak_reply *r, const struct ak_thinking *thinking);

/* harmony.c */
extern const struct ak_thinking ak_harmony_analysis;
enum ak_progress ak_harmony_header(struct ak_reply *r);

/* call.c */
enum ak_progress ak_call(struct ak_reply *r);
enum ak_progress ak_call_open(struct ak_reply *r, const char *marker, size_t raw, size_t after);
/* Gives the text of a broken call back as content. */
enum ak_progress ak_call_break(struct ak_reply *r);

/* The bodies. They stop with r->place = AK_PLACE_END behind the last byte of theirs. */
enum ak_progress ak_json_body(struct ak_reply *r);
enum ak_progress ak_arguments_body(struct ak_reply *r);
enum ak_progress ak_parameters_body(struct ak_reply *r);
enum ak_progress ak_gemma_body(struct ak_reply *r);
enum ak_progress ak_python_body(struct ak_reply *r);

/* match.c: looking at r->text from `from` on. */
enum ak_match { AK_MATCH_NO, AK_MATCH_PART /* the text ends inside of it */, AK_MATCH_YES };
enum ak_match ak_match(const struct ak_reply *r, size_t from, const char *marker);
/* The same where a blank of the marker stands for any blanks; *after gets where it ends. */
enum ak_match ak_match_loosely(const struct ak_reply *r, size_t from, const char *marker,
                               size_t *after);
/* Moves r->at over blanks, and over any of `also`; AK_WAIT where the text ends there. */
enum ak_progress ak_skip_blanks(struct ak_reply *r, const char *also);
/* From r->at to the first byte of `stops` or a blank: AK_ON with the bytes' number, AK_BROKEN
 * where that is more than AK_MOST_NAME. */
enum ak_progress ak_read_word(struct ak_reply *r, const char *stops, size_t *n);
enum ak_progress ak_broken(struct ak_reply *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* emit.c: everything that leaves. AK_ON, or AK_FAILED. */
enum ak_progress ak_emit_text(struct ak_reply *r, const char *text, size_t n);
enum ak_progress ak_emit_call(struct ak_reply *r); /* r->name, and r->id where the model gave one */
enum ak_progress ak_emit_arguments(struct ak_reply *r, const char *text, size_t n);
/* The same of what r->body.literal reads from r->at on; *step is how far it came. */
enum ak_progress ak_emit_literal(struct ak_reply *r, enum ak_literal_step *step);
/* AK_BROKEN where the arguments are no object. */
enum ak_progress ak_emit_call_end(struct ak_reply *r);
/* What the model wrote since r->raw is no call, because of r->why. */
enum ak_progress ak_emit_broken(struct ak_reply *r);
enum ak_progress ak_failed(struct ak_reply *r, ak_status status);

/* Goes on in the calling function only where the call went fine. */
#define AK_GO(call)                                                                                \
    do {                                                                                           \
        enum ak_progress ak_went = (call);                                                         \
        if (ak_went != AK_ON)                                                                      \
            return ak_went;                                                                        \
    } while (0)

#endif

/* How models write the calls of tools: one table of formats, as data.
 *
 * A format has shapes. A shape's slots say what stands around a call and inside of it;
 * the same slots are read by the parser (call.c) and made into a grammar (grammar.c), so
 * what a grammar lets through is what the parser takes.
 *
 *     section { begin [name name_end] body end } section_end
 *
 * In end markers a blank stands for any blanks, or none. */
#ifndef AK_TEXT_CALLS_FORMAT_H
#define AK_TEXT_CALLS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "tokenizer/tokenizer.h"

enum ak_call_body {
    AK_BODY_JSON,       /* {"name": …, "arguments": {…}}, a list of these, or some in a row */
    AK_BODY_ARGUMENTS,  /* a name, then its arguments as an object of JSON */
    AK_BODY_PARAMETERS, /* a name, then each argument between markers of its own */
    AK_BODY_GEMMA,      /* a name, then {key:value, …} with marked strings */
    AK_BODY_PYTHON,     /* f(a=1, b="x"), a list of these, or one a line */
};

struct ak_call_shape {
    enum ak_call_body body;
    const char *section, *section_end; /* around all calls of a row; NULL: there is none */
    const char *begin, *end;           /* around one call; NULL: there is none */
    const char *name_end;              /* after the name, where it stands before the body */
    const char *id_begin;              /* between them: the call's id may follow */
    const char *key, *key_end;         /* around a parameter's name */
    const char *value, *value_end;     /* around its value */
    const char *quote;                 /* around a string of Gemma's */
    /* nothing marks it: it is a call only at the beginning of a message, and of a tool that is
     * known */
    bool bare;
    bool list;         /* what the model was taught is a list, also of one call (for the grammar) */
    bool lines;        /* a newline after `value` and one before `value_end` belong to them */
    bool typed;        /* a parameter says whether it is a string: string="true" */
    bool id_name;      /* the name is functions.NAME:NUMBER, and the call's id */
    bool in_reasoning; /* its first marker ends reasoning too */
    /* JSON's names as the model was taught them, for the grammar; the parser takes any. NULL:
     * "name", "arguments" */
    const char *json_name, *json_arguments;
    /* the name of an id: a number before the tool's name; NULL: there is none */
    const char *json_id;
    bool id_last; /* it is nine letters or digits after the arguments, if it is there */
};

enum { AK_MOST_SHAPES = 4, AK_MOST_SIGNS = 3, AK_MOST_DROPS = 6 };

struct ak_call_format {
    const char *name;
    struct ak_call_shape shapes[AK_MOST_SHAPES]; /* the first one is what the model was taught */
    unsigned n_shapes;
    const char *signs[AK_MOST_SIGNS]; /* a template with all of them is of this format */
    /* a vocabulary with this token too, where there is no template */
    const char *token;
    const char *drops[AK_MOST_DROPS]; /* markers around what is said */
    bool harmony;                     /* messages with headers: harmony.c */
};

/* Reasoning between two markers, whatever the format. */
struct ak_thinking {
    const char *open, *close;
    bool anywhere; /* the opening one counts in the middle of a text too: it is a control token */
};

/* Number i, NULL past the end. */
const struct ak_call_format *ak_call_format_at(size_t i);
const struct ak_call_format *ak_call_format_named(const char *name); /* NULL: there is none */
const struct ak_thinking *ak_thinking_at(size_t i);
/* Which reasoning the template began at the prompt's end; NULL: none. prompt may be NULL. */
const struct ak_thinking *ak_thinking_begun(const char *prompt);

/* By the template's text, else by the vocabulary's tokens, else "generic". Either may be NULL. */
const struct ak_call_format *ak_call_format_detect(const char *chat_template,
                                                   const struct ak_tokenizer *tokenizer);

#endif

/* How models write the calls of tools: one table of formats, as data.
 *
 * A format has shapes. A shape's slots say what stands around a call and inside of it;
 * the same slots are read by the parser (call.c) and made into a grammar (grammar.c), so
 * what a grammar lets through is what the parser takes.
 *
 *     section { begin [name name_end] body end } section_end
 *
 * In end markers a blank stands for any blanks, or none. */
#ifndef AK_TOOLCALL_TOOLCALL_H
#define AK_TOOLCALL_TOOLCALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "grammar/schema/schema.h"
#include "tokenizer/tokenizer.h"

/* ---- Formats ------------------------------------------------------------ */

enum ak_tc_arguments {
    AK_TC_ARGS_JSON_CALL, /* {"name": …, "arguments": {…}}, a list of these, or some in a row */
    AK_TC_ARGS_JSON,      /* a name, then its arguments as an object of JSON */
    AK_TC_ARGS_PARAMETERS, /* a name, then each argument between markers of its own */
    AK_TC_ARGS_GEMMA,      /* a name, then {key:value, …} with marked strings */
    AK_TC_ARGS_PYTHON,     /* f(a=1, b="x"), a list of these, or one a line */
};

struct ak_tc_syntax {
    enum ak_tc_arguments arguments;
    const char *section, *section_end; /* around all calls of a row; NULL: there is none */
    const char *begin, *end;           /* around one call; NULL: there is none */
    const char *name_end;              /* after the name, where it stands before the body */
    const char *id_begin;              /* between them: the call's id may follow */
    const char *key, *key_end;         /* around a parameter's name */
    const char *value, *value_end;     /* around its value */
    const char *quote;                 /* around a string of Gemma's */
    /* nothing marks it: it is a call only at the beginning of a message, and of a tool that is
     * known */
    bool is_bare;
    bool is_list;      /* what the model was taught is a list, also of one call (for the grammar) */
    bool has_newlines; /* a newline after `value` and one before `value_end` belong to them */
    bool is_typed;     /* a parameter says whether it is a string: string="true" */
    bool name_is_id;   /* the name is functions.NAME:NUMBER, and the call's id */
    bool ends_reasoning; /* its first marker ends reasoning too */
    /* JSON's names as the model was taught them, for the grammar; the parser takes any. NULL:
     * "name", "arguments" */
    const char *json_name, *json_arguments;
    /* the name of an id: a number before the tool's name; NULL: there is none */
    const char *json_id;
    bool id_is_last; /* it is nine letters or digits after the arguments, if it is there */
};

enum { AK_TC_SYNTAXES_MAX = 4, AK_TC_SIGNATURE_MAX = 3, AK_TC_IGNORED_MAX = 6 };

struct ak_tc_format {
    const char *name;
    /* the first one is what the model was taught */
    struct ak_tc_syntax syntaxes[AK_TC_SYNTAXES_MAX];
    unsigned n_syntaxes;
    const char *signature[AK_TC_SIGNATURE_MAX]; /* a template with all of them is of this format */
    /* a vocabulary with this token too, where there is no template */
    const char *token;
    const char *ignored_markers[AK_TC_IGNORED_MAX]; /* markers around what is said */
    bool harmony;                                   /* messages with headers: harmony.c */
};

/* Reasoning between two markers, whatever the format. */
struct ak_tc_reasoning {
    const char *begin, *end;
    /* the opening one counts in the middle of a text too: it is a control token */
    bool begins_anywhere;
};

/* Number i, NULL past the end. */
const struct ak_tc_format *ak_tc_format_at(size_t i);
const struct ak_tc_format *ak_tc_find_format(const char *name); /* NULL: there is none */
const struct ak_tc_reasoning *ak_tc_reasoning_at(size_t i);
/* Which reasoning the template began at the prompt's end; NULL: none. prompt may be NULL. */
const struct ak_tc_reasoning *ak_tc_find_open_reasoning(const char *prompt);

/* By the template's text, else by the vocabulary's tokens, else "generic". Either may be NULL. */
const struct ak_tc_format *ak_tc_detect_format(const char *chat_template,
                                               const struct ak_tokenizer *tokenizer);

/* ---- Tools -------------------------------------------------------------- */

struct ak_tc_tools {
    json_t *list;    /* of {"type": "function", "function": {"name", "parameters"}} */
    json_t *by_name; /* name → its "function" */
};

/* `text` NULL: no tools are known. Refused: what is no list of functions with names, a name twice.
 */
ak_status ak_tc_tools_parse(const char *text, struct ak_tc_tools *out, struct ak_error *error);
void ak_tc_tools_free(struct ak_tc_tools *tools);

static inline bool ak_tc_tools_are_known(const struct ak_tc_tools *tools)
{
    return tools->list != NULL;
}

bool ak_tc_tools_has(const struct ak_tc_tools *tools, const char *name, size_t n);

/* Is the parameter's value a string, whatever it looks like? */
bool ak_tc_tools_wants_string(const struct ak_tc_tools *tools, const char *tool,
                              const char *parameter, size_t n);

/* Adds as JSON the value whose text is given, of a parameter that need not be a string:
 * what it looks like, a string where it looks like nothing. */
ak_status ak_tc_put_value(const char *text, size_t n, struct ak_buffer *out,
                          struct ak_error *error);

/* Adds text to a string of JSON, escaped, without quotes. UTF-8 in. */
ak_status ak_tc_put_escaped(const char *text, size_t n, struct ak_buffer *out,
                            struct ak_error *error);

/* ---- Parser ------------------------------------------------------------- */

struct ak_tc_parser;

struct ak_tc_parser_params {
    const struct ak_tc_format *format;
    const char *prompt, *tools; /* NULL allowed */
    bool calls, reasoning;
    uint64_t seed;
    akunu_reply_fn *on_event; /* NULL allowed */
    void *user;
};

/* Copies what it needs of the settings. */
ak_status ak_tc_parser_create(const struct ak_tc_parser_params *settings, struct ak_tc_parser **out,
                              struct ak_error *error);
void ak_tc_parser_free(struct ak_tc_parser *r); /* NULL allowed */

ak_status ak_tc_parser_push(struct ak_tc_parser *r, const char *bytes, size_t n,
                            struct ak_error *error);
ak_status ak_tc_parser_end(struct ak_tc_parser *r, struct ak_error *error);

/* The message as JSON text, which belongs to the reply. */
ak_status ak_tc_parser_message(struct ak_tc_parser *r, const char **out, struct ak_error *error);
const char *ak_tc_parser_notes(const struct ak_tc_parser *r);
const struct ak_tc_format *ak_tc_parser_format(const struct ak_tc_parser *r);

/* ---- Grammar ------------------------------------------------------------ */

struct ak_tc_grammar_params {
    const struct ak_tc_format *format;
    /* NULL: markers are plain text. Needed during the call only. */
    const struct ak_tokenizer *tokenizer;
    const char *chat_template, *prompt; /* tell of reasoning; NULL allowed */
    const char *tools;                  /* as JSON text */
    /* NULL, "auto", "none", "required", a tool's name, or OpenAI's object that names one */
    const char *choice;
    bool parallel; /* more than one call */
    /* what a schema asks for and the format's grammar cannot keep is passed over */
    bool lax;
    struct ak_log log; /* told of it */
};

/* *out is NULL, and that no error, where nothing is to be constrained: no tools, or "none". What
 * cannot be kept is AKUNU_ERROR_UNSUPPORTED and named. */
ak_status ak_tc_build_grammar(const struct ak_tc_grammar_params *rules, struct ak_grammar **out,
                              struct ak_error *error);

#endif

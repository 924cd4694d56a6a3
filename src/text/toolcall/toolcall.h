/* Tool calls: the table of formats in which models write them, the tools of a request, the parser
 * of replies and the grammar that constrains a reply to valid calls.
 *
 * A tool-call format has syntaxes. A syntax names the markers around a call and inside it:
 *
 *     section { begin [name name_end] arguments end } section_end
 *
 * The parser (call.c) and the grammar (grammar.c) read the same syntax, so the parser accepts what
 * a grammar allows. In `name_end`, `value` and `end` a space stands for any whitespace, or none. */
#ifndef AK_TEXT_TOOLCALL_TOOLCALL_H
#define AK_TEXT_TOOLCALL_TOOLCALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "text/grammar/schema/schema.h"
#include "text/tokenizer/tokenizer.h"

/* ---- Formats ------------------------------------------------------------ */
enum ak_tc_arguments {
    AK_TC_ARGS_JSON_CALL, /* {"name": …, "arguments": {…}}, several in a row, or a list of them */
    AK_TC_ARGS_JSON,      /* a name, then its arguments as a JSON object */
    AK_TC_ARGS_PARAMETERS, /* a name, then each argument between its own markers */
    AK_TC_ARGS_GEMMA,      /* a name, then {key:value, …} with markers around strings */
    AK_TC_ARGS_PYTHON,     /* f(a=1, b="x"), one per line, or a list of them */
};

/* Markers are NULL if the syntax has none. */
struct ak_tc_syntax {
    enum ak_tc_arguments arguments;
    const char *section, *section_end; /* around consecutive calls */
    const char *begin, *end;           /* around one call */
    const char *name_end;              /* after the name; NULL: the name is in the arguments */
    const char *id_begin;              /* after the name: an optional call id follows */
    const char *key, *key_end;         /* around the name of a parameter */
    const char *value, *value_end;     /* around its value */
    const char *quote;                 /* Gemma: around a string */
    /* no distinctive marker: a call only at the beginning of a message, and only of a known tool */
    bool is_bare;
    bool is_list;        /* grammar: the model was taught a list, even of one call */
    bool has_newlines;   /* `value` includes a newline after it, `value_end` one before it */
    bool is_typed;       /* a parameter states whether it is a string: string="true" */
    bool name_is_id;     /* the name is functions.NAME:NUMBER, which is also the call id */
    bool ends_reasoning; /* its first marker also ends reasoning */
    /* grammar: member names that the model was taught; NULL: "name", "arguments". The parser
     * accepts all known names. */
    const char *json_name, *json_arguments;
    /* grammar: member name of the call id, a number before the name; NULL: no id */
    const char *json_id;
    bool id_is_last; /* instead the id is optional, nine letters or digits after the arguments */
};

enum { AK_TC_SYNTAXES_MAX = 4, AK_TC_SIGNATURE_MAX = 3, AK_TC_IGNORED_MAX = 6 };

struct ak_tc_format {
    const char *name;
    /* the first is the one that the model was taught */
    struct ak_tc_syntax syntaxes[AK_TC_SYNTAXES_MAX];
    unsigned n_syntaxes;
    const char *signature[AK_TC_SIGNATURE_MAX]; /* a template that contains all has this format */
    /* without a template: a vocabulary with this token has this format */
    const char *token;
    const char *ignored_markers[AK_TC_IGNORED_MAX]; /* around content; dropped */
    bool harmony;                                   /* messages with headers: harmony.c */
};

/* A pair of reasoning markers. Any format may have any of them. */
struct ak_tc_reasoning {
    const char *begin, *end;
    /* `begin` also counts in the middle of a text: it is a control token */
    bool begins_anywhere;
};

/* The i-th format; NULL: past the end. */
const struct ak_tc_format *ak_tc_format_at(size_t i);
const struct ak_tc_format *ak_tc_find_format(const char *name); /* NULL: unknown name */
const struct ak_tc_reasoning *ak_tc_reasoning_at(size_t i);
/* The reasoning that the prompt's end leaves open; NULL: none. `prompt` may be NULL. */
const struct ak_tc_reasoning *ak_tc_find_open_reasoning(const char *prompt);

/* Reasoning of answers by a template. */
struct ak_tc_reasoning_use {
    const char *begin, *end; /* markers; NULL: answers have no reasoning */
    const char *closing;     /* ends reasoning and begins the content; usually `end` */
    bool begins_anywhere;    /* as in struct ak_tc_reasoning */
    bool is_open;            /* the prompt ends inside reasoning */
};
/* `chat_template` and `prompt` may be NULL. Markers that the template does not have count only if
 * the prompt's end leaves one of them open. */
struct ak_tc_reasoning_use ak_tc_find_reasoning(const struct ak_tc_format *format,
                                                const char *chat_template, const char *prompt);

/* Detects the format by the template, else by tokens of the vocabulary, else returns "generic".
 * Both arguments may be NULL. */
const struct ak_tc_format *ak_tc_detect_format(const char *chat_template,
                                               const struct ak_tokenizer *tokenizer);

/* ---- Tools -------------------------------------------------------------- */
/* The tools of a request, as in OpenAI's API. The parser needs the types of parameters for formats
 * that write every value as plain text. */
struct ak_tc_tools {
    json_t *list; /* of {"type": "function", "function": {"name", "parameters"}}; NULL: unknown */
    json_t *by_name; /* object: name → its "function" */
};

/* `text` NULL: the tools are unknown. Fails unless it lists functions with distinct names. */
ak_status ak_tc_tools_parse(const char *text, struct ak_tc_tools *out, struct ak_error *error);
void ak_tc_tools_free(struct ak_tc_tools *tools);

static inline bool ak_tc_tools_are_known(const struct ak_tc_tools *tools)
{
    return tools->list != NULL;
}

bool ak_tc_tools_has(const struct ak_tc_tools *tools, const char *name, size_t n);

/* Whether the value of the parameter is a string, whatever it looks like. */
bool ak_tc_tools_wants_string(const struct ak_tc_tools *tools, const char *tool,
                              const char *parameter, size_t n);

/* Appends the text as a JSON value, for a parameter that may be of any type: the value that it
 * looks like, else a string. */
ak_status ak_tc_put_value(const char *text, size_t n, struct ak_buffer *out,
                          struct ak_error *error);

/* Appends UTF-8 text escaped for a JSON string, without quotes. */
ak_status ak_tc_put_escaped(const char *text, size_t n, struct ak_buffer *out,
                            struct ak_error *error);

/* ---- Parser ------------------------------------------------------------- */
/* Streaming parser of a reply; akunu_reply in akunu/text.h is its public form.
 *
 *     bytes → UTF-8     → content, markers     → call   → arguments    → events, message
 *             utf8_input.c  content.c, harmony.c  call.c   json_call.c …  emit.c
 */
struct ak_tc_parser;

struct ak_tc_parser_params {
    const struct ak_tc_format *format;
    const char *prompt, *tools; /* NULL allowed */
    bool calls, reasoning;
    uint64_t seed;
    akunu_reply_fn *on_event; /* NULL allowed */
    void *user;
};

/* Copies what it needs from the settings. */
ak_status ak_tc_parser_create(const struct ak_tc_parser_params *settings, struct ak_tc_parser **out,
                              struct ak_error *error);
void ak_tc_parser_free(struct ak_tc_parser *r); /* NULL allowed */

ak_status ak_tc_parser_push(struct ak_tc_parser *r, const char *bytes, size_t n,
                            struct ak_error *error);
ak_status ak_tc_parser_end(struct ak_tc_parser *r, struct ak_error *error);

/* The message as JSON text; owned by the parser. */
ak_status ak_tc_parser_message(struct ak_tc_parser *r, const char **out, struct ak_error *error);
const char *ak_tc_parser_notes(const struct ak_tc_parser *r);
const struct ak_tc_format *ak_tc_parser_format(const struct ak_tc_parser *r);

/* ---- Grammar ------------------------------------------------------------ */
/* Grammar of a reply: calls of the given tools, written in the format, with arguments that match
 * the schemas.
 *
 *     auto      any text; a call marker starts the grammar of calls, and any text may follow. In a
 *               format without markers the beginning of the text decides
 *     required  reasoning, if the template has it, then only calls
 *
 * With a grammar of the content, `auto` allows reasoning, then a text of it or calls.
 *
 * The parser accepts whatever the grammar allows, as calls that match the schemas. */
struct ak_tc_grammar_params {
    const struct ak_tc_format *format;
    /* NULL: markers are plain text. Not used after ak_tc_build_grammar. */
    const struct ak_tokenizer *tokenizer;
    const char *chat_template, *prompt; /* to detect reasoning; NULL allowed */
    const char *tools;                  /* JSON text; NULL: none */
    const struct ak_grammar *content;   /* of a reply without calls; NULL: any text */
    /* NULL, "auto", "none", "required", the name of a tool, or OpenAI's object that names one */
    const char *choice;
    bool parallel; /* allow more than one call */
    /* ignore constraints of a schema that the grammar of this format cannot express */
    bool lax;
    struct ak_log log; /* reports these */
};

/* *out is NULL, without an error, if there is nothing to constrain: no content, and no tools or
 * "none".
 * AKUNU_ERROR_UNSUPPORTED: a constraint cannot be expressed; the message names it. */
ak_status ak_tc_build_grammar(const struct ak_tc_grammar_params *rules, struct ak_grammar **out,
                              struct ak_error *error);

#endif

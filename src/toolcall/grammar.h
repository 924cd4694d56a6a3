/* Grammars that hold a model to calls: those of the tools, in the form of a format, with
 * arguments that the tools' schemas allow.
 *
 *     auto      any text; any marker of a call begins the grammar, and after the call's end
 *               it is any text again. In a format without markers the beginning decides
 *     required  reasoning, where the template has it, then calls and nothing else
 *
 * What a grammar lets through the parser takes, and ends as a call that the schemas allow. */
#ifndef AK_TOOLCALL_GRAMMAR_H
#define AK_TOOLCALL_GRAMMAR_H

#include <jansson.h>

#include "toolcall/toolcall.h"
#include "grammar/schema/schema.h"

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

/* Builder of the grammar that constrains a reply to valid tool calls: its state, and the functions
 * of grammar*.c. */
#ifndef AK_TEXT_TOOLCALL_BUILDER_H
#define AK_TEXT_TOOLCALL_BUILDER_H

#include "text/grammar/builder.h"
#include "text/toolcall/toolcall.h"

struct ak_tc_builder {
    struct ak_grammar_builder gb;
    const struct ak_tc_grammar_params *params;
    const struct ak_tc_syntax *syntax;
    const struct ak_tc_tools *tools;
    const json_t *named_tool; /* the only tool allowed; NULL: any */
    const json_t *root;       /* schema of the call being built */
    const char *tool;         /* name of its tool */
    bool is_opened;           /* the first bracket of the call being built is already written */
    uint32_t text_rule;       /* rule of ak_tc_build_text */
    /* per syntax: rule of any call, [1]: without its first bracket; 0: not built yet */
    uint32_t call_rules[AK_TC_SYNTAXES_MAX][2];
    uint32_t any_value_rule; /* rule of any value, plus 1; 0: not built yet */
};

/* grammar.c: consecutive calls in r->syntax. `behind`: the marker of a section or of a call, or the
 * first bracket, that was already written; NULL: none. */
uint32_t ak_tc_build_calls(struct ak_tc_builder *r, const char *behind);

/* grammar_values.c: a value that matches the schema, written as r->syntax writes values. A raw
 * value is alone between markers, its strings without quotes; `after` is the marker that ends it.
 */
uint32_t ak_tc_build_value(struct ak_tc_builder *r, const json_t *schema, unsigned depth);
uint32_t ak_tc_build_raw_value(struct ak_tc_builder *r, const json_t *schema, const char *after);
uint32_t ak_tc_build_arguments(struct ak_tc_builder *r, const json_t *schema);

/* grammar_markers.c: a marker as text and control tokens; NULL: the empty text. */
uint32_t ak_tc_build_marker(struct ak_tc_builder *r, const char *marker);
/* The same; a space of the marker stands for any whitespace. */
uint32_t ak_tc_build_loose_marker(struct ak_tc_builder *r, const char *marker);
uint32_t ak_tc_build_whitespace(struct ak_tc_builder *r); /* any amount, also none */
/* Any text up to and including the marker, then `then`. */
uint32_t ak_tc_build_until(struct ak_tc_builder *r, const char *marker, uint32_t then);

/* grammar_text.c: any text, with reasoning and calls wherever the parser would find them. */
uint32_t ak_tc_build_text(struct ak_tc_builder *r);
/* The rest of reasoning that has begun, then `then`; NULL: then ak_tc_build_text, or the end. */
uint32_t ak_tc_build_reasoning(struct ak_tc_builder *r, const struct ak_tc_reasoning *t,
                               const uint32_t *then);

#endif

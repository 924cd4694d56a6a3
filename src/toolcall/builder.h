/* What the parts of the grammar builder for calls share. */
#ifndef AK_TOOLCALL_BUILDER_H
#define AK_TOOLCALL_BUILDER_H

#include "grammar/builder.h"
#include "toolcall/toolcall.h"

struct ak_tc_builder {
    struct ak_grammar_builder gb;
    const struct ak_tc_grammar_params *params;
    const struct ak_tc_syntax *syntax;
    const struct ak_tc_tools *tools;
    const json_t *named_tool; /* the tool that is asked for; NULL: any */
    const json_t *root;       /* the schema of the tool whose call is being built */
    const char *tool;
    bool is_opened;     /* the first bracket of the call that is being built was written */
    uint32_t text_rule; /* the rule of ak_tc_build_text */
    uint32_t call_rules[AK_TC_SYNTAXES_MAX]
                       [2];  /* of each shape, whole and opened; 0: not built yet */
    uint32_t any_value_rule; /* the rule of any value, plus 1; 0: there is none yet */
};

/* grammar.c: a row of calls in the syntax r->syntax, as it goes on behind one of its markers: its
 * section's, a call's, or the first bracket where it has none. */
uint32_t ak_tc_build_calls(struct ak_tc_builder *r, const char *behind);

/* grammar_values.c: a value in the form of the syntax, by its schema. `raw`: the value stands
 * alone between markers, strings without quotes, and `after` follows it. */
uint32_t ak_tc_build_value(struct ak_tc_builder *r, const json_t *schema, unsigned depth);
uint32_t ak_tc_build_raw_value(struct ak_tc_builder *r, const json_t *schema, const char *after);
uint32_t ak_tc_build_arguments(struct ak_tc_builder *r, const json_t *schema);

/* grammar_markers.c: a marker as text and control tokens; NULL: the empty text. */
uint32_t ak_tc_build_marker(struct ak_tc_builder *r, const char *marker);
/* in which a blank stands for any blanks */
uint32_t ak_tc_build_loose_marker(struct ak_tc_builder *r, const char *marker);
uint32_t ak_tc_build_whitespace(struct ak_tc_builder *r); /* some, or none */
/* Any text up to the marker, then `then`. */
uint32_t ak_tc_build_until(struct ak_tc_builder *r, const char *marker, uint32_t then);

/* grammar_text.c: any text with reasoning and calls in it, as the parser would find them. */
uint32_t ak_tc_build_text(struct ak_tc_builder *r);
/* Reasoning that has begun, then `then`; NULL: then any such text, or none. */
uint32_t ak_tc_build_reasoning(struct ak_tc_builder *r, const struct ak_tc_reasoning *t,
                               const uint32_t *then);

#endif

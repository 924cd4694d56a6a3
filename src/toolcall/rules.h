/* What the parts of the grammar builder for calls share. */
#ifndef AK_TEXT_CALLS_RULES_H
#define AK_TEXT_CALLS_RULES_H

#include "toolcall/grammar.h"
#include "toolcall/tools.h"
#include "grammar/build.h"

struct ak_rules {
    struct ak_build build;
    const struct ak_call_rules *given;
    const struct ak_call_shape *shape;
    const struct ak_tools *tools;
    const json_t *named; /* the tool that is asked for; NULL: any */
    const json_t *root;  /* the schema of the tool whose call is being built */
    const char *tool;
    bool opened;   /* the first bracket of the call that is being built was written */
    uint32_t text; /* the rule of ak_rules_text */
    uint32_t calls[AK_MOST_SHAPES][2]; /* of each shape, whole and opened; 0: not built yet */
    uint32_t any;                      /* the rule of any value, plus 1; 0: there is none yet */
};

/* grammar.c: a row of calls in the shape r->shape, as it goes on behind one of its markers: its
 * section's, a call's, or the first bracket where it has none. */
uint32_t ak_rules_row(struct ak_rules *r, const char *behind);

/* rule_values.c: a value in the form of the shape's body, by its schema. `raw`: the value stands
 * alone between markers, strings without quotes, and `after` follows it. */
uint32_t ak_rules_value(struct ak_rules *r, const json_t *schema, unsigned depth);
uint32_t ak_rules_raw_value(struct ak_rules *r, const json_t *schema, const char *after);
uint32_t ak_rules_arguments(struct ak_rules *r, const json_t *schema);

/* rule_markers.c: a marker as text and control tokens; NULL: the empty text. */
uint32_t ak_rules_marker(struct ak_rules *r, const char *marker);
/* in which a blank stands for any blanks */
uint32_t ak_rules_loose_marker(struct ak_rules *r, const char *marker);
uint32_t ak_rules_blanks(struct ak_rules *r); /* some, or none */
/* Any text up to the marker, then `then`. */
uint32_t ak_rules_until(struct ak_rules *r, const char *marker, uint32_t then);

/* rule_text.c: any text with reasoning and calls in it, as the parser would find them. */
uint32_t ak_rules_text(struct ak_rules *r);
/* Reasoning that has begun, then `then`; NULL: then any such text, or none. */
uint32_t ak_rules_reasoning(struct ak_rules *r, const struct ak_thinking *t, const uint32_t *then);

#endif

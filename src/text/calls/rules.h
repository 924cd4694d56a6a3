/* What the parts of the grammar builder for calls share. */
#ifndef AK_TEXT_CALLS_RULES_H
#define AK_TEXT_CALLS_RULES_H

#include "text/calls/grammar.h"
#include "text/grammar/build.h"

struct ak_rules {
    struct ak_build build;
    const struct ak_call_rules *given;
    const struct ak_call_shape *shape;
    const json_t *root; /* the schema of the tool whose call is being built */
    const char *tool;
    uint32_t any; /* the rule of any value, plus 1; 0: there is none yet */
};

/* rule_values.c: a value in the form of the shape's body, by its schema. `raw`: the value stands
 * alone between markers, strings without quotes, and `after` follows it. */
uint32_t ak_rules_value(struct ak_rules *r, const json_t *schema, unsigned depth);
uint32_t ak_rules_raw_value(struct ak_rules *r, const json_t *schema, const char *after);
uint32_t ak_rules_arguments(struct ak_rules *r, const json_t *schema);

/* rule_markers.c: a marker as text and control tokens; NULL: the empty text. */
uint32_t ak_rules_marker(struct ak_rules *r, const char *marker);
uint32_t ak_rules_loose_marker(struct ak_rules *r, const char *marker); /* in which a blank stands for any blanks */
uint32_t ak_rules_blanks(struct ak_rules *r); /* some, or none */
/* Any text up to the marker, then `then`. */
uint32_t ak_rules_until(struct ak_rules *r, const char *marker, uint32_t then);
/* The same where the marker need not come. */
uint32_t ak_rules_waiting(struct ak_rules *r, const char *marker, uint32_t then, bool again);

#endif

/* What the parts of the schema compiler share.
 *
 * A schema is taken as a list of terms that must all hold: itself, what it refers to, and
 * what allOf adds. Where a term offers a choice (anyOf, oneOf), the list is compiled once
 * with each of the alternatives. What is then left is compiled type by type. Equal lists
 * are one rule, which is how recursion ends. */
#ifndef AK_TEXT_GRAMMAR_SCHEMA_PARTS_H
#define AK_TEXT_GRAMMAR_SCHEMA_PARTS_H

#include "grammar/dfa.h"
#include "grammar/schema/schema.h"

enum {
    AK_TYPE_NULL = 1,
    AK_TYPE_BOOLEAN = 2,
    AK_TYPE_INTEGER = 4,
    AK_TYPE_FRACTION = 8,
    AK_TYPE_STRING = 16,
    AK_TYPE_ARRAY = 32,
    AK_TYPE_OBJECT = 64,
    AK_TYPE_ALL = 127
};

enum {
    AK_SCHEMA_MOST_DEPTH = 100,
    AK_SCHEMA_MOST_RULES = 20000,
    AK_SCHEMA_MOST_TERMS = 4096,
    AK_SCHEMA_MOST_MEMBERS = 4096,
    AK_SCHEMA_MOST_TRIALS = 20000
};

struct ak_term {
    const json_t *schema;
    uint32_t choices; /* of its choices so many are made */
    uint32_t from;    /* the term that brought it, plus 1 */
};

struct ak_terms {
    struct ak_term *items;
    uint32_t n, room;
    bool never; /* one of them is false */
};

struct ak_rule_of {
    struct ak_term *terms; /* sorted */
    uint32_t n, rule, hash;
    bool values_done;
};

/* A pattern, read once. */
struct ak_known_dfa {
    char *text;
    size_t n;
    struct ak_dfa dfa;
    bool failed; /* passed over */
};

struct ak_compiler {
    struct ak_build build;
    const json_t *root;
    const struct ak_schema_options *options;
    bool reading;
    unsigned depth;
    struct ak_rule_of *rules;
    uint32_t n_rules, room_rules;
    const json_t **checked; /* schemas whose keywords were looked at: open addressing */
    uint32_t n_checked, checked_mask;
    struct ak_compiler *outer; /* of a trial */
    /* array of [owner's number, choice, alternatives]; the outermost one's */
    json_t *made;
    struct ak_known_dfa **known;
    uint32_t n_known, room_known;
    uint32_t space, string_chars;  /* parts, 0: not built yet */
    struct ak_char_set *char_sets; /* what char_parts are of */
    uint32_t *char_parts, n_char_parts, room_char_sets, room_char_parts;
    unsigned *trials;
};

static inline bool ak_schema_ok(const struct ak_compiler *c)
{
    return ak_build_ok(&c->build);
}

/* Records that `keyword` of the schema is not supported, for `why`. Lax: a warning, and the
 * keyword is passed over. */
void ak_schema_refuse(struct ak_compiler *c, const json_t *schema, const char *keyword,
                      const char *why);
/* The schema is none: what is wrong with the keyword. */
void ak_schema_wrong(struct ak_compiler *c, const json_t *schema, const char *keyword,
                     const char *expected);

/* keywords.c: looks once at all keywords of a schema. */
void ak_schema_check(struct ak_compiler *c, const json_t *schema);

/* terms.c */
void ak_terms_add(struct ak_compiler *c, struct ak_terms *t, const json_t *schema, uint32_t from);
void ak_terms_copy(struct ak_compiler *c, struct ak_terms *to, const struct ak_terms *from);
void ak_terms_join(struct ak_compiler *c, struct ak_terms *to, const struct ak_terms *more);
void ak_terms_free(struct ak_terms *t);
unsigned ak_terms_types(struct ak_compiler *c, const struct ak_terms *t);
/* The alternatives of the choice that is to be made next; NULL: none is left. *term is whose
 * it is, *one that exactly one of them may hold. */
const json_t *ak_terms_choice(struct ak_compiler *c, const struct ak_terms *t, uint32_t *term,
                              bool *one);

/* reference.c: what $ref stands for; NULL after a failure. */
const json_t *ak_schema_resolve(struct ak_compiler *c, const json_t *schema, const char *ref);

/* compile.c */
uint32_t ak_schema_compile(struct ak_compiler *c, const struct ak_terms *t);
void ak_compiler_begin(struct ak_compiler *c, struct ak_error *error);
void ak_compiler_free(struct ak_compiler *c); /* but for its builder */
/* Does a value satisfy the terms? */
bool ak_schema_allows(struct ak_compiler *c, const struct ak_terms *t, const json_t *value);
/* White space that may be here. */
uint32_t ak_schema_space(struct ak_compiler *c);

/* values.c: the values that enum and const leave, NULL where neither is there; a new array. */
json_t *ak_schema_values(struct ak_compiler *c, const struct ak_terms *t);
uint32_t ak_schema_literal(struct ak_compiler *c, const json_t *value);
bool ak_json_same(const json_t *a, const json_t *b); /* as JSON Schema has it: 1 and 1.0 are */
char *ak_json_written(const json_t *value);          /* free with ak_free; NULL without memory */

/* decimal.c: numbers as digits. */
struct ak_decimal {
    bool negative;
    char *before, *after; /* of the point; without leading and trailing zeros; zero has neither */
    size_t n_before, n_after;
};
enum { AK_NUMBER_BYTES = 32 };
/* the shortest that reads back the same */
const char *ak_number_text(const json_t *number, char text[AK_NUMBER_BYTES]);
bool ak_decimal_read(const char *text, struct ak_decimal *out); /* false without memory */
void ak_decimal_free(struct ak_decimal *d);
int ak_decimal_compare(const struct ak_decimal *a, const struct ak_decimal *b);
/* the next integer that way; false without memory */
bool ak_decimal_step(struct ak_decimal *d, bool up);

/* number.c */
struct ak_number_range {
    bool has_low, has_high, low_strict, high_strict;
    struct ak_decimal low, high;
    bool integer;      /* then the bounds are integers, and not strict */
    uint32_t decimals; /* at most; AK_MANY */
    uint64_t multiple; /* of integers; 1: any */
};
/* False: no number is left. To be freed in any case. */
bool ak_schema_range(struct ak_compiler *c, const struct ak_terms *t, bool integer,
                     struct ak_number_range *out);
void ak_schema_range_free(struct ak_number_range *r);
bool ak_schema_ranges_meet(const struct ak_number_range *a, const struct ak_number_range *b);
uint32_t ak_schema_number(struct ak_compiler *c, const struct ak_terms *t, bool integer);
/* range.c: numbers between bounds, the larger of them first by size: |low| ≤ |high|. */
uint32_t ak_schema_digits(struct ak_compiler *c, const struct ak_number_range *r);

/* strings.c */
struct ak_string_limits {
    uint32_t low, high; /* characters */
    bool has_dfa;
    struct ak_dfa dfa;
};
bool ak_schema_string_limits(struct ak_compiler *c, const struct ak_terms *t,
                             struct ak_string_limits *out);
/* The same as one machine: lengths and values included. */
void ak_schema_string_dfa(struct ak_compiler *c, const struct ak_terms *t, struct ak_dfa *out);
uint32_t ak_schema_string(struct ak_compiler *c, const struct ak_terms *t);
uint32_t ak_schema_quoted(struct ak_compiler *c, const char *text, size_t n);
/* with the quotes */
uint32_t ak_schema_quoted_dfa(struct ak_compiler *c, const struct ak_dfa *dfa);
const struct ak_dfa *ak_schema_pattern(struct ak_compiler *c, const json_t *schema,
                                       const char *keyword, const char *text, size_t n);
void ak_schema_narrow(struct ak_compiler *c, struct ak_dfa *d, const struct ak_dfa *by,
                      bool not_by);

/* formats.c: the pattern of a format; NULL: not supported. */
const char *ak_format_pattern(const char *name);

/* arrays.c, objects.c */
uint32_t ak_schema_array(struct ak_compiler *c, const struct ak_terms *t);
uint32_t ak_schema_object(struct ak_compiler *c, const struct ak_terms *t);
void ak_schema_item_terms(struct ak_compiler *c, const struct ak_terms *t, size_t i,
                          struct ak_terms *out);
void ak_schema_counts(struct ak_compiler *c, const struct ak_terms *t, const char *least,
                      const char *most, uint32_t *low, uint32_t *high);
void ak_schema_member_terms(struct ak_compiler *c, const struct ak_terms *t, const char *name,
                            size_t n, struct ak_terms *out);
bool ak_schema_requires(const struct ak_terms *t, const char *name, size_t n);

/* disjoint.c: can no value satisfy both? False where that is not seen. */
bool ak_schema_disjoint(struct ak_compiler *c, const struct ak_terms *a, const struct ak_terms *b,
                        unsigned depth);

#endif

/* Internals of the compiler from JSON Schema to a grammar.
 *
 * A schema is compiled as a list of terms that must all hold: the schema itself, what it refers to,
 * and what allOf adds. If a term offers alternatives (anyOf, oneOf, not, if), the list is compiled
 * once with each of them. Else, if enum or const list values, it becomes those that it allows; else
 * it is compiled type by type. Equal lists share a rule, which ends recursion. */
#ifndef AK_TEXT_GRAMMAR_SCHEMA_COMPILER_H
#define AK_TEXT_GRAMMAR_SCHEMA_COMPILER_H

#include "text/grammar/dfa.h"
#include "text/grammar/schema/schema.h"

enum {
    AK_SCHEMA_TYPE_NULL = 1,
    AK_SCHEMA_TYPE_BOOLEAN = 2,
    AK_SCHEMA_TYPE_INTEGER = 4,
    AK_SCHEMA_TYPE_FRACTION = 8, /* numbers that are not integers */
    AK_SCHEMA_TYPE_STRING = 16,
    AK_SCHEMA_TYPE_ARRAY = 32,
    AK_SCHEMA_TYPE_OBJECT = 64,
    AK_SCHEMA_TYPE_ALL = 127
};

enum {
    AK_SCHEMA_DEPTH_MAX = 100,
    AK_SCHEMA_RULES_MAX = 20000,
    AK_SCHEMA_TERMS_MAX = 4096,
    AK_SCHEMA_MEMBERS_MAX = 4096,
    AK_SCHEMA_TRIALS_MAX = 20000,
    /* Digits before the point, and after it, that a model may write unless a bound says more; it
     * might never stop otherwise. Identifiers have up to 20, UUIDs as integers 39. */
    AK_SCHEMA_WRITTEN_DIGITS_MAX = 40
};

#define AK_SCHEMA_NO_TERM UINT32_MAX

struct ak_schema_term {
    const json_t *schema;
    uint32_t n_choices; /* choices already made: anyOf, oneOf, dependent keywords, not, if */
    uint32_t origin;    /* index plus 1 of the term that refers to it; 0: none */
};

struct ak_schema_terms {
    struct ak_schema_term *items;
    uint32_t n, capacity;
    bool is_unsatisfiable; /* no value can satisfy them, e.g. one is `false` */
};

/* A term of a rule. */
struct ak_schema_rule_term {
    const json_t *schema;
    const json_t *origin; /* the schema that refers to it; NULL: none, or it does not matter */
    uint32_t n_choices;
};

/* The rule of a list of terms. */
struct ak_schema_rule {
    struct ak_schema_rule_term *terms; /* sorted */
    uint32_t n, rule, hash;
    bool values_done; /* compiled without enum and const */
};

/* A pattern, compiled once. */
struct ak_schema_cached_pattern {
    char *text;
    size_t n; /* bytes of `text` */
    struct ak_grammar_dfa dfa;
    bool failed; /* refused, or ignored if lax */
};

struct ak_schema_compiler {
    struct ak_grammar_builder builder;
    const json_t *root; /* the document that $ref refers to */
    const struct ak_schema_options *options;
    bool reading;   /* the form is AK_SCHEMA_READING */
    unsigned depth; /* nesting of values */
    struct ak_schema_rule *rules;
    uint32_t n_rules, rules_capacity;
    const json_t **checked_schemas; /* hash set of schemas with checked keywords, open addressing */
    uint32_t n_checked, checked_mask;
    struct ak_schema_compiler *outer; /* the compiler that runs this one as a trial; NULL: none */
    /* lists of made schemas: array of [address, number, list], choices.c; only of the outermost
     * compiler */
    json_t *made;
    struct ak_schema_cached_pattern **patterns;
    uint32_t n_patterns, patterns_capacity;
    uint32_t space, string_chars;          /* expressions; 0: not built yet */
    struct ak_grammar_char_set *char_sets; /* set of each char_exprs entry */
    uint32_t *char_exprs, n_char_exprs, char_sets_capacity, char_exprs_capacity;
    unsigned *trials; /* count of trials, shared with inner compilers */
};

static inline bool ak_schema_ok(const struct ak_schema_compiler *c)
{
    return ak_gb_ok(&c->builder);
}

/* Fails because `keyword` of the schema is not supported, for the reason `why`. If lax: logs a
 * warning, and the keyword is ignored. */
void ak_schema_refuse(struct ak_schema_compiler *c, const json_t *schema, const char *keyword,
                      const char *why);
/* Fails because the schema is invalid: the value of `keyword` is not what was expected. */
void ak_schema_fail_invalid(struct ak_schema_compiler *c, const json_t *schema, const char *keyword,
                            const char *expected);

/* keywords.c: checks all keywords of a schema, once per schema. */
void ak_schema_check_keywords(struct ak_schema_compiler *c, const json_t *schema);
/* Is it true or {}? */
bool ak_schema_says_nothing(const json_t *schema);
/* Does this keyword of the schema, with this value, restrict nothing? */
bool ak_schema_is_silent(const json_t *schema, const char *key, const json_t *value);

/* Keywords of made schemas. No text of JSON has such names, which are no UTF-8. */
#define AK_SCHEMA_OPPOSITE "\377opposite" /* made from what it is the opposite of */
#define AK_SCHEMA_ONE_OF "\377one of"     /* a `not` made for the oneOf of that schema */
#define AK_SCHEMA_FRACTION "\377fraction" /* numbers that are not integers */
#define AK_SCHEMA_EXCEPT "\377except"     /* strings that are not in the list */
#define AK_SCHEMA_UNLIKE "\377unlike"     /* strings that do not match the pattern */

/* terms.c. `from`: index plus 1 of the term that refers to the schema; 0: none. */
void ak_schema_terms_add(struct ak_schema_compiler *c, struct ak_schema_terms *t,
                         const json_t *schema, uint32_t from);
void ak_schema_terms_copy(struct ak_schema_compiler *c, struct ak_schema_terms *to,
                          const struct ak_schema_terms *from);
void ak_schema_terms_free(struct ak_schema_terms *t);
/* Is the term the term `from`, or did that one add it, so that it evaluates members and items for
 * the unevaluated… of `from`? Terms of an opposite do not. */
bool ak_schema_terms_evaluates(const struct ak_schema_terms *t, uint32_t term, uint32_t from);
/* The first schema of the terms that has the keyword; NULL: none. */
const json_t *ak_schema_terms_find_with(const struct ak_schema_terms *t, const char *keyword);
unsigned ak_schema_get_types(struct ak_schema_compiler *c, const json_t *schema);
unsigned ak_schema_terms_get_types(struct ak_schema_compiler *c, const struct ak_schema_terms *t);

/* choices.c */
/* The alternatives of the next choice; NULL: no choice is left. *term: index of the term that
 * offers it; *one: exactly one alternative may hold (oneOf). */
const json_t *ak_schema_terms_find_alternatives(struct ak_schema_compiler *c,
                                                const struct ak_schema_terms *t, uint32_t *term,
                                                bool *one);
/* A schema that only holds where `schema` does not. */
const json_t *ak_schema_make_not(struct ak_schema_compiler *c, const json_t *schema);
/* The alternatives of oneOf, each with the opposites of the others; NULL: out of memory. */
const json_t *ak_schema_make_exclusive(struct ak_schema_compiler *c, const json_t *schema,
                                       const json_t *alternatives);

/* opposite.c: alternatives that together allow what `schema` does not, a new array; NULL: there are
 * none, which was reported for `keyword` of the schema `place`. */
json_t *ak_schema_make_opposites(struct ak_schema_compiler *c, const json_t *place,
                                 const char *keyword, json_t *schema);

/* reference.c: the schema that $ref refers to; NULL: none, which was reported. */
const json_t *ak_schema_resolve(struct ak_schema_compiler *c, const json_t *schema,
                                const char *ref);

/* compile.c */
uint32_t ak_schema_compile(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
void ak_schema_compiler_begin(struct ak_schema_compiler *c, struct ak_error *error);
void ak_schema_compiler_free(struct ak_schema_compiler *c); /* all except its builder */
/* Does a value satisfy the terms? */
bool ak_schema_allows(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                      const json_t *value);
/* Optional whitespace between tokens: any if `reading`, else a space or newlines and an indent. */
uint32_t ak_schema_build_space(struct ak_schema_compiler *c);

/* values.c: the values that enum and const allow, as a new array; NULL: the terms have neither. */
json_t *ak_schema_collect_values(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
uint32_t ak_schema_build_literal(struct ak_schema_compiler *c, const json_t *value);
/* Equality of JSON Schema: 1 equals 1.0. */
bool ak_schema_values_equal(const json_t *a, const json_t *b);
/* Compact JSON. Free with ak_free; NULL: out of memory. */
char *ak_schema_write_value(const json_t *value);

/* decimal.c: numbers as digits. */
struct ak_schema_decimal {
    bool negative;
    /* digits before the point, without leading zeros, and after it, without trailing zeros; zero
     * has none */
    char *whole, *fraction;
    size_t n_whole, n_fraction;
};
enum { AK_SCHEMA_NUMBER_BYTES = 32 };
/* Is it a number, possibly an integer beyond 64 bits (base/json/wide.h)? */
bool ak_schema_is_number(const json_t *value);
/* The number with as few digits as read back the same, in `text` or in the number itself. */
const char *ak_schema_write_number(const json_t *number, char text[AK_SCHEMA_NUMBER_BYTES]);
/* Reads JSON's notation. false: out of memory. */
bool ak_schema_decimal_read(const char *text, struct ak_schema_decimal *out);
void ak_schema_decimal_free(struct ak_schema_decimal *d);
int ak_schema_decimal_compare(const struct ak_schema_decimal *a, const struct ak_schema_decimal *b);
/* Moves to the next integer, up or down. false: out of memory. */
bool ak_schema_decimal_step(struct ak_schema_decimal *d, bool up);

/* number.c */
struct ak_schema_number_range {
    bool has_low, has_high, low_strict, high_strict;
    struct ak_schema_decimal low, high;
    bool integer;      /* integers only; then the bounds are integers and inclusive */
    bool fraction;     /* no integers */
    uint32_t decimals; /* digits after the point, at most; AK_GRAMMAR_UNBOUNDED: no limit */
    uint64_t multiple; /* integers must be multiples of it; 1: any */
};
/* false: no number is allowed, or a failure. Free *out in any case. */
bool ak_schema_read_number_range(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                 bool integer, struct ak_schema_number_range *out);
void ak_schema_number_range_free(struct ak_schema_number_range *r);
bool ak_schema_number_ranges_overlap(const struct ak_schema_number_range *a,
                                     const struct ak_schema_number_range *b);
/* `types`: whether integers, fractions or both. */
uint32_t ak_schema_build_number(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                unsigned types);
/* range.c: numbers within the bounds; ignores `multiple`. */
uint32_t ak_schema_build_number_range(struct ak_schema_compiler *c,
                                      const struct ak_schema_number_range *r);

/* strings.c */
struct ak_schema_string_limits {
    uint32_t low, high; /* length in characters */
    bool has_dfa;
    struct ak_grammar_dfa dfa; /* pattern and format; the lengths are not in it */
};
/* false: no string is allowed, or a failure. Free out->dfa in any case. */
bool ak_schema_read_string_limits(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                  struct ak_schema_string_limits *out);
/* The same as one DFA, lengths included. */
void ak_schema_build_string_dfa(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                struct ak_grammar_dfa *out);
uint32_t ak_schema_build_string(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
uint32_t ak_schema_build_quoted(struct ak_schema_compiler *c, const char *text, size_t n);
/* Strings of the DFA, with the quotes. */
uint32_t ak_schema_build_quoted_dfa(struct ak_schema_compiler *c, const struct ak_grammar_dfa *dfa);
/* The DFA of a pattern, compiled once; NULL: it failed, which was reported for `keyword`. */
const struct ak_grammar_dfa *ak_schema_get_pattern_dfa(struct ak_schema_compiler *c,
                                                       const json_t *schema, const char *keyword,
                                                       const char *text, size_t n);
/* Keeps the strings of `d` that are in `by`, or with `not_by` those that are not. */
void ak_schema_intersect_dfa(struct ak_schema_compiler *c, struct ak_grammar_dfa *d,
                             const struct ak_grammar_dfa *by, bool not_by);

/* formats.c: the pattern of `format`; *also: another one that must match, or NULL. NULL: the schema
 * has no format, or one that is not supported, which was reported. */
const char *ak_schema_get_format_pattern(struct ak_schema_compiler *c, const json_t *schema,
                                         const char **also);

/* arrays.c, objects.c */
uint32_t ak_schema_build_array(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
uint32_t ak_schema_build_object(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
/* Terms of the item at index i. `matched`: index of a term whose `contains` it must match;
 * AK_SCHEMA_NO_TERM: none. */
void ak_schema_add_item_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                              size_t i, uint32_t matched, struct ak_schema_terms *out);
void ak_schema_read_counts(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                           const char *min_keyword, const char *max_keyword, uint32_t *low,
                           uint32_t *high);
void ak_schema_add_member_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                const char *name, size_t n, struct ak_schema_terms *out);
bool ak_schema_requires(const struct ak_schema_terms *t, const char *name, size_t n);

/* disjoint.c: can no value satisfy both? False also if that cannot be shown. */
bool ak_schema_are_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                            const struct ak_schema_terms *b, unsigned depth);

#endif

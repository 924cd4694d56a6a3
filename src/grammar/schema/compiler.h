/* What the parts of the schema compiler share.
 *
 * A schema is taken as a list of terms that must all hold: itself, what it refers to, and
 * what allOf adds. Where a term offers a choice (anyOf, oneOf), the list is compiled once
 * with each of the alternatives. What is then left is compiled type by type. Equal lists
 * are one rule, which is how recursion ends. */
#ifndef AK_GRAMMAR_SCHEMA_COMPILER_H
#define AK_GRAMMAR_SCHEMA_COMPILER_H

#include "grammar/dfa.h"
#include "grammar/schema/schema.h"

enum {
    AK_SCHEMA_TYPE_NULL = 1,
    AK_SCHEMA_TYPE_BOOLEAN = 2,
    AK_SCHEMA_TYPE_INTEGER = 4,
    AK_SCHEMA_TYPE_FRACTION = 8,
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
    AK_SCHEMA_TRIALS_MAX = 20000
};

struct ak_schema_term {
    const json_t *schema;
    uint32_t n_choices; /* of its choices so many are made */
    uint32_t origin;    /* the term that brought it, plus 1 */
};

struct ak_schema_terms {
    struct ak_schema_term *items;
    uint32_t n, capacity;
    bool is_unsatisfiable; /* one of them is false */
};

struct ak_schema_rule {
    struct ak_schema_term *terms; /* sorted */
    uint32_t n, rule, hash;
    bool values_done;
};

/* A pattern, read once. */
struct ak_schema_cached_pattern {
    char *text;
    size_t n;
    struct ak_grammar_dfa dfa;
    bool failed; /* passed over */
};

struct ak_schema_compiler {
    struct ak_grammar_builder builder;
    const json_t *root;
    const struct ak_schema_options *options;
    bool reading;
    unsigned depth;
    struct ak_schema_rule *rules;
    uint32_t n_rules, rules_capacity;
    const json_t **checked_schemas; /* schemas whose keywords were looked at: open addressing */
    uint32_t n_checked, checked_mask;
    struct ak_schema_compiler *outer; /* of a trial */
    /* array of [owner's number, choice, alternatives]; the outermost one's */
    json_t *derived;
    struct ak_schema_cached_pattern **patterns;
    uint32_t n_patterns, patterns_capacity;
    uint32_t space, string_chars;          /* expressions, 0: not built yet */
    struct ak_grammar_char_set *char_sets; /* what char_exprs are of */
    uint32_t *char_exprs, n_char_exprs, char_sets_capacity, char_exprs_capacity;
    unsigned *trials;
};

static inline bool ak_schema_ok(const struct ak_schema_compiler *c)
{
    return ak_gb_ok(&c->builder);
}

/* Records that `keyword` of the schema is not supported, for `why`. Lax: a warning, and the
 * keyword is passed over. */
void ak_schema_refuse(struct ak_schema_compiler *c, const json_t *schema, const char *keyword,
                      const char *why);
/* The schema is none: what is wrong with the keyword. */
void ak_schema_fail_invalid(struct ak_schema_compiler *c, const json_t *schema, const char *keyword,
                            const char *expected);

/* keywords.c: looks once at all keywords of a schema. */
void ak_schema_check_keywords(struct ak_schema_compiler *c, const json_t *schema);

/* terms.c */
void ak_schema_terms_add(struct ak_schema_compiler *c, struct ak_schema_terms *t,
                         const json_t *schema, uint32_t from);
void ak_schema_terms_copy(struct ak_schema_compiler *c, struct ak_schema_terms *to,
                          const struct ak_schema_terms *from);
void ak_schema_terms_join(struct ak_schema_compiler *c, struct ak_schema_terms *to,
                          const struct ak_schema_terms *more);
void ak_schema_terms_free(struct ak_schema_terms *t);
unsigned ak_schema_terms_get_types(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
/* The alternatives of the choice that is to be made next; NULL: none is left. *term is whose
 * it is, *one that exactly one of them may hold. */
const json_t *ak_schema_terms_find_alternatives(struct ak_schema_compiler *c,
                                                const struct ak_schema_terms *t, uint32_t *term,
                                                bool *one);

/* reference.c: what $ref stands for; NULL after a failure. */
const json_t *ak_schema_resolve(struct ak_schema_compiler *c, const json_t *schema,
                                const char *ref);

/* compile.c */
uint32_t ak_schema_compile(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
void ak_schema_compiler_begin(struct ak_schema_compiler *c, struct ak_error *error);
void ak_schema_compiler_free(struct ak_schema_compiler *c); /* but for its builder */
/* Does a value satisfy the terms? */
bool ak_schema_allows(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                      const json_t *value);
/* White space that may be here. */
uint32_t ak_schema_build_space(struct ak_schema_compiler *c);

/* values.c: the values that enum and const leave, NULL where neither is there; a new array. */
json_t *ak_schema_collect_values(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
uint32_t ak_schema_build_literal(struct ak_schema_compiler *c, const json_t *value);
/* as JSON Schema has it: 1 and 1.0 are */
bool ak_schema_values_equal(const json_t *a, const json_t *b);
/* free with ak_free; NULL without memory */
char *ak_schema_write_value(const json_t *value);

/* decimal.c: numbers as digits. */
struct ak_schema_decimal {
    bool negative;
    char *whole, *fraction; /* of the point; without leading and trailing zeros; zero has neither */
    size_t n_whole, n_fraction;
};
enum { AK_SCHEMA_NUMBER_BYTES = 32 };
/* the shortest that reads back the same */
const char *ak_schema_write_number(const json_t *number, char text[AK_SCHEMA_NUMBER_BYTES]);
/* false without memory */
bool ak_schema_decimal_read(const char *text, struct ak_schema_decimal *out);
void ak_schema_decimal_free(struct ak_schema_decimal *d);
int ak_schema_decimal_compare(const struct ak_schema_decimal *a, const struct ak_schema_decimal *b);
/* the next integer that way; false without memory */
bool ak_schema_decimal_step(struct ak_schema_decimal *d, bool up);

/* number.c */
struct ak_schema_number_range {
    bool has_low, has_high, low_strict, high_strict;
    struct ak_schema_decimal low, high;
    bool integer;      /* then the bounds are integers, and not strict */
    uint32_t decimals; /* at most; AK_GRAMMAR_UNBOUNDED */
    uint64_t multiple; /* of integers; 1: any */
};
/* False: no number is left. To be freed in any case. */
bool ak_schema_read_number_range(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                 bool integer, struct ak_schema_number_range *out);
void ak_schema_number_range_free(struct ak_schema_number_range *r);
bool ak_schema_number_ranges_overlap(const struct ak_schema_number_range *a,
                                     const struct ak_schema_number_range *b);
uint32_t ak_schema_build_number(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                bool integer);
/* range.c: numbers between bounds, the larger of them first by size: |low| ≤ |high|. */
uint32_t ak_schema_build_number_range(struct ak_schema_compiler *c,
                                      const struct ak_schema_number_range *r);

/* strings.c */
struct ak_schema_string_limits {
    uint32_t low, high; /* characters */
    bool has_dfa;
    struct ak_grammar_dfa dfa;
};
bool ak_schema_read_string_limits(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                  struct ak_schema_string_limits *out);
/* The same as one DFA: lengths and values included. */
void ak_schema_build_string_dfa(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                struct ak_grammar_dfa *out);
uint32_t ak_schema_build_string(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
uint32_t ak_schema_build_quoted(struct ak_schema_compiler *c, const char *text, size_t n);
/* with the quotes */
uint32_t ak_schema_build_quoted_dfa(struct ak_schema_compiler *c, const struct ak_grammar_dfa *dfa);
const struct ak_grammar_dfa *ak_schema_get_pattern_dfa(struct ak_schema_compiler *c,
                                                       const json_t *schema, const char *keyword,
                                                       const char *text, size_t n);
void ak_schema_intersect_dfa(struct ak_schema_compiler *c, struct ak_grammar_dfa *d,
                             const struct ak_grammar_dfa *by, bool not_by);

/* arrays.c, objects.c */
uint32_t ak_schema_build_array(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
uint32_t ak_schema_build_object(struct ak_schema_compiler *c, const struct ak_schema_terms *t);
void ak_schema_add_item_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                              size_t i, struct ak_schema_terms *out);
void ak_schema_read_counts(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                           const char *min_keyword, const char *max_keyword, uint32_t *low,
                           uint32_t *high);
void ak_schema_add_member_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                const char *name, size_t n, struct ak_schema_terms *out);
bool ak_schema_requires(const struct ak_schema_terms *t, const char *name, size_t n);

/* disjoint.c: can no value satisfy both? False where that is not seen. */
bool ak_schema_are_disjoint(struct ak_schema_compiler *c, const struct ak_schema_terms *a,
                            const struct ak_schema_terms *b, unsigned depth);

#endif

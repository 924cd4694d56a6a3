/* Syntax tree of an ECMAScript regular expression, such as JSON Schema's `pattern`. pattern.c
 * parses it, with the classes of classes.c, and subset.c compiles it to a DFA. Other files use
 * ak_grammar_dfa_make_pattern of dfa.h, which does both. */
#ifndef AK_TEXT_GRAMMAR_PATTERN_H
#define AK_TEXT_GRAMMAR_PATTERN_H

#include "text/grammar/dfa.h"

enum ak_grammar_pattern_kind {
    AK_GRAMMAR_PATTERN_CHARS,       /* one character of sets[a] */
    AK_GRAMMAR_PATTERN_SEQUENCE,    /* the b nodes from lists[a] on, in order */
    AK_GRAMMAR_PATTERN_ALTERNATION, /* any of the b nodes from lists[a] on */
    AK_GRAMMAR_PATTERN_REPEAT,      /* node a, low to high times */
    AK_GRAMMAR_PATTERN_BEGIN,       /* the beginning of the text */
    AK_GRAMMAR_PATTERN_END,         /* the end of the text */
};

struct ak_grammar_pattern_node {
    enum ak_grammar_pattern_kind kind;
    uint32_t a, b, low, high;
};

enum {
    AK_GRAMMAR_PATTERN_BYTES_MAX = 1 << 14,
    AK_GRAMMAR_PATTERN_NODES_MAX = 1 << 16,
    AK_GRAMMAR_PATTERN_NESTING_MAX = 100
};

struct ak_grammar_pattern {
    struct ak_grammar_pattern_node *nodes;
    struct ak_grammar_char_set *sets;
    uint32_t *lists;
    uint32_t n_nodes, n_sets, n_lists, nodes_capacity, sets_capacity, lists_capacity;
    uint32_t root;
};

ak_status ak_grammar_pattern_parse(const char *text, size_t n, struct ak_grammar_pattern *out,
                                   struct ak_error *error);
void ak_grammar_pattern_free(struct ak_grammar_pattern *p);

/* classes.c: adds the characters of \d, \D, \w, \W, \s, \S or '.', given by its letter, or of
 * \p{name}; false: no such property. The set must be empty; it is normalized afterwards. */
void ak_grammar_char_set_add_class(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                                   char letter);
bool ak_grammar_char_set_add_property(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                                      const char *name, size_t n);

/* subset.c: the DFA of texts in which the pattern finds a match. */
ak_status ak_grammar_pattern_compile(const struct ak_grammar_pattern *p, struct ak_grammar_dfa *out,
                                     struct ak_error *error);

#endif

/* A regular expression as a tree: what pattern.c reads and subset.c compiles to a DFA. */
#ifndef AK_GRAMMAR_PATTERN_H
#define AK_GRAMMAR_PATTERN_H

#include "grammar/dfa.h"

enum ak_grammar_pattern_kind {
    AK_GRAMMAR_PATTERN_CHARS,       /* a character of sets[a] */
    AK_GRAMMAR_PATTERN_SEQUENCE,    /* lists[a …], b of them */
    AK_GRAMMAR_PATTERN_ALTERNATION, /* the same */
    AK_GRAMMAR_PATTERN_REPEAT,      /* node a, low to high times */
    AK_GRAMMAR_PATTERN_BEGIN,       /* the beginning of the text */
    AK_GRAMMAR_PATTERN_END,
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

/* classes.c: the characters of \d, \D, \w, \W, \s, \S and '.', or of \p{name}; false: there is no
 * such class. The set, empty before, is normalized afterwards. */
void ak_grammar_char_set_add_class(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                                   char letter);
bool ak_grammar_char_set_add_property(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                                      const char *name, size_t n);

/* subset.c: a text in which the pattern is found. */
ak_status ak_grammar_pattern_compile(const struct ak_grammar_pattern *p, struct ak_grammar_dfa *out,
                                     struct ak_error *error);

#endif

/* A regular expression as a tree: what pattern.c reads and subset.c makes a machine of. */
#ifndef AK_TEXT_GRAMMAR_PATTERN_H
#define AK_TEXT_GRAMMAR_PATTERN_H

#include "grammar/dfa.h"

enum ak_pattern_kind {
    AK_PATTERN_CHARS,    /* a character of sets[a] */
    AK_PATTERN_SEQUENCE, /* lists[a …], b of them */
    AK_PATTERN_CHOICE,   /* the same */
    AK_PATTERN_REPEAT,   /* node a, low to high times */
    AK_PATTERN_BEGIN,    /* the beginning of the text */
    AK_PATTERN_END,
};

struct ak_pattern_node {
    enum ak_pattern_kind kind;
    uint32_t a, b, low, high;
};

enum {
    AK_PATTERN_MOST_BYTES = 1 << 14,
    AK_PATTERN_MOST_NODES = 1 << 16,
    AK_PATTERN_MOST_NESTING = 100
};

struct ak_pattern {
    struct ak_pattern_node *nodes;
    struct ak_char_set *sets;
    uint32_t *lists;
    uint32_t n_nodes, n_sets, n_lists, room_nodes, room_sets, room_lists;
    uint32_t root;
};

ak_status ak_pattern_parse(const char *text, size_t n, struct ak_pattern *out,
                           struct ak_error *error);
void ak_pattern_free(struct ak_pattern *p);

/* classes.c: the characters of \d, \D, \w, \W, \s, \S and '.', or of \p{name}; false: there is no
 * such class. The set, empty before, is settled afterwards. */
void ak_class_of_letter(struct ak_build *b, struct ak_char_set *s, char letter);
bool ak_class_of_property(struct ak_build *b, struct ak_char_set *s, const char *name, size_t n);

/* subset.c: a text in which the pattern is found. */
ak_status ak_pattern_machine(const struct ak_pattern *p, struct ak_dfa *out,
                             struct ak_error *error);

#endif

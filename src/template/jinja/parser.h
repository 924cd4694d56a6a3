/* What the two halves of the parser share: statements and expressions. */
#ifndef AK_TEMPLATE_JINJA_PARSER_H
#define AK_TEMPLATE_JINJA_PARSER_H

#include "template/jinja/node.h"
#include "template/jinja/token.h"

struct ak_jparser {
    struct ak_jenv *j;
    const struct ak_jtoken *now; /* the token that comes next */
    struct ak_jdict *names;      /* of all names: interned */
    const struct ak_jspecials *specials;
    /* innermost MACRO or CALL_BLOCK, linked outwards by `next` while it is parsed */
    struct ak_jnode *macro;
    unsigned nesting;
    unsigned loops; /* for blocks that `break` may leave */
};

/* A list that grows at its end. */
struct ak_jnodes {
    struct ak_jnode *first, **end;
};
void ak_j_add_node(struct ak_jnodes *list, struct ak_jnode *node);

struct ak_jnode *ak_j_node(struct ak_jparser *p, enum ak_jnode_kind kind,
                           const struct ak_jtoken *at);
struct ak_jval ak_j_intern(struct ak_jparser *p, struct ak_jval name);

void ak_j_parse_enter(struct ak_jparser *p); /* around each recursion of the parser */
void ak_j_parse_leave(struct ak_jparser *p);

_Noreturn void ak_j_parse_fail(struct ak_jparser *p, const struct ak_jtoken *at, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));
bool ak_j_is_token(const struct ak_jparser *p, enum ak_jtoken_kind kind);
bool ak_j_is_name(const struct ak_jparser *p, const char *name);
bool ak_j_skip(struct ak_jparser *p, enum ak_jtoken_kind kind);
bool ak_j_skip_name(struct ak_jparser *p, const char *name);
const struct ak_jtoken *ak_j_expect(struct ak_jparser *p, enum ak_jtoken_kind kind);

/* How a tuple that needs no parentheses is read. */
struct ak_jtuple_rules {
    bool no_condition;    /* no "a if b" in it */
    bool parentheses;     /* it stands in some, and may be empty */
    const char *end_name; /* ends it, beside the end of a tag and ")"; NULL: none */
};
/* a name, a constant, or what stands in brackets */
struct ak_jnode *ak_j_parse_primary(struct ak_jparser *p);
struct ak_jnode *ak_j_parse_expression(struct ak_jparser *p);
struct ak_jnode *ak_j_parse_tuple(struct ak_jparser *p, struct ak_jtuple_rules rules);
bool ak_j_is_tuple_end(const struct ak_jparser *p, const char *end_name);
/* A name, names in a tuple, or a namespace's member where `member`. */
struct ak_jnode *ak_j_parse_target(struct ak_jparser *p, const char *end_name, bool member);
/* "name(args)|name…": filters over `operand` (NULL: a block's text). */
struct ak_jnode *ak_j_parse_filters(struct ak_jparser *p, struct ak_jnode *operand);

#endif

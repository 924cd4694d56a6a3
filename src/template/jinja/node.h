/* What a template is parsed into. */
#ifndef AK_TEMPLATE_JINJA_NODE_H
#define AK_TEMPLATE_JINJA_NODE_H

#include "template/jinja/value.h"

/* Operands by kind; lists hang together by `next`.
 *                        a           b           c           d         e         others */
enum ak_jnode_kind {
    /* expressions */
    AK_JN_OUTPUT,
    /* test        body        elif's IFs  else */
    AK_JN_IF,
    /* target      iterated    body        else      test      recursive */
    AK_JN_FOR,
    /* parameters              body                            name, uses_… */
    AK_JN_MACRO,
    /* parameters  call        body                            uses_… */
    AK_JN_CALL_BLOCK,
    AK_JN_FILTER_BLOCK, /* filter                  body */
    /* targets     values      body */
    AK_JN_WITH,
    /* target      value */
    AK_JN_SET,
    /* target      filter      body */
    AK_JN_SET_BLOCK,
    /*                         body                            {% generation %} */
    AK_JN_SCOPE,
    AK_JN_BREAK,
    AK_JN_CONTINUE,

    /*                                                         value */
    AK_JN_CONST,
    /* default, of a parameter                                 name */
    AK_JN_NAME,
    /*                                    namespace.member: name, value; a target alone */
    AK_JN_MEMBER,
    /* items */
    AK_JN_TUPLE,
    /* items */
    AK_JN_LIST,
    /* PAIRs */
    AK_JN_DICT,
    /* key         value */
    AK_JN_PAIR,
    /* test        then        else */
    AK_JN_CONDITION,
    /* left        right */
    AK_JN_OR,
    /* left        right */
    AK_JN_AND,
    /* operand */
    AK_JN_NOT,
    /* operand */
    AK_JN_NEGATIVE,
    /* operand */
    AK_JN_POSITIVE,
    /* first       COMPARANDs */
    AK_JN_COMPARE,
    /* operand                                                 op */
    AK_JN_COMPARAND,
    /* left        right                                       op */
    AK_JN_BINARY,
    /* items */
    AK_JN_CONCAT,
    /* object                                                  name */
    AK_JN_ATTRIBUTE,
    /* object      subscript */
    AK_JN_ITEM,
    /* start       stop        step */
    AK_JN_SLICE,
    /* callee                                                  arguments */
    AK_JN_CALL,
    /* operand                                                 name, builtin, arguments; operand
     * NULL: a block's text */
    AK_JN_FILTER,
    /* operand                                                 name, builtin, arguments */
    AK_JN_TEST,
    /* value                                                   name */
    AK_JN_KEYWORD
};

struct ak_jnode_args {
    struct ak_jnode *values, *named;           /* lists; `named` of KEYWORDs */
    struct ak_jnode *more_values, *more_named; /* *args and **kwargs */
    unsigned n, n_named;
};

struct ak_jnode {
    enum ak_jnode_kind kind;
    bool recursive, uses_caller, uses_varargs, uses_kwargs;
    uint32_t line, column;
    struct ak_jnode *next;
    struct ak_jnode *a, *b, *c, *d, *e;
    struct ak_jval name, value;        /* names are interned: one has one struct ak_jstr */
    const char *op;                    /* "+", "in" … */
    const struct ak_jbuiltin *builtin; /* NULL: there is none of that name */
    const struct ak_jnode_args *args;
    /* NAMEs that begin without a value in the scope that the node opens, whatever there is
     * outside: names.c */
    struct ak_jnode *hidden;
    struct ak_jnode *hidden_else; /* the same of a FOR's else */
};

/* Names that a template's blocks define by themselves, interned with its own. */
struct ak_jspecials {
    struct ak_jval loop, caller, varargs, kwargs;
};

/* parser.c: the statements of a template, one after another. */
struct ak_jnode *ak_j_parse(struct ak_jenv *j, const char *text, size_t n,
                            struct ak_jspecials *specials);

/* names.c: fills in `hidden` of all nodes, gives that of the whole template, and refuses
 * filters and tests that are not known where jinja2 does so before it renders. */
struct ak_jnode *ak_j_resolve_names(struct ak_jenv *j, struct ak_jnode *statements);

#endif

/* What a template is parsed into. */
#ifndef AK_TEXT_JINJA_NODE_H
#define AK_TEXT_JINJA_NODE_H

#include "template/jinja/value.h"

/* Operands by kind; lists hang together by `next`.
 *                        a           b           c           d         e         others */
enum ak_jnode_kind {
    AK_JN_OUTPUT,      /* expressions                                                              */
    AK_JN_IF,          /* test        body        elif's IFs  else                                 */
    AK_JN_FOR,         /* target      iterated    body        else      test      recursive        */
    AK_JN_MACRO,       /* parameters              body                            name, uses_…     */
    AK_JN_CALL_BLOCK,  /* parameters  call        body                            uses_…           */
    AK_JN_FILTER_BLOCK,/* filter                  body                                             */
    AK_JN_WITH,        /* targets     values      body                                             */
    AK_JN_SET,         /* target      value                                                        */
    AK_JN_SET_BLOCK,   /* target      filter      body                                             */
    AK_JN_SCOPE,       /*                         body                            {% generation %} */
    AK_JN_BREAK,
    AK_JN_CONTINUE,

    AK_JN_CONST,       /*                                                         value            */
    AK_JN_NAME,        /* default, of a parameter                                 name             */
    AK_JN_MEMBER,      /*                                    namespace.member: name, value; a target alone */
    AK_JN_TUPLE,       /* items                                                                    */
    AK_JN_LIST,        /* items                                                                    */
    AK_JN_DICT,        /* PAIRs                                                                    */
    AK_JN_PAIR,        /* key         value                                                        */
    AK_JN_CONDITION,   /* test        then        else                                             */
    AK_JN_OR,          /* left        right                                                        */
    AK_JN_AND,         /* left        right                                                        */
    AK_JN_NOT,         /* operand                                                                  */
    AK_JN_NEGATIVE,    /* operand                                                                  */
    AK_JN_POSITIVE,    /* operand                                                                  */
    AK_JN_COMPARE,     /* first       COMPARANDs                                                   */
    AK_JN_COMPARAND,   /* operand                                                 op               */
    AK_JN_BINARY,      /* left        right                                       op               */
    AK_JN_CONCAT,      /* items                                                                    */
    AK_JN_ATTRIBUTE,   /* object                                                  name             */
    AK_JN_ITEM,        /* object      subscript                                                    */
    AK_JN_SLICE,       /* start       stop        step                                             */
    AK_JN_CALL,        /* callee                                                  arguments        */
    AK_JN_FILTER,      /* operand                                                 name, builtin, arguments; operand NULL: a block's text */
    AK_JN_TEST,        /* operand                                                 name, builtin, arguments */
    AK_JN_KEYWORD      /* value                                                   name             */
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
    struct ak_jval name, value; /* names are interned: one has one struct ak_jstr */
    const char *op;             /* "+", "in" … */
    const struct ak_jbuiltin *builtin; /* NULL: there is none of that name */
    const struct ak_jnode_args *args;
    struct ak_jnode *hidden;    /* NAMEs that begin without a value in the scope that the node opens, whatever
                                 * there is outside: names.c */
    struct ak_jnode *hidden_else; /* the same of a FOR's else */
};

/* Names that a template's blocks define by themselves, interned with its own. */
struct ak_jspecials {
    struct ak_jval loop, caller, varargs, kwargs;
};

/* parser.c: the statements of a template, one after another. */
struct ak_jnode *ak_j_parse(struct ak_j *j, const char *text, size_t n, struct ak_jspecials *specials);

/* names.c: fills in `hidden` of all nodes, gives that of the whole template, and refuses
 * filters and tests that are not known where jinja2 does so before it renders. */
struct ak_jnode *ak_j_resolve_names(struct ak_j *j, struct ak_jnode *statements);

#endif

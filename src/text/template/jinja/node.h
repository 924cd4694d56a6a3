/* Syntax tree of a template: nodes that the parser makes, names.c completes and the interpreter
 * (exec.c, eval.c, call.c) runs. */
#ifndef AK_TEXT_TEMPLATE_JINJA_NODE_H
#define AK_TEXT_TEMPLATE_JINJA_NODE_H

#include "text/template/jinja/value.h"

/* Members that each kind uses. Lists of nodes are linked by `next`. */
enum ak_jnode_kind {
    /* statements */
    AK_JN_OUTPUT,       /* a: expressions */
    AK_JN_IF,           /* a: test, b: body, c: IFs of elif, d: else */
    AK_JN_FOR,          /* a: target, b: iterable, c: body, d: else, e: test; recursive */
    AK_JN_MACRO,        /* a: parameters, c: body; name, uses_* */
    AK_JN_CALL_BLOCK,   /* a: parameters, b: call, c: body; uses_* */
    AK_JN_FILTER_BLOCK, /* a: filter, c: body */
    AK_JN_WITH,         /* a: targets, b: values, c: body */
    AK_JN_SET,          /* a: target, b: value */
    AK_JN_SET_BLOCK,    /* a: target, b: filter, c: body */
    AK_JN_SCOPE,        /* c: body; {% generation %} */
    AK_JN_BREAK,
    AK_JN_CONTINUE,

    /* expressions */
    AK_JN_CONST,     /* value */
    AK_JN_NAME,      /* name; of a parameter also a: default */
    AK_JN_MEMBER,    /* name.value of a namespace, as a target */
    AK_JN_TUPLE,     /* a: items */
    AK_JN_LIST,      /* a: items */
    AK_JN_DICT,      /* a: PAIRs */
    AK_JN_PAIR,      /* a: key, b: value */
    AK_JN_CONDITION, /* a: test, b: then, c: else */
    AK_JN_OR,        /* a, b: operands */
    AK_JN_AND,       /* a, b: operands */
    AK_JN_NOT,       /* a: operand */
    AK_JN_NEGATIVE,  /* a: operand */
    AK_JN_POSITIVE,  /* a: operand */
    AK_JN_COMPARE,   /* a: first operand, b: COMPARANDs */
    AK_JN_COMPARAND, /* a: operand; op */
    AK_JN_BINARY,    /* a, b: operands; op */
    AK_JN_CONCAT,    /* a: items */
    AK_JN_ATTRIBUTE, /* a: object; name */
    AK_JN_ITEM,      /* a: object, b: subscript */
    AK_JN_SLICE,     /* a: start, b: stop, c: step */
    AK_JN_CALL,      /* a: callee; args */
    AK_JN_FILTER,    /* a: operand, NULL: text of a block; name, builtin, args */
    AK_JN_TEST,      /* a: operand; name, builtin, args */
    AK_JN_KEYWORD    /* a: value; name */
};

struct ak_jnode_args {
    struct ak_jnode *values, *named;           /* lists; `named`: of KEYWORDs */
    struct ak_jnode *more_values, *more_named; /* *args and **kwargs */
    unsigned n, n_named;
};

struct ak_jnode {
    enum ak_jnode_kind kind;
    bool recursive, uses_caller, uses_varargs, uses_kwargs;
    uint32_t line, column;
    struct ak_jnode *next;
    struct ak_jnode *a, *b, *c, *d, *e;
    struct ak_jval name, value;        /* names are interned: equal names share a struct ak_jstr */
    const char *op;                    /* "+", "in", … */
    const struct ak_jbuiltin *builtin; /* NULL: no builtin of that name */
    const struct ak_jnode_args *args;
    /* names.c: NAMEs that begin without a value in the scope that the node opens, even if an outer
     * scope has them */
    struct ak_jnode *hidden;
    struct ak_jnode *hidden_else; /* the same for the else of a FOR */
};

/* Names that blocks define implicitly, interned like those of the template. */
struct ak_jspecials {
    struct ak_jval loop, caller, varargs, kwargs;
};

/* parser.c: parses a template to a list of statements. */
struct ak_jnode *ak_j_parse(struct ak_jenv *j, const char *text, size_t n,
                            struct ak_jspecials *specials);

/* names.c: sets `hidden` of all nodes and returns that of the whole template. Refuses unknown
 * filters and tests where jinja2 does so before rendering. */
struct ak_jnode *ak_j_resolve_names(struct ak_jenv *j, struct ak_jnode *statements);

#endif

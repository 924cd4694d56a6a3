/* Interpreter of templates, which runs the tree of node.h: scopes and statements (exec.c),
 * expressions (eval.c), calls (call.c), attributes (attribute.c), operators (operator.c). */
#ifndef AK_TEXT_TEMPLATE_JINJA_EXEC_H
#define AK_TEXT_TEMPLATE_JINJA_EXEC_H

#include "text/template/jinja/node.h"
#include "text/template/jinja/string.h"

/* Variables of a block, visible in the blocks inside it. */
struct ak_jvar {
    const struct ak_jstr *name; /* interned */
    struct ak_jval value;       /* MISSING: no value, even if an outer scope has the name */
};
struct ak_jscope {
    struct ak_jscope *outer;
    struct ak_jvar *vars;
    size_t n, capacity;
    const struct ak_jdict *context; /* outermost scope only: variables of the caller */
};

/* The variable `loop`. */
struct ak_jloop {
    struct ak_jlist *items;
    size_t at;
    int64_t depth;               /* 1 plus the number of recursive calls it is in */
    const struct ak_jnode *node; /* the FOR node if recursive, else NULL */
    struct ak_jscope *scope;     /* the scope around the loop */
    struct ak_jval changed;      /* last argument of loop.changed */
};

enum ak_jflow { AK_J_NEXT, AK_J_BREAK, AK_J_CONTINUE };

/* exec.c: scopes */
struct ak_jscope *ak_j_open_scope(struct ak_jenv *j, struct ak_jscope *outer,
                                  const struct ak_jnode *hidden);
void ak_j_set(struct ak_jenv *j, struct ak_jscope *scope, struct ak_jval name,
              struct ak_jval value);
struct ak_jval ak_j_look_up(struct ak_jenv *j, struct ak_jval name);
/* Assigns to a name, a tuple of names, or an attribute of a namespace. */
void ak_j_assign(struct ak_jenv *j, const struct ak_jnode *target, struct ak_jval value);

/* exec.c */
enum ak_jflow ak_j_exec(struct ak_jenv *j, const struct ak_jnode *statements);
/* Runs statements in `scope` and returns their text. */
struct ak_jval ak_j_capture(struct ak_jenv *j, const struct ak_jnode *statements,
                            struct ak_jscope *scope);

/* exec.c: loops */
enum ak_jflow ak_j_exec_for(struct ak_jenv *j, const struct ak_jnode *node);
/* loop(items): runs a recursive loop over other items. */
struct ak_jval ak_j_recurse_loop(struct ak_jenv *j, struct ak_jloop *loop, struct ak_jval items);
/* MISSING: no such member. */
struct ak_jval ak_j_loop_member(struct ak_jenv *j, const struct ak_jloop *loop,
                                struct ak_jval name);

/* eval.c */
struct ak_jval ak_j_eval(struct ak_jenv *j, const struct ak_jnode *node);
/* Filters of a block, applied to its text. */
struct ak_jval ak_j_apply_filters(struct ak_jenv *j, const struct ak_jnode *filters,
                                  struct ak_jval text);
static inline void ak_j_set_position(struct ak_jenv *j, const struct ak_jnode *node)
{
    j->line = node->line;
    j->column = node->column;
}

/* call.c */
struct ak_jval ak_j_call(struct ak_jenv *j, struct ak_jval callee, const struct ak_jargs *args);
struct ak_jval ak_j_call_builtin(struct ak_jenv *j, const struct ak_jbuiltin *builtin,
                                 struct ak_jval first, const struct ak_jargs *args);
struct ak_jval ak_j_make_macro(struct ak_jenv *j, const struct ak_jnode *node);

/* attribute.c */
/* object.name */
struct ak_jval ak_j_get_attribute(struct ak_jenv *j, struct ak_jval object, struct ak_jval name);
/* object[subscript] */
struct ak_jval ak_j_get_item(struct ak_jenv *j, struct ak_jval object, struct ak_jval subscript);

/* operator.c */
struct ak_jval ak_j_operate(struct ak_jenv *j, const char *op, struct ak_jval a, struct ak_jval b);
struct ak_jval ak_j_negate(struct ak_jenv *j, struct ak_jval v);
struct ak_jval ak_j_apply_plus(struct ak_jenv *j, struct ak_jval v);
struct ak_jval ak_j_repeat(struct ak_jenv *j, const struct ak_jstr *s, int64_t times);

/* percent.c, format.c */
struct ak_jval ak_j_format_percent(struct ak_jenv *j, const struct ak_jstr *format,
                                   struct ak_jval values);
struct ak_jval ak_j_format(struct ak_jenv *j, const struct ak_jstr *format,
                           const struct ak_jargs *args);

/* json.c */
struct ak_jval ak_j_from_json(struct ak_jenv *j, const json_t *json);

#endif

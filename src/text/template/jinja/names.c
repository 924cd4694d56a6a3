/* Finds the names that begin a scope without a value; the counterpart of jinja2's idtracking.py.
 *
 * jinja2 compiles names to local variables of Python and decides before running how each begins. A
 * name that a scope assigns before it reads it begins without a value, even if the variables of the
 * template have it, and inner scopes see that. Otherwise names are looked up from the innermost
 * scope outwards at run time, which gives the same results as jinja2's aliases. */
#include "text/template/jinja/node.h"
#include "text/template/jinja/string.h"

struct symbol {
    const struct ak_jnode *node; /* a NAME node with the name */
    bool hidden;                 /* begins without a value */
};

struct symbols {
    struct symbol *all;
    size_t n, capacity;
};

struct inner { /* a node that opens a scope inside this one */
    struct ak_jnode *node;
    struct inner *next;
};

struct scope {
    struct ak_jenv *j;
    const struct scope *parent;
    struct symbols symbols;
    struct inner *inner;
    /* visiting code that may not run: a name assigned there may still have its outer value, and an
     * unknown filter fails only when it is reached */
    bool branch;
};

static void visit(struct scope *s, struct ak_jnode *node);

static struct symbol *find_in(const struct symbols *symbols, struct ak_jval name)
{
    for (size_t i = 0; i < symbols->n; i++)
        if (symbols->all[i].node->name.as.string == name.as.string)
            return &symbols->all[i];
    return NULL;
}

static bool is_known_outside(const struct scope *s, struct ak_jval name)
{
    for (s = s->parent; s; s = s->parent)
        if (find_in(&s->symbols, name))
            return true;
    return false;
}

static struct symbol *add_symbol(struct scope *s, const struct ak_jnode *node)
{
    struct symbols *symbols = &s->symbols;
    if (symbols->n == symbols->capacity) {
        size_t capacity = symbols->capacity ? 2 * symbols->capacity : 8;
        symbols->all = ak_j_grow(s->j, symbols->all, symbols->n, capacity, sizeof *symbols->all);
        symbols->capacity = capacity;
    }
    symbols->all[symbols->n] = (struct symbol){ .node = node };
    return &symbols->all[symbols->n++];
}

static void load_name(struct scope *s, const struct ak_jnode *node)
{
    ak_j_spend(s->j, 1 + s->symbols.n / 8);
    if (!find_in(&s->symbols, node->name) && !is_known_outside(s, node->name))
        add_symbol(s, node);
}

static void store(struct scope *s, const struct ak_jnode *node)
{
    ak_j_spend(s->j, 1 + s->symbols.n / 8);
    if (!find_in(&s->symbols, node->name))
        add_symbol(s, node)->hidden = !s->branch && !is_known_outside(s, node->name);
}

/* Declares a parameter, which has a value from the beginning. */
static void declare(struct scope *s, const struct ak_jnode *target)
{
    if (target->kind == AK_JN_NAME && !find_in(&s->symbols, target->name))
        add_symbol(s, target);
    for (const struct ak_jnode *item = target->kind == AK_JN_TUPLE ? target->a : NULL; item;
         item = item->next)
        declare(s, item);
}

static void visit_target(struct scope *s, struct ak_jnode *target)
{
    if (target->kind == AK_JN_NAME)
        store(s, target);
    else if (target->kind == AK_JN_MEMBER)
        load_name(s, target);
    for (struct ak_jnode *item = target->kind == AK_JN_TUPLE ? target->a : NULL; item;
         item = item->next)
        visit_target(s, item);
}

static void visit_list(struct scope *s, struct ak_jnode *node)
{
    for (; node; node = node->next)
        visit(s, node);
}

/* ---- All nodes ---------------------------------------------------------- */
static void check_builtin(struct scope *s, const struct ak_jnode *node)
{
    if (node->builtin || s->branch)
        return;
    s->j->line = node->line;
    s->j->column = node->column;
    ak_j_fail_as(s->j, AKUNU_ERROR_UNSUPPORTED, "there is no %s named %s",
                 node->kind == AK_JN_FILTER ? "filter" : "test", ak_j_show(s->j, node->name));
}

static void visit_arguments(struct scope *s, const struct ak_jnode_args *args)
{
    visit_list(s, args->values);
    for (struct ak_jnode *keyword = args->named; keyword; keyword = keyword->next)
        visit(s, keyword->a);
    if (args->more_values)
        visit(s, args->more_values);
    if (args->more_named)
        visit(s, args->more_named);
}

static void remember(struct scope *s, struct ak_jnode *node)
{
    struct inner *inner = ak_j_alloc(s->j, 1, sizeof *inner);
    *inner = (struct inner){ node, s->inner };
    s->inner = inner;
}

/* The branches of an if with its elifs and else, or of a conditional expression. */
static void visit_branches(struct scope *s, struct ak_jnode *node)
{
    bool branch = s->branch;
    s->branch = true;
    visit(s, node->a);
    visit_list(s, node->b);
    visit_list(s, node->c);
    visit_list(s, node->d);
    s->branch = branch;
}

/* Visits the parts of an expression of any kind. */
static void visit_expression(struct scope *s, struct ak_jnode *node)
{
    if (node->kind == AK_JN_FILTER || node->kind == AK_JN_TEST)
        check_builtin(s, node);
    visit_list(s, node->a);
    visit_list(s, node->b);
    if (node->c)
        visit(s, node->c);
    if (node->args)
        visit_arguments(s, node->args);
}

static void visit(struct scope *s, struct ak_jnode *node)
{
    ak_j_enter(s->j);
    ak_j_spend(s->j, 1);
    switch (node->kind) {
    case AK_JN_NAME: load_name(s, node); break;
    case AK_JN_IF:
    case AK_JN_CONDITION: visit_branches(s, node); break;
    case AK_JN_MACRO:
        store(s, node);
        remember(s, node);
        break;
    case AK_JN_SET:
        visit(s, node->b);
        visit_target(s, node->a);
        break;
    case AK_JN_SET_BLOCK:
        visit_target(s, node->a);
        remember(s, node);
        break;
    case AK_JN_FOR:
    case AK_JN_CALL_BLOCK:
        visit(s, node->b);
        remember(s, node);
        break;
    case AK_JN_WITH:
        visit_list(s, node->b);
        remember(s, node);
        break;
    case AK_JN_FILTER_BLOCK:
        visit(s, node->a);
        remember(s, node);
        break;
    case AK_JN_SCOPE: remember(s, node); break;
    default: visit_expression(s, node);
    }
    ak_j_leave(s->j);
}

/* ---- Scopes ------------------------------------------------------------- */
static void open_scopes(struct scope *s);

static struct ak_jnode *hidden_of(struct scope *s)
{
    struct ak_jnode *list = NULL;
    for (size_t i = 0; i < s->symbols.n; i++) {
        if (!s->symbols.all[i].hidden)
            continue;
        struct ak_jnode *name = ak_j_alloc(s->j, 1, sizeof *name);
        *name = (struct ak_jnode){ .kind = AK_JN_NAME,
                                   .name = s->symbols.all[i].node->name,
                                   .next = list };
        list = name;
    }
    return list;
}

static struct ak_jnode *finish_scope(struct scope *s)
{
    struct ak_jnode *hidden = hidden_of(s);
    open_scopes(s);
    return hidden;
}

static void visit_parameters(struct scope *s, struct ak_jnode *parameters)
{
    for (struct ak_jnode *parameter = parameters; parameter; parameter = parameter->next) {
        declare(s, parameter);
        if (parameter->a)
            visit(s, parameter->a);
    }
}

static void open_for(const struct scope *s, struct ak_jnode *node)
{
    struct scope body = { .j = s->j, .parent = s }, other = body, test = body;
    declare(&body, node->a);
    visit_list(&body, node->c);
    node->hidden = finish_scope(&body);
    visit_list(&other, node->d);
    node->hidden_else = finish_scope(&other);
    declare(&test, node->a);
    if (node->e)
        visit(&test, node->e);
}

static void open_scope(const struct scope *s, struct ak_jnode *node)
{
    struct scope body = { .j = s->j, .parent = s };
    if (node->kind == AK_JN_FOR) {
        open_for(s, node);
        return;
    }
    if (node->kind == AK_JN_MACRO || node->kind == AK_JN_CALL_BLOCK)
        visit_parameters(&body, node->a);
    for (struct ak_jnode *target = node->kind == AK_JN_WITH ? node->a : NULL; target;
         target = target->next)
        declare(&body, target);
    visit_list(&body, node->c);
    if (node->kind == AK_JN_SET_BLOCK && node->b)
        visit(&body, node->b);
    node->hidden = finish_scope(&body);
}

static void open_scopes(struct scope *s)
{
    ak_j_enter(s->j);
    for (struct inner *inner = s->inner; inner; inner = inner->next)
        open_scope(s, inner->node);
    ak_j_leave(s->j);
}

struct ak_jnode *ak_j_resolve_names(struct ak_jenv *j, struct ak_jnode *statements)
{
    struct scope root = { .j = j };
    visit_list(&root, statements);
    return finish_scope(&root);
}

/* Evaluation of expressions. */
#include <string.h>

#include "text/template/jinja/exec.h"

static struct ak_jval eval_items(struct ak_jenv *j, const struct ak_jnode *items,
                                 enum ak_jform form)
{
    struct ak_jlist *list = ak_j_list(j, form, 0);
    for (; items; items = items->next)
        ak_j_append(j, list, ak_j_eval(j, items));
    return ak_j_from_list(list);
}

static struct ak_jval eval_dict(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jdict *dict = ak_j_dict(j);
    for (const struct ak_jnode *pair = node->a; pair; pair = pair->next) {
        struct ak_jval key = ak_j_eval(j, pair->a), value = ak_j_eval(j, pair->b);
        ak_j_set_position(j, pair);
        ak_j_put(j, dict, key, value);
    }
    return ak_j_from_dict(dict);
}

static struct ak_jval eval_concat(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jstr *text = ak_j_str(j, ak_j_eval(j, node->a));
    for (const struct ak_jnode *item = node->a->next; item; item = item->next)
        text = ak_j_concat(j, text, ak_j_str(j, ak_j_eval(j, item))).as.string;
    return (struct ak_jval){ .kind = AK_J_STRING, .as.string = text };
}

static bool compare_values(struct ak_jenv *j, const char *op, struct ak_jval a, struct ak_jval b)
{
    if (strcmp(op, "in") == 0)
        return ak_j_contains(j, b, a);
    if (strcmp(op, "not in") == 0)
        return !ak_j_contains(j, b, a);
    return ak_j_compare(j, op, a, b);
}

/* a < b < c means a < b and b < c, with b evaluated once. */
static struct ak_jval eval_compare(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jval left = ak_j_eval(j, node->a);
    for (const struct ak_jnode *other = node->b; other; other = other->next) {
        struct ak_jval right = ak_j_eval(j, other->a);
        ak_j_set_position(j, other);
        if (!compare_values(j, other->op, left, right))
            return ak_j_bool(false);
        left = right;
    }
    return ak_j_bool(true);
}

static struct ak_jval eval_slice(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jval *bounds = ak_j_alloc(j, 3, sizeof *bounds);
    const struct ak_jnode *parts[] = { node->a, node->b, node->c };
    for (int i = 0; i < 3; i++)
        bounds[i] = parts[i] ? ak_j_eval(j, parts[i]) : ak_j_none();
    return (struct ak_jval){ .kind = AK_J_SLICE, .as.slice = bounds };
}

static struct ak_jval eval_condition(struct ak_jenv *j, const struct ak_jnode *node)
{
    if (ak_j_is_true(ak_j_eval(j, node->a)))
        return ak_j_eval(j, node->b);
    if (node->c)
        return ak_j_eval(j, node->c);
    return ak_j_undefined_hint(
        j, "the inline if-expression evaluated to false and no else section was defined");
}

/* ---- Arguments ---------------------------------------------------------- */
static void add_values(struct ak_jenv *j, const struct ak_jnode *node, struct ak_jlist *values)
{
    struct ak_jval more = ak_j_eval(j, node);
    ak_j_set_position(j, node);
    const struct ak_jlist *items = ak_j_iterate(j, more);
    for (size_t i = 0; i < items->n; i++)
        ak_j_append(j, values, items->items[i]);
}

static void add_named(struct ak_jenv *j, const struct ak_jnode *node, struct ak_jdict *named)
{
    struct ak_jval more = ak_j_eval(j, node);
    ak_j_set_position(j, node);
    if (more.kind != AK_J_DICT)
        ak_j_fail(j, "the argument behind ** must be a mapping, not %s", ak_j_type_name(more));
    for (size_t i = 0; i < more.as.dict->n; i++) {
        ak_j_need_string(j, more.as.dict->pairs[i].key, "keywords");
        ak_j_put(j, named, more.as.dict->pairs[i].key, more.as.dict->pairs[i].value);
    }
}

static struct ak_jargs eval_arguments(struct ak_jenv *j, const struct ak_jnode_args *args)
{
    struct ak_jlist values = { .items =
                                   args->n ? ak_j_alloc(j, args->n, sizeof *values.items) : NULL,
                               .capacity = args->n };
    struct ak_jdict named = { 0 };
    for (const struct ak_jnode *value = args->values; value; value = value->next)
        ak_j_append(j, &values, ak_j_eval(j, value));
    for (const struct ak_jnode *keyword = args->named; keyword; keyword = keyword->next)
        ak_j_put(j, &named, keyword->name, ak_j_eval(j, keyword->a));
    if (args->more_values)
        add_values(j, args->more_values, &values);
    if (args->more_named)
        add_named(j, args->more_named, &named);
    return (struct ak_jargs){ values.items, values.n, named.pairs, named.n };
}

static struct ak_jval eval_call(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jval callee = ak_j_eval(j, node->a);
    struct ak_jargs args = eval_arguments(j, node->args);
    ak_j_set_position(j, node->a);
    return ak_j_call(j, callee, &args);
}

static const struct ak_jbuiltin *builtin_of(struct ak_jenv *j, const struct ak_jnode *node)
{
    if (node->builtin)
        return node->builtin;
    ak_j_set_position(j, node);
    ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "there is no %s named %s",
                 node->kind == AK_JN_FILTER ? "filter" : "test", ak_j_show(j, node->name));
}

/* Applies a filter or a test to a value. */
static struct ak_jval apply(struct ak_jenv *j, const struct ak_jnode *node, struct ak_jval value)
{
    const struct ak_jbuiltin *builtin = builtin_of(j, node);
    struct ak_jargs args = eval_arguments(j, node->args);
    ak_j_set_position(j, node);
    return ak_j_call_builtin(j, builtin, value, &args);
}

struct ak_jval ak_j_apply_filters(struct ak_jenv *j, const struct ak_jnode *filters,
                                  struct ak_jval text)
{
    if (filters->a) {
        ak_j_enter(j);
        text = ak_j_apply_filters(j, filters->a, text);
        ak_j_leave(j);
    }
    return apply(j, filters, text);
}

/* ---- All expressions ---------------------------------------------------- */
static struct ak_jval eval_two(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jval a = ak_j_eval(j, node->a), b = ak_j_eval(j, node->b);
    ak_j_set_position(j, node);
    return node->kind == AK_JN_ITEM ? ak_j_get_item(j, a, b) : ak_j_operate(j, node->op, a, b);
}

static struct ak_jval eval_one(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jval a = ak_j_eval(j, node->a);
    ak_j_set_position(j, node);
    switch (node->kind) {
    case AK_JN_NOT: return ak_j_bool(!ak_j_is_true(a));
    case AK_JN_NEGATIVE: return ak_j_negate(j, a);
    case AK_JN_POSITIVE: return ak_j_apply_plus(j, a);
    case AK_JN_ATTRIBUTE: return ak_j_get_attribute(j, a, node->name);
    case AK_JN_OR: return ak_j_is_true(a) ? a : ak_j_eval(j, node->b);
    case AK_JN_AND: return ak_j_is_true(a) ? ak_j_eval(j, node->b) : a;
    default: return apply(j, node, a);
    }
}

static struct ak_jval eval(struct ak_jenv *j, const struct ak_jnode *node)
{
    switch (node->kind) {
    case AK_JN_CONST: return node->value;
    case AK_JN_NAME: return ak_j_look_up(j, node->name);
    case AK_JN_TUPLE: return eval_items(j, node->a, AK_J_TUPLE);
    case AK_JN_LIST: return eval_items(j, node->a, AK_J_PLAIN_LIST);
    case AK_JN_DICT: return eval_dict(j, node);
    case AK_JN_CONDITION: return eval_condition(j, node);
    case AK_JN_COMPARE: return eval_compare(j, node);
    case AK_JN_CONCAT: return eval_concat(j, node);
    case AK_JN_SLICE: return eval_slice(j, node);
    case AK_JN_CALL: return eval_call(j, node);
    case AK_JN_BINARY:
    case AK_JN_ITEM: return eval_two(j, node);
    default: return eval_one(j, node);
    }
}

struct ak_jval ak_j_eval(struct ak_jenv *j, const struct ak_jnode *node)
{
    ak_j_enter(j);
    ak_j_spend(j, 1);
    ak_j_set_position(j, node);
    struct ak_jval value = eval(j, node);
    ak_j_leave(j);
    return value;
}

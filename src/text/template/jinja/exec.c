/* Execution of statements: scopes and variables, blocks, loops and the members of `loop`. */
#include "text/template/jinja/builtins.h"
#include "text/template/jinja/exec.h"

/* ---- Scopes ------------------------------------------------------------- */
struct ak_jscope *ak_j_open_scope(struct ak_jenv *j, struct ak_jscope *outer,
                                  const struct ak_jnode *hidden)
{
    struct ak_jscope *scope = ak_j_alloc(j, 1, sizeof *scope);
    scope->outer = outer;
    for (; hidden; hidden = hidden->next)
        ak_j_set(j, scope, hidden->name, (struct ak_jval){ .kind = AK_J_MISSING });
    return scope;
}

static struct ak_jvar *find_variable(struct ak_jenv *j, const struct ak_jscope *scope,
                                     const struct ak_jstr *name)
{
    ak_j_spend(j, scope->n / 16);
    for (size_t i = 0; i < scope->n; i++)
        if (scope->vars[i].name == name)
            return &scope->vars[i];
    return NULL;
}

void ak_j_set(struct ak_jenv *j, struct ak_jscope *scope, struct ak_jval name, struct ak_jval value)
{
    struct ak_jvar *var = find_variable(j, scope, name.as.string);
    if (var) {
        var->value = value;
        return;
    }
    if (scope->n == scope->capacity) {
        size_t capacity = scope->capacity ? 2 * scope->capacity : 4;
        scope->vars = ak_j_grow(j, scope->vars, scope->n, capacity, sizeof *scope->vars);
        scope->capacity = capacity;
    }
    scope->vars[scope->n++] = (struct ak_jvar){ name.as.string, value };
}

/* The value of a name that no scope of the template sets: what the caller gave, then a function of
 * the language, otherwise undefined. */
static struct ak_jval look_up_outside(struct ak_jenv *j, const struct ak_jdict *context,
                                      struct ak_jval name)
{
    const struct ak_jval *given = ak_j_get(j, context, name);
    if (given)
        return *given;
    const struct ak_jbuiltin *function = ak_j_find_global(name.as.string);
    if (!function)
        return ak_j_undefined_name(j, name);
    struct ak_jcallable *callable = ak_j_alloc(j, 1, sizeof *callable);
    callable->what = AK_J_BUILTIN;
    callable->builtin = function;
    return (struct ak_jval){ .kind = AK_J_CALLABLE, .as.callable = callable };
}

struct ak_jval ak_j_look_up(struct ak_jenv *j, struct ak_jval name)
{
    const struct ak_jscope *scope = j->scope;
    for (;; scope = scope->outer) {
        const struct ak_jvar *var = find_variable(j, scope, name.as.string);
        if (var && ak_j_is_given(var->value))
            return var->value;
        if (var)
            return ak_j_undefined_name(j, name);
        if (!scope->outer)
            return look_up_outside(j, scope->context, name);
    }
}

static void assign_member(struct ak_jenv *j, const struct ak_jnode *target, struct ak_jval value)
{
    struct ak_jval space = ak_j_look_up(j, target->name);
    if (space.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, space);
    if (space.kind != AK_J_NAMESPACE)
        ak_j_fail(j, "cannot assign attribute on non-namespace object (%s)", ak_j_type_name(space));
    if (target->value.as.string->n > 0 && target->value.as.string->bytes[0] == '_')
        ak_j_fail(j, "a namespace cannot have the attribute %s: its name begins with an underscore",
                  ak_j_show(j, target->value));
    ak_j_put(j, space.as.dict, target->value, value);
}

static void assign_tuple(struct ak_jenv *j, const struct ak_jnode *target, struct ak_jval value)
{
    size_t wanted = 0, at = 0;
    if (value.kind == AK_J_UNDEFINED || !ak_j_is_iterable(value))
        ak_j_fail(j, "cannot unpack non-iterable %s object", ak_j_type_name(value));
    const struct ak_jlist *items = ak_j_iterate(j, value);
    for (const struct ak_jnode *name = target->a; name; name = name->next)
        wanted++;
    if (items->n != wanted)
        ak_j_fail(j, "%s values to unpack (%zu where %zu are expected)",
                  items->n < wanted ? "not enough" : "too many", items->n, wanted);
    for (const struct ak_jnode *name = target->a; name; name = name->next)
        ak_j_assign(j, name, items->items[at++]);
}

void ak_j_assign(struct ak_jenv *j, const struct ak_jnode *target, struct ak_jval value)
{
    ak_j_set_position(j, target);
    if (target->kind == AK_JN_NAME)
        ak_j_set(j, j->scope, target->name, value);
    else if (target->kind == AK_JN_MEMBER)
        assign_member(j, target, value);
    else
        assign_tuple(j, target, value);
}

/* ---- Statements --------------------------------------------------------- */
static enum ak_jflow exec_output(struct ak_jenv *j, const struct ak_jnode *node)
{
    for (const struct ak_jnode *part = node->a; part; part = part->next) {
        struct ak_jval value = ak_j_eval(j, part);
        ak_j_set_position(j, part);
        ak_j_put_value(j, j->out, value);
    }
    return AK_J_NEXT;
}

static enum ak_jflow exec_if(struct ak_jenv *j, const struct ak_jnode *node)
{
    if (ak_j_is_true(ak_j_eval(j, node->a)))
        return ak_j_exec(j, node->b);
    for (const struct ak_jnode *other = node->c; other; other = other->next)
        if (ak_j_is_true(ak_j_eval(j, other->a)))
            return ak_j_exec(j, other->b);
    return ak_j_exec(j, node->d);
}

/* Runs statements in a scope with output to `out`. A failure does not restore j, which is not used
 * after it. */
static enum ak_jflow exec_in(struct ak_jenv *j, const struct ak_jnode *statements,
                             struct ak_jscope *scope, struct ak_jout *out)
{
    struct ak_jscope *outer_scope = j->scope;
    struct ak_jout *outer_out = j->out;
    j->scope = scope;
    j->out = out;
    enum ak_jflow flow = ak_j_exec(j, statements);
    j->scope = outer_scope;
    j->out = outer_out;
    return flow;
}

struct ak_jval ak_j_capture(struct ak_jenv *j, const struct ak_jnode *statements,
                            struct ak_jscope *scope)
{
    struct ak_jout out = { 0 };
    exec_in(j, statements, scope, &out);
    return ak_j_finish(j, &out);
}

static enum ak_jflow exec_with(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jscope *outer = j->scope, *scope = ak_j_open_scope(j, outer, node->hidden);
    const struct ak_jnode *target = node->a;
    for (const struct ak_jnode *value = node->b; value;
         value = value->next, target = target->next) {
        struct ak_jval v = ak_j_eval(j, value);
        j->scope = scope;
        ak_j_assign(j, target, v);
        j->scope = outer;
    }
    return exec_in(j, node->c, scope, j->out);
}

/* Blocks that process their text. `break` and `continue` discard the text, as in jinja2. */
static enum ak_jflow exec_text_block(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jout out = { 0 };
    struct ak_jscope *scope = ak_j_open_scope(j, j->scope, node->hidden), *outer = j->scope;
    enum ak_jflow flow = exec_in(j, node->c, scope, &out);
    if (flow != AK_J_NEXT)
        return flow;
    struct ak_jval text = ak_j_finish(j, &out);
    if (node->kind == AK_JN_FILTER_BLOCK) {
        ak_j_put_value(j, j->out, ak_j_apply_filters(j, node->a, text));
        return AK_J_NEXT;
    }
    j->scope = scope;
    if (node->b)
        text = ak_j_apply_filters(j, node->b, text);
    j->scope = outer;
    ak_j_assign(j, node->a, text);
    return AK_J_NEXT;
}

/* The block is an anonymous macro, passed to the call as `caller`. */
static enum ak_jflow exec_call_block(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jnode keyword = { .kind = AK_JN_KEYWORD, .line = node->line, .column = node->column };
    struct ak_jnode value = { .kind = AK_JN_CONST, .value = ak_j_make_macro(j, node) };
    struct ak_jnode_args args = *node->b->args;
    struct ak_jnode call = *node->b;
    keyword.name = j->specials->caller;
    keyword.a = &value;
    keyword.next = args.named;
    args.named = &keyword;
    args.n_named++;
    call.args = &args;
    ak_j_put_value(j, j->out, ak_j_eval(j, &call));
    return AK_J_NEXT;
}

static enum ak_jflow exec_one(struct ak_jenv *j, const struct ak_jnode *node)
{
    switch (node->kind) {
    case AK_JN_OUTPUT: return exec_output(j, node);
    case AK_JN_IF: return exec_if(j, node);
    case AK_JN_FOR: return ak_j_exec_for(j, node);
    case AK_JN_SET: ak_j_assign(j, node->a, ak_j_eval(j, node->b)); return AK_J_NEXT;
    case AK_JN_MACRO: ak_j_set(j, j->scope, node->name, ak_j_make_macro(j, node)); return AK_J_NEXT;
    case AK_JN_SET_BLOCK:
    case AK_JN_FILTER_BLOCK: return exec_text_block(j, node);
    case AK_JN_CALL_BLOCK: return exec_call_block(j, node);
    case AK_JN_WITH: return exec_with(j, node);
    case AK_JN_SCOPE:
        return exec_in(j, node->c, ak_j_open_scope(j, j->scope, node->hidden), j->out);
    case AK_JN_BREAK: return AK_J_BREAK;
    default: return AK_J_CONTINUE;
    }
}

enum ak_jflow ak_j_exec(struct ak_jenv *j, const struct ak_jnode *statements)
{
    enum ak_jflow flow = AK_J_NEXT;
    ak_j_enter(j);
    for (; statements && flow == AK_J_NEXT; statements = statements->next) {
        ak_j_spend(j, 1);
        ak_j_set_position(j, statements);
        flow = exec_one(j, statements);
    }
    ak_j_leave(j);
    return flow;
}

/* ---- Loops -------------------------------------------------------------- */
/* The items that pass the test of `for … if`. The test sees the target but not `loop`. */
static struct ak_jlist *filter_items(struct ak_jenv *j, const struct ak_jnode *node,
                                     const struct ak_jlist *items)
{
    struct ak_jlist *kept = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    struct ak_jscope *outer = j->scope;
    for (size_t i = 0; i < items->n; i++) {
        ak_j_spend(j, 1);
        j->scope = ak_j_open_scope(j, outer, NULL);
        ak_j_assign(j, node->a, items->items[i]);
        if (ak_j_is_true(ak_j_eval(j, node->e)))
            ak_j_append(j, kept, items->items[i]);
    }
    j->scope = outer;
    return kept;
}

/* Returns whether an iteration completed; otherwise the `else` of the loop runs. */
static bool run_body(struct ak_jenv *j, struct ak_jloop *loop, const struct ak_jnode *node)
{
    bool complete = false;
    enum ak_jflow flow = AK_J_NEXT;
    for (loop->at = 0; loop->at < loop->items->n && flow != AK_J_BREAK; loop->at++) {
        ak_j_spend(j, 1);
        j->scope = ak_j_open_scope(j, loop->scope, node->hidden);
        ak_j_set(j, j->scope, j->specials->loop,
                 (struct ak_jval){ .kind = AK_J_LOOP, .as.loop = loop });
        ak_j_assign(j, node->a, loop->items->items[loop->at]);
        flow = ak_j_exec(j, node->c);
        complete = complete || flow == AK_J_NEXT;
    }
    return complete;
}

static enum ak_jflow run_loop(struct ak_jenv *j, const struct ak_jnode *node, struct ak_jval over,
                              struct ak_jscope *scope, int64_t depth)
{
    struct ak_jscope *caller = j->scope;
    struct ak_jloop *loop = ak_j_alloc(j, 1, sizeof *loop);
    enum ak_jflow flow = AK_J_NEXT;
    j->scope = scope;
    *loop = (struct ak_jloop){ .items = ak_j_iterate(j, over),
                               .depth = depth,
                               .scope = scope,
                               .node = node->recursive ? node : NULL };
    if (node->e)
        loop->items = filter_items(j, node, loop->items);
    if (!run_body(j, loop, node) && node->d) {
        j->scope = ak_j_open_scope(j, scope, node->hidden_else);
        flow = ak_j_exec(j, node->d);
    }
    j->scope = caller;
    return flow;
}

enum ak_jflow ak_j_exec_for(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jval over = ak_j_eval(j, node->b);
    ak_j_set_position(j, node->b);
    return run_loop(j, node, over, j->scope, 1);
}

struct ak_jval ak_j_recurse_loop(struct ak_jenv *j, struct ak_jloop *loop, struct ak_jval items)
{
    struct ak_jout out = { 0 }, *outer = j->out;
    if (!loop->node)
        ak_j_fail(j, "the loop must have the 'recursive' marker to be called");
    j->out = &out;
    run_loop(j, loop->node, items, loop->scope, loop->depth + 1);
    j->out = outer;
    return ak_j_finish(j, &out);
}

/* ---- Members ------------------------------------------------------------ */
static struct ak_jval index_member(const struct ak_jloop *loop, struct ak_jval name)
{
    int64_t at = (int64_t)loop->at, n = (int64_t)loop->items->n;
    const struct {
        const char *name;
        int64_t value;
    } members[] = { { "index", at + 1 },          { "index0", at }, { "revindex", n - at },
                    { "revindex0", n - at - 1 },  { "length", n },  { "depth", loop->depth },
                    { "depth0", loop->depth - 1 } };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (ak_j_string_is(name, members[i].name))
            return ak_j_int(members[i].value);
    return (struct ak_jval){ .kind = AK_J_MISSING };
}

struct ak_jval ak_j_loop_member(struct ak_jenv *j, const struct ak_jloop *loop, struct ak_jval name)
{
    const struct ak_jlist *items = loop->items;
    if (ak_j_string_is(name, "first"))
        return ak_j_bool(loop->at == 0);
    if (ak_j_string_is(name, "last"))
        return ak_j_bool(loop->at + 1 >= items->n);
    if (ak_j_string_is(name, "previtem"))
        return loop->at > 0 ? items->items[loop->at - 1] :
                              ak_j_undefined_hint(j, "there is no previous item");
    if (ak_j_string_is(name, "nextitem"))
        return loop->at + 1 < items->n ? items->items[loop->at + 1] :
                                         ak_j_undefined_hint(j, "there is no next item");
    return index_member(loop, name);
}

static struct ak_jval loop_cycle(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    if (rest->n == 0)
        ak_j_fail(j, "no items for cycling given");
    return rest->values[a[0].as.loop->at % rest->n];
}

static struct ak_jval loop_changed(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    struct ak_jlist *now = ak_j_list(j, AK_J_TUPLE, rest->n);
    for (size_t i = 0; i < rest->n; i++)
        ak_j_append(j, now, rest->values[i]);
    struct ak_jval *last = &a[0].as.loop->changed;
    bool changed = !ak_j_is_given(*last) || !ak_j_is_equal(j, *last, ak_j_from_list(now));
    *last = ak_j_from_list(now);
    return ak_j_bool(changed);
}

const struct ak_jbuiltin ak_j_loop_methods[] = {
    { "cycle", loop_cycle, 0, { NULL }, true, false },
    { "changed", loop_changed, 0, { NULL }, true, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

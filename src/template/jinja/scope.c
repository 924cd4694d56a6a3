#include "template/jinja/builtins.h"
#include "template/jinja/exec.h"

struct ak_jscope *ak_j_open_scope(struct ak_jenv *j, struct ak_jscope *outer,
                                  const struct ak_jnode *hidden)
{
    struct ak_jscope *scope = ak_j_alloc(j, 1, sizeof *scope);
    scope->outer = outer;
    for (; hidden; hidden = hidden->next)
        ak_j_set(j, scope, hidden->name, (struct ak_jval){ .kind = AK_J_MISSING });
    return scope;
}

static struct ak_jvar *find(struct ak_jenv *j, const struct ak_jscope *scope,
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
    struct ak_jvar *var = find(j, scope, name.as.string);
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
        const struct ak_jvar *var = find(j, scope, name.as.string);
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

/* Calls: binding of arguments to the parameters of builtins and macros, and dispatch by what is
 * called. */
#include "text/template/jinja/builtins.h"
#include "text/template/jinja/exec.h"

static const struct ak_jval missing = { .kind = AK_J_MISSING };

/* ---- Builtins ----------------------------------------------------------- */
/* Binds named arguments to parameters. */
static void bind_named(struct ak_jenv *j, const struct ak_jbuiltin *builtin,
                       const struct ak_jargs *args, struct ak_jval *out)
{
    for (size_t i = 0; i < args->n_named; i++) {
        size_t at = 0;
        while (at < AK_J_PARAMS_MAX && builtin->params[at] &&
               !ak_j_string_is(args->named[i].key, builtin->params[at]))
            at++;
        if (at == AK_J_PARAMS_MAX || !builtin->params[at])
            ak_j_fail(j, "%s() got an unexpected keyword argument %s", builtin->name,
                      ak_j_show(j, args->named[i].key));
        if (ak_j_is_given(out[at]))
            ak_j_fail(j, "%s() got multiple values for argument '%s'", builtin->name,
                      builtin->params[at]);
        out[at] = args->named[i].value;
    }
}

static void bind(struct ak_jenv *j, const struct ak_jbuiltin *builtin, const struct ak_jargs *args,
                 struct ak_jval *out)
{
    size_t n_params = 0;
    while (n_params < AK_J_PARAMS_MAX && builtin->params[n_params])
        n_params++;
    if (args->n > n_params)
        ak_j_fail(j, "%s() takes at most %zu argument%s (%zu given)", builtin->name, n_params,
                  n_params == 1 ? "" : "s", args->n);
    for (size_t i = 0; i < args->n; i++)
        out[i] = args->values[i];
    bind_named(j, builtin, args, out);
    for (size_t i = 0; i < builtin->n_required; i++)
        if (!ak_j_is_given(out[i]))
            ak_j_fail(j, "%s() is missing its argument '%s'", builtin->name, builtin->params[i]);
}

struct ak_jval ak_j_call_builtin(struct ak_jenv *j, const struct ak_jbuiltin *builtin,
                                 struct ak_jval first, const struct ak_jargs *args)
{
    struct ak_jval a[1 + AK_J_PARAMS_MAX] = { first };
    ak_j_enter(j);
    if (!builtin->variadic)
        bind(j, builtin, args, a + 1);
    struct ak_jval value = builtin->fn(j, a, args);
    ak_j_leave(j);
    return builtin->keeps_safe && ak_j_is_safe(first) ? ak_j_mark_safe(j, value) : value;
}

/* ---- Macros ------------------------------------------------------------- */
struct ak_jval ak_j_make_macro(struct ak_jenv *j, const struct ak_jnode *node)
{
    struct ak_jcallable *macro = ak_j_alloc(j, 1, sizeof *macro);
    macro->what = AK_J_MACRO;
    macro->node = node;
    macro->scope = j->scope;
    return (struct ak_jval){ .kind = AK_J_CALLABLE, .as.callable = macro };
}

static const char *macro_name(struct ak_jenv *j, const struct ak_jnode *node)
{
    return ak_j_is_given(node->name) ? ak_j_show(j, node->name) : "of a call block";
}

/* Named arguments without a parameter become `caller` and `kwargs`, if the macro uses them. */
static void bind_rest(struct ak_jenv *j, const struct ak_jnode *node, struct ak_jscope *scope,
                      const struct ak_jargs *args, const bool *taken)
{
    struct ak_jdict *rest = ak_j_dict(j);
    struct ak_jval caller = ak_j_undefined_hint(j, "no caller is defined");
    for (size_t i = 0; i < args->n_named; i++) {
        if (taken[i])
            continue;
        if (node->uses_caller &&
            ak_j_strings_equal(args->named[i].key.as.string, j->specials->caller.as.string))
            caller = args->named[i].value;
        else if (node->uses_kwargs)
            ak_j_put(j, rest, args->named[i].key, args->named[i].value);
        else
            ak_j_fail(j, "macro %s takes no keyword argument %s", macro_name(j, node),
                      ak_j_show(j, args->named[i].key));
    }
    if (node->uses_caller)
        ak_j_set(j, scope, j->specials->caller, caller);
    if (node->uses_kwargs)
        ak_j_set(j, scope, j->specials->kwargs, ak_j_from_dict(rest));
}

static void bind_more(struct ak_jenv *j, const struct ak_jnode *node, struct ak_jscope *scope,
                      const struct ak_jargs *args, size_t n_taken)
{
    if (!node->uses_varargs && args->n > n_taken)
        ak_j_fail(j, "macro %s takes not more than %zu argument(s)", macro_name(j, node), n_taken);
    if (!node->uses_varargs)
        return;
    struct ak_jlist *more = ak_j_list(j, AK_J_TUPLE, 0);
    for (size_t i = n_taken; i < args->n; i++)
        ak_j_append(j, more, args->values[i]);
    ak_j_set(j, scope, j->specials->varargs, ak_j_from_list(more));
}

static struct ak_jval argument_named(struct ak_jenv *j, const struct ak_jargs *args,
                                     struct ak_jval name, bool *taken)
{
    for (size_t i = 0; i < args->n_named; i++) {
        ak_j_spend(j, 1);
        if (ak_j_strings_equal(args->named[i].key.as.string, name.as.string)) {
            taken[i] = true;
            return args->named[i].value;
        }
    }
    return missing;
}

static struct ak_jval missing_parameter(struct ak_jenv *j, const struct ak_jnode *parameter)
{
    struct ak_jout hint = { 0 };
    ak_j_put_text(j, &hint, "parameter ");
    ak_j_put_repr(j, &hint, parameter->name);
    ak_j_put_bytes(j, &hint, " was not provided", sizeof " was not provided");
    return ak_j_undefined_hint(j, hint.bytes);
}

/* Binds all parameters. A default sees only the parameters before it. */
static void bind_macro(struct ak_jenv *j, const struct ak_jnode *node, struct ak_jscope *scope,
                       const struct ak_jargs *args)
{
    bool *taken = ak_j_alloc(j, args->n_named, sizeof *taken);
    size_t at = 0;
    for (const struct ak_jnode *parameter = node->a; parameter; parameter = parameter->next, at++)
        ak_j_set(j, scope, parameter->name,
                 at < args->n ? args->values[at] : argument_named(j, args, parameter->name, taken));
    bind_rest(j, node, scope, args, taken);
    bind_more(j, node, scope, args, at);
    size_t i = 0;
    for (const struct ak_jnode *parameter = node->a; parameter; parameter = parameter->next, i++) {
        if (ak_j_is_given(scope->vars[i].value))
            continue;
        struct ak_jval value =
            parameter->a ? ak_j_eval(j, parameter->a) : missing_parameter(j, parameter);
        ak_j_set(j, scope, parameter->name, value);
    }
}

static struct ak_jval call_macro(struct ak_jenv *j, const struct ak_jcallable *macro,
                                 const struct ak_jargs *args)
{
    const struct ak_jnode *node = macro->node;
    struct ak_jscope *outer = j->scope, *scope = ak_j_open_scope(j, macro->scope, NULL);
    ak_j_enter(j);
    j->scope = scope;
    bind_macro(j, node, scope, args);
    for (const struct ak_jnode *hidden = node->hidden; hidden; hidden = hidden->next)
        ak_j_set(j, scope, hidden->name, missing);
    struct ak_jval text = ak_j_capture(j, node->c, scope);
    j->scope = outer;
    ak_j_leave(j);
    return text;
}

/* ---- All callables ------------------------------------------------------ */
static struct ak_jval call_joiner(struct ak_jenv *j, struct ak_jjoiner *joiner)
{
    struct ak_jval value = joiner->used ? joiner->separator : ak_j_text(j, "");
    joiner->used = true;
    return value;
}

static struct ak_jval call_function(struct ak_jenv *j, const struct ak_jcallable *callable,
                                    const struct ak_jargs *args)
{
    if (callable->what == AK_J_MACRO)
        return call_macro(j, callable, args);
    if (callable->what == AK_J_METHOD && ak_j_is_safe(callable->self))
        return ak_j_call_safe(j, callable, args);
    return ak_j_call_builtin(j, callable->builtin, callable->self, args);
}

struct ak_jval ak_j_call(struct ak_jenv *j, struct ak_jval callee, const struct ak_jargs *args)
{
    switch (callee.kind) {
    case AK_J_CALLABLE: return call_function(j, callee.as.callable, args);
    case AK_J_LOOP:
        if (args->n != 1 || args->n_named != 0)
            ak_j_fail(j, "loop() takes one argument");
        return ak_j_recurse_loop(j, callee.as.loop, args->values[0]);
    case AK_J_JOINER: return call_joiner(j, callee.as.joiner);
    case AK_J_UNDEFINED: ak_j_fail_undefined(j, callee);
    default: ak_j_fail(j, "'%s' object is not callable", ak_j_type_name(callee));
    }
}

#include "template/jinja/builtins.h"
#include "template/jinja/exec.h"

/* Those that `for … if` lets through: the test sees the target, and nothing else of the loop. */
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

/* Gives whether an iteration came to its end: else it is the loop's `else` that runs. */
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

#include "template/jinja/exec.h"

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

/* Statements in a scope, with their text going to `out`. A failure leaves both as they are,
 * and then nothing runs any more. */
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

/* `break` and `continue` leave a block before its text is used, as they do in jinja2. */
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

/* The block is a macro without a name, which the call is given as `caller`. */
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

/* Parser of statements, and the helpers that expression.c shares. */
#include "text/template/jinja/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/template/jinja/string.h"

/* ---- Shared with expression.c ------------------------------------------- */
void ak_j_add_node(struct ak_jnodes *list, struct ak_jnode *node)
{
    if (!list->end)
        list->end = &list->first;
    *list->end = node;
    list->end = &node->next;
}

struct ak_jnode *ak_j_node(struct ak_jparser *p, enum ak_jnode_kind kind,
                           const struct ak_jtoken *at)
{
    struct ak_jnode *node = ak_j_alloc(p->j, 1, sizeof *node);
    ak_j_spend(p->j, 1);
    node->kind = kind;
    node->line = at->line;
    node->column = at->column;
    return node;
}

struct ak_jval ak_j_intern(struct ak_jparser *p, struct ak_jval name)
{
    const struct ak_jval *known = ak_j_get(p->j, p->names, name);
    if (known)
        return *known;
    ak_j_put(p->j, p->names, name, name);
    return name;
}

_Noreturn void ak_j_parse_fail(struct ak_jparser *p, const struct ak_jtoken *at, const char *format,
                               ...)
{
    char message[AK_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    p->j->line = at->line;
    p->j->column = at->column;
    ak_j_fail_as(p->j, AKUNU_ERROR_FORMAT, "%s", message);
}

void ak_j_parse_enter(struct ak_jparser *p)
{
    if (++p->nesting > AK_JINJA_NESTING_MAX)
        ak_j_parse_fail(p, p->now, "the template nests deeper than %d, the limit",
                        AK_JINJA_NESTING_MAX);
}

void ak_j_parse_leave(struct ak_jparser *p)
{
    p->nesting--;
}

bool ak_j_is_token(const struct ak_jparser *p, enum ak_jtoken_kind kind)
{
    return p->now->kind == kind;
}

bool ak_j_is_name(const struct ak_jparser *p, const char *name)
{
    return p->now->kind == AK_JT_NAME && ak_j_string_is(p->now->value, name);
}

bool ak_j_skip(struct ak_jparser *p, enum ak_jtoken_kind kind)
{
    bool found = ak_j_is_token(p, kind);
    p->now += found;
    return found;
}

bool ak_j_skip_name(struct ak_jparser *p, const char *name)
{
    bool found = ak_j_is_name(p, name);
    p->now += found;
    return found;
}

const struct ak_jtoken *ak_j_expect(struct ak_jparser *p, enum ak_jtoken_kind kind)
{
    if (!ak_j_is_token(p, kind))
        ak_j_parse_fail(p, p->now, "%s is expected, not %s", ak_j_token_name(kind),
                        ak_j_token_name(p->now->kind));
    return p->now++;
}

/* ---- Bodies ------------------------------------------------------------- */
static struct ak_jnode *parse_statement(struct ak_jparser *p);

static bool is_end(const struct ak_jparser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (ak_j_is_name(p, *ends))
            return true;
    return false;
}

static struct ak_jnode *text_node(struct ak_jparser *p)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_CONST, p->now);
    node->value = (p->now++)->value;
    return node;
}

static struct ak_jnode *parse_output(struct ak_jparser *p)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_OUTPUT, p->now);
    struct ak_jnodes parts = { 0 };
    while (ak_j_is_token(p, AK_JT_DATA) || ak_j_is_token(p, AK_JT_VARIABLE_BEGIN)) {
        if (ak_j_is_token(p, AK_JT_DATA)) {
            ak_j_add_node(&parts, text_node(p));
            continue;
        }
        p->now++;
        ak_j_add_node(&parts, ak_j_parse_tuple(p, (struct ak_jtuple_rules){ 0 }));
        ak_j_expect(p, AK_JT_VARIABLE_END);
    }
    node->a = parts.first;
    return node;
}

/* Parses up to one of the tags in `ends`; its name is then the next token. NULL: to the end. */
static struct ak_jnode *parse_until(struct ak_jparser *p, const char *const *ends)
{
    struct ak_jnodes body = { 0 };
    ak_j_parse_enter(p);
    while (!ak_j_is_token(p, AK_JT_END)) {
        if (!ak_j_skip(p, AK_JT_BLOCK_BEGIN)) {
            ak_j_add_node(&body, parse_output(p));
            continue;
        }
        if (is_end(p, ends))
            break;
        ak_j_add_node(&body, parse_statement(p));
        ak_j_expect(p, AK_JT_BLOCK_END);
    }
    ak_j_parse_leave(p);
    return body.first;
}

/* Parses the body of the statement that begins at `tag`. */
static struct ak_jnode *parse_body(struct ak_jparser *p, const struct ak_jtoken *tag,
                                   const char *const *ends)
{
    ak_j_skip(p, AK_JT_COLON);
    ak_j_expect(p, AK_JT_BLOCK_END);
    struct ak_jnode *body = parse_until(p, ends);
    if (ak_j_is_token(p, AK_JT_END))
        ak_j_parse_fail(p, p->now, "the template ends before the %s of line %u does",
                        ak_j_show(p->j, tag->value), tag->line);
    return body;
}

static struct ak_jnode *parse_only_body(struct ak_jparser *p, const struct ak_jtoken *tag,
                                        const char *end)
{
    struct ak_jnode *body = parse_body(p, tag, (const char *const[]){ end, NULL });
    p->now++;
    return body;
}

/* ---- Targets ------------------------------------------------------------ */
static struct ak_jnode *parse_one_target(struct ak_jparser *p, bool member)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnode *node = ak_j_parse_primary(p);
    if (!member || node->kind != AK_JN_NAME || !ak_j_skip(p, AK_JT_DOT))
        return node;
    struct ak_jnode *target = ak_j_node(p, AK_JN_MEMBER, at);
    target->name = node->name;
    target->value = ak_j_intern(p, ak_j_expect(p, AK_JT_NAME)->value);
    return target;
}

static void check_target(struct ak_jparser *p, const struct ak_jnode *node,
                         const struct ak_jtoken *at)
{
    bool is_name = node->kind == AK_JN_NAME && !ak_j_string_is(node->name, "loop");
    if (is_name || node->kind == AK_JN_MEMBER)
        return;
    if (node->kind != AK_JN_TUPLE)
        ak_j_parse_fail(p, at,
                        node->kind == AK_JN_NAME ?
                            "the special variable \"loop\" cannot be assigned to" :
                            "this cannot be assigned to");
    for (const struct ak_jnode *item = node->a; item; item = item->next)
        check_target(p, item, at);
}

struct ak_jnode *ak_j_parse_target(struct ak_jparser *p, const char *end_name, bool member)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnodes items = { 0 };
    bool is_tuple = false;
    while (!ak_j_is_tuple_end(p, end_name)) {
        ak_j_add_node(&items, parse_one_target(p, member));
        if (!ak_j_is_token(p, AK_JT_COMMA))
            break;
        is_tuple = true;
        p->now++;
    }
    if (!items.first)
        ak_j_parse_fail(p, p->now, "a name is expected, not %s", ak_j_token_name(p->now->kind));
    struct ak_jnode *target = items.first;
    if (is_tuple) {
        target = ak_j_node(p, AK_JN_TUPLE, at);
        target->a = items.first;
    }
    check_target(p, target, at);
    return target;
}

/* ---- if and for --------------------------------------------------------- */
static struct ak_jnode *parse_branch(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    struct ak_jnode *node = ak_j_node(p, AK_JN_IF, p->now);
    node->a = ak_j_parse_tuple(p, (struct ak_jtuple_rules){ .no_condition = true });
    node->b = parse_body(p, tag, ends);
    return node;
}

static struct ak_jnode *parse_if(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = parse_branch(p, tag);
    struct ak_jnodes others = { 0 };
    while (ak_j_skip_name(p, "elif"))
        ak_j_add_node(&others, parse_branch(p, tag));
    node->c = others.first;
    if (ak_j_skip_name(p, "else"))
        node->d = parse_only_body(p, tag, "endif");
    else
        p->now++;
    return node;
}

static struct ak_jnode *parse_for(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    static const char *const ends[] = { "endfor", "else", NULL };
    struct ak_jnode *node = ak_j_node(p, AK_JN_FOR, tag);
    node->a = ak_j_parse_target(p, "in", false);
    if (!ak_j_skip_name(p, "in"))
        ak_j_parse_fail(p, p->now, "\"in\" is expected, not %s", ak_j_token_name(p->now->kind));
    node->b = ak_j_parse_tuple(
        p, (struct ak_jtuple_rules){ .no_condition = true, .end_name = "recursive" });
    if (ak_j_skip_name(p, "if"))
        node->e = ak_j_parse_expression(p);
    node->recursive = ak_j_skip_name(p, "recursive");
    p->loops++;
    node->c = parse_body(p, tag, ends);
    p->loops--;
    if (ak_j_skip_name(p, "else"))
        node->d = parse_only_body(p, tag, "endfor");
    else
        p->now++;
    return node;
}

static struct ak_jnode *parse_loop_control(struct ak_jparser *p, const struct ak_jtoken *tag,
                                           enum ak_jnode_kind kind)
{
    if (p->loops == 0)
        ak_j_parse_fail(p, tag, "%s stands outside of a loop", ak_j_show(p->j, tag->value));
    return ak_j_node(p, kind, tag);
}

/* ---- macro and call ----------------------------------------------------- */
static bool has_parameter(struct ak_jparser *p, const struct ak_jnode *parameters,
                          struct ak_jval name)
{
    for (; parameters; parameters = parameters->next) {
        ak_j_spend(p->j, 1);
        if (ak_j_strings_equal(parameters->name.as.string, name.as.string))
            return true;
    }
    return false;
}

static struct ak_jnode *parse_parameters(struct ak_jparser *p)
{
    struct ak_jnodes parameters = { 0 };
    bool has_default = false;
    ak_j_expect(p, AK_JT_LPAREN);
    while (!ak_j_is_token(p, AK_JT_RPAREN)) {
        if (parameters.first)
            ak_j_expect(p, AK_JT_COMMA);
        const struct ak_jtoken *at = ak_j_expect(p, AK_JT_NAME);
        struct ak_jnode *parameter = ak_j_node(p, AK_JN_NAME, at);
        parameter->name = ak_j_intern(p, at->value);
        if (has_parameter(p, parameters.first, parameter->name))
            ak_j_parse_fail(p, at, "the parameter %s stands twice",
                            ak_j_show(p->j, parameter->name));
        if (ak_j_skip(p, AK_JT_ASSIGN))
            parameter->a = ak_j_parse_expression(p);
        else if (has_default)
            ak_j_parse_fail(p, at, "a parameter without a default follows one that has one");
        has_default = parameter->a != NULL;
        ak_j_add_node(&parameters, parameter);
    }
    ak_j_expect(p, AK_JT_RPAREN);
    return parameters.first;
}

/* Parses a body that runs when it is called, so that `break` cannot leave the loops around it. */
static void parse_called_body(struct ak_jparser *p, struct ak_jnode *node,
                              const struct ak_jtoken *tag, const char *end)
{
    unsigned loops = p->loops;
    p->loops = 0;
    node->next = p->macro;
    p->macro = node;
    node->c = parse_only_body(p, tag, end);
    p->macro = node->next;
    node->next = NULL;
    p->loops = loops;
    node->uses_caller &= !has_parameter(p, node->a, p->specials->caller);
    node->uses_varargs &= !has_parameter(p, node->a, p->specials->varargs);
    node->uses_kwargs &= !has_parameter(p, node->a, p->specials->kwargs);
}

static struct ak_jnode *parse_macro(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_MACRO, tag);
    node->name = ak_j_intern(p, ak_j_expect(p, AK_JT_NAME)->value);
    node->a = parse_parameters(p);
    parse_called_body(p, node, tag, "endmacro");
    return node;
}

static struct ak_jnode *parse_call_block(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_CALL_BLOCK, tag);
    if (ak_j_is_token(p, AK_JT_LPAREN))
        node->a = parse_parameters(p);
    const struct ak_jtoken *at = p->now;
    node->b = ak_j_parse_expression(p);
    if (node->b->kind != AK_JN_CALL)
        ak_j_parse_fail(p, at, "a call is expected");
    parse_called_body(p, node, tag, "endcall");
    return node;
}

/* ---- Other statements --------------------------------------------------- */
static struct ak_jnode *parse_set(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_SET, tag);
    node->a = ak_j_parse_target(p, NULL, true);
    if (ak_j_skip(p, AK_JT_ASSIGN)) {
        node->b = ak_j_parse_tuple(p, (struct ak_jtuple_rules){ 0 });
        return node;
    }
    node->kind = AK_JN_SET_BLOCK;
    if (ak_j_skip(p, AK_JT_PIPE))
        node->b = ak_j_parse_filters(p, NULL);
    node->c = parse_only_body(p, tag, "endset");
    return node;
}

static struct ak_jnode *parse_with(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_WITH, tag);
    struct ak_jnodes targets = { 0 }, values = { 0 };
    while (!ak_j_is_token(p, AK_JT_BLOCK_END)) {
        if (targets.first)
            ak_j_expect(p, AK_JT_COMMA);
        ak_j_add_node(&targets, ak_j_parse_target(p, NULL, false));
        ak_j_expect(p, AK_JT_ASSIGN);
        ak_j_add_node(&values, ak_j_parse_expression(p));
    }
    node->a = targets.first;
    node->b = values.first;
    node->c = parse_only_body(p, tag, "endwith");
    return node;
}

static struct ak_jnode *parse_filter_block(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_FILTER_BLOCK, tag);
    node->a = ak_j_parse_filters(p, NULL);
    node->c = parse_only_body(p, tag, "endfilter");
    return node;
}

static struct ak_jnode *parse_generation(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_SCOPE, tag);
    parse_called_body(p, node, tag, "endgeneration");
    return node;
}

static struct ak_jnode *parse_print(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_OUTPUT, tag);
    struct ak_jnodes parts = { 0 };
    while (!ak_j_is_token(p, AK_JT_BLOCK_END)) {
        if (parts.first)
            ak_j_expect(p, AK_JT_COMMA);
        ak_j_add_node(&parts, ak_j_parse_expression(p));
    }
    node->a = parts.first;
    return node;
}

static struct ak_jnode *parse_break(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    return parse_loop_control(p, tag, AK_JN_BREAK);
}

static struct ak_jnode *parse_continue(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    return parse_loop_control(p, tag, AK_JN_CONTINUE);
}

/* Statements that use other templates or change escaping. Chat templates do not need them. */
static _Noreturn struct ak_jnode *refuse(struct ak_jparser *p, const struct ak_jtoken *tag)
{
    p->j->line = tag->line;
    p->j->column = tag->column;
    ak_j_fail_as(p->j, AKUNU_ERROR_UNSUPPORTED, "the tag %s is not supported",
                 ak_j_show(p->j, tag->value));
}

static const struct {
    const char *name;
    struct ak_jnode *(*parse)(struct ak_jparser *p, const struct ak_jtoken *tag);
} statements[] = {
    { "if", parse_if },           { "for", parse_for },
    { "set", parse_set },         { "macro", parse_macro },
    { "call", parse_call_block }, { "filter", parse_filter_block },
    { "with", parse_with },       { "generation", parse_generation },
    { "break", parse_break },     { "continue", parse_continue },
    { "print", parse_print },     { "include", refuse },
    { "import", refuse },         { "from", refuse },
    { "extends", refuse },        { "block", refuse },
    { "autoescape", refuse },
};

/* Parses a tag: everything between "{%" and "%}". */
static struct ak_jnode *parse_statement(struct ak_jparser *p)
{
    const struct ak_jtoken *tag = ak_j_expect(p, AK_JT_NAME);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (ak_j_string_is(tag->value, statements[i].name))
            return statements[i].parse(p, tag);
    ak_j_parse_fail(p, tag, "the tag %s is unknown, or belongs to no block that is open here",
                    ak_j_show(p->j, tag->value));
}

struct ak_jnode *ak_j_parse(struct ak_jenv *j, const char *text, size_t n,
                            struct ak_jspecials *specials)
{
    struct ak_jtokens tokens = { 0 };
    ak_j_lex(j, text, n, &tokens);
    struct ak_jparser p = {
        .j = j, .now = tokens.tokens, .names = ak_j_dict(j), .specials = specials
    };
    specials->loop = ak_j_intern(&p, ak_j_text(j, "loop"));
    specials->caller = ak_j_intern(&p, ak_j_text(j, "caller"));
    specials->varargs = ak_j_intern(&p, ak_j_text(j, "varargs"));
    specials->kwargs = ak_j_intern(&p, ak_j_text(j, "kwargs"));
    return parse_until(&p, NULL);
}

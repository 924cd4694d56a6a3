/* Parser of expressions, by recursive descent with jinja2's grammar and precedence. */
#include <string.h>

#include "text/template/jinja/builtins.h"
#include "text/template/jinja/parser.h"
#include "text/template/jinja/string.h"

static struct ak_jnode *parse_or(struct ak_jparser *p);

static struct ak_jnode *binary(struct ak_jparser *p, enum ak_jnode_kind kind,
                               const struct ak_jtoken *at, struct ak_jnode *a, struct ak_jnode *b)
{
    struct ak_jnode *node = ak_j_node(p, kind, at);
    node->a = a;
    node->b = b;
    return node;
}

/* ---- Tuples, lists, dicts ----------------------------------------------- */
bool ak_j_is_tuple_end(const struct ak_jparser *p, const char *end_name)
{
    return ak_j_is_token(p, AK_JT_VARIABLE_END) || ak_j_is_token(p, AK_JT_BLOCK_END) ||
           ak_j_is_token(p, AK_JT_RPAREN) || (end_name && ak_j_is_name(p, end_name));
}

struct ak_jnode *ak_j_parse_tuple(struct ak_jparser *p, struct ak_jtuple_rules rules)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnodes items = { 0 };
    bool is_tuple = false;
    while (!ak_j_is_tuple_end(p, rules.end_name)) {
        ak_j_add_node(&items, rules.no_condition ? parse_or(p) : ak_j_parse_expression(p));
        if (!ak_j_is_token(p, AK_JT_COMMA))
            break;
        is_tuple = true;
        p->now++;
    }
    if (!is_tuple && items.first)
        return items.first;
    if (!is_tuple && !rules.parentheses)
        ak_j_parse_fail(p, p->now, "an expression is expected, not %s",
                        ak_j_token_name(p->now->kind));
    struct ak_jnode *node = ak_j_node(p, AK_JN_TUPLE, at);
    node->a = items.first;
    return node;
}

static struct ak_jnode *parse_list(struct ak_jparser *p)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_LIST, ak_j_expect(p, AK_JT_LBRACKET));
    struct ak_jnodes items = { 0 };
    while (!ak_j_is_token(p, AK_JT_RBRACKET)) {
        if (items.first)
            ak_j_expect(p, AK_JT_COMMA);
        if (ak_j_is_token(p, AK_JT_RBRACKET))
            break;
        ak_j_add_node(&items, ak_j_parse_expression(p));
    }
    ak_j_expect(p, AK_JT_RBRACKET);
    node->a = items.first;
    return node;
}

static struct ak_jnode *parse_dict(struct ak_jparser *p)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_DICT, ak_j_expect(p, AK_JT_LBRACE));
    struct ak_jnodes pairs = { 0 };
    while (!ak_j_is_token(p, AK_JT_RBRACE)) {
        if (pairs.first)
            ak_j_expect(p, AK_JT_COMMA);
        if (ak_j_is_token(p, AK_JT_RBRACE))
            break;
        const struct ak_jtoken *at = p->now;
        struct ak_jnode *key = ak_j_parse_expression(p);
        ak_j_expect(p, AK_JT_COLON);
        ak_j_add_node(&pairs, binary(p, AK_JN_PAIR, at, key, ak_j_parse_expression(p)));
    }
    ak_j_expect(p, AK_JT_RBRACE);
    node->a = pairs.first;
    return node;
}

/* ---- Names, values, parentheses ----------------------------------------- */
static bool is_constant_name(struct ak_jval name, struct ak_jval *value)
{
    bool yes = ak_j_string_is(name, "true") || ak_j_string_is(name, "True");
    bool no = ak_j_string_is(name, "false") || ak_j_string_is(name, "False");
    *value = yes || no ? ak_j_bool(yes) : ak_j_none();
    return yes || no || ak_j_string_is(name, "none") || ak_j_string_is(name, "None");
}

/* A macro accepts `caller`, `varargs` and `kwargs` only if its body mentions them. */
static void note_use(struct ak_jparser *p, struct ak_jval name)
{
    bool caller = ak_j_string_is(name, "caller"), varargs = ak_j_string_is(name, "varargs"),
         kwargs = ak_j_string_is(name, "kwargs");
    if (!caller && !varargs && !kwargs)
        return;
    for (struct ak_jnode *macro = p->macro; macro; macro = macro->next) {
        macro->uses_caller |= caller;
        macro->uses_varargs |= varargs;
        macro->uses_kwargs |= kwargs;
    }
}

static struct ak_jnode *parse_name(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now++;
    struct ak_jval value;
    if (is_constant_name(at->value, &value)) {
        struct ak_jnode *node = ak_j_node(p, AK_JN_CONST, at);
        node->value = value;
        return node;
    }
    struct ak_jnode *node = ak_j_node(p, AK_JN_NAME, at);
    node->name = ak_j_intern(p, at->value);
    note_use(p, at->value);
    return node;
}

/* Adjacent string literals are one string. */
static struct ak_jnode *parse_strings(struct ak_jparser *p)
{
    struct ak_jnode *node = ak_j_node(p, AK_JN_CONST, p->now);
    node->value = (p->now++)->value;
    for (; ak_j_is_token(p, AK_JT_STRING); p->now++)
        node->value = ak_j_concat(p->j, node->value.as.string, p->now->value.as.string);
    return node;
}

struct ak_jnode *ak_j_parse_primary(struct ak_jparser *p)
{
    struct ak_jnode *node;
    ak_j_parse_enter(p);
    switch (p->now->kind) {
    case AK_JT_NAME: node = parse_name(p); break;
    case AK_JT_STRING: node = parse_strings(p); break;
    case AK_JT_INTEGER:
    case AK_JT_FLOAT:
        node = ak_j_node(p, AK_JN_CONST, p->now);
        node->value = (p->now++)->value;
        break;
    case AK_JT_LPAREN:
        p->now++;
        node = ak_j_parse_tuple(p, (struct ak_jtuple_rules){ .parentheses = true });
        ak_j_expect(p, AK_JT_RPAREN);
        break;
    case AK_JT_LBRACKET: node = parse_list(p); break;
    case AK_JT_LBRACE: node = parse_dict(p); break;
    default:
        ak_j_parse_fail(p, p->now, "a value is expected, not %s", ak_j_token_name(p->now->kind));
    }
    ak_j_parse_leave(p);
    return node;
}

/* ---- Subscripts and calls ----------------------------------------------- */
/* One part of a slice; NULL if it is omitted. */
static struct ak_jnode *parse_bound(struct ak_jparser *p)
{
    if (ak_j_is_token(p, AK_JT_COLON) || ak_j_is_token(p, AK_JT_RBRACKET) ||
        ak_j_is_token(p, AK_JT_COMMA))
        return NULL;
    return ak_j_parse_expression(p);
}

static struct ak_jnode *parse_subscribed(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnode *start = ak_j_is_token(p, AK_JT_COLON) ? NULL : ak_j_parse_expression(p);
    if (!ak_j_skip(p, AK_JT_COLON))
        return start;
    struct ak_jnode *node = binary(p, AK_JN_SLICE, at, start, parse_bound(p));
    if (ak_j_skip(p, AK_JT_COLON))
        node->c = parse_bound(p);
    return node;
}

static struct ak_jnode *parse_item(struct ak_jparser *p, struct ak_jnode *object)
{
    const struct ak_jtoken *at = ak_j_expect(p, AK_JT_LBRACKET);
    struct ak_jnodes parts = { 0 };
    while (!ak_j_is_token(p, AK_JT_RBRACKET)) {
        if (parts.first)
            ak_j_expect(p, AK_JT_COMMA);
        ak_j_add_node(&parts, parse_subscribed(p));
    }
    ak_j_expect(p, AK_JT_RBRACKET);
    struct ak_jnode *subscript = parts.first;
    if (!subscript || subscript->next) {
        subscript = ak_j_node(p, AK_JN_TUPLE, at);
        subscript->a = parts.first;
    }
    return binary(p, AK_JN_ITEM, at, object, subscript);
}

static struct ak_jnode *parse_dot(struct ak_jparser *p, struct ak_jnode *object)
{
    const struct ak_jtoken *at = ak_j_expect(p, AK_JT_DOT), *member = p->now++;
    if (member->kind == AK_JT_NAME) {
        struct ak_jnode *node = binary(p, AK_JN_ATTRIBUTE, at, object, NULL);
        node->name = ak_j_intern(p, member->value);
        return node;
    }
    if (member->kind != AK_JT_INTEGER)
        ak_j_parse_fail(p, member, "a name or a number is expected behind the point, not %s",
                        ak_j_token_name(member->kind));
    struct ak_jnode *subscript = ak_j_node(p, AK_JN_CONST, member);
    subscript->value = member->value;
    return binary(p, AK_JN_ITEM, at, object, subscript);
}

static void parse_argument(struct ak_jparser *p, struct ak_jnode_args *args,
                           struct ak_jnodes *values, struct ak_jnodes *named)
{
    const struct ak_jtoken *at = p->now;
    bool fine = true;
    if (ak_j_skip(p, AK_JT_MUL)) {
        fine = !args->more_values && !args->more_named;
        args->more_values = ak_j_parse_expression(p);
    } else if (ak_j_skip(p, AK_JT_POW)) {
        fine = !args->more_named;
        args->more_named = ak_j_parse_expression(p);
    } else if (ak_j_is_token(p, AK_JT_NAME) && p->now[1].kind == AK_JT_ASSIGN) {
        fine = !args->more_named;
        struct ak_jnode *keyword = ak_j_node(p, AK_JN_KEYWORD, at);
        keyword->name = ak_j_intern(p, at->value);
        p->now += 2;
        keyword->a = ak_j_parse_expression(p);
        ak_j_add_node(named, keyword);
        args->n_named++;
    } else {
        fine = !args->more_values && !args->more_named && !named->first;
        ak_j_add_node(values, ak_j_parse_expression(p));
        args->n++;
    }
    if (!fine)
        ak_j_parse_fail(p, at, "this argument cannot stand behind the ones before it");
}

static const struct ak_jnode_args *parse_arguments(struct ak_jparser *p)
{
    struct ak_jnode_args *args = ak_j_alloc(p->j, 1, sizeof *args);
    struct ak_jnodes values = { 0 }, named = { 0 };
    ak_j_expect(p, AK_JT_LPAREN);
    for (bool first = true; !ak_j_is_token(p, AK_JT_RPAREN); first = false) {
        if (!first)
            ak_j_expect(p, AK_JT_COMMA);
        if (ak_j_is_token(p, AK_JT_RPAREN) && !first)
            break;
        parse_argument(p, args, &values, &named);
    }
    ak_j_expect(p, AK_JT_RPAREN);
    args->values = values.first;
    args->named = named.first;
    return args;
}

static struct ak_jnode *parse_call(struct ak_jparser *p, struct ak_jnode *callee)
{
    struct ak_jnode *node = binary(p, AK_JN_CALL, p->now, callee, NULL);
    node->args = parse_arguments(p);
    return node;
}

static struct ak_jnode *parse_postfix(struct ak_jparser *p, struct ak_jnode *node)
{
    for (;;) {
        if (ak_j_is_token(p, AK_JT_DOT))
            node = parse_dot(p, node);
        else if (ak_j_is_token(p, AK_JT_LBRACKET))
            node = parse_item(p, node);
        else if (ak_j_is_token(p, AK_JT_LPAREN))
            node = parse_call(p, node);
        else
            return node;
    }
}

/* ---- Filters and tests -------------------------------------------------- */
/* Parses "a.b.c" as one name. */
static struct ak_jval parse_dotted(struct ak_jparser *p)
{
    static const struct ak_jstr dot = { .bytes = ".", .n = 1, .n_chars = 1 };
    struct ak_jval name = ak_j_expect(p, AK_JT_NAME)->value;
    while (ak_j_skip(p, AK_JT_DOT)) {
        name = ak_j_concat(p->j, name.as.string, &dot);
        name = ak_j_concat(p->j, name.as.string, ak_j_expect(p, AK_JT_NAME)->value.as.string);
    }
    return ak_j_intern(p, name);
}

static const struct ak_jnode_args no_args;

struct ak_jnode *ak_j_parse_filters(struct ak_jparser *p, struct ak_jnode *operand)
{
    do {
        struct ak_jnode *node = binary(p, AK_JN_FILTER, p->now, operand, NULL);
        node->name = parse_dotted(p);
        node->builtin = ak_j_find_filter(node->name.as.string);
        node->args = ak_j_is_token(p, AK_JT_LPAREN) ? parse_arguments(p) : &no_args;
        operand = node;
    } while (ak_j_skip(p, AK_JT_PIPE));
    return operand;
}

/* Whether an argument of a test without parentheses begins here. */
static bool is_test_argument(const struct ak_jparser *p)
{
    switch (p->now->kind) {
    case AK_JT_NAME:
        return !ak_j_is_name(p, "else") && !ak_j_is_name(p, "or") && !ak_j_is_name(p, "and");
    case AK_JT_STRING:
    case AK_JT_INTEGER:
    case AK_JT_FLOAT:
    case AK_JT_LBRACKET:
    case AK_JT_LBRACE: return true;
    default: return false;
    }
}

static const struct ak_jnode_args *parse_test_argument(struct ak_jparser *p)
{
    if (ak_j_is_name(p, "is"))
        ak_j_parse_fail(p, p->now, "tests cannot be chained with is");
    struct ak_jnode_args *args = ak_j_alloc(p->j, 1, sizeof *args);
    args->values = parse_postfix(p, ak_j_parse_primary(p));
    args->n = 1;
    return args;
}

static struct ak_jnode *parse_test(struct ak_jparser *p, struct ak_jnode *operand)
{
    struct ak_jnode *node = binary(p, AK_JN_TEST, p->now++, operand, NULL);
    bool negated = ak_j_skip_name(p, "not");
    node->name = parse_dotted(p);
    node->builtin = ak_j_find_test(node->name.as.string);
    node->args = ak_j_is_token(p, AK_JT_LPAREN) ? parse_arguments(p) :
                 is_test_argument(p)            ? parse_test_argument(p) :
                                                  &no_args;
    if (!negated)
        return node;
    struct ak_jnode *negation = ak_j_node(p, AK_JN_NOT, p->now);
    negation->line = node->line, negation->column = node->column;
    negation->a = node;
    return negation;
}

static struct ak_jnode *parse_filter_expression(struct ak_jparser *p, struct ak_jnode *node)
{
    for (;;) {
        if (ak_j_skip(p, AK_JT_PIPE))
            node = ak_j_parse_filters(p, node);
        else if (ak_j_is_name(p, "is"))
            node = parse_test(p, node);
        else if (ak_j_is_token(p, AK_JT_LPAREN))
            node = parse_call(p, node);
        else
            return node;
    }
}

/* ---- Operators, tightest first ------------------------------------------ */
static struct ak_jnode *parse_unary(struct ak_jparser *p, bool with_filter)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnode *node;
    if (ak_j_is_token(p, AK_JT_SUB) || ak_j_is_token(p, AK_JT_ADD)) {
        p->now++;
        ak_j_parse_enter(p);
        node = binary(p, at->kind == AK_JT_SUB ? AK_JN_NEGATIVE : AK_JN_POSITIVE, at,
                      parse_unary(p, false), NULL);
        ak_j_parse_leave(p);
    } else {
        node = ak_j_parse_primary(p);
    }
    node = parse_postfix(p, node);
    return with_filter ? parse_filter_expression(p, node) : node;
}

static struct ak_jnode *arithmetic(struct ak_jparser *p, const struct ak_jtoken *at,
                                   struct ak_jnode *a, struct ak_jnode *b)
{
    struct ak_jnode *node = binary(p, AK_JN_BINARY, at, a, b);
    node->op = ak_j_token_name(at->kind);
    return node;
}

static struct ak_jnode *parse_power(struct ak_jparser *p)
{
    struct ak_jnode *left = parse_unary(p, true);
    while (ak_j_is_token(p, AK_JT_POW)) {
        const struct ak_jtoken *at = p->now++;
        left = arithmetic(p, at, left, parse_unary(p, true));
    }
    return left;
}

static struct ak_jnode *parse_product(struct ak_jparser *p)
{
    struct ak_jnode *left = parse_power(p);
    while (ak_j_is_token(p, AK_JT_MUL) || ak_j_is_token(p, AK_JT_DIV) ||
           ak_j_is_token(p, AK_JT_FLOORDIV) || ak_j_is_token(p, AK_JT_MOD)) {
        const struct ak_jtoken *at = p->now++;
        left = arithmetic(p, at, left, parse_power(p));
    }
    return left;
}

static struct ak_jnode *parse_concat(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnodes items = { 0 };
    do
        ak_j_add_node(&items, parse_product(p));
    while (ak_j_skip(p, AK_JT_TILDE));
    if (!items.first->next)
        return items.first;
    return binary(p, AK_JN_CONCAT, at, items.first, NULL);
}

static struct ak_jnode *parse_sum(struct ak_jparser *p)
{
    struct ak_jnode *left = parse_concat(p);
    while (ak_j_is_token(p, AK_JT_ADD) || ak_j_is_token(p, AK_JT_SUB)) {
        const struct ak_jtoken *at = p->now++;
        left = arithmetic(p, at, left, parse_concat(p));
    }
    return left;
}

/* Skips a comparison operator and returns it; NULL: none. */
static const char *skip_comparison(struct ak_jparser *p)
{
    if (p->now->kind >= AK_JT_EQ && p->now->kind <= AK_JT_LE)
        return ak_j_token_name((p->now++)->kind);
    if (ak_j_skip_name(p, "in"))
        return "in";
    if (!ak_j_is_name(p, "not") || p->now[1].kind != AK_JT_NAME ||
        !ak_j_string_is(p->now[1].value, "in"))
        return NULL;
    p->now += 2;
    return "not in";
}

static struct ak_jnode *parse_compare(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnode *first = parse_sum(p);
    struct ak_jnodes others = { 0 };
    const struct ak_jtoken *op_at = p->now;
    for (const char *op; (op = skip_comparison(p)); op_at = p->now) {
        struct ak_jnode *other = ak_j_node(p, AK_JN_COMPARAND, op_at);
        other->op = op;
        other->a = parse_sum(p);
        ak_j_add_node(&others, other);
    }
    return others.first ? binary(p, AK_JN_COMPARE, at, first, others.first) : first;
}

static struct ak_jnode *parse_not(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now;
    if (!ak_j_skip_name(p, "not"))
        return parse_compare(p);
    ak_j_parse_enter(p);
    struct ak_jnode *node = binary(p, AK_JN_NOT, at, parse_not(p), NULL);
    ak_j_parse_leave(p);
    return node;
}

static struct ak_jnode *parse_and(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnode *left = parse_not(p);
    while (ak_j_skip_name(p, "and"))
        left = binary(p, AK_JN_AND, at, left, parse_not(p));
    return left;
}

static struct ak_jnode *parse_or(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now;
    struct ak_jnode *left = parse_and(p);
    while (ak_j_skip_name(p, "or"))
        left = binary(p, AK_JN_OR, at, left, parse_and(p));
    return left;
}

struct ak_jnode *ak_j_parse_expression(struct ak_jparser *p)
{
    const struct ak_jtoken *at = p->now;
    ak_j_parse_enter(p);
    struct ak_jnode *node = parse_or(p);
    while (ak_j_skip_name(p, "if")) {
        struct ak_jnode *test = parse_or(p);
        node = binary(p, AK_JN_CONDITION, at, test, node);
        if (ak_j_skip_name(p, "else"))
            node->c = ak_j_parse_expression(p);
    }
    ak_j_parse_leave(p);
    return node;
}

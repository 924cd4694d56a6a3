/* Tests: what can follow "is". */
#include "text/template/jinja/builtins.h"
#include "text/template/jinja/exec.h"

typedef const struct ak_jval *args_of;

static struct ak_jval test_defined(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind != AK_J_UNDEFINED);
}

static struct ak_jval test_undefined(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_UNDEFINED);
}

static struct ak_jval test_none(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_NONE);
}

static struct ak_jval test_boolean(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_BOOL);
}

static struct ak_jval test_true(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_BOOL && a[0].as.boolean);
}

static struct ak_jval test_false(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_BOOL && !a[0].as.boolean);
}

static struct ak_jval test_integer(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_INT || a[0].kind == AK_J_BIG_INT);
}

static struct ak_jval test_float(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_FLOAT);
}

static struct ak_jval test_number(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind >= AK_J_BOOL && a[0].kind <= AK_J_FLOAT);
}

static struct ak_jval test_string(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_STRING);
}

static struct ak_jval test_mapping(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_DICT);
}

/* Has a length and subscripts; this includes dicts and undefined. */
static struct ak_jval test_sequence(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    bool view = a[0].kind == AK_J_LIST && a[0].as.list->form > AK_J_RANGE;
    return ak_j_bool(ak_j_has_length(a[0]) && !view && a[0].kind != AK_J_LOOP);
}

static struct ak_jval test_iterable(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(ak_j_is_iterable(a[0]) || a[0].kind == AK_J_LOOP);
}

static struct ak_jval test_callable(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_CALLABLE || a[0].kind == AK_J_LOOP ||
                     a[0].kind == AK_J_JOINER || a[0].kind == AK_J_UNDEFINED);
}

static struct ak_jval test_escaped(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(ak_j_is_safe(a[0]));
}

static struct ak_jval test_sameas(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    bool plain = a[0].kind <= AK_J_STRING;
    return ak_j_bool(a[0].kind == a[1].kind &&
                     (plain ? ak_j_is_equal(j, a[0], a[1]) : a[0].as.string == a[1].as.string));
}

static struct ak_jval test_in(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_contains(j, a[1], a[0]));
}

static struct ak_jval test_filter(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_STRING && ak_j_find_filter(a[0].as.string));
}

static struct ak_jval test_test(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    return ak_j_bool(a[0].kind == AK_J_STRING && ak_j_find_test(a[0].as.string));
}

/* ---- Cases -------------------------------------------------------------- */
static struct ak_jval test_upper(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_is_upper(j, ak_j_str(j, a[0])));
}

static struct ak_jval test_lower(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_is_lower(j, ak_j_str(j, a[0])));
}

/* ---- Numbers ------------------------------------------------------------ */
static struct ak_jval divides(struct ak_jenv *j, struct ak_jval value, struct ak_jval by,
                              int64_t rest)
{
    return ak_j_bool(ak_j_is_equal(j, ak_j_operate(j, "%", value, by), ak_j_int(rest)));
}

static struct ak_jval test_even(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return divides(j, a[0], ak_j_int(2), 0);
}

static struct ak_jval test_odd(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return divides(j, a[0], ak_j_int(2), 1);
}

static struct ak_jval test_divisibleby(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return divides(j, a[0], a[1], 0);
}

static struct ak_jval test_eq(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_compare(j, "==", a[0], a[1]));
}

static struct ak_jval test_ne(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_compare(j, "!=", a[0], a[1]));
}

static struct ak_jval test_gt(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_compare(j, ">", a[0], a[1]));
}

static struct ak_jval test_ge(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_compare(j, ">=", a[0], a[1]));
}

static struct ak_jval test_lt(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_compare(j, "<", a[0], a[1]));
}

static struct ak_jval test_le(struct ak_jenv *j, args_of a, const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_compare(j, "<=", a[0], a[1]));
}

static const struct ak_jbuiltin tests[] = {
    { "defined", test_defined, 0, { NULL }, false, false },
    { "undefined", test_undefined, 0, { NULL }, false, false },
    { "none", test_none, 0, { NULL }, false, false },
    { "string", test_string, 0, { NULL }, false, false },
    { "mapping", test_mapping, 0, { NULL }, false, false },
    { "sequence", test_sequence, 0, { NULL }, false, false },
    { "iterable", test_iterable, 0, { NULL }, false, false },
    { "callable", test_callable, 0, { NULL }, false, false },
    { "boolean", test_boolean, 0, { NULL }, false, false },
    { "true", test_true, 0, { NULL }, false, false },
    { "false", test_false, 0, { NULL }, false, false },
    { "integer", test_integer, 0, { NULL }, false, false },
    { "float", test_float, 0, { NULL }, false, false },
    { "number", test_number, 0, { NULL }, false, false },
    { "escaped", test_escaped, 0, { NULL }, false, false },
    { "sameas", test_sameas, 1, { "other" }, false, false },
    { "in", test_in, 1, { "seq" }, false, false },
    { "filter", test_filter, 0, { NULL }, false, false },
    { "test", test_test, 0, { NULL }, false, false },
    { "upper", test_upper, 0, { NULL }, false, false },
    { "lower", test_lower, 0, { NULL }, false, false },
    { "even", test_even, 0, { NULL }, false, false },
    { "odd", test_odd, 0, { NULL }, false, false },
    { "divisibleby", test_divisibleby, 1, { "num" }, false, false },
    { "eq", test_eq, 1, { "b" }, false, false },
    { "equalto", test_eq, 1, { "b" }, false, false },
    { "==", test_eq, 1, { "b" }, false, false },
    { "ne", test_ne, 1, { "b" }, false, false },
    { "!=", test_ne, 1, { "b" }, false, false },
    { "gt", test_gt, 1, { "b" }, false, false },
    { "greaterthan", test_gt, 1, { "b" }, false, false },
    { ">", test_gt, 1, { "b" }, false, false },
    { "ge", test_ge, 1, { "b" }, false, false },
    { ">=", test_ge, 1, { "b" }, false, false },
    { "lt", test_lt, 1, { "b" }, false, false },
    { "lessthan", test_lt, 1, { "b" }, false, false },
    { "<", test_lt, 1, { "b" }, false, false },
    { "le", test_le, 1, { "b" }, false, false },
    { "<=", test_le, 1, { "b" }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

const struct ak_jbuiltin *ak_j_find_test(const struct ak_jstr *name)
{
    return ak_j_find_builtin(tests, name);
}

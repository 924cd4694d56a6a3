/* Arithmetic: + - * / // % ** on numbers, strings and lists, as in Python. */
#include <math.h>
#include <string.h>

#include "text/template/jinja/builtins.h"
#include "text/template/jinja/exec.h"

static bool is_integer(struct ak_jval v)
{
    return v.kind == AK_J_INT || v.kind == AK_J_BOOL;
}

static bool is_number(struct ak_jval v)
{
    return is_integer(v) || v.kind == AK_J_FLOAT;
}

static int64_t integer(struct ak_jval v)
{
    return v.kind == AK_J_BOOL ? v.as.boolean : v.as.integer;
}

static double number(struct ak_jval v)
{
    return v.kind == AK_J_FLOAT ? v.as.number : (double)integer(v);
}

static _Noreturn void fail_overflow(struct ak_jenv *j)
{
    ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "an integer goes beyond 64 bits, the limit");
}

static _Noreturn void fail_operands(struct ak_jenv *j, const char *op, struct ak_jval a,
                                    struct ak_jval b)
{
    if (a.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, a);
    if (b.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, b);
    if ((is_number(a) || a.kind == AK_J_BIG_INT) && (is_number(b) || b.kind == AK_J_BIG_INT))
        fail_overflow(j); /* one of them is a BIG_INT */
    if (op[0] == '+' && a.kind == AK_J_STRING)
        ak_j_fail(j, "can only concatenate str (not \"%s\") to str", ak_j_type_name(b));
    ak_j_fail(j, "unsupported operand type(s) for %s: '%s' and '%s'", op, ak_j_type_name(a),
              ak_j_type_name(b));
}

/* ---- Integers ----------------------------------------------------------- */
/* Division rounds towards minus infinity, as in Python. */
static struct ak_jval divide_integers(struct ak_jenv *j, const char *op, int64_t a, int64_t b)
{
    if (b == 0)
        ak_j_fail(j,
                  op[0] == '%' ? "integer modulo by zero" : "integer division or modulo by zero");
    if (b == -1) {
        if (op[0] == '%')
            return ak_j_int(0);
        if (a == INT64_MIN)
            fail_overflow(j);
        return ak_j_int(-a);
    }
    int64_t quotient = a / b, rest = a % b;
    bool down = rest != 0 && (rest < 0) != (b < 0);
    return ak_j_int(op[0] == '%' ? rest + (down ? b : 0) : quotient - down);
}

static struct ak_jval power_integers(struct ak_jenv *j, int64_t a, int64_t b)
{
    int64_t result = 1;
    if (b < 0) {
        if (a == 0)
            ak_j_fail(j, "0.0 cannot be raised to a negative power");
        return ak_j_float(pow((double)a, (double)b));
    }
    for (; b > 0; b >>= 1) {
        if ((b & 1) && __builtin_mul_overflow(result, a, &result))
            fail_overflow(j);
        if (b > 1 && __builtin_mul_overflow(a, a, &a))
            fail_overflow(j);
    }
    return ak_j_int(result);
}

static struct ak_jval operate_integers(struct ak_jenv *j, const char *op, int64_t a, int64_t b)
{
    int64_t result;
    bool overflow = false;
    if (strcmp(op, "+") == 0)
        overflow = __builtin_add_overflow(a, b, &result);
    else if (strcmp(op, "-") == 0)
        overflow = __builtin_sub_overflow(a, b, &result);
    else if (strcmp(op, "*") == 0)
        overflow = __builtin_mul_overflow(a, b, &result);
    else if (strcmp(op, "**") == 0)
        return power_integers(j, a, b);
    else
        return divide_integers(j, op, a, b);
    if (overflow)
        fail_overflow(j);
    return ak_j_int(result);
}

/* ---- Floats ------------------------------------------------------------- */
static double modulo(double a, double b)
{
    double rest = fmod(a, b);
    if (rest != 0)
        return (rest < 0) != (b < 0) ? rest + b : rest;
    return copysign(0, b);
}

static double floor_divide(double a, double b)
{
    double rest = modulo(a, b), quotient = (a - rest) / b;
    if (quotient == 0)
        return copysign(0, a / b);
    double down = floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

static double power(struct ak_jenv *j, double a, double b)
{
    if (a == 0 && b < 0)
        ak_j_fail(j, "0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && floor(b) != b)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                     "a power is a complex number, which is not supported");
    double result = pow(a, b);
    if (isinf(result) && isfinite(a) && isfinite(b))
        ak_j_fail(j, "the numerical result of ** is out of range");
    return result;
}

static struct ak_jval operate_floats(struct ak_jenv *j, const char *op, double a, double b)
{
    if (strcmp(op, "+") == 0)
        return ak_j_float(a + b);
    if (strcmp(op, "-") == 0)
        return ak_j_float(a - b);
    if (strcmp(op, "*") == 0)
        return ak_j_float(a * b);
    if (strcmp(op, "**") == 0)
        return ak_j_float(power(j, a, b));
    if (b == 0)
        ak_j_fail(j, strcmp(op, "/") == 0 ? "division by zero" :
                     op[0] == '%'         ? "float modulo" :
                                            "float floor division by zero");
    if (strcmp(op, "/") == 0)
        return ak_j_float(a / b);
    return ak_j_float(op[0] == '%' ? modulo(a, b) : floor_divide(a, b));
}

/* ---- Sequences ---------------------------------------------------------- */
static struct ak_jval add_lists(struct ak_jenv *j, const struct ak_jlist *a,
                                const struct ak_jlist *b)
{
    struct ak_jlist *sum = ak_j_list(j, a->form, a->n + b->n);
    ak_j_spend(j, a->n + b->n);
    for (size_t i = 0; i < a->n + b->n; i++)
        ak_j_append(j, sum, i < a->n ? a->items[i] : b->items[i - a->n]);
    return ak_j_from_list(sum);
}

struct ak_jval ak_j_repeat(struct ak_jenv *j, const struct ak_jstr *s, int64_t times)
{
    struct ak_jout out = { 0 };
    if (times > 0)
        ak_j_put_repeated(j, &out, s, (uint64_t)times);
    return ak_j_finish(j, &out);
}

static struct ak_jval repeat_list(struct ak_jenv *j, const struct ak_jlist *list, int64_t times)
{
    struct ak_jlist *all = ak_j_list(j, list->form, 0);
    for (int64_t i = 0; list->n > 0 && i < times; i++) {
        ak_j_spend(j, list->n);
        for (size_t k = 0; k < list->n; k++)
            ak_j_append(j, all, list->items[k]);
    }
    return ak_j_from_list(all);
}

/* If one operand is safe for HTML, the other is escaped. */
static struct ak_jval add_strings(struct ak_jenv *j, struct ak_jval a, struct ak_jval b)
{
    if (!ak_j_is_safe(a) && !ak_j_is_safe(b))
        return ak_j_concat(j, a.as.string, b.as.string);
    return ak_j_mark_safe(j,
                          ak_j_concat(j, ak_j_escape(j, a).as.string, ak_j_escape(j, b).as.string));
}

static bool is_sequence(struct ak_jval v)
{
    return v.kind == AK_J_STRING || (v.kind == AK_J_LIST && v.as.list->form <= AK_J_TUPLE);
}

static struct ak_jval repeat(struct ak_jenv *j, struct ak_jval sequence, int64_t times)
{
    if (sequence.kind != AK_J_STRING)
        return repeat_list(j, sequence.as.list, times);
    struct ak_jval text = ak_j_repeat(j, sequence.as.string, times);
    return ak_j_is_safe(sequence) ? ak_j_mark_safe(j, text) : text;
}

struct ak_jval ak_j_operate(struct ak_jenv *j, const char *op, struct ak_jval a, struct ak_jval b)
{
    if (is_integer(a) && is_integer(b) && strcmp(op, "/") != 0)
        return operate_integers(j, op, integer(a), integer(b));
    if (is_number(a) && is_number(b))
        return operate_floats(j, op, number(a), number(b));
    if (a.kind == AK_J_STRING && strcmp(op, "%") == 0)
        return ak_j_format_percent(j, a.as.string, b);
    if (strcmp(op, "*") == 0 && is_sequence(a) && is_integer(b))
        return repeat(j, a, integer(b));
    if (strcmp(op, "*") == 0 && is_integer(a) && is_sequence(b))
        return repeat(j, b, integer(a));
    if (strcmp(op, "+") == 0 && a.kind == AK_J_STRING && b.kind == AK_J_STRING)
        return add_strings(j, a, b);
    if (strcmp(op, "+") == 0 && is_sequence(a) && is_sequence(b) && a.kind == b.kind &&
        a.as.list->form == b.as.list->form)
        return add_lists(j, a.as.list, b.as.list);
    fail_operands(j, op, a, b);
}

struct ak_jval ak_j_negate(struct ak_jenv *j, struct ak_jval v)
{
    if (v.kind == AK_J_FLOAT)
        return ak_j_float(-v.as.number);
    if (v.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, v);
    if (v.kind == AK_J_BIG_INT)
        fail_overflow(j);
    if (!is_integer(v))
        ak_j_fail(j, "bad operand type for unary -: '%s'", ak_j_type_name(v));
    if (integer(v) == INT64_MIN)
        fail_overflow(j);
    return ak_j_int(-integer(v));
}

struct ak_jval ak_j_apply_plus(struct ak_jenv *j, struct ak_jval v)
{
    if (v.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, v);
    if (v.kind == AK_J_BIG_INT)
        return v;
    if (!is_number(v))
        ak_j_fail(j, "bad operand type for unary +: '%s'", ak_j_type_name(v));
    return is_integer(v) ? ak_j_int(integer(v)) : v;
}

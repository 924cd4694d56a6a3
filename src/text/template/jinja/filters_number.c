/* Filters that make numbers, filters for values of any type, and the lookup of filters by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/wide.h"
#include "text/template/jinja/builtins.h"

static bool is_integer(struct ak_jval v)
{
    return v.kind == AK_J_INT || v.kind == AK_J_BOOL;
}

static struct ak_jval filter_abs(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    (void)rest;
    if (a[0].kind == AK_J_FLOAT)
        return ak_j_float(fabs(a[0].as.number));
    int64_t value = ak_j_need_int(j, a[0], "abs");
    return value < 0 ? ak_j_negate(j, ak_j_int(value)) : ak_j_int(value);
}

/* float(v); false: not a number. */
static bool to_float(struct ak_jenv *j, struct ak_jval v, double *out)
{
    if (v.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, v);
    if (v.kind == AK_J_STRING)
        return ak_j_parse_float(v.as.string->bytes, v.as.string->n, out);
    *out = v.kind == AK_J_FLOAT   ? v.as.number :
           v.kind == AK_J_BIG_INT ? ak_wide_double(v.as.string->bytes) :
           is_integer(v)          ? (double)ak_j_need_int(j, v, "float") :
                                    0;
    return v.kind == AK_J_FLOAT || v.kind == AK_J_BIG_INT || is_integer(v);
}

static struct ak_jval filter_float(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    double value;
    (void)rest;
    if (to_float(j, a[0], &value))
        return ak_j_float(value);
    return ak_j_is_given(a[1]) ? a[1] : ak_j_float(0);
}

static struct ak_jval truncate_float(struct ak_jenv *j, double x)
{
    if (!(fabs(x) < 0x1p63))
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "an integer goes beyond 64 bits, the limit");
    return ak_j_int((int64_t)x);
}

static struct ak_jval filter_int(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    int64_t value, base = ak_j_is_given(a[2]) ? ak_j_need_int(j, a[2], "base") : 10;
    double number;
    (void)rest;
    if (a[0].kind == AK_J_BIG_INT)
        return a[0];
    if (is_integer(a[0]))
        return ak_j_int(ak_j_need_int(j, a[0], "int"));
    bool base_fine = base == 0 || (base >= 2 && base <= 36);
    if (a[0].kind == AK_J_STRING && base_fine &&
        ak_j_parse_int(a[0].as.string->bytes, a[0].as.string->n, (unsigned)base, &value))
        return ak_j_int(value);
    if (!to_float(j, a[0], &number) || !isfinite(number))
        return ak_j_is_given(a[1]) ? a[1] : ak_j_int(0);
    return truncate_float(j, number);
}

/* Rounds the exact decimal value of the float, as Python does. */
static double round_at(double x, int64_t digits)
{
    char text[512];
    if (!isfinite(x) || digits > 300)
        return x;
    if (digits >= 0) {
        double value = 0;
        int n = snprintf(text, sizeof text, "%.*f", (int)(digits > 30 ? 30 : digits), x);
        if (n < 0 || (size_t)n >= sizeof text || sscanf(text, "%lf", &value) != 1)
            return x;
        return value;
    }
    double unit = digits < -308 ? INFINITY : pow(10, (double)-digits);
    return isinf(unit) ? copysign(0, x) : rint(x / unit) * unit;
}

static struct ak_jval filter_round(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    int64_t digits = ak_j_is_given(a[1]) ? ak_j_need_int(j, a[1], "precision") : 0;
    double value;
    (void)rest;
    if (a[0].kind == AK_J_STRING || !to_float(j, a[0], &value))
        ak_j_fail(j, "type %s doesn't define __round__ method", ak_j_type_name(a[0]));
    bool common = !ak_j_is_given(a[2]) || ak_j_string_is(a[2], "common");
    if (!common && !ak_j_string_is(a[2], "ceil") && !ak_j_string_is(a[2], "floor"))
        ak_j_fail(j, "method must be common, ceil or floor");
    if (common && a[0].kind == AK_J_BIG_INT && digits >= 0)
        return a[0];
    if (common && is_integer(a[0]) && digits >= 0)
        return ak_j_int(ak_j_need_int(j, a[0], "round"));
    if (common)
        return is_integer(a[0]) ? truncate_float(j, round_at(value, digits)) :
                                  ak_j_float(round_at(value, digits));
    double unit = pow(10, (double)digits);
    return ak_j_float((ak_j_string_is(a[2], "ceil") ? ceil(value * unit) : floor(value * unit)) /
                      unit);
}

/* "1.5 kB", or "1.5 KiB" if `binary`. */
static struct ak_jval filter_filesizeformat(struct ak_jenv *j, const struct ak_jval *a,
                                            const struct ak_jargs *rest)
{
    static const double powers[] = { 1e6, 1e9, 1e12, 1e15, 1e18, 1e21, 1e24, 1e27 };
    enum { N_PREFIXES = sizeof powers / sizeof *powers };
    struct ak_jout out = { 0 };
    bool binary = ak_j_is_true(a[1]);
    double bytes, base = binary ? 1024 : 1000, unit = base;
    int i = -1;
    (void)rest;
    if (!to_float(j, a[0], &bytes))
        ak_j_fail(j, "filesizeformat: float() needs a number, not '%s'", ak_j_type_name(a[0]));
    if (bytes == 1.0)
        return ak_j_text(j, "1 Byte");
    if (bytes < base) {
        ak_j_put_int(j, &out, truncate_float(j, bytes).as.integer);
        ak_j_put_text(j, &out, " Bytes");
        return ak_j_finish(j, &out);
    }
    do { /* Python compares with integers, and the double 1e24 is below 10^24 */
        i++;
        unit = binary ? unit * base : powers[i];
    } while (i + 1 < N_PREFIXES && !(bytes < unit) && !(unit == 1e24 && bytes == unit));
    ak_j_put_printf(j, &out, 'f', 1, false, base * bytes / unit);
    const char suffix[] = { ' ', (binary ? "KMGTPEZY" : "kMGTPEZY")[i] };
    ak_j_put_bytes(j, &out, suffix, sizeof suffix);
    ak_j_put_text(j, &out, binary ? "iB" : "B");
    return ak_j_finish(j, &out);
}

/* ---- Any value ---------------------------------------------------------- */
static struct ak_jval filter_default(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    (void)rest;
    if (a[0].kind == AK_J_UNDEFINED || (ak_j_is_true(a[2]) && !ak_j_is_true(a[0])))
        return ak_j_is_given(a[1]) ? a[1] : ak_j_text(j, "");
    return a[0];
}

static struct ak_jval filter_attr(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    (void)rest;
    ak_j_need_string(j, a[1], "an attribute's name");
    return ak_j_get_attribute_only(j, a[0], a[1]);
}

/* pprint of a value that fits on one line, which is its repr. */
static struct ak_jval filter_pprint(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    struct ak_jout out = { 0 };
    (void)rest;
    ak_j_put_repr(j, &out, a[0]);
    if (out.n > 79 &&
        (a[0].kind == AK_J_LIST || a[0].kind == AK_J_DICT || a[0].kind == AK_J_STRING))
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                     "pprint of what does not fit into a line is not supported");
    return ak_j_finish(j, &out);
}

static const struct ak_jbuiltin value_filters[] = {
    { "default", filter_default, 0, { "default_value", "boolean" }, false, false },
    { "d", filter_default, 0, { "default_value", "boolean" }, false, false },
    { "attr", filter_attr, 1, { "name" }, false, false },
    { "tojson",
      ak_j_to_json,
      0,
      { "ensure_ascii", "indent", "separators", "sort_keys" },
      false,
      false },
    { "pprint", filter_pprint, 0, { NULL }, false, false },
    { "abs", filter_abs, 0, { NULL }, false, false },
    { "int", filter_int, 0, { "default", "base" }, false, false },
    { "float", filter_float, 0, { "default" }, false, false },
    { "filesizeformat", filter_filesizeformat, 0, { "binary" }, false, false },
    { "round", filter_round, 0, { "precision", "method" }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

const struct ak_jbuiltin *ak_j_find_filter(const struct ak_jstr *name)
{
    const struct ak_jbuiltin *const tables[] = { ak_j_text_filters,  ak_j_layout_filters,
                                                 ak_j_list_filters,  ak_j_choice_filters,
                                                 ak_j_order_filters, ak_j_markup_filters,
                                                 value_filters };
    const struct ak_jbuiltin *found = NULL;
    for (size_t i = 0; !found && i < sizeof tables / sizeof *tables; i++)
        found = ak_j_find_builtin(tables[i], name);
    return found;
}

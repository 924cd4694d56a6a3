/* Globals: functions that every template sees. */
#include <locale.h>
#include <stdio.h>
#include <time.h>

#include "text/template/jinja/builtins.h"
#include "text/template/jinja/exec.h"

enum { RANGE_MAX = 100000 }; /* as in jinja2's sandbox */

static struct ak_jval function_range(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *args)
{
    (void)a;
    if (args->n == 0 || args->n > 3 || args->n_named > 0)
        ak_j_fail(j, "range expected 1 to 3 arguments, got %zu", args->n);
    int64_t start = args->n > 1 ? ak_j_need_int(j, args->values[0], "range") : 0;
    int64_t stop = ak_j_need_int(j, args->values[args->n > 1], "range"),
            step = args->n > 2 ? ak_j_need_int(j, args->values[2], "range") : 1;
    if (step == 0)
        ak_j_fail(j, "range() arg 3 must not be zero");
    uint64_t width = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    bool empty = step > 0 ? start >= stop : start <= stop;
    uint64_t n = empty ? 0 : (width - 1) / stride + 1;
    if (n > RANGE_MAX)
        ak_j_fail(j, "range too big: the sandbox blocks ranges larger than MAX_RANGE (%d)",
                  RANGE_MAX);
    struct ak_jlist *list = ak_j_list(j, AK_J_RANGE, (size_t)n);
    list->start = start, list->stop = stop, list->step = step;
    ak_j_spend(j, n);
    for (uint64_t i = 0; i < n; i++)
        ak_j_append(j, list, ak_j_int((int64_t)((uint64_t)start + i * (uint64_t)step)));
    return ak_j_from_list(list);
}

/* dict(mapping or pairs, name=value, …) */
static struct ak_jdict *make_dict(struct ak_jenv *j, const struct ak_jargs *args, const char *what)
{
    struct ak_jdict *dict = ak_j_dict(j);
    if (args->n > 1)
        ak_j_fail(j, "%s expected at most 1 argument, got %zu", what, args->n);
    struct ak_jval from = args->n > 0 ? args->values[0] : ak_j_from_dict(dict);
    const struct ak_jlist *pairs =
        from.kind == AK_J_DICT ? ak_j_view(j, from.as.dict, AK_J_ITEMS) : ak_j_iterate(j, from);
    for (size_t i = 0; i < pairs->n; i++) {
        const struct ak_jlist *pair = ak_j_iterate(j, pairs->items[i]);
        if (pair->n != 2)
            ak_j_fail(j, "%s update sequence element #%zu has length %zu; 2 is required", what, i,
                      pair->n);
        ak_j_put(j, dict, pair->items[0], pair->items[1]);
    }
    for (size_t i = 0; i < args->n_named; i++)
        ak_j_put(j, dict, args->named[i].key, args->named[i].value);
    return dict;
}

static struct ak_jval function_dict(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *args)
{
    (void)a;
    return ak_j_from_dict(make_dict(j, args, "dict"));
}

static struct ak_jval function_namespace(struct ak_jenv *j, const struct ak_jval *a,
                                         const struct ak_jargs *args)
{
    struct ak_jdict *dict = make_dict(j, args, "namespace");
    (void)a;
    for (size_t i = 0; i < dict->n; i++) {
        struct ak_jval name = dict->pairs[i].key;
        if (name.kind == AK_J_STRING && name.as.string->n > 0 && name.as.string->bytes[0] == '_')
            ak_j_fail(
                j, "a namespace cannot have the attribute %s: its name begins with an underscore",
                ak_j_show(j, name));
    }
    return (struct ak_jval){ .kind = AK_J_NAMESPACE, .as.dict = dict };
}

static struct ak_jval function_cycler(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *args)
{
    struct ak_jcycler *cycler = ak_j_alloc(j, 1, sizeof *cycler);
    (void)a;
    if (args->n == 0)
        ak_j_fail(j, "at least one item has to be provided");
    cycler->items = ak_j_list(j, AK_J_TUPLE, args->n);
    for (size_t i = 0; i < args->n; i++)
        ak_j_append(j, cycler->items, args->values[i]);
    return (struct ak_jval){ .kind = AK_J_CYCLER, .as.cycler = cycler };
}

static struct ak_jval function_joiner(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *args)
{
    struct ak_jjoiner *joiner = ak_j_alloc(j, 1, sizeof *joiner);
    (void)a;
    joiner->separator = args->n > 0       ? args->values[0] :
                        args->n_named > 0 ? args->named[0].value :
                                            ak_j_text(j, ", ");
    return (struct ak_jval){ .kind = AK_J_JOINER, .as.joiner = joiner };
}

static struct ak_jval function_raise(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *args)
{
    (void)a;
    if (args->n + args->n_named != 1)
        ak_j_fail(j, "raise_exception() takes 1 argument (%zu given)", args->n + args->n_named);
    const struct ak_jstr *message = ak_j_str(j, args->n ? args->values[0] : args->named[0].value);
    ak_j_fail(j, "%.*s", message->n > 800 ? 800 : (int)message->n,
              message->bytes ? message->bytes : "");
}

/* ---- Time --------------------------------------------------------------- */
/* strftime in the C locale, whatever the locale of the program. */
static size_t format_time(char *out, size_t capacity, const char *format, const struct tm *tm)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return 0;
    size_t n = strftime_l(out, capacity, format, tm, c);
    freelocale(c);
    return n;
}

/* Replaces what Python does without strftime: %f is microseconds; the zone of a naive time is
 * empty. */
static struct ak_jstr *expand_fraction(struct ak_jenv *j, const struct ak_jstr *format,
                                       long microseconds)
{
    struct ak_jout out = { 0 };
    for (size_t i = 0; i < format->n; i++) {
        char next = format->bytes[i] == '%' && i + 1 < format->n ? format->bytes[i + 1] : ' ',
             text[8];
        if (next == 'f') {
            snprintf(text, sizeof text, "%06ld", microseconds % 1000000);
            ak_j_put_text(j, &out, text);
        } else if (next != 'z' && next != 'Z') {
            ak_j_put_bytes(j, &out, &format->bytes[i], next == '%' ? 2 : 1);
            i += next == '%';
            continue;
        }
        i++;
    }
    ak_j_put_bytes(j, &out, "", 1);
    return ak_j_finish(j, &out).as.string;
}

static struct ak_jval function_strftime_now(struct ak_jenv *j, const struct ak_jval *a,
                                            const struct ak_jargs *args)
{
    enum { FORMAT_BYTES_MAX = 1024, TIME_BYTES_MAX = 65536 };
    struct timespec now = { .tv_sec = (time_t)j->now };
    struct tm tm;
    (void)a;
    if (args->n + args->n_named != 1)
        ak_j_fail(j, "strftime_now() takes 1 argument (%zu given)", args->n + args->n_named);
    const struct ak_jstr *format = ak_j_need_string(
        j, args->n ? args->values[0] : args->named[0].value, "the format of strftime_now");
    if (format->n > FORMAT_BYTES_MAX)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                     "a format of strftime_now is longer than %d bytes, the limit",
                     FORMAT_BYTES_MAX);
    if (j->now == 0)
        clock_gettime(CLOCK_REALTIME, &now);
    if (!localtime_r(&now.tv_sec, &tm))
        ak_j_fail(j, "the time is out of range");
    format = expand_fraction(j, format, now.tv_nsec / 1000);
    char *text = ak_j_alloc(j, TIME_BYTES_MAX, 1);
    return ak_j_string_at(j, text, format_time(text, TIME_BYTES_MAX, format->bytes, &tm));
}

static const struct ak_jbuiltin functions[] = {
    { "range", function_range, 0, { NULL }, true, false },
    { "dict", function_dict, 0, { NULL }, true, false },
    { "namespace", function_namespace, 0, { NULL }, true, false },
    { "cycler", function_cycler, 0, { NULL }, true, false },
    { "joiner", function_joiner, 0, { NULL }, true, false },
    { "raise_exception", function_raise, 0, { NULL }, true, false },
    { "strftime_now", function_strftime_now, 0, { NULL }, true, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

const struct ak_jbuiltin *ak_j_find_global(const struct ak_jstr *name)
{
    return ak_j_find_builtin(functions, name);
}

/* Formats of strings, as patterns. A string matches all patterns of its format. Where a format's
 * definition is no regular language, or depends on tables, the patterns allow a part of it:
 * docs/grammar.md says which.
 *
 * Sources: dates, times and durations RFC 3339, 5.6 and appendix A; e-mail RFC 5321, 4.1.2; hosts
 * RFC 1123, 2.1; IPv6 RFC 3986, 3.2.2; URIs RFC 3986, appendix A, and IRIs RFC 3987, 2.2; templates
 * RFC 6570, 2; pointers RFC 6901, 3. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/grammar/schema/compiler.h"

/* ---- Dates -------------------------------------------------------------- */
/* Of the Gregorian calendar from the year 1 on. Leap seconds are left out: they are not
 * predictable. */
#define MONTHS                                                                                     \
    "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2["  \
    "0-8]))"
#define YEAR "(000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d{3})"
#define LEAP_YEAR "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define DATE "(" YEAR "-" MONTHS "|" LEAP_YEAR "-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d+)?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define CLOCK "T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S)"
#define DURATION "P(\\d+W|(\\d+Y(\\d+M(\\d+D)?)?|\\d+M(\\d+D)?|\\d+D)(" CLOCK ")?|" CLOCK ")"

/* ---- Hosts -------------------------------------------------------------- */
/* Four labels of 62 characters stay below the limit of 253. */
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,60}[A-Za-z0-9])?"
#define HOST LABEL "(\\." LABEL "){0,3}"
#define SINGLE_HYPHENS                                                                             \
    "[A-Za-z0-9.]+(-[A-Za-z0-9.]+)*" /* two of them announce another encoding                      \
                                      */
#define ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define BYTE "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4 BYTE "(\\." BYTE "){3}"
#define GROUP "[0-9A-Fa-f]{1,4}"
#define LAST_GROUPS "(" GROUP ":" GROUP "|" IPV4 ")"
/* `::` after at most n more groups than one. */
#define SHORT(n) "((" GROUP ":){0," n "}" GROUP ")?::"
#define IPV6                                                                                       \
    "((" GROUP ":){6}" LAST_GROUPS "|::(" GROUP ":){5}" LAST_GROUPS "|(" GROUP ")?::(" GROUP       \
    ":){4}" LAST_GROUPS "|" SHORT("1") "(" GROUP ":){3}" LAST_GROUPS                               \
                                       "|" SHORT("2") "(" GROUP ":){2}" LAST_GROUPS "|" SHORT("3") \
                                           GROUP ":" LAST_GROUPS "|" SHORT("4") LAST_GROUPS        \
        "|" SHORT("5") GROUP "|" SHORT("6") ")"

/* ---- Resources ---------------------------------------------------------- */
/* `more`: characters beyond ASCII, which IRIs have and URIs do not. */
#define BEYOND_ASCII "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef"
#define PERCENT "%[0-9A-Fa-f]{2}"
#define CHARS(more) "A-Za-z0-9._~!$&'()*+,;=" more
#define SEGMENTS(more) "(/([:@" CHARS(more) "-]|" PERCENT ")*)*"
#define AUTHORITY(more)                                                                            \
    "//(([:" CHARS(more) "-]|" PERCENT ")*@)?([" CHARS(more) "-]|" PERCENT ")*(:\\d*)?"
#define ROOTED(more) "/(([:@" CHARS(more) "-]|" PERCENT ")+" SEGMENTS(more) ")?"
#define QUERY(more)                                                                                \
    "(\\?([:@/?" CHARS(more) "-]|" PERCENT ")*)?(#([:@/?" CHARS(more) "-]|" PERCENT ")*)?"
#define ABSOLUTE(more)                                                                             \
    "[A-Za-z][A-Za-z0-9+.-]*:(" AUTHORITY(more)                                                    \
        SEGMENTS(more) "|" ROOTED(more) "|([:@" CHARS(more) "-]|" PERCENT                          \
                                                            ")+" SEGMENTS(more) "|)" QUERY(more)
#define RELATIVE(more)                                                                             \
    "(" AUTHORITY(more)                                                                            \
        SEGMENTS(more) "|" ROOTED(more) "|([@" CHARS(more) "-]|" PERCENT                           \
                                                           ")+" SEGMENTS(more) "|)" QUERY(more)

/* ---- Templates and pointers --------------------------------------------- */
#define VARIABLE "(\\w|" PERCENT ")(\\.?(\\w|" PERCENT "))*(:[1-9]\\d{0,3}|\\*)?"
#define POINTER "(/([^/~]|~[01])*)*"

static const struct format {
    const char *name, *pattern, *also; /* `also`: NULL: nothing */
} formats[] = {
    { "date", "^" DATE "$", NULL },
    { "time", "^" TIME "$", NULL },
    { "date-time", "^" DATE "[Tt]" TIME "$", NULL },
    { "duration", "^" DURATION "$", NULL },
    { "email", "^" ATOM "(\\." ATOM ")*@" HOST "$", "^[^@]{1,64}@" SINGLE_HYPHENS "$" },
    { "idn-email", "^" ATOM "(\\." ATOM ")*@" HOST "$", "^[^@]{1,64}@" SINGLE_HYPHENS "$" },
    { "hostname", "^" HOST "$", "^" SINGLE_HYPHENS "$" },
    { "idn-hostname", "^" HOST "$", "^" SINGLE_HYPHENS "$" },
    { "ipv4", "^" IPV4 "$", NULL },
    { "ipv6", "^" IPV6 "$", NULL },
    { "uri", "^" ABSOLUTE("") "$", NULL },
    { "uri-reference", "^(" ABSOLUTE("") "|" RELATIVE("") ")$", NULL },
    { "iri", "^" ABSOLUTE(BEYOND_ASCII) "$", NULL },
    { "iri-reference", "^(" ABSOLUTE(BEYOND_ASCII) "|" RELATIVE(BEYOND_ASCII) ")$", NULL },
    { "uri-template",
      "^([!#$&(-;=?-Z\\[\\]_a-z~" BEYOND_ASCII "]|" PERCENT "|\\{[+#./;?&]?" VARIABLE "(," VARIABLE
      ")*\\})*$",
      NULL },
    { "uuid", "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
      NULL },
    { "json-pointer", "^" POINTER "$", NULL },
    { "relative-json-pointer", "^(0|[1-9]\\d*)(#|" POINTER ")$", NULL },
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static void refuse_format(struct ak_schema_compiler *c, const json_t *schema, const char *name)
{
    char why[AK_ERROR_MESSAGE_BYTES], shown[AK_SHOW_BYTES];
    int n = snprintf(why, sizeof why, "%s is none of ", ak_show(name, strlen(name), shown));
    for (size_t i = 0; i < N_FORMATS; i++)
        n += snprintf(why + n, sizeof why - (size_t)n, "%s%s", i ? ", " : "", formats[i].name);
    ak_schema_refuse(c, schema, "format", why);
}

const char *ak_schema_get_format_pattern(struct ak_schema_compiler *c, const json_t *schema,
                                         const char **also)
{
    const json_t *name = json_object_get(schema, "format");
    *also = NULL;
    if (!name)
        return NULL;
    if (!json_is_string(name)) {
        ak_schema_fail_invalid(c, schema, "format", "a string");
        return NULL;
    }
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].name, json_string_value(name)) == 0) {
            *also = formats[i].also;
            return formats[i].pattern;
        }
    refuse_format(c, schema, json_string_value(name));
    return NULL;
}

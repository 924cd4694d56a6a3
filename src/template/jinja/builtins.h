/* What templates may call, by name. NULL: there is none of that name. */
#ifndef AK_TEMPLATE_JINJA_BUILTINS_H
#define AK_TEMPLATE_JINJA_BUILTINS_H

#include "template/jinja/exec.h"
#include "template/jinja/string.h"
#include "template/jinja/value.h"

/* ---- Lookup ------------------------------------------------------------- */

const struct ak_jbuiltin *ak_j_find_filter(const struct ak_jstr *name);
const struct ak_jbuiltin *ak_j_find_test(const struct ak_jstr *name);
const struct ak_jbuiltin *
ak_j_find_global(const struct ak_jstr *name); /* range, dict, namespace … */
/* A method of the type that v has. `name` may be one that the sandbox refuses: *unsafe then
 * says so, and NULL is given. */
const struct ak_jbuiltin *ak_j_find_method(struct ak_jval v, const struct ak_jstr *name,
                                           bool *unsafe);

const struct ak_jbuiltin *ak_j_find_builtin(const struct ak_jbuiltin *table,
                                            const struct ak_jstr *name);

/* Tables end with a name of NULL. */
extern const struct ak_jbuiltin ak_j_string_methods[], ak_j_string_splits[], ak_j_string_queries[],
    ak_j_dict_methods[], ak_j_loop_methods[];
extern const struct ak_jbuiltin ak_j_text_filters[], ak_j_layout_filters[], ak_j_list_filters[],
    ak_j_choice_filters[], ak_j_order_filters[];

/* ---- Filters ------------------------------------------------------------ */

static inline struct ak_jval ak_j_from_str(struct ak_jstr *s)
{
    return (struct ak_jval){ .kind = AK_J_STRING, .as.string = s };
}
static inline bool ak_j_is_not_none(struct ak_jval v) /* given, and not None */
{
    return v.kind != AK_J_MISSING && v.kind != AK_J_NONE;
}

/* "a.0.b": looked up in an item, part by part. What is undefined becomes `otherwise`, where
 * that is given and not None. */
struct ak_jval ak_j_member_at(struct ak_jenv *j, struct ak_jval item, struct ak_jval path,
                              struct ak_jval otherwise);

/* Strings in lower case, unless `case_sensitive`. */
struct ak_jval ak_j_sort_key(struct ak_jenv *j, struct ak_jval v, struct ak_jval case_sensitive);

/* A list of which each element is given once. */
struct ak_jval ak_j_generator(struct ak_jlist *list);

/* json.dumps; the options as in transformers' tojson, MISSING where not given. */
struct ak_jval ak_j_to_json(struct ak_jenv *j, const struct ak_jval *a,
                            const struct ak_jargs *rest);

/* The object's attribute, and never its item: UNDEFINED where it has none. */
struct ak_jval ak_j_get_attribute_only(struct ak_jenv *j, struct ak_jval object,
                                       struct ak_jval name);

/* ---- Strings ------------------------------------------------------------ */

/* count < 0: all. */
struct ak_jval ak_j_replace(struct ak_jenv *j, const struct ak_jstr *s, const struct ak_jstr *from,
                            const struct ak_jstr *to, int64_t count);
/* chars NULL: blanks. */
struct ak_jval ak_j_strip(struct ak_jenv *j, const struct ak_jstr *s, const struct ak_jstr *chars,
                          bool left, bool right);
struct ak_jlist *ak_j_split_lines(struct ak_jenv *j, const struct ak_jstr *s, bool keep_ends);
struct ak_jval ak_j_center(struct ak_jenv *j, const struct ak_jstr *s, int64_t width,
                           uint32_t fill);
/* Items as text with `separator` between them; strict: all must be strings. */
struct ak_jval ak_j_join(struct ak_jenv *j, const struct ak_jstr *separator,
                         const struct ak_jlist *items, bool strict);
/* The last part of `s` behind a blank, cut off once. */
struct ak_jval ak_j_cut_last_word(struct ak_jenv *j, const struct ak_jstr *s);

/* ---- Case --------------------------------------------------------------- */

struct ak_jval ak_j_upper(struct ak_jenv *j, const struct ak_jstr *s);
struct ak_jval ak_j_lower(struct ak_jenv *j, const struct ak_jstr *s);
struct ak_jval ak_j_capitalize(struct ak_jenv *j, const struct ak_jstr *s);

void ak_j_put_upper(struct ak_jenv *j, struct ak_jout *out, uint32_t c);
void ak_j_put_title(struct ak_jenv *j, struct ak_jout *out, uint32_t c);
/* The character at `at` of s: a final sigma knows its neighbors. */
void ak_j_put_lower(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s, size_t at);

/* str.isupper, str.islower: all cased characters are of that case, and there is one. */
bool ak_j_is_upper(struct ak_jenv *j, const struct ak_jstr *s);
bool ak_j_is_lower(struct ak_jenv *j, const struct ak_jstr *s);

bool ak_j_is_upper_char(uint32_t c); /* titlecase letters are neither */
bool ak_j_is_lower_char(uint32_t c);
bool ak_j_is_cased(uint32_t c);
bool ak_j_is_letter(uint32_t c);

/* ---- Format specifications ---------------------------------------------- */

enum { AK_J_WIDTH_MAX = 1 << 20, AK_J_PRECISION_MAX = 512 };

struct ak_jspec {
    uint32_t fill;  /* 0: a blank, or what goes with align */
    char align;     /* '<' '>' '=' '^', 0: the kind's own */
    char sign;      /* '+' ' ', 0: only a minus */
    bool alternate; /* # */
    bool upper;
    char grouping; /* ',' '_' or 0 */
    int64_t width;
    int64_t precision; /* -1: none */
    char conversion;   /* d, s, f …; 0: none */
};

/* A number or a text, filled up to its width. */
void ak_j_put_formatted_int(struct ak_jenv *j, struct ak_jout *out, int64_t value,
                            const struct ak_jspec *spec);
void ak_j_put_formatted_float(struct ak_jenv *j, struct ak_jout *out, double value,
                              const struct ak_jspec *spec);
void ak_j_put_formatted_text(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *text,
                             const struct ak_jspec *spec);

/* Digits of a width or precision at *at, which is moved; fails where they go beyond `max`. */
int64_t ak_j_read_width(struct ak_jenv *j, const struct ak_jstr *s, size_t *at, int64_t max);

/* ---- Markup ------------------------------------------------------------- */

static inline bool ak_j_is_safe(struct ak_jval v)
{
    return v.kind == AK_J_STRING && v.as.string->safe;
}

/* The same text, or list of texts, marked. */
struct ak_jval ak_j_mark_safe(struct ak_jenv *j, struct ak_jval v);
/* str(v) as HTML has it, marked; what is marked already stays. */
struct ak_jval ak_j_escape(struct ak_jenv *j, struct ak_jval v);
/* The strings of a tuple, a list or a dict's values escaped. */
struct ak_jval ak_j_escape_all(struct ak_jenv *j, struct ak_jval v);
/* A method of a marked text: what it puts in is escaped, what it gives is marked. */
struct ak_jval ak_j_call_safe(struct ak_jenv *j, const struct ak_jcallable *method,
                              const struct ak_jargs *args);

#endif

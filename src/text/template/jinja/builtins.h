/* Builtins of templates: filters, tests, globals and methods. The parser and the interpreter look
 * them up by name. Also functions that the builtins' files (filters_*.c, methods*.c, tests.c,
 * functions.c and their helpers) share with each other and with the interpreter. */
#ifndef AK_TEXT_TEMPLATE_JINJA_BUILTINS_H
#define AK_TEXT_TEMPLATE_JINJA_BUILTINS_H

#include "text/template/jinja/exec.h"
#include "text/template/jinja/string.h"
#include "text/template/jinja/value.h"

/* ---- Lookup ------------------------------------------------------------- */
/* NULL: no builtin of that name. */
const struct ak_jbuiltin *ak_j_find_filter(const struct ak_jstr *name);
const struct ak_jbuiltin *ak_j_find_test(const struct ak_jstr *name);
const struct ak_jbuiltin *ak_j_find_global(const struct ak_jstr *name);
/* A method of the type of v. *unsafe: NULL because the sandbox refuses the name. */
const struct ak_jbuiltin *ak_j_find_method(struct ak_jval v, const struct ak_jstr *name,
                                           bool *unsafe);

const struct ak_jbuiltin *ak_j_find_builtin(const struct ak_jbuiltin *table,
                                            const struct ak_jstr *name);

/* Tables end with name NULL. */
extern const struct ak_jbuiltin ak_j_string_methods[], ak_j_string_splits[], ak_j_string_queries[],
    ak_j_dict_methods[], ak_j_loop_methods[];
extern const struct ak_jbuiltin ak_j_text_filters[], ak_j_layout_filters[], ak_j_list_filters[],
    ak_j_choice_filters[], ak_j_order_filters[], ak_j_markup_filters[];

/* ---- Filters ------------------------------------------------------------ */
static inline struct ak_jval ak_j_from_str(struct ak_jstr *s)
{
    return (struct ak_jval){ .kind = AK_J_STRING, .as.string = s };
}
/* Given, and not None. */
static inline bool ak_j_is_not_none(struct ak_jval v)
{
    return v.kind != AK_J_MISSING && v.kind != AK_J_NONE;
}

/* Looks "a.0.b" up in an item, part by part. An undefined part becomes `otherwise`, unless that is
 * missing or None. */
struct ak_jval ak_j_member_at(struct ak_jenv *j, struct ak_jval item, struct ak_jval path,
                              struct ak_jval otherwise);

/* v, a string in lower case unless `case_sensitive`. */
struct ak_jval ak_j_sort_key(struct ak_jenv *j, struct ak_jval v, struct ak_jval case_sensitive);

/* A generator over the list. */
struct ak_jval ak_j_generator(struct ak_jlist *list);

/* json.dumps with the options of transformers' tojson. */
struct ak_jval ak_j_to_json(struct ak_jenv *j, const struct ak_jval *a,
                            const struct ak_jargs *rest);

/* The attribute of the object, never its item; UNDEFINED: it has none. */
struct ak_jval ak_j_get_attribute_only(struct ak_jenv *j, struct ak_jval object,
                                       struct ak_jval name);

/* ---- Strings ------------------------------------------------------------ */
/* count < 0: replaces all. */
struct ak_jval ak_j_replace(struct ak_jenv *j, const struct ak_jstr *s, const struct ak_jstr *from,
                            const struct ak_jstr *to, int64_t count);
/* chars NULL: whitespace. */
struct ak_jval ak_j_strip(struct ak_jenv *j, const struct ak_jstr *s, const struct ak_jstr *chars,
                          bool left, bool right);
struct ak_jlist *ak_j_split_lines(struct ak_jenv *j, const struct ak_jstr *s, bool keep_ends);
struct ak_jval ak_j_center(struct ak_jenv *j, const struct ak_jstr *s, int64_t width,
                           uint32_t fill);
/* Joins items as text. strict: fails unless all are strings. */
struct ak_jval ak_j_join(struct ak_jenv *j, const struct ak_jstr *separator,
                         const struct ak_jlist *items, bool strict);
/* s up to its last space. */
struct ak_jval ak_j_cut_last_word(struct ak_jenv *j, const struct ak_jstr *s);

/* ---- Case --------------------------------------------------------------- */
struct ak_jval ak_j_upper(struct ak_jenv *j, const struct ak_jstr *s);
struct ak_jval ak_j_lower(struct ak_jenv *j, const struct ak_jstr *s);
struct ak_jval ak_j_capitalize(struct ak_jenv *j, const struct ak_jstr *s);

void ak_j_put_upper(struct ak_jenv *j, struct ak_jout *out, uint32_t c);
void ak_j_put_title(struct ak_jenv *j, struct ak_jout *out, uint32_t c);
/* Takes the position in s, since a sigma at the end of a word has a form of its own. */
void ak_j_put_lower(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s, size_t at);

/* str.isupper, str.islower: there are cased characters, and all are of that case. */
bool ak_j_is_upper(struct ak_jenv *j, const struct ak_jstr *s);
bool ak_j_is_lower(struct ak_jenv *j, const struct ak_jstr *s);

bool ak_j_is_upper_char(uint32_t c); /* titlecase letters are neither upper nor lower */
bool ak_j_is_lower_char(uint32_t c);
bool ak_j_is_cased(uint32_t c);
bool ak_j_is_letter(uint32_t c);

/* ---- Format specifications ---------------------------------------------- */
enum { AK_J_WIDTH_MAX = 1 << 20, AK_J_PRECISION_MAX = 512 };

/* A format specification: "%-08.3f" or "{:>8,.2f}". */
struct ak_jspec {
    uint32_t fill;  /* character; 0: a space, or the default of align */
    char align;     /* '<' '>' '=' '^'; 0: the default of the type */
    char sign;      /* '+' ' '; 0: only a minus */
    bool alternate; /* # */
    bool upper;     /* digits and exponent in upper case */
    char grouping;  /* ',' '_'; 0: none */
    int64_t width;
    int64_t precision; /* -1: none */
    char conversion;   /* d, s, f …; 0: none */
};

/* Append a value, padded to spec->width. */
void ak_j_put_formatted_int(struct ak_jenv *j, struct ak_jout *out, int64_t value,
                            const struct ak_jspec *spec);
void ak_j_put_formatted_float(struct ak_jenv *j, struct ak_jout *out, double value,
                              const struct ak_jspec *spec);
void ak_j_put_formatted_text(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *text,
                             const struct ak_jspec *spec);

/* Reads the digits of a width or precision at *at, which is advanced; fails if beyond `max`. */
int64_t ak_j_read_width(struct ak_jenv *j, const struct ak_jstr *s, size_t *at, int64_t max);

/* ---- Markup ------------------------------------------------------------- */
/* Whether `safe` or `escape` marked a string as safe for HTML. A string concatenated to one is
 * escaped; there is no other autoescaping. */
static inline bool ak_j_is_safe(struct ak_jval v)
{
    return v.kind == AK_J_STRING && v.as.string->safe;
}

/* Marks a text, or the texts of a list, as safe. */
struct ak_jval ak_j_mark_safe(struct ak_jenv *j, struct ak_jval v);
/* str(v) escaped for HTML and marked as safe; safe text stays as it is. */
struct ak_jval ak_j_escape(struct ak_jenv *j, struct ak_jval v);
/* Escapes the strings of a tuple, of a list or of the values of a dict. */
struct ak_jval ak_j_escape_all(struct ak_jenv *j, struct ak_jval v);
/* Calls a method of safe text: arguments are escaped, the result is safe. */
struct ak_jval ak_j_call_safe(struct ak_jenv *j, const struct ak_jcallable *method,
                              const struct ak_jargs *args);

#endif

/* Values of templates, with the semantics of Python. All are immutable, except namespaces, cyclers,
 * joiners, loops, the position of a generator, and lists and dicts under construction. */
#ifndef AK_TEXT_TEMPLATE_JINJA_VALUE_H
#define AK_TEXT_TEMPLATE_JINJA_VALUE_H

#include "text/template/jinja/environment.h"

enum ak_jkind {
    AK_J_MISSING, /* missing argument, name without a value */
    AK_J_UNDEFINED,
    AK_J_NONE,
    AK_J_BOOL,
    AK_J_INT,
    AK_J_BIG_INT, /* an integer beyond 64 bits of the input, which is written and compared only */
    AK_J_FLOAT,
    AK_J_STRING,
    AK_J_LIST, /* all sequences: enum ak_jform */
    AK_J_DICT,
    AK_J_NAMESPACE,
    AK_J_CALLABLE,
    AK_J_LOOP,
    AK_J_CYCLER,
    AK_J_JOINER,
    AK_J_SLICE /* a:b:c of a subscript */
};

struct ak_jval {
    enum ak_jkind kind;
    union {
        bool boolean;
        int64_t integer;
        double number;
        struct ak_jstr *string; /* STRING; digits of BIG_INT */
        struct ak_jlist *list;
        struct ak_jdict *dict; /* DICT, NAMESPACE */
        struct ak_jundefined *undefined;
        struct ak_jcallable *callable;
        struct ak_jloop *loop;
        struct ak_jcycler *cycler;
        struct ak_jjoiner *joiner;
        struct ak_jval *slice; /* [3]: start, stop, step */
    } as;
};

/* UTF-8. */
struct ak_jstr {
    const char *bytes;
    size_t n, n_chars;       /* bytes, characters */
    struct ak_jspare *spare; /* room after the bytes for a concatenation (string.c); NULL: none */
    bool safe;               /* marked as HTML: filters_text.c */
};

enum ak_jform {
    AK_J_PLAIN_LIST,
    AK_J_TUPLE,
    AK_J_RANGE,
    AK_J_KEYS,
    AK_J_VALUES,
    AK_J_ITEMS,    /* of a dict */
    AK_J_GENERATOR /* yields each element once; those before `at` are gone */
};
struct ak_jlist {
    enum ak_jform form;
    struct ak_jval *items;
    size_t n, capacity;
    size_t at;
    int64_t start, stop, step; /* of a range */
    bool is_group;             /* a tuple of groupby: its items are also .grouper and .list */
};

struct ak_jpair {
    struct ak_jval key, value;
    uint64_t hash;
};
struct ak_jdict { /* in the order of insertion */
    struct ak_jpair *pairs;
    size_t n, capacity;
    /* hash table of n_slots, a power of two: index + 1 of a pair; 0: free. NULL: a small dict */
    uint32_t *slots;
    size_t n_slots;
};

/* Why something is undefined, for the message when it is used. */
struct ak_jundefined {
    const char *hint;      /* the whole message; NULL: made from object and name */
    struct ak_jval object; /* lacks the attribute `name`; MISSING: `name` is a variable */
    struct ak_jval name;
    bool unsafe; /* the sandbox refuses the attribute */
};

/* Arguments of a call, by position and by name. */
struct ak_jargs {
    const struct ak_jval *values;
    size_t n;
    const struct ak_jpair *named; /* keys are strings */
    size_t n_named;
};

/* A filter, a test, a method or a global. a[0] is the value it is applied to (of a global the first
 * argument); the parameters follow in order, MISSING if not given. If the builtin is variadic,
 * `rest` has all arguments after a[0]. */
typedef struct ak_jval ak_jbuiltin_fn(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest);
enum { AK_J_PARAMS_MAX = 6 };
struct ak_jbuiltin {
    const char *name;
    ak_jbuiltin_fn *fn;
    unsigned n_required; /* parameters without a default, a[0] not counted */
    const char *params[AK_J_PARAMS_MAX];
    bool variadic;
    bool keeps_safe; /* filter: safe text gives safe text */
};

struct ak_jnode;
struct ak_jcallable {
    enum { AK_J_BUILTIN, AK_J_METHOD, AK_J_MACRO } what;
    const struct ak_jbuiltin *builtin;
    struct ak_jval self;         /* METHOD: its object */
    const struct ak_jnode *node; /* MACRO: its MACRO or CALL_BLOCK node */
    struct ak_jscope *scope;     /* MACRO: where it was defined */
};

struct ak_jjoiner {
    struct ak_jval separator;
    bool used;
};

struct ak_jcycler {
    struct ak_jlist *items;
    size_t at;
};

/* ---- Construction ------------------------------------------------------- */
static inline struct ak_jval ak_j_none(void)
{
    return (struct ak_jval){ .kind = AK_J_NONE };
}
static inline struct ak_jval ak_j_bool(bool b)
{
    return (struct ak_jval){ .kind = AK_J_BOOL, .as.boolean = b };
}
static inline struct ak_jval ak_j_int(int64_t i)
{
    return (struct ak_jval){ .kind = AK_J_INT, .as.integer = i };
}
static inline struct ak_jval ak_j_float(double x)
{
    return (struct ak_jval){ .kind = AK_J_FLOAT, .as.number = x };
}
static inline struct ak_jval ak_j_from_list(struct ak_jlist *list)
{
    return (struct ak_jval){ .kind = AK_J_LIST, .as.list = list };
}
static inline struct ak_jval ak_j_from_dict(struct ak_jdict *dict)
{
    return (struct ak_jval){ .kind = AK_J_DICT, .as.dict = dict };
}
static inline bool ak_j_is_given(struct ak_jval v)
{
    return v.kind != AK_J_MISSING;
}

struct ak_jval ak_j_undefined_name(struct ak_jenv *j, struct ak_jval name);
struct ak_jval ak_j_undefined_member(struct ak_jenv *j, struct ak_jval object, struct ak_jval name);
struct ak_jval ak_j_undefined_hint(struct ak_jenv *j, const char *hint);
/* Fails with the message for a use of the undefined value. */
_Noreturn void ak_j_fail_undefined(struct ak_jenv *j, struct ak_jval undefined);

struct ak_jlist *ak_j_list(struct ak_jenv *j, enum ak_jform form, size_t capacity);
void ak_j_append(struct ak_jenv *j, struct ak_jlist *list, struct ak_jval item);
struct ak_jval ak_j_pair(struct ak_jenv *j, struct ak_jval a, struct ak_jval b); /* a tuple */

/* ---- Queries ------------------------------------------------------------ */
bool ak_j_is_true(struct ak_jval v);
const char *ak_j_type_name(struct ak_jval v); /* "str", "dict", … */
static inline bool ak_j_is_form(struct ak_jval v, enum ak_jform form)
{
    return v.kind == AK_J_LIST && v.as.list->form == form;
}

/* len(v); fails if v has no length. */
size_t ak_j_length(struct ak_jenv *j, struct ak_jval v);
/* Whether v has a length. */
bool ak_j_has_length(struct ak_jval v);

/* The elements of an iterable as a list that must not be changed: keys of a dict, characters of a
 * string, the rest of a generator, which is then exhausted. */
struct ak_jlist *ak_j_iterate(struct ak_jenv *j, struct ak_jval v);
bool ak_j_is_iterable(struct ak_jval v);

/* The value of an integer or bool, of a string; else fails with a message that names `what`. */
int64_t ak_j_need_int(struct ak_jenv *j, struct ak_jval v, const char *what);
struct ak_jstr *ak_j_need_string(struct ak_jenv *j, struct ak_jval v, const char *what);

/* ---- Dicts -------------------------------------------------------------- */
struct ak_jdict *ak_j_dict(struct ak_jenv *j);
/* Adds a pair, or replaces the value of the key. Fails if the key is not hashable (a list). */
void ak_j_put(struct ak_jenv *j, struct ak_jdict *dict, struct ak_jval key, struct ak_jval value);
/* NULL: no such key. */
const struct ak_jval *ak_j_get(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key);
/* The keys, values or pairs, by `form`. */
struct ak_jlist *ak_j_view(struct ak_jenv *j, const struct ak_jdict *dict, enum ak_jform form);

/* ---- compare.c ---------------------------------------------------------- */
bool ak_j_is_equal(struct ak_jenv *j, struct ak_jval a, struct ak_jval b);
/* -1, 0 or 1; fails if Python cannot order them, with `op` ("<") in the message. */
int ak_j_order(struct ak_jenv *j, struct ak_jval a, struct ak_jval b, const char *op);
/* op: "==" "!=" "<" "<=" ">" ">=" */
bool ak_j_compare(struct ak_jenv *j, const char *op, struct ak_jval a, struct ak_jval b);
bool ak_j_contains(struct ak_jenv *j, struct ak_jval container, struct ak_jval item);
bool ak_j_hash(struct ak_jenv *j, struct ak_jval v, uint64_t *hash); /* false: not hashable */
/* Stable sort of items by keys, in place; keys[i] belongs to items[i]. */
void ak_j_sort(struct ak_jenv *j, struct ak_jval *items, struct ak_jval *keys, size_t n,
               bool reverse);

#endif

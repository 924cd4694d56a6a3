/* Values, as Python has them. All are immutable but the namespace, the generator's place and
 * what a list or dict gets while it is made. */
#ifndef AK_TEMPLATE_JINJA_VALUE_H
#define AK_TEMPLATE_JINJA_VALUE_H

#include "template/jinja/environment.h"

enum ak_jkind {
    AK_J_MISSING, /* no value: an argument that is not given, a name without one */
    AK_J_UNDEFINED,
    AK_J_NONE,
    AK_J_BOOL,
    AK_J_INT,
    AK_J_FLOAT,
    AK_J_STRING,
    AK_J_LIST, /* all sequences: ak_jform */
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
        struct ak_jstr *string;
        struct ak_jlist *list;
        struct ak_jdict *dict; /* of a namespace too */
        struct ak_jundefined *undefined;
        struct ak_jcallable *callable;
        struct ak_jloop *loop;
        struct ak_jcycler *cycler;
        struct ak_jjoiner *joiner;
        struct ak_jval *slice; /* [3] */
    } as;
};

/* UTF-8. */
struct ak_jstr {
    const char *bytes;
    size_t n, n_chars;
    struct ak_jspare *spare; /* what lies behind the bytes; NULL: nothing of its own */
    bool safe;               /* marked as HTML: filters_text.c */
};

enum ak_jform {
    AK_J_PLAIN_LIST,
    AK_J_TUPLE,
    AK_J_RANGE,
    AK_J_KEYS,
    AK_J_VALUES,
    AK_J_ITEMS,    /* of a dict */
    AK_J_GENERATOR /* gives each element once: those before `at` are gone */
};
struct ak_jlist {
    enum ak_jform form;
    struct ak_jval *items;
    size_t n, capacity;
    size_t at;
    int64_t start, stop, step; /* of a range */
    bool grouped;              /* a pair of groupby, which has names for its two */
};

struct ak_jpair {
    struct ak_jval key, value;
    uint64_t hash;
};
struct ak_jdict { /* in the order of insertion */
    struct ak_jpair *pairs;
    size_t n, capacity;
    /* n_slots, a power of two: index + 1 of a pair, 0: free; NULL where the dict is small */
    uint32_t *slots;
    size_t n_slots;
};

/* Why something is undefined, for the message when it is used. */
struct ak_jundefined {
    const char *hint;      /* a whole message; NULL: the name, or the object's lack of it */
    struct ak_jval object; /* MISSING: a variable */
    struct ak_jval name;
    bool unsafe; /* the sandbox refuses it */
};

/* What a call gives, by position and by name. */
struct ak_jargs {
    const struct ak_jval *values;
    size_t n;
    const struct ak_jpair *named; /* keys are strings */
    size_t n_named;
};

/* A filter, a test, a method or a function. a[0] is what it is applied to (of a function the
 * first argument), then its parameters in order, MISSING where not given; `rest` has all that
 * was given after a[0] where the builtin is variadic. */
typedef struct ak_jval ak_jbuiltin_fn(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest);
enum { AK_J_PARAMS_MAX = 6 };
struct ak_jbuiltin {
    const char *name;
    ak_jbuiltin_fn *fn;
    unsigned n_required; /* parameters that have no default, a[0] aside */
    const char *params[AK_J_PARAMS_MAX];
    bool variadic;
    bool keeps_safe; /* a filter that gives marked text for marked text */
};

struct ak_jnode;
struct ak_jcallable {
    enum { AK_J_BUILTIN, AK_J_METHOD, AK_J_MACRO } what;
    const struct ak_jbuiltin *builtin;
    struct ak_jval self;         /* of a method */
    const struct ak_jnode *node; /* of a macro: MACRO or CALL_BLOCK */
    struct ak_jscope *scope;     /* where it was defined */
};

struct ak_jjoiner {
    struct ak_jval separator;
    bool used;
};

struct ak_jcycler {
    struct ak_jlist *items;
    size_t at;
};

/* ---- Making ------------------------------------------------------------- */
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
static inline bool ak_j_is(struct ak_jval v, enum ak_jkind kind)
{
    return v.kind == kind;
}
static inline bool ak_j_is_given(struct ak_jval v)
{
    return v.kind != AK_J_MISSING;
}

struct ak_jval ak_j_undefined_name(struct ak_jenv *j, struct ak_jval name);
struct ak_jval ak_j_undefined_member(struct ak_jenv *j, struct ak_jval object, struct ak_jval name);
struct ak_jval ak_j_undefined_hint(struct ak_jenv *j, const char *hint);
/* Fails as using it does. */
_Noreturn void ak_j_fail_undefined(struct ak_jenv *j, struct ak_jval undefined);

struct ak_jlist *ak_j_list(struct ak_jenv *j, enum ak_jform form, size_t capacity);
void ak_j_append(struct ak_jenv *j, struct ak_jlist *list, struct ak_jval item);
struct ak_jval ak_j_pair(struct ak_jenv *j, struct ak_jval a, struct ak_jval b); /* a tuple */

/* ---- Asking ------------------------------------------------------------- */
bool ak_j_is_true(struct ak_jval v);
const char *ak_j_type_name(struct ak_jval v); /* "str", "dict", … */
static inline bool ak_j_is_form(struct ak_jval v, enum ak_jform form)
{
    return v.kind == AK_J_LIST && v.as.list->form == form;
}

/* len(v), or a failure. */
size_t ak_j_length(struct ak_jenv *j, struct ak_jval v);
/* Whether len(v) is possible. */
bool ak_j_has_length(struct ak_jval v);

/* The elements of anything that can be iterated, as a list that is not to be changed: of a
 * dict its keys, of a string its characters, of a generator what is left, which is then gone. */
struct ak_jlist *ak_j_iterate(struct ak_jenv *j, struct ak_jval v);
bool ak_j_is_iterable(struct ak_jval v);

/* An integer or bool, or a failure that names `what`. */
int64_t ak_j_need_int(struct ak_jenv *j, struct ak_jval v, const char *what);
struct ak_jstr *ak_j_need_string(struct ak_jenv *j, struct ak_jval v, const char *what);

/* ---- Dicts -------------------------------------------------------------- */
struct ak_jdict *ak_j_dict(struct ak_jenv *j);
/* Replaces the value of a key that is there. Fails where the key cannot be one (a list). */
void ak_j_put(struct ak_jenv *j, struct ak_jdict *dict, struct ak_jval key, struct ak_jval value);
/* NULL: none */
const struct ak_jval *ak_j_get(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key);
/* By the bytes of a string. */
const struct ak_jval *ak_j_get_named(struct ak_jenv *j, const struct ak_jdict *dict,
                                     const char *name);
/* Keys, values or pairs. */
struct ak_jlist *ak_j_view(struct ak_jenv *j, const struct ak_jdict *dict, enum ak_jform form);

/* ---- compare.c ---------------------------------------------------------- */
bool ak_j_is_equal(struct ak_jenv *j, struct ak_jval a, struct ak_jval b);
/* −1, 0, 1; fails where Python cannot order them, with `op` in the message ("<"). */
int ak_j_order(struct ak_jenv *j, struct ak_jval a, struct ak_jval b, const char *op);
bool ak_j_compare(struct ak_jenv *j, const char *op, struct ak_jval a,
                  struct ak_jval b); /* op: "==" "!=" "<" "<=" ">" ">=" */
bool ak_j_contains(struct ak_jenv *j, struct ak_jval container, struct ak_jval item);
bool ak_j_hash(struct ak_jenv *j, struct ak_jval v, uint64_t *hash); /* false: it has none */
/* Sorts in place, keeping the order of equals; keys[i] belongs to items[i]. */
void ak_j_sort(struct ak_jenv *j, struct ak_jval *items, struct ak_jval *keys, size_t n,
               bool reverse);

#endif

/* Undefined values, lists, properties of values, iteration and dicts. */
#include <string.h>

#include "text/template/jinja/string.h"
#include "text/template/jinja/value.h"

/* ---- Undefined ---------------------------------------------------------- */
static struct ak_jval make_undefined(struct ak_jenv *j, struct ak_jundefined why)
{
    struct ak_jundefined *u = ak_j_alloc(j, 1, sizeof *u);
    *u = why;
    return (struct ak_jval){ .kind = AK_J_UNDEFINED, .as.undefined = u };
}

struct ak_jval ak_j_undefined_name(struct ak_jenv *j, struct ak_jval name)
{
    return make_undefined(j, (struct ak_jundefined){ .name = name });
}

struct ak_jval ak_j_undefined_member(struct ak_jenv *j, struct ak_jval object, struct ak_jval name)
{
    return make_undefined(j, (struct ak_jundefined){ .object = object, .name = name });
}

struct ak_jval ak_j_undefined_hint(struct ak_jenv *j, const char *hint)
{
    return make_undefined(j, (struct ak_jundefined){ .hint = hint });
}

_Noreturn void ak_j_fail_undefined(struct ak_jenv *j, struct ak_jval v)
{
    const struct ak_jundefined *u = v.as.undefined;
    if (u->unsafe)
        ak_j_fail(j, "access to attribute %s of '%s' object is unsafe", ak_j_show(j, u->name),
                  ak_j_type_name(u->object));
    if (u->hint)
        ak_j_fail(j, "%s", u->hint);
    if (u->object.kind == AK_J_MISSING)
        ak_j_fail(j, "%s is undefined", ak_j_show(j, u->name));
    if (u->name.kind == AK_J_STRING)
        ak_j_fail(j, "'%s object' has no attribute %s", ak_j_type_name(u->object),
                  ak_j_show(j, u->name));
    ak_j_fail(j, "%s object has no element %s", ak_j_type_name(u->object), ak_j_show(j, u->name));
}

/* ---- Lists -------------------------------------------------------------- */
struct ak_jlist *ak_j_list(struct ak_jenv *j, enum ak_jform form, size_t capacity)
{
    struct ak_jlist *list = ak_j_alloc(j, 1, sizeof *list);
    list->form = form;
    list->capacity = capacity;
    list->items = capacity ? ak_j_alloc(j, capacity, sizeof *list->items) : NULL;
    return list;
}

void ak_j_append(struct ak_jenv *j, struct ak_jlist *list, struct ak_jval item)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 4;
        list->items = ak_j_grow(j, list->items, list->n, capacity, sizeof item);
        list->capacity = capacity;
    }
    list->items[list->n++] = item;
}

struct ak_jval ak_j_pair(struct ak_jenv *j, struct ak_jval a, struct ak_jval b)
{
    struct ak_jlist *pair = ak_j_list(j, AK_J_TUPLE, 2);
    ak_j_append(j, pair, a);
    ak_j_append(j, pair, b);
    return ak_j_from_list(pair);
}

/* ---- Queries ------------------------------------------------------------ */
bool ak_j_is_true(struct ak_jval v)
{
    switch (v.kind) {
    case AK_J_MISSING:
    case AK_J_UNDEFINED:
    case AK_J_NONE: return false;
    case AK_J_BOOL: return v.as.boolean;
    case AK_J_INT: return v.as.integer != 0;
    case AK_J_FLOAT: return v.as.number != 0;
    case AK_J_STRING: return v.as.string->n > 0;
    case AK_J_LIST: return v.as.list->form == AK_J_GENERATOR || v.as.list->n > 0;
    case AK_J_DICT: return v.as.dict->n > 0;
    default: return true;
    }
}

const char *ak_j_type_name(struct ak_jval v)
{
    static const char *const forms[] = {
        [AK_J_PLAIN_LIST] = "list",     [AK_J_TUPLE] = "tuple",        [AK_J_RANGE] = "range",
        [AK_J_KEYS] = "dict_keys",      [AK_J_VALUES] = "dict_values", [AK_J_ITEMS] = "dict_items",
        [AK_J_GENERATOR] = "generator",
    };
    switch (v.kind) {
    case AK_J_MISSING:
    case AK_J_UNDEFINED: return "Undefined";
    case AK_J_NONE: return "NoneType";
    case AK_J_BOOL: return "bool";
    case AK_J_INT:
    case AK_J_BIG_INT: return "int";
    case AK_J_FLOAT: return "float";
    case AK_J_STRING: return "str";
    case AK_J_LIST: return forms[v.as.list->form];
    case AK_J_DICT: return "dict";
    case AK_J_NAMESPACE: return "Namespace";
    case AK_J_CALLABLE:
        return v.as.callable->what == AK_J_MACRO  ? "Macro" :
               v.as.callable->what == AK_J_METHOD ? "method" :
                                                    "function";
    case AK_J_LOOP: return "LoopContext";
    case AK_J_CYCLER: return "Cycler";
    case AK_J_JOINER: return "Joiner";
    case AK_J_SLICE: return "slice";
    }
    return "object";
}

bool ak_j_has_length(struct ak_jval v)
{
    return v.kind == AK_J_STRING || v.kind == AK_J_DICT || v.kind == AK_J_UNDEFINED ||
           v.kind == AK_J_LOOP || (v.kind == AK_J_LIST && v.as.list->form != AK_J_GENERATOR);
}

bool ak_j_is_iterable(struct ak_jval v)
{
    return v.kind == AK_J_STRING || v.kind == AK_J_DICT || v.kind == AK_J_UNDEFINED ||
           v.kind == AK_J_LIST;
}

static struct ak_jlist *list_characters(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jlist *list = ak_j_list(j, AK_J_PLAIN_LIST, s->n_chars);
    ak_j_spend(j, s->n_chars);
    for (size_t at = 0, next; at < s->n; at = next) {
        ak_j_char_at(s, at, &next);
        ak_j_append(j, list, ak_j_substring(j, s, at, next));
    }
    return list;
}

static struct ak_jlist *take_rest(struct ak_jenv *j, struct ak_jlist *generator)
{
    struct ak_jlist *rest = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    rest->items = generator->n > generator->at ? generator->items + generator->at : NULL;
    rest->n = rest->capacity = generator->n - generator->at;
    generator->at = generator->n;
    return rest;
}

struct ak_jlist *ak_j_iterate(struct ak_jenv *j, struct ak_jval v)
{
    switch (v.kind) {
    case AK_J_LIST: return v.as.list->form == AK_J_GENERATOR ? take_rest(j, v.as.list) : v.as.list;
    case AK_J_DICT: return ak_j_view(j, v.as.dict, AK_J_KEYS);
    case AK_J_STRING: return list_characters(j, v.as.string);
    case AK_J_UNDEFINED: return ak_j_list(j, AK_J_PLAIN_LIST, 0);
    default: ak_j_fail(j, "'%s' object is not iterable", ak_j_type_name(v));
    }
}

int64_t ak_j_need_int(struct ak_jenv *j, struct ak_jval v, const char *what)
{
    if (v.kind == AK_J_INT)
        return v.as.integer;
    if (v.kind == AK_J_BOOL)
        return v.as.boolean;
    if (v.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, v);
    if (v.kind == AK_J_BIG_INT)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "%s: an integer goes beyond 64 bits, the limit",
                     what);
    ak_j_fail(j, "%s: '%s' object cannot be interpreted as an integer", what, ak_j_type_name(v));
}

struct ak_jstr *ak_j_need_string(struct ak_jenv *j, struct ak_jval v, const char *what)
{
    if (v.kind == AK_J_STRING)
        return v.as.string;
    if (v.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, v);
    ak_j_fail(j, "%s must be str, not %s", what, ak_j_type_name(v));
}

/* ---- Dicts -------------------------------------------------------------- */
enum { SMALL = 8 }; /* up to so many pairs are searched without a hash table */

struct ak_jdict *ak_j_dict(struct ak_jenv *j)
{
    return ak_j_alloc(j, 1, sizeof(struct ak_jdict));
}

static uint64_t hash_of(struct ak_jenv *j, struct ak_jval key)
{
    uint64_t hash;
    if (!ak_j_hash(j, key, &hash))
        ak_j_fail(j, "unhashable type: '%s'", ak_j_type_name(key));
    return hash;
}

static size_t find_small(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key,
                         uint64_t hash)
{
    for (size_t i = 0; i < dict->n; i++)
        if (dict->pairs[i].hash == hash && ak_j_is_equal(j, dict->pairs[i].key, key))
            return i;
    return SIZE_MAX;
}

/* The slot of a key, or the free slot for it. */
static uint32_t *slot_of(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key,
                         uint64_t hash)
{
    for (size_t at = hash;; at++) {
        uint32_t *slot = &dict->slots[at & (dict->n_slots - 1)];
        ak_j_spend(j, at != hash);
        if (*slot == 0 || (dict->pairs[*slot - 1].hash == hash &&
                           ak_j_is_equal(j, dict->pairs[*slot - 1].key, key)))
            return slot;
    }
}

static size_t find_slot(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key,
                        uint64_t hash)
{
    return dict->slots ? (size_t)*slot_of(j, dict, key, hash) - 1 : find_small(j, dict, key, hash);
}

static void fill_slots(struct ak_jenv *j, struct ak_jdict *dict)
{
    dict->n_slots = dict->capacity * 2;
    dict->slots = ak_j_alloc(j, dict->n_slots, sizeof *dict->slots);
    for (size_t i = 0; i < dict->n; i++)
        *slot_of(j, dict, dict->pairs[i].key, dict->pairs[i].hash) = (uint32_t)(i + 1);
}

static void grow_pairs(struct ak_jenv *j, struct ak_jdict *dict)
{
    if (dict->n < dict->capacity)
        return;
    size_t capacity = dict->capacity ? 2 * dict->capacity : 4;
    if (capacity > UINT32_MAX / 4)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "a dict of more than %u keys", UINT32_MAX / 8);
    dict->pairs = ak_j_grow(j, dict->pairs, dict->n, capacity, sizeof *dict->pairs);
    dict->capacity = capacity;
    if (capacity > SMALL)
        fill_slots(j, dict);
}

void ak_j_put(struct ak_jenv *j, struct ak_jdict *dict, struct ak_jval key, struct ak_jval value)
{
    uint64_t hash = hash_of(j, key);
    size_t i = find_slot(j, dict, key, hash);
    if (i != SIZE_MAX) {
        dict->pairs[i].value = value;
        return;
    }
    grow_pairs(j, dict);
    dict->pairs[dict->n] = (struct ak_jpair){ key, value, hash };
    dict->n++;
    if (dict->slots)
        *slot_of(j, dict, key, hash) = (uint32_t)dict->n;
}

const struct ak_jval *ak_j_get(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key)
{
    size_t i = find_slot(j, dict, key, hash_of(j, key));
    return i == SIZE_MAX ? NULL : &dict->pairs[i].value;
}

struct ak_jlist *ak_j_view(struct ak_jenv *j, const struct ak_jdict *dict, enum ak_jform form)
{
    struct ak_jlist *list = ak_j_list(j, form, dict->n);
    ak_j_spend(j, dict->n);
    for (size_t i = 0; i < dict->n; i++) {
        const struct ak_jpair *pair = &dict->pairs[i];
        ak_j_append(j, list,
                    form == AK_J_KEYS   ? pair->key :
                    form == AK_J_VALUES ? pair->value :
                                          ak_j_pair(j, pair->key, pair->value));
    }
    return list;
}

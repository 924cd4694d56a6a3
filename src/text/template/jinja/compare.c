/* Comparison, hashing and sorting of values, as in Python: numbers of all types compare exactly. */
#include <math.h>
#include <string.h>

#include "base/json/wide.h"
#include "text/template/jinja/string.h"

static bool is_integer(struct ak_jval v)
{
    return v.kind == AK_J_INT || v.kind == AK_J_BOOL;
}

static int64_t integer(struct ak_jval v)
{
    return v.kind == AK_J_BOOL ? v.as.boolean : v.as.integer;
}

static bool is_number(struct ak_jval v)
{
    return is_integer(v) || v.kind == AK_J_BIG_INT || v.kind == AK_J_FLOAT;
}

/* The nearest double. */
static double big_double(struct ak_jval v)
{
    return ak_wide_double(v.as.string->bytes);
}

/* Compares the digits of two integers beyond 64 bits. */
static int order_big(const struct ak_jstr *a, const struct ak_jstr *b)
{
    bool a_negative = a->bytes[0] == '-', b_negative = b->bytes[0] == '-';
    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    int order = a->n != b->n ? (a->n < b->n ? -1 : 1) : memcmp(a->bytes, b->bytes, a->n);
    return a_negative ? -order : order;
}

/* Compares an integer with a float exactly: beyond 2^53 it may not be a double. 2: x is NaN. */
static int order_mixed(int64_t i, double x)
{
    if (isnan(x))
        return 2;
    if (x >= 0x1p63)
        return -1;
    if (x < -0x1p63)
        return 1;
    int64_t whole = (int64_t)x;
    if (i != whole)
        return i < whole ? -1 : 1;
    double rest = x - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

/* -1, 0, 1; 2: one is NaN. */
static int order_numbers(struct ak_jval a, struct ak_jval b)
{
    if (a.kind == AK_J_BIG_INT && b.kind == AK_J_BIG_INT)
        return order_big(a.as.string, b.as.string);
    if (a.kind == AK_J_BIG_INT && is_integer(b))
        return a.as.string->bytes[0] == '-' ? -1 : 1;
    if (b.kind == AK_J_BIG_INT && is_integer(a))
        return b.as.string->bytes[0] == '-' ? 1 : -1;
    if (is_integer(a) && is_integer(b))
        return integer(a) < integer(b) ? -1 : integer(a) > integer(b);
    if (is_integer(a))
        return order_mixed(integer(a), b.as.number);
    if (is_integer(b)) {
        int order = order_mixed(integer(b), a.as.number);
        return order == 2 ? 2 : -order;
    }
    double x = a.kind == AK_J_BIG_INT ? big_double(a) : a.as.number,
           y = b.kind == AK_J_BIG_INT ? big_double(b) : b.as.number;
    return isnan(x) || isnan(y) ? 2 : x < y ? -1 : x > y;
}

static bool lists_equal(struct ak_jenv *j, const struct ak_jlist *a, const struct ak_jlist *b)
{
    bool comparable = a->form == b->form && a->form <= AK_J_RANGE;
    if (a == b || !comparable || a->n != b->n)
        return a == b;
    bool equal = true;
    ak_j_enter(j);
    for (size_t i = 0; equal && i < a->n; i++)
        equal = ak_j_is_equal(j, a->items[i], b->items[i]);
    ak_j_leave(j);
    return equal;
}

static bool dicts_equal(struct ak_jenv *j, const struct ak_jdict *a, const struct ak_jdict *b)
{
    if (a == b || a->n != b->n)
        return a == b;
    bool equal = true;
    ak_j_enter(j);
    for (size_t i = 0; equal && i < a->n; i++) {
        const struct ak_jval *other = ak_j_get(j, b, a->pairs[i].key);
        equal = other && ak_j_is_equal(j, a->pairs[i].value, *other);
    }
    ak_j_leave(j);
    return equal;
}

bool ak_j_is_equal(struct ak_jenv *j, struct ak_jval a, struct ak_jval b)
{
    ak_j_spend(j, 1);
    if (is_number(a) && is_number(b))
        return order_numbers(a, b) == 0;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case AK_J_MISSING:
    case AK_J_UNDEFINED: /* all undefined values are equal */
    case AK_J_NONE: return true;
    case AK_J_STRING: return ak_j_strings_equal(a.as.string, b.as.string);
    case AK_J_LIST: return lists_equal(j, a.as.list, b.as.list);
    case AK_J_DICT: return dicts_equal(j, a.as.dict, b.as.dict);
    default: return a.as.string == b.as.string; /* the same object */
    }
}

static int order_lists(struct ak_jenv *j, const struct ak_jlist *a, const struct ak_jlist *b,
                       const char *op)
{
    size_t n = a->n < b->n ? a->n : b->n, i = 0;
    ak_j_enter(j);
    while (i < n && ak_j_is_equal(j, a->items[i], b->items[i]))
        i++;
    int order = i < n       ? ak_j_order(j, a->items[i], b->items[i], op) :
                a->n < b->n ? -1 :
                              a->n > b->n;
    ak_j_leave(j);
    return order;
}

int ak_j_order(struct ak_jenv *j, struct ak_jval a, struct ak_jval b, const char *op)
{
    ak_j_spend(j, 1);
    if (is_number(a) && is_number(b))
        return order_numbers(a, b);
    if (a.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, a);
    if (b.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, b);
    if (a.kind == AK_J_STRING && b.kind == AK_J_STRING)
        return ak_j_strings_order(a.as.string, b.as.string);
    if (a.kind == AK_J_LIST && b.kind == AK_J_LIST && a.as.list->form == b.as.list->form &&
        a.as.list->form <= AK_J_TUPLE)
        return order_lists(j, a.as.list, b.as.list, op);
    ak_j_fail(j, "'%s' not supported between instances of '%s' and '%s'", op, ak_j_type_name(a),
              ak_j_type_name(b));
}

bool ak_j_compare(struct ak_jenv *j, const char *op, struct ak_jval a, struct ak_jval b)
{
    if (op[1] == '=' && (op[0] == '=' || op[0] == '!'))
        return ak_j_is_equal(j, a, b) == (op[0] == '=');
    int order = ak_j_order(j, a, b, op);
    if (order == 2)
        return false;
    return op[0] == '<' ? (op[1] ? order <= 0 : order < 0) : (op[1] ? order >= 0 : order > 0);
}

bool ak_j_contains(struct ak_jenv *j, struct ak_jval container, struct ak_jval item)
{
    switch (container.kind) {
    case AK_J_STRING:
        if (item.kind != AK_J_STRING)
            ak_j_fail(j, "'in <string>' requires string as left operand, not %s",
                      ak_j_type_name(item));
        ak_j_spend(j, container.as.string->n / 16);
        return ak_j_find(container.as.string, item.as.string, 0) != SIZE_MAX;
    case AK_J_DICT: return ak_j_get(j, container.as.dict, item) != NULL;
    case AK_J_LIST:
    case AK_J_UNDEFINED: break;
    default: ak_j_fail(j, "argument of type '%s' is not iterable", ak_j_type_name(container));
    }
    const struct ak_jlist *list = ak_j_iterate(j, container);
    for (size_t i = 0; i < list->n; i++)
        if (ak_j_is_equal(j, list->items[i], item))
            return true;
    return false;
}

/* ---- Hashing ------------------------------------------------------------ */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

static uint64_t hash_bytes(struct ak_jenv *j, const char *bytes, size_t n)
{
    uint64_t hash = n;
    ak_j_spend(j, n / 16);
    for (; n >= 8; n -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = mix(hash, word);
    }
    uint64_t word = 0;
    if (n)
        memcpy(&word, bytes, n);
    return mix(hash, word);
}

/* Equal numbers have equal hashes, whatever their type. */
static uint64_t hash_float(double x)
{
    if (x >= -0x1p63 && x < 0x1p63 && x == (double)(int64_t)x)
        return mix(1, (uint64_t)(int64_t)x);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return mix(2, bits);
}

static bool hash_tuple(struct ak_jenv *j, const struct ak_jlist *list, uint64_t *hash)
{
    bool fine = true;
    *hash = 3;
    ak_j_enter(j);
    for (size_t i = 0; fine && i < list->n; i++) {
        uint64_t item;
        fine = ak_j_hash(j, list->items[i], &item);
        *hash = fine ? mix(*hash, item) : 0;
    }
    ak_j_leave(j);
    return fine;
}

bool ak_j_hash(struct ak_jenv *j, struct ak_jval v, uint64_t *hash)
{
    ak_j_spend(j, 1);
    switch (v.kind) {
    case AK_J_BOOL:
    case AK_J_INT: *hash = mix(1, (uint64_t)integer(v)); return true;
    case AK_J_BIG_INT: *hash = hash_float(big_double(v)); return true;
    case AK_J_FLOAT: *hash = hash_float(v.as.number); return true;
    case AK_J_STRING: *hash = hash_bytes(j, v.as.string->bytes, v.as.string->n); return true;
    case AK_J_LIST:
        if (v.as.list->form == AK_J_TUPLE)
            return hash_tuple(j, v.as.list, hash);
        *hash = mix(4, (uintptr_t)v.as.list);
        return v.as.list->form == AK_J_GENERATOR;
    case AK_J_DICT:
    case AK_J_SLICE: return false;
    case AK_J_MISSING:
    case AK_J_UNDEFINED:
    case AK_J_NONE: *hash = mix(5, v.kind); return true;
    default: *hash = mix(6, (uintptr_t)v.as.string); return true;
    }
}

/* ---- Sorting: stable merge sort ----------------------------------------- */
static void merge(struct ak_jenv *j, const struct ak_jval *keys, const size_t *from, size_t *to,
                  size_t begin, size_t middle, size_t end, bool reverse)
{
    size_t a = begin, b = middle;
    for (size_t at = begin; at < end; at++) {
        bool second = a == middle ||
                      (b < end && (reverse ? ak_j_compare(j, "<", keys[from[a]], keys[from[b]]) :
                                             ak_j_compare(j, "<", keys[from[b]], keys[from[a]])));
        to[at] = second ? from[b++] : from[a++];
    }
}

void ak_j_sort(struct ak_jenv *j, struct ak_jval *items, struct ak_jval *keys, size_t n,
               bool reverse)
{
    size_t *order = ak_j_alloc(j, n, sizeof *order), *other = ak_j_alloc(j, n, sizeof *other);
    struct ak_jval *sorted = ak_j_alloc(j, n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            size_t middle = begin + width < n ? begin + width : n,
                   end = middle + width < n ? middle + width : n;
            merge(j, keys, order, other, begin, middle, end, reverse);
        }
        size_t *swap = order;
        order = other;
        other = swap;
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = items[order[i]];
    if (n)
        memcpy(items, sorted, n * sizeof *items);
}

/* object.name, object[subscript] and object[a:b:c]. */
#include "text/template/jinja/builtins.h"

static const struct ak_jval missing = { .kind = AK_J_MISSING };

/* ---- Attributes --------------------------------------------------------- */
static struct ak_jval data_member(struct ak_jenv *j, struct ak_jval object, struct ak_jval name)
{
    const struct ak_jval *found = NULL;
    if (object.kind == AK_J_NAMESPACE)
        found = ak_j_get(j, object.as.dict, name);
    if (object.kind == AK_J_LOOP)
        return ak_j_loop_member(j, object.as.loop, name);
    if (object.kind == AK_J_CYCLER && ak_j_string_is(name, "current"))
        found = &object.as.cycler->items->items[object.as.cycler->at];
    if (object.kind == AK_J_CALLABLE && object.as.callable->what == AK_J_MACRO &&
        ak_j_string_is(name, "name"))
        found = &object.as.callable->node->name;
    if (object.kind == AK_J_LIST && object.as.list->is_group) {
        if (ak_j_string_is(name, "grouper"))
            found = &object.as.list->items[0];
        if (ak_j_string_is(name, "list"))
            found = &object.as.list->items[1];
    }
    return found ? *found : missing;
}

static struct ak_jval unsafe_member(struct ak_jenv *j, struct ak_jval object, struct ak_jval name)
{
    struct ak_jval v = ak_j_undefined_member(j, object, name);
    v.as.undefined->unsafe = true;
    return v;
}

/* As Python's getattr; MISSING: no such attribute. */
static struct ak_jval get_member(struct ak_jenv *j, struct ak_jval object, struct ak_jval name)
{
    struct ak_jval found = data_member(j, object, name);
    if (ak_j_is_given(found))
        return found;
    bool unsafe = false;
    const struct ak_jbuiltin *method = ak_j_find_method(object, name.as.string, &unsafe);
    if (unsafe)
        return unsafe_member(j, object, name);
    if (!method)
        return missing;
    struct ak_jcallable *callable = ak_j_alloc(j, 1, sizeof *callable);
    callable->what = AK_J_METHOD;
    callable->builtin = method;
    callable->self = object;
    return (struct ak_jval){ .kind = AK_J_CALLABLE, .as.callable = callable };
}

/* ---- Slices ------------------------------------------------------------- */
/* A bound of a slice, from the end if it is negative, clamped to [low, high]. */
static int64_t clamp_bound(struct ak_jenv *j, struct ak_jval v, int64_t otherwise, int64_t n,
                           int64_t low, int64_t high)
{
    if (v.kind == AK_J_NONE)
        return otherwise;
    int64_t at = ak_j_need_int(j, v, "slice indices");
    if (at < 0)
        at = at < -n ? low : at + n;
    return at < low ? low : at > high ? high : at;
}

struct span {
    int64_t start, stop, step;
    size_t n;
};

static struct span span_of(struct ak_jenv *j, const struct ak_jval *slice, size_t length)
{
    int64_t n = (int64_t)length;
    int64_t step = slice[2].kind == AK_J_NONE ? 1 : ak_j_need_int(j, slice[2], "slice indices");
    if (step == 0)
        ak_j_fail(j, "slice step cannot be zero");
    step = step < -n - 1 ? -n - 1 : step > n + 1 ? n + 1 : step; /* larger steps give the same */
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    int64_t start = clamp_bound(j, slice[0], step < 0 ? high : low, n, low, high);
    int64_t stop = clamp_bound(j, slice[1], step < 0 ? low : high, n, low, high);
    int64_t count = step > 0 ? (stop > start ? (stop - start - 1) / step + 1 : 0) :
                               (start > stop ? (start - stop - 1) / -step + 1 : 0);
    return (struct span){ start, stop, step, (size_t)count };
}

static struct ak_jval slice_string(struct ak_jenv *j, const struct ak_jstr *s,
                                   const struct ak_jval *slice)
{
    struct span span = span_of(j, slice, s->n_chars);
    struct ak_jout out = { 0 };
    if (span.n == 0)
        return ak_j_substring(j, s, 0, 0);
    if (span.step == 1) {
        size_t begin = ak_j_byte_offset(j, s, (size_t)span.start);
        return ak_j_substring(j, s, begin, ak_j_byte_offset(j, s, (size_t)span.start + span.n));
    }
    const struct ak_jlist *characters = ak_j_iterate(
        j, (struct ak_jval){ .kind = AK_J_STRING, .as.string = (struct ak_jstr *)(uintptr_t)s });
    for (size_t i = 0; i < span.n; i++)
        ak_j_put_str(j, &out, characters->items[span.start + (int64_t)i * span.step].as.string);
    return ak_j_finish(j, &out);
}

static struct ak_jval slice_list(struct ak_jenv *j, const struct ak_jlist *list,
                                 const struct ak_jval *slice)
{
    struct span span = span_of(j, slice, list->n);
    struct ak_jlist *part = ak_j_list(j, list->form, span.n);
    ak_j_spend(j, span.n);
    for (size_t i = 0; i < span.n; i++)
        ak_j_append(j, part, list->items[span.start + (int64_t)i * span.step]);
    if (list->form == AK_J_RANGE) {
        part->start =
            (int64_t)((uint64_t)list->start + (uint64_t)span.start * (uint64_t)list->step);
        part->step = (int64_t)((uint64_t)list->step * (uint64_t)span.step);
        part->stop = (int64_t)((uint64_t)list->start + (uint64_t)span.stop * (uint64_t)list->step);
    }
    return ak_j_from_list(part);
}

static struct ak_jval slice(struct ak_jenv *j, struct ak_jval object, const struct ak_jval *bounds)
{
    if (ak_j_is_safe(object))
        return ak_j_mark_safe(j, slice_string(j, object.as.string, bounds));
    if (object.kind == AK_J_STRING)
        return slice_string(j, object.as.string, bounds);
    if (object.kind == AK_J_LIST && object.as.list->form <= AK_J_RANGE)
        return slice_list(j, object.as.list, bounds);
    if (object.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, object);
    ak_j_fail(j,
              object.kind == AK_J_DICT ? "unhashable type: 'slice' (of a %s)" :
                                         "'%s' object is not subscriptable",
              ak_j_type_name(object));
}

/* ---- Subscripts --------------------------------------------------------- */
/* The element at an index; MISSING: out of range. */
static struct ak_jval element_at(struct ak_jenv *j, struct ak_jval object, int64_t at)
{
    bool is_string = object.kind == AK_J_STRING;
    size_t n = is_string ? object.as.string->n_chars : object.as.list->n;
    if (at < 0)
        at += (int64_t)n;
    if (at < 0 || (size_t)at >= n)
        return missing;
    if (!is_string)
        return object.as.list->items[at];
    size_t begin = ak_j_byte_offset(j, object.as.string, (size_t)at), end;
    ak_j_char_at(object.as.string, begin, &end);
    return ak_j_substring(j, object.as.string, begin, end);
}

static struct ak_jval get_subscript(struct ak_jenv *j, struct ak_jval object,
                                    struct ak_jval subscript)
{
    bool is_index = subscript.kind == AK_J_INT || subscript.kind == AK_J_BOOL;
    uint64_t hash;
    if (object.kind == AK_J_DICT && ak_j_hash(j, subscript, &hash)) {
        const struct ak_jval *found = ak_j_get(j, object.as.dict, subscript);
        return found ? *found : missing;
    }
    if (is_index && (object.kind == AK_J_STRING ||
                     (object.kind == AK_J_LIST && object.as.list->form <= AK_J_RANGE)))
        return element_at(j, object, ak_j_need_int(j, subscript, "an index"));
    return missing;
}

struct ak_jval ak_j_get_attribute(struct ak_jenv *j, struct ak_jval object, struct ak_jval name)
{
    if (object.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, object);
    struct ak_jval found = get_member(j, object, name);
    if (!ak_j_is_given(found))
        found = get_subscript(j, object, name);
    return ak_j_is_given(found) ? found : ak_j_undefined_member(j, object, name);
}

struct ak_jval ak_j_get_item(struct ak_jenv *j, struct ak_jval object, struct ak_jval subscript)
{
    if (subscript.kind == AK_J_SLICE)
        return slice(j, object, subscript.as.slice);
    if (object.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, object);
    struct ak_jval found = get_subscript(j, object, subscript);
    if (!ak_j_is_given(found) && subscript.kind == AK_J_STRING)
        found = get_member(j, object, subscript);
    return ak_j_is_given(found) ? found : ak_j_undefined_member(j, object, subscript);
}

size_t ak_j_length(struct ak_jenv *j, struct ak_jval v)
{
    switch (v.kind) {
    case AK_J_STRING: return v.as.string->n_chars;
    case AK_J_DICT: return v.as.dict->n;
    case AK_J_UNDEFINED: return 0;
    case AK_J_LOOP: return v.as.loop->items->n;
    case AK_J_LIST:
        if (v.as.list->form != AK_J_GENERATOR)
            return v.as.list->n;
        break;
    default: break;
    }
    ak_j_fail(j, "object of type '%s' has no len()", ak_j_type_name(v));
}

struct ak_jval ak_j_get_attribute_only(struct ak_jenv *j, struct ak_jval object,
                                       struct ak_jval name)
{
    if (object.kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, object);
    struct ak_jval found = get_member(j, object, name);
    return ak_j_is_given(found) ? found : ak_j_undefined_member(j, object, name);
}

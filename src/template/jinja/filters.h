/* What filters share. */
#ifndef AK_TEMPLATE_JINJA_FILTERS_H
#define AK_TEMPLATE_JINJA_FILTERS_H

#include "template/jinja/exec.h"

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

#endif

/* Text that is marked as safe for HTML, as `safe` and `escape` make it: what is added to it is
 * escaped. Nothing else escapes anything. */
#ifndef AK_TEMPLATE_JINJA_MARKUP_H
#define AK_TEMPLATE_JINJA_MARKUP_H

#include "template/jinja/string.h"

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

/* What strings' methods and filters share. */
#ifndef AK_TEMPLATE_JINJA_TEXT_H
#define AK_TEMPLATE_JINJA_TEXT_H

#include "template/jinja/string.h"

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

#endif

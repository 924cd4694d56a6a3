/* Upper, lower and title case, as Python has them. */
#ifndef AK_TEMPLATE_JINJA_CASE_H
#define AK_TEMPLATE_JINJA_CASE_H

#include "template/jinja/string.h"

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

#endif

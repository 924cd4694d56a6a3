/* What templates may call, by name. NULL: there is none of that name. */
#ifndef AK_TEMPLATE_JINJA_BUILTINS_H
#define AK_TEMPLATE_JINJA_BUILTINS_H

#include "template/jinja/value.h"

const struct ak_jbuiltin *ak_j_find_filter(const struct ak_jstr *name);
const struct ak_jbuiltin *ak_j_find_test(const struct ak_jstr *name);
const struct ak_jbuiltin *
ak_j_find_global(const struct ak_jstr *name); /* range, dict, namespace … */
/* A method of the type that v has. `name` may be one that the sandbox refuses: *unsafe then
 * says so, and NULL is given. */
const struct ak_jbuiltin *ak_j_find_method(struct ak_jval v, const struct ak_jstr *name,
                                           bool *unsafe);

const struct ak_jbuiltin *ak_j_find_builtin(const struct ak_jbuiltin *table,
                                            const struct ak_jstr *name);

/* Tables end with a name of NULL. */
extern const struct ak_jbuiltin ak_j_string_methods[], ak_j_string_splits[], ak_j_string_queries[],
    ak_j_dict_methods[], ak_j_loop_methods[];
extern const struct ak_jbuiltin ak_j_text_filters[], ak_j_layout_filters[], ak_j_list_filters[],
    ak_j_choice_filters[], ak_j_order_filters[];

#endif

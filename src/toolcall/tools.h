/* The tools of a request, as OpenAI's list has them: names, and of which types their
 * parameters are, for formats that write every value as plain text. */
#ifndef AK_TOOLCALL_TOOLS_H
#define AK_TOOLCALL_TOOLS_H

#include <jansson.h>

#include "base/buffer.h"

struct ak_tc_tools {
    json_t *list;    /* of {"type": "function", "function": {"name", "parameters"}} */
    json_t *by_name; /* name → its "function" */
};

/* `text` NULL: no tools are known. Refused: what is no list of functions with names, a name twice.
 */
ak_status ak_tc_tools_parse(const char *text, struct ak_tc_tools *out, struct ak_error *error);
void ak_tc_tools_free(struct ak_tc_tools *tools);

static inline bool ak_tc_tools_are_known(const struct ak_tc_tools *tools)
{
    return tools->list != NULL;
}

bool ak_tc_tools_has(const struct ak_tc_tools *tools, const char *name, size_t n);

/* Is the parameter's value a string, whatever it looks like? */
bool ak_tc_tools_wants_string(const struct ak_tc_tools *tools, const char *tool,
                              const char *parameter, size_t n);

/* Adds as JSON the value whose text is given, of a parameter that need not be a string:
 * what it looks like, a string where it looks like nothing. */
ak_status ak_tc_put_value(const char *text, size_t n, struct ak_buffer *out,
                          struct ak_error *error);

/* Adds text to a string of JSON, escaped, without quotes. UTF-8 in. */
ak_status ak_tc_put_escaped(const char *text, size_t n, struct ak_buffer *out,
                            struct ak_error *error);

#endif

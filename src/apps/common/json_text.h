/* JSON texts of users and programs as jansson's values, and back. Numbers that jansson cannot hold
 * keep their digits as wide numbers (base/json/wide.h). */
#ifndef AK_APPS_COMMON_JSON_TEXT_H
#define AK_APPS_COMMON_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum app_json_form {
    APP_JSON_STRICT, /* RFC 8259; a byte order mark is skipped */
    APP_JSON_PYTHON  /* NaN, Infinity and -Infinity too, which Python writes; they are wide numbers
                      */
};

/* `flags`: of json_loadb. NULL: *error, if given, says why. */
json_t *app_json_read(const char *text, size_t n, size_t flags, enum app_json_form form,
                      json_error_t *error);

/* The text of a value, with the digits of wide numbers; `flags`: of json_dumps. Free with free;
 * NULL: out of memory. */
char *app_json_write(const json_t *value, size_t flags);

/* Is the value an object, and not a wide number? */
bool app_json_is_object(const json_t *value);

#endif

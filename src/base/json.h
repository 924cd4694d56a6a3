/* JSON parser: jansson with limits on depth and number of values, because its input is not trusted.
 * The library parses every complete JSON text with it. */
#ifndef AK_BASE_JSON_H
#define AK_BASE_JSON_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

enum {
    AK_JSON_DEPTH_MAX = 64,       /* a tokenizer.json nests about ten levels */
    AK_JSON_VALUES_MAX = 1 << 22, /* keys and values; the largest vocabularies have a million */
};

/* Parses one value that fills the n bytes, whitespace aside. The caller frees *out with
 * json_decref. AKUNU_ERROR_FORMAT: not UTF-8, not JSON, too deep, too many values, or an object
 * with a duplicate key (named). Depth and number of values are checked before anything is
 * allocated. An integer beyond 64 bits becomes a real, and a number beyond a double a wide number
 * (base/json/wide.h). */
ak_status ak_json_parse(const void *bytes, size_t n, json_t **out, struct ak_error *error);

/* For files that Python may have written: a byte order mark is skipped; NaN, Infinity and -Infinity
 * are wide numbers. */
ak_status ak_json_parse_file(const void *bytes, size_t n, json_t **out, struct ak_error *error);

/* As ak_json_parse_file, and integers beyond 64 bits are wide numbers too. For schemas and tools,
 * whose numbers keep their digits. */
ak_status ak_json_parse_exact(const void *bytes, size_t n, json_t **out, struct ak_error *error);

/* As ak_json_parse_exact, and strings may contain U+0000. For conversations. */
ak_status ak_json_parse_input(const void *bytes, size_t n, json_t **out, struct ak_error *error);

/* Kind of a value, for messages: "an object", "a list", … */
const char *ak_json_kind(const json_t *value);

#endif

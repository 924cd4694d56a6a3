/* JSON by jansson, with the limits that files from strangers need. */
#ifndef AK_BASE_JSON_H
#define AK_BASE_JSON_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

enum {
    AK_JSON_DEPTH_MAX = 64,       /* a tokenizer nests some ten deep */
    AK_JSON_VALUES_MAX = 1 << 22, /* keys and values; the largest vocabularies have a million */
};

/* Parses one value that fills the n bytes, blanks aside. The caller frees *out with
 * json_decref. Refused with AKUNU_ERROR_FORMAT: what is no UTF-8, no JSON, nested
 * too deep, of too many values, or has a key twice in one object (named). Depth and
 * number are looked at before anything is allocated. Where one integer is beyond 64
 * bits, which Python writes, all of the text's integers are given as reals. */
ak_status ak_json_parse(const void *bytes, size_t n, json_t **out, struct ak_error *error);

/* The same for what a program or a person gives instead of a file: a string may have U+0000,
 * and integers stay integers: one beyond 64 bits is refused. */
ak_status ak_json_parse_input(const void *bytes, size_t n, json_t **out, struct ak_error *error);

/* "an object", "a list", …: what a value is, for messages. */
const char *ak_json_kind(const json_t *value);

#endif

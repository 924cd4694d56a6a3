/* Jinja, as chat templates are written in it: what jinja2's immutable sandbox does with
 * trim_blocks, lstrip_blocks, loop controls and transformers' additions.
 *
 *   text → tokens → nodes           lexer.c, parser.c, expression.c, names.c
 *   nodes + variables → text        exec.c, eval.c, call.c
 *   what values are and can do      value.h, string.c, compare.c, repr.c, operator.c,
 *                                   attribute.c
 *   what templates may call         methods_*.c, filters_*.c, tests.c, functions.c
 *
 * ak_jinja_… is the interface; ak_j_… is known inside this folder only.
 *
 * Templates are hostile: steps, depth, memory and output are limited, and nothing that a
 * template can name reaches beyond its variables. */
#ifndef AK_TEMPLATE_JINJA_JINJA_H
#define AK_TEMPLATE_JINJA_JINJA_H

#include <jansson.h>

#include "base/error.h"

enum {
    AK_JINJA_TEMPLATE_BYTES_MAX = 4 << 20,
    AK_JINJA_PARSED_BYTES_MAX = 256 << 20, /* of a template's nodes */
    /* that a rendering makes, what it no longer needs included */
    AK_JINJA_MEMORY_BYTES_MAX = 512 << 20,
    AK_JINJA_OUTPUT_BYTES_MAX = 128 << 20,
    AK_JINJA_STEPS_MAX = 100 << 20, /* nodes run, and 16 bytes or an element handled */
    /* nodes run inside of each other: macros that call themselves */
    AK_JINJA_DEPTH_MAX = 1000,
    AK_JINJA_NESTING_MAX = 200, /* of a template's text */
};

/* A parsed template, immutable. */
struct ak_jinja;

/* Parses n bytes of UTF-8. The text is copied. AKUNU_ERROR_FORMAT: what is no template, with
 * line and column; AKUNU_ERROR_UNSUPPORTED: a tag, a filter or a test that is not known. */
ak_status ak_jinja_parse(const char *text, size_t n, struct ak_jinja **out, struct ak_error *error);
void ak_jinja_free(struct ak_jinja *template); /* NULL allowed */

/* Renders with the members of the object `variables`. now: seconds since 1970 for
 * strftime_now, 0: the clock. *out is terminated and the caller's to free (ak_free).
 * AKUNU_ERROR_ARGUMENT: the template refuses its input, or fails with it (line and column);
 * AKUNU_ERROR_UNSUPPORTED: it goes beyond a limit. */
ak_status ak_jinja_render(const struct ak_jinja *template, const json_t *variables, int64_t now,
                          char **out, size_t *n_bytes, struct ak_error *error);

#endif

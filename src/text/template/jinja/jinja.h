/* Jinja engine for chat templates: behaves as jinja2's immutable sandbox with trim_blocks,
 * lstrip_blocks, loop controls and the additions of transformers.
 *
 *   text → tokens → nodes           lexer.c, parser.c, expression.c, names.c
 *   nodes + variables → text        exec.c, eval.c, call.c, attribute.c, operator.c
 *   values                          value.c, string.c, compare.c, repr.c, number.c, json.c
 *   builtins                        methods*.c, filters_*.c, tests.c, functions.c, case.c,
 *                                   format.c, percent.c
 *
 * ak_jinja_* is the interface. ak_j_* is internal to this folder, except for the stripping of
 * strings (string.h), which render.c uses too.
 *
 * Templates are hostile: steps, depth, memory and output are limited, and a template reaches
 * nothing beyond its variables. */
#ifndef AK_TEXT_TEMPLATE_JINJA_JINJA_H
#define AK_TEXT_TEMPLATE_JINJA_JINJA_H

#include <jansson.h>

#include "base/error.h"

enum {
    AK_JINJA_TEMPLATE_BYTES_MAX = 4 << 20,
    AK_JINJA_PARSED_BYTES_MAX = 256 << 20, /* nodes of a template */
    /* all that a rendering allocates; nothing is freed before its end */
    AK_JINJA_MEMORY_BYTES_MAX = 512 << 20,
    AK_JINJA_OUTPUT_BYTES_MAX = 128 << 20,
    AK_JINJA_STEPS_MAX = 100 << 20, /* a step: a node, an element, or 16 bytes of text */
    AK_JINJA_DEPTH_MAX = 1000,      /* recursion while rendering, as of macros */
    AK_JINJA_NESTING_MAX = 200,     /* recursion while parsing, and open brackets */
};

/* A parsed template, immutable. */
struct ak_jinja;

/* Parses n bytes of UTF-8, which are copied. AKUNU_ERROR_FORMAT: syntax error, with line and
 * column; AKUNU_ERROR_UNSUPPORTED: unknown tag, filter or test. */
ak_status ak_jinja_parse(const char *text, size_t n, struct ak_jinja **out, struct ak_error *error);
void ak_jinja_free(struct ak_jinja *template); /* NULL allowed */

/* Renders with the members of the object `variables`. now: seconds since 1970 for strftime_now; 0:
 * the clock. *out is NUL-terminated; free it with ak_free. AKUNU_ERROR_ARGUMENT: the template
 * refuses its input or fails on it, with line and column; AKUNU_ERROR_UNSUPPORTED: a limit is
 * exceeded. */
ak_status ak_jinja_render(const struct ak_jinja *template, const json_t *variables, int64_t now,
                          char **out, size_t *n_bytes, struct ak_error *error);

#endif

/* Schema compiler: JSON Schema (draft 2020-12) to a grammar, so that replies match the schema.
 *
 * Unless `lax` is set, the grammar allows only what the schema allows, and a keyword that it cannot
 * enforce is AKUNU_ERROR_UNSUPPORTED; the message names the keyword and its place. docs/grammar.md
 * says where the grammar allows less. */
#ifndef AK_TEXT_GRAMMAR_SCHEMA_SCHEMA_H
#define AK_TEXT_GRAMMAR_SCHEMA_SCHEMA_H

#include <jansson.h>

#include "base/error.h"
#include "text/grammar/grammar.h"

struct ak_grammar_builder;

enum ak_schema_form {
    /* for generation: members in the order of the schema, little whitespace, plain spelling */
    AK_SCHEMA_WRITING,
    AK_SCHEMA_READING, /* any JSON text */
};

struct ak_schema_options {
    enum ak_schema_form form;
    bool lax; /* ignore unsupported keywords, with a warning to `log` */
    struct ak_log log;
};

ak_status ak_grammar_from_schema(const json_t *schema, const struct ak_schema_options *options,
                                 struct ak_grammar **out, struct ak_error *error);

/* The same from JSON text. */
ak_status ak_grammar_from_schema_text(const char *text, size_t n_bytes,
                                      const struct ak_schema_options *options,
                                      struct ak_grammar **out, struct ak_error *error);

/* The value that `schema` describes, as an expression of the grammar that `b` builds. `root` is the
 * document that `$ref` refers to; `schema` is `root` or a part of it. */
uint32_t ak_schema_build(struct ak_grammar_builder *b, const json_t *root, const json_t *schema,
                         const struct ak_schema_options *options);

#endif

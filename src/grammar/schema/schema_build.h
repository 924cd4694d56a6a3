/* A value that a schema describes, as an expression of a grammar that is being built. */
#ifndef AK_GRAMMAR_SCHEMA_SCHEMA_BUILD_H
#define AK_GRAMMAR_SCHEMA_SCHEMA_BUILD_H

#include "grammar/builder.h"
#include "grammar/schema/schema.h"

/* `root` is what references begin at; `schema` is in it, or is it. */
uint32_t ak_schema_build(struct ak_grammar_builder *b, const json_t *root, const json_t *schema,
                         const struct ak_schema_options *options);

#endif

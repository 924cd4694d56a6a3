/* A value that a schema describes, as a part of a grammar that is being built. */
#ifndef AK_TEXT_GRAMMAR_SCHEMA_BUILD_H
#define AK_TEXT_GRAMMAR_SCHEMA_BUILD_H

#include "grammar/build.h"
#include "grammar/schema/schema.h"

/* `root` is what references begin at; `schema` is in it, or is it. */
uint32_t ak_build_schema(struct ak_build *b, const json_t *root, const json_t *schema,
                         const struct ak_schema_options *options);

#endif

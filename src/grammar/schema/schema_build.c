#include "grammar/schema/schema_build.h"

#include "grammar/schema/compiler.h"

uint32_t ak_schema_build(struct ak_grammar_builder *b, const json_t *root, const json_t *schema,
                         const struct ak_schema_options *options)
{
    unsigned trials = 0;
    struct ak_schema_compiler c = { .root = root,
                                    .options = options,
                                    .reading = options->form == AK_SCHEMA_READING,
                                    .trials = &trials };
    struct ak_schema_terms t = { 0 };

    if (!ak_gb_ok(b))
        return AK_GB_NOTHING;
    c.builder = *b;
    c.derived = json_array();
    ak_schema_terms_add(&c, &t, schema, 0);
    uint32_t value = ak_schema_compile(&c, &t);
    *b = c.builder;
    ak_schema_terms_free(&t);
    ak_schema_compiler_free(&c);
    return value;
}

#include "grammar/schema/schema_build.h"

#include "grammar/schema/schema_parts.h"

uint32_t ak_build_schema(struct ak_build *b, const json_t *root, const json_t *schema,
                         const struct ak_schema_options *options)
{
    unsigned trials = 0;
    struct ak_compiler c = { .root = root,
                             .options = options,
                             .reading = options->form == AK_SCHEMA_READING,
                             .trials = &trials };
    struct ak_terms t = { 0 };

    if (!ak_build_ok(b))
        return AK_BUILD_NOTHING;
    c.build = *b;
    c.made = json_array();
    ak_terms_add(&c, &t, schema, 0);
    uint32_t value = ak_schema_compile(&c, &t);
    *b = c.build;
    ak_terms_free(&t);
    ak_compiler_free(&c);
    return value;
}

#include "grammar/schema/schema.h"

#include "base/json.h"
#include "base/mem.h"
#include "grammar/schema/schema_parts.h"

void ak_compiler_begin(struct ak_compiler *c, struct ak_error *error)
{
    ak_build_begin(&c->build, error);
}

void ak_compiler_free(struct ak_compiler *c)
{
    for (uint32_t i = 0; i < c->n_rules; i++)
        ak_free(c->rules[i].terms);
    for (uint32_t i = 0; i < c->n_known; i++) {
        ak_free(c->known[i]->text);
        ak_dfa_free(&c->known[i]->dfa);
        ak_free(c->known[i]);
    }
    for (uint32_t i = 0; i < c->n_char_parts; i++)
        ak_char_set_free(&c->char_sets[i]);
    ak_free(c->rules);
    ak_free(c->known);
    ak_free(c->checked);
    ak_free(c->char_sets);
    ak_free(c->char_parts);
    json_decref(c->made);
}

ak_status ak_grammar_from_schema(const json_t *schema, const struct ak_schema_options *options,
                                 struct ak_grammar **out, struct ak_error *error)
{
    unsigned trials = 0;
    struct ak_compiler c = { .root = schema,
                             .options = options,
                             .reading = options->form == AK_SCHEMA_READING,
                             .trials = &trials };
    struct ak_terms t = { 0 };
    *out = NULL;
    ak_compiler_begin(&c, error);
    c.made = json_array();
    ak_terms_add(&c, &t, schema, 0);
    uint32_t value = ak_schema_compile(&c, &t),
             space = c.reading ? ak_schema_space(&c) : (uint32_t)AK_BUILD_EMPTY;
    uint32_t root = ak_build_two(&c.build, space, ak_build_two(&c.build, value, space));
    ak_status status = ak_build_finish(&c.build, root, out);
    ak_terms_free(&t);
    ak_compiler_free(&c);
    return status;
}

ak_status ak_grammar_from_schema_text(const char *text, size_t n_bytes,
                                      const struct ak_schema_options *options,
                                      struct ak_grammar **out, struct ak_error *error)
{
    json_t *schema;
    *out = NULL;
    ak_status status = ak_json_parse(text, n_bytes, &schema, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, "the schema");
        return status;
    }
    status = ak_grammar_from_schema(schema, options, out, error);
    json_decref(schema);
    return status;
}

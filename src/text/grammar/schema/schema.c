/* Entry points of the schema compiler: a schema as a grammar of its own, or as an expression of a
 * grammar that is being built, and the compiler's lifetime. The work is in compile.c. */
#include "text/grammar/schema/schema.h"

#include "base/json.h"
#include "base/mem.h"
#include "text/grammar/schema/compiler.h"

void ak_schema_compiler_begin(struct ak_schema_compiler *c, struct ak_error *error)
{
    ak_gb_begin(&c->builder, error);
}

void ak_schema_compiler_free(struct ak_schema_compiler *c)
{
    for (uint32_t i = 0; i < c->n_rules; i++)
        ak_free(c->rules[i].terms);
    for (uint32_t i = 0; i < c->n_patterns; i++) {
        ak_free(c->patterns[i]->text);
        ak_grammar_dfa_free(&c->patterns[i]->dfa);
        ak_free(c->patterns[i]);
    }
    for (uint32_t i = 0; i < c->n_char_exprs; i++)
        ak_grammar_char_set_free(&c->char_sets[i]);
    ak_free(c->rules);
    ak_free(c->patterns);
    ak_free(c->checked_schemas);
    ak_free(c->char_sets);
    ak_free(c->char_exprs);
    json_decref(c->made);
}

ak_status ak_grammar_from_schema(const json_t *schema, const struct ak_schema_options *options,
                                 struct ak_grammar **out, struct ak_error *error)
{
    unsigned trials = 0;
    struct ak_schema_compiler c = { .root = schema,
                                    .options = options,
                                    .reading = options->form == AK_SCHEMA_READING,
                                    .trials = &trials };
    struct ak_schema_terms t = { 0 };
    *out = NULL;
    ak_schema_compiler_begin(&c, error);
    c.made = json_array();
    ak_schema_terms_add(&c, &t, schema, 0);
    uint32_t value = ak_schema_compile(&c, &t),
             space = c.reading ? ak_schema_build_space(&c) : (uint32_t)AK_GB_EMPTY;
    uint32_t root = ak_gb_concat(&c.builder, space, ak_gb_concat(&c.builder, value, space));
    ak_status status = ak_gb_finish(&c.builder, root, out);
    ak_schema_terms_free(&t);
    ak_schema_compiler_free(&c);
    return status;
}

ak_status ak_grammar_from_schema_text(const char *text, size_t n_bytes,
                                      const struct ak_schema_options *options,
                                      struct ak_grammar **out, struct ak_error *error)
{
    json_t *schema;
    *out = NULL;
    ak_status status = ak_json_parse_exact(text, n_bytes, &schema, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, "the schema");
        return status;
    }
    status = ak_grammar_from_schema(schema, options, out, error);
    json_decref(schema);
    return status;
}

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
    c.made = json_array();
    ak_schema_terms_add(&c, &t, schema, 0);
    uint32_t value = ak_schema_compile(&c, &t);
    *b = c.builder;
    ak_schema_terms_free(&t);
    ak_schema_compiler_free(&c);
    return value;
}

/* A byte of options, a JSON Schema and, behind the first NUL, a text to match. What the
 * form for writing accepts, that for reading must accept; behind the text masks are looked at. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "masks.h"
#include "text/grammar/schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool accepts(const char *schema, size_t n, const char *text, size_t n_text,
                    enum ak_schema_form form, bool lax, bool *known)
{
    struct ak_schema_options options = { .form = form, .lax = lax };
    struct ak_error error = { 0 };
    struct ak_grammar *g = NULL;
    struct ak_grammar_matcher *m = NULL;
    size_t taken = 0;
    *known = ak_grammar_from_schema_text(schema, n, &options, &g, &error) == AKUNU_OK &&
             ak_grammar_matcher_create(g, NULL, &m, &error) == AKUNU_OK &&
             ak_grammar_matcher_accept_bytes(m, text, n_text, &taken, &error) == AKUNU_OK;
    if (*known)
        masks_check(g, text, n_text);
    bool yes = *known && taken == n_text && ak_grammar_matcher_is_accepting(m);
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
    return yes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *schema = (const char *)data + 1, *split = memchr(schema, 0, size - 1);
    size_t n = split ? (size_t)(split - schema) : size - 1, n_text = split ? size - n - 2 : 0;
    const char *text = split ? split + 1 : "";
    bool lax = data[0] & 1, written_known, read_known;
    bool written = accepts(schema, n, text, n_text, AK_SCHEMA_WRITING, lax, &written_known);
    bool was_read = accepts(schema, n, text, n_text, AK_SCHEMA_READING, lax, &read_known);
    if (written && read_known && !was_read)
        abort();
    return 0;
}

/* A text as GBNF and, behind the first NUL, a text to match, behind which masks are looked at. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "masks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *split = size > 0 ? memchr(data, 0, size) : NULL;
    size_t n = split ? (size_t)(split - text) : size, taken = 0;
    struct ak_error error = { 0 };
    struct ak_grammar *g = NULL;
    struct ak_grammar_matcher *m = NULL;
    if (ak_grammar_from_gbnf(text, n, "root", &g, &error) == AKUNU_OK &&
        ak_grammar_matcher_create(g, NULL, &m, &error) == AKUNU_OK && split) {
        ak_grammar_matcher_accept_bytes(m, split + 1, size - n - 1, &taken, &error);
        masks_check(g, split + 1, size - n - 1);
    }
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
    return 0;
}

/* A grammar whose texts may begin with a space: speech models begin every text with one. */
#include "text/grammar/builder.h"

ak_status ak_grammar_allow_space(const struct ak_grammar *g, struct ak_grammar **out,
                                 struct ak_error *error)
{
    struct ak_grammar_builder b;
    *out = NULL;
    ak_gb_begin_copy(&b, g, error);
    uint32_t space = ak_gb_repeat(&b, ak_gb_text(&b, " "), 0, 1);
    return ak_gb_finish(&b, ak_gb_concat(&b, space, g->root), out);
}

/* Construction of a lazy grammar, which constrains the text only after a trigger. The grammar of
 * the continuation is copied into a builder, and a rule that searches for the triggers becomes the
 * root. */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/builder.h"

ak_status ak_grammar_make_lazy(const struct ak_grammar *continuation,
                               const struct ak_grammar_trigger *triggers, size_t n, bool again,
                               struct ak_grammar **out, struct ak_error *error)
{
    struct ak_grammar_builder b;
    *out = NULL;
    ak_gb_begin_copy(&b, continuation, error);
    uint32_t rule = ak_gb_declare_rule(&b, "lazy", strlen("lazy"));
    uint32_t rest =
        again ? ak_gb_concat(&b, continuation->root, ak_gb_rule_ref(&b, rule)) : continuation->root;
    struct ak_gb_keyword *keywords = ak_alloc(n, sizeof *keywords);
    for (size_t i = 0; keywords && i < n; i++)
        keywords[i] = (struct ak_gb_keyword){ .text = triggers[i].text,
                                              .n = triggers[i].n,
                                              .continuation = rest };
    if (!keywords)
        ak_gb_fail(&b, AKUNU_ERROR_MEMORY, "no memory for the triggers");
    else
        ak_gb_define_rule(&b, rule, ak_gb_until(&b, keywords, n, true));
    ak_free(keywords);
    return ak_gb_finish(&b, ak_gb_rule_ref(&b, rule), out);
}

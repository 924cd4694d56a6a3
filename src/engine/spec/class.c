/* The class of transformers that a folder was saved from: the first name under "architectures" in
 * its config.json. It tells which of the stored tensors the model uses. */
#include <string.h>

#include "engine/spec/stages.h"

struct ak_text ak_spec_class(const struct ak_provider *p)
{
    struct ak_meta list, name;
    if (!ak_provider_find_meta(p, "architectures", &list) || list.kind != AK_META_ARRAY ||
        !ak_provider_element(p, &list, 0, &name) || name.kind != AK_META_STRING)
        return (struct ak_text){ NULL, 0 };
    return (struct ak_text){ name.as.string, (uint32_t)name.n };
}

static bool ends_in(struct ak_text name, const char *ending)
{
    size_t n = strlen(ending);
    return name.n >= n && memcmp(name.bytes + name.n - n, ending, n) == 0;
}

bool ak_spec_is_classifier(const struct ak_provider *p)
{
    return ends_in(ak_spec_class(p), "ForSequenceClassification");
}

bool ak_spec_has_output_matrix(const struct ak_provider *p)
{
    static const char *const endings[] = { "ForCausalLM", "LMHeadModel",
                                           "ForConditionalGeneration" };
    struct ak_text name = ak_spec_class(p), modules;
    bool found = name.n == 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        found = found || ends_in(name, endings[i]);
    return found && !ak_provider_file(p, "modules.json", &modules);
}

/* Chat templates: the input is a template. What is not refused is rendered over a small
 * conversation. */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "text/template/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char variables[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be \\u00fc.\"}, {\"role\": \"user\", "
    "\"content\": [{\"type\": \"text\", \"text\": \"Hi\"}]},"
    "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": "
    "\"f\", \"arguments\": {\"a\": 1.5, \"b\": [null, true]}}}]}],"
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": "
    "{\"type\": \"object\", \"properties\": {}}}}],"
    "\"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"n\": -7, \"x\": 1e22, \"s\": \"a "
    "b\\tc\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static json_t *context;
    struct ak_error error;
    struct ak_jinja *template;
    char *out;
    size_t n_out;
    if (!context)
        context = json_loads(variables, 0, NULL);
    if (ak_jinja_parse((const char *)data, n, &template, &error) != AKUNU_OK)
        return 0;
    if (ak_jinja_render(template, context, 1721999109, &out, &n_out, &error) == AKUNU_OK)
        ak_free(out);
    ak_jinja_free(template);
    return 0;
}

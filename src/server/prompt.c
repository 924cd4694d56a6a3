/* Prompts of requests that are continued as they are: texts, and lists of ids and texts. */
#include <stdlib.h>
#include <string.h>

#include "server/job.h"

bool server_fail_prompt(struct http_exchange *x, const json_t *found)
{
    server_fail_member(x, "prompt", found,
                       "a text, a list of token ids, or a list of texts or of such lists");
    return false;
}

/* Appends a text's ids. False: it has answered. */
static bool add_text(struct server_model *m, struct http_exchange *x, const json_t *text,
                     unsigned flags, struct server_prompt *out)
{
    const struct akunu_tokenizer *t = m->loaded.tokenizer;
    const char *bytes = json_string_value(text);
    size_t n_bytes = json_string_length(text);
    int64_t n = akunu_tokenizer_encode(t, bytes, n_bytes, flags, NULL, 0);
    akunu_token *larger =
        n >= 0 ? realloc(out->ids, (out->n + (size_t)n + 1) * sizeof *larger) : NULL;
    if (!larger) {
        server_fail_memory(x);
        return false;
    }
    out->ids = larger;
    akunu_tokenizer_encode(t, bytes, n_bytes, flags, out->ids + out->n, (size_t)n);
    out->n += (size_t)n;
    return true;
}

static bool add_id(struct http_exchange *x, const json_t *id, struct server_prompt *out)
{
    json_int_t value = json_integer_value(id);
    akunu_token *larger = realloc(out->ids, (out->n + 1) * sizeof *larger);
    if (!larger) {
        server_fail_memory(x);
        return false;
    }
    out->ids = larger;
    if (!json_is_integer(id) || value < 0 || value > INT32_MAX)
        return server_fail_prompt(x, id);
    out->ids[out->n++] = (akunu_token)value;
    return true;
}

bool server_read_prompt(struct server_model *m, struct http_exchange *x, const json_t *one,
                        struct server_prompt *out)
{
    unsigned flags = AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL;
    bool good = json_is_string(one) || (json_is_array(one) && json_array_size(one) > 0);
    if (!good)
        return server_fail_prompt(x, one);
    if (json_is_string(one))
        good = add_text(m, x, one, flags, out);
    for (size_t i = 0; good && i < json_array_size(one); i++) {
        const json_t *part = json_array_get(one, i);
        good = json_is_string(part) ?
                   add_text(m, x, part, i == 0 ? flags : AKUNU_PARSE_SPECIAL, out) :
                   add_id(x, part, out);
    }
    akunu_token bos = akunu_tokenizer_bos(m->loaded.tokenizer);
    if (good && out->n == 0 && bos >= 0) /* an empty text is the beginning of any */
        out->ids[out->n++] = bos;
    return good;
}

/* Prompts of requests that are continued or embedded as they are: texts, and lists of ids and
 * texts. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/json_text.h"
#include "apps/server/job.h"

static bool refuse_prompt(struct http_exchange *x, const char *name, const json_t *found)
{
    server_fail_member(x, name, found,
                       "a text, a list of token ids and texts, or a list of such prompts");
    return false;
}

/* Makes room for n more tokens, and one that begins the prompt. False: out of memory. */
static bool grow_ids(struct server_prompt *out, size_t n)
{
    akunu_token *ids = realloc(out->ids, (out->n + n + 1) * sizeof *ids);
    out->ids = ids ? ids : out->ids;
    bool *is_text = realloc(out->is_text, (out->n + n + 1) * sizeof *is_text);
    out->is_text = is_text ? is_text : out->is_text;
    return ids && is_text;
}

/* Does the text begin with the token's text, or end with it? */
static bool holds(const struct server_model *m, const struct app_text *text, akunu_token token,
                  bool at_end)
{
    size_t n;
    char *own = app_token_bytes(m->loaded.tokenizer, token, AKUNU_CONTINUE, &n);
    bool found = own && n > 0 && n <= text->n &&
                 memcmp(at_end ? text->bytes + text->n - n : text->bytes, own, n) == 0;
    free(own);
    return found;
}

/* Finds BOS and EOS that the tokenizer added to a text. */
static void mark_added(const struct server_model *m, const struct app_text *text,
                       const akunu_token *ids, bool *is_text, size_t n)
{
    akunu_token bos = akunu_tokenizer_bos(m->loaded.tokenizer),
                eos = akunu_tokenizer_special(m->loaded.tokenizer, AKUNU_TOKEN_EOS);
    if (n > 0 && ids[0] == bos && (!holds(m, text, bos, false) || (n > 1 && ids[1] == bos)))
        is_text[0] = false;
    if (n > 1 && ids[n - 1] == eos && (!holds(m, text, eos, true) || ids[n - 2] == eos))
        is_text[n - 1] = false;
}

/* Appends a text's ids. False: it has answered. */
static bool append_text(struct server_model *m, struct http_exchange *x, const json_t *text,
                        unsigned flags, struct akunu_embedding_text *how, struct server_prompt *out)
{
    const struct app_text whole = { (char *)(uintptr_t)json_string_value(text),
                                    json_string_length(text) };
    akunu_token *ids = NULL;
    size_t n = 0;
    bool good =
        (how ? app_encode_embedding(m->loaded.model, &whole, how, &ids, &n) :
               app_tokenize_text(m->loaded.tokenizer, &whole, flags, &ids, &n)) == APP_EXIT_OK &&
        grow_ids(out, n);
    if (good) {
        memcpy(out->ids + out->n, ids, n * sizeof *ids);
        memset(out->is_text + out->n, true, n * sizeof *out->is_text);
        if (flags & AKUNU_ADD_SPECIAL)
            mark_added(m, &whole, ids, out->is_text + out->n, n);
        out->n += n;
        out->n_whole = how ? how->n_whole : 0;
    }
    free(ids);
    if (!good)
        server_fail_memory(x);
    return good;
}

static bool add_id(struct server_model *m, struct http_exchange *x, const char *name,
                   const json_t *id, struct server_prompt *out)
{
    json_int_t value = json_integer_value(id);
    if (!grow_ids(out, 1)) {
        server_fail_memory(x);
        return false;
    }
    if (!json_is_integer(id))
        return refuse_prompt(x, name, id);
    if (value < 0 || value >= m->loaded.info.vocab_size) {
        server_fail(x, 400, name, NULL, "%s has the token %lld, and the vocabulary has %lld", name,
                    (long long)value, (long long)m->loaded.info.vocab_size);
        return false;
    }
    out->is_text[out->n] = false;
    out->ids[out->n++] = (akunu_token)value;
    return true;
}

/* The text of {"prompt_string": …}, as llama-server has it; NULL: it is none. */
static const json_t *prompt_string(const json_t *prompt)
{
    const json_t *media = json_object_get(prompt, "multimodal_data");
    const json_t *text = json_object_get(prompt, "prompt_string");
    return json_is_string(text) && json_array_size(media) == 0 && !json_is_string(media) ? text :
                                                                                           NULL;
}

static bool read_one(struct server_model *m, struct http_exchange *x, const char *name,
                     const json_t *prompt, unsigned flags, struct akunu_embedding_text *how,
                     struct server_prompt *out)
{
    const json_t *text = app_json_is_object(prompt) ? prompt_string(prompt) : prompt;
    bool good = true;
    if (!json_is_string(text) && json_array_size(text) == 0)
        return refuse_prompt(x, name, prompt);
    if (json_is_string(text))
        good = append_text(m, x, text, flags, how, out);
    for (size_t i = 0; good && i < json_array_size(text); i++) {
        const json_t *part = json_array_get(text, i);
        unsigned own = i == 0 ? flags : flags & ~(unsigned)AKUNU_ADD_SPECIAL;
        good = json_is_string(part) ? append_text(m, x, part, own, NULL, out) :
                                      add_id(m, x, name, part, out);
    }
    akunu_token bos = akunu_tokenizer_bos(m->loaded.tokenizer);
    if (good && out->n == 0 && bos >= 0) { /* an empty text is the beginning of any */
        out->is_text[0] = false;
        out->ids[out->n++] = bos;
    }
    return good;
}

/* A list with a number is one prompt. */
static bool has_number(const json_t *list)
{
    bool found = false;
    for (size_t i = 0; !found && i < json_array_size(list); i++)
        found = json_is_number(json_array_get(list, i));
    return found;
}

bool server_read_prompts(struct server_model *m, struct http_exchange *x, const char *name,
                         const json_t *found, unsigned flags, struct akunu_embedding_text *how,
                         size_t max, struct server_prompts *out)
{
    bool many = json_is_array(found) && !has_number(found);
    size_t n = many ? json_array_size(found) : 1;
    *out = (struct server_prompts){ .is_list = many };
    if (n == 0)
        return refuse_prompt(x, name, found);
    if (n > max) {
        server_fail(x, 400, name, NULL, "%s has %zu prompts; expected at most %zu", name, n, max);
        return false;
    }
    out->list = calloc(n, sizeof *out->list);
    if (!out->list) {
        server_fail_memory(x);
        return false;
    }
    out->n = n;
    for (size_t i = 0; i < n; i++)
        if (!read_one(m, x, name, many ? json_array_get(found, i) : found, flags, how,
                      &out->list[i]))
            return false;
    return true;
}

void server_free_prompts(struct server_prompts *prompts)
{
    for (size_t i = 0; i < prompts->n; i++) {
        free(prompts->list[i].ids);
        free(prompts->list[i].is_text);
    }
    free(prompts->list);
    *prompts = (struct server_prompts){ .n = 0 };
}

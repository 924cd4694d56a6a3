/* Routes of llama-server: health, properties, tokens, templates. */
#include "apps/server/job.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/conversation.h"
#include "apps/common/input.h"
#include "apps/common/output.h"

void server_health(struct server *s, struct http_exchange *x)
{
    if (s->state == SERVER_READY && !s->drains)
        server_answer(x, 200, json_pack("{s:s}", "status", "ok"));
    else
        server_fail(x, 503, NULL, NULL,
                    s->drains ? "the server is shutting down" : "the model is loading");
}

struct server_commit server_props(struct server_model *m, struct http_exchange *x,
                                  const json_t *body)
{
    const struct akunu_tokenizer *t = m->loaded.tokenizer;
    (void)body;
    akunu_token bos = akunu_tokenizer_bos(t), eos = akunu_tokenizer_special(t, AKUNU_TOKEN_EOS);
    uint32_t n_ctx = akunu_scheduler_context(m->scheduler);
    server_answer(
        x, 200,
        json_pack("{s:{s:I}, s:I, s:s, s:s, s:o, s:o, s:s}", "default_generation_settings", "n_ctx",
                  (json_int_t)n_ctx, "total_slots", (json_int_t)m->options->server.n_sequences,
                  "model_alias", m->id, "chat_template", m->template_text ? m->template_text : "",
                  "bos_token", server_token_text(m, bos, NULL), "eos_token",
                  server_token_text(m, eos, NULL), "build_info", akunu_version()));
    return server_answered;
}

/* ---- Tokens ------------------------------------------------------------- */
/* NULL: out of memory. */
static json_t *tokens_of(const struct server_model *m, const akunu_token *ids, size_t n,
                         bool with_pieces)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *one = with_pieces ? json_pack("{s:i, s:o}", "id", (int)ids[i], "piece",
                                              server_token_text(m, ids[i], NULL)) :
                                    json_integer(ids[i]);
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

struct server_commit server_tokenize(struct server_model *m, struct http_exchange *x,
                                     const json_t *body)
{
    bool special = false, parse = true, pieces = false;
    const json_t *content = json_object_get(body, "content");
    if (!json_is_string(content))
        server_fail_member(x, "content", content, "a string");
    else if (server_get_bool(x, body, "add_special", &special) &&
             server_get_bool(x, body, "parse_special", &parse) &&
             server_get_bool(x, body, "with_pieces", &pieces)) {
        const struct app_text text = { (char *)(uintptr_t)json_string_value(content),
                                       json_string_length(content) };
        unsigned flags = (special ? AKUNU_ADD_SPECIAL : 0u) | (parse ? AKUNU_PARSE_SPECIAL : 0u);
        akunu_token *ids = NULL;
        size_t n = 0;
        bool good = app_tokenize_text(m->loaded.tokenizer, &text, flags, &ids, &n) == APP_EXIT_OK;
        json_t *value = good ? json_pack("{s:o}", "tokens", tokens_of(m, ids, n, pieces)) : NULL;
        free(ids);
        server_answer(x, 200, value);
    }
    return server_answered;
}

struct server_commit server_detokenize(struct server_model *m, struct http_exchange *x,
                                       const json_t *body)
{
    const json_t *list = json_object_get(body, "tokens");
    size_t n = json_array_size(list);
    akunu_token *ids = malloc((n + 1) * sizeof *ids);
    bool good = json_is_array(list);
    for (size_t i = 0; ids && good && i < n; i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t value = json_integer_value(id);
        good = json_is_integer(id) && value >= 0 && value < m->loaded.info.vocab_size;
        ids[i] = (akunu_token)value;
    }
    if (!good) {
        server_fail_member(x, "tokens", list, "a list of token ids of the vocabulary");
    } else if (ids) {
        int64_t n_bytes = akunu_tokenizer_decode(m->loaded.tokenizer, ids, n, 0, NULL, 0);
        char *text = n_bytes >= 0 ? malloc((size_t)n_bytes + 1) : NULL;
        if (text)
            akunu_tokenizer_decode(m->loaded.tokenizer, ids, n, 0, text, (size_t)n_bytes);
        server_answer(x, 200,
                      text ? json_pack("{s:o}", "content", app_json_text(text, (size_t)n_bytes)) :
                             NULL);
        free(text);
    } else {
        server_fail_memory(x);
    }
    free(ids);
    return server_answered;
}

/* GET /v1/models and /v1/models/ID. */
#include "apps/server/server.h"

#include <string.h>

json_t *server_capabilities(const struct server_model *m)
{
    if (m->scheduler)
        return json_pack("[s, s, s]", "completion", "tools", "embedding");
    return json_pack("[s]", m->speech ? "transcription" : "embedding");
}

static json_t *value_of(const struct server_model *m)
{
    const struct akunu_model_info *info = &m->loaded.info;
    bool ready = m->state == SERVER_MODEL_READY;
    json_t *value = json_pack("{s:s, s:s, s:I, s:s, s:{s:s}}", "id", m->id, "object", "model",
                              "created", (json_int_t)m->server->created, "owned_by", "akunu",
                              "status", "value", ready ? "loaded" : "unloaded");
    if (!ready)
        return value;
    uint32_t n_ctx = m->scheduler ? akunu_scheduler_context(m->scheduler) : info->context;
    json_object_set_new(value, "meta",
                        json_pack("{s:I, s:I, s:I, s:s}", "n_ctx", (json_int_t)n_ctx, "n_vocab",
                                  (json_int_t)info->vocab_size, "n_params",
                                  (json_int_t)info->n_parameters, "architecture",
                                  info->architecture));
    json_object_set_new(value, "capabilities", server_capabilities(m));
    return value;
}

void server_models(struct server *s, struct http_exchange *x)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_models; i++)
        json_array_append_new(list, value_of(&s->models[i]));
    server_answer(x, 200, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

void server_model_by_name(struct server *s, struct http_exchange *x)
{
    char shown[APP_SHOWN_BYTES];
    const char *id = http_path(x) + strlen("/v1/models/");
    for (size_t i = 0; i < s->n_models; i++)
        if (strcmp(id, s->models[i].id) == 0) {
            server_answer(x, 200, value_of(&s->models[i]));
            return;
        }
    server_fail(x, 404, "model", "model_not_found", "there is no model %s",
                app_show_text(id, shown));
}

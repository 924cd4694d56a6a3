/* GET /v1/models and /v1/models/ID. */
#include "server/server.h"

#include <string.h>

static json_t *model_of(const struct server *s)
{
    const struct akunu_model_info *info = &s->loaded.info;
    uint32_t n_ctx = s->scheduler ? akunu_scheduler_context(s->scheduler) : info->context;
    return json_pack("{s:s, s:s, s:I, s:s, s:{s:I, s:I, s:I, s:s}}", "id", s->id, "object", "model",
                     "created", (json_int_t)s->created, "owned_by", "akunu", "meta", "n_ctx",
                     (json_int_t)n_ctx, "n_vocab", (json_int_t)info->vocab_size, "n_params",
                     (json_int_t)info->n_parameters, "architecture", info->architecture);
}

void server_models(struct server *s, struct http_exchange *x)
{
    server_answer(x, 200, json_pack("{s:s, s:[o]}", "object", "list", "data", model_of(s)));
}

void server_model(struct server *s, struct http_exchange *x)
{
    char shown[CLI_SHOWN_BYTES];
    const char *id = http_path(x) + strlen("/v1/models/");
    if (strcmp(id, s->id) == 0)
        server_answer(x, 200, model_of(s));
    else
        server_fail(x, 404, "model", "model_not_found", "there is no model %s",
                    cli_show_text(id, shown));
}

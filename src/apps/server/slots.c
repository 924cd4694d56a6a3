/* GET /slots: the texts that grow, as llama-server shows them, without their words. */
#include <string.h>

#include "apps/server/job.h"

/* The request of the scheduler with this number, whose client is still there; NULL: none. */
static const struct server_source *find_source(const struct server_model *m, uint64_t id)
{
    for (const struct server_job *job = m->server->jobs; job; job = job->next)
        for (size_t i = 0; job->model == m && i < job->n_sources; i++)
            if (job->sources[i].is_submitted && job->sources[i].id == id)
                return &job->sources[i];
    return NULL;
}

static json_t *slot_json(const struct server_model *m, size_t i,
                         const struct akunu_scheduler_slot *slot)
{
    const struct server_source *source = slot->request ? find_source(m, slot->request) : NULL;
    json_int_t most =
        source ? json_integer_value(json_object_get(source->settings, "max_tokens")) : -1;
    json_t *value = json_pack("{s:I, s:I, s:b, s:b}", "id", (json_int_t)i, "n_ctx",
                              (json_int_t)akunu_scheduler_context(m->scheduler), "speculative", 0,
                              "is_processing", slot->request != 0);
    if (!value || !slot->request)
        return value;
    json_t *more = json_pack("{s:I, s:I, s:I, s:I, s:O*, s:[{s:b, s:b, s:I, s:I}]}", "id_task",
                             (json_int_t)slot->request, "n_prompt_tokens",
                             (json_int_t)slot->n_prompt, "n_prompt_tokens_processed",
                             (json_int_t)(slot->n_done - slot->n_cached), "n_prompt_tokens_cache",
                             (json_int_t)slot->n_cached, "params", source ? source->settings : NULL,
                             "next_token", "has_next_token", 1, "has_new_line", 0, "n_remain",
                             most < 0 ? -1 : most - (json_int_t)slot->n_generated, "n_decoded",
                             (json_int_t)slot->n_generated);
    json_object_update(value, more);
    json_decref(more);
    return value;
}

static void list_slots(struct server_model *m, struct http_exchange *x, void *own)
{
    struct akunu_scheduler_slot slot;
    json_t *list = json_array();
    bool is_free = false;
    const char *fail = http_query(x, "fail_on_no_slot");
    (void)own;
    for (size_t i = 0; akunu_scheduler_get_slot(m->scheduler, i, &slot, sizeof slot) == AKUNU_OK;
         i++) {
        is_free |= slot.request == 0;
        json_array_append_new(list, slot_json(m, i, &slot));
    }
    if (m->options->server.no_slots)
        server_fail(x, 404, NULL, NULL, "there is no route /slots: --no-slots");
    else if (!is_free && fail && strcmp(fail, "0") != 0)
        server_fail(x, 503, NULL, NULL, "all %zu slots are taken", json_array_size(list));
    else
        server_answer(x, 200, json_incref(list));
    json_decref(list);
}

struct server_commit server_slots(struct server_model *m, struct http_exchange *x,
                                  const json_t *body)
{
    (void)m, (void)x, (void)body;
    return (struct server_commit){ list_slots, NULL };
}

/* Schedulers behind handles. */
#include "engine/schedule/schedule.h"

#include "api/handles.h"
#include "base/mem.h"

struct akunu_scheduler {
    struct ak_sched *inner;
};

void akunu_request_default(struct akunu_request *request, size_t size)
{
    static const struct akunu_request full = { .n = 1 };
    ak_api_give_default(request, size, &full, sizeof full);
}

void akunu_scheduler_params_default(struct akunu_scheduler_params *params, size_t size)
{
    static const struct akunu_scheduler_params full = { .max_waiting = 256, .max_pass_ratio = 4.0 };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status create_scheduler(const struct akunu_model *model,
                                  const struct akunu_session_params *given_session,
                                  const struct akunu_scheduler_params *given, struct ak_sched **out,
                                  struct ak_error *error)
{
    struct akunu_session_params session;
    struct akunu_scheduler_params p;
    akunu_session_params_default(&session, sizeof session);
    akunu_scheduler_params_default(&p, sizeof p);
    if (!model)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the model is NULL");
    AK_TRY(ak_api_copy_in(&session, sizeof session, given_session, "akunu_session_params", error));
    AK_TRY(ak_api_copy_in(&p, sizeof p, given, "akunu_scheduler_params", error));
    if (!(p.max_pass_ratio >= 1.0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "max_pass_ratio is %g: 1 or more is expected",
                       p.max_pass_ratio);
    struct akunu_prompt_cache prompts;
    akunu_prompt_cache_default(&prompts, sizeof prompts);
    AK_TRY(ak_api_copy_in(&prompts, sizeof prompts, p.prompts, "akunu_prompt_cache", error));
    struct ak_sched_options options = { .max_waiting = p.max_waiting,
                                        .max_pass_ratio = p.max_pass_ratio,
                                        .no_prefix_cache = p.no_prefix_cache,
                                        .prompts = p.prompts ? &prompts : NULL };
    AK_TRY(ak_sched_create(model->inner, &session, &options, out, error));
    return ak_sched_start(*out, error);
}

struct akunu_scheduler *akunu_scheduler_new(const struct akunu_model *model,
                                            const struct akunu_session_params *session,
                                            const struct akunu_scheduler_params *params)
{
    struct ak_error error = { 0 };
    struct akunu_scheduler *scheduler = ak_alloc(1, sizeof *scheduler);
    if (!scheduler)
        ak_fail_memory(&error, "a scheduler", sizeof *scheduler);
    else
        create_scheduler(model, session, params, &scheduler->inner, &error);
    if (ak_api_finish(&error) == AKUNU_OK)
        return scheduler;
    akunu_scheduler_free(scheduler);
    return NULL;
}

void akunu_scheduler_free(struct akunu_scheduler *scheduler)
{
    if (!scheduler)
        return;
    ak_sched_free(scheduler->inner);
    ak_free(scheduler);
}

static ak_status submit(struct akunu_scheduler *scheduler, const struct akunu_request *given,
                        uint64_t *id, struct ak_error *error)
{
    struct akunu_request request;
    struct ak_api_generation own;
    if (!scheduler || !given)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the scheduler, or the request, is NULL");
    akunu_request_default(&request, sizeof request);
    AK_TRY(ak_api_copy_in(&request, sizeof request, given, "akunu_request", error));
    AK_TRY(ak_api_copy_generation(&own, request.generation, error));
    request.generation = &own.generation;
    return ak_sched_submit(scheduler->inner, &request, id, error);
}

enum akunu_status akunu_scheduler_submit(struct akunu_scheduler *scheduler,
                                         const struct akunu_request *request, uint64_t *id)
{
    struct ak_error error = { 0 };
    submit(scheduler, request, id, &error);
    return ak_api_finish(&error);
}

void akunu_scheduler_cancel(struct akunu_scheduler *scheduler, uint64_t id)
{
    if (scheduler)
        ak_sched_cancel(scheduler->inner, id);
}

void akunu_scheduler_pause(struct akunu_scheduler *scheduler, uint64_t id, bool paused)
{
    if (scheduler)
        ak_sched_pause(scheduler->inner, id, paused);
}

uint32_t akunu_scheduler_context(const struct akunu_scheduler *scheduler)
{
    return scheduler ? ak_sched_session(scheduler->inner)->kv.context : 0;
}

enum akunu_status akunu_scheduler_get_stats(struct akunu_scheduler *scheduler,
                                            struct akunu_scheduler_stats *stats, size_t size)
{
    struct ak_error error = { 0 };
    struct akunu_scheduler_stats full;
    if (!scheduler) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the scheduler is NULL");
        return ak_api_finish(&error);
    }
    ak_sched_get_stats(scheduler->inner, &full);
    ak_api_copy_out(stats, size, &full, sizeof full, "akunu_scheduler_stats", &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_scheduler_get_slot(struct akunu_scheduler *scheduler, size_t i,
                                           struct akunu_scheduler_slot *slot, size_t size)
{
    struct ak_error error = { 0 };
    struct akunu_scheduler_slot full;
    if (!scheduler)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the scheduler is NULL");
    else if (!ak_sched_slot_at(scheduler->inner, i, &full))
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "there is no slot %zu: the session has %u", i,
                (unsigned)ak_sched_session(scheduler->inner)->kv.n_sequences);
    else
        ak_api_copy_out(slot, size, &full, sizeof full, "akunu_scheduler_slot", &error);
    return ak_api_finish(&error);
}

/* akunu_session_generate, akunu_session_generate_parallel and akunu_session_complete: completes the
 * parameters with defaults and begins the call in both sessions. */
#include "engine/generate/generate.h"

#include "api/handles.h"
#include "base/mem.h"

void akunu_generation_params_default(struct akunu_generation_params *generation, size_t size)
{
    static const struct akunu_generation_params full = { .max_tokens = -1 };
    ak_api_give_default(generation, size, &full, sizeof full);
}

void akunu_reasoning_default(struct akunu_reasoning *reasoning, size_t size)
{
    static const struct akunu_reasoning full = { .budget = -1 };
    ak_api_give_default(reasoning, size, &full, sizeof full);
}

ak_status ak_api_copy_generation(struct ak_api_generation *out,
                                 const struct akunu_generation_params *given,
                                 struct ak_error *error)
{
    akunu_generation_params_default(&out->generation, sizeof out->generation);
    akunu_sampling_params_default(&out->sampling, sizeof out->sampling);
    akunu_reasoning_default(&out->reasoning, sizeof out->reasoning);
    AK_TRY(ak_api_copy_in(&out->generation, sizeof out->generation, given,
                          "akunu_generation_params", error));
    AK_TRY(ak_api_copy_in(&out->sampling, sizeof out->sampling, out->generation.sampling,
                          "akunu_sampling_params", error));
    AK_TRY(ak_api_copy_in(&out->reasoning, sizeof out->reasoning, out->generation.reasoning,
                          "akunu_reasoning", error));
    out->generation.sampling = &out->sampling;
    out->generation.reasoning = &out->reasoning;
    return AKUNU_OK;
}

void akunu_result_default(struct akunu_result *result, size_t size)
{
    static const struct akunu_result full = { .size = 0 };
    ak_api_give_default(result, size, &full, sizeof full);
}

/* A call with copies of its parameters, completed with defaults. */
struct call {
    struct ak_gen_request request;
    struct ak_api_generation own;
};

/* Begins the call in both sessions and fills the request except for the sequence and the prompt.
 * Always call end_call. */
static ak_status begin_call(struct call *c, struct akunu_session *session,
                            const struct akunu_generation_params *generation,
                            struct ak_error *error)
{
    c->own.generation.draft = NULL;
    c->request = (struct ak_gen_request){ .session = ak_api_begin(session, error),
                                          .generation = &c->own.generation };
    if (!c->request.session)
        return error->status;
    AK_TRY(ak_api_copy_generation(&c->own, generation, error));
    if (c->own.generation.draft == session)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the draft model's session is the one that generates");
    if (c->own.generation.draft) {
        c->request.draft = ak_api_begin(c->own.generation.draft, error);
        if (!c->request.draft)
            return error->status;
    }
    return AKUNU_OK;
}

static ak_status take_prompt(struct call *c, const struct akunu_ids *prompt, struct ak_error *error)
{
    if (!prompt || (!prompt->ids && prompt->n > 0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the prompt is NULL");
    c->request.ids = prompt->ids;
    c->request.n_ids = prompt->n;
    return AKUNU_OK;
}

static enum akunu_status end_call(const struct call *c, struct akunu_session *session,
                                  const struct ak_error *error)
{
    ak_api_end(c->own.generation.draft, c->request.draft, error);
    return ak_api_end(session, c->request.session, error);
}

/* Copies `full` to n results of the caller's version of the struct. */
static ak_status give_results(struct akunu_result *results, const struct akunu_result *full,
                              size_t n, struct ak_error *error)
{
    size_t size = results ? results->size : 0;
    if (results && size <= sizeof size)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "struct akunu_result: its field `size` is %zu and must be the size of the "
                       "struct",
                       size);
    for (size_t i = 0; results && i < n; i++) {
        struct akunu_result own = full[i];
        own.size = size;
        ak_api_copy_out((char *)results + i * size, size, &own, sizeof own, "akunu_result", NULL);
    }
    return AKUNU_OK;
}

enum akunu_status akunu_session_generate(struct akunu_session *session, akunu_sequence sequence,
                                         const struct akunu_ids *prompt,
                                         const struct akunu_generation_params *generation,
                                         struct akunu_result *result)
{
    struct ak_error error = { 0 };
    struct akunu_result full = { .stop = AKUNU_STOP_CALLBACK };
    struct call call;
    if (give_results(result, &full, 1, &error) != AKUNU_OK)
        return ak_api_finish(&error);
    if (begin_call(&call, session, generation, &error) == AKUNU_OK &&
        take_prompt(&call, prompt, &error) == AKUNU_OK) {
        call.request.sequence = sequence;
        ak_gen_run(&call.request, &full, &error);
        give_results(result, &full, 1, NULL);
    }
    return end_call(&call, session, &error);
}

static ak_status run_parallel(const struct ak_gen_request *request, size_t n,
                              akunu_sequence *sequences, struct akunu_result *results,
                              struct ak_error *error)
{
    struct akunu_result *full = ak_alloc(n, sizeof *full);
    if (!full)
        return ak_fail_memory(error, "the results", n * sizeof *full);
    ak_status status = give_results(results, full, n, error);
    if (status == AKUNU_OK) {
        status = ak_gen_run_parallel(request, n, sequences, full, error);
        give_results(results, full, n, NULL);
    }
    ak_free(full);
    return status;
}

enum akunu_status akunu_session_generate_parallel(struct akunu_session *session,
                                                  akunu_sequence *sequences, size_t n,
                                                  const struct akunu_ids *prompt,
                                                  const struct akunu_generation_params *generation,
                                                  struct akunu_result *results)
{
    struct ak_error error = { 0 };
    struct call call;
    for (size_t i = 1; sequences && i < n; i++)
        sequences[i] = -1;
    if (!sequences || n == 0) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "no sequences are given for the completions");
        return ak_api_finish(&error);
    }
    if (begin_call(&call, session, generation, &error) == AKUNU_OK &&
        take_prompt(&call, prompt, &error) == AKUNU_OK)
        run_parallel(&call.request, n, sequences, results, &error);
    return end_call(&call, session, &error);
}

/* ---- Text in, text out -------------------------------------------------- */
void akunu_completion_params_default(struct akunu_completion_params *completion, size_t size)
{
    static const struct akunu_completion_params full = { .form = AKUNU_PROMPT_AUTO };
    ak_api_give_default(completion, size, &full, sizeof full);
}

/* Removes what the sequence has after its common beginning with the prompt. The prompt's last token
 * always runs, for its logits. */
static ak_status keep_prefix(struct ak_gen_request *request, uint64_t *n_kept,
                             struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    AK_TRY(ak_session_find(request->session, request->sequence, &found, error));
    uint32_t n = 0;
    while (n < found->length && n + 1 < request->n_ids && found->tokens[n] == request->ids[n])
        n++;
    n = ak_session_kv_find_rewind(found, n);
    AK_TRY(ak_session_rewind(request->session, request->sequence, n, error));
    request->ids += n;
    request->n_ids -= n;
    *n_kept = n;
    return AKUNU_OK;
}

static ak_status complete(struct ak_gen_request *request, struct akunu_result *full,
                          struct ak_error *error)
{
    int32_t own = -1;
    uint64_t n_kept = 0;
    if (request->sequence < 0) {
        AK_TRY(ak_session_sequence_new(request->session, &own, error));
        request->sequence = own;
    }
    ak_status status = keep_prefix(request, &n_kept, error);
    if (status == AKUNU_OK) {
        status = ak_gen_run(request, full, error);
        full->n_kept = n_kept;
    }
    if (own >= 0)
        ak_session_kv_sequence_free(&request->session->kv, own);
    return status;
}

enum akunu_status akunu_session_complete(struct akunu_session *session, akunu_sequence sequence,
                                         const char *text, size_t n_bytes,
                                         const struct akunu_completion_params *completion,
                                         struct akunu_result *result)
{
    struct ak_error error = { 0 };
    struct akunu_result full = { .stop = AKUNU_STOP_CALLBACK };
    struct akunu_completion_params copy;
    struct call call;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    akunu_completion_params_default(&copy, sizeof copy);
    if (give_results(result, &full, 1, &error) != AKUNU_OK ||
        ak_api_copy_in(&copy, sizeof copy, completion, "akunu_completion_params", &error) !=
            AKUNU_OK)
        return ak_api_finish(&error);
    if (begin_call(&call, session, copy.generation, &error) == AKUNU_OK &&
        ak_api_make_prompt(session, text, n_bytes, &copy, &ids, &n_ids, &error) == AKUNU_OK) {
        call.request.sequence = sequence;
        call.request.ids = ids;
        call.request.n_ids = n_ids;
        complete(&call.request, &full, &error);
        give_results(result, &full, 1, NULL);
    }
    ak_free(ids);
    return end_call(&call, session, &error);
}

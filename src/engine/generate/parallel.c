/* Parallel completions: runs the prompt once, forks its sequence for each completion, then runs one
 * pass per step with a token of each unfinished completion. */
#include "engine/generate/generate.h"

#include "base/mem.h"
#include "base/system.h"
#include "engine/generate/completion.h"

struct parallel {
    const struct ak_gen_request *request;
    struct ak_session *session;
    size_t n;
    struct ak_gen_completion *completions;
    struct akunu_batch_token *pass;
    size_t *pass_completions; /* completion of each token in `pass` */
    double started;
};

/* Completion i equals a single completion with seed + i. */
static ak_status begin_completions(struct parallel *c,
                                   const struct ak_session_kv_sequence *sequence,
                                   struct ak_error *error)
{
    for (size_t i = 0; i < c->n; i++) {
        struct akunu_generation_params own = *c->request->generation;
        struct akunu_sampling_params sampling = *own.sampling;
        own.sampling = &sampling;
        if (sampling.seed != UINT64_MAX)
            sampling.seed += i;
        AK_TRY(ak_gen_completion_begin(&c->completions[i], &own, error));
        ak_gen_completion_add_context(&c->completions[i], sequence->tokens, sequence->length);
        ak_gen_completion_add_context(&c->completions[i], c->request->ids, c->request->n_ids);
    }
    return AKUNU_OK;
}

/* Runs the prompt and samples the first token of each completion. */
static ak_status run_prompt(struct parallel *c, int32_t *sequences, struct ak_error *error)
{
    const struct ak_gen_request *r = c->request;
    const struct ak_session_kv_sequence *sequence =
        ak_session_kv_sequence(&c->session->kv, sequences[0]);
    uint32_t before = sequence->length;
    double started = ak_seconds();
    size_t last;
    ak_status status = ak_session_prefill(c->session, sequences[0], r->ids, r->n_ids,
                                          r->generation->cancel, r->generation->user, &last, error);
    for (size_t i = 1; status == AKUNU_OK && i < c->n; i++) {
        status = ak_session_fork(c->session, sequences[0], sequence->length, &sequences[i], error);
        c->completions[i].sequence = sequences[i];
    }
    for (size_t i = 0; status == AKUNU_OK && i < c->n && c->completions[i].limit > 0; i++)
        status = ak_gen_completion_sample(&c->completions[i], ak_session_logits(c->session, last),
                                          &c->completions[i].token, error);
    for (size_t i = 0; i < c->n; i++) {
        c->completions[i].result->n_prompt = sequence->length - before;
        c->completions[i].result->prompt_seconds = ak_seconds() - started;
    }
    return status;
}

static ak_status append_token(struct parallel *c, struct ak_gen_completion *completion,
                              int32_t token, struct ak_error *error)
{
    AK_TRY(ak_gen_completion_append(completion, token, error));
    completion->result->generate_seconds = ak_seconds() - c->started;
    return completion->ended ? ak_gen_completion_finish(completion, error) : AKUNU_OK;
}

/* Collects the next pass: a token of each unfinished completion. */
static ak_status collect_pass(struct parallel *c, size_t *n, struct ak_error *error)
{
    *n = 0;
    uint32_t reserved = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct ak_gen_completion *completion = &c->completions[i];
        if (completion->ended)
            continue;
        ak_gen_completion_reserve_pages(completion, &reserved);
        if (completion->ended) {
            AK_TRY(ak_gen_completion_finish(completion, error));
            continue;
        }
        c->pass_completions[*n] = i;
        c->pass[(*n)++] = (struct akunu_batch_token){ .token = completion->token,
                                                      .sequence = completion->sequence,
                                                      .logits = true };
    }
    return AKUNU_OK;
}

static ak_status generate_texts(struct parallel *c, struct ak_error *error)
{
    const struct akunu_generation_params *asked = c->request->generation;
    c->started = ak_seconds();
    for (size_t i = 0; i < c->n; i++)
        AK_TRY(append_token(c, &c->completions[i], c->completions[i].token, error));
    for (size_t n;;) {
        AK_TRY(collect_pass(c, &n, error));
        if (n == 0)
            return AKUNU_OK;
        if (asked->cancel && asked->cancel(asked->user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled after %llu tokens",
                           (unsigned long long)c->completions[0].result->n_generated);
        AK_TRY(ak_session_decode(c->session, c->pass, n, error));
        for (size_t k = 0; k < n; k++) {
            struct ak_gen_completion *completion = &c->completions[c->pass_completions[k]];
            uint32_t position =
                ak_session_kv_sequence(&c->session->kv, completion->sequence)->length - 1;
            int32_t token;
            AK_TRY(ak_gen_completion_sample_at(completion, ak_session_logits(c->session, k),
                                               position, &token, error));
            AK_TRY(append_token(c, completion, token, error));
        }
    }
}

static ak_status allocate_branches(struct parallel *c, const int32_t *sequences,
                                   struct ak_error *error)
{
    const struct ak_session_kv_sequence *sequence;
    if (c->n == 0 || c->n > c->session->batch)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%zu completions were asked for, and a pass takes 1 to %u tokens", c->n,
                       (unsigned)c->session->batch);
    AK_TRY(ak_session_find(c->session, sequences[0], &sequence, error));
    c->completions = ak_alloc(c->n, sizeof *c->completions);
    c->pass = ak_alloc(c->n, sizeof *c->pass);
    c->pass_completions = ak_alloc(c->n, sizeof *c->pass_completions);
    return c->completions && c->pass && c->pass_completions ?
               AKUNU_OK :
               ak_fail_memory(error, "the completions", 0);
}

static void init_completions(struct parallel *c, int32_t first, struct akunu_result *results)
{
    for (size_t i = 0; i < c->n; i++)
        c->completions[i] = (struct ak_gen_completion){ .session = c->session,
                                                        .sequence = i == 0 ? first : -1,
                                                        .index = i,
                                                        .result = &results[i] };
}

static ak_status run_branches(struct parallel *c, int32_t *sequences, struct ak_error *error)
{
    AK_TRY(begin_completions(c, ak_session_kv_sequence(&c->session->kv, sequences[0]), error));
    ak_session_want_best(c->session, ak_gen_completion_n_best(&c->completions[0]));
    AK_TRY(run_prompt(c, sequences, error));
    for (size_t i = 0; c->completions[0].limit == 0 && i < c->n; i++)
        c->completions[i].result->stop = AKUNU_STOP_LENGTH;
    return c->completions[0].limit == 0 ? AKUNU_OK : generate_texts(c, error);
}

ak_status ak_gen_run_parallel(const struct ak_gen_request *request, size_t n, int32_t *sequences,
                              struct akunu_result *results, struct ak_error *error)
{
    struct parallel c = { .request = request, .session = request->session, .n = n };
    for (size_t i = 0; i < n; i++)
        results[i] = (struct akunu_result){ .size = sizeof *results, .stop = AKUNU_STOP_CALLBACK };
    ak_status status = allocate_branches(&c, sequences, error);
    if (status == AKUNU_OK) {
        init_completions(&c, sequences[0], results);
        status = run_branches(&c, sequences, error);
    }
    ak_session_want_best(c.session, 0);
    for (size_t i = 0; c.completions && i < n; i++)
        ak_gen_completion_clear(&c.completions[i]);
    for (size_t i = 1; status != AKUNU_OK && i < n; i++)
        if (sequences[i] >= 0) {
            ak_session_kv_sequence_free(&c.session->kv, sequences[i]);
            sequences[i] = -1;
        }
    ak_free(c.completions);
    ak_free(c.pass);
    ak_free(c.pass_completions);
    return status;
}

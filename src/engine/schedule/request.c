/* Requests and their tasks: copies of all that was asked for, and the events of a text. */
#include "engine/schedule/internal.h"

#include <math.h>

#include "base/mem.h"
#include "base/array.h"

struct ak_sched_block {
    struct ak_sched_block *next;
    max_align_t bytes[];
};

/* ---- Copies ------------------------------------------------------------- */
/* A copy of n bytes that lives as long as the request; NULL: out of memory. */
static void *keep(struct ak_sched_request *r, const void *bytes, size_t n)
{
    struct ak_sched_block *block =
        n < SIZE_MAX - sizeof *block ? ak_alloc(1, sizeof *block + n) : NULL;
    if (!block)
        return NULL;
    block->next = r->blocks;
    r->blocks = block;
    memcpy(block->bytes, bytes, n);
    return block->bytes;
}

/* Replaces a string by a copy. */
static ak_status keep_string(struct ak_sched_request *r, const char **string,
                             struct ak_error *error)
{
    if (!*string)
        return AKUNU_OK;
    *string = keep(r, *string, strlen(*string) + 1);
    return *string ? AKUNU_OK : ak_fail_memory(error, "the request", 0);
}

/* Replaces a list of n strings, and a NULL after them, by a copy. */
static ak_status keep_strings(struct ak_sched_request *r, const char *const **list, size_t n,
                              struct ak_error *error)
{
    static const char *const empty[1] = { NULL };
    const char **copy = n > 0 ? ak_alloc(n + 1, sizeof *copy) : NULL;
    if (n > 0 && !copy)
        return ak_fail_memory(error, "the request", 0);
    ak_status status = AKUNU_OK;
    for (size_t i = 0; status == AKUNU_OK && i < n; i++) {
        copy[i] = (*list)[i];
        status = keep_string(r, &copy[i], error);
    }
    *list = status != AKUNU_OK ? NULL : n > 0 ? keep(r, copy, (n + 1) * sizeof *copy) : empty;
    ak_free(copy);
    return *list || status != AKUNU_OK ? status : ak_fail_memory(error, "the request", 0);
}

static ak_status keep_sampling(struct ak_sched_request *r, struct ak_error *error)
{
    struct akunu_sampling_params *p = &r->sampling;
    AK_TRY(keep_string(r, &p->samplers, error));
    AK_TRY(keep_string(r, &p->sampler_seq, error));
    if (p->dry_sequence_breakers) {
        size_t n = 0;
        while (p->dry_sequence_breakers[n])
            n++;
        AK_TRY(keep_strings(r, &p->dry_sequence_breakers, n, error));
    }
    if (p->n_logit_bias > 0) {
        p->logit_bias = keep(r, p->logit_bias, p->n_logit_bias * sizeof *p->logit_bias);
        if (!p->logit_bias)
            return ak_fail_memory(error, "the request", 0);
    }
    return AKUNU_OK;
}

static ak_status keep_reasoning(struct ak_sched_request *r, struct ak_error *error)
{
    AK_TRY(keep_string(r, &r->reasoning.begin, error));
    AK_TRY(keep_string(r, &r->reasoning.end, error));
    return keep_string(r, &r->reasoning.closing, error);
}

/* ---- Checks ------------------------------------------------------------- */
static ak_status check_generation(const struct akunu_generation_params *g, struct ak_error *error)
{
    struct ak_gen_stops stops = { 0 };
    AK_TRY(ak_sample_check_params(g->sampling, error));
    AK_TRY(ak_gen_stops_begin(&stops, g->stops, g->n_stops, error));
    if (g->speculation != AKUNU_SPECULATION_AUTO && g->speculation != AKUNU_SPECULATION_NONE)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a scheduler runs no speculation, and a kind of it was asked for");
    if (g->draft)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a scheduler runs no speculation, and a draft session was given");
    if (g->on_piece || g->cancel || g->on_logprobs || g->on_logits)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "a scheduler calls no callback of akunu_generation_params: its events have the "
            "tokens and log-probabilities");
    return AKUNU_OK;
}

static ak_status check_prompt(const struct ak_session *s, const struct akunu_request *r,
                              struct ak_error *error)
{
    uint32_t n_vocab = s->model->spec.config.vocab_size;
    if (!r->ids || r->n_ids == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the prompt has no tokens");
    if (r->n_ids > s->kv.context)
        return ak_fail(error, AKUNU_ERROR_CONTEXT,
                       "the prompt is too long: it has %zu tokens, and the context holds %u",
                       r->n_ids, (unsigned)s->kv.context);
    for (size_t i = 0; i < r->n_ids; i++)
        if (r->ids[i] < 0 || (uint32_t)r->ids[i] >= n_vocab)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "token %zu is %d, and the vocabulary has %u", i, (int)r->ids[i],
                           (unsigned)n_vocab);
    if (r->n == 0 || r->n > 1024)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%zu completions: 1 to 1024 are possible",
                       r->n);
    if (!(r->timeout >= 0.0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the time-out is %g seconds: 0 or more are expected", r->timeout);
    if (!r->on_event)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the request has no callback for its events");
    return AKUNU_OK;
}

/* ---- Requests ----------------------------------------------------------- */
static ak_status fill_request(struct ak_sched *s, const struct akunu_request *given,
                              struct ak_sched_request *r, struct ak_error *error)
{
    AK_TRY(check_prompt(s->session, given, error));
    AK_TRY(check_generation(given->generation, error));
    r->generation = *given->generation;
    r->sampling = *given->generation->sampling;
    r->generation.sampling = &r->sampling;
    if (r->sampling.grammar) {
        r->grammar.inner = ak_grammar_ref(r->sampling.grammar->inner);
        r->sampling.grammar = &r->grammar;
    }
    if (given->generation->reasoning) {
        r->reasoning = *given->generation->reasoning;
        r->generation.reasoning = &r->reasoning;
    }
    r->client = given->client;
    r->on_event = given->on_event;
    r->user = given->user;
    r->prompt_logprobs = given->prompt_logprobs;
    r->has_chain = given->chain;
    r->submitted = ak_sched_now(s);
    r->deadline = given->timeout > 0.0 ? r->submitted + given->timeout : 0.0;
    r->n_prompt = (uint32_t)given->n_ids;
    r->ids = keep(r, given->ids, given->n_ids * sizeof *given->ids);
    r->tasks = ak_alloc(given->n, sizeof *r->tasks);
    if (!r->ids || !r->tasks)
        return ak_fail_memory(error, "the request", 0);
    r->n_tasks = r->n_open = given->n;
    for (size_t i = 0; i < given->n; i++) {
        r->tasks[i].request = r;
        r->tasks[i].index = i;
        r->tasks[i].sequence = -1;
        r->tasks[i].result = (struct akunu_result){ .size = sizeof(struct akunu_result),
                                                    .stop = AKUNU_STOP_CALLBACK };
    }
    AK_TRY(keep_strings(r, &r->generation.stops, r->generation.n_stops, error));
    AK_TRY(keep_reasoning(r, error));
    return keep_sampling(r, error);
}

static bool report_token(size_t index, akunu_token token, const char *text, size_t n_bytes,
                         void *user);
static void take_logprobs(size_t index, akunu_token token, float logprob,
                          const struct akunu_logprob *top, size_t n_top, void *user);

static ak_status begin_completion(struct ak_sched *s, struct ak_sched_task *t,
                                  struct ak_error *error)
{
    struct ak_sched_request *r = t->request;
    struct akunu_generation_params own = r->generation;
    struct akunu_sampling_params sampling = r->sampling;
    own.sampling = &sampling;
    own.on_piece = report_token;
    own.user = t;
    if (sampling.seed != UINT64_MAX)
        sampling.seed += t->index;
    t->completion = (struct ak_gen_completion){ .session = s->session,
                                                .sequence = -1,
                                                .index = t->index,
                                                .has_chain = r->has_chain,
                                                .result = &t->result };
    return ak_gen_completion_begin(&t->completion, &own, error);
}

/* Finds what is wrong with the parameters before the request waits. */
static ak_status try_completion(struct ak_sched *s, struct ak_sched_request *r,
                                struct ak_error *error)
{
    ak_status status = begin_completion(s, &r->tasks[0], error);
    ak_gen_completion_clear(&r->tasks[0].completion);
    return status;
}

ak_status ak_sched_request_create(struct ak_sched *s, const struct akunu_request *given,
                                  struct ak_sched_request **out, struct ak_error *error)
{
    struct ak_sched_request *r = ak_alloc(1, sizeof *r);
    if (!r)
        return ak_fail_memory(error, "the request", sizeof *r);
    ak_status status = fill_request(s, given, r, error);
    if (status == AKUNU_OK && given->logprobs)
        r->generation.on_logprobs = take_logprobs;
    if (status == AKUNU_OK)
        status = try_completion(s, r, error);
    if (status != AKUNU_OK) {
        ak_sched_request_free(r);
        return status;
    }
    *out = r;
    return AKUNU_OK;
}

static void clear_task(struct ak_sched_task *t)
{
    if (t->ids)
        ak_gen_completion_clear(&t->completion);
    ak_sample_logprobs_release(&t->prompt_logprobs);
    t->prompt_logprobs = (struct ak_sample_logprobs){ 0 };
    ak_free(t->ids);
    t->ids = NULL;
}

void ak_sched_request_free(struct ak_sched_request *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_tasks; i++)
        clear_task(&r->tasks[i]);
    ak_free(r->tasks);
    ak_grammar_free(r->grammar.inner);
    while (r->blocks) {
        struct ak_sched_block *next = r->blocks->next;
        ak_free(r->blocks);
        r->blocks = next;
    }
    ak_free(r);
}

/* ---- Tasks -------------------------------------------------------------- */
ak_status ak_sched_task_begin(struct ak_sched *s, struct ak_sched_task *t, struct ak_error *error)
{
    const struct ak_sched_request *r = t->request;
    if (t->ids)
        return AKUNU_OK;
    t->ids = ak_alloc(r->n_prompt, sizeof *t->ids);
    if (!t->ids)
        return ak_fail_memory(error, "the text of a request", r->n_prompt * sizeof *t->ids);
    memcpy(t->ids, r->ids, r->n_prompt * sizeof *t->ids);
    t->n_ids = t->capacity = r->n_prompt;
    AK_TRY(begin_completion(s, t, error));
    if (ak_sched_reports_prompt(t))
        AK_TRY(ak_sample_logprobs_init(&t->prompt_logprobs, r->generation.n_top_logprobs,
                                       s->session->model->spec.config.vocab_size, error));
    ak_gen_completion_add_context(&t->completion, r->ids, r->n_prompt);
    return AKUNU_OK;
}

ak_status ak_sched_task_append(struct ak_sched_task *t, int32_t token, struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&t->ids, &t->capacity, t->n_ids, 1, "the text of a request", error));
    t->ids[t->n_ids++] = token;
    t->has_sampled = true;
    return ak_gen_completion_append(&t->completion, token, error);
}

/* ---- Events ------------------------------------------------------------- */
static bool send_event(const struct ak_sched_task *t, struct akunu_request_event *event)
{
    const struct ak_sched_request *r = t->request;
    event->size = sizeof *event;
    event->request = r->id;
    event->index = t->index;
    event->n_open = r->n_open;
    event->message = event->message ? event->message : "";
    event->text = event->text ? event->text : "";
    return r->on_event(event, r->user);
}

static void take_logprobs(size_t index, akunu_token token, float logprob,
                          const struct akunu_logprob *top, size_t n_top, void *user)
{
    struct ak_sched_task *t = user;
    (void)index, (void)token;
    t->logprob = logprob;
    t->top = top;
    t->n_top = n_top;
}

static bool report_token(size_t index, akunu_token token, const char *text, size_t n_bytes,
                         void *user)
{
    const struct ak_sched_task *t = user;
    (void)index;
    bool has_logprobs = token >= 0 && t->top;
    struct akunu_request_event event = { .kind = AKUNU_REQUEST_TOKEN,
                                         .token = token,
                                         .text = text,
                                         .n_bytes = n_bytes,
                                         .logprob = token >= 0 ? t->logprob : NAN,
                                         .top = has_logprobs ? t->top : NULL,
                                         .n_top = has_logprobs ? t->n_top : 0 };
    return send_event(t, &event);
}

bool ak_sched_reports_prompt(const struct ak_sched_task *t)
{
    return t->request->prompt_logprobs && t->index == 0 && t->n_reported < t->request->n_prompt;
}

bool ak_sched_report_prompt(struct ak_sched_task *t, uint32_t i, float logprob,
                            const struct akunu_logprob *top, size_t n_top)
{
    struct akunu_request_event event = { .kind = AKUNU_REQUEST_PROMPT,
                                         .token = t->ids[i],
                                         .prompt_index = i,
                                         .logprob = logprob,
                                         .top = top,
                                         .n_top = n_top };
    return send_event(t, &event);
}

void ak_sched_task_end(struct ak_sched *s, struct ak_sched_task *t, const struct ak_error *error)
{
    double now = ak_sched_now(s);
    if (t->has_sampled)
        t->result.generate_seconds = now - t->first_sampled;
    else
        t->result.prompt_seconds = now - t->request->submitted;
    t->has_ended = true;
    t->request->n_open--;
    struct akunu_request_event event = { .kind = AKUNU_REQUEST_END,
                                         .token = -1,
                                         .logprob = NAN,
                                         .status = error ? error->status : AKUNU_OK,
                                         .message = error ? error->message : "",
                                         .result = &t->result };
    send_event(t, &event);
    clear_task(t);
}

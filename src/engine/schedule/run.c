/* A step: admits tasks, runs a pass, samples on the session's threads, and reports. */
#include "engine/schedule/internal.h"

#include <math.h>
#include <stdatomic.h>

/* ---- Ends --------------------------------------------------------------- */
void ak_sched_finish(struct ak_sched *s, struct ak_sched_task *t, const struct ak_error *error)
{
    struct ak_sched_request *r = t->request;
    if (t->sequence >= 0)
        ak_sched_stop_running(s, t);
    else
        ak_sched_queue_remove(s, t);
    if (r->n_open == 1) /* before the client hears of it, and reads the counts */
        ak_sched_count_end(s, error ? error->status : AKUNU_OK);
    ak_sched_task_end(s, t, error);
    if (r->n_open == 0)
        ak_sched_forget(s, r);
}

/* Ends the task if its request was cancelled or is late. */
static bool end_cancelled(struct ak_sched *s, struct ak_sched_task *t, double now)
{
    const struct ak_sched_request *r = t->request;
    struct ak_error error = { 0 };
    if (!r->is_cancelled && (r->deadline <= 0.0 || now < r->deadline))
        return false;
    if (r->is_cancelled)
        ak_fail(&error, AKUNU_ERROR_CANCELLED, "cancelled after %llu tokens",
                (unsigned long long)t->result.n_generated);
    else
        ak_fail(&error, AKUNU_ERROR_CANCELLED, "the time-out of %.3g s passed after %llu tokens",
                r->deadline - r->submitted, (unsigned long long)t->result.n_generated);
    ak_sched_finish(s, t, &error);
    return true;
}

static void end_cancelled_tasks(struct ak_sched *s)
{
    struct ak_sched_task *next;
    double now = ak_sched_now(s);
    for (uint32_t i = s->n_running; i > 0; i--)
        end_cancelled(s, s->running[i - 1], now);
    for (struct ak_sched_task *t = s->queue; t; t = next) {
        next = t->next;
        end_cancelled(s, t, now);
    }
}

/* ---- After a pass ------------------------------------------------------- */
/* All tasks of a pass that failed. */
static void fail_pass(struct ak_sched *s, const struct ak_error *error)
{
    for (uint32_t i = s->n_running; i > 0; i--)
        if (s->running[i - 1]->n_run > 0)
            ak_sched_finish(s, s->running[i - 1], error);
}

/* Log-probabilities of the prompt's tokens that the logits of the pass are about. False: the host
 * ends the completion. */
static bool report_prompt(struct ak_sched *s, struct ak_sched_task *t)
{
    uint32_t n_vocab = s->session->model->spec.config.vocab_size;
    uint32_t n_prompt = t->request->n_prompt;
    if (t->n_reported == 0) {
        t->n_reported = 1;
        if (!ak_sched_report_prompt(t, 0, NAN, NULL, 0))
            return false;
    }
    uint32_t before = ak_sched_sequence(s, t)->length - t->n_run;
    for (uint32_t i = 0; i < t->n_run && before + i + 1 < n_prompt; i++) {
        uint32_t at = before + i + 1;
        if (at < t->n_reported)
            continue;
        float logprob = ak_sample_logprobs_compute(
            &t->prompt_logprobs, ak_session_logits(s->session, t->first + i), n_vocab, t->ids[at]);
        t->n_reported = at + 1;
        if (!ak_sched_report_prompt(t, at, logprob, t->prompt_logprobs.top,
                                    t->prompt_logprobs.n_top))
            return false;
    }
    return true;
}

/* Lets other prompts share the pages of a prompt that has advanced. */
static void add_to_tree(struct ak_sched *s, const struct ak_sched_task *t)
{
    bool done = ak_sched_count_left(s, t) == 0, has_siblings = t->request->n_tasks > 1;
    if (s->has_tree && !t->has_sampled)
        ak_sched_tree_add(&s->tree, t->sequence, done && has_siblings && t->index == 0);
}

static void count_prompt(struct ak_sched *s, struct ak_sched_task *t)
{
    t->first_sampled = ak_sched_now(s);
    t->result.prompt_seconds = t->first_sampled - t->request->submitted;
    t->result.n_prompt = t->request->n_prompt - t->result.n_kept;
    s->stats.n_prompt_tokens += t->request->n_prompt;
    s->stats.n_cached_tokens += t->result.n_kept;
}

/* What happens to the prompts of a pass. Lists the tasks that sample in s->sampling; returns their
 * number. */
static uint32_t handle_prompts(struct ak_sched *s)
{
    uint32_t n = 0;
    for (uint32_t i = s->n_running; i > 0; i--) {
        struct ak_sched_task *t = s->running[i - 1];
        if (t->n_run == 0)
            continue;
        add_to_tree(s, t);
        bool ended = ak_sched_reports_prompt(t) && !report_prompt(s, t);
        bool done = ak_sched_count_left(s, t) == 0;
        if (ended || (done && t->completion.limit == 0)) {
            t->result.stop = ended ? AKUNU_STOP_CALLBACK : AKUNU_STOP_LENGTH;
            count_prompt(s, t);
            ak_sched_finish(s, t, NULL);
        } else if (done) {
            s->sampling[n++] = t;
        }
    }
    return n;
}

/* ---- Sampling ----------------------------------------------------------- */
struct sampling {
    struct ak_sched *s;
    uint32_t n;
    _Atomic uint32_t next;
};

static void sample_task(struct ak_sched *s, struct ak_sched_task *t)
{
    const float *logits = ak_session_logits(s->session, t->first + t->n_run - 1);
    uint32_t position = ak_sched_sequence(s, t)->length - 1;
    t->status =
        t->has_sampled ?
            ak_gen_completion_sample_at(&t->completion, logits, position, &t->sampled, &t->error) :
            ak_gen_completion_sample(&t->completion, logits, &t->sampled, &t->error);
}

static void sample_some(void *context, unsigned thread)
{
    struct sampling *job = context;
    (void)thread;
    for (uint32_t i; (i = atomic_fetch_add(&job->next, 1)) < job->n;)
        sample_task(job->s, job->s->sampling[i]);
}

/* Appends the sampled token, and ends the text if that is its end. */
static void append_token(struct ak_sched *s, struct ak_sched_task *t)
{
    if (!t->has_sampled)
        count_prompt(s, t);
    if (t->status == AKUNU_OK)
        t->status = ak_sched_task_append(t, t->sampled, &t->error);
    s->stats.n_generated += t->status == AKUNU_OK;
    if (t->status == AKUNU_OK && !t->completion.ended && t->n_ids > s->session->kv.context) {
        t->completion.ended = true;
        t->result.stop = AKUNU_STOP_CONTEXT;
    }
    if (t->status == AKUNU_OK && t->completion.ended)
        t->status = ak_gen_completion_finish(&t->completion, &t->error);
    if (t->status != AKUNU_OK || t->completion.ended)
        ak_sched_finish(s, t, t->status == AKUNU_OK ? NULL : &t->error);
}

static void sample_tasks(struct ak_sched *s, uint32_t n)
{
    struct sampling job = { .s = s, .n = n };
    if (n > 1)
        ak_pool_run(s->pool, sample_some, &job);
    else
        sample_some(&job, 0);
    for (uint32_t i = n; i > 0; i--) /* the oldest first */
        append_token(s, s->sampling[i - 1]);
}

/* ---- Eviction ----------------------------------------------------------- */
/* Drops tokens of the prompts that the pass completed, as the session's kv_keep says. Whole pages
 * of these prompts are in the tree, for other requests. */
static void evict_prompts(struct ak_sched *s)
{
    for (uint32_t i = s->n_running; i > 0; i--) {
        struct ak_sched_task *t = s->running[i - 1];
        const struct ak_session_kv_sequence *sequence = ak_sched_sequence(s, t);
        struct ak_error error = { 0 };
        if (t->n_run == 0 || sequence->evicted_length > 0 ||
            sequence->length < t->request->n_prompt ||
            !ak_session_evicts(s->session, t->request->n_prompt))
            continue;
        if (ak_session_evict(s->session, t->sequence, s->session->kv_keep, s->session->kv_choice,
                             &error) != AKUNU_OK)
            ak_sched_finish(s, t, &error);
    }
}

/* ---- Steps -------------------------------------------------------------- */
static void sched_run_pass(struct ak_sched *s)
{
    struct ak_error error = { 0 };
    double started = ak_sched_now(s);
    if (ak_session_decode(s->session, s->pass, s->n_pass, &error) != AKUNU_OK) {
        fail_pass(s, &error);
        return;
    }
    ak_sched_record_pass(s, ak_sched_now(s) - started);
    s->stats.n_passes++;
    sample_tasks(s, handle_prompts(s));
    evict_prompts(s);
}

bool ak_sched_step(struct ak_sched *s)
{
    ak_sched_take_requests(s);
    end_cancelled_tasks(s);
    ak_sched_admit(s);
    bool runs = ak_sched_form_pass(s) > 0;
    if (runs)
        sched_run_pass(s);
    ak_sched_publish(s);
    return runs;
}

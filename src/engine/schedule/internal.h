/* Internals of the scheduler, private to this folder. */
#ifndef AK_ENGINE_SCHEDULE_INTERNAL_H
#define AK_ENGINE_SCHEDULE_INTERNAL_H

#include <pthread.h>

#include "base/thread.h"
#include "engine/generate/completion.h"
#include "engine/schedule/prefix_tree.h"
#include "engine/schedule/schedule.h"

struct ak_sched_block; /* memory of a request */

/* What was asked for, copied. */
struct ak_sched_request {
    struct ak_sched_request *next; /* of all requests that have not ended */
    uint64_t id, client;
    double submitted;   /* by the clock */
    double deadline;    /* 0: none */
    const int32_t *ids; /* the prompt, [n_prompt] */
    uint32_t n_prompt;
    struct akunu_generation_params generation; /* points to copies, below and in `blocks` */
    struct akunu_sampling_params sampling;
    struct akunu_reasoning reasoning;
    struct akunu_grammar grammar; /* a reference; inner NULL: none */
    bool prompt_logprobs;
    bool has_chain;
    akunu_request_fn *on_event;
    void *user;
    struct ak_sched_task *tasks; /* [n_tasks], a completion each */
    size_t n_tasks, n_open;      /* n_open: that have not ended */
    bool has_started;            /* a task was admitted */
    bool is_cancelled, is_paused;
    bool wants_cancel, wants_pause; /* as other threads ask; under the scheduler's lock */
    struct ak_sched_block *blocks;
};

/* One completion of a request. */
struct ak_sched_task {
    struct ak_sched_request *request;
    struct ak_sched_task *next; /* in the queue */
    size_t index;
    uint64_t round;   /* turn of its client in the queue */
    int32_t sequence; /* -1: it waits */
    /* The text so far, prompt included. It runs from the sequence's length on; after the last id a
     * token is sampled. NULL before the task is admitted. */
    int32_t *ids;
    uint32_t n_ids, capacity;
    bool has_sampled; /* at least one token of the text is sampled */
    bool has_ended;
    bool was_looked_up; /* on disk */
    /* log-probabilities of the prompt: scratch, and how many tokens were reported */
    struct ak_sample_logprobs prompt_logprobs;
    uint32_t n_reported;
    struct ak_gen_completion completion; /* begun if ids is not NULL */
    struct akunu_result result;
    double first_sampled; /* when, by the clock */
    /* in a pass */
    uint32_t n_run, first; /* tokens in the pass; index of the first one. n_run 0: none */
    int32_t sampled;       /* the token sampled after it */
    ak_status status;      /* of sampling */
    struct ak_error error;
    /* log-probabilities of the token that is reported */
    float logprob;
    const struct akunu_logprob *top;
    size_t n_top;
};

struct ak_sched {
    struct ak_session *session;
    struct ak_pool *pool; /* the session's threads, which sample too */
    struct ak_sched_options options;
    struct ak_sched_tree tree;
    bool has_tree;
    struct akunu_prompt_cache prompts; /* with the strings below */
    char *prompt_dir, *prompt_file;
    bool has_prompts;

    /* of the owner */
    struct ak_sched_task *queue;    /* tasks that wait, in their order */
    struct ak_sched_task **running; /* [n_running], oldest first */
    uint32_t n_running, max_running;
    uint64_t round;                  /* of the task admitted last */
    struct akunu_batch_token *pass;  /* [session's batch] */
    uint32_t n_pass, n_decoding;     /* tokens in it; those of them that continue texts */
    uint32_t n_pass_pages;           /* free pages that it takes */
    uint32_t n_prompt_max;           /* tokens of prompts that it may have */
    struct ak_sched_task **sampling; /* [max_running]: tasks that sample after it */
    double wide_seconds;   /* a decoding token's in passes of more than AK_SKINNY_MAX; 0: unknown */
    double prompt_seconds; /* a prompt token's; 0: unknown */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* something was submitted, cancelled or unpaused */
    /* under the lock */
    struct ak_sched_request *requests; /* all that have not ended */
    struct ak_sched_task *inbox;       /* submitted, not in the queue yet; newest first */
    uint64_t last_id;
    uint32_t n_requests, n_waiting; /* that have not ended; that have not started */
    bool has_news;                  /* since the owner looked last */
    bool stops;
    struct akunu_scheduler_stats published;
    struct akunu_scheduler_slot *slots; /* [max_running], by sequence */

    struct akunu_scheduler_stats stats; /* of the owner */

    pthread_t thread;
    bool has_thread;
};

static inline double ak_sched_now(const struct ak_sched *s)
{
    return s->options.clock(s->options.clock_user);
}

static inline const struct ak_session_kv_sequence *ak_sched_sequence(const struct ak_sched *s,
                                                                     const struct ak_sched_task *t)
{
    return ak_session_kv_sequence(&s->session->kv, t->sequence);
}

/* Tokens of a running task that are to run. */
static inline uint32_t ak_sched_count_left(const struct ak_sched *s, const struct ak_sched_task *t)
{
    return t->n_ids - ak_sched_sequence(s, t)->length;
}

/* The token before which a running task's passes end: its last one, or that of a prompt of which
 * tokens are to be dropped before the rest of the text runs. A text that is preempted after that
 * runs in the same way again. */
static inline uint32_t ak_sched_end_of_run(const struct ak_sched *s, const struct ak_sched_task *t)
{
    const struct ak_session_kv_sequence *sequence = ak_sched_sequence(s, t);
    uint32_t n_prompt = t->request->n_prompt;
    bool is_evicted = sequence->evicted_length > 0 || sequence->length >= n_prompt;
    return ak_session_evicts(s->session, n_prompt) && !is_evicted ? n_prompt : t->n_ids;
}

/* Whether a running task only needs the pass of the token that was sampled last. */
static inline bool ak_sched_is_decoding(const struct ak_sched *s, const struct ak_sched_task *t)
{
    return t->has_sampled && ak_sched_count_left(s, t) == 1;
}

/* ---- Requests: request.c ------------------------------------------------ */
/* Copies and checks a request. The caller frees *out. */
ak_status ak_sched_request_create(struct ak_sched *s, const struct akunu_request *given,
                                  struct ak_sched_request **out, struct ak_error *error);
void ak_sched_request_free(struct ak_sched_request *r); /* NULL and half-built ones allowed */

/* Begins a task's text, if it has not begun. */
ak_status ak_sched_task_begin(struct ak_sched *s, struct ak_sched_task *t, struct ak_error *error);
/* Appends a sampled token to the text, and to t->ids; reports it. */
ak_status ak_sched_task_append(struct ak_sched_task *t, int32_t token, struct ak_error *error);
/* Reports that a task ended, and frees what it has. `error` NULL: as its result says. */
void ak_sched_task_end(struct ak_sched *s, struct ak_sched_task *t, const struct ak_error *error);
/* Whether the prompt's log-probabilities are still to be reported. */
bool ak_sched_reports_prompt(const struct ak_sched_task *t);
/* Reports token `i` of the prompt. False: the host ends the completion. */
bool ak_sched_report_prompt(struct ak_sched_task *t, uint32_t i, float logprob,
                            const struct akunu_logprob *top, size_t n_top);

/* ---- Queue: queue.c ----------------------------------------------------- */
/* Puts a task behind those of its client, in turn with other clients. */
void ak_sched_queue_add(struct ak_sched *s, struct ak_sched_task *t);
/* Puts a task that has run before all that have not. */
void ak_sched_queue_return(struct ak_sched *s, struct ak_sched_task *t);
void ak_sched_queue_remove(struct ak_sched *s, struct ak_sched_task *t);

/* ---- Pages: pages.c ----------------------------------------------------- */
/* Starts tasks of the queue, in their order, while sequences and pages suffice. */
void ak_sched_admit(struct ak_sched *s);
/* Evicts cached pages until n are free; false: there are not so many. */
bool ak_sched_make_free(struct ak_sched *s, uint32_t n);
/* Drops the pages of the youngest running task, of a paused one if there is any; it goes back to
 * the queue. False: only one is running. */
bool ak_sched_preempt(struct ak_sched *s);
/* Takes a task from those that run, and frees its sequence. Its pages stay in the tree. */
void ak_sched_stop_running(struct ak_sched *s, struct ak_sched_task *t);
/* Takes more of a running task's text from the tree, if the tree has got it meanwhile. */
void ak_sched_share_prefix(struct ak_sched *s, struct ak_sched_task *t);

/* ---- Texts on disk: kept.c ---------------------------------------------- */
/* Copies where texts are kept; `prompts` NULL: nowhere. */
ak_status ak_sched_open_prompts(struct ak_sched *s, const struct akunu_prompt_cache *prompts,
                                struct ak_error *error);
void ak_sched_close_prompts(struct ak_sched *s);
/* Reads the beginning of a task's text from disk, once, if it has much more than the tree gave. */
void ak_sched_restore_prefix(struct ak_sched *s, struct ak_sched_task *t);

/* ---- Pass: pass.c ------------------------------------------------------- */
/* Chooses the tokens of the next pass: s->pass, and n_run and first of each task. 0: none. */
uint32_t ak_sched_form_pass(struct ak_sched *s);
/* Records how long the pass took. */
void ak_sched_record_pass(struct ak_sched *s, double seconds);

/* ---- Steps: run.c ------------------------------------------------------- */
/* Ends a task, wherever it is; frees its request after the last one. `error` NULL: as its result
 * says. */
void ak_sched_finish(struct ak_sched *s, struct ak_sched_task *t, const struct ak_error *error);

/* ---- Owner and other threads: scheduler.c ------------------------------- */
/* Takes over what other threads asked for since the last call. */
void ak_sched_take_requests(struct ak_sched *s);
/* Counts a request as started. */
void ak_sched_count_start(struct ak_sched *s, struct ak_sched_request *r);
/* Counts a request as ended, and makes the counts visible to other threads. */
void ak_sched_count_end(struct ak_sched *s, ak_status status);
/* Frees a request whose tasks have ended. */
void ak_sched_forget(struct ak_sched *s, struct ak_sched_request *r);
/* Makes the counts visible to other threads. */
void ak_sched_publish(struct ak_sched *s);

#endif

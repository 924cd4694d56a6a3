/* Scheduler: runs many requests on one session. One thread, its owner, calls ak_sched_step in a
 * loop; any thread submits, cancels and pauses.
 *
 * A request has completions; each is a task, which grows one sequence. A step admits tasks that
 * wait, forms a pass, runs it, samples and reports. The pass has the next token of every text that
 * grows, then parts of prompts, oldest first, as many as the budget of time allows.
 *
 *     scheduler.c   the thread; submitting, cancelling, counting
 *     request.c     requests and tasks: copies of what was asked for, events
 *     queue.c       who is next
 *     pages.c       admission, eviction, preemption
 *     pass.c        what runs in a pass, and for how long
 *     run.c         a step
 *     prefix_tree.c pages of earlier texts
 *     kept.c        the same on disk
 *
 * No decision of the scheduler changes a text: passes give the same bits however tokens are
 * divided among them. */
#ifndef AK_ENGINE_SCHEDULE_SCHEDULE_H
#define AK_ENGINE_SCHEDULE_SCHEDULE_H

#include "engine/session/session.h"

struct ak_sched;

/* Seconds of some clock. Called by the owner and by threads that submit. */
typedef double ak_sched_clock_fn(void *user);

struct ak_sched_options {
    uint32_t max_waiting;
    double max_pass_ratio;
    bool no_prefix_cache;
    const struct akunu_prompt_cache *prompts; /* where texts are kept on disk; NULL: nowhere */
    ak_sched_clock_fn *clock;                 /* NULL: the system's */
    void *clock_user;
};

/* As akunu_scheduler_new, without a thread; all fields of `params` are set or 0. */
ak_status ak_sched_create(struct ak_model *model, const struct akunu_session_params *params,
                          const struct ak_sched_options *options, struct ak_sched **out,
                          struct ak_error *error);
/* Stops the thread, ends all requests. NULL allowed. */
void ak_sched_free(struct ak_sched *s);

/* Starts a thread as the owner. */
ak_status ak_sched_start(struct ak_sched *s, struct ak_error *error);

/* Runs at most one pass. False: there is nothing to do until another call. By the owner. */
bool ak_sched_step(struct ak_sched *s);

/* Keeps a text of the prefix cache on disk. False: there is none left. By the owner, when nothing
 * else is to be done. */
bool ak_sched_keep_text(struct ak_sched *s);

/* All fields of `request` and of its generation, sampling and reasoning are set. */
ak_status ak_sched_submit(struct ak_sched *s, const struct akunu_request *request, uint64_t *id,
                          struct ak_error *error);
void ak_sched_cancel(struct ak_sched *s, uint64_t id);
void ak_sched_pause(struct ak_sched *s, uint64_t id, bool paused);
void ak_sched_get_stats(struct ak_sched *s, struct akunu_scheduler_stats *out);
/* False: there is no slot i. */
bool ak_sched_slot_at(struct ak_sched *s, size_t i, struct akunu_scheduler_slot *out);

/* For reading; by the owner. */
const struct ak_session *ak_sched_session(const struct ak_sched *s);

#endif

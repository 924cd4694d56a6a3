/* Pages and sequences: which tasks run, what the prefix cache gives and gives back. A task runs if
 * pages for all of its text so far are free or cached, beside what the running ones still need. */
#include "engine/schedule/internal.h"

/* ---- Running tasks ------------------------------------------------------ */
static bool is_older(const struct ak_sched_task *a, const struct ak_sched_task *b)
{
    return a->request->id != b->request->id ? a->request->id < b->request->id : a->index < b->index;
}

static void add_running(struct ak_sched *s, struct ak_sched_task *t)
{
    uint32_t at = s->n_running++;
    for (; at > 0 && is_older(t, s->running[at - 1]); at--)
        s->running[at] = s->running[at - 1];
    s->running[at] = t;
}

static void free_sequence(struct ak_sched *s, struct ak_sched_task *t)
{
    ak_session_kv_sequence_free(&s->session->kv, t->sequence);
    t->sequence = t->completion.sequence = -1;
}

void ak_sched_stop_running(struct ak_sched *s, struct ak_sched_task *t)
{
    uint32_t at = 0;
    while (s->running[at] != t)
        at++;
    s->n_running--;
    for (; at < s->n_running; at++)
        s->running[at] = s->running[at + 1];
    if (s->has_tree)
        ak_sched_tree_add(&s->tree, t->sequence, true);
    free_sequence(s, t);
    t->n_run = 0;
}

static void preempt(struct ak_sched *s, struct ak_sched_task *t)
{
    ak_sched_stop_running(s, t);
    ak_sched_queue_return(s, t);
    s->stats.n_preempted++;
}

/* Preempts the youngest paused task; false: none is paused. */
static bool preempt_paused(struct ak_sched *s)
{
    for (uint32_t i = s->n_running; i > 0; i--)
        if (s->running[i - 1]->request->is_paused) {
            preempt(s, s->running[i - 1]);
            return true;
        }
    return false;
}

bool ak_sched_preempt(struct ak_sched *s)
{
    if (preempt_paused(s))
        return true;
    if (s->n_running < 2)
        return false;
    preempt(s, s->running[s->n_running - 1]);
    return true;
}

/* ---- Pages -------------------------------------------------------------- */
bool ak_sched_make_free(struct ak_sched *s, uint32_t n)
{
    while (s->session->kv.n_free < n)
        if (!s->has_tree || !ak_sched_tree_evict(&s->tree))
            return false;
    return true;
}

void ak_sched_share_prefix(struct ak_sched *s, struct ak_sched_task *t)
{
    uint32_t before = ak_sched_sequence(s, t)->length;
    uint32_t n_max = ak_sched_reports_prompt(t) ? t->n_reported : ak_sched_end_of_run(s, t);
    if (!s->has_tree || before % AK_KV_PAGE_TOKENS != 0 || n_max <= before + 1)
        return;
    /* the last token runs, for its logits */
    uint32_t length = ak_sched_tree_share(&s->tree, t->sequence, t->ids, n_max - 1);
    if (!t->has_sampled)
        t->result.n_kept += length - before;
}

/* Pages for the rest of a task's text, and one to grow into. */
static uint64_t count_wanted(const struct ak_sched *s, const struct ak_sched_task *t)
{
    uint32_t left = ak_sched_count_left(s, t);
    return (uint64_t)ak_session_kv_count_new_pages(&s->session->kv, t->sequence, left) + 1;
}

static bool has_pages(const struct ak_sched *s, const struct ak_sched_task *t)
{
    uint64_t wanted = count_wanted(s, t), available = s->session->kv.n_free;
    for (uint32_t i = 0; i < s->n_running; i++)
        wanted += count_wanted(s, s->running[i]);
    if (wanted > available && s->has_tree)
        available += ak_sched_tree_count_evictable(&s->tree);
    return wanted <= available || s->n_running == 0;
}

/* ---- Admission ---------------------------------------------------------- */
/* Further completions wait for the first one's prompt, whose pages they share. */
static bool waits_for_prompt(const struct ak_sched *s, const struct ak_sched_task *t)
{
    const struct ak_sched_task *first = &t->request->tasks[0];
    return s->has_tree && t != first && !first->has_sampled && !first->has_ended;
}

/* Starts the task. False: it must wait, and so must all behind it. */
static bool start_task(struct ak_sched *s, struct ak_sched_task *t)
{
    struct ak_error error = { 0 };
    ak_sched_queue_remove(s, t);
    t->sequence = ak_session_kv_sequence_new(&s->session->kv);
    if (ak_sched_task_begin(s, t, &error) != AKUNU_OK) {
        free_sequence(s, t);
        ak_sched_queue_return(s, t);
        ak_sched_finish(s, t, &error);
        return true;
    }
    t->completion.sequence = t->sequence;
    uint64_t n_kept = t->result.n_kept;
    ak_sched_share_prefix(s, t);
    ak_sched_restore_prefix(s, t);
    if (!has_pages(s, t)) {
        t->result.n_kept = n_kept;
        free_sequence(s, t);
        ak_sched_queue_return(s, t);
        return false;
    }
    add_running(s, t);
    s->round = s->round > t->round ? s->round : t->round;
    if (!t->request->has_started)
        ak_sched_count_start(s, t->request);
    return true;
}

void ak_sched_admit(struct ak_sched *s)
{
    struct ak_sched_task *next;
    for (struct ak_sched_task *t = s->queue; t; t = next) {
        next = t->next;
        if (t->request->is_paused || waits_for_prompt(s, t))
            continue;
        while (s->n_running == s->max_running || !start_task(s, t))
            if (!preempt_paused(s))
                return;
    }
}

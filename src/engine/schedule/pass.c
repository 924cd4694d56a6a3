/* What runs in a pass: the next token of every text that grows, then parts of prompts. Their number
 * follows from the measured cost of passes, so that a long prompt delays the other texts by a
 * bounded time. */
#include "engine/schedule/internal.h"

enum {
    PROMPT_TOKENS_FEW = 16,                 /* fewer cost hardly less, but for their attention */
    PROMPT_TOKENS_MIN = 4,                  /* a prompt always advances */
    PROMPT_TOKENS_FIRST = AK_KV_PAGE_TOKENS /* before a prompt's token was timed */
};

/* ---- Cost --------------------------------------------------------------- */
/* Seconds of a pass of n decoding tokens; 0: unknown. */
static double estimate_decode(const struct ak_sched *s, uint32_t n)
{
    if (n > AK_SKINNY_MAX && s->wide_seconds > 0.0)
        return s->wide_seconds * n;
    uint32_t measured = n < AK_SKINNY_MAX ? n : AK_SKINNY_MAX;
    return n == 0 ? 0.0 : ak_session_cost_estimate(&s->session->cost_model, measured);
}

static void average(double *value, double measured)
{
    *value = *value > 0.0 ? *value + 0.25 * (measured - *value) : measured;
}

void ak_sched_record_pass(struct ak_sched *s, double seconds)
{
    uint32_t n_prompt = s->n_pass - s->n_decoding;
    double decode = estimate_decode(s, s->n_decoding);
    if (n_prompt == 0 && s->n_decoding > AK_SKINNY_MAX)
        average(&s->wide_seconds, seconds / s->n_decoding);
    else if (n_prompt == 0)
        ak_session_cost_update(&s->session->cost_model, s->n_decoding, seconds);
    else if ((n_prompt >= PROMPT_TOKENS_FEW || n_prompt == s->n_prompt_max) && seconds > decode)
        average(&s->prompt_seconds, (seconds - decode) / n_prompt);
}

/* Tokens of prompts with which a pass takes `ratio` times as long as without them. */
static double count_prompt(const struct ak_sched *s, double decode, double ratio)
{
    double n = decode * (ratio - 1.0) / s->prompt_seconds;
    return n > PROMPT_TOKENS_MIN ? n : PROMPT_TOKENS_MIN;
}

/* Tokens of prompts that a pass may have beside n_decoding others. */
static uint32_t count_prompt_max(const struct ak_sched *s)
{
    uint32_t free_rows = s->session->batch - s->n_pass;
    double decode = estimate_decode(s, s->n_decoding), n = PROMPT_TOKENS_FIRST;
    if (s->n_decoding == 0)
        return free_rows;
    if (decode <= 0.0) /* measured first, in this pass */
        return 0;
    if (s->prompt_seconds > 0.0)
        n = count_prompt(s, decode, s->options.max_pass_ratio);
    if (n < PROMPT_TOKENS_FEW) {
        n = count_prompt(s, decode, 1.5 * s->options.max_pass_ratio);
        n = n < PROMPT_TOKENS_FEW ? n : PROMPT_TOKENS_FEW;
    }
    return n < free_rows ? (uint32_t)n : free_rows;
}

/* ---- Tokens ------------------------------------------------------------- */
/* Adds the next n tokens of a task; false: too few pages are free. */
static bool add_tokens(struct ak_sched *s, struct ak_sched_task *t, uint32_t n)
{
    const struct ak_session_kv_sequence *sequence = ak_sched_sequence(s, t);
    uint32_t pages = ak_session_kv_count_new_pages(&s->session->kv, t->sequence, n);
    if (!ak_sched_make_free(s, s->n_pass_pages + pages))
        return false;
    bool all_logits = ak_sched_reports_prompt(t);
    t->first = s->n_pass;
    t->n_run = n;
    for (uint32_t i = sequence->length; i < sequence->length + n; i++)
        s->pass[s->n_pass++] = (struct akunu_batch_token){
            .token = t->ids[i],
            .sequence = t->sequence,
            .logits = all_logits || (i + 1 == t->n_ids && t->completion.limit > 0),
        };
    s->n_pass_pages += pages;
    return true;
}

/* A task alone may be short of a page that the tree shares with it. */
static bool add_tokens_alone(struct ak_sched *s, struct ak_sched_task *t, uint32_t n)
{
    if (s->n_running != 1 || !s->has_tree)
        return false;
    ak_sched_tree_clear(&s->tree);
    return add_tokens(s, t, n);
}

/* Adds the next token of a text that grows. Younger tasks, which are not in the pass yet, make way;
 * without any, this one does. */
static void add_growing(struct ak_sched *s, struct ak_sched_task *t)
{
    while (!add_tokens(s, t, 1)) {
        bool preempted = ak_sched_preempt(s);
        if (t->sequence < 0)
            return;
        if (!preempted) {
            add_tokens_alone(s, t, 1);
            return;
        }
    }
}

static void add_decoding(struct ak_sched *s)
{
    for (uint32_t i = 0; i < s->n_running; i++) {
        struct ak_sched_task *t = s->running[i];
        if (!t->request->is_paused && ak_sched_is_decoding(s, t))
            add_growing(s, t);
    }
    s->n_decoding = s->n_pass;
}

static void add_prompts(struct ak_sched *s)
{
    uint32_t budget = s->n_prompt_max = count_prompt_max(s);
    for (uint32_t i = 0; i < s->n_running && budget > 0; i++) {
        struct ak_sched_task *t = s->running[i];
        if (t->request->is_paused || ak_sched_is_decoding(s, t))
            continue;
        ak_sched_share_prefix(s, t);
        uint32_t n = ak_sched_end_of_run(s, t) - ak_sched_sequence(s, t)->length;
        n = n < budget ? n : budget;
        while (n > 0 && !add_tokens(s, t, n) && !add_tokens_alone(s, t, n))
            n /= 2;
        budget -= n;
    }
}

/* ---- Logits ------------------------------------------------------------- */
/* Number of largest logits that all tasks of the pass need; 0: all. */
static uint32_t count_best(const struct ak_sched *s)
{
    uint32_t n_best = 1;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const struct ak_sched_task *t = s->running[i];
        if (t->n_run == 0 || !s->pass[t->first + t->n_run - 1].logits)
            continue;
        uint32_t own = ak_sched_reports_prompt(t) ? 0 : ak_gen_completion_n_best(&t->completion);
        if (own == 0)
            return 0;
        n_best = own > n_best ? own : n_best;
    }
    return n_best;
}

static bool has_runnable(const struct ak_sched *s)
{
    for (uint32_t i = 0; i < s->n_running; i++)
        if (!s->running[i]->request->is_paused)
            return true;
    return false;
}

uint32_t ak_sched_form_pass(struct ak_sched *s)
{
    do {
        s->n_pass = s->n_decoding = s->n_pass_pages = 0;
        for (uint32_t i = 0; i < s->n_running; i++)
            s->running[i]->n_run = 0;
        add_decoding(s);
        add_prompts(s);
        /* prompts that block each other */
    } while (s->n_pass == 0 && has_runnable(s) && ak_sched_preempt(s));
    if (s->n_pass > 0)
        ak_session_want_best(s->session, count_best(s));
    return s->n_pass;
}

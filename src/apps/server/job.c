/* Jobs: submitting, events from the scheduler's thread, clients that leave or do not read. */
#include "apps/server/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/common/message.h"
#include "apps/server/memory.h"

bool server_text_add(struct server_text *t, const char *bytes, size_t n)
{
    if (t->n + n + 1 > t->capacity) {
        size_t capacity = 2 * (t->n + n + 1);
        char *larger = realloc(t->bytes, capacity);
        if (!larger)
            return false;
        t->bytes = larger;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = '\0';
    return true;
}

/* ---- Events ------------------------------------------------------------- */
/* Copies an event of the scheduler. NULL: out of memory. */
static struct server_event *copy_event(const struct akunu_request_event *e,
                                       struct server_source *source)
{
    bool ends = e->kind == AKUNU_REQUEST_END;
    const char *text = ends ? e->message : e->text;
    size_t n = ends ? strlen(e->message) : e->n_bytes;
    struct server_event *event = malloc(sizeof *event + n + 1);
    struct akunu_logprob *top = e->n_top > 0 ? malloc(e->n_top * sizeof *top) : NULL;
    if (!event || (e->n_top > 0 && !top)) {
        free(event);
        free(top);
        return NULL;
    }
    *event = (struct server_event){ .source = source,
                                    .kind = e->kind,
                                    .index = e->index,
                                    .token = e->token,
                                    .prompt_index = e->prompt_index,
                                    .logprob = e->logprob,
                                    .top = top,
                                    .n_top = e->n_top,
                                    .status = e->status,
                                    .n_open = e->n_open,
                                    .time = app_seconds(),
                                    .n_bytes = n };
    if (ends)
        event->result = *e->result;
    if (top)
        memcpy(top, e->top, e->n_top * sizeof *top);
    memcpy(event->text, text, n);
    event->text[n] = '\0';
    return event;
}

/* In the scheduler's thread. Ends must not be lost, so memory for them is waited for. */
static bool on_event(const struct akunu_request_event *e, void *user)
{
    struct server_source *source = user;
    struct server *s = source->job->model->server;
    struct server_event *event = copy_event(e, source);
    while (!event && e->kind == AKUNU_REQUEST_END) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        event = copy_event(e, source);
    }
    if (!event) {
        source->job->lost_event = true;
        return false;
    }
    pthread_mutex_lock(&s->events_lock);
    *s->last_event = event;
    s->last_event = &event->next;
    pthread_mutex_unlock(&s->events_lock);
    http_wake(s->http);
    return true;
}

static void free_event(struct server_event *event)
{
    free(event->top);
    free(event);
}

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv). */
uint64_t server_identify_client(const struct http_exchange *x)
{
    const char *key = http_header(x, "Authorization"), *own = http_header(x, "x-api-key");
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = key ? key : own ? own : http_client(x); *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash;
}

/* Copies the stop sequences. False: out of memory. */
static bool keep_stops(struct server_job *job, const struct akunu_generation_params *g)
{
    bool good = true;
    job->stops = calloc(g->n_stops + 1, sizeof *job->stops);
    for (; job->stops && good && job->n_stops < g->n_stops; job->n_stops++)
        good = (job->stops[job->n_stops] = strdup(g->stops[job->n_stops])) != NULL;
    return job->stops && good;
}

/* ---- Jobs --------------------------------------------------------------- */
static void leave_job(void *self);
static void go_on(void *self);

/* Fills in request i. False: out of memory. */
static bool begin_source(struct server_job *job, size_t i, const struct server_params *params,
                         const struct server_prompt *prompt)
{
    struct server_source *source = &job->sources[i];
    source->job = job;
    source->first = i * (size_t)params->n;
    source->prompt = prompt;
    source->n_prompt = prompt->n;
    source->settings = server_settings(params);
    return source->settings && server_begin_receipt(source, params, prompt->ids, prompt->n);
}

struct server_job *server_job_new(struct server_model *m, struct http_exchange *x,
                                  const struct server_style *style,
                                  const struct server_params *params,
                                  const struct server_prompt *prompts, size_t n_prompts)
{
    struct server *s = m->server;
    struct server_job *job = calloc(1, sizeof *job);
    size_t n_parts = n_prompts * (size_t)params->n;
    if (job) {
        job->model = m;
        job->sources = calloc(n_prompts, sizeof *job->sources);
        job->parts = calloc(n_parts, sizeof *job->parts);
    }
    bool good = job && job->sources && job->parts && keep_stops(job, &params->generation);
    for (; good && job->n_sources < n_prompts; job->n_sources++)
        good = begin_source(job, job->n_sources, params, &prompts[job->n_sources]);
    if (!good) {
        server_job_free(job);
        server_fail_memory(x);
        return NULL;
    }
    job->owner = (struct server_owner){ .leave = leave_job, .drained = go_on };
    job->x = x;
    job->style = style;
    job->created = (int64_t)time(NULL);
    job->stream = params->stream;
    job->include_usage = params->include_usage;
    job->n_top = params->n_top;
    job->n_parts = n_parts;
    snprintf(job->id, sizeof job->id, "%s%llx-%llx", style->prefix, (unsigned long long)s->created,
             (unsigned long long)++s->n_jobs);
    for (size_t i = 0; i < n_parts; i++) {
        job->parts[i].job = job;
        job->parts[i].index = i;
    }
    return job;
}

void server_job_free(struct server_job *job)
{
    if (!job)
        return;
    if (job->link) {
        *job->link = job->next;
        if (job->next)
            job->next->link = job->link;
        if (job->x)
            http_set_data(job->x, NULL);
        job->model->n_users--;
    }
    if (job->style && job->style->release)
        job->style->release(job);
    for (size_t i = 0; job->parts && i < job->n_parts; i++) {
        akunu_reply_free(job->parts[i].reply);
        json_decref(job->parts[i].logprobs);
        json_decref(job->parts[i].tokens);
        json_decref(job->parts[i].receipt);
        free(job->parts[i].text.bytes);
    }
    for (size_t i = 0; i < job->n_stops; i++)
        free(job->stops[i]);
    for (size_t i = 0; job->sources && i < job->n_sources; i++) {
        json_decref(job->sources[i].receipt);
        json_decref(job->sources[i].settings);
    }
    free(job->stops);
    free(job->sources);
    free(job->parts);
    free(job);
}

static void cancel(struct server_job *job)
{
    for (size_t i = 0; i < job->n_sources; i++)
        if (job->sources[i].is_submitted && !job->sources[i].has_ended)
            akunu_scheduler_cancel(job->model->scheduler, job->sources[i].id);
}

/* Adds the job to the server's. */
static void add_job(struct server_job *job)
{
    struct server *s = job->model->server;
    job->model->n_users++;
    job->next = s->jobs;
    job->link = &s->jobs;
    if (job->next)
        job->next->link = &job->next;
    s->jobs = job;
    http_set_data(job->x, &job->owner);
}

/* Ends a job one of whose requests was refused, after the earlier ones have ended. */
static void end_refused(struct server_job *job)
{
    http_set_data(job->x, NULL);
    leave_job(job);
    if (job->n_open == 0)
        server_job_free(job);
}

void server_job_submit(struct server_job *job, const struct server_params *params)
{
    struct akunu_request request;
    add_job(job);
    akunu_request_default(&request, sizeof request);
    request.n = (size_t)params->n;
    request.generation = &params->generation;
    request.logprobs = job->n_top >= 0;
    request.prompt_logprobs = params->prompt_logprobs;
    request.chain = params->receipt;
    request.timeout = params->timeout;
    request.client = server_identify_client(job->x);
    request.on_event = on_event;
    for (size_t i = 0; i < job->n_sources; i++) {
        struct server_source *source = &job->sources[i];
        request.ids = source->prompt->ids;
        request.n_ids = source->n_prompt;
        request.user = source;
        source->is_submitted =
            akunu_scheduler_submit(job->model->scheduler, &request, &source->id) == AKUNU_OK;
        if (!source->is_submitted) {
            server_fail_library_at(job->x, "prompt", i, job->n_sources);
            end_refused(job);
            return;
        }
        job->n_open++;
    }
    if (job->style->begin)
        job->style->begin(job);
}

static void free_submission(struct server_submission *s)
{
    if (s)
        akunu_grammar_free(s->params.grammar);
    free(s);
}

static void commit_submission(struct server_model *m, struct http_exchange *x, void *own)
{
    struct server_submission *s = own;
    (void)m, (void)x;
    server_job_submit(s->job, &s->params);
    free_submission(s);
}

struct server_commit server_submission_commit(struct server_submission *s)
{
    if (s && s->job)
        return (struct server_commit){ commit_submission, s };
    free_submission(s);
    return server_answered;
}

static void leave_job(void *self)
{
    struct server_job *job = self;
    job->x = NULL;
    cancel(job);
}

/* ---- Clients that do not read ------------------------------------------- */
static void pause_job(struct server_job *job, bool paused)
{
    if (job->is_paused == paused)
        return;
    job->is_paused = paused;
    for (size_t i = 0; i < job->n_sources; i++)
        if (job->sources[i].is_submitted && !job->sources[i].has_ended)
            akunu_scheduler_pause(job->model->scheduler, job->sources[i].id, paused);
}

static void go_on(void *self)
{
    pause_job(self, false);
}

/* ---- Taking events ------------------------------------------------------ */
static void fail_job(struct server_job *job, enum akunu_status status, const char *message)
{
    if (job->status != AKUNU_OK)
        return;
    job->status = status;
    snprintf(job->message, sizeof job->message, "%s", message);
    cancel(job);
}

static void observe(struct server_part *part, const struct server_event *event)
{
    struct server *s = part->job->model->server;
    if (event->token < 0)
        return;
    if (part->last_token > 0.0)
        server_observe(&s->next_token, event->time - part->last_token);
    else if (part->job->x)
        server_observe(&s->first_token, http_age(part->job->x));
    part->last_token = event->time;
}

static void take_end(struct server_part *part, const struct server_event *event)
{
    struct server_job *job = part->job;
    struct server_source *source = event->source;
    if (source->first == part->index) {
        job->n_prompt += source->n_prompt;
        job->n_cached += event->result.n_kept;
    }
    job->n_generated += event->result.n_generated;
    if (job->x) {
        uint64_t *counts = http_counts(job->x);
        counts[SERVER_PROMPT] = job->n_prompt;
        counts[SERVER_CACHED] = job->n_cached;
        counts[SERVER_GENERATED] = job->n_generated;
    }
    if (part->index == 0)
        job->result = event->result;
    if (event->status != AKUNU_OK)
        fail_job(job, event->status, event->text);
    else if (job->x) {
        server_receipt_end(part, event);
        job->style->end(part, event);
    }
    if (event->n_open == 0) {
        source->has_ended = true;
        job->n_open--;
    }
}

/* Hands a token of the prompt to all completions of its request. */
static void take_prompt(struct server_job *job, const struct server_event *event)
{
    for (size_t i = 0; i < job->n_parts / job->n_sources; i++)
        job->style->prompt(&job->parts[event->source->first + i], event);
}

static void take_event(const struct server_event *event)
{
    struct server_job *job = event->source->job;
    struct server_part *part = &job->parts[event->source->first + event->index];
    bool works = job->x && job->status == AKUNU_OK;
    if (event->kind == AKUNU_REQUEST_END)
        take_end(part, event);
    else if (event->kind == AKUNU_REQUEST_PROMPT && works && job->style->prompt)
        take_prompt(job, event);
    else if (event->kind == AKUNU_REQUEST_TOKEN && works) {
        observe(part, event);
        server_receipt_add_token(part, event);
        job->style->token(part, event);
    }
    if (job->no_memory || job->lost_event)
        fail_job(job, AKUNU_ERROR_MEMORY, "out of memory");
    if (job->x && http_count_unread(job->x) > server_memory_of_unread(job->model->server))
        pause_job(job, true);
    if (job->n_open > 0)
        return;
    if (job->x)
        job->style->done(job);
    server_job_free(job);
}

void server_take_events(struct server *s)
{
    pthread_mutex_lock(&s->events_lock);
    struct server_event *event = s->first_event;
    s->first_event = NULL;
    s->last_event = &s->first_event;
    pthread_mutex_unlock(&s->events_lock);
    while (event) {
        struct server_event *next = event->next;
        take_event(event);
        free_event(event);
        event = next;
    }
}

void server_cancel_jobs(struct server *s)
{
    for (struct server_job *job = s->jobs; job; job = job->next)
        cancel(job);
}

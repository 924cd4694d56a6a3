/* Lanes take chunks under a lock; what callbacks see is kept by the thread of the call alone. */
#include "speech/transcribe/work.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "speech/transcribe/chunks.h"
#include "speech/transcribe/grammar.h"
#include "speech/transcribe/order.h"
#include "speech/transcribe/plan.h"

enum { STEPS_PER_PROGRESS = 1000 /* of VAD: 32 s */, LANGUAGES_MAX = 128 };

struct clip {
    struct ak_transcribe_clip request;
    struct ak_transcribe_plan plan;
    struct ak_transcribe_chunks chunks; /* zeros: the clip is transcribed whole */
    struct clip *behind;                /* that came after it */

    /* under the lock: parts are chunks, or the whole */
    bool opened;          /* by a lane */
    size_t n_parts, next; /* next: the first that no lane has taken; 0 while it is opened */
    size_t n_running;
    bool failed;

    pthread_mutex_t reading; /* of chunks */
    pthread_cond_t was_read;
    size_t n_read;

    /* in the thread of the call */
    struct ak_error error; /* why it failed */
    struct ak_order order;
    uint64_t n_frames, n_done; /* of all parts, and of those that have ended */
    double progress;
};

struct work {
    const struct ak_transcribe_setup *setup;
    ak_transcribe_next_fn *fetch;
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct clip *clips; /* oldest first */
    size_t n_lanes;     /* that run */
    size_t n_idle;      /* of them, those that wait for a part or a clip */
    bool ended;         /* there are none */
};

/* What a lane does at the moment. */
struct job {
    struct work *work;
    struct ak_lane *lane;
    struct clip *clip;
    size_t part;
    bool opens, has_published; /* the clip, whose first part this is */
    float *samples;            /* of a chunk; NULL: the whole clip */
    size_t n_samples;
    struct ak_error error;
    size_t n_steps; /* of VAD */
    /* for the thread of the call */
    struct akunu_segment segment;
    uint64_t n_frames;
};

static bool is_whole(const struct clip *c)
{
    return !c->request.vad.silero;
}

/* ---- In the thread of the call ------------------------------------------ */
/* The first failure is the clip's, and ends it: its callbacks run no more. */
static void fail_clip(struct job *j, const struct ak_error *error)
{
    struct clip *c = j->clip;
    pthread_mutex_lock(&j->work->lock);
    if (!c->failed)
        c->error = *error;
    c->failed = true;
    c->next = c->n_parts;
    pthread_mutex_unlock(&j->work->lock);
}

/* Reports how far the clip is. */
static ak_status report_progress(struct job *j, uint64_t first, struct ak_error *error)
{
    struct clip *c = j->clip;
    const struct ak_transcribe_sink *sink = &c->request.sink;
    double progress = c->n_frames > 0 ? (double)(c->n_done + first) / (double)c->n_frames : 0.0;
    if (progress > c->progress)
        c->progress = progress;
    if (c->failed)
        return ak_transcribe_fail_cancelled(error);
    if (!sink->on_progress || sink->on_progress(c->progress, sink->user))
        return AKUNU_OK;
    ak_transcribe_fail_cancelled(error);
    fail_clip(j, error);
    return error->status;
}

static ak_status show_progress(void *user, struct ak_error *error)
{
    return report_progress(user, 0, error);
}

/* A segment of a chunk: its times become those of the clip. */
static ak_status report_of_chunk(struct job *j, struct ak_error *error)
{
    struct clip *c = j->clip;
    struct ak_segment_copy *copy = ak_segment_copy_new(&j->segment);
    if (!copy)
        return ak_fail_memory(error, "a segment", 0);
    ak_transcribe_chunks_map(&c->chunks, j->part, &copy->segment, copy->words);
    return ak_order_add(&c->order, j->part, copy, error);
}

static ak_status job_report(void *user, struct ak_error *error)
{
    struct job *j = user;
    if (j->clip->failed)
        return ak_transcribe_fail_cancelled(error);
    ak_status status = is_whole(j->clip) ? ak_order_report(&j->clip->order, &j->segment, error) :
                                           report_of_chunk(j, error);
    if (status != AKUNU_OK)
        fail_clip(j, error);
    return status;
}

static void free_clip(struct clip *c)
{
    ak_order_close(&c->order);
    ak_transcribe_chunks_close(&c->chunks);
    ak_transcribe_plan_free(&c->plan);
    pthread_cond_destroy(&c->was_read);
    pthread_mutex_destroy(&c->reading);
    ak_free(c);
}

/* Tells the end of a clip that is in no list, and frees it. */
static void end_clip(struct clip *c)
{
    const struct ak_transcribe_sink *sink = &c->request.sink;
    if (sink->on_end)
        sink->on_end(&c->error, c->plan.task.language, sink->user);
    free_clip(c);
}

/* The lane no longer works at the part. True: this ends the clip, which is in no list any more. */
static bool leave_part(struct job *j)
{
    struct work *w = j->work;
    struct clip *c = j->clip;
    pthread_mutex_lock(&w->lock);
    c->n_running--;
    bool ends = c->n_running == 0 && c->next == c->n_parts;
    for (struct clip **at = &w->clips; ends && *at; at = &(*at)->behind)
        if (*at == c) {
            *at = c->behind;
            break;
        }
    pthread_mutex_unlock(&w->lock);
    return ends;
}

/* A lane has ended its part, or could not open its clip. */
static ak_status end_part(void *user, struct ak_error *error)
{
    struct job *j = user;
    struct clip *c = j->clip;
    c->n_done += j->n_frames;
    if (j->error.status == AKUNU_OK && c->n_parts > 0 && !c->failed)
        ak_order_end(&c->order, j->part, &j->error);
    if (j->error.status != AKUNU_OK)
        fail_clip(j, &j->error);
    if (leave_part(j))
        end_clip(c);
    (void)error;
    return AKUNU_OK;
}

static ak_status plan_clip(const struct work *w, struct clip *c)
{
    uint32_t n = ak_transcribe_count_texts(c->request.asked);
    if (n > w->setup->max_texts)
        return ak_fail(&c->error, AKUNU_ERROR_ARGUMENT,
                       "%u texts at once; the session has room for %u of each window", (unsigned)n,
                       (unsigned)w->setup->max_texts);
    return ak_transcribe_plan_make(w->setup->s->model, &w->setup->tokens, c->request.asked,
                                   &c->plan, &c->error);
}

/* Asks for one more clip. */
static ak_status fetch(void *user, struct ak_error *error)
{
    struct work *w = user;
    struct ak_transcribe_clip request = { 0 };
    if (!w->fetch(&request, w->user))
        return AKUNU_OK;
    struct clip *c = ak_alloc(1, sizeof *c);
    if (!c) {
        ak_fail_memory(error, "a clip", sizeof *c);
        if (request.sink.on_end)
            request.sink.on_end(error, 0, request.sink.user);
        return AKUNU_OK;
    }
    pthread_mutex_init(&c->reading, NULL);
    pthread_cond_init(&c->was_read, NULL);
    c->request = request;
    c->order =
        (struct ak_order){ .on_segment = request.sink.on_segment, .user = request.sink.user };
    if (plan_clip(w, c) != AKUNU_OK) {
        end_clip(c);
        return AKUNU_OK;
    }
    pthread_mutex_lock(&w->lock);
    struct clip **last = &w->clips;
    while (*last)
        last = &(*last)->behind;
    *last = c;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return AKUNU_OK;
}

static ak_status on_pass(void *user, uint64_t first, struct ak_error *error)
{
    struct job *j = user;
    struct ak_error ignored = { 0 };
    pthread_mutex_lock(&j->work->lock);
    bool has_room = j->work->n_idle > 0;
    pthread_mutex_unlock(&j->work->lock);
    if (has_room)
        fetch(j->work, &ignored);
    return report_progress(j, first, error);
}

/* ---- In the lanes ------------------------------------------------------- */
static bool job_on_piece(void *user, const float *samples, size_t n)
{
    struct job *j = user;
    (void)samples, (void)n;
    return ak_meeting_call(j->work->setup->meeting, show_progress, j, &j->error) == AKUNU_OK;
}

static bool on_probability(float probability, void *user)
{
    struct job *j = user;
    (void)probability;
    return j->n_steps++ % STEPS_PER_PROGRESS != 0 ||
           ak_meeting_call(j->work->setup->meeting, show_progress, j, &j->error) == AKUNU_OK;
}

static ak_status job_on_segment(void *user, const struct ak_speech_segment *s,
                                struct ak_error *error)
{
    struct job *j = user;
    j->segment = (struct akunu_segment){ .window = s->window,
                                         .start = s->start,
                                         .end = s->end,
                                         .text = s->n_bytes ? s->text : "",
                                         .n_bytes = s->n_bytes,
                                         .tokens = s->tokens,
                                         .n_tokens = s->n_tokens,
                                         .temperature = s->temperature,
                                         .mean_log_prob = s->mean_log_prob,
                                         .compression = s->compression,
                                         .no_speech = s->no_speech,
                                         .words = s->words,
                                         .n_words = s->n_words,
                                         .token_probabilities = s->probabilities };
    return ak_meeting_call(j->work->setup->meeting, job_report, j, error);
}

/* Finds the clip's parts, none if it has no speech. */
static ak_status find_parts(struct job *j)
{
    struct clip *c = j->clip;
    struct ak_speech_task *task = &c->plan.task;
    if (is_whole(c)) {
        c->n_parts = 1;
    } else {
        AK_TRY(ak_transcribe_chunks_open(c->request.audio, &c->request.vad, task->first, task->end,
                                         on_probability, j, &c->chunks, &j->error));
        task->first = 0; /* of each chunk */
        task->end = UINT64_MAX;
        c->n_parts = c->chunks.n;
        c->n_frames = c->n_parts > 0 ? c->chunks.list[c->n_parts - 1].end : 0;
    }
    return ak_order_open(&c->order, c->n_parts, &j->error);
}

/* Reads the samples of a chunk: in the order of the chunks, and without the lock, since what lies
 * between them may be long. */
static ak_status read_part(struct job *j)
{
    struct clip *c = j->clip;
    if (is_whole(c))
        return AKUNU_OK;
    pthread_mutex_lock(&c->reading);
    while (c->n_read != j->part)
        pthread_cond_wait(&c->was_read, &c->reading);
    ak_transcribe_chunks_read(&c->chunks, j->part, &j->samples, &j->n_samples, &j->error);
    c->n_read++;
    pthread_cond_broadcast(&c->was_read);
    pthread_mutex_unlock(&c->reading);
    return j->error.status;
}

static ak_status detect_language(struct job *j)
{
    float probabilities[LANGUAGES_MAX];
    int32_t best = 0, n = j->work->setup->tokens.n_languages;
    AK_TRY(ak_lane_languages(j->lane, probabilities, &j->error));
    for (int32_t i = 1; i < n; i++)
        if (probabilities[i] > probabilities[best])
            best = i;
    j->clip->plan.task.language = best;
    return AKUNU_OK;
}

/* Other lanes may take the clip's further parts. */
static void publish(struct job *j, size_t next)
{
    struct work *w = j->work;
    pthread_mutex_lock(&w->lock);
    j->clip->next = next;
    j->has_published = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Each part has a matcher of its own, since it belongs to one thread. Close *g in any case. */
static ak_status constrain(struct job *j, struct ak_transcribe_grammar *g,
                           struct ak_speech_clip *speech)
{
    const struct ak_transcribe_plan *plan = &j->clip->plan;
    const struct ak_transcribe_setup *setup = j->work->setup;
    if (!plan->grammar)
        return AKUNU_OK;
    speech->constraint = &g->constraint;
    return ak_transcribe_grammar_open(setup->s->model, plan->grammar, plan->grammar_penalty,
                                      setup->tokens.end, g, &j->error);
}

/* Transcribes the part at hand, whose audio is `audio`. The first of a clip tells its language, and
 * the others wait for that. */
static ak_status transcribe_audio(struct job *j, struct ak_audio *audio, struct ak_clip **clip)
{
    struct clip *c = j->clip;
    struct ak_lane *lane = j->lane;
    AK_TRY(ak_clip_new(audio, j->work->setup->mel, is_whole(c) ? job_on_piece : NULL, j, clip,
                       &j->error));
    lane->clip = *clip;
    lane->audio_context = c->plan.audio_context;
    lane->on_pass = on_pass;
    lane->user = j;
    j->n_frames = ak_clip_samples(*clip) / AK_MEL_HOP;
    if (is_whole(c))
        c->n_frames = j->n_frames;
    if (j->opens && c->plan.detects_language)
        AK_TRY(detect_language(j));
    if (j->opens)
        publish(j, 1);
    struct ak_speech_clip speech = ak_lane_clip(lane);
    uint64_t *breaks = NULL;
    speech.origin = c->request.origin;
    if (!is_whole(c)) {
        const struct ak_vad_chunk *chunk = &c->chunks.list[j->part];
        speech.origin += chunk->begin;
        speech.breaks = breaks = ak_alloc(chunk->n, sizeof *breaks);
        if (!breaks)
            return ak_fail_memory(&j->error, "a chunk of speech", chunk->n * sizeof *breaks);
        speech.n_breaks = ak_transcribe_chunks_breaks(&c->chunks, j->part, breaks);
    }
    struct ak_transcribe_grammar grammar = { .end = 0 };
    ak_status status = constrain(j, &grammar, &speech);
    if (status == AKUNU_OK) {
        ak_meeting_join(j->work->setup->meeting);
        status = ak_speech_transcribe(&speech, &c->plan.task, job_on_segment, j, &j->error);
        ak_meeting_leave(j->work->setup->meeting);
    }
    ak_transcribe_grammar_close(&grammar);
    ak_free(breaks);
    return status;
}

static void transcribe_part(struct job *j)
{
    struct ak_audio *audio = j->clip->request.audio;
    struct ak_clip *clip = NULL;
    ak_status status = AKUNU_OK;
    if (!is_whole(j->clip))
        status = ak_audio_open_samples(j->samples, j->n_samples, AK_MEL_RATE, &audio, &j->error);
    if (status == AKUNU_OK)
        transcribe_audio(j, audio, &clip);
    ak_clip_free(clip);
    if (!is_whole(j->clip))
        ak_audio_close(audio);
}

/* Opens the clip and transcribes its first part. */
static void begin_clip(struct job *j)
{
    struct clip *c = j->clip;
    ak_status status = find_parts(j);
    if (status == AKUNU_OK && c->n_parts > 0)
        status = read_part(j);
    if (status == AKUNU_OK && c->n_parts > 0)
        transcribe_part(j);
    if (!j->has_published)
        publish(j, c->n_parts);
}

/* A clip with a part to take, or one to open. */
static struct clip *find_clip(const struct work *w)
{
    struct clip *c = w->clips;
    while (c && c->opened && !(c->next > 0 && c->next < c->n_parts))
        c = c->behind;
    return c;
}

/* Waits for a part or a clip; under the lock. */
static struct clip *wait_for_clip(struct work *w)
{
    struct clip *c = find_clip(w);
    struct ak_error ignored = { 0 };
    if (!c) {
        pthread_mutex_unlock(&w->lock);
        ak_meeting_call(w->setup->meeting, fetch, w, &ignored);
        pthread_mutex_lock(&w->lock);
    }
    w->n_idle++;
    while (!(c = find_clip(w)) && !w->ended) {
        if (w->n_idle == w->n_lanes) {
            w->ended = true;
            pthread_cond_broadcast(&w->changed);
        } else {
            pthread_cond_wait(&w->changed, &w->lock);
        }
    }
    w->n_idle--;
    return c;
}

/* What the lane does next. False: nothing, ever. */
static bool take_step(struct job *j)
{
    struct work *w = j->work;
    pthread_mutex_lock(&w->lock);
    struct clip *c = j->clip = wait_for_clip(w);
    if (c) {
        j->opens = !c->opened;
        c->opened = true;
        c->n_running++;
        j->part = j->opens ? 0 : c->next++;
    }
    pthread_mutex_unlock(&w->lock);
    return c != NULL;
}

static void run_lane(struct work *w, struct ak_lane *lane)
{
    struct ak_error none = { 0 };
    for (;;) {
        struct job j = { .work = w, .lane = lane };
        if (!take_step(&j))
            return;
        if (j.opens)
            begin_clip(&j);
        else if (read_part(&j) == AKUNU_OK)
            transcribe_part(&j);
        ak_meeting_call(w->setup->meeting, end_part, &j, &none);
        ak_free(j.samples);
    }
}

/* ---- Threads ------------------------------------------------------------ */
struct runner {
    struct work *work;
    struct ak_lane *lane;
    pthread_t thread;
};

static void *run_thread(void *user)
{
    struct runner *r = user;
    run_lane(r->work, r->lane);
    ak_meeting_end(r->work->setup->meeting);
    return NULL;
}

/* Fewer threads than lanes are no failure. Signals are for the host's threads. */
static size_t start_threads(struct work *w, struct runner *runners)
{
    sigset_t all, old;
    size_t n = 0;
    int code = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; n < w->setup->n_lanes && code == 0; n += code == 0) {
        runners[n] = (struct runner){ .work = w, .lane = &w->setup->lanes[n] };
        code = pthread_create(&runners[n].thread, NULL, run_thread, &runners[n]);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_mutex_lock(&w->lock);
    w->n_lanes = n;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return n;
}

static ak_status run_threads(struct work *w, struct ak_error *error)
{
    struct runner *runners = ak_alloc(w->setup->n_lanes, sizeof *runners);
    if (!runners)
        return ak_fail_memory(error, "threads", w->setup->n_lanes * sizeof *runners);
    size_t n = start_threads(w, runners);
    ak_meeting_serve(w->setup->meeting, n);
    for (size_t i = 0; i < n; i++)
        pthread_join(runners[i].thread, NULL);
    ak_free(runners);
    return n > 0 ? AKUNU_OK : ak_fail(error, AKUNU_ERROR_SYSTEM, "no thread can be started");
}

ak_status ak_transcribe_work(const struct ak_transcribe_setup *setup, ak_transcribe_next_fn *next,
                             void *user, struct ak_error *error)
{
    struct work w = { .setup = setup, .fetch = next, .user = user, .n_lanes = setup->n_lanes };
    ak_status status = AKUNU_OK;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    if (setup->n_lanes > 1)
        status = run_threads(&w, error);
    else
        run_lane(&w, &setup->lanes[0]);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    return status;
}

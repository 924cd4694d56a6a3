/* The thread that transcribes clips, several at once, and its queue. */
#include "apps/server/speech.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/clips.h"

struct server_speech {
    struct akunu_session *session;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t last_client; /* whose clip was taken last */
    /* under its lock */
    struct server_transcription *waiting, *running, *done;
    size_t n_waiting;
    bool stops;
};

/* ---- Transcriptions ----------------------------------------------------- */
static void append_transcription(struct server_transcription **list, struct server_transcription *t)
{
    while (*list)
        list = &(*list)->next;
    t->next = NULL;
    *list = t;
}

/* Takes a transcription out of the queue; false: it is not in it. Under the speech's lock. */
static bool take_waiting(struct server_speech *s, struct server_transcription *t)
{
    struct server_transcription **link = &s->waiting;
    while (*link && *link != t)
        link = &(*link)->next;
    if (!*link)
        return false;
    *link = t->next;
    s->n_waiting--;
    return true;
}

static void free_transcription(struct server_transcription *t)
{
    akunu_audio_free(t->audio);
    app_transcript_free(&t->transcript);
    json_decref(t->form);
    free(t->own);
    free(t);
}

static void leave_speech(void *self)
{
    struct server_transcription *t = self;
    struct server_speech *s = t->model->speech;
    t->x = NULL;
    t->is_cancelled = true;
    pthread_mutex_lock(&s->lock);
    bool waited = take_waiting(s, t);
    pthread_mutex_unlock(&s->lock);
    if (!waited)
        return;
    t->model->n_users--;
    free_transcription(t);
}

struct server_transcription *server_transcription_new(struct server_model *m,
                                                      struct http_exchange *x,
                                                      struct akunu_audio *audio, void *own)
{
    struct server_transcription *t = calloc(1, sizeof *t);
    double timeout = (double)m->server->options->server.timeout;
    if (!t) {
        akunu_audio_free(audio);
        free(own);
        server_fail_memory(x);
        return NULL;
    }
    t->owner = (struct server_owner){ .leave = leave_speech };
    t->model = m;
    t->x = x;
    t->client = server_identify_client(x);
    t->deadline = timeout > 0.0 ? app_seconds() + timeout - http_age(x) : 0.0;
    t->audio = audio;
    t->own = own;
    return t;
}

static void queue_transcription(struct server_model *m, struct http_exchange *x, void *own)
{
    struct server_speech *s = m->speech;
    struct server_transcription *t = own;
    size_t most = (size_t)m->options->server.queue;
    pthread_mutex_lock(&s->lock);
    bool fits = s->n_waiting < most;
    if (fits) {
        m->n_users++;
        http_set_data(x, &t->owner);
        append_transcription(&s->waiting, t);
        s->n_waiting++;
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (fits)
        return;
    free_transcription(t);
    server_fail(x, 429, NULL, NULL, "%zu requests wait already (--queue)", most);
}

struct server_commit server_transcription_commit(struct server_transcription *t)
{
    return (struct server_commit){ queue_transcription, t };
}

/* ---- The thread --------------------------------------------------------- */
/* Whether it goes on. */
static bool check_clip(struct server_transcription *t)
{
    if (t->deadline > 0.0 && app_seconds() > t->deadline)
        t->is_late = t->is_cancelled = true;
    return !t->is_cancelled;
}

static bool speech_on_progress(double fraction, void *user)
{
    (void)fraction;
    return check_clip(user);
}

static bool speech_on_segment(const struct akunu_segment *segment, void *user)
{
    struct server_transcription *t = user;
    struct server_speech *s = t->model->speech;
    pthread_mutex_lock(&s->lock);
    bool good = app_transcript_add(&t->transcript, segment);
    pthread_mutex_unlock(&s->lock);
    if (!good)
        t->status = AKUNU_ERROR_MEMORY;
    else if (t->report)
        http_wake(t->model->server->http);
    return good && check_clip(t);
}

/* The library's message, unless the clip was stopped by what happened here. */
static void note_failure(struct server_transcription *t, enum akunu_status status,
                         const char *message)
{
    bool no_memory = t->status == AKUNU_ERROR_MEMORY;
    t->status = no_memory ? AKUNU_ERROR_MEMORY : status;
    snprintf(t->message, sizeof t->message, "%s", no_memory ? "out of memory" : message);
}

/* Moves it from those that run to those that are done. */
static void speech_on_end(enum akunu_status status, const char *message, const char *language,
                          void *user)
{
    struct server_transcription *t = user;
    struct server_speech *s = t->model->speech;
    struct http_server *http = t->model->server->http;
    t->transcript.language = language;
    if (status != AKUNU_OK)
        note_failure(t, status, message);
    pthread_mutex_lock(&s->lock);
    struct server_transcription **link = &s->running;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    append_transcription(&s->done, t); /* from now on it may be freed */
    pthread_mutex_unlock(&s->lock);
    http_wake(http);
}

/* The first in the queue, or the first of another client than the last one's. Under the speech's
 * lock. */
static struct server_transcription *choose_next(const struct server_speech *s)
{
    struct server_transcription *t = s->waiting;
    while (t && t->client == s->last_client)
        t = t->next;
    return t ? t : s->waiting;
}

/* The next one; false: none waits. */
static bool next_clip(struct akunu_clip *clip, void *user)
{
    struct server_speech *s = user;
    pthread_mutex_lock(&s->lock);
    struct server_transcription *t = s->stops ? NULL : choose_next(s);
    if (t) {
        take_waiting(s, t);
        append_transcription(&s->running, t);
        s->last_client = t->client;
        clip->audio = t->audio;
        clip->params = &t->params;
        clip->on_segment = speech_on_segment;
        clip->progress = speech_on_progress;
        clip->on_end = speech_on_end;
        clip->user = t;
    }
    pthread_mutex_unlock(&s->lock);
    return t != NULL;
}

/* False: the thread stops. */
static bool wait_for_work(struct server_speech *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->waiting && !s->stops)
        pthread_cond_wait(&s->changed, &s->lock);
    bool goes_on = !s->stops;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

/* The session itself fails: so do all that wait. */
static void fail_all(struct server_speech *s, enum akunu_status status)
{
    struct akunu_clip clip;
    while (next_clip(&clip, s))
        speech_on_end(status, akunu_last_error(), NULL, clip.user);
}

static void *run_thread(void *user)
{
    struct server_model *m = user;
    while (wait_for_work(m->speech)) {
        enum akunu_status status =
            akunu_session_transcribe_clips(m->speech->session, next_clip, m->speech);
        if (status != AKUNU_OK)
            fail_all(m->speech, status);
    }
    return NULL;
}

bool server_open_speech(struct server_model *m)
{
    struct akunu_session_params params = m->options->session;
    const struct akunu_transcription_params *t = &m->options->transcription;
    struct server_speech *s = calloc(1, sizeof *s);
    if (!s)
        return false;
    params.context = params.batch = 0; /* what -c and -b say is about the texts of other models */
    params.max_windows = app_speech_windows(&m->loaded.info, t);
    params.max_sequences = params.max_windows * app_speech_texts(t);
    params.pool = m->server->pool;
    params.n_threads = 0;
    params.cpus = NULL;
    s->session = akunu_session_new(m->loaded.model, &params);
    if (!s->session) {
        free(s);
        return false;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    m->speech = s;
    if (pthread_create(&s->thread, NULL, run_thread, m) == 0)
        return true;
    akunu_session_free(s->session);
    free(s);
    m->speech = NULL;
    return false;
}

uint64_t server_speech_bytes(const struct server_model *m)
{
    struct akunu_memory r = { 0 };
    if (!m->speech ||
        akunu_model_get_memory(m->loaded.model, m->speech->session, &r, sizeof r) != AKUNU_OK)
        return 0;
    return r.kv + r.scratch;
}

void server_close_speech(struct server_model *m)
{
    struct server_speech *s = m->speech;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    for (struct server_transcription *t = s->running; t; t = t->next)
        t->is_cancelled = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    struct server_transcription *lists[] = { s->waiting, s->done };
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct server_transcription *next = lists[i]->next;
            if (lists[i]->x)
                http_set_data(lists[i]->x, NULL);
            free_transcription(lists[i]);
            lists[i] = next;
        }
    akunu_session_free(s->session);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    m->speech = NULL;
}

/* ---- Answers ------------------------------------------------------------ */
static void answer_transcription(struct server_transcription *t)
{
    if (t->status == AKUNU_OK)
        t->model->server->audio_seconds += akunu_audio_seconds(t->audio);
    if (t->x) {
        http_set_data(t->x, NULL);
        t->answer(t);
    }
    t->model->n_users--;
    free_transcription(t);
}

void server_take_transcriptions(struct server_model *m)
{
    struct server_speech *s = m->speech;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    struct server_transcription *t = s->done;
    s->done = NULL;
    for (struct server_transcription *r = s->running; r; r = r->next)
        if (r->x && r->report)
            r->report(r);
    pthread_mutex_unlock(&s->lock);
    while (t) {
        struct server_transcription *next = t->next;
        answer_transcription(t);
        t = next;
    }
}

void server_expire_transcriptions(struct server_model *m)
{
    struct server_speech *s = m->state >= SERVER_MODEL_READY ? m->speech : NULL;
    struct server_transcription *late = NULL;
    if (!s || m->is_dropped)
        return;
    pthread_mutex_lock(&s->lock);
    for (struct server_transcription *t = s->waiting, *next; t; t = next) {
        next = t->next;
        if (!check_clip(t) && take_waiting(s, t))
            append_transcription(&late, t);
    }
    pthread_mutex_unlock(&s->lock);
    while (late) {
        struct server_transcription *next = late->next;
        late->status = AKUNU_ERROR_CANCELLED;
        answer_transcription(late);
        late = next;
    }
}

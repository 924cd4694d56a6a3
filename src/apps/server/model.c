/* Models: which there are, loading them when they are asked for, and dropping those that were not
 * used for longest where --memory leaves no room. A thread, the loader, drops models and loads one
 * at a time; everything else is done by the thread of http_run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/configuration.h"
#include "apps/common/prompt.h"
#include "apps/server/embedder.h"
#include "apps/server/memory.h"
#include "apps/server/speech.h"

/* ---- Loading: in the loader's thread ------------------------------------ */
static void close_model(struct server_model *m)
{
    akunu_scheduler_free(m->scheduler);
    m->scheduler = NULL;
    server_close_embedder(m);
    server_close_speech(m);
    akunu_vad_free(m->vad);
    m->vad = NULL;
    akunu_template_free(m->template);
    m->template = NULL;
    m->template_text = NULL;
    app_unload(&m->loaded);
}

static int open_scheduler(struct server_model *m, const struct akunu_session_params *session)
{
    const struct app_options *o = m->options;
    struct akunu_scheduler_params params;
    struct akunu_prompt_cache prompts;
    akunu_scheduler_params_default(&params, sizeof params);
    params.max_waiting = (uint32_t)o->server.queue;
    params.max_pass_ratio = 2.0; /* texts go on smoothly while others send prompts */
    if (app_prompt_cache(o, &prompts))
        params.prompts = &prompts;
    m->scheduler = akunu_scheduler_new(m->loaded.model, session, &params);
    if (!m->scheduler && params.prompts && akunu_last_status() == AKUNU_ERROR_UNSUPPORTED) {
        params.prompts = NULL; /* of recurrent models and devices nothing can be kept */
        m->scheduler = akunu_scheduler_new(m->loaded.model, session, &params);
    }
    return m->scheduler ? APP_EXIT_OK : app_fail_library();
}

/* The scheduler with a session that fits into --memory. */
static int open_texts(struct server_model *m)
{
    struct akunu_session_params session = m->options->session;
    int code;
    m->template = app_chat_template(m->options, &m->loaded, &code);
    if (!m->template)
        return code;
    m->template_text = akunu_template_text(m->template, NULL, false, NULL);
    session.max_sequences = (uint32_t)m->options->server.n_sequences;
    session.pool = m->server->pool;
    session.n_threads = 0;
    session.cpus = NULL;
    do {
        akunu_scheduler_free(m->scheduler);
        m->scheduler = NULL;
        code = open_scheduler(m, &session);
    } while (code == APP_EXIT_OK && server_memory_shrinks(m, &session));
    return code == APP_EXIT_OK ? server_memory_check(m) : code;
}

static int load_now(struct server_model *m)
{
    struct server *s = m->server;
    int code = app_load_model(m->options, &m->loaded);
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&m->loaded, "server");
    if (code != APP_EXIT_OK)
        return code;
    if (!s->pool)
        s->pool = akunu_pool_new(s->options->session.n_threads, s->options->session.cpus);
    bool is_speech = m->loaded.info.n_mels > 0;
    if (is_speech && (code = server_open_vad(m)) != APP_EXIT_OK)
        return code;
    if (!s->pool || !(is_speech ? server_open_speech(m) : server_open_embedder(m)))
        return app_fail_library();
    return is_speech || m->loaded.info.encoder ? server_memory_check(m) : open_texts(m);
}

static void *run_loader(void *user)
{
    struct server *s = user;
    for (size_t i = 0; i < s->n_models; i++)
        if (s->models[i].is_dropped)
            close_model(&s->models[i]);
    if (s->loading) {
        s->loading->exit_code = load_now(s->loading);
        if (s->loading->exit_code != APP_EXIT_OK)
            close_model(s->loading);
    }
    s->has_loaded = true;
    http_wake(s->http);
    return NULL;
}

/* ---- Whose turn it is --------------------------------------------------- */
/* Adds to the server's counts what the model's scheduler has counted. */
static void keep_counts(struct server_model *m)
{
    struct akunu_scheduler_stats *past = &m->server->past, stats = { 0 };
    if (!m->scheduler)
        return;
    akunu_scheduler_get_stats(m->scheduler, &stats, sizeof stats);
    past->n_prompt_tokens += stats.n_prompt_tokens;
    past->n_cached_tokens += stats.n_cached_tokens;
    past->n_generated += stats.n_generated;
    past->n_cancelled += stats.n_cancelled;
}

/* The model that has been wanted for longest; NULL: there is none. */
static struct server_model *next_model(struct server *s)
{
    struct server_model *next = NULL;
    for (size_t i = 0; i < s->n_models; i++) {
        struct server_model *m = &s->models[i];
        if (m->state == SERVER_MODEL_WANTED && (!next || m->wanted < next->wanted))
            next = m;
    }
    return next;
}

/* The model that is dropped first; NULL: none is ready. */
static struct server_model *oldest(struct server *s, const struct server_model *but)
{
    struct server_model *found = NULL;
    for (size_t i = 0; i < s->n_models; i++) {
        struct server_model *m = &s->models[i];
        bool later = found && m->last_used >= found->last_used;
        if (m != but && m->state == SERVER_MODEL_READY && !later)
            found = m;
    }
    return found;
}

/* Closes models until `bytes` more fit beside those that stay. */
static void make_room(struct server *s, uint64_t bytes, const struct server_model *but)
{
    struct server_model *m;
    while (!server_memory_fits(s, bytes) && (m = oldest(s, but)) != NULL)
        m->state = SERVER_MODEL_CLOSING;
}

/* Starts the loader, if there is something for it and no model that is to be dropped first is in
 * use. */
static void start_loader(struct server *s)
{
    struct server_model *next = next_model(s);
    bool has_work = next != NULL;
    if (next)
        make_room(s, server_memory_of(next), next);
    for (size_t i = 0; i < s->n_models; i++) {
        struct server_model *m = &s->models[i];
        m->is_dropped = m->state == SERVER_MODEL_CLOSING && m->n_users == 0;
        has_work |= m->is_dropped;
        if (next && m->state == SERVER_MODEL_CLOSING && m->n_users > 0)
            return; /* its last answer wakes us */
    }
    if (!has_work)
        return;
    for (size_t i = 0; i < s->n_models; i++)
        if (s->models[i].is_dropped)
            keep_counts(&s->models[i]);
    s->loading = next;
    s->has_loaded = false;
    if (next)
        next->state = SERVER_MODEL_LOADING;
    s->loader_runs = pthread_create(&s->loader, NULL, run_loader, s) == 0;
    if (!s->loader_runs && next) { /* tried again at the next tick */
        next->state = SERVER_MODEL_WANTED;
        s->loading = NULL;
    }
}

static void take_loaded(struct server *s)
{
    struct server_model *m = s->loading;
    s->loading = NULL;
    for (size_t i = 0; i < s->n_models; i++)
        if (s->models[i].is_dropped) {
            struct server_model *dropped = &s->models[i];
            dropped->is_dropped = false;
            dropped->sha256[0] = '\0'; /* another file may be there when it is loaded again */
            dropped->state = dropped->waiters ? SERVER_MODEL_WANTED : SERVER_MODEL_ABSENT;
        }
    if (!m)
        return;
    bool good = m->exit_code == APP_EXIT_OK;
    m->state = good ? SERVER_MODEL_READY : SERVER_MODEL_ABSENT;
    m->last_used = app_seconds();
    if (s->state == SERVER_LOADING && m == &s->models[0]) {
        s->state = good ? SERVER_READY : SERVER_FAILED;
        s->exit_code = m->exit_code;
    } else if (good) {
        app_report("%s is loaded", m->id);
    }
    if (good)
        make_room(s, 0, m); /* it may have turned out larger */
    server_end_waiting(m, good);
}

void server_take_models(struct server *s)
{
    if (s->loader_runs && s->has_loaded) {
        pthread_join(s->loader, NULL);
        s->loader_runs = false;
        take_loaded(s);
    }
    if (!s->loader_runs)
        start_loader(s);
}

void server_want_model(struct server_model *m)
{
    static uint64_t n_wanted;
    if (m->state != SERVER_MODEL_ABSENT)
        return; /* one that is closing is wanted again after that */
    m->state = SERVER_MODEL_WANTED;
    m->wanted = ++n_wanted;
    server_take_models(m->server);
}

/* ---- Which there are ---------------------------------------------------- */
/* Names the model of the flags: --alias, the preset's name, or the file's. */
static int name_first(struct server_model *m)
{
    const struct app_options *o = m->options;
    char *path;
    int code = app_model_path(o, o->model.name, &path);
    if (code != APP_EXIT_OK)
        return code;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    snprintf(m->id, sizeof m->id, "%s",
             o->server.alias ? o->server.alias :
             o->preset       ? o->preset :
                               file);
    free(path);
    return APP_EXIT_OK;
}

/* The flags again, with another model: one without a flag would be named twice. */
static int read_preset(struct server_model *m, const char *name)
{
    int argc = m->server->argc;
    char **arguments = calloc((size_t)argc + 3, sizeof *arguments);
    if (!arguments)
        return app_fail_memory();
    memcpy(arguments, m->server->argv, (size_t)argc * sizeof *arguments);
    argc = app_keep_flags(&app_commands[0], argc, arguments);
    arguments[argc] = (char *)(uintptr_t) "-m";
    arguments[argc + 1] = (char *)(uintptr_t)name;
    int code = app_options_parse(&app_commands[0], argc + 2, arguments, &m->own);
    m->options = &m->own;
    snprintf(m->id, sizeof m->id, "%s", name);
    free(arguments);
    return code;
}

int server_list_models(struct server *s)
{
    const struct app_options *o = s->options;
    size_t n_presets = 0;
    const char *name;
    int code = APP_EXIT_OK;
    while (app_config_preset(o->configuration, n_presets))
        n_presets++;
    s->models = calloc(n_presets + 1, sizeof *s->models);
    if (!s->models)
        return app_fail_memory();
    for (size_t i = 0; i < n_presets + 1; i++) {
        s->models[i].server = s;
        s->models[i].loaded.sequence = -1;
    }
    s->has_first = o->model.name || n_presets == 0; /* without any: loading says what is missing */
    if (s->has_first) {
        s->models[s->n_models].options = o;
        code = name_first(&s->models[s->n_models++]);
    }
    for (size_t i = 0; code == APP_EXIT_OK && i < n_presets; i++) {
        name = app_config_preset(o->configuration, i);
        if (!o->preset || strcmp(o->preset, name) != 0)
            code = read_preset(&s->models[s->n_models++], name);
    }
    return code;
}

void server_close_models(struct server *s)
{
    for (size_t i = 0; i < s->n_models; i++) {
        close_model(&s->models[i]);
        app_options_free(&s->models[i].own);
    }
    akunu_pool_free(s->pool);
    free(s->models);
}

/* Ollama's clients add a tag to names that have none. */
static bool has_name(const struct server_model *m, const char *name)
{
    size_t n = strlen(m->id);
    return strncmp(m->id, name, n) == 0 && (!name[n] || strcmp(name + n, ":latest") == 0);
}

struct server_model *server_find_model(struct server *s, struct http_exchange *x, const char *name)
{
    char shown[APP_SHOWN_BYTES], list[1024] = "";
    for (size_t i = 0; name && i < s->n_models; i++)
        if (has_name(&s->models[i], name))
            return &s->models[i];
    if (s->n_models == 1 || (!name && s->has_first))
        return &s->models[0];
    for (size_t i = 0; i < s->n_models; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", s->models[i].id);
    }
    if (name)
        server_fail(x, 404, "model", "model_not_found", "there is no model %s; there are %s",
                    app_show_text(name, shown), list);
    else
        server_fail(x, 400, "model", NULL, "model is missing; there are %s", list);
    return NULL;
}

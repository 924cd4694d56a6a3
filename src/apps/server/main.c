/* akunu-server: reads the flags, listens, loads the model beside that, and serves until a signal
 * ends it. */
#include "apps/server/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "apps/common/ranks.h"
#include "apps/server/embedder.h"
#include "apps/server/job.h"
#include "apps/server/memory.h"
#include "apps/server/speech.h"

/* The only command of this program, which main() runs; src/apps/common/options.def has its flags.
 */
const struct app_command app_commands[] = {
    { .name = "server",
      .bit = APP_SERVER,
      .traits = APP_LOADS_MODEL,
      .summary = "serve a model over HTTP",
      .example = "akunu-server -m model.gguf --port 8080",
      .operands = { "model" } },
};
const size_t app_n_commands = 1;

const struct app_command *app_find_command(const char *name)
{
    return strcmp(name, app_commands[0].name) == 0 ? &app_commands[0] : NULL;
}

/* ---- Handlers of http.h ------------------------------------------------- */
static bool on_check(struct http_exchange *x, void *user)
{
    return server_check(x, user);
}

static void on_request(struct http_exchange *x, void *user)
{
    server_route(x, user);
}

static void stop_if_done(struct server *s)
{
    if (s->state == SERVER_FAILED || (s->drains && !s->jobs && http_count_exchanges(s->http) == 0))
        http_stop(s->http);
}

static void exchange_on_end(struct http_exchange *x, bool client_gone, void *user)
{
    struct server_owner *owner = http_data(x);
    server_count_answer(x, user);
    server_log_exchange(user, x, client_gone);
    if (owner)
        owner->leave(owner);
    stop_if_done(user);
}

static void on_drained(struct http_exchange *x, void *user)
{
    struct server_owner *owner = http_data(x);
    (void)user;
    if (owner && owner->drained)
        owner->drained(owner);
}

/* Says once that requests are answered. */
static void report_ready(struct server *s)
{
    const struct server_model *m = &s->models[0];
    server_notify("READY=1");
    if (!s->has_first)
        app_report("%zu models, loaded when they are asked for: %s", s->n_models,
                   http_address(s->http));
    else if (m->scheduler)
        app_report("%s, %u tokens of context, %lld texts at once: %s", m->id,
                   akunu_scheduler_context(m->scheduler), (long long)m->options->server.n_sequences,
                   http_address(s->http));
    else
        app_report("%s, for %s: %s", m->id, m->speech ? "speech" : "embeddings",
                   http_address(s->http));
}

static void on_wake(void *user)
{
    struct server *s = user;
    server_take_events(s);
    for (size_t i = 0; i < s->n_models; i++)
        if (s->models[i].state >= SERVER_MODEL_READY && !s->models[i].is_dropped) {
            server_take_encodings(&s->models[i]);
            server_take_transcriptions(&s->models[i]);
        }
    server_take_models(s);
    server_take_hash(s);
    if (s->state == SERVER_READY && !s->has_reported) {
        s->has_reported = true;
        report_ready(s);
    }
    stop_if_done(s);
}

static void on_tick(void *user)
{
    struct server *s = user;
    server_take_models(s);
    server_take_hash(s);
    for (size_t i = 0; i < s->n_models; i++) {
        server_expire_waiters(&s->models[i]);
        server_expire_transcriptions(&s->models[i]);
    }
    stop_if_done(s);
}

/* Reads the key and the certificate, of which both or none are given. */
static int read_tls(const struct app_options *o, struct app_text *key, struct app_text *certificate)
{
    if (!o->server.ssl_key_file && !o->server.ssl_cert_file)
        return APP_EXIT_OK;
    if (!o->server.ssl_key_file || !o->server.ssl_cert_file)
        return app_fail_usage("--ssl-key-file and --ssl-cert-file: one needs the other");
    int code = app_read_file("--ssl-key-file", o->server.ssl_key_file, key);
    return code == APP_EXIT_OK ?
               app_read_file("--ssl-cert-file", o->server.ssl_cert_file, certificate) :
               code;
}

static void free_tls(struct app_text *key, struct app_text *certificate)
{
    if (key->bytes) /* a secret */
        explicit_bzero(key->bytes, key->n);
    free(key->bytes);
    free(certificate->bytes);
}

static void reload_tls(const struct server *s)
{
    struct app_text key = { 0 }, certificate = { 0 };
    const char *why = "it cannot be read";
    int code = read_tls(s->options, &key, &certificate);
    bool good = code == APP_EXIT_OK && key.bytes &&
                http_set_certificate(key.bytes, certificate.bytes, &why);
    if (good)
        app_report("the certificate was read again");
    else if (code != APP_EXIT_OK || key.bytes)
        app_warn("%s; the certificate stays as it was", why);
    free_tls(&key, &certificate);
}

/* Takes --verbose and --log-format from the configuration, which may have changed. */
static void reload_log(struct server *s)
{
    struct app_options o;
    if (app_options_parse(&app_commands[0], s->argc, s->argv, &o) == APP_EXIT_OK) {
        s->is_verbose = o.output.verbose;
        s->logs_json = o.server.log_format == 1;
    } else {
        app_warn("the log stays as it was");
    }
    app_options_free(&o);
}

static void reload(struct server *s)
{
    struct server_keys keys;
    char why[APP_SHOWN_BYTES * 4];
    if (server_read_keys(s->options, &keys, why)) {
        s->keys = keys;
        app_report("the keys were read again: %zu", keys.n);
    } else {
        app_warn("%s; the keys stay as they were", why);
    }
    reload_tls(s);
    reload_log(s);
}

/* The first SIGTERM lets running requests end, the second ends them. */
static void on_signal(int number, void *user)
{
    struct server *s = user;
    if (number == SIGHUP) {
        reload(s);
        return;
    }
    if (s->drains || s->state != SERVER_READY) {
        http_stop(s->http);
        return;
    }
    s->drains = true;
    server_notify("STOPPING=1");
    app_report("shutting down: running requests end, new ones are refused");
    stop_if_done(s);
}

/* Lets the process have as many connections as http.c allows. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    rlim_t wanted = 2 * HTTP_CONNECTIONS_MAX;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* --max-body, or less if --memory leaves less. */
static size_t max_body(const struct server *s)
{
    size_t asked = (size_t)s->options->server.max_body, most = server_memory_of_buffers(s) / 2;
    return most > 0 && most < asked ? most : asked;
}

/* ---- Serving ------------------------------------------------------------ */
static int listen_and_run(struct server *s, const struct app_text *key,
                          const struct app_text *certificate)
{
    const struct app_options *o = s->options;
    const struct http_handlers handlers = { on_check, on_request, exchange_on_end, on_drained,
                                            on_wake,  on_tick,    on_signal,       s };
    const struct http_params params = { .host = o->server.host ? o->server.host : "127.0.0.1",
                                        .port = (unsigned)o->server.port,
                                        .listener = server_given_listener(),
                                        .tls_key = key->bytes,
                                        .tls_certificate = certificate->bytes,
                                        .max_body = max_body(s),
                                        .max_buffered = server_memory_of_buffers(s),
                                        .timeout = (double)o->server.timeout,
                                        .lock = &s->lock };
    const char *why;
    raise_open_files();
    s->http = http_new(&params, &handlers, &why);
    if (!s->http)
        return app_fail("%s", why);
    if (s->has_first)
        server_want_model(&s->models[0]);
    else
        s->state = SERVER_READY;
    http_wake(s->http);
    bool good = http_run(s->http, &why);
    server_stop_worker(s);
    server_stop_hasher(s);
    server_cancel_jobs(s);
    if (s->loader_runs)
        pthread_join(s->loader, NULL);
    return good ? s->exit_code : app_fail("%s", why);
}

static void close_server(struct server *s)
{
    for (size_t i = 0; i < s->n_models; i++) { /* their last events are for the jobs */
        akunu_scheduler_free(s->models[i].scheduler);
        s->models[i].scheduler = NULL;
    }
    if (s->http)
        server_take_events(s);
    for (size_t i = 0; i < s->n_models; i++) {
        server_close_embedder(&s->models[i]);
        server_close_speech(&s->models[i]);
    }
    /* one more signal would kill what is ending, with another exit status */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    http_free(s->http);
    server_close_models(s);
    free(s->n_requests);
    pthread_mutex_destroy(&s->events_lock);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->worker.has_task);
}

static int serve(const struct app_options *o, int argc, char **argv)
{
    struct server s = { .options = o,
                        .argc = argc,
                        .argv = argv,
                        .is_verbose = o->output.verbose,
                        .logs_json = o->server.log_format == 1,
                        .created = (int64_t)time(NULL) };
    struct app_text key = { 0 }, certificate = { 0 };
    char why[APP_SHOWN_BYTES * 4];
    pthread_mutex_init(&s.events_lock, NULL);
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.worker.has_task, NULL);
    s.last_event = &s.first_event;
    s.n_requests = calloc(server_count_routes() * SERVER_CODES_MAX, sizeof *s.n_requests);
    int code = s.n_requests ? APP_EXIT_OK : app_fail_memory();
    if (code == APP_EXIT_OK)
        code = server_list_models(&s);
    if (code == APP_EXIT_OK && !server_read_keys(o, &s.keys, why))
        code = app_fail_usage("%s", why);
    if (code == APP_EXIT_OK)
        code = read_tls(o, &key, &certificate);
    if (code == APP_EXIT_OK)
        code = listen_and_run(&s, &key, &certificate);
    close_server(&s);
    free_tls(&key, &certificate);
    return code;
}

struct arguments {
    int n;
    char **list;
};

static int run_server(const struct app_options *options, void *user)
{
    const struct arguments *arguments = user;
    if (options->version)
        return app_version();
    if (options->help)
        return app_help_command(&app_commands[0]);
    return serve(options, arguments->n, arguments->list);
}

int main(int argc, char **argv)
{
    struct app_options options;
    app_set_program("akunu-server");
    signal(SIGPIPE, SIG_IGN);
    app_ranks_hush();
    int n = argc > 0 ? argc - 1 : 0;
    char **arguments = server_hide_keys(n, argv + 1);
    int code = app_options_parse(&app_commands[0], n, arguments, &options);
    app_set_color((enum app_color)options.output.color);
    if (code == APP_EXIT_OK)
        code = app_ranks_run(&options, run_server, &(struct arguments){ n, arguments });
    app_options_free(&options);
    return code;
}

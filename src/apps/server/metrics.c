/* GET /metrics: counts as Prometheus reads them (text format 0.0.4). */
#include "apps/server/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/server/job.h"
#include "apps/server/memory.h"

static const double bounds[SERVER_BUCKETS] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                               0.25,  0.5,    1.0,   2.5,  5.0,   10.0, 60.0 };

void server_observe(struct server_histogram *h, double seconds)
{
    size_t i = 0;
    while (i < SERVER_BUCKETS && seconds > bounds[i])
        i++;
    h->counts[i]++;
    h->n++;
    h->sum += seconds;
}

static void add_line(struct server_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_line(struct server_text *t, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    server_text_add(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void add_number(struct server_text *t, const char *name, const char *type, const char *help,
                       uint64_t value)
{
    add_line(t, "# HELP akunu_%s %s\n# TYPE akunu_%s %s\nakunu_%s %llu\n", name, help, name, type,
             name, (unsigned long long)value);
}

static void add_histogram(struct server_text *t, const char *name, const char *help,
                          const struct server_histogram *h)
{
    uint64_t n = 0;
    add_line(t, "# HELP akunu_%s %s\n# TYPE akunu_%s histogram\n", name, help, name);
    for (size_t i = 0; i < SERVER_BUCKETS; i++) {
        n += h->counts[i];
        add_line(t, "akunu_%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)n);
    }
    add_line(t, "akunu_%s_bucket{le=\"+Inf\"} %llu\nakunu_%s_sum %g\nakunu_%s_count %llu\n", name,
             (unsigned long long)h->n, name, h->sum, name, (unsigned long long)h->n);
}

static void add_requests(struct server_text *t, const struct server *s)
{
    static const unsigned codes[] = { 200, 204, 400, 401, 403, 404, 405, 408,
                                      413, 415, 429, 431, 500, 501, 503 };
    add_line(t, "# HELP akunu_requests_total Requests by route and code\n"
                "# TYPE akunu_requests_total counter\n");
    for (size_t i = 0; i < server_count_routes(); i++)
        for (size_t k = 0; k < sizeof codes / sizeof *codes; k++)
            if (s->n_requests[i * SERVER_CODES_MAX + k] > 0)
                add_line(t, "akunu_requests_total{route=\"%s\",code=\"%u\"} %llu\n",
                         server_route_name(i), codes[k],
                         (unsigned long long)s->n_requests[i * SERVER_CODES_MAX + k]);
}

/* Counts of all models, those that were dropped included. */
static struct akunu_scheduler_stats sum(const struct server *s)
{
    struct akunu_scheduler_stats all = s->past, one;
    for (size_t i = 0; i < s->n_models; i++) {
        const struct server_model *m = &s->models[i];
        bool is_loaded =
            m->state == SERVER_MODEL_READY || (m->state == SERVER_MODEL_CLOSING && !m->is_dropped);
        if (!is_loaded || !m->scheduler ||
            akunu_scheduler_get_stats(m->scheduler, &one, sizeof one) != AKUNU_OK)
            continue;
        all.n_prompt_tokens += one.n_prompt_tokens;
        all.n_cached_tokens += one.n_cached_tokens;
        all.n_generated += one.n_generated;
        all.n_cancelled += one.n_cancelled;
        all.n_running += one.n_running;
        all.n_waiting += one.n_waiting;
        all.n_pages += one.n_pages;
        all.n_used_pages += one.n_used_pages;
    }
    return all;
}

/* Under mpirun: what this process exchanges with the others. */
static void add_ranks(struct server_text *t, const struct server *s)
{
    struct akunu_comm_counts counts;
    if (!s->options->load.comm ||
        akunu_comm_get_counts(s->options->load.comm, &counts, sizeof counts) != AKUNU_OK)
        return;
    add_number(t, "ranks", "gauge", "Processes that share the models", akunu_comm_count(NULL));
    add_number(t, "rank_bytes_sent_total", "counter", "Bytes sent to other ranks",
               counts.bytes_sent);
    add_line(
        t,
        "# HELP akunu_rank_seconds_total Seconds in exchanges with other ranks, waiting included\n"
        "# TYPE akunu_rank_seconds_total counter\nakunu_rank_seconds_total %.3f\n",
        counts.seconds);
}

void server_metrics(struct server *s, struct http_exchange *x)
{
    struct akunu_scheduler_stats stats = sum(s);
    struct server_text t = { 0 };
    if (!s->options->server.metrics) {
        server_fail(x, 404, NULL, NULL, "--metrics turns this route on");
        return;
    }
    add_number(&t, "prompt_tokens_total", "counter", "Tokens of prompts", stats.n_prompt_tokens);
    add_number(&t, "prompt_tokens_cached_total", "counter",
               "Tokens of prompts that were not computed", stats.n_cached_tokens);
    add_number(&t, "generated_tokens_total", "counter", "Generated tokens", stats.n_generated);
    add_line(&t,
             "# HELP akunu_audio_seconds_total Seconds of audio that was transcribed\n"
             "# TYPE akunu_audio_seconds_total counter\nakunu_audio_seconds_total %.3f\n",
             s->audio_seconds);
    add_requests(&t, s);
    add_number(&t, "requests_cancelled_total", "counter", "Generations that were cancelled",
               stats.n_cancelled);
    add_number(&t, "requests_running", "gauge", "Generations that run", stats.n_running);
    add_number(&t, "requests_waiting", "gauge", "Generations that wait", stats.n_waiting);
    add_number(&t, "connections", "gauge", "Open connections", http_count_connections(s->http));
    add_number(&t, "kv_pages", "gauge", "Pages of the KV cache", stats.n_pages);
    add_number(&t, "kv_pages_used", "gauge", "Pages of texts that grow", stats.n_used_pages);
    add_number(&t, "memory_bytes", "gauge",
               "Bytes of models, their KV caches and buffers of requests, without mapped files",
               server_memory_in_use(s));
    add_ranks(&t, s);
    add_histogram(&t, "time_to_first_token_seconds", "Seconds from request to first token",
                  &s->first_token);
    add_histogram(&t, "inter_token_seconds", "Seconds between tokens", &s->next_token);
    if (t.bytes)
        http_answer(x, 200, "text/plain; version=0.0.4", t.bytes, t.n);
    else
        server_fail_memory(x);
    free(t.bytes);
}

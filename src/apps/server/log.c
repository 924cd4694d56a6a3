/* The log: a line per exchange. */
#include "apps/server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/common/json_text.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

enum { ID_BYTES = 48 };

/* Unique among all exchanges of servers that were not started in the same second. */
static const char *id_of(const struct server *s, const struct http_exchange *x, char out[ID_BYTES])
{
    snprintf(out, ID_BYTES, "req-%llx-%llx", (unsigned long long)s->created,
             (unsigned long long)http_number(x));
    return out;
}

void server_name_exchange(const struct server *s, struct http_exchange *x)
{
    char id[ID_BYTES];
    http_add_header(x, "X-Request-Id", id_of(s, x, id));
}

/* {"time": …, "id": …, …} */
static void log_json(const struct server *s, struct http_exchange *x, bool client_gone)
{
    char at[32], id[ID_BYTES], path[APP_SHOWN_BYTES], method[APP_SHOWN_BYTES];
    const uint64_t *n = http_counts(x);
    struct tm utc;
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *line =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:I, s:I, s:I, s:b}", "time", at, "id",
                  id_of(s, x, id), "client", http_client(x), "method",
                  app_show_text(http_method(x), method), "route", app_show_text(http_path(x), path),
                  "code", (json_int_t)http_code(x), "seconds", http_age(x), "prompt_tokens",
                  (json_int_t)n[SERVER_PROMPT], "cached_tokens", (json_int_t)n[SERVER_CACHED],
                  "generated_tokens", (json_int_t)n[SERVER_GENERATED], "client_left", client_gone);
    char *text = line ? app_json_write(line, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(line);
    if (text)
        app_report("%s", text);
    free(text);
}

static void log_text(const struct server *s, struct http_exchange *x, bool client_gone)
{
    char id[ID_BYTES], path[APP_SHOWN_BYTES], method[APP_SHOWN_BYTES], tokens[96] = "";
    const uint64_t *n = http_counts(x);
    if (n[SERVER_PROMPT] > 0)
        snprintf(tokens, sizeof tokens, ", %llu tokens (%llu cached) and %llu new",
                 (unsigned long long)n[SERVER_PROMPT], (unsigned long long)n[SERVER_CACHED],
                 (unsigned long long)n[SERVER_GENERATED]);
    app_report("%s %s %s %s %u %.3f s%s%s", id_of(s, x, id), http_client(x),
               app_show_text(http_method(x), method), app_show_text(http_path(x), path),
               http_code(x), http_age(x), tokens, client_gone ? ", the client left" : "");
}

void server_log_exchange(struct server *s, struct http_exchange *x, bool client_gone)
{
    if (!s->is_verbose && strcmp(http_path(x), "/health") == 0)
        return;
    if (s->logs_json)
        log_json(s, x, client_gone);
    else
        log_text(s, x, client_gone);
}

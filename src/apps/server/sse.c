/* Server-sent events (WHATWG HTML, 9.2): a line "data: …" and an empty line for each. */
#include "apps/server/job.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"

static bool begin_stream(struct http_exchange *x)
{
    if (http_code(x) != 0)
        return true;
    http_add_header(x, "Cache-Control", "no-cache");
    http_add_header(x, "X-Accel-Buffering", "no"); /* of proxies */
    return http_begin(x, 200, "text/event-stream");
}

/* `name` NULL: none. False: out of memory, or the client is gone. */
static bool write_data(struct http_exchange *x, const char *name, const char *data)
{
    if (!begin_stream(x))
        return true; /* the exchange ends */
    if (name) {
        http_write(x, "event: ", 7);
        http_write(x, name, strlen(name));
        http_write(x, "\n", 1);
    }
    http_write(x, "data: ", 6);
    http_write(x, data, strlen(data));
    return http_write(x, "\n\n", 2);
}

bool server_sse_send(struct http_exchange *x, const char *name, json_t *value)
{
    char *text = value ? app_json_write(value, JSON_COMPACT) : NULL;
    json_decref(value);
    bool good = text && write_data(x, name, text);
    free(text);
    return good;
}

void server_sse_close(struct http_exchange *x)
{
    write_data(x, NULL, "[DONE]");
    http_finish(x);
}

void server_sse_write_event(struct server_job *job, const char *name, json_t *value)
{
    if (!job->x)
        json_decref(value);
    else if (!server_sse_send(job->x, name, value))
        job->no_memory = true;
}

void server_sse_write(struct server_job *job, json_t *value)
{
    server_sse_write_event(job, NULL, value);
}

void server_sse_end(struct server_job *job)
{
    server_sse_close(job->x);
}

/* Server-sent events (WHATWG HTML, 9.2): a line "data: …" and an empty line for each. */
#include "server/job.h"

#include <stdlib.h>
#include <string.h>

static bool begin(struct server_job *job)
{
    if (http_code(job->x) != 0)
        return true;
    http_add_header(job->x, "Cache-Control", "no-cache");
    http_add_header(job->x, "X-Accel-Buffering", "no"); /* of proxies */
    return http_begin(job->x, 200, "text/event-stream");
}

/* `name` NULL: none. */
static void write_data(struct server_job *job, const char *name, const char *data)
{
    if (!job->x || !begin(job))
        return;
    if (name) {
        http_write(job->x, "event: ", 7);
        http_write(job->x, name, strlen(name));
        http_write(job->x, "\n", 1);
    }
    http_write(job->x, "data: ", 6);
    http_write(job->x, data, strlen(data));
    if (!http_write(job->x, "\n\n", 2))
        job->no_memory = true;
}

void server_sse_write_event(struct server_job *job, const char *name, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    if (text)
        write_data(job, name, text);
    else
        job->no_memory = true;
    free(text);
}

void server_sse_write(struct server_job *job, json_t *value)
{
    server_sse_write_event(job, NULL, value);
}

void server_sse_end(struct server_job *job)
{
    write_data(job, NULL, "[DONE]");
    http_finish(job->x);
}

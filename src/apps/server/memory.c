/* --memory is divided: the process itself, then an eighth for requests (half of that for their
 * buffers, half for the values of one body, as bodies are handled one at a time), the rest for
 * models. A model counts with the memory that it has reserved, whether it was touched or not; maps
 * of files are not counted. */
#include "apps/server/memory.h"

#include <stdlib.h>

#include "apps/server/embedder.h"
#include "apps/server/speech.h"

static const double mega = 1e6;

enum {
    PROCESS_BYTES = 24 << 20,
    REQUESTS_MIN = 8 << 20,
    REQUESTS_MAX = 1 << 30,
    UNREAD_MIN = 1 << 16,
    UNREAD_MAX = 1 << 20,
    SESSIONS_MIN = 128 << 20,
    BATCH_MIN = 64
};

/* Bytes of --memory; 0: no limit. */
static uint64_t limit_bytes(const struct server *s)
{
    return s->options->model.memory;
}

static uint64_t request_bytes(const struct server *s)
{
    uint64_t bytes = limit_bytes(s) / 8;
    return bytes < REQUESTS_MIN ? REQUESTS_MIN : bytes > REQUESTS_MAX ? REQUESTS_MAX : bytes;
}

static uint64_t models_bytes(const struct server *s)
{
    uint64_t others = PROCESS_BYTES + request_bytes(s);
    return limit_bytes(s) > others ? limit_bytes(s) - others : 0;
}

/* Bytes of weights, vocabulary and tables that are not maps of files; 0: the model is not loaded,
 * or its memory is unknown. */
static uint64_t resident_bytes(const struct server_model *m)
{
    struct akunu_memory r = { 0 };
    if (!m->loaded.model || akunu_model_get_memory(m->loaded.model, NULL, &r, sizeof r) != AKUNU_OK)
        return 0;
    return r.packed - r.cached + r.tokenizer + r.table;
}

/* What a model may take if its context is not given: two fit side by side, unless they are large
 * for that. */
static uint64_t share(const struct server_model *m)
{
    uint64_t all = models_bytes(m->server), half = all / 2,
             least = resident_bytes(m) + SESSIONS_MIN;
    return m->server->n_models == 1 || least > all ? all : half > least ? half : least;
}

/* ---- Models ------------------------------------------------------------- */
static uint64_t session_bytes(const struct server_model *m, struct akunu_scheduler_stats *stats)
{
    *stats = (struct akunu_scheduler_stats){ 0 };
    if (m->scheduler)
        akunu_scheduler_get_stats(m->scheduler, stats, sizeof *stats);
    return stats->session_bytes;
}

void server_memory_limit_embedder(const struct server_model *m,
                                  struct akunu_session_params *session)
{
    uint64_t bytes = share(m), own = resident_bytes(m);
    if (limit_bytes(m->server) == 0)
        return;
    session->kv_bytes_max = (bytes > own ? bytes - own : 1) / (m->loaded.info.encoder ? 2 : 8) + 1;
    if (session->batch == 0 && !m->loaded.info.encoder)
        session->batch = BATCH_MIN;
}

bool server_memory_shrinks(const struct server_model *m, struct akunu_session_params *session)
{
    struct akunu_scheduler_stats stats;
    uint64_t bytes = session_bytes(m, &stats), all = share(m),
             taken = resident_bytes(m) + server_embedder_bytes(m);
    uint64_t limit = all > taken ? all - taken : 0;
    uint64_t scratch = bytes - (uint64_t)stats.n_pages * stats.page_bytes;
    uint32_t half = session->batch ? session->batch / 2 : 256;
    if (limit_bytes(m->server) == 0 || bytes <= limit)
        return false;
    if (m->options->session.batch == 0 && scratch > limit / 4 && half >= BATCH_MIN &&
        half >= session->max_sequences) {
        session->batch = half;
        return true;
    }
    bool can_shrink = m->options->session.context == 0 && session->kv_bytes_max == 0;
    if (can_shrink && scratch < limit)
        session->kv_bytes_max = limit - scratch;
    return can_shrink && scratch < limit;
}

int server_memory_check(struct server_model *m)
{
    struct akunu_scheduler_stats stats;
    uint64_t most = models_bytes(m->server);
    m->bytes = resident_bytes(m) + session_bytes(m, &stats) + server_embedder_bytes(m) +
               server_speech_bytes(m);
    if (limit_bytes(m->server) == 0 || m->bytes <= most)
        return APP_EXIT_OK;
    app_fail("%s takes %.1f MB beside its file, and --memory leaves %.1f MB for models "
             "(-c is the context, -b the size of a pass)",
             m->id, (double)m->bytes / mega, (double)most / mega);
    return APP_EXIT_MEMORY;
}

uint64_t server_memory_of(const struct server_model *m)
{
    return m->bytes ? m->bytes : share(m);
}

/* Whether a model takes memory and is not about to be dropped. */
static bool stays(const struct server_model *m)
{
    return m->state == SERVER_MODEL_READY || m->state == SERVER_MODEL_LOADING;
}

bool server_memory_fits(const struct server *s, uint64_t bytes)
{
    for (size_t i = 0; i < s->n_models; i++)
        bytes += stays(&s->models[i]) ? server_memory_of(&s->models[i]) : 0;
    return limit_bytes(s) == 0 || bytes <= models_bytes(s);
}

/* ---- Requests ----------------------------------------------------------- */
size_t server_memory_of_buffers(const struct server *s)
{
    return limit_bytes(s) ? (size_t)request_bytes(s) / 2 : 0;
}

size_t server_memory_of_unread(const struct server *s)
{
    size_t n = (size_t)(s->options->server.queue + s->options->server.n_sequences);
    size_t bytes = server_memory_of_buffers(s) / n;
    return limit_bytes(s) == 0 || bytes > UNREAD_MAX ? UNREAD_MAX :
           bytes < UNREAD_MIN                        ? UNREAD_MIN :
                                                       bytes;
}

bool server_memory_fits_values(const struct server *s, size_t bytes)
{
    return limit_bytes(s) == 0 || bytes <= request_bytes(s) / 2;
}

uint64_t server_memory_in_use(const struct server *s)
{
    uint64_t bytes = http_count_buffered(s->http);
    for (size_t i = 0; i < s->n_models; i++)
        if (s->models[i].state == SERVER_MODEL_READY || s->models[i].state == SERVER_MODEL_CLOSING)
            bytes += s->models[i].bytes;
    return bytes;
}

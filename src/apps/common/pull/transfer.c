/* Ranges of one file in parallel, tries after failures, and the checks before the file is placed.
 *
 *     probe -> part file, resumed or new -> a chunk per connection, until all are there
 *           -> first bytes, hash -> place
 */
#include "apps/common/pull/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/input.h"
#include "apps/common/pull/part.h"

enum { MAX_CONNECTIONS = 16, HEAD_BYTES = 64, MAX_RESTARTS = 3, SAVE_SECONDS = 5, POLL_MS = 100 };

struct transfer;

/* A connection and the chunk that it fills. */
struct connection {
    struct transfer *t;
    CURL *easy;
    struct curl_slist *headers;
    struct app_http_reply reply;
    bool busy;
    size_t chunk;
    int64_t first, at, end; /* offsets: where it began, of the next byte, behind the last one */
};

/* What ends a round of requests. */
enum app_transfer_outcome {
    APP_TRANSFER_GOES_ON,
    APP_TRANSFER_RESTART,  /* the file has changed, or its ranges are wrong */
    APP_TRANSFER_RELOCATE, /* the target of the redirects answers no more */
    APP_TRANSFER_FAILED    /* after a message, or interrupted */
};

struct transfer {
    struct app_http *http;
    struct app_remote_file *file;
    struct app_transfer_progress *progress;
    struct app_part part;
    CURLM *multi;
    struct connection connections[MAX_CONNECTIONS];
    int n_connections, n_failures; /* connections in use; failures since the last byte */
    double not_before;             /* time of the next request */
    char *url;                     /* after redirects */
    const char *validator;         /* for If-Range; NULL: none */
    bool use_ranges;
    enum app_transfer_outcome outcome;
    int code;
};

static int fail_transfer(struct transfer *t, const char *why)
{
    char *shown = app_url_shown(t->file->url);
    app_progress_clear(&t->progress->bar);
    t->outcome = APP_TRANSFER_FAILED;
    t->code = app_fail("%s: %s", shown ? shown : t->file->name, why);
    free(shown);
    return t->code;
}

/* ---- Progress ----------------------------------------------------------- */
static void format_left(double seconds, char *out, size_t capacity)
{
    unsigned s = seconds < 360000.0 ? (unsigned)seconds : 360000;
    if (s >= 3600)
        snprintf(out, capacity, "%u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, capacity, "%u:%02u left", s / 60, s % 60);
}

static void show_progress(struct transfer *t)
{
    struct app_transfer_progress *p = t->progress;
    int64_t have = p->before + app_part_have(&t->part);
    double now = app_seconds(), elapsed = now - p->measured;
    char left[32] = "", note[64];
    if (p->measured <= 0.0 || have < p->measured_bytes) {
        p->measured = now;
        p->measured_bytes = have;
    } else if (elapsed >= 1.0) {
        double speed = (double)(have - p->measured_bytes) / elapsed;
        p->speed = p->speed > 0.0 ? 0.7 * p->speed + 0.3 * speed : speed;
        p->measured = now;
        p->measured_bytes = have;
    }
    if (p->speed > 0.0 && p->total > 0)
        format_left((double)(p->total - have) / p->speed, left, sizeof left);
    snprintf(note, sizeof note, "%.1f MB/s  %s", p->speed / 1e6, left);
    app_progress_show_note(&p->bar, "downloading",
                           p->total > 0 ? (double)have / (double)p->total : 0.0, note);
}

/* ---- Connections -------------------------------------------------------- */
static bool write_all(int fd, const char *bytes, size_t n, int64_t offset)
{
    while (n > 0) {
        ssize_t written = pwrite(fd, bytes, n, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        n -= (size_t)written;
        offset += written;
    }
    return true;
}

/* Whether the answer is the one that was asked for; else t->outcome says what follows. */
static bool is_expected(struct connection *connection)
{
    struct transfer *t = connection->t;
    const struct app_http_reply *r = &connection->reply;
    if (!t->use_ranges)
        return r->status == 200;
    bool same = r->status == 206 && r->first == connection->first && r->total == t->part.size &&
                (!t->part.etag[0] || !r->etag[0] || strcmp(r->etag, t->part.etag) == 0);
    if (r->status == 206 && r->first != connection->first)
        t->use_ranges = false; /* one that lies about ranges is asked for none */
    if (!same)
        t->outcome = APP_TRANSFER_RESTART;
    return same;
}

static size_t on_data(char *bytes, size_t size, size_t n, void *user)
{
    struct connection *connection = user;
    struct transfer *t = connection->t;
    size_t n_bytes = size * n;
    if (connection->reply.status != 200 && connection->reply.status != 206)
        return n_bytes; /* the text of an error */
    if (t->outcome != APP_TRANSFER_GOES_ON || !is_expected(connection))
        return 0;
    if ((int64_t)n_bytes > connection->end - connection->at) {
        t->outcome = t->use_ranges ? APP_TRANSFER_RESTART : t->outcome;
        if (!t->use_ranges)
            fail_transfer(t, "the server sends more bytes than the file has");
        t->use_ranges = false;
        return 0;
    }
    if (!write_all(t->part.fd, bytes, n_bytes, connection->at)) {
        char why[APP_HTTP_WHY_BYTES];
        snprintf(why, sizeof why, "%s: %s", t->part.path, strerror(errno));
        fail_transfer(t, why);
        return 0;
    }
    connection->at += (int64_t)n_bytes;
    t->part.done[connection->chunk] += (int64_t)n_bytes;
    t->n_failures = 0;
    return n_bytes;
}

static bool start_connection(struct transfer *t, struct connection *connection, size_t chunk)
{
    char range[64];
    connection->t = t;
    connection->chunk = chunk;
    int64_t start = t->part.n_chunks > 1 ? (int64_t)chunk * t->part.chunk : 0;
    connection->first = connection->at = start + t->part.done[chunk];
    connection->end = t->part.size < 0 ? INT64_MAX : start + app_part_chunk_length(&t->part, chunk);
    snprintf(range, sizeof range, "%" PRId64 "-%" PRId64, connection->at, connection->end - 1);
    if (!connection->easy && !(connection->easy = curl_easy_init()))
        return false;
    if (!app_http_prepare(t->http, connection->easy, t->url, t->use_ranges ? range : NULL,
                          t->use_ranges ? t->validator : NULL, &connection->reply,
                          &connection->headers))
        return false;
    curl_easy_setopt(connection->easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(connection->easy, CURLOPT_WRITEDATA, connection);
    curl_easy_setopt(connection->easy, CURLOPT_PRIVATE, connection);
    connection->busy = curl_multi_add_handle(t->multi, connection->easy) == CURLM_OK;
    return connection->busy;
}

static void stop_connection(struct connection *connection)
{
    if (connection->busy)
        curl_multi_remove_handle(connection->t->multi, connection->easy);
    curl_slist_free_all(connection->headers);
    connection->headers = NULL;
    connection->busy = false;
}

static bool is_taken(const struct transfer *t, size_t chunk)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        if (t->connections[i].busy && t->connections[i].chunk == chunk)
            return true;
    return false;
}

/* Gives idle connections the first chunks that nobody fills. */
static bool start_connections(struct transfer *t)
{
    size_t chunk = 0;
    for (int i = 0; i < t->n_connections && app_seconds() >= t->not_before; i++) {
        if (t->connections[i].busy)
            continue;
        while (
            chunk < t->part.n_chunks &&
            (is_taken(t, chunk) || t->part.done[chunk] == app_part_chunk_length(&t->part, chunk)))
            chunk++;
        if (chunk == t->part.n_chunks)
            return true;
        if (!start_connection(t, &t->connections[i], chunk))
            return false;
    }
    return true;
}

/* Plans another try after a failure, or gives up. */
static void try_again(struct transfer *t, struct connection *connection)
{
    char why[APP_HTTP_WHY_BYTES];
    struct app_http_reply *r = &connection->reply;
    double delay = app_http_delay(++t->n_failures, r->retry_after);
    if (r->status == 429 || r->status == 503) /* too many connections, perhaps */
        t->n_connections = t->n_connections > 1 ? t->n_connections - 1 : 1;
    if (t->n_failures > t->http->n_retries || delay < 0.0) {
        fail_transfer(t, app_http_why(t->http, r, why));
        return;
    }
    if (app_seconds() + delay > t->not_before)
        t->not_before = app_seconds() + delay;
    if (!t->use_ranges) /* it begins at the start again */
        t->part.done[connection->chunk] = 0;
}

static bool may_connect_again(CURLcode result)
{
    return result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST ||
           result == CURLE_SSL_CONNECT_ERROR || result == CURLE_COULDNT_RESOLVE_PROXY;
}

/* A request has ended. */
static void finish_connection(struct transfer *t, struct connection *connection, CURLcode result)
{
    struct app_http_reply *r = &connection->reply;
    curl_off_t wait = 0;
    char why[APP_HTTP_WHY_BYTES];
    curl_easy_getinfo(connection->easy, CURLINFO_RETRY_AFTER, &wait);
    r->retry_after = (long)wait;
    r->result = result;
    stop_connection(connection);
    if (t->outcome != APP_TRANSFER_GOES_ON || app_is_interrupted())
        return;
    bool is_data = r->status == 200 || r->status == 206;
    if (result == CURLE_OK && is_data && (connection->at == connection->end || t->part.size < 0)) {
        if (t->part.size < 0 && ftruncate(t->part.fd, connection->at) == 0)
            t->part.size = connection->at; /* an earlier try may have had more */
    } else if (result == CURLE_OK && is_data && connection->at < connection->end) {
        r->result = CURLE_PARTIAL_FILE;
        try_again(t, connection);
    } else if (app_http_is_transient(r) || may_connect_again(result)) {
        try_again(t, connection);
    } else if (result == CURLE_OK && r->status == 416) {
        t->outcome = APP_TRANSFER_RESTART;
    } else if (result == CURLE_OK && (r->status < 400 || strcmp(t->url, t->file->url) != 0)) {
        t->outcome = APP_TRANSFER_RELOCATE;
    } else {
        fail_transfer(t, app_http_why(t->http, r, why));
    }
}

static void finish_connections(struct transfer *t)
{
    CURLMsg *message;
    int n_left;
    while ((message = curl_multi_info_read(t->multi, &n_left)) != NULL) {
        struct connection *connection = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&connection);
        finish_connection(t, connection, result);
    }
}

/* Requests until the file is whole or something else has to be done. */
static void run_connections(struct transfer *t)
{
    int n_running = 0;
    t->outcome = APP_TRANSFER_GOES_ON;
    while (t->outcome == APP_TRANSFER_GOES_ON && !app_part_is_whole(&t->part)) {
        if (app_is_interrupted()) {
            t->outcome = APP_TRANSFER_FAILED;
            t->code = APP_EXIT_INTERRUPTED;
        } else if (!start_connections(t) || curl_multi_perform(t->multi, &n_running) != CURLM_OK) {
            t->outcome = APP_TRANSFER_FAILED;
            t->code = app_fail_memory();
        } else {
            (void)curl_multi_poll(t->multi, NULL, 0, POLL_MS, NULL);
            finish_connections(t);
            show_progress(t);
            if (t->use_ranges)
                app_part_save(&t->part, SAVE_SECONDS);
        }
    }
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        stop_connection(&t->connections[i]);
}

/* ---- The whole file ----------------------------------------------------- */
/* Weak validators say nothing of bytes. */
static const char *validator_of(const struct app_part *part)
{
    if (part->etag[0] == '"')
        return part->etag;
    return part->modified[0] ? part->modified : NULL;
}

/* Asks for the file's version and opens the part for it. */
static int begin_transfer(struct transfer *t, bool may_use_ranges)
{
    struct app_http_reply r;
    app_progress_clear(&t->progress->bar);
    int code = app_transfer_probe(t->http, t->file, &r);
    if (code == APP_EXIT_OK) {
        t->use_ranges = may_use_ranges && r.status == 206 && r.first == 0 && r.total >= 0;
        t->n_connections = t->use_ranges ? t->http->n_connections : 1;
        free(t->url);
        t->url = strdup(r.url);
        code = t->url ? app_part_begin(&t->part, t->file->size, r.etag, r.modified, t->use_ranges) :
                        app_fail_memory();
        t->validator = validator_of(&t->part);
        if (t->progress->total < 0)
            t->progress->total = t->file->size;
    }
    app_http_reply_free(&r);
    return code;
}

/* Without ranges there is one chunk: the file. */
static void begin_stream(struct transfer *t)
{
    int64_t size = t->part.size;
    t->part.n_chunks = 1;
    t->part.chunk = size < 0 ? INT64_MAX : size;
    t->part.done[0] = 0;
    t->validator = NULL;
    t->n_connections = 1;
}

static bool on_hash(void *user)
{
    struct transfer *t = user;
    show_progress(t);
    return app_is_interrupted();
}

/* The bytes as they are on disk: their beginning, and their hash if one is known. */
static int check_whole(struct transfer *t)
{
    char head[HEAD_BYTES], sum[65];
    ssize_t n = pread(t->part.fd, head, sizeof head, 0);
    app_progress_clear(&t->progress->bar);
    const char *wrong = app_wrong_content(t->file->name, head, n > 0 ? (size_t)n : 0);
    if (wrong) {
        app_part_remove(&t->part);
        return app_fail_content(t->file->url, wrong);
    }
    if (!t->file->sha256[0])
        return APP_EXIT_OK;
    enum akunu_status status = akunu_path_sha256(t->part.path, on_hash, t, sum);
    app_progress_clear(&t->progress->bar);
    if (status != AKUNU_OK)
        return app_fail_library();
    if (strcmp(sum, t->file->sha256) == 0)
        return APP_EXIT_OK;
    app_part_remove(&t->part);
    return app_fail("%s: the file that came has the SHA-256 %s, and expected is %s; it is removed",
                    t->file->name, sum, t->file->sha256);
}

/* A file whose length the server does not tell is whole if its tensors are inside it. */
static int check_unknown_length(struct transfer *t)
{
    struct akunu_file *file =
        app_ends_with(t->file->name, ".gguf") ? akunu_file_open(t->part.path) : NULL;
    bool ok = file != NULL || t->file->sha256[0] || t->connections[0].reply.is_chunked;
    akunu_file_free(file);
    if (ok)
        return APP_EXIT_OK;
    app_part_remove(&t->part);
    return fail_transfer(t,
                         "the server does not tell how long the file is, so whether all of it came "
                         "cannot be known");
}

/* The file on the server is another one, or its ranges are not what was asked for. */
static void start_over(struct transfer *t)
{
    app_progress_clear(&t->progress->bar);
    app_aside(
        "%s: the file on the server has changed, or its ranges are wrong; from the start again",
        t->file->name);
    (void)unlink(t->part.state);
    if (t->file->sha256[0])
        return;
    t->file->size = -1;
    t->file->id[0] = '\0';
}

/* A round: asks what the file is, then for its bytes. */
static int run_round(struct transfer *t, bool may_use_ranges, const char *refused_version)
{
    int code = begin_transfer(t, may_use_ranges);
    if (code != APP_EXIT_OK)
        return code;
    if (*refused_version && strcmp(refused_version, t->part.etag) == 0)
        t->use_ranges = false; /* the same file, and a range of it was wrong */
    if (!t->use_ranges)
        begin_stream(t);
    bool is_length_known = t->part.size >= 0;
    run_connections(t);
    if (t->outcome == APP_TRANSFER_FAILED)
        return t->code;
    return t->outcome == APP_TRANSFER_GOES_ON && !is_length_known ? check_unknown_length(t) :
                                                                    APP_EXIT_OK;
}

/* Rounds until the file is whole. */
static int run_rounds(struct transfer *t)
{
    char refused_version[sizeof t->part.etag] = "";
    bool may_use_ranges = true;
    int64_t had = 0;
    for (int n = 0; n <= MAX_RESTARTS; n++) {
        int code = run_round(t, may_use_ranges, refused_version);
        if (code != APP_EXIT_OK || t->outcome == APP_TRANSFER_GOES_ON)
            return code;
        may_use_ranges = t->use_ranges && n + 1 < MAX_RESTARTS; /* the last try is a plain one */
        if (t->outcome == APP_TRANSFER_RESTART) {
            memcpy(refused_version, t->part.etag, sizeof refused_version);
            start_over(t);
        } else { /* addresses of a redirect may end after an hour */
            app_part_save(&t->part, -1.0);
            n = app_part_have(&t->part) > had ? -1 : n;
            had = app_part_have(&t->part);
        }
    }
    return fail_transfer(t, "the file changes again and again while it is read");
}

/* Ctrl-C or a failure leaves what a later run can go on from, and nothing else. */
static void leave_part(struct transfer *t)
{
    int64_t have = t->part.done ? app_part_have(&t->part) : 0;
    if (!t->use_ranges || have == 0 || t->part.size < 0 ||
        (!t->part.etag[0] && !t->part.modified[0])) {
        if (t->part.fd >= 0)
            app_part_remove(&t->part);
        return;
    }
    app_part_save(&t->part, -1.0);
    app_progress_clear(&t->progress->bar);
    app_aside("%s: %.1f of %.1f MB are there; the same command goes on from them", t->file->name,
              (double)have / 1e6, (double)t->part.size / 1e6);
}

int app_transfer(struct app_http *http, struct app_remote_file *file, const char *part,
                 const char *path, struct app_transfer_progress *progress)
{
    struct transfer t = { .http = http, .file = file, .progress = progress };
    char *key = app_url_shown(file->url); /* signatures in queries change; the validator decides */
    int code = key ? app_part_open(&t.part, part, key) : app_fail_memory();
    if (code == APP_EXIT_OK && !(t.multi = curl_multi_init()))
        code = app_fail_memory();
    if (code == APP_EXIT_OK)
        code = run_rounds(&t);
    if (code == APP_EXIT_OK)
        code = check_whole(&t);
    if (code == APP_EXIT_OK)
        code = app_part_place(&t.part, path);
    else
        leave_part(&t);
    if (code == APP_EXIT_OK)
        file->size = t.part.size;
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        if (t.connections[i].easy)
            curl_easy_cleanup(t.connections[i].easy);
    curl_multi_cleanup(t.multi);
    app_part_close(&t.part);
    free(t.url);
    free(key);
    return code;
}

/* Requests into memory, redirects, and what a failure means. */
#include "apps/common/pull/http.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "apps/common/pull/hub.h"
#include "apps/common/message.h"

enum { MAX_REDIRECTS = 10, CONNECT_SECONDS = 30, MAX_WAIT = 120, BUFFER_BYTES = 256 << 10 };

/* ---- Headers ------------------------------------------------------------ */
static void reset_headers(struct app_http_reply *r)
{
    r->first = r->total = r->length = -1;
    r->is_chunked = r->is_html = r->is_encoded = false;
    r->etag[0] = r->modified[0] = r->error_code[0] = r->next[0] = '\0';
}

static int64_t read_digits(const char *text, const char **end)
{
    char *stop;
    errno = 0;
    long long n = isdigit((unsigned char)*text) ? strtoll(text, &stop, 10) : -1;
    *end = n < 0 ? text : stop;
    return errno ? -1 : n;
}

/* "bytes 0-15/98000", "bytes 0-15/" followed by a star: the length is not known. */
static void read_content_range(const char *value, struct app_http_reply *r)
{
    const char *end;
    if (strncasecmp(value, "bytes ", 6) != 0)
        return;
    r->first = read_digits(value + 6, &end);
    end = strchr(end, '/');
    r->total = end ? read_digits(end + 1, &end) : -1;
}

/* Target of `<URL>; rel="next"`. */
static void read_link(const char *value, struct app_http_reply *r)
{
    const char *open = strchr(value, '<'), *close = open ? strchr(open, '>') : NULL;
    if (close && strstr(close, "rel=\"next\"") && (size_t)(close - open) < sizeof r->next)
        snprintf(r->next, sizeof r->next, "%.*s", (int)(close - open - 1), open + 1);
}

static void take_header(const char *name, const char *value, struct app_http_reply *r)
{
    const char *end;
    if (strcasecmp(name, "content-length") == 0)
        r->length = read_digits(value, &end);
    else if (strcasecmp(name, "content-range") == 0)
        read_content_range(value, r);
    else if (strcasecmp(name, "transfer-encoding") == 0)
        r->is_chunked = strcasestr(value, "chunked") != NULL;
    else if (strcasecmp(name, "content-encoding") == 0)
        r->is_encoded = strcasecmp(value, "identity") != 0;
    else if (strcasecmp(name, "content-type") == 0)
        r->is_html = strncasecmp(value, "text/html", 9) == 0;
    else if (strcasecmp(name, "etag") == 0 && strlen(value) < sizeof r->etag)
        strcpy(r->etag, value);
    else if (strcasecmp(name, "last-modified") == 0 && strlen(value) < sizeof r->modified)
        strcpy(r->modified, value);
    else if (strcasecmp(name, "x-linked-etag") == 0 && r->is_endpoint &&
             strlen(value) < sizeof r->linked_etag)
        strcpy(r->linked_etag, value);
    else if (strcasecmp(name, "x-error-code") == 0 && strlen(value) < sizeof r->error_code)
        strcpy(r->error_code, value);
    else if (strcasecmp(name, "link") == 0)
        read_link(value, r);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *user)
{
    struct app_http_reply *r = user;
    char line[2048];
    size_t n_line = size * n;
    if (n_line >= sizeof line)
        return size * n;
    memcpy(line, bytes, n_line);
    line[n_line] = '\0';
    while (n_line > 0 && strchr("\r\n \t", line[n_line - 1]))
        line[--n_line] = '\0';
    char *colon = strchr(line, ':');
    if (strncmp(line, "HTTP/", 5) == 0) {
        const char *space = strchr(line, ' ');
        reset_headers(r);
        r->status = space ? strtol(space + 1, NULL, 10) : 0;
    } else if (colon) {
        *colon = '\0';
        take_header(line, colon + 1 + strspn(colon + 1, " \t"), r);
    }
    return size * n;
}

/* ---- A request ---------------------------------------------------------- */
static int on_poll(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)user, (void)a, (void)b, (void)c, (void)d;
    return app_is_interrupted();
}

static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
    char *line;
    if (asprintf(&line, "%s: %s", name, value) < 0)
        return false;
    struct curl_slist *list = curl_slist_append(*headers, line);
    free(line);
    if (list)
        *headers = list;
    return list != NULL;
}

static bool add_bearer(struct curl_slist **headers, const char *token)
{
    char *value;
    if (asprintf(&value, "Bearer %s", token) < 0)
        return false;
    bool added = add_header(headers, "Authorization", value);
    explicit_bzero(value, strlen(value));
    free(value);
    return added;
}

static void set_limits(const struct app_http *http, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, http->stall_seconds);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_poll);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    /* several ranges would share one connection of HTTP/2 */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    if (http->certificates)
        curl_easy_setopt(easy, CURLOPT_CAINFO, http->certificates);
}

bool app_http_prepare(const struct app_http *http, CURL *easy, const char *url, const char *range,
                      const char *if_range, struct app_http_reply *reply,
                      struct curl_slist **headers)
{
    char agent[64];
    snprintf(agent, sizeof agent, "akunu/%s", akunu_version());
    reset_headers(reply);
    reply->result = CURLE_OK;
    reply->status = 0;
    reply->error[0] = '\0';
    curl_easy_reset(easy);
    set_limits(http, easy);
    reply->is_endpoint = app_url_is_same_origin(url, http->endpoint);
    reply->sent_token = http->token && reply->is_endpoint;
    bool ok = add_header(headers, "Accept-Encoding", "identity") &&
              (!if_range || add_header(headers, "If-Range", if_range)) &&
              (!reply->sent_token || add_bearer(headers, http->token));
    curl_easy_setopt(easy, CURLOPT_USERAGENT, agent);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
    curl_easy_setopt(easy, CURLOPT_RANGE, range);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, reply->error);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, reply);
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK && ok;
}

struct body {
    struct app_http_reply *reply;
    size_t max;
};

static size_t on_body(char *bytes, size_t size, size_t n, void *user)
{
    struct body *body = user;
    struct app_http_reply *r = body->reply;
    size_t n_bytes = size * n;
    if (n_bytes > body->max - r->n_body)
        n_bytes = body->max - r->n_body;
    char *grown = realloc(r->body, r->n_body + n_bytes + 1);
    if (!grown)
        return 0;
    r->body = grown;
    memcpy(r->body + r->n_body, bytes, n_bytes);
    r->n_body += n_bytes;
    r->body[r->n_body] = '\0';
    return n_bytes; /* fewer end the transfer: that is enough */
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* The target of a redirect replaces *url. Returns false, with reply->error, if it is refused. */
static bool follow(CURL *easy, struct app_http_reply *reply, int n_redirects, char **url)
{
    char *target = NULL;
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &target);
    const char *why = NULL;
    if (!target)
        why = "it redirects to nowhere";
    else if (n_redirects >= MAX_REDIRECTS)
        why = "it redirects in circles";
    else if (strncasecmp(*url, "https:", 6) == 0 && strncasecmp(target, "https:", 6) != 0)
        why = "it redirects from https to something less safe, which is refused";
    else if (strncasecmp(target, "https:", 6) != 0 && strncasecmp(target, "http:", 5) != 0)
        why = "it redirects to something other than http and https, which is refused";
    char *copy = why ? NULL : strdup(target);
    if (!copy) {
        reply->result = why ? CURLE_TOO_MANY_REDIRECTS : CURLE_OUT_OF_MEMORY;
        snprintf(reply->error, sizeof reply->error, "%s", why ? why : "out of memory");
        return false;
    }
    free(*url);
    *url = copy;
    return true;
}

/* One try, with its redirects. */
static bool get_once(struct app_http *http, const char *url, const char *range, size_t max,
                     struct app_http_reply *reply)
{
    struct body body = { reply, max };
    reply->linked_etag[0] = '\0';
    free(reply->url);
    reply->url = strdup(url);
    for (int n_redirects = 0; reply->url; n_redirects++) {
        struct curl_slist *headers = NULL;
        bool ok = app_http_prepare(http, http->easy, reply->url, range, NULL, reply, &headers);
        reply->n_body = 0;
        curl_easy_setopt(http->easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(http->easy, CURLOPT_WRITEDATA, &body);
        if (ok)
            reply->result = curl_easy_perform(http->easy);
        curl_slist_free_all(headers);
        if (!ok)
            return false;
        if (reply->result == CURLE_WRITE_ERROR && reply->n_body == max)
            reply->result = CURLE_OK;
        curl_off_t wait = 0;
        curl_easy_getinfo(http->easy, CURLINFO_RETRY_AFTER, &wait);
        reply->retry_after = (long)wait;
        if (reply->result != CURLE_OK || !is_redirect(reply->status))
            return true;
        if (!follow(http->easy, reply, n_redirects, &reply->url))
            return reply->result != CURLE_OUT_OF_MEMORY;
    }
    return false;
}

int app_http_get(struct app_http *http, const char *url, const char *range, size_t max,
                 struct app_http_reply *reply)
{
    *reply = (struct app_http_reply){ .first = -1 };
    for (int n = 1;; n++) {
        if (!get_once(http, url, range, max, reply))
            return app_is_interrupted() ? APP_EXIT_INTERRUPTED : app_fail_memory();
        if (app_is_interrupted())
            return APP_EXIT_INTERRUPTED;
        double delay = app_http_delay(n, reply->retry_after);
        if (!app_http_is_transient(reply) || n > http->n_retries || delay < 0.0)
            return APP_EXIT_OK;
        if (app_http_wait(delay) != APP_EXIT_OK)
            return APP_EXIT_INTERRUPTED;
    }
}

void app_http_reply_free(struct app_http_reply *reply)
{
    free(reply->url);
    free(reply->body);
    *reply = (struct app_http_reply){ .first = -1 };
}

/* ---- What an answer means ----------------------------------------------- */
bool app_http_is_good(const struct app_http_reply *r)
{
    return r->result == CURLE_OK && (r->status == 200 || r->status == 206);
}

bool app_http_is_transient(const struct app_http_reply *r)
{
    switch (r->result) {
    case CURLE_OK: break;
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return true;
    default: return false;
    }
    return r->status == 408 || r->status == 429 || r->status == 500 || r->status == 502 ||
           r->status == 503 || r->status == 504;
}

double app_http_delay(int n, long retry_after)
{
    double delay = 0.25;
    for (int i = 0; i < n && delay < 30.0; i++)
        delay *= 2.0;
    if (retry_after > MAX_WAIT)
        return -1.0;
    return (double)retry_after > delay ? (double)retry_after : delay;
}

int app_http_wait(double seconds)
{
    double end = app_seconds() + seconds;
    const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
    while (!app_is_interrupted() && app_seconds() < end)
        nanosleep(&pause, NULL);
    return app_is_interrupted() ? APP_EXIT_INTERRUPTED : APP_EXIT_OK;
}

static void describe_refusal(const struct app_http_reply *r, char *out)
{
    char shown[APP_SHOWN_BYTES];
    const char *help = "";
    if (r->is_endpoint && strcmp(r->error_code, "GatedRepo") == 0)
        help = r->sent_token ? ": the repository is gated, and the account of the token has not "
                               "accepted its terms; do that on its page" :
                               ": the repository is gated: accept its terms on its page, then set "
                               "HF_TOKEN to a token of your account";
    else if (r->is_endpoint)
        help = r->sent_token ? ": there is no such repository, or the token has no access to it" :
                               ": there is no such repository, or it is private or gated, and "
                               "HF_TOKEN is not set";
    snprintf(out, APP_HTTP_WHY_BYTES, "the server refuses it (%ld%s%s)%s", r->status,
             *r->error_code ? ", " : "", *r->error_code ? app_show_text(r->error_code, shown) : "",
             help);
}

static void describe_failure(const struct app_http *http, const struct app_http_reply *r, char *out)
{
    const char *text = *r->error ? r->error : curl_easy_strerror(r->result);
    char shown[APP_SHOWN_BYTES];
    switch (r->result) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        snprintf(out, APP_HTTP_WHY_BYTES,
                 "the server's certificate is not accepted: %s (SSL_CERT_FILE may name a file of "
                 "certificates to trust)",
                 app_show_text(text, shown));
        return;
    case CURLE_SSL_CACERT_BADFILE:
        snprintf(out, APP_HTTP_WHY_BYTES, "no certificates to trust can be read%s%s",
                 http->certificates ? ", SSL_CERT_FILE is " : " (apt-get install ca-certificates)",
                 http->certificates ? http->certificates : "");
        return;
    case CURLE_OPERATION_TIMEDOUT:
        snprintf(out, APP_HTTP_WHY_BYTES, "the server sends nothing (%s)",
                 app_show_text(text, shown));
        return;
    case CURLE_PARTIAL_FILE:
        snprintf(out, APP_HTTP_WHY_BYTES,
                 "the connection ended before all that the server had announced was there");
        return;
    default: snprintf(out, APP_HTTP_WHY_BYTES, "%s", app_show_text(text, shown));
    }
}

const char *app_http_why(const struct app_http *http, const struct app_http_reply *r,
                         char out[APP_HTTP_WHY_BYTES])
{
    if (r->result != CURLE_OK)
        describe_failure(http, r, out);
    else if (r->status == 401 || r->status == 403)
        describe_refusal(r, out);
    else if (r->status == 404 || r->status == 410)
        snprintf(out, APP_HTTP_WHY_BYTES, "there is no such file (%ld)", r->status);
    else if (r->status == 429 && r->retry_after > 0)
        snprintf(out, APP_HTTP_WHY_BYTES,
                 "the server has too many requests (429) and asks to wait for %ld s",
                 r->retry_after);
    else
        snprintf(out, APP_HTTP_WHY_BYTES, "the server answers with status %ld", r->status);
    return out;
}

int app_http_fail(const struct app_http *http, const char *url, const struct app_http_reply *r)
{
    char why[APP_HTTP_WHY_BYTES];
    bool is_model = r->result == CURLE_OK && r->status >= 400 && r->status < 429;
    return app_fail_url(url, is_model ? APP_EXIT_MODEL : APP_EXIT_FAILURE,
                        app_http_why(http, r, why));
}

/* ---- Setting up --------------------------------------------------------- */
int app_http_open(const struct app_options *o, struct app_http *http)
{
    const char *endpoint = getenv("HF_ENDPOINT"), *certificates = getenv("SSL_CERT_FILE");
    *http = (struct app_http){ .stall_seconds = o->download.stall_timeout,
                               .n_retries = (int)o->download.retries,
                               .n_connections = (int)o->download.connections };
    if (!endpoint || !*endpoint)
        endpoint = "https://huggingface.co";
    http->certificates = certificates && *certificates ? certificates : NULL;
    http->endpoint = strdup(endpoint);
    char *origin = app_url_origin(endpoint);
    bool ok = origin && (strncmp(origin, "http://", 7) == 0 || strncmp(origin, "https://", 8) == 0);
    free(origin);
    if (!ok)
        return app_fail_usage("HF_ENDPOINT: expected a URL like https://huggingface.co");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !http->endpoint ||
        !(http->easy = curl_easy_init()))
        return app_fail_memory();
    for (size_t n = strlen(http->endpoint); n > 0 && http->endpoint[n - 1] == '/';)
        http->endpoint[--n] = '\0';
    return app_hub_read_token(&http->token);
}

void app_http_close(struct app_http *http)
{
    if (http->easy)
        curl_easy_cleanup(http->easy);
    if (http->token)
        explicit_bzero(http->token, strlen(http->token));
    free(http->token);
    free(http->endpoint);
    *http = (struct app_http){ 0 };
}

/* HTTP over libcurl: URLs and what of them may be shown, requests into memory, and redirects. These
 * are followed here and not by libcurl, so that a token goes to one origin alone and https never
 * becomes http. */
#ifndef AK_APPS_COMMON_PULL_HTTP_H
#define AK_APPS_COMMON_PULL_HTTP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/common/options.h"

enum { APP_HTTP_WHY_BYTES = 640 };

/* What requests share. */
struct app_http {
    CURL *easy;               /* of requests into memory */
    char *endpoint;           /* HF_ENDPOINT, without a slash at its end */
    char *token;              /* for the endpoint's origin; NULL: none */
    const char *certificates; /* a file; NULL: libcurl's */
    long stall_seconds;       /* without a byte, after which a request has failed */
    int n_retries, n_connections;
};

/* An answer. Members of headers that it lacks are -1 or "". */
struct app_http_reply {
    CURLcode result;
    char error[CURL_ERROR_SIZE];
    long status;
    int64_t first, total; /* Content-Range */
    int64_t length;       /* Content-Length */
    long retry_after;     /* seconds; 0: not said */
    bool is_chunked, is_html, is_encoded;
    bool is_endpoint, sent_token; /* it is of HF_ENDPOINT's origin; it had the token */
    char etag[128], modified[64];
    char linked_etag[128]; /* X-Linked-Etag: the SHA-256 of a large file of a repository */
    char error_code[48];   /* X-Error-Code */
    char next[1024];       /* target of Link: rel="next" */
    char *url;             /* that was answered, after redirects */
    char *body;            /* n_body bytes and a NUL */
    size_t n_body;
};

/* Reads HF_ENDPOINT, the token and the flags. Returns APP_EXIT_OK, or another code after a message.
 * Call app_http_close in any case. */
int app_http_open(const struct app_options *o, struct app_http *http);
void app_http_close(struct app_http *http);

/* Requests `url`, of it the bytes `range` ("0-15"; NULL: all); keeps at most `max` bytes of the
 * body and stops there. Tries again after transient failures. Returns APP_EXIT_OK if there is an
 * answer, whatever its status, or a failure in reply->result; APP_EXIT_INTERRUPTED; or
 * APP_EXIT_MEMORY after a message. Free the reply in any case. */
int app_http_get(struct app_http *http, const char *url, const char *range, size_t max,
                 struct app_http_reply *reply);
void app_http_reply_free(struct app_http_reply *reply);

/* Whether the answer is 200 or 206. */
bool app_http_is_good(const struct app_http_reply *reply);

/* Whether another try may succeed: a stall, a lost connection, 429 and most of 5xx. */
bool app_http_is_transient(const struct app_http_reply *reply);

/* Seconds before try `n`, from 1; -1: the server asks for more patience than we have. */
double app_http_delay(int n, long retry_after);

/* Sleeps; APP_EXIT_OK or APP_EXIT_INTERRUPTED. */
int app_http_wait(double seconds);

/* Says why the answer is none, without the URL. Returns `out`. */
const char *app_http_why(const struct app_http *http, const struct app_http_reply *reply,
                         char out[APP_HTTP_WHY_BYTES]);

/* Prints why `url` gave nothing; returns the exit code. */
int app_http_fail(const struct app_http *http, const char *url, const struct app_http_reply *reply);

/* Prepares a request for `easy`, which fills *reply; the caller sets what receives the body.
 * `if_range`: a validator, or NULL. Free *headers after the request. False: out of memory. */
bool app_http_prepare(const struct app_http *http, CURL *easy, const char *url, const char *range,
                      const char *if_range, struct app_http_reply *reply,
                      struct curl_slist **headers);

/* ---- URLs: url.c -------------------------------------------------------- */
/* All results are to be freed; NULL: out of memory, or no URL of http or https. */

/* The URL for people and for files: no user, no password, and "?…" in place of a query. */
char *app_url_shown(const char *url);

/* Prints "URL: " and what is wrong with its file or server, and returns `code`. */
int app_fail_url(const char *url, int code, const char *what);

/* What identifies the file: the same, with a hash in place of the query. */
char *app_url_key(const char *url);

/* "https://host:443". */
char *app_url_origin(const char *url);
bool app_url_is_same_origin(const char *a, const char *b);

/* The last part of the path, decoded: a name for a file, if app_is_file_name. */
char *app_url_name(const char *url);

/* The URL with another name at the end of its path. */
char *app_url_with_name(const char *url, const char *name);

/* `path` for a URL: each part between slashes encoded. */
char *app_url_encode_path(const char *path);

/* Whether a name of a server may be that of a file here: no path, not hidden, UTF-8 without control
 * characters, at most 200 bytes. */
bool app_is_file_name(const char *name);

#endif

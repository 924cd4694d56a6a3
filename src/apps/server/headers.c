/* Checks of a request's headers. */
#include "apps/server/headers.h"

#include <string.h>
#include <strings.h>

/* A token of RFC 9110, 5.6.2. */
static bool is_token(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~0123456789";
    for (const char *at = text; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || strchr(others, *at)))
            return false;
    return *text != '\0';
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return true;
    return false;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static void note(struct http_headers *h, bool wrong, const char *message)
{
    if (wrong && !h->wrong)
        h->wrong = message;
}

void http_headers_add(struct http_headers *h, const char *name, const char *value)
{
    bool length = strcasecmp(name, "Content-Length") == 0,
         encoding = strcasecmp(name, "Transfer-Encoding") == 0;
    value = value ? value : "";
    h->bytes += strlen(name) + strlen(value) + 4;
    h->n_lengths += length;
    h->n_encodings += encoding;
    h->n_hosts += strcasecmp(name, "Host") == 0;
    note(h, !is_token(name), "a header has a malformed name");
    note(h, has_control(value), "a header has a control character");
    note(h, length && !is_number(value), "the Content-Length is not a number");
    note(h, encoding && strcasecmp(value, "chunked") != 0,
         "the Transfer-Encoding is not supported; expected chunked");
}

const char *http_headers_check(const struct http_headers *h, bool is_1_0)
{
    if (h->n_lengths > 1)
        return "the request has more than one Content-Length";
    if (h->n_encodings > 1)
        return "the request has more than one Transfer-Encoding";
    if (h->n_lengths > 0 && h->n_encodings > 0)
        return "the request has Content-Length and Transfer-Encoding";
    if (h->n_encodings > 0 && is_1_0)
        return "an HTTP/1.0 request has a Transfer-Encoding";
    if (h->n_hosts > 1)
        return "the request has more than one Host";
    if (h->n_hosts == 0 && !is_1_0)
        return "an HTTP/1.1 request needs a Host";
    return h->wrong;
}

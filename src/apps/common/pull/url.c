/* URLs: which parts of them are shown, compared, and used as the name of a file. */
#include "apps/common/pull/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/common/message.h"

enum { MAX_NAME = 200 };

static CURLU *parse_url(const char *url)
{
    CURLU *u = curl_url();
    if (u && curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK) {
        curl_url_cleanup(u);
        return NULL;
    }
    return u;
}

/* A part of the URL as memory of malloc; NULL: it has none. */
static char *url_part(CURLU *u, CURLUPart part, unsigned flags)
{
    char *text = NULL, *copy;
    if (curl_url_get(u, part, &text, flags) != CURLUE_OK)
        return NULL;
    copy = strdup(text);
    curl_free(text);
    return copy;
}

/* FNV-1a. */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* The URL without secrets; the query, which may be one, becomes its hash or dots. */
static char *strip_secrets(const char *url, bool with_hash)
{
    CURLU *u = parse_url(url);
    if (!u)
        return NULL;
    char *query = url_part(u, CURLUPART_QUERY, 0), *result = NULL;
    static const CURLUPart secrets[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                         CURLUPART_QUERY, CURLUPART_FRAGMENT };
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        (void)curl_url_set(u, secrets[i], NULL, 0);
    char *plain = url_part(u, CURLUPART_URL, 0);
    int n = -1;
    if (plain && query && with_hash)
        n = asprintf(&result, "%s?%016llx", plain, (unsigned long long)hash_text(query));
    else if (plain)
        n = asprintf(&result, "%s%s", plain, query ? "?\xe2\x80\xa6" : "");
    free(query);
    free(plain);
    curl_url_cleanup(u);
    return n < 0 ? NULL : result;
}

char *app_url_shown(const char *url)
{
    return strip_secrets(url, false);
}

int app_fail_url(const char *url, int code, const char *what)
{
    char *shown = app_url_shown(url);
    app_fail("%s: %s", shown ? shown : "the URL", what);
    free(shown);
    return code;
}

char *app_url_key(const char *url)
{
    return strip_secrets(url, true);
}

char *app_url_origin(const char *url)
{
    CURLU *u = parse_url(url);
    if (!u)
        return NULL;
    char *scheme = url_part(u, CURLUPART_SCHEME, 0), *host = url_part(u, CURLUPART_HOST, 0);
    char *port = url_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT), *origin = NULL;
    if (!scheme || !host || !port || asprintf(&origin, "%s://%s:%s", scheme, host, port) < 0)
        origin = NULL;
    free(scheme);
    free(host);
    free(port);
    curl_url_cleanup(u);
    return origin;
}

bool app_url_is_same_origin(const char *a, const char *b)
{
    char *x = app_url_origin(a), *y = app_url_origin(b);
    bool same = x && y && strcasecmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

char *app_url_name(const char *url)
{
    CURLU *u = parse_url(url);
    char *path = u ? url_part(u, CURLUPART_PATH, 0) : NULL, *name = NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    int n = 0;
    char *decoded = slash ? curl_easy_unescape(NULL, slash + 1, 0, &n) : NULL;
    if (decoded && strlen(decoded) == (size_t)n)
        name = strdup(decoded);
    curl_free(decoded);
    free(path);
    curl_url_cleanup(u);
    return name;
}

char *app_url_with_name(const char *url, const char *name)
{
    CURLU *u = parse_url(url);
    char *path = u ? url_part(u, CURLUPART_PATH, 0) : NULL, *result = NULL, *other = NULL;
    char *encoded = app_url_encode_path(name), *slash = path ? strrchr(path, '/') : NULL;
    if (slash && encoded && asprintf(&other, "%.*s/%s", (int)(slash - path), path, encoded) >= 0) {
        if (curl_url_set(u, CURLUPART_PATH, other, 0) == CURLUE_OK)
            result = url_part(u, CURLUPART_URL, 0);
        free(other);
    }
    free(encoded);
    free(path);
    curl_url_cleanup(u);
    return result;
}

char *app_url_encode_path(const char *path)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = malloc(3 * strlen(path) + 1), *to = out;
    for (; out && *path; path++) {
        unsigned char c = (unsigned char)*path;
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     strchr("-._~/", c);
        if (!plain) {
            *to++ = '%';
            *to++ = digits[c >> 4];
            c = (unsigned char)digits[c & 15];
        }
        *to++ = (char)c;
    }
    if (out)
        *to = '\0';
    return out;
}

bool app_is_file_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > MAX_NAME || name[0] == '.')
        return false;
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)name[i];
        size_t length = app_utf8_length(name + i, n - i);
        if (length == 0 || c < 0x20 || c == 0x7f || c == '/' || c == '\\')
            return false;
        i += length;
    }
    return true;
}

/* What a file on the network is, before it is downloaded: its size, its version, its first bytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/common/input.h"
#include "apps/common/pull/transfer.h"

enum { PROBE_BYTES = 64 };
static const char probe_range[] = "0-63";

/* ---- Contents ----------------------------------------------------------- */
static bool begins_with_tag(const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && strchr(" \t\r\n\xef\xbb\xbf", bytes[i]) && bytes[i])
        i++;
    return (n - i >= 9 && strncasecmp(bytes + i, "<!doctype", 9) == 0) ||
           (n - i >= 5 && strncasecmp(bytes + i, "<html", 5) == 0);
}

const char *app_wrong_content(const char *name, const char *bytes, size_t n)
{
    static const char pointer[] = "version https://git-lfs";
    if (n == 0)
        return "an empty file";
    if (begins_with_tag(bytes, n))
        return "a web page";
    if (n >= sizeof pointer - 1 && memcmp(bytes, pointer, sizeof pointer - 1) == 0)
        return "a pointer of Git LFS, in place of the file itself";
    if (app_ends_with(name, ".gguf") && (n < 4 || memcmp(bytes, "GGUF", 4) != 0))
        return "no GGUF file";
    if (app_ends_with(name, ".safetensors") && (n < 9 || bytes[8] != '{'))
        return "no SafeTensors file";
    return NULL;
}

int app_fail_content(const char *url, const char *what)
{
    char *shown = app_url_shown(url);
    app_fail("%s: the server sends %s", shown ? shown : "the URL", what);
    free(shown);
    return APP_EXIT_MODEL;
}

/* ---- Probe -------------------------------------------------------------- */
static bool is_hash(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* X-Linked-Etag, in quotes or not, is the hash of a large file. */
static void read_linked(struct app_remote_file *file, const struct app_http_reply *r)
{
    char hash[sizeof r->linked_etag];
    const char *from = r->linked_etag + (r->linked_etag[0] == '"');
    snprintf(hash, sizeof hash, "%s", from);
    hash[strcspn(hash, "\"")] = '\0';
    if (!file->sha256[0] && is_hash(hash))
        memcpy(file->sha256, hash, sizeof file->sha256);
}

int app_transfer_probe(struct app_http *http, struct app_remote_file *file,
                       struct app_http_reply *r)
{
    int code = app_http_get(http, file->url, probe_range, PROBE_BYTES, r);
    if (code != APP_EXIT_OK)
        return code;
    if (r->result == CURLE_OK && r->status == 416)
        return app_fail_content(file->url, "an empty file");
    if (!app_http_is_good(r))
        return app_http_fail(http, file->url, r);
    int64_t size = r->status == 206 ? r->total : r->length;
    const char *wrong = app_wrong_content(file->name, r->body ? r->body : "", r->n_body);
    if (r->is_html && (!wrong || strncmp(wrong, "no ", 3) == 0))
        wrong = "a web page";
    if (wrong)
        return app_fail_content(file->url, wrong);
    if (r->is_encoded)
        return app_fail_content(file->url, "it compressed, which was not asked for");
    if (file->size >= 0 && size >= 0 && file->size != size) {
        char *shown = app_url_shown(file->url);
        code = app_fail("%s: the server has %" PRId64 " bytes, and the repository's list %" PRId64,
                        shown ? shown : file->name, size, file->size);
        free(shown);
        return code;
    }
    if (file->size < 0)
        file->size = size;
    read_linked(file, r);
    if (!file->id[0])
        snprintf(file->id, sizeof file->id, "%s", r->etag[0] ? r->etag : r->modified);
    return APP_EXIT_OK;
}

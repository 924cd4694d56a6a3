/* Reads the header of a GGUF file on the network and nothing else of it. The library opens a path,
 * so the header is put into a temporary file of the model's length, which has a hole where the
 * tensors are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/pull/gguf_header.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/pull/pull.h"
#include "apps/common/remote.h"

enum { STEP = 1 << 20, MAX_HEADER = 256 << 20 };

/* Bytes from the start of a file. */
struct head {
    unsigned char *bytes;
    size_t n;
    int64_t size; /* of the whole file */
};

/* Adds the bytes of a reply to a request for bytes head->n … wanted - 1. */
static int add_reply(struct head *head, const char *url, const struct app_http_reply *r,
                     size_t wanted)
{
    if (r->status == 200)
        head->n = 0; /* a server without ranges begins at the start */
    int64_t size = r->status == 206 ? r->total : r->length;
    size_t n_new = r->n_body < wanted - head->n ? r->n_body : wanted - head->n;
    if (size < 0 || n_new == 0)
        return app_fail_url(url, APP_EXIT_FAILURE,
                            "the server does not tell the length of the file");
    if ((head->size >= 0 && size != head->size) ||
        (r->status == 206 && r->first != (int64_t)head->n))
        return app_fail_url(url, APP_EXIT_FAILURE,
                            "the server sends other bytes than it was asked for");
    unsigned char *grown = realloc(head->bytes, head->n + n_new);
    if (!grown)
        return app_fail_memory();
    head->bytes = grown;
    memcpy(head->bytes + head->n, r->body, n_new);
    head->n += n_new;
    head->size = size;
    return APP_EXIT_OK;
}

/* Requests bytes until there are `wanted` of them or all. */
static int request_more(struct app_http *http, const char *url, size_t wanted, struct head *head)
{
    char range[64];
    struct app_http_reply r;
    snprintf(range, sizeof range, "%zu-%zu", head->n, wanted - 1);
    int code = app_http_get(http, url, range, wanted, &r);
    if (code == APP_EXIT_OK)
        code =
            app_http_is_good(&r) ? add_reply(head, url, &r, wanted) : app_http_fail(http, url, &r);
    app_http_reply_free(&r);
    return code;
}

/* Reads the header in steps that double. */
static int read_head(struct app_http *http, const char *url, struct head *head)
{
    uint64_t needed = 1, step = STEP;
    *head = (struct head){ .size = -1 };
    while (needed > head->n) {
        uint64_t wanted = head->n + step > needed ? head->n + step : needed;
        if (head->size >= 0 && wanted > (uint64_t)head->size)
            wanted = (uint64_t)head->size;
        if (wanted <= head->n)
            return app_fail_url(url, APP_EXIT_MODEL, "the end of the file is inside its header");
        if (wanted > MAX_HEADER)
            return app_fail_url(url, APP_EXIT_MODEL, "its header has more than 256 MiB");
        int code = request_more(http, url, (size_t)wanted, head);
        if (code != APP_EXIT_OK)
            return code;
        needed = app_gguf_header_size(head->bytes, head->n);
        if (needed == 0) {
            const char *what = app_wrong_content("model.gguf", (const char *)head->bytes, head->n);
            return app_fail_url(url, APP_EXIT_MODEL, what ? what : "its header is damaged");
        }
        step *= 2;
    }
    return APP_EXIT_OK;
}

static int write_head(const char *path, const struct head *head)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, head->bytes, head->n) == (ssize_t)head->n &&
              ftruncate(fd, head->size) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return ok ? APP_EXIT_OK : app_fail("%s: %s", path, strerror(error));
}

static int make_folder(char **folder)
{
    const char *base = getenv("TMPDIR");
    if (asprintf(folder, "%s/akunu-XXXXXX", base && *base ? base : "/tmp") < 0) {
        *folder = NULL;
        return app_fail_memory();
    }
    if (mkdtemp(*folder))
        return APP_EXIT_OK;
    int code = app_fail("%s: %s", *folder, strerror(errno));
    free(*folder);
    *folder = NULL;
    return code;
}

static int read_all_parts(struct app_http *http, const struct app_pull_plan *plan,
                          struct app_remote_header *header)
{
    double n_read = 0.0, n_all = 0.0;
    int code = make_folder(&header->folder);
    for (size_t i = 0; code == APP_EXIT_OK && i < plan->n_files; i++) {
        struct head head;
        char *path;
        code = read_head(http, plan->files[i].url, &head);
        if (asprintf(&path, "%s/%s", header->folder, plan->files[i].name) < 0)
            path = NULL;
        if (code == APP_EXIT_OK)
            code = path ? write_head(path, &head) : app_fail_memory();
        n_read += (double)head.n;
        n_all += (double)head.size;
        free(head.bytes);
        if (i == 0)
            header->path = path;
        else
            free(path);
    }
    if (code == APP_EXIT_OK)
        app_aside("%s: read %.2f of %.2f MB", header->shown, n_read / 1e6, n_all / 1e6);
    return code;
}

static int read_source(struct app_http *http, const struct app_model_source *source,
                       struct app_remote_header *header)
{
    struct app_pull_plan plan;
    int code = app_pull_plan(http, source, NULL, &plan);
    header->shown = strdup(source->shown);
    if (code == APP_EXIT_OK && !header->shown)
        code = app_fail_memory();
    if (code == APP_EXIT_OK && (plan.is_folder || !app_ends_with(plan.files[0].name, ".gguf"))) {
        app_fail("%s: headers alone are read of GGUF files, which this is not; 'akunu-cli pull' "
                 "downloads it",
                 source->shown);
        code = APP_EXIT_MODEL;
    }
    if (code == APP_EXIT_OK)
        code = read_all_parts(http, &plan, header);
    app_pull_plan_free(&plan);
    return code;
}

int app_remote_header(const struct app_options *o, const char *name,
                      struct app_remote_header *header)
{
    struct app_http http;
    struct app_model_source source = { 0 };
    char *models = app_models_folder(), *found = NULL;
    *header = (struct app_remote_header){ 0 };
    int code = app_http_open(o, &http);
    if (code == APP_EXIT_OK)
        code = app_model_source_parse(&http, name, &source);
    if (code == APP_EXIT_OK && models)
        found = app_pulled_find(models, source.key);
    if (code == APP_EXIT_OK && !found && !o->download.offline)
        code = read_source(&http, &source, header);
    app_model_source_free(&source);
    app_http_close(&http);
    free(models);
    free(found);
    return code;
}

void app_remote_header_free(struct app_remote_header *header)
{
    DIR *dir = header->folder ? opendir(header->folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    if (header->folder)
        (void)rmdir(header->folder);
    free(header->path);
    free(header->folder);
    free(header->shown);
    *header = (struct app_remote_header){ 0 };
}

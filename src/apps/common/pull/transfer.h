/* Downloads one file: in ranges over several connections where the server has them, going on from
 * what an earlier run left, and checked before it takes its place. */
#ifndef AK_APPS_COMMON_PULL_TRANSFER_H
#define AK_APPS_COMMON_PULL_TRANSFER_H

#include "apps/common/pull/http.h"
#include "apps/common/message.h"

/* What is known of a file on the network. */
struct app_remote_file {
    char *url;
    char *name;      /* of the file here */
    int64_t size;    /* bytes; -1: not known */
    char sha256[65]; /* hexadecimal; "": not known */
    char id[128];    /* of its version: ETag, or a repository's hash; "": not known */
};

/* The progress line of several files. */
struct app_transfer_progress {
    struct app_progress bar;
    int64_t total, before;  /* bytes of all files, -1: not known; of the files that are done */
    int64_t measured_bytes; /* when the speed was last measured */
    double measured, speed; /* seconds; bytes per second */
};

/* Downloads file->url to `path` by way of `part`, both in folders that exist. Fills what was not
 * known of *file. Returns APP_EXIT_OK, APP_EXIT_INTERRUPTED, or another code after a message. If
 * the part can be resumed, a line says so. */
int app_transfer(struct app_http *http, struct app_remote_file *file, const char *part,
                 const char *path, struct app_transfer_progress *progress);

/* Asks what the file is: its size, its version, and of a repository its hash. Checks that its first
 * bytes are those of a model. `reply` as for app_http_get. Returns APP_EXIT_OK, or another code
 * after a message. */
int app_transfer_probe(struct app_http *http, struct app_remote_file *file,
                       struct app_http_reply *reply);

/* Checks what a file of that name begins with. NULL: it may be one; else what it is. */
const char *app_wrong_content(const char *name, const char *bytes, size_t n);

/* Prints that the server sends such a thing; returns APP_EXIT_MODEL. */
int app_fail_content(const char *url, const char *what);

#endif

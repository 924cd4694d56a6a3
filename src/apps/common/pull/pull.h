/* What a model on the network consists of, and the records of those that were downloaded. */
#ifndef AK_APPS_COMMON_PULL_PULL_H
#define AK_APPS_COMMON_PULL_PULL_H

#include <jansson.h>

#include "apps/common/pull/hub.h"
#include "apps/common/pull/http.h"
#include "apps/common/pull/transfer.h"

/* A model that a URL or a repository names. */
struct app_model_source {
    bool is_repo;
    struct app_repo repo;
    char *url;   /* of a file; NULL: a repository */
    char *key;   /* identifies it in records */
    char *shown; /* for people */
};

/* Reads a value of -m, or an argument of pull, which may leave out "hf:". Returns APP_EXIT_OK, or
 * another code after a message. Free *source in any case. */
int app_model_source_parse(const struct app_http *http, const char *text,
                           struct app_model_source *source);
void app_model_source_free(struct app_model_source *source);

/* The files of a model, the first part of a split one first. */
struct app_pull_plan {
    char *name; /* of the model in the models folder */
    bool is_folder;
    struct app_remote_file *files;
    size_t n_files;
};

/* Finds out which files; asks the network for a repository's list. `name`: what to call the model
 * here; NULL: as there. Returns as above; free *plan in any case. */
int app_pull_plan(struct app_http *http, const struct app_model_source *source, const char *name,
                  struct app_pull_plan *plan);
void app_pull_plan_free(struct app_pull_plan *plan);

/* ---- Records: pulled.c -------------------------------------------------- */
/* MODELS/.pull/NAME.json tells where a model came from:
 *
 *     {"version": 1, "folder": false, "sources": [KEY, …],
 *      "files": [{"name", "url", "id", "sha256", "size"}, …]}
 *
 * Sources are added when all files are there. URLs in it have neither passwords nor queries. */

/* NULL: there is none. To be released with json_decref. */
json_t *app_pulled_read(const char *models, const char *name);
bool app_pulled_write(const char *models, const char *name, const json_t *record);

/* A record without files. */
json_t *app_pulled_new(bool is_folder);

/* Notes that a file is there; a source of the whole model. */
void app_pulled_add_file(json_t *record, const struct app_remote_file *file, const char *key);
void app_pulled_add_source(json_t *record, const char *source);

/* What the record says of a file; NULL: nothing. */
const json_t *app_pulled_file(const json_t *record, const char *key);

/* Whether the record has a file of that name. */
bool app_pulled_name(const json_t *record, const char *name);

/* Name of the model that has the source and all of whose files are there with their sizes; to be
 * freed; NULL: none. */
char *app_pulled_find(const char *models, const char *source);

#endif

/* Models named by a URL or by a repository: "https://…", "hf:USER/REPO:TYPE". They are downloaded
 * when they are first used, and used from the models folder from then on. Without libcurl each of
 * these says so. */
#ifndef AK_APPS_COMMON_REMOTE_H
#define AK_APPS_COMMON_REMOTE_H

#include <stdbool.h>

#include "apps/common/options.h"

/* Whether a value of -m names a model on the network. */
bool app_is_remote(const char *name);

/* Path of the model in the models folder, where it is downloaded to unless it is there; free *path.
 * Returns APP_EXIT_OK, or another code after a message unless it is APP_EXIT_INTERRUPTED. */
int app_remote_path(const struct app_options *o, const char *name, char **path);

/* A file that has the headers of a GGUF model and holes in place of its tensors. */
struct app_remote_header {
    char *path;   /* of the first part; NULL: the model is in the models folder */
    char *folder; /* temporary, with all parts */
    char *shown;  /* the model's name for people */
};

/* Reads the headers alone. Returns as app_remote_path; call app_remote_header_free in any case,
 * which removes the files: an opened one stays readable. */
int app_remote_header(const struct app_options *o, const char *name,
                      struct app_remote_header *header);
void app_remote_header_free(struct app_remote_header *header);

/* Version of libcurl; NULL: this build has none. */
const char *app_remote_version(void);

#endif

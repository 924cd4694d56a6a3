/* Models named by a URL or by a repository: "https://…", "hf:USER/REPO:TYPE". They are downloaded
 * when they are first used, and used from the models folder from then on. Without libcurl each of
 * these says so. */
#ifndef AK_APPS_COMMON_REMOTE_H
#define AK_APPS_COMMON_REMOTE_H

#include <stdbool.h>

#include "apps/common/options.h"

/* Whether a value of -m names a model on the network. */
bool cli_is_remote(const char *name);

/* Path of the model in the models folder, where it is downloaded to unless it is there; free *path.
 * Returns CLI_EXIT_OK, or another code after a message unless it is CLI_EXIT_INTERRUPTED. */
int cli_remote_path(const struct cli_options *o, const char *name, char **path);

/* A file that has the headers of a GGUF model and holes in place of its tensors. */
struct cli_remote_header {
    char *path;   /* of the first part; NULL: the model is in the models folder */
    char *folder; /* temporary, with all parts */
    char *shown;  /* the model's name for people */
};

/* Reads the headers alone. Returns as cli_remote_path; call cli_remote_header_free in any case,
 * which removes the files: an opened one stays readable. */
int cli_remote_header(const struct cli_options *o, const char *name,
                      struct cli_remote_header *header);
void cli_remote_header_free(struct cli_remote_header *header);

/* Version of libcurl; NULL: this build has none. */
const char *cli_remote_version(void);

#endif

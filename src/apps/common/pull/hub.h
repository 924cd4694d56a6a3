/* Repositories of models with Hugging Face's API: their names, their files, and which of these are
 * a model. Also the token. */
#ifndef AK_APPS_COMMON_PULL_HUB_H
#define AK_APPS_COMMON_PULL_HUB_H

#include "apps/common/pull/http.h"
#include "apps/common/pull/transfer.h"

/* USER/REPO[@REVISION][:FILE or TYPE]. */
struct app_repo {
    char *name;     /* "user/repo" */
    char *revision; /* "main" */
    char *what;     /* a file or a type; NULL: not given */
};

/* Reads a name; APP_EXIT_OK, or another code after a message. Free *repo in any case. */
int app_repo_parse(const char *text, struct app_repo *repo);
void app_repo_free(struct app_repo *repo);

/* Whether `name` is "user/repo" of letters, digits and ._-; neither begins with a dot. */
bool app_is_repo_name(const char *name);

/* A file of a repository. */
struct app_repo_file {
    char *path;
    int64_t size;
    char id[128];    /* git's hash, or the SHA-256 of a large file */
    char sha256[65]; /* "": not known */
};
struct app_repo_files {
    struct app_repo_file *list;
    size_t n;
};

/* Lists all files. Returns APP_EXIT_OK, or another code after a message. Free *files in any case.
 */
int app_repo_list(struct app_http *http, const struct app_repo *repo, struct app_repo_files *files);
void app_repo_files_free(struct app_repo_files *files);

/* Selects the files of one model and moves them to the front: a GGUF file, all parts of a split one
 * with the first part first, or the files of a SafeTensors folder. `*n` of them; `*is_folder`.
 * Returns APP_EXIT_OK, or APP_EXIT_MODEL after a message that says what there is. */
int app_repo_select(const struct app_repo *repo, struct app_repo_files *files, size_t *n,
                    bool *is_folder);

/* URL of a file of the repository, to be freed; NULL: out of memory. */
char *app_repo_url(const struct app_http *http, const struct app_repo *repo, const char *path);

/* Number of a part in a name that ends in -00001-of-00003 and an extension, and in *count how many
 * there are; 0: it is no part. */
unsigned app_split_number(const char *name, unsigned *count);

/* Part `number` of the split file `name`, to be freed; NULL: out of memory. */
char *app_split_name(const char *name, unsigned number);

/* Token from HF_TOKEN, else from the file that huggingface_hub keeps; NULL: there is none. Returns
 * APP_EXIT_OK, or another code after a message. */
int app_hub_read_token(char **token);

#endif

/* Loads the models that the flags select, with their LoRA adapters: a model with its session, and a
 * draft model. Also resolves names of models and lists the models folder. */
#ifndef AK_APPS_COMMON_LOAD_H
#define AK_APPS_COMMON_LOAD_H

#include "akunu/akunu.h"
#include "apps/common/message.h"
#include "apps/common/options.h"

struct app_model_session {
    char *path;
    struct akunu_model *model;
    struct akunu_model_info info;
    const struct akunu_tokenizer *tokenizer; /* NULL: the model has none */
    struct akunu_session *session;
    akunu_sequence sequence;
    /* of the next session; 0: one */
    uint32_t max_sequences, max_windows;
    double load_seconds;          /* seconds of loading the model and the session */
    struct app_progress progress; /* of the load */
    bool verbose;
};

/* Loads the model of -m with progress on a terminal; Ctrl-C cancels. Returns an exit code, after a
 * message unless it is APP_EXIT_OK or APP_EXIT_INTERRUPTED. Call app_unload(out) in any case. *out
 * must not move: the library's callbacks point to it. */
int app_load_model(const struct app_options *options, struct app_model_session *out);

/* Opens a session with one sequence. `context`: its size unless -c gives one; 0: the library's
 * choice. */
int app_open_session(const struct app_options *options, struct app_model_session *loaded,
                     uint32_t context);

/* APP_EXIT_OK, or APP_EXIT_MODEL after a message that `command` needs a vocabulary. */
int app_need_tokenizer(const struct app_model_session *loaded, const char *command);

/* Frees the session, so that another can be opened. */
void app_close_session(struct app_model_session *loaded);
void app_unload(struct app_model_session *loaded);

/* Loads the vocabulary of -m alone; free *out if APP_EXIT_OK is returned. */
int app_load_tokenizer(const struct app_options *options, struct akunu_tokenizer **out);

/* ---- Adapters: adapters.c ----------------------------------------------- */
enum { APP_MAX_ADAPTERS = 64 };
struct app_adapters {
    struct akunu_adapter list[APP_MAX_ADAPTERS];
    size_t n;
};

/* Reads the values of --lora. Returns APP_EXIT_OK, and *out is to be freed; or another code after a
 * message. */
int app_adapters_read(const struct app_texts *texts, struct app_adapters *out);
void app_adapters_free(struct app_adapters *adapters);

/* ---- Model paths: model_path.c ------------------------------------------ */
/* What follows the last "/" of a path. */
const char *app_base_name(const char *path);
/* FOLDER/NAME + SUFFIX, to be freed; NULL: out of memory. */
char *app_join_path(const char *folder, const char *name, const char *suffix);
/* Resolves the name given to -m. */

/* Whether `name` is a file or folder, is spelled like one, or names a model in the models
 * folder. */
bool app_is_model(const char *name);

/* Path of the model that `name` means; NULL: none was given. A name with a folder in it, or of an
 * existing file, is used as it is; else it is looked up in the models folder, with and without
 * ".gguf", and then as a part of a name that only one model there has. Without a name it is the
 * model that quickstart downloads, else the only one in that folder. A URL or "hf:USER/REPO" is
 * downloaded unless it is there, see remote.h. On success free *path.
 * Otherwise returns an exit code after a message: APP_EXIT_MODEL if the name is not found,
 * APP_EXIT_USAGE if there is no obvious choice. */
int app_model_path(const struct app_options *options, const char *name, char **path);

/* The models folder, to be freed; NULL if out of memory. */
char *app_models_folder(void);

/* Calls `each` with the name of every model in the models folder, in the order of their names.
 * Returns APP_EXIT_OK, or APP_EXIT_MEMORY after a message. A missing folder counts as empty. */
int app_visit_models(void (*each)(const char *name, void *user), void *user);

/* ---- Draft model -------------------------------------------------------- */
/* Draft model for speculative decoding. */

/* Loads the draft model of -md into *draft, with a session of the same context as `session`, and
 * sets the draft members of `generation`, which has the flags' speculation members. Returns an exit
 * code, after a message unless it is APP_EXIT_OK. Call app_unload(draft) in any case, after the
 * last use of `generation`. *draft must not move. */
int app_read_speculation(const struct app_options *options, const struct akunu_session *session,
                         struct app_model_session *draft,
                         struct akunu_generation_params *generation);

/* ---- Voice activity detection: vad_path.c ------------------------------- */
/* Loads Silero VAD from --vad-model, a path or a file of the models folder; without the flag those
 * weights that come with akunu, else the newest beside the model, else of the models folder.
 * Returns APP_EXIT_OK, or another code after a message; with is_required false, *out is NULL if
 * there are none. */
int app_load_vad(const struct app_options *o, const char *model_path, bool is_required,
                 struct akunu_vad **out);

#endif

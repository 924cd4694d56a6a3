/* Loads the model and opens the session that the flags ask for, and the draft model. */
#include "apps/common/load.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "apps/common/message.h"

static bool on_load_progress(enum akunu_load_stage stage, double fraction, void *user)
{
    struct app_model_session *loaded = user;
    if (stage == AKUNU_STAGE_WEIGHTS)
        app_progress_show(&loaded->progress, "loading", fraction);
    return !app_is_interrupted();
}

/* `advice` follows a notice about the cache. */
static void show_line(enum akunu_log_level level, const char *line, const char *advice,
                      struct app_model_session *loaded)
{
    app_progress_clear(&loaded->progress);
    if (level == AKUNU_LOG_NOTICE)
        app_aside("%s (%s; 'akunu-cli cache' lists and removes them)", line, advice);
    else if (level == AKUNU_LOG_WARN)
        app_warn("%s", line);
    else if (loaded->verbose)
        app_aside("%s", line);
}

static void on_load_log(enum akunu_log_level level, const char *line, void *user)
{
    show_line(level, line, "--no-cache keeps none, --cache-limit says how much", user);
}

static void on_session_log(enum akunu_log_level level, const char *line, void *user)
{
    show_line(level, line, "--no-prompt-cache keeps none, --prompt-cache-limit says how much",
              user);
}

int app_load_model(const struct app_options *o, struct app_model_session *out)
{
    *out = (struct app_model_session){ .sequence = -1, .verbose = o->output.verbose };
    int code = app_model_path(o, o->model.name, &out->path);
    if (code != APP_EXIT_OK)
        return code;

    out->progress = app_progress_begin();
    struct akunu_load_params params = o->load, defaults;
    akunu_load_params_default(&defaults, sizeof defaults);
    if (!params.backend || strcmp(params.backend, "cpu") == 0)
        params.n_gpu_layers = defaults.n_gpu_layers; /* there is no device to put them on */
    params.n_threads = o->session.n_threads;
    params.override_kv = o->model.override_kv.values;
    params.ignore_keys = o->model.ignore_keys.values;
    if (o->model.rope_scale > 0.0f)
        params.rope.freq_scale = 1.0f / o->model.rope_scale;
    if (o->model.yarn_ext_factor >= 0.0f)
        params.rope.yarn_ext_factor =
            o->model.yarn_ext_factor > 0.0f ? o->model.yarn_ext_factor : -1.0f;
    params.progress = on_load_progress;
    params.log = on_load_log;
    params.user = out;
    params.cache_limit = o->cache.limit;
    struct app_adapters adapters;
    code = app_adapters_read(&o->model.adapters, &adapters);
    if (code != APP_EXIT_OK)
        return code;
    params.adapters = adapters.list;
    params.n_adapters = adapters.n;

    out->model = akunu_model_load(out->path, &params);
    app_adapters_free(&adapters);
    app_progress_end(&out->progress);
    if (!out->model)
        return app_fail_library();
    out->load_seconds = app_seconds() - out->progress.started;
    if (akunu_model_get_info(out->model, &out->info, sizeof out->info) != AKUNU_OK)
        return app_fail_library();
    out->tokenizer = akunu_model_tokenizer(out->model);
    if (o->model.lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        app_warn("--mlock: memory is not locked: %s (ulimit -l)", strerror(errno));
    if (out->info.encoder && !(o->command & (APP_EMBED | APP_SERVER))) {
        app_fail("%s: the architecture \"%s\" is an encoder: it makes embeddings, which is what "
                 "'akunu-cli embed' is for",
                 out->path, out->info.architecture);
        return APP_EXIT_MODEL;
    }
    if (out->info.n_mels > 0 && !(o->command & (APP_LOGITS | APP_SERVER | APP_TRANSCRIBE))) {
        app_fail("%s: the architecture \"%s\" writes down speech, which is what 'akunu-cli "
                 "transcribe' is for",
                 out->path, out->info.architecture);
        return APP_EXIT_MODEL;
    }
    return APP_EXIT_OK;
}

/* The library pins its own threads; the calling thread is pinned here. That has to happen after
 * they started, because new threads inherit the affinity. */
static void pin_to_first(const char *cpus)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(strtoul(cpus, NULL, 10), &set); /* the library checked the list */
    (void)sched_setaffinity(0, sizeof set, &set);
}

int app_open_session(const struct app_options *o, struct app_model_session *loaded,
                     uint32_t context)
{
    double started = app_seconds();
    struct akunu_session_params params = o->session;
    if (params.context == 0)
        params.context = context;
    params.max_sequences = loaded->max_sequences;
    params.max_windows = loaded->max_windows;
    params.log = on_session_log;
    params.user = loaded;

    loaded->session = akunu_session_new(loaded->model, &params);
    if (!loaded->session)
        return app_fail_library();
    if (o->session.cpus)
        pin_to_first(o->session.cpus);
    loaded->sequence = akunu_sequence_new(loaded->session);
    if (loaded->sequence < 0)
        return app_fail_library();
    loaded->load_seconds += app_seconds() - started;
    return APP_EXIT_OK;
}

int app_need_tokenizer(const struct app_model_session *loaded, const char *command)
{
    if (loaded->tokenizer)
        return APP_EXIT_OK;
    /* the library knows which file would have one */
    akunu_tokenizer_free(akunu_tokenizer_load(loaded->path));
    app_fail("%s: '%s' needs a vocabulary, and %s", loaded->path, command, akunu_last_error());
    return APP_EXIT_MODEL;
}

void app_close_session(struct app_model_session *loaded)
{
    if (loaded->sequence >= 0)
        akunu_sequence_free(loaded->session, loaded->sequence);
    akunu_session_free(loaded->session);
    loaded->sequence = -1;
    loaded->session = NULL;
}

void app_unload(struct app_model_session *loaded)
{
    app_close_session(loaded);
    akunu_model_free(loaded->model);
    free(loaded->path);
    *loaded = (struct app_model_session){ .sequence = -1 };
}

int app_load_tokenizer(const struct app_options *o, struct akunu_tokenizer **out)
{
    char *path;
    *out = NULL;
    int code = app_model_path(o, o->model.name, &path);
    if (code != APP_EXIT_OK)
        return code;
    *out = akunu_tokenizer_load_with(path, o->model.override_kv.values);
    free(path);
    return *out ? APP_EXIT_OK : app_fail_library();
}

/* ---- Draft model -------------------------------------------------------- */
int app_read_speculation(const struct app_options *o, const struct akunu_session *session,
                         struct app_model_session *draft,
                         struct akunu_generation_params *generation)
{
    *draft = (struct app_model_session){ .sequence = -1 };
    if (generation->speculation == AKUNU_SPECULATION_DRAFT && !o->model.draft)
        return app_fail_usage("--spec-type draft-simple needs a draft model: -md FILE");
    if (!o->model.draft)
        return APP_EXIT_OK;
    if (generation->speculation == AKUNU_SPECULATION_NONE ||
        generation->speculation == AKUNU_SPECULATION_NGRAM)
        return app_fail_usage(
            "--model-draft %s: --spec-type says that no draft model is to be used", o->model.draft);
    struct app_options of_draft = *o;
    struct akunu_load_params defaults;
    akunu_load_params_default(&defaults, sizeof defaults);
    of_draft.model.name = o->model.draft;
    of_draft.model.override_kv = of_draft.model.ignore_keys =
        (struct app_texts){ 0 }; /* these are about the other model */
    of_draft.model.adapters = (struct app_texts){ 0 };
    of_draft.load.quantize = of_draft.load.importance = NULL;
    of_draft.load.rope = defaults.rope;
    of_draft.model.rope_scale = 0.0f;
    of_draft.model.yarn_ext_factor = -1.0f;
    of_draft.session.context = akunu_session_context(session);
    of_draft.session.kv_keep = 0; /* drafts are rolled back to anywhere */
    of_draft.session.kv_choice = AKUNU_KV_IMPORTANT;
    int code = app_load_model(&of_draft, draft);
    if (code == APP_EXIT_OK)
        code = app_open_session(&of_draft, draft, 0);
    generation->draft = draft->session;
    generation->draft_sequence = draft->sequence;
    return code;
}

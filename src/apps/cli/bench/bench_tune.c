/* bench --tune: measures the best settings for this machine and writes a chip profile. A setting
 * that is not clearly better than the default is left out. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/cli/bench/bench.h"
#include "apps/common/message.h"

enum { PATH_BYTES = 4096, DEFAULT_CHUNK = 512, GENERATED = 24, PROMPT = 256, CANDIDATES_MAX = 4 };

/* minimum speedup over the default */
static const double worth = 1.03;

struct tuning {
    const struct app_options *options;
    struct app_model_session *loaded;
    struct app_progress progress;
    akunu_token *ids;
    int n_rounds; /* runs per candidate, interleaved; the fastest counts */
};

static bool show_progress(double fraction, void *user)
{
    struct app_progress *progress = user;
    app_progress_show(progress, "tuning", fraction);
    return !app_is_interrupted();
}

static bool tune_is_cancelled(void *user)
{
    (void)user;
    return app_is_interrupted();
}

/* Path of the user's own profile; creates its folders. */
static int make_profile_path(char path[PATH_BYTES])
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char folder[PATH_BYTES - 32];
    int n = config && *config ? snprintf(folder, sizeof folder, "%s", config) :
                                snprintf(folder, sizeof folder, "%s/.config", home ? home : "");
    if ((!home && !(config && *config)) || n < 0 || (size_t)n + 8 >= sizeof folder)
        return app_fail_usage(
            "where to? Neither XDG_CONFIG_HOME nor HOME is set: name a file with --profile-out");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return app_fail("%s: cannot be made: %s", folder, strerror(errno));
    strcat(folder, "/akunu");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return app_fail("%s: cannot be made: %s", folder, strerror(errno));
    snprintf(path, PATH_BYTES, "%s/profile.yaml", folder);
    return APP_EXIT_OK;
}

/* ---- With a model ------------------------------------------------------- */
/* Tokens per second of a prompt of n_prompt tokens and of `generated` tokens after it. */
static int try_session(const struct tuning *t, unsigned threads, uint32_t chunk, int64_t n_prompt,
                       int64_t generated, double *prompt, double *generate)
{
    struct app_options o = *t->options;
    size_t last;
    o.session.n_threads = threads;
    o.session.batch = chunk;
    o.session.context = (uint32_t)(n_prompt + generated + 8);
    t->loaded->max_sequences = 1;
    int code = app_open_session(&o, t->loaded, 0);
    double started = app_seconds();
    if (code == APP_EXIT_OK &&
        akunu_session_prefill(t->loaded->session, t->loaded->sequence,
                              &(struct akunu_ids){ t->ids, (size_t)n_prompt }, tune_is_cancelled,
                              NULL, &last) != AKUNU_OK)
        code = app_fail_library();
    *prompt = fmax(*prompt, (double)n_prompt / fmax(app_seconds() - started, 1e-9));
    started = app_seconds();
    for (int64_t i = 0; code == APP_EXIT_OK && i < generated; i++) {
        struct akunu_batch_token token = { .token = t->ids[i],
                                           .sequence = t->loaded->sequence,
                                           .logits = true };
        if (akunu_session_decode(t->loaded->session, &token, 1) != AKUNU_OK)
            code = app_fail_library();
    }
    if (generated > 0)
        *generate = fmax(*generate, (double)generated / fmax(app_seconds() - started, 1e-9));
    if (code == APP_EXIT_OK && app_is_interrupted())
        code = APP_EXIT_INTERRUPTED;
    app_close_session(t->loaded);
    return code;
}

/* The candidate with the best score; 0 if the first one, the default, is about as good. */
static uint32_t choose_best(const uint32_t *candidates, const double *scores, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = scores[i] > scores[best] ? i : best;
    return best > 0 && scores[best] > scores[0] * worth ? candidates[best] : 0;
}

static int tune_threads(struct tuning *t, struct akunu_profile *profile, int64_t n_prompt)
{
    struct akunu_chip chip;
    uint32_t candidates[CANDIDATES_MAX], n = 0;
    double scores[CANDIDATES_MAX] = { 0 };
    if (akunu_get_chip(&chip, sizeof chip) != AKUNU_OK)
        return app_fail_library();
    const uint32_t wanted[CANDIDATES_MAX] = { chip.cores, chip.hardware_threads, chip.cores - 1,
                                              chip.cores / 2 };
    for (size_t i = 0; i < CANDIDATES_MAX; i++) {
        bool is_new = wanted[i] > 0;
        for (uint32_t j = 0; j < n; j++)
            is_new = is_new && candidates[j] != wanted[i];
        if (is_new)
            candidates[n++] = wanted[i];
    }
    for (int round = 0; round < t->n_rounds; round++) /* the first round warms up */
        for (uint32_t i = 0; i < n; i++) {
            double prompt = 0.0, generate = 0.0;
            app_progress_show(&t->progress, "threads",
                              (double)(round * (int)n + (int)i) / (double)(t->n_rounds * (int)n));
            int code =
                try_session(t, candidates[i], DEFAULT_CHUNK, n_prompt < PROMPT ? n_prompt : PROMPT,
                            GENERATED, &prompt, &generate);
            if (code != APP_EXIT_OK)
                return code;
            scores[i] = fmax(scores[i], sqrt(prompt * generate));
        }
    profile->threads = choose_best(candidates, scores, n);
    return APP_EXIT_OK;
}

static int tune_chunk(struct tuning *t, struct akunu_profile *profile, int64_t n_prompt)
{
    static const uint32_t candidates[] = { DEFAULT_CHUNK, 128, 256, 1024 };
    enum { N = sizeof candidates / sizeof *candidates };
    double scores[N] = { 0 };
    for (int round = 0; round < t->n_rounds; round++)
        for (int i = 0; i < N; i++) {
            double unused = 0.0;
            app_progress_show(&t->progress, "prefill chunk",
                              (double)(round * N + i) / (double)(t->n_rounds * N));
            int code =
                try_session(t, profile->threads, candidates[i], n_prompt, 0, &scores[i], &unused);
            if (code != APP_EXIT_OK)
                return code;
        }
    profile->prefill_chunk = choose_best(candidates, scores, N);
    return APP_EXIT_OK;
}

/* Measures with a model. The kernels' part of the profile, at `path`, is in effect meanwhile. */
static int tune_model(const struct app_options *o, const char *path, struct akunu_profile *profile)
{
    enum { LONG_PROMPT = 1024 };
    struct app_options one = *o;
    struct app_model_session loaded = { .sequence = -1 };
    struct tuning t = { .options = &one,
                        .loaded = &loaded,
                        .n_rounds = (int)(o->bench.repetitions + 1) / 2 };
    one.model.name = o->model.names.values[0];
    one.load.profile = path;
    one.session.n_threads = 0;
    int code = app_load_model(&one, &loaded);
    int64_t n_prompt =
        loaded.info.context < LONG_PROMPT + GENERATED ? loaded.info.context / 2 : LONG_PROMPT;
    t.ids =
        calloc(LONG_PROMPT, sizeof *t.ids); /* all tokens are 0: speed does not depend on them */
    if (code == APP_EXIT_OK && !t.ids)
        code = app_fail_memory();
    t.progress = app_progress_begin();
    if (code == APP_EXIT_OK && n_prompt > 0)
        code = tune_threads(&t, profile, n_prompt);
    if (code == APP_EXIT_OK && n_prompt > 0)
        code = tune_chunk(&t, profile, n_prompt);
    app_progress_end(&t.progress);
    free(t.ids);
    app_unload(&loaded);
    return code;
}

/* ---- Command ------------------------------------------------------------ */
static int show_file(const char *path)
{
    struct app_output out = app_output_stdout();
    char text[4096];
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    app_output_bytes(&out, text, n);
    return app_output_end(&out, APP_EXIT_OK);
}

/* Checks before measuring that a file can be created beside `path`. APP_EXIT_OK, or a code after a
 * message. The file at `path` is not touched. */
static int try_to_write(const char *path)
{
    const struct akunu_profile empty = { .size = sizeof empty };
    char beside[PATH_BYTES + 8];
    int n = snprintf(beside, sizeof beside, "%s.try", path);
    if (n < 0 || (size_t)n >= sizeof beside)
        return app_fail_usage("--profile-out: the path is too long");
    if (akunu_profile_write(&empty, beside) != AKUNU_OK)
        return app_fail_library();
    remove(beside);
    return APP_EXIT_OK;
}

int cli_bench_tune(const struct app_options *o)
{
    struct akunu_chip chip;
    struct akunu_tune_params params;
    struct akunu_profile profile = { .size = sizeof profile };
    struct app_progress progress = app_progress_begin();
    char own[PATH_BYTES];
    const char *path = o->bench.profile_out ? o->bench.profile_out : own;
    int code = o->bench.profile_out ? APP_EXIT_OK : make_profile_path(own);
    if (code == APP_EXIT_OK && o->model.names.n > 1)
        code = app_fail_usage("--tune takes one model");
    if (code == APP_EXIT_OK)
        code = try_to_write(path);
    if (code != APP_EXIT_OK)
        return code;
    if (akunu_get_chip(&chip, sizeof chip) != AKUNU_OK)
        return app_fail_library();
    akunu_tune_params_default(&params, sizeof params);
    params.cpu = o->load.cpu;
    params.n_threads =
        o->bench.thread_counts.n ? (unsigned)o->bench.thread_counts.values[0] : chip.cores;
    params.n_runs = (unsigned)o->bench.repetitions;
    params.progress = show_progress;
    params.user = &progress;
    enum akunu_status status = akunu_profile_tune(&params, &profile, sizeof profile);
    app_progress_end(&progress);
    if (status == AKUNU_OK)
        status = akunu_profile_write(&profile, path);
    if (status != AKUNU_OK)
        return app_fail_library();
    if (o->model.names.n == 1) {
        code = tune_model(o, path, &profile);
        if (code == APP_EXIT_OK && akunu_profile_write(&profile, path) != AKUNU_OK)
            code = app_fail_library();
    }
    if (code != APP_EXIT_OK)
        return code;
    app_aside("written to %s", path);
    return show_file(path);
}

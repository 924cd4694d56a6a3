/* convert: any model as a GGUF file. */
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/load.h"
#include "cli/message.h"
#include "cli/options.h"

struct work {
    struct cli_progress progress;
    bool verbose;
};

static bool on_progress(double fraction, void *user)
{
    struct work *work = user;
    cli_progress_show(&work->progress, "converting", fraction);
    return !cli_is_interrupted();
}

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    struct work *work = user;
    cli_progress_clear(&work->progress);
    if (level >= AKUNU_LOG_WARN)
        cli_warn("%s", line);
    else if (work->verbose)
        cli_aside("%s", line);
}

static int convert(const struct cli_options *o, const char *path)
{
    struct work work = { .progress = cli_progress_begin(), .verbose = o->verbose };
    struct akunu_convert_params params = o->convert;
    params.type = cli_out_type_name(o->out_type);
    params.override_kv = o->override_kv.values;
    params.progress = on_progress;
    params.log = on_log;
    params.user = &work;
    enum akunu_status status = akunu_file_convert(path, o->out, &params);
    cli_progress_end(&work.progress);
    if (status != AKUNU_OK)
        return cli_fail_library();
    struct stat st;
    if (stat(o->out, &st) == 0)
        cli_aside("%s: %.1f MB in %.1f s", o->out, (double)st.st_size / 1e6,
                  cli_seconds() - work.progress.started);
    return CLI_EXIT_OK;
}

int cli_convert(const struct cli_options *o)
{
    char *path;
    if (!o->out)
        return cli_fail_usage("no file to write is given: --outfile FILE");
    int code = cli_model_path(o->model, &path);
    if (code != CLI_EXIT_OK)
        return code;
    code = convert(o, path);
    free(path);
    return code;
}

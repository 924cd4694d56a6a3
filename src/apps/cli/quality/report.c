/* report: measures several models against a base, and writes a page about them. */
#include "apps/cli/quality/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/cli/quality/new_file.h"

/* The base's logits while the models are measured; "": there are none. */
static char base_path[PATH_MAX];

static void remove_base(void)
{
    unlink(base_path);
}

/* Measures the base of --base into a file beside the page, which is removed at the end. */
static int measure_base(const struct app_options *o)
{
    struct app_options of_base = *o;
    struct cli_text_score score;
    struct app_text text;
    int code = app_read_text(o, "the text", &text);
    if (code != APP_EXIT_OK)
        return code;
    int fd = -1;
    if ((size_t)snprintf(base_path, sizeof base_path, "%s.XXXXXX", o->output.path) <
        sizeof base_path)
        fd = mkstemp(base_path);
    if (fd < 0) {
        code = app_fail("cannot write beside -o %s: %s", o->output.path, strerror(errno));
        base_path[0] = '\0';
    } else {
        close(fd);
        app_interrupt_at_exit(remove_base);
        app_aside("%s", o->quality.base);
        of_base.model.name = o->quality.base;
        of_base.quality.save_logits = base_path;
        code = cli_score_text(&of_base, &text, &score);
    }
    free(text.bytes);
    return code;
}

static const char *base_name(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    return path + n;
}

static int measure_models(const struct app_options *o, struct cli_report_row *rows)
{
    static const struct app_text no_text = { 0 };
    int code = APP_EXIT_OK;
    for (size_t i = 0; code == APP_EXIT_OK && i < o->model.names.n; i++) {
        struct app_options of_model = *o;
        of_model.model.name = o->model.names.values[i];
        of_model.quality.kl_base = o->quality.kl_base ? o->quality.kl_base : base_path;
        app_aside("%s", of_model.model.name);
        rows[i].name = base_name(of_model.model.name);
        code = cli_score_text(&of_model, &no_text, &rows[i].score);
    }
    return code;
}

static int check_flags(const struct app_options *o)
{
    if (!o->output.path)
        return app_fail_usage("no file to write is given: -o report.html");
    if (o->model.names.n == 0)
        return app_fail_usage("no models are given: akunu-cli report A.gguf B.gguf …");
    if (!o->quality.base == !o->quality.kl_base)
        return app_fail_usage("expected one of --base MODEL, with the text of -f, and --kl-base "
                              "FILE, which has it");
    if (o->quality.kl_base && o->prompt.file)
        return app_fail_usage("-f has no effect with --kl-base, whose file has the text's tokens");
    return APP_EXIT_OK;
}

int cli_report_models(const struct app_options *o)
{
    struct cli_new_file page = { 0 };
    struct cli_report_row *rows = NULL;
    int code = check_flags(o);
    if (code != APP_EXIT_OK)
        return code;
    code = cli_new_file_begin("-o", o->output.path, &page);
    if (code == APP_EXIT_OK && o->quality.base)
        code = measure_base(o);
    if (code == APP_EXIT_OK) {
        rows = calloc(o->model.names.n, sizeof *rows);
        code = rows ? measure_models(o, rows) : app_fail_memory();
    }
    if (code == APP_EXIT_OK)
        cli_report_page(page.file,
                        base_name(o->quality.base ? o->quality.base : o->quality.kl_base), rows,
                        o->model.names.n);
    if (base_path[0])
        remove_base();
    app_interrupt_at_exit(NULL);
    free(rows);
    return cli_new_file_end(&page, code);
}

/* inspect: prints the contents of a model file. Only headers are read, unless hashes are
 * requested. */
#include "apps/cli/files/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/options.h"
#include "apps/common/remote.h"

static struct cli_type_total *total_of(struct cli_type_total *totals, size_t *n, const char *type)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(totals[i].type, type) == 0)
            return &totals[i];
    if (*n == CLI_MAX_TYPES)
        return NULL;
    totals[*n] = (struct cli_type_total){ .type = type };
    return &totals[(*n)++];
}

size_t cli_type_totals(const struct akunu_file *file, size_t n_tensors,
                       struct cli_type_total *totals)
{
    size_t n = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        struct akunu_tensor_info info;
        if (akunu_file_get_tensor(file, i, &info, sizeof info) != AKUNU_OK)
            continue;
        struct cli_type_total *total = total_of(totals, &n, info.type);
        if (!total)
            continue;
        uint64_t n_values = 1;
        for (unsigned d = 0; d < info.n_dims; d++)
            n_values *= info.shape[d];
        total->n_tensors++;
        total->n_values += n_values;
        total->bytes += info.bytes;
    }
    return n;
}

int cli_tensor_hash(const struct akunu_file *file, size_t i, bool hashes, char *out)
{
    out[0] = '\0';
    if (app_is_interrupted())
        return APP_EXIT_INTERRUPTED;
    return hashes && akunu_file_sha256_f32(file, i, out) != AKUNU_OK ? app_fail_library() :
                                                                       APP_EXIT_OK;
}

int cli_inspect(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct app_remote_header header = { 0 };
    struct akunu_file *file = NULL;
    char *path = NULL;
    int code = APP_EXIT_OK;
    if (o->model.name && app_is_remote(o->model.name) && !o->output.sha256)
        code = app_remote_header(o, o->model.name, &header);
    if (code == APP_EXIT_OK && !header.path)
        code = app_model_path(o, o->model.name, &path);
    if (code == APP_EXIT_OK)
        file = akunu_file_open_with(header.path ? header.path : path, o->model.override_kv.values);
    if (code != APP_EXIT_OK)
        ; /* after a message */
    else if (!file)
        code = app_fail_library();
    else if (o->output.json)
        code = cli_inspect_json(file, o->output.sha256, &out);
    else
        code = cli_inspect_text(file, path ? path : header.shown, o->output.sha256, &out);
    akunu_file_free(file);
    app_remote_header_free(&header);
    free(path);
    return app_output_end(&out, code);
}

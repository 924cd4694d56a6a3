/* Prints a model file's description as JSON. Metadata entries and tensors are printed one by one,
 * so a vocabulary is never held twice. */
#include "apps/cli/files/inspect.h"

#include <string.h>

#include "apps/common/message.h"
#include "apps/common/output.h"

/* A single value; an array's elements are printed one by one. */
static void print_scalar(const struct akunu_meta *m, struct app_output *out)
{
    switch (m->type) {
    case AKUNU_META_BOOL: app_json_print(out, json_boolean(m->boolean)); break;
    case AKUNU_META_INT: app_json_print(out, json_integer(m->integer)); break;
    /* jansson's integers are int64 */
    case AKUNU_META_UINT:
        app_output_format(out, "%llu", (unsigned long long)m->unsigned_integer);
        break;
    case AKUNU_META_FLOAT: app_json_print(out, app_json_real(m->number)); break;
    case AKUNU_META_STRING: app_json_print(out, app_json_text(m->string, (size_t)m->n)); break;
    /* nested array: its elements are not accessible */
    case AKUNU_META_ARRAY: app_output_text(out, "null"); break;
    }
}

static int print_value(const struct akunu_file *file, size_t i, const struct akunu_meta *m,
                       struct app_output *out)
{
    if (m->type != AKUNU_META_ARRAY) {
        print_scalar(m, out);
        return APP_EXIT_OK;
    }
    app_output_text(out, "[");
    for (uint64_t j = 0; j < m->n && out->error == 0; j++) {
        struct akunu_meta element;
        if (akunu_file_get_meta_element(file, i, j, &element, sizeof element) != AKUNU_OK)
            return app_fail_library();
        app_output_text(out, j ? ", " : "");
        print_scalar(&element, out);
    }
    app_output_text(out, "]");
    return APP_EXIT_OK;
}

static int print_metadata(const struct akunu_file *file, size_t n, struct app_output *out)
{
    for (size_t i = 0; i < n && out->error == 0; i++) {
        struct akunu_meta m;
        if (akunu_file_get_meta(file, i, &m, sizeof m) != AKUNU_OK)
            return app_fail_library();
        app_output_text(out, i ? ",\n  " : "\n  ");
        app_json_print(out, app_json_text(m.key, strlen(m.key)));
        app_output_text(out, ": ");
        int code = print_value(file, i, &m, out);
        if (code != APP_EXIT_OK)
            return code;
    }
    return APP_EXIT_OK;
}

static int print_tensors(const struct akunu_file *file, size_t n, bool hashes,
                         struct app_output *out)
{
    for (size_t i = 0; i < n && out->error == 0; i++) {
        struct akunu_tensor_info t;
        char hash[65];
        if (akunu_file_get_tensor(file, i, &t, sizeof t) != AKUNU_OK)
            return app_fail_library();
        int code = cli_tensor_hash(file, i, hashes, hash);
        if (code != APP_EXIT_OK)
            return code;
        json_t *shape = json_array();
        for (unsigned d = 0; d < t.n_dims; d++)
            json_array_append_new(shape, app_json_unsigned(t.shape[d]));
        json_t *row =
            json_pack("{s:o, s:s?, s:s, s:o, s:o, s:o, s:s*}", "name",
                      app_json_text(t.name, strlen(t.name)), "canonical", t.canonical, "type",
                      t.type, "shape", shape, "bytes", app_json_unsigned(t.bytes), "offset",
                      app_json_unsigned(t.offset), "sha256_f32", hashes ? hash : NULL);
        app_output_text(out, i ? ",\n  " : "\n  ");
        app_json_print(out, row);
    }
    return APP_EXIT_OK;
}

static void print_totals(const struct akunu_file *file, size_t n_tensors, struct app_output *out)
{
    struct cli_type_total totals[CLI_MAX_TYPES];
    size_t n = cli_type_totals(file, n_tensors, totals);
    for (size_t i = 0; i < n; i++) {
        app_output_text(out, i ? ",\n  " : "\n  ");
        json_t *row = json_pack("{s:s, s:o, s:o, s:o}", "type", totals[i].type, "tensors",
                                app_json_unsigned(totals[i].n_tensors), "values",
                                app_json_unsigned(totals[i].n_values), "bytes",
                                app_json_unsigned(totals[i].bytes));
        app_json_print(out, row);
    }
}

int cli_inspect_json(const struct akunu_file *file, bool hashes, struct app_output *out)
{
    struct akunu_file_info info;
    if (akunu_file_get_info(file, &info, sizeof info) != AKUNU_OK)
        return app_fail_library();
    app_output_text(out, "{\"format\": ");
    app_json_print(out, app_json_text(info.format, strlen(info.format)));
    app_output_text(out, ",\n \"architecture\": ");
    app_json_print(out, app_json_text(info.architecture, strlen(info.architecture)));
    app_output_format(out, ",\n \"bytes\": %llu,\n \"metadata\": {",
                      (unsigned long long)info.bytes);
    int code = print_metadata(file, info.n_metadata, out);
    if (code != APP_EXIT_OK)
        return code;
    app_output_text(out, "},\n \"tensors\": [");
    code = print_tensors(file, info.n_tensors, hashes, out);
    if (code != APP_EXIT_OK)
        return code;
    app_output_text(out, "],\n \"totals\": [");
    print_totals(file, info.n_tensors, out);
    app_output_text(out, "]}\n");
    return APP_EXIT_OK;
}

/* show: what a model is: sizes, license, the sampling that its authors advise, its chat template.
 */
#include "apps/common/options.h"

#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"
#include "apps/cli/files/facts.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

static const char sampling_prefix[] = "general.sampling.";

/* Metadata that authors give about a model: title and key. */
static const struct {
    const char *title, *key;
} about[] = {
    { "name", "general.name" },
    { "author", "general.author" },
    { "version", "general.version" },
    { "license", "general.license" },
    { "license name", "general.license.name" },
    { "license link", "general.license.link" },
    { "url", "general.url" },
};

static json_t *sampling_of(const struct akunu_file *file)
{
    json_t *values = json_object();
    struct akunu_meta m;
    for (size_t i = 0; values && akunu_file_get_meta(file, i, &m, sizeof m) == AKUNU_OK; i++) {
        if (strncmp(m.key, sampling_prefix, strlen(sampling_prefix)) != 0)
            continue;
        json_t *value = m.type == AKUNU_META_FLOAT  ? app_json_real(m.number) :
                        m.type == AKUNU_META_INT    ? json_integer(m.integer) :
                        m.type == AKUNU_META_UINT   ? app_json_unsigned(m.unsigned_integer) :
                        m.type == AKUNU_META_STRING ? app_json_text(m.string, (size_t)m.n) :
                                                      json_null();
        json_object_set_new(values, m.key + strlen(sampling_prefix), value);
    }
    return values;
}

static int print_file_json(const char *path, const struct akunu_file *file,
                           const struct cli_facts *f, const char *template, size_t n_template,
                           struct app_output *out)
{
    json_t *value = cli_facts_json(f, path);
    json_object_set_new(value, "width", cli_json_known(f->width));
    json_object_set_new(value, "sampling", sampling_of(file));
    json_object_set_new(value, "chat_template",
                        template ? app_json_text(template, n_template) : json_null());
    for (size_t i = 0; value && i < sizeof about / sizeof *about; i++) {
        size_t n;
        const char *text = cli_find_meta(file, about[i].key, &n);
        json_object_set_new(value, about[i].key + strlen("general."),
                            text ? app_json_text(text, n) : json_null());
    }
    if (app_json_print(out, value))
        app_output_text(out, "\n");
    return APP_EXIT_OK;
}

static void print_row(struct app_output *out, const char *title, const char *text, size_t n)
{
    app_output_format(out, "%-14s ", title);
    app_output_escaped(out, text, n);
    app_output_text(out, "\n");
}

static int print_text(const char *path, const struct akunu_file *file, const struct cli_facts *f,
                      const char *template, size_t n_template, struct app_output *out)
{
    print_row(out, "file", path, strlen(path));
    for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
        size_t n;
        const char *text = cli_find_meta(file, about[i].key, &n);
        if (text)
            print_row(out, about[i].title, text, n);
    }
    print_row(out, "architecture", f->info.architecture, strlen(f->info.architecture));
    if (f->n_parameters)
        app_output_format(out, "%-14s %.0f million\n", "parameters", (double)f->n_parameters / 1e6);
    app_output_format(out, "%-14s %s, %s, %.1f MB\n", "weights", f->info.format, f->type,
                      (double)f->info.bytes / 1e6);
    if (f->context)
        app_output_format(out, "%-14s %llu tokens\n", "context", (unsigned long long)f->context);
    if (f->width)
        app_output_format(out, "%-14s %llu\n", "width", (unsigned long long)f->width);
    json_t *sampling = sampling_of(file);
    if (json_object_size(sampling) > 0) {
        char *text = json_dumps(sampling, JSON_REAL_PRECISION(7));
        print_row(out, "sampling", text ? text : "", text ? strlen(text) : 0);
        free(text);
    }
    json_decref(sampling);
    if (!template) {
        app_output_format(out, "%-14s none\n", "chat template");
        return APP_EXIT_OK;
    }
    app_output_text(out, "chat template\n");
    for (size_t i = 0; i < n_template;) {
        const char *end = memchr(template + i, '\n', n_template - i);
        size_t n = end ? (size_t)(end - template) - i : n_template - i;
        app_output_text(out, "    ");
        app_output_escaped(out, template + i, n);
        app_output_text(out, "\n");
        i += n + 1;
    }
    return APP_EXIT_OK;
}

int cli_show(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct akunu_file *file = NULL;
    struct akunu_template *chat = NULL;
    struct cli_facts facts;
    char *path;
    const char *template = NULL;
    size_t n_template = 0;
    int code = app_model_path(o, o->model.name, &path);
    if (code != APP_EXIT_OK)
        return code;
    file = akunu_file_open_with(path, o->model.override_kv.values);
    code = file ? cli_read_facts(file, &facts) : app_fail_library();
    if (code == APP_EXIT_OK)
        chat = akunu_template_load(path, o->model.override_kv.values);
    if (chat && !akunu_template_is_fallback(chat))
        template = akunu_template_text(chat, NULL, false, &n_template);
    if (code == APP_EXIT_OK)
        code = (o->output.json ? print_file_json : print_text)(path, file, &facts, template,
                                                               n_template, &out);
    akunu_template_free(chat);
    akunu_file_free(file);
    free(path);
    return app_output_end(&out, code);
}

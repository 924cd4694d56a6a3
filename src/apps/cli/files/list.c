/* list: the models of the models folder. */
#include "apps/common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"
#include "apps/cli/files/facts.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

struct list {
    const struct app_options *options;
    struct app_output out;
    char *folder;
    struct akunu_cache *cache; /* NULL: it cannot be read */
    json_t *models;
    size_t n;
    int code;
};

/* When a model's packed weights were last mapped, in seconds since 1970; 0: unknown. */
static int64_t last_used(const struct list *l, const char *path)
{
    struct akunu_cache_entry e;
    int64_t used = 0;
    for (size_t i = 0; l->cache && i < akunu_cache_count(l->cache); i++)
        if (akunu_cache_get_entry(l->cache, i, &e, sizeof e) == AKUNU_OK && e.built &&
            strcmp(e.model, path) == 0 && e.used > used)
            used = e.used;
    return used;
}

static void print_unreadable(struct list *l, const char *name)
{
    const char *message = akunu_last_error();
    if (l->options->output.json) {
        json_array_append_new(l->models,
                              json_pack("{s:o, s:o}", "name", app_json_text(name, strlen(name)),
                                        "error", app_json_text(message, strlen(message))));
        return;
    }
    app_output_escaped(&l->out, name, strlen(name));
    app_output_text(&l->out, ": ");
    app_output_escaped(&l->out, message, strlen(message));
    app_output_text(&l->out, "\n");
}

static void print_model(struct list *l, const char *name, const char *path,
                        const struct cli_facts *f)
{
    char used[32], context[24] = "-";
    int64_t when = last_used(l, path);
    if (l->options->output.json) {
        json_t *value = json_pack("{s:o}", "name", app_json_text(name, strlen(name)));
        json_t *facts = cli_facts_json(f, path);
        json_object_update(value, facts);
        json_decref(facts);
        json_object_set_new(value, "used", when ? json_integer(when) : json_null());
        json_array_append_new(l->models, value);
        return;
    }
    if (f->context)
        snprintf(context, sizeof context, "%llu", (unsigned long long)f->context);
    app_format_age(when, used, sizeof used);
    int width = 40 - (int)strlen(name);
    app_output_escaped(&l->out, name, strlen(name));
    app_output_format(&l->out, "%*s %9.1f MB  %-8s %8s  %s\n", width > 0 ? width : 0, "",
                      (double)f->info.bytes / 1e6, f->type, context, used);
}

static void list_one(const char *file_name, void *user)
{
    struct list *l = user;
    char *path = NULL, *name = strdup(file_name);
    struct akunu_file *file = NULL;
    struct cli_facts facts;
    if (l->code != APP_EXIT_OK)
        goto done;
    if (!name) {
        l->code = app_fail_memory();
        goto done;
    }
    if (asprintf(&path, "%s/%s", l->folder, file_name) < 0) {
        path = NULL;
        l->code = app_fail_memory();
        goto done;
    }
    if (app_ends_with(name, ".gguf"))
        name[strlen(name) - strlen(".gguf")] = '\0';
    if (l->n++ == 0 && !l->options->output.json)
        app_output_format(&l->out, "%-40s %12s  %-8s %8s  %s\n", "name", "size", "type", "context",
                          "last used");
    file = akunu_file_open(path);
    if (!file)
        print_unreadable(l, name);
    else if ((l->code = cli_read_facts(file, &facts)) == APP_EXIT_OK)
        print_model(l, name, path, &facts);
done:
    akunu_file_free(file);
    free(path);
    free(name);
}

int cli_list(const struct app_options *o)
{
    struct list l = { .options = o,
                      .out = app_output_stdout(),
                      .folder = app_models_folder(),
                      .cache = akunu_cache_open(o->load.cache_dir),
                      .models = json_array() };
    if (!l.models || !l.folder)
        l.code = app_fail_memory();
    if (l.code == APP_EXIT_OK) {
        int code = app_visit_models(list_one, &l);
        l.code = l.code == APP_EXIT_OK ? code : l.code;
    }
    if (l.code == APP_EXIT_OK && o->output.json) {
        json_t *value = json_pack("{s:o, s:O}", "folder", app_json_text(l.folder, strlen(l.folder)),
                                  "models", l.models);
        if (app_json_print(&l.out, value))
            app_output_text(&l.out, "\n");
    } else if (l.code == APP_EXIT_OK && l.n == 0) {
        app_output_text(&l.out, "no models in ");
        app_output_escaped(&l.out, l.folder, strlen(l.folder));
        app_output_text(&l.out, "\n");
    }
    json_decref(l.models);
    akunu_cache_free(l.cache);
    free(l.folder);
    return app_output_end(&l.out, l.code);
}

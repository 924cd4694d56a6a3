/* cache: lists the packed weights and kept prompts of the cache folder, says what the next start of
 * a model does, and cleans up. */
#include "apps/common/options.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

enum { DAY = 24 * 60 * 60 };

static const double megabyte = 1e6;

/* File name without its folder; but with it where a model is a folder: their files are called
 * alike. */
static const char *shown_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash && (app_ends_with(path, ".json") || app_ends_with(path, ".safetensors")))
        while (slash > path && slash[-1] != '/')
            slash--;
    else if (slash)
        slash++;
    return slash && *slash ? slash : path;
}

/* ---- list --------------------------------------------------------------- */
/* What the next start of a packed file's model does with it. */
struct next {
    bool known;                  /* it is a file of packed weights whose model is known */
    bool gone;                   /* that model is not there any more */
    bool used;                   /* the file is mapped */
    struct akunu_load_plan plan; /* unless `gone`; packing 0: the model cannot be loaded */
};

static struct next plan_next(const struct app_options *o, const struct akunu_cache_entry *e)
{
    struct next next = { .known = e->n_tokens == 0 && *e->model };
    struct akunu_load_params params = o->load;
    params.backend = e->backend;
    next.gone = next.known && access(e->model, F_OK) != 0;
    if (!next.known || next.gone ||
        akunu_get_load_plan(e->model, &params, NULL, &next.plan, sizeof next.plan) != AKUNU_OK)
        return next;
    next.used =
        next.plan.packing == AKUNU_PACKING_CACHED && strcmp(next.plan.cache_file, e->file) == 0;
    return next;
}

/* Empty if nothing is to be said. */
static const char *describe_next(const struct next *next)
{
    if (!next->known)
        return "";
    if (next->gone)
        return "its model file is gone";
    if (next->used)
        return "the next start maps it";
    if (next->plan.packing == AKUNU_PACKING_CACHED)
        return "the next start maps another file";
    return next->plan.packing ? next->plan.reason : "its model cannot be loaded now";
}

static json_t *json_of(const struct akunu_cache_entry *e, const struct next *next)
{
    const char *text = describe_next(next);
    return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:o}", "file", e->file, "model",
                     app_json_text(e->model, strlen(e->model)), "backend", e->backend, "state",
                     akunu_cache_state_name(e->state), "n_tokens", app_json_unsigned(e->n_tokens),
                     "bytes", app_json_unsigned(e->bytes), "built", (json_int_t)e->built, "used",
                     (json_int_t)e->used, "maps",
                     next->known ? json_boolean(next->used) : json_null(), "reason",
                     next->used || !*text ? json_null() : json_string(text));
}

static void print_entry(const struct akunu_cache_entry *e, const struct next *next,
                        struct app_output *out)
{
    char built[32], used[32];
    const char *model = *e->model ? shown_name(e->model) : "-", *text = describe_next(next);
    app_format_age(e->built, built, sizeof built);
    app_format_age(e->built ? e->used : 0, used, sizeof used);
    app_output_format(out, "%-10s %10.1f MB  %-12s %-12s  ", akunu_cache_state_name(e->state),
                      (double)e->bytes / megabyte, built, used);
    app_output_escaped(out, model, strlen(model));
    if (e->n_tokens > 0)
        app_output_format(out, ", a prompt of %llu tokens", (unsigned long long)e->n_tokens);
    app_output_format(out, "%s%s\n", *text ? ": " : "", text);
}

static int list(const struct app_options *o, const struct akunu_cache *cache,
                struct app_output *out)
{
    uint64_t bytes = 0;
    size_t n = akunu_cache_count(cache);
    json_t *files = json_array();
    for (size_t i = 0; i < n; i++) {
        struct akunu_cache_entry e;
        if (akunu_cache_get_entry(cache, i, &e, sizeof e) != AKUNU_OK)
            return app_fail_library();
        struct next next = plan_next(o, &e);
        bytes += e.bytes;
        if (o->output.json) {
            json_array_append_new(files, json_of(&e, &next));
            continue;
        }
        if (i == 0)
            app_output_format(out, "%-10s %13s  %-12s %-12s  %s\n", "state", "size", "built",
                              "last used", "model, and its next start");
        print_entry(&e, &next, out);
    }
    if (o->output.json) {
        json_t *value =
            json_pack("{s:o, s:o}", "folder",
                      app_json_text(akunu_cache_path(cache), strlen(akunu_cache_path(cache))),
                      "files", files);
        if (app_json_print(out, value))
            app_output_text(out, "\n");
        return APP_EXIT_OK;
    }
    json_decref(files);
    if (n > 0)
        app_output_format(out, "%zu file%s, %.1f MB in ", n, n == 1 ? "" : "s",
                          (double)bytes / megabyte);
    else
        app_output_text(out, "nothing in ");
    app_output_escaped(out, akunu_cache_path(cache), strlen(akunu_cache_path(cache)));
    app_output_text(out, "\n");
    return APP_EXIT_OK;
}

/* ---- show --------------------------------------------------------------- */
static json_t *show_json(const char *path, const struct akunu_load_plan *p, const char *folder)
{
    return json_pack(
        "{s:o, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "model",
        app_json_text(path, strlen(path)), "format", p->format, "tier", akunu_tier_name(p->tier),
        "packing", akunu_packing_name(p->packing), "reason",
        p->reason[0] ? json_string(p->reason) : json_null(), "backend", p->backend, "folder",
        app_json_text(folder, strlen(folder)), "file",
        p->cache_file[0] ? json_string(p->cache_file) : json_null(), "state",
        p->cache_state ? json_string(akunu_cache_state_name(p->cache_state)) : json_null(), "built",
        (json_int_t)p->built, "used", (json_int_t)p->used, "source_bytes",
        app_json_unsigned(p->source_bytes), "packed_bytes", app_json_unsigned(p->packed_bytes),
        "in_place_bytes", app_json_unsigned(p->in_place_bytes), "cache_limit",
        p->cache_limit && p->cache_limit < UINT64_MAX ? app_json_unsigned(p->cache_limit) :
                                                        json_null());
}

static void show_text(const char *path, const struct akunu_load_plan *p, const char *folder,
                      struct app_output *out)
{
    char built[32], used[32];
    double packed = (double)p->packed_bytes / megabyte;
    app_output_format(out, "%-13s ", "model");
    app_output_escaped(out, path, strlen(path));
    app_output_format(out, "\n%-13s %s, %.1f MB\n%-13s %s\n%-13s ", "source", p->format,
                      (double)p->source_bytes / megabyte, "tier", akunu_tier_name(p->tier),
                      "next start");
    app_format_age(p->built, built, sizeof built);
    app_format_age(p->used, used, sizeof used);
    switch (p->packing) {
    case AKUNU_PACKING_CACHED:
        app_output_format(out, "maps %.1f MB from %s (built: %s, last used: %s)", packed,
                          p->cache_file, built, used);
        break;
    case AKUNU_PACKING_KEPT:
        app_output_format(out, "packs %.1f MB into %s: %s", packed, p->cache_file, p->reason);
        break;
    case AKUNU_PACKING_MEMORY:
        app_output_format(out, "packs %.1f MB into memory: %s", packed, p->reason);
        break;
    case AKUNU_PACKING_NONE: app_output_format(out, "packs nothing: %s", p->reason); break;
    }
    app_output_format(out,
                      "\n%-13s of the %s backend, %.1f MB; beside them %.1f MB are read in place\n",
                      "layout", p->backend, packed, (double)p->in_place_bytes / megabyte);
    app_output_format(out, "%-13s ", "cache folder");
    app_output_escaped(out, folder, strlen(folder));
    if (p->cache_limit && p->cache_limit < UINT64_MAX)
        app_output_format(out, ", where packed weights may take %.1f MB",
                          (double)p->cache_limit / megabyte);
    app_output_text(out, "\n");
}

static int show(const struct app_options *o, const struct akunu_cache *cache,
                struct app_output *out)
{
    const char *folder = cache             ? akunu_cache_path(cache) :
                         o->load.cache_dir ? o->load.cache_dir :
                                             "none";
    struct app_options local = *o;
    struct akunu_load_params params = o->load;
    struct akunu_load_plan plan;
    char *path;
    local.download.offline = true; /* a model that is not here has no next start */
    int code = app_model_path(&local, o->model.name, &path);
    if (code != APP_EXIT_OK)
        return code;
    params.cache_limit = o->cache.limit;
    if (akunu_get_load_plan(path, &params, NULL, &plan, sizeof plan) != AKUNU_OK)
        code = app_fail_library();
    else if (!o->output.json)
        show_text(path, &plan, folder, out);
    else if (app_json_print(out, show_json(path, &plan, folder)))
        app_output_text(out, "\n");
    free(path);
    return code;
}

/* ---- prune -------------------------------------------------------------- */
/* Whether prune removes an entry. By default: files that no start would use. Never a file being
 * written. */
static bool is_to_go(const struct app_options *o, const struct akunu_cache_entry *e)
{
    if (e->state == AKUNU_CACHE_BUILDING)
        return false;
    if (o->cache.all || e->state != AKUNU_CACHE_READY)
        return true;
    return o->cache.older_than >= 0 && (int64_t)time(NULL) - e->used >= o->cache.older_than * DAY;
}

static int prune(const struct app_options *o, struct akunu_cache *cache, struct app_output *out)
{
    int code = APP_EXIT_OK;
    uint64_t bytes = 0;
    size_t n = 0;
    for (size_t i = 0; i < akunu_cache_count(cache); i++) {
        struct akunu_cache_entry e;
        if (akunu_cache_get_entry(cache, i, &e, sizeof e) != AKUNU_OK)
            return app_fail_library();
        if (!is_to_go(o, &e))
            continue;
        if (akunu_cache_remove(cache, i) != AKUNU_OK) {
            code = app_fail_library();
            continue;
        }
        n++;
        bytes += e.bytes;
    }
    if (!o->output.json)
        app_output_format(out, "removed %zu file%s, %.1f MB\n", n, n == 1 ? "" : "s",
                          (double)bytes / megabyte);
    else if (app_json_print(out, json_pack("{s:I, s:o}", "removed", (json_int_t)n, "bytes",
                                           app_json_unsigned(bytes))))
        app_output_text(out, "\n");
    return code;
}

/* ---- The command -------------------------------------------------------- */
/* What to do: `list` of one model shows it. */
static enum app_mode choose_mode(const struct app_options *o)
{
    if (strcmp(o->word, "prune") == 0)
        return APP_MODE_PRUNE;
    for (size_t i = 0; i < app_n_flags; i++)
        if (o->typed[i] && (app_flags[i].modes & APP_MODE_SHOW))
            return APP_MODE_SHOW;
    return strcmp(o->word, "show") == 0 ? APP_MODE_SHOW : APP_MODE_LIST;
}

int cli_cache(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    enum app_mode mode = choose_mode(o);
    int code = app_check_mode(o, mode);
    if (code != APP_EXIT_OK)
        return code;
    struct akunu_cache *cache = akunu_cache_open(o->load.cache_dir);
    if (!cache && mode != APP_MODE_SHOW) /* which says what a start does without the folder */
        return app_fail_library();
    if (mode == APP_MODE_PRUNE)
        code = prune(o, cache, &out);
    else
        code = mode == APP_MODE_SHOW ? show(o, cache, &out) : list(o, cache, &out);
    akunu_cache_free(cache);
    return app_output_end(&out, code);
}

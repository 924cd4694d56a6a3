/* cache: lists the packed weights and kept prompts of the cache folder, and cleans it up. */
#include "cli/options.h"

#include <string.h>
#include <time.h>

#include "akunu/akunu.h"
#include "cli/message.h"
#include "cli/output.h"

enum { DAY = 24 * 60 * 60 };

static const double megabyte = 1e6;

/* File name without its folder. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static json_t *json_of(const struct akunu_cache_entry *e)
{
    return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:I, s:I}", "file", e->file, "model",
                     cli_json_text(e->model, strlen(e->model)), "backend", e->backend, "state",
                     akunu_cache_state_name(e->state), "n_tokens", cli_json_unsigned(e->n_tokens),
                     "bytes", cli_json_unsigned(e->bytes), "built", (json_int_t)e->built, "used",
                     (json_int_t)e->used);
}

static void print_entry(const struct akunu_cache_entry *e, struct cli_output *out)
{
    char built[32], used[32];
    const char *model = *e->model ? name_of(e->model) : "-";
    cli_format_age(e->built, built, sizeof built);
    cli_format_age(e->built ? e->used : 0, used, sizeof used);
    cli_output_format(out, "%-10s %10.1f MB  %-12s %-12s  ", akunu_cache_state_name(e->state),
                      (double)e->bytes / megabyte, built, used);
    cli_output_escaped(out, model, strlen(model));
    if (e->n_tokens > 0)
        cli_output_format(out, ", a prompt of %llu tokens", (unsigned long long)e->n_tokens);
    cli_output_text(out, "\n");
}

static int list(const struct cli_options *o, const struct akunu_cache *cache,
                struct cli_output *out)
{
    uint64_t bytes = 0;
    size_t n = akunu_cache_count(cache);
    json_t *files = json_array();
    for (size_t i = 0; i < n; i++) {
        struct akunu_cache_entry e;
        if (akunu_cache_get_entry(cache, i, &e, sizeof e) != AKUNU_OK)
            return cli_fail_library();
        bytes += e.bytes;
        if (o->json) {
            json_array_append_new(files, json_of(&e));
            continue;
        }
        if (i == 0)
            cli_output_format(out, "%-10s %13s  %-12s %-12s  %s\n", "state", "size", "built",
                              "last used", "model");
        print_entry(&e, out);
    }
    if (o->json) {
        json_t *value =
            json_pack("{s:o, s:o}", "folder",
                      cli_json_text(akunu_cache_path(cache), strlen(akunu_cache_path(cache))),
                      "files", files);
        if (cli_json_print(out, value))
            cli_output_text(out, "\n");
        return CLI_EXIT_OK;
    }
    json_decref(files);
    if (n > 0)
        cli_output_format(out, "%zu file%s, %.1f MB in ", n, n == 1 ? "" : "s",
                          (double)bytes / megabyte);
    else
        cli_output_text(out, "nothing in ");
    cli_output_escaped(out, akunu_cache_path(cache), strlen(akunu_cache_path(cache)));
    cli_output_text(out, "\n");
    return CLI_EXIT_OK;
}

/* Whether prune removes an entry. By default: files that no start would use. Never a file being
 * written. */
static bool is_to_go(const struct cli_options *o, const struct akunu_cache_entry *e)
{
    if (e->state == AKUNU_CACHE_BUILDING)
        return false;
    if (o->all || e->state != AKUNU_CACHE_READY)
        return true;
    return o->older_than >= 0 && (int64_t)time(NULL) - e->used >= o->older_than * DAY;
}

static int prune(const struct cli_options *o, struct akunu_cache *cache, struct cli_output *out)
{
    int code = CLI_EXIT_OK;
    uint64_t bytes = 0;
    size_t n = 0;
    for (size_t i = 0; i < akunu_cache_count(cache); i++) {
        struct akunu_cache_entry e;
        if (akunu_cache_get_entry(cache, i, &e, sizeof e) != AKUNU_OK)
            return cli_fail_library();
        if (!is_to_go(o, &e))
            continue;
        if (akunu_cache_remove(cache, i) != AKUNU_OK) {
            code = cli_fail_library();
            continue;
        }
        n++;
        bytes += e.bytes;
    }
    if (!o->json)
        cli_output_format(out, "removed %zu file%s, %.1f MB\n", n, n == 1 ? "" : "s",
                          (double)bytes / megabyte);
    else if (cli_json_print(out, json_pack("{s:I, s:o}", "removed", (json_int_t)n, "bytes",
                                           cli_json_unsigned(bytes))))
        cli_output_text(out, "\n");
    return code;
}

int cli_cache(const struct cli_options *o)
{
    struct cli_output out = cli_output_stdout();
    bool pruning = strcmp(o->word, "prune") == 0;
    int code = cli_check_mode(o, pruning ? CLI_MODE_PRUNE : CLI_MODE_LIST);
    if (code != CLI_EXIT_OK)
        return code;
    struct akunu_cache *cache = akunu_cache_open(o->load.cache_dir);
    if (!cache)
        return cli_fail_library();
    code = pruning ? prune(o, cache, &out) : list(o, cache, &out);
    akunu_cache_free(cache);
    return cli_output_end(&out, code);
}

/* imatrix: how large the inputs of a model's matrices are over a text, column by column.
 *
 * The text is split as in perplexity, into chunks that do not know each other. The file is written
 * every few chunks, so an interrupted run goes on from it: with --in-file and --from-chunk. */
#include <stdlib.h>
#include <string.h>

#include "apps/cli/quality/chunks.h"
#include "apps/common/options.h"

enum { OWN_CHUNKS = 8 };

/* A run. */
struct work {
    const struct app_options *o;
    struct app_model_session loaded;
    struct akunu_importance *importance;
    struct cli_chunks chunks;
    size_t first, end, saved; /* chunks of the text; those before `saved` are in the file */
    struct app_progress progress;
    bool overwrite;
};

static bool is_cancelled(void *user)
{
    (void)user;
    return app_is_interrupted();
}

/* A file that is read may be replaced. */
static bool may_overwrite(const struct app_options *o)
{
    for (size_t i = 0; i < o->collect.files.n; i++)
        if (strcmp(o->collect.files.values[i], o->output.path) == 0)
            return true;
    return o->convert.overwrite;
}

static int create_importance(struct work *work)
{
    const struct app_options *o = work->o;
    struct akunu_importance_params params;
    akunu_importance_params_default(&params, sizeof params);
    params.output = o->collect.process_output;
    params.chunk_size = o->session.context;
    params.dataset = o->collect.own_text ? "own text" : o->prompt.file;
    work->importance = akunu_importance_new(work->loaded.model, &params);
    if (!work->importance)
        return app_fail_library();
    for (size_t i = 0; i < o->collect.files.n; i++)
        if (akunu_importance_read(work->importance, o->collect.files.values[i]) != AKUNU_OK)
            return app_fail_library();
    return APP_EXIT_OK;
}

static int save(struct work *work, size_t n_chunks)
{
    if (akunu_importance_write(work->importance, work->o->output.path, work->overwrite) !=
        AKUNU_OK) {
        app_progress_end(&work->progress);
        return app_fail_library();
    }
    work->overwrite = true;
    work->saved = n_chunks;
    return APP_EXIT_OK;
}

static int end_interrupted(struct work *work)
{
    app_progress_end(&work->progress);
    if (work->saved > work->first)
        app_aside("%s has the chunks before %zu; to go on: --in-file %s --from-chunk %zu",
                  work->o->output.path, work->saved, work->o->output.path, work->saved);
    return APP_EXIT_INTERRUPTED;
}

static int run_chunks(struct work *work)
{
    size_t every = (size_t)work->o->collect.save_frequency;
    for (size_t i = work->first; i < work->end; i++) {
        const struct akunu_ids chunk = { cli_get_chunk(&work->chunks, i), work->chunks.size };
        enum akunu_status status = akunu_importance_add(work->importance, work->loaded.session,
                                                        &chunk, is_cancelled, NULL);
        if (status == AKUNU_ERROR_CANCELLED)
            return end_interrupted(work);
        if (status != AKUNU_OK) {
            app_progress_end(&work->progress);
            return app_fail_library();
        }
        size_t done = i + 1 - work->first;
        app_progress_show(&work->progress, "running",
                          (double)done / (double)(work->end - work->first));
        if (every > 0 && done % every == 0 && i + 1 < work->end) {
            int code = save(work, i + 1);
            if (code != APP_EXIT_OK)
                return code;
        }
    }
    return APP_EXIT_OK;
}

/* Which chunks of the text are run. */
static int choose_chunks(struct work *work)
{
    work->first = work->saved = (size_t)work->o->collect.from_chunk;
    work->end = work->chunks.n;
    if (work->first >= work->end)
        return app_fail("the text has %zu chunks, and --from-chunk skips %zu", work->end,
                        work->first);
    if (work->o->quality.chunks > 0 && (size_t)work->o->quality.chunks < work->end - work->first)
        work->end = work->first + (size_t)work->o->quality.chunks;
    return APP_EXIT_OK;
}

static int make_chunks(struct work *work, const struct app_text *text)
{
    const struct app_options *o = work->o;
    size_t n = (size_t)o->collect.from_chunk +
               (o->quality.chunks > 0 ? (size_t)o->quality.chunks : OWN_CHUNKS);
    int code =
        o->collect.own_text ?
            cli_write_own_chunks(o, &work->loaded, o->session.context, n, &work->progress,
                                 &work->chunks) :
            cli_read_chunks(&work->loaded, text, o->collect.parse_special ? AKUNU_PARSE_SPECIAL : 0,
                            o->session.context, &work->chunks);
    return code == APP_EXIT_OK ? choose_chunks(work) : code;
}

static int open_model(struct work *work)
{
    struct app_text text = { NULL, 0 };
    int code = work->o->collect.own_text ? APP_EXIT_OK : app_read_text(work->o, "the text", &text);
    if (code == APP_EXIT_OK)
        code = app_load_model(work->o, &work->loaded);
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&work->loaded, "imatrix");
    if (code == APP_EXIT_OK)
        code = make_chunks(work, &text);
    free(text.bytes);
    if (code == APP_EXIT_OK)
        code = app_open_session(work->o, &work->loaded, 0);
    if (code == APP_EXIT_OK)
        akunu_sequence_free(work->loaded.session, work->loaded.sequence);
    return code;
}

static int print_summary(const struct work *work)
{
    struct akunu_importance_info info;
    if (akunu_importance_get_info(work->importance, &info, sizeof info) != AKUNU_OK)
        return app_fail_library();
    if (info.n_unused > 0)
        app_warn("no token was multiplied with %llu of %llu matrices: their columns count alike; a "
                 "longer text reaches more experts",
                 (unsigned long long)info.n_unused, (unsigned long long)info.n_matrices);
    app_aside("%s: %zu tensors, %llu tokens, %.1f s", work->o->output.path, info.n_tensors,
              (unsigned long long)info.n_tokens, app_seconds() - work->progress.started);
    return APP_EXIT_OK;
}

static int collect(struct work *work, bool has_text)
{
    int code = has_text ? open_model(work) : APP_EXIT_OK;
    if (code == APP_EXIT_OK)
        code = create_importance(work);
    if (code == APP_EXIT_OK && has_text)
        code = run_chunks(work);
    if (code == APP_EXIT_OK)
        code = save(work, work->end);
    app_progress_end(&work->progress);
    return code == APP_EXIT_OK ? print_summary(work) : code;
}

int cli_imatrix(const struct app_options *o)
{
    if (!o->output.path)
        return app_fail_usage("no file to write is given: --outfile FILE (-o)");
    struct work work = { .o = o,
                         .loaded.sequence = -1,
                         .overwrite = may_overwrite(o),
                         .progress = app_progress_begin() };
    if (akunu_importance_check_path(o->output.path, work.overwrite) != AKUNU_OK)
        return app_fail_library();
    int code = collect(&work, o->prompt.file || o->collect.own_text || o->collect.files.n == 0);
    akunu_importance_free(work.importance);
    free(work.chunks.ids);
    app_unload(&work.loaded);
    return code;
}

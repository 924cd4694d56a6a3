/* Importance matrices behind handles: texts run in a session, files combined, the file written. */
#include "api/handles.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "conversion/convert/collect.h"

struct akunu_importance {
    struct ak_model *model; /* a reference; NULL: files alone */
    struct ak_importance inner;
    struct ak_convert_collector collector;
    char *dataset; /* NULL: none */
    uint32_t chunk_size;
};

void akunu_importance_params_default(struct akunu_importance_params *params, size_t size)
{
    static const struct akunu_importance_params full = { .chunk_size = 512 };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status init(struct akunu_importance *im, const struct akunu_model *model,
                      const struct akunu_importance_params *given, struct ak_error *error)
{
    struct akunu_importance_params params;
    akunu_importance_params_default(&params, sizeof params);
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_importance_params", error));
    if (params.chunk_size == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "chunk_size is 0: it must be 1 or more");
    im->chunk_size = params.chunk_size;
    if (params.dataset && !(im->dataset = ak_strndup(params.dataset, strlen(params.dataset))))
        return ak_fail_memory(error, "the name of a text", strlen(params.dataset));
    if (!model)
        return ak_importance_index(&im->inner, error);
    im->model = ak_model_ref(model->inner);
    const struct ak_convert_collect_source source = { .provider = im->model->provider,
                                                      .spec = &im->model->spec,
                                                      .weights = &im->model->weights,
                                                      .is_tied = im->model->binding.tied };
    return ak_convert_collector_create(&source, params.output, &im->inner, &im->collector, error);
}

struct akunu_importance *akunu_importance_new(const struct akunu_model *model,
                                              const struct akunu_importance_params *params)
{
    struct ak_error error = { 0 };
    struct akunu_importance *im = ak_alloc(1, sizeof *im);
    if (!im)
        ak_fail_memory(&error, "an importance matrix", sizeof *im);
    else
        init(im, model, params, &error);
    if (error.status == AKUNU_OK)
        return im;
    ak_api_finish(&error);
    akunu_importance_free(im);
    return NULL;
}

void akunu_importance_free(struct akunu_importance *importance)
{
    if (!importance)
        return;
    ak_convert_collector_free(&importance->collector);
    ak_importance_free(&importance->inner);
    ak_model_free(importance->model);
    ak_free(importance->dataset);
    ak_free(importance);
}

static ak_status check_handle(const struct akunu_importance *im, struct ak_error *error)
{
    return im ? AKUNU_OK : ak_fail(error, AKUNU_ERROR_ARGUMENT, "the importance matrix is NULL");
}

/* ---- Files -------------------------------------------------------------- */
static ak_status merge(struct akunu_importance *im, const struct ak_importance *from,
                       struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    for (size_t i = 0; im->model && i < from->n; i++)
        if (!ak_convert_collector_has(&im->collector, from->entries[i].name))
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "the model has no tensor %s; it is of another model",
                           ak_show(from->entries[i].name, strlen(from->entries[i].name), shown));
    return ak_importance_merge(&im->inner, from, im->chunk_size, error);
}

static ak_status read_importance(struct akunu_importance *im, const char *path,
                                 struct ak_error *error)
{
    struct ak_importance from;
    char shown[AK_SHOW_BYTES];
    AK_TRY(check_handle(im, error));
    if (!path)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    ak_status status = ak_importance_read(path, &from, error);
    if (status == AKUNU_OK && (status = merge(im, &from, error)) != AKUNU_OK)
        ak_error_prefix(error, ak_show_path(path, shown));
    ak_importance_free(&from);
    return status;
}

enum akunu_status akunu_importance_read(struct akunu_importance *importance, const char *path)
{
    struct ak_error error = { 0 };
    read_importance(importance, path, &error);
    return ak_api_finish(&error);
}

static ak_status write_file(const struct akunu_importance *im, const char *path, bool overwrite,
                            struct ak_error *error)
{
    AK_TRY(check_handle(im, error));
    if (!path)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    if (ak_importance_tokens(&im->inner) == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "nothing was added to the importance matrix");
    AK_TRY(ak_gguf_writer_check_path(path, overwrite, error));
    return ak_importance_write(&im->inner, im->chunk_size, path, error);
}

enum akunu_status akunu_importance_write(const struct akunu_importance *importance,
                                         const char *path, bool overwrite)
{
    struct ak_error error = { 0 };
    write_file(importance, path, overwrite, &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_importance_check_path(const char *path, bool overwrite)
{
    struct ak_error error = { 0 };
    if (!path)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "no path is given");
    else
        ak_importance_check_path(path, overwrite, &error);
    return ak_api_finish(&error);
}

/* ---- Texts -------------------------------------------------------------- */
static ak_status run_text(struct akunu_importance *im, struct ak_session *s,
                          const struct akunu_ids *text, akunu_cancel_fn *cancel, void *user,
                          struct ak_error *error)
{
    if (s->model != im->model)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the session is of another model than the importance matrix");
    ak_status status = ak_session_sum_inputs(s, text, im->collector.wants_output,
                                             im->collector.sums, cancel, user, error);
    if (status == AKUNU_OK)
        status = ak_convert_collector_take(&im->collector, &im->inner, error);
    if (status != AKUNU_OK)
        ak_convert_collector_clear_sums(&im->collector);
    else if (im->dataset)
        status = ak_importance_add_dataset(&im->inner, im->dataset, error);
    return status;
}

enum akunu_status akunu_importance_add(struct akunu_importance *importance,
                                       struct akunu_session *session, const struct akunu_ids *text,
                                       akunu_cancel_fn *cancel, void *user)
{
    struct ak_error error = { 0 };
    if (check_handle(importance, &error) != AKUNU_OK)
        return ak_api_finish(&error);
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && !text)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the text is NULL");
    else if (s)
        run_text(importance, s, text, cancel, user, &error);
    return ak_api_end(session, s, &error);
}

enum akunu_status akunu_importance_get_info(const struct akunu_importance *importance,
                                            struct akunu_importance_info *info, size_t size)
{
    struct ak_error error = { 0 };
    if (check_handle(importance, &error) != AKUNU_OK)
        return ak_api_finish(&error);
    const struct ak_importance *inner = &importance->inner;
    struct akunu_importance_info full = { .n_tensors = inner->n,
                                          .n_tokens = ak_importance_tokens(inner) };
    for (size_t i = 0; i < inner->n; i++)
        for (uint64_t m = 0; m < inner->entries[i].n_matrices; m++) {
            full.n_matrices++;
            full.n_unused += !(inner->entries[i].counts[m] > 0.0f);
        }
    ak_api_copy_out(info, size, &full, sizeof full, "akunu_importance_info", &error);
    return ak_api_finish(&error);
}

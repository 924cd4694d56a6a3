/* akunu_session_generate and akunu_session_generate_parallel: completes the parameters with
 * defaults and checks the sizes of nested structs before the library's own functions run. */
#include "generate/generate.h"

#include "api/handles.h"
#include "base/mem.h"

void akunu_generation_default(struct akunu_generation *generation)
{
    if (!generation)
        return;
    *generation = (struct akunu_generation){ .size = sizeof *generation, .max_tokens = -1 };
    akunu_sampling_default(&generation->sampling);
}

/* Nested structs cannot grow, so both sizes must be this version's. */
static ak_status check(const struct akunu_generation *given, struct ak_error *error)
{
    if (given->size != sizeof *given || given->sampling.size != sizeof given->sampling)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "struct akunu_generation: the field `size` is %zu and that of its sampling "
                       "%zu; expected %zu and %zu "
                       "(akunu_generation_default sets them)",
                       given->size, given->sampling.size, sizeof *given, sizeof given->sampling);
    return AKUNU_OK;
}

/* Fills the request except for its callbacks; *defaults is used if the caller gave no
 * parameters. */
static ak_status make_request(struct akunu_session *session, akunu_sequence sequence,
                              const akunu_token *ids, size_t n_ids,
                              const struct akunu_generation *generation,
                              struct akunu_generation *defaults, struct ak_gen_request *out,
                              struct ak_error *error)
{
    akunu_generation_default(defaults);
    if (!generation)
        generation = defaults;
    *out = (struct ak_gen_request){ .session = ak_api_session(session, error),
                                    .sequence = sequence,
                                    .ids = ids,
                                    .n_ids = n_ids,
                                    .generation = generation };
    if (!out->session)
        return AKUNU_ERROR_ARGUMENT;
    AK_TRY(check(generation, error));
    out->draft = generation->draft ? generation->draft->inner : NULL;
    return ids || n_ids == 0 ? AKUNU_OK : ak_fail(error, AKUNU_ERROR_ARGUMENT, "the ids are NULL");
}

enum akunu_status akunu_session_generate(struct akunu_session *session, akunu_sequence sequence,
                                         const akunu_token *ids, size_t n_ids,
                                         const struct akunu_generation *generation,
                                         akunu_piece_fn *on_piece, akunu_cancel_fn *cancel,
                                         void *user, struct akunu_result *result)
{
    struct ak_error error = { 0 };
    struct akunu_generation defaults;
    struct akunu_result full = { .stop = AKUNU_STOP_CALLBACK };
    struct ak_gen_request request;
    if (result)
        ak_api_copy_out(result, &full, sizeof full, "akunu_result", &error);
    if (error.status == AKUNU_OK && make_request(session, sequence, ids, n_ids, generation,
                                                 &defaults, &request, &error) == AKUNU_OK) {
        request.on_piece = on_piece;
        request.cancel = cancel;
        request.user = user;
        ak_gen_run(&request, &full, &error);
        if (result)
            ak_api_copy_out(result, &full, sizeof full, "akunu_result", NULL);
    }
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}

/* The stride of the results is the caller's size of the struct. */
static ak_status give_results(struct akunu_result *results, const struct akunu_result *full,
                              size_t n, struct ak_error *error)
{
    for (size_t i = 0; results && i < n; i++)
        AK_TRY(ak_api_copy_out((char *)results + i * results->size, &full[i], sizeof *full,
                               "akunu_result", error));
    return AKUNU_OK;
}

static ak_status generate_choices(const struct ak_gen_request *request, size_t n,
                                  akunu_completion_fn *on_piece, akunu_sequence *sequences,
                                  struct akunu_result *results, struct ak_error *error)
{
    struct akunu_result *full = ak_alloc(n, sizeof *full);
    if (!full)
        return ak_fail_memory(error, "the results", n * sizeof *full);
    ak_status status = give_results(results, full, n, error);
    if (status == AKUNU_OK) {
        status = ak_gen_run_parallel(request, n, on_piece, sequences, full, error);
        give_results(results, full, n, NULL);
    }
    ak_free(full);
    return status;
}

enum akunu_status akunu_session_generate_parallel(
    struct akunu_session *session, akunu_sequence *sequences, size_t n, const akunu_token *ids,
    size_t n_ids, const struct akunu_generation *generation, akunu_completion_fn *on_piece,
    akunu_cancel_fn *cancel, void *user, struct akunu_result *results)
{
    struct ak_error error = { 0 };
    struct akunu_generation defaults;
    struct ak_gen_request request;
    for (size_t i = 1; sequences && i < n; i++)
        sequences[i] = -1;
    if (!sequences || n == 0) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "no sequences are given for the choices");
    } else if (make_request(session, sequences[0], ids, n_ids, generation, &defaults, &request,
                            &error) == AKUNU_OK) {
        request.cancel = cancel;
        request.user = user;
        generate_choices(&request, n, on_piece, sequences, results, &error);
    }
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}

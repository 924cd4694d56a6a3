#include "session/generate.h"

#include "api/error.h"
#include "api/session.h"
#include "api/versioned.h"

void akunu_generation_default(struct akunu_generation *generation)
{
    if (!generation)
        return;
    *generation = (struct akunu_generation){ .size = sizeof *generation, .max_tokens = -1 };
    akunu_sampling_default(&generation->sampling);
}

/* A struct within a struct cannot grow: both sizes must be this version's. */
static ak_status check(const struct akunu_generation *given, struct ak_error *error)
{
    if (given->size != sizeof *given || given->sampling.size != sizeof given->sampling)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "struct akunu_generation: the field `size` is %zu and that of its sampling %zu; expected %zu and %zu "
                       "(akunu_generation_default sets them)",
                       given->size, given->sampling.size, sizeof *given, sizeof given->sampling);
    return AKUNU_OK;
}

enum akunu_status akunu_generate(struct akunu_session *session, akunu_sequence sequence, const akunu_token *ids, size_t n_ids,
                                 const struct akunu_generation *generation, akunu_piece_fn *on_piece, akunu_cancel_fn *cancel, void *user,
                                 struct akunu_result *result)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    struct akunu_generation defaults;
    struct akunu_result full = { .stop = AKUNU_STOP_CALLBACK };
    akunu_generation_default(&defaults);
    if (!generation)
        generation = &defaults;
    if (result)
        ak_versioned_give(result, &full, sizeof full, "akunu_result", &error);
    if (error.status == AKUNU_OK && check(generation, &error) == AKUNU_OK) {
        if (!ids && n_ids > 0)
            ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the ids are NULL");
        else
            ak_generate(&(struct ak_request){ .session = s, .sequence = sequence, .ids = ids, .n_ids = n_ids, .generation = generation,
                                              .draft = generation->draft ? generation->draft->inner : NULL, .on_piece = on_piece,
                                              .cancel = cancel, .user = user },
                        &full, &error);
        if (result)
            ak_versioned_give(result, &full, sizeof full, "akunu_result", NULL);
    }
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}

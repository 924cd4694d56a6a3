/* Runs a text for the inputs of its products alone, of which an importance matrix is made. */
#include "base/mem.h"
#include "engine/session/session.h"

static ak_status check_text(const struct ak_session *s, const struct akunu_ids *text,
                            struct ak_error *error)
{
    if (!s->model->spec.descriptor.encoder)
        AK_TRY(ak_session_needs_text(s, error));
    if (!s->backend->ops->sum_inputs)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the backend %s cannot sum the inputs of products; the cpu can",
                       s->backend->ops->describe(s->backend));
    if (ak_spec_has_layers(&s->model->own))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "input sums of a model that ranks split by layers are not supported: "
                       "expected a split by rows");
    if (text->n == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the text has no tokens");
    if (s->model->spec.descriptor.encoder && text->n > s->batch)
        return ak_fail(error, AKUNU_ERROR_CONTEXT,
                       "a text of %zu tokens: an encoder runs a text in one pass, which takes %u",
                       text->n, (unsigned)s->batch);
    return AKUNU_OK;
}

/* All rows are wanted, since the end of the last layer runs for these alone. */
static ak_status run_text(struct ak_session *s, struct ak_backend_table *prepared, int32_t sequence,
                          const struct akunu_ids *text, akunu_cancel_fn *cancel, void *user,
                          struct ak_error *error)
{
    for (size_t first = 0, n; first < text->n; first += n) {
        if (cancel && cancel(user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled after %zu of %zu tokens", first,
                           text->n);
        n = ak_min_size(text->n - first, s->batch);
        for (size_t i = 0; i < n; i++)
            s->chunk[i] = (struct akunu_batch_token){ .token = text->ids[first + i],
                                                      .sequence = sequence,
                                                      .logits = true };
        AK_TRY(
            ak_session_run_pass(s, prepared, s->chunk, n, (struct ak_gumbel_params){ 0 }, error));
    }
    return AKUNU_OK;
}

ak_status ak_session_sum_inputs(struct ak_session *s, const struct akunu_ids *text,
                                bool wants_output, struct ak_backend_input_sums *sums,
                                akunu_cancel_fn *cancel, void *user, struct ak_error *error)
{
    int32_t sequence;
    struct ak_backend_table *prepared = s->logits;
    AK_TRY(check_text(s, text, error));
    if (!wants_output) /* a pass for hidden states computes no logits */
        AK_TRY(ak_session_prepare_hidden(s, &prepared, error));
    AK_TRY(ak_session_sequence_new(s, &sequence, error));
    s->n_last = 0; /* the previous pass's logits can no longer be read */
    s->backend->ops->sum_inputs(prepared, sums);
    ak_status status = run_text(s, prepared, sequence, text, cancel, user, error);
    s->backend->ops->sum_inputs(prepared, NULL);
    ak_session_kv_sequence_free(&s->kv, sequence);
    return status;
}

/* The encoder of a speech model: runs a window of log-mel frames as a sequence of its own, whose
 * pages then hold K and V for the decoder's cross-attention. A pass has one window: its positions
 * are enough for the kernels, and those of several would leave the caches. */
#include "engine/session/session.h"

#include <string.h>

#include "base/mem.h"

struct ak_session_encoder {
    struct ak_backend_table *table;
    /* frames of a window between a frame of zeros on either side; of a shorter window that of zeros
     * follows its last */
    float *frames;
    const float **starts; /* by sequence: the frame before the first of its window */
    int32_t *tokens;      /* zeros: positions have no tokens */
    uint32_t *positions, *sequences, *rows;
};

static void free_encoder(struct ak_session *s, struct ak_session_encoder *e)
{
    if (!e)
        return;
    if (e->table)
        s->backend->ops->release(e->table);
    ak_free(e->frames);
    ak_free(e->starts);
    ak_free(e->tokens);
    ak_free(e->positions);
    ak_free(e->sequences);
    ak_free(e->rows);
    ak_free(e);
}

void ak_session_free_encoder(struct ak_session *s)
{
    free_encoder(s, s->encoder);
    s->encoder = NULL;
}

uint64_t ak_session_encoder_bytes(const struct ak_session *s)
{
    return s->encoder ? s->backend->ops->memory_bytes(s->encoder->table) : 0;
}

static ak_status fill_encoder(struct ak_session *s, struct ak_session_encoder *e,
                              struct ak_error *error)
{
    const struct ak_spec_config *config = &s->model->spec.config;
    uint32_t n = config->encoder_context;
    size_t elems = (2 * (size_t)n + 2) * config->n_mels;
    e->frames = ak_alloc(elems, sizeof *e->frames);
    e->starts = ak_alloc(s->kv.n_sequences, sizeof *e->starts);
    e->tokens = ak_alloc(n, sizeof *e->tokens);
    e->positions = ak_alloc(n, sizeof *e->positions);
    e->sequences = ak_alloc(n, sizeof *e->sequences);
    e->rows = ak_alloc(n, sizeof *e->rows);
    if (!e->frames || !e->starts || !e->tokens || !e->positions || !e->sequences || !e->rows)
        return ak_fail_memory(error, "the frames of a window", elems * sizeof *e->frames);
    for (uint32_t i = 0; i < n; i++)
        e->positions[i] = e->rows[i] = i;
    struct ak_backend_table_options options = s->options;
    options.max_tokens = options.max_logits = n;
    options.lender = s->logits;
    return s->backend->ops->prepare(s->backend, &s->model->encoder_table, &s->model->weights,
                                    ak_model_own_spec(s->model), &options, s->kv.pool, &e->table,
                                    error);
}

static ak_status prepare_encoder(struct ak_session *s, struct ak_error *error)
{
    struct ak_session_encoder *e = ak_alloc(1, sizeof *e);
    if (!e)
        return ak_fail_memory(error, "an encoder", sizeof *e);
    ak_status status = fill_encoder(s, e, error);
    if (status != AKUNU_OK) {
        free_encoder(s, e);
        return status;
    }
    s->encoder = e;
    return AKUNU_OK;
}

static ak_status check_window(const struct ak_session *s, int32_t sequence, uint32_t n_positions,
                              struct ak_error *error)
{
    uint32_t context = s->model->spec.config.encoder_context;
    const struct ak_session_kv_sequence *found;
    if (n_positions > context)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "a window of %u positions; the encoder of this model has %u",
                       (unsigned)n_positions, (unsigned)context);
    AK_TRY(ak_session_find(s, sequence, &found, error));
    if (found->length > 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "sequence %d has %u tokens; a window needs an empty one", (int)sequence,
                       (unsigned)found->length);
    uint32_t pages = ak_session_kv_count_new_pages(&s->kv, sequence, n_positions);
    if (pages > s->kv.n_free)
        return ak_fail(error, AKUNU_ERROR_CONTEXT,
                       "a window needs %u pages of the KV cache, of which %u are free",
                       (unsigned)pages, (unsigned)s->kv.n_free);
    return AKUNU_OK;
}

/* Copies the window's frames. */
static void load_window(struct ak_session_encoder *e, const float *frames, int32_t sequence,
                        uint32_t n_positions, uint32_t n_mels)
{
    size_t elems = 2 * (size_t)n_positions * n_mels;
    memcpy(e->frames + n_mels, frames, elems * sizeof *frames);
    memset(e->frames + n_mels + elems, 0, n_mels * sizeof *frames);
    e->starts[sequence] = e->frames;
    for (uint32_t i = 0; i < n_positions; i++)
        e->sequences[i] = (uint32_t)sequence;
}

ak_status ak_session_encode(struct ak_session *s, const float *frames, int32_t sequence,
                            uint32_t n_positions, bool wants_output, struct ak_error *error)
{
    const struct ak_spec_config *config = &s->model->spec.config;
    if (s->max_windows == 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the architecture \"%.*s\" has no encoder of speech",
                       (int)config->architecture.n, config->architecture.bytes);
    n_positions = n_positions ? n_positions : config->encoder_context;
    AK_TRY(check_window(s, sequence, n_positions, error));
    if (!s->encoder)
        AK_TRY(prepare_encoder(s, error));
    struct ak_session_encoder *e = s->encoder;
    load_window(e, frames, sequence, n_positions, config->n_mels);
    struct ak_batch batch = { .n = n_positions,
                              .tokens = e->tokens,
                              .positions = e->positions,
                              .sequences = e->sequences,
                              .pages = s->kv.tables,
                              .n_logits = wants_output ? n_positions : 0,
                              .logit_rows = e->rows,
                              .frames = e->starts };
    ak_session_kv_extend(&s->kv, sequence, e->tokens, n_positions);
    s->n_last = 0; /* the tables share their activations */
    s->backend->ops->run(e->table, &batch);
    s->n_passes++;
    ak_status status = s->backend->ops->sync(e->table, error);
    if (status != AKUNU_OK)
        ak_session_kv_rewind(&s->kv, sequence, 0);
    return status;
}

const float *ak_session_encoded(const struct ak_session *s, uint32_t position)
{
    return s->backend->ops->logits(s->encoder->table, position);
}

ak_status ak_session_attend(struct ak_session *s, int32_t sequence, int32_t window,
                            struct ak_error *error)
{
    const struct ak_session_kv_sequence *reader, *read;
    AK_TRY(ak_session_find(s, sequence, &reader, error));
    AK_TRY(ak_session_find(s, window, &read, error));
    /* a text with tokens attends to a window */
    if (!s->cross_sequences || read->length == 0 || s->cross_sequences[window] != AK_OP_NONE)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "sequence %d is no encoded window",
                       (int)window);
    s->cross_sequences[sequence] = (uint32_t)window;
    s->cross_lengths[sequence] = read->length;
    return AKUNU_OK;
}

#include "session/generate.h"

#include "base/system.h"
#include "session/sampler.h"

/* One call. */
struct generation {
    struct ak_session *session;
    int32_t sequence;
    uint64_t limit; /* of tokens */
    struct ak_sampler *sampler;
    struct ak_text_stream *stream; /* NULL: the model has no vocabulary */
    bool on_backend;               /* the backend draws the tokens after the first */
    float temperature;
    akunu_piece_fn *on_piece;
    akunu_cancel_fn *cancel;
    void *user;
    struct akunu_result *result;
};

static ak_status begin(struct generation *g, const int32_t *ids, size_t n_ids, const struct akunu_generation *params,
                       struct ak_error *error)
{
    const struct ak_model *model = g->session->model;
    const struct ak_kv_sequence *sequence;
    AK_TRY(ak_session_find(g->session, g->sequence, &sequence, error));
    AK_TRY(ak_sampler_create(&params->sampling, model->spec.config.vocab_size, model->tokenizer, &g->sampler, error));
    if (model->tokenizer)
        AK_TRY(ak_text_stream_create(model->tokenizer, AKUNU_CONTINUE | (params->special ? 0u : AKUNU_SKIP_SPECIAL), &g->stream, error));
    g->on_backend = ak_sampler_is_plain(g->sampler);
    if (g->on_backend)
        AK_TRY(ak_session_prepare_sampled(g->session, error));
    for (uint32_t i = 0; i < sequence->length; i++)
        ak_sampler_accept(g->sampler, sequence->tokens[i]);
    for (size_t i = 0; i < n_ids; i++)
        ak_sampler_accept(g->sampler, ids[i]);
    return AKUNU_OK;
}

static ak_status prompt(struct generation *g, const int32_t *ids, size_t n_ids, int32_t *first, struct ak_error *error)
{
    const struct ak_kv_sequence *sequence = ak_kv_sequence(&g->session->kv, g->sequence);
    uint32_t before = sequence->length;
    double started = ak_seconds();
    size_t last;
    ak_status status = ak_session_prefill(g->session, g->sequence, ids, n_ids, g->cancel, g->user, &last, error);
    if (status == AKUNU_OK && g->limit > 0)
        status = ak_sampler_choose(g->sampler, ak_session_logits(g->session, last), first, error);
    g->result->n_prompt = sequence->length - before;
    g->result->prompt_seconds = ak_seconds() - started;
    return status;
}

/* Runs one token and chooses the one after it. */
static ak_status step(struct generation *g, int32_t token, int32_t *next, struct ak_error *error)
{
    if (g->on_backend) {
        struct ak_draw draw = { .temperature = g->temperature, .seed = ak_sampler_bits(g->sampler) };
        return ak_session_draw(g->session, g->sequence, token, draw, next, error);
    }
    struct akunu_batch_token only = { .token = token, .sequence = g->sequence, .logits = true };
    AK_TRY(ak_session_decode(g->session, &only, 1, error));
    return ak_sampler_choose(g->sampler, ak_session_logits(g->session, 0), next, error);
}

/* Tells the host of a token; false where it wants no more. */
static ak_status tell(struct generation *g, int32_t token, bool *more, struct ak_error *error)
{
    const char *text = "";
    size_t n_bytes = 0;
    if (g->stream)
        AK_TRY(ak_text_stream_push(g->stream, token, &text, &n_bytes, error));
    *more = !g->on_piece || g->on_piece(token, text, n_bytes, g->user);
    return AKUNU_OK;
}

static bool ends(const struct generation *g, int32_t token)
{
    const struct ak_tokenizer *tokenizer = g->session->model->tokenizer;
    return tokenizer && ak_tokenizer_is_end(tokenizer, token);
}

/* From the first chosen token until something stops it: the text's end before the
 * length, the length before the context. */
static ak_status tokens(struct generation *g, int32_t token, struct ak_error *error)
{
    const struct ak_kv_sequence *sequence = ak_kv_sequence(&g->session->kv, g->sequence);
    for (;;) {
        bool more;
        if (ends(g, token)) {
            g->result->stop = AKUNU_STOP_END;
            return AKUNU_OK;
        }
        g->result->n_generated++;
        ak_sampler_accept(g->sampler, token);
        AK_TRY(tell(g, token, &more, error));
        if (!more) {
            g->result->stop = AKUNU_STOP_CALLBACK;
            return AKUNU_OK;
        }
        if (g->result->n_generated == g->limit) {
            g->result->stop = AKUNU_STOP_LENGTH;
            return AKUNU_OK;
        }
        if (sequence->length == g->session->kv.context || ak_kv_wanted(&g->session->kv, g->sequence, 1) > g->session->kv.n_free) {
            g->result->stop = AKUNU_STOP_CONTEXT;
            return AKUNU_OK;
        }
        if (g->cancel && g->cancel(g->user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled after %llu tokens", (unsigned long long)g->result->n_generated);
        AK_TRY(step(g, token, &token, error));
    }
}

/* Bytes of an incomplete character are the text's last piece. */
static void tell_rest(struct generation *g)
{
    const char *text;
    size_t n_bytes;
    if (!g->stream || !g->on_piece || g->result->stop == AKUNU_STOP_CALLBACK)
        return;
    ak_text_stream_end(g->stream, &text, &n_bytes);
    if (n_bytes > 0)
        g->on_piece(-1, text, n_bytes, g->user);
}

static ak_status generate(struct generation *g, const int32_t *ids, size_t n_ids, const struct akunu_generation *params,
                          struct ak_error *error)
{
    int32_t first = -1;
    AK_TRY(begin(g, ids, n_ids, params, error));
    AK_TRY(prompt(g, ids, n_ids, &first, error));
    if (g->limit == 0) {
        g->result->stop = AKUNU_STOP_LENGTH;
        return AKUNU_OK;
    }
    double started = ak_seconds();
    ak_status status = tokens(g, first, error);
    if (status == AKUNU_OK)
        tell_rest(g);
    g->result->generate_seconds = ak_seconds() - started;
    return status;
}

ak_status ak_generate(struct ak_session *s, int32_t sequence, const int32_t *ids, size_t n_ids, const struct akunu_generation *generation,
                      akunu_piece_fn *on_piece, akunu_cancel_fn *cancel, void *user, struct akunu_result *result, struct ak_error *error)
{
    struct generation g = {
        .session = s,
        .sequence = sequence,
        .limit = generation->max_tokens < 0 ? UINT64_MAX : (uint64_t)generation->max_tokens,
        .temperature = generation->sampling.temperature,
        .on_piece = on_piece,
        .cancel = cancel,
        .user = user,
        .result = result,
    };
    *result = (struct akunu_result){ .size = sizeof *result, .stop = AKUNU_STOP_CALLBACK };
    ak_status status = generate(&g, ids, n_ids, generation, error);
    ak_text_stream_free(g.stream);
    ak_sampler_free(g.sampler);
    return status;
}

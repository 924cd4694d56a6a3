/* Scoring in passes of a few tokens, whose logits stay small. */
#include "speech/transcribe/score.h"

#include "base/mem.h"
#include "speech/search/decode.h"

enum { PASS_TOKENS = 16 };

struct scorer {
    struct ak_session *s;
    const int32_t *tokens;
    size_t n;
    int32_t end, sequence;
    int32_t *matrices; /* as in struct ak_batch_scores */
    float *probabilities;
    struct ak_speech_scores *scores;
};

static ak_status alloc_scores(struct scorer *r, int32_t window, struct ak_error *error)
{
    const struct ak_spec_config *c = &r->s->model->spec.config;
    const struct ak_session_kv_sequence *read;
    AK_TRY(ak_session_find(r->s, window, &read, error));
    size_t n_heads = (size_t)c->n_layers * c->n_heads;
    *r->scores = (struct ak_speech_scores){ .n_heads = c->n_alignment,
                                            .n_tokens = r->n,
                                            .n_positions = read->length };
    size_t n = r->n * r->scores->n_positions;
    r->matrices = ak_alloc(n_heads, sizeof *r->matrices);
    r->scores->data = ak_alloc(n * c->n_alignment, sizeof *r->scores->data);
    if (!r->matrices || !r->scores->data)
        return ak_fail_memory(error, "scores of attention",
                              n * c->n_alignment * sizeof *r->scores->data);
    for (size_t i = 0; i < n_heads; i++)
        r->matrices[i] = -1;
    for (uint32_t i = 0; i < c->n_alignment; i++)
        r->matrices[c->alignment[i].layer * c->n_heads + c->alignment[i].head] = (int32_t)i;
    return AKUNU_OK;
}

/* Tokens [first, first + n). */
static ak_status score_part(struct scorer *r, size_t first, size_t n, struct ak_error *error)
{
    struct akunu_batch_token batch[PASS_TOKENS];
    const struct ak_batch_scores into = {
        .data = r->scores->data + first * r->scores->n_positions,
        .matrices = r->matrices,
        .n_heads = r->s->model->spec.config.n_heads,
        .matrix_stride = r->n * r->scores->n_positions,
        .stride = r->scores->n_positions,
    };
    for (size_t i = 0; i < n; i++)
        batch[i] = (struct akunu_batch_token){ .token = r->tokens[first + i],
                                               .sequence = r->sequence,
                                               .logits = first + i + 1 < r->n &&
                                                         r->tokens[first + i + 1] < r->end };
    AK_TRY(ak_session_decode_scores(r->s, batch, n, &into, error));
    for (size_t i = 0; i < n && first + i + 1 < r->n; i++)
        r->probabilities[first + i] =
            batch[i].logits ? (float)ak_speech_probability(ak_session_logits(r->s, i), r->end,
                                                           r->tokens[first + i + 1]) :
                              0.0f;
    return AKUNU_OK;
}

static ak_status score_window(struct scorer *r, int32_t window, struct ak_error *error)
{
    AK_TRY(alloc_scores(r, window, error));
    AK_TRY(ak_session_sequence_new(r->s, &r->sequence, error));
    ak_status status = ak_session_attend(r->s, r->sequence, window, error);
    for (size_t i = 0, n; i < r->n && status == AKUNU_OK; i += n) {
        n = r->n - i < PASS_TOKENS ? r->n - i : PASS_TOKENS;
        n = n < r->s->batch ? n : r->s->batch;
        status = score_part(r, i, n, error);
    }
    ak_session_kv_sequence_free(&r->s->kv, r->sequence);
    return status;
}

ak_status ak_transcribe_score(struct ak_session *s, int32_t window, const int32_t *tokens, size_t n,
                              int32_t end, float *probabilities, struct ak_speech_scores *scores,
                              struct ak_error *error)
{
    struct scorer r = { .s = s,
                        .tokens = tokens,
                        .n = n,
                        .end = end,
                        .probabilities = probabilities,
                        .scores = scores };
    ak_status status = score_window(&r, window, error);
    ak_free(r.matrices);
    return status;
}

/* Repeat, presence and frequency penalties. Counts are updated per accepted token, so applying them
 * costs time in the number of distinct tokens, not in the window. */
#include "engine/sample/sampler_state.h"

#include "base/mem.h"

bool ak_sample_penalties_enabled(const struct akunu_sampling_params *s)
{
    return s->repeat_last_n != 0 && (s->repeat_penalty != 1.0f || s->presence_penalty != 0.0f ||
                                     s->frequency_penalty != 0.0f);
}

ak_status ak_sample_penalties_init(struct ak_sample_penalties *p,
                                   const struct akunu_sampling_params *sampling, uint32_t n_vocab,
                                   struct ak_error *error)
{
    *p = (struct ak_sample_penalties){
        .repeat = sampling->repeat_penalty,
        .presence = sampling->presence_penalty,
        .frequency = sampling->frequency_penalty,
        .window = sampling->repeat_last_n > 0 ? (uint32_t)sampling->repeat_last_n : 0,
        .counts = ak_alloc(n_vocab, sizeof *p->counts),
        .seen_index = ak_alloc(n_vocab, sizeof *p->seen_index),
        .seen = ak_alloc(n_vocab, sizeof *p->seen),
    };
    return p->counts && p->seen_index && p->seen ? AKUNU_OK :
                                                   ak_fail_memory(error, "the penalties", 0);
}

void ak_sample_penalties_release(struct ak_sample_penalties *p)
{
    ak_free(p->counts);
    ak_free(p->seen_index);
    ak_free(p->seen);
}

static void forget_token(struct ak_sample_penalties *p, int32_t token)
{
    if (--p->counts[token] > 0)
        return;
    int32_t last = p->seen[--p->n_seen];
    p->seen[p->seen_index[token]] = last;
    p->seen_index[last] = p->seen_index[token];
}

void ak_sample_penalties_accept(struct ak_sample_penalties *p,
                                const struct ak_sample_history *history, int32_t token)
{
    if (p->window > 0 && history->n >= p->window)
        forget_token(p, ak_sample_history_back(history, p->window - 1));
    if (p->counts[token]++ > 0)
        return;
    p->seen_index[token] = p->n_seen;
    p->seen[p->n_seen++] = token;
}

void ak_sample_penalties_apply(const struct ak_sample_penalties *p, float *logits)
{
    for (uint32_t i = 0; i < p->n_seen; i++) {
        int32_t token = p->seen[i];
        float logit = logits[token];
        float repeated = logit > 0.0f ? logit / p->repeat : logit * p->repeat;
        logits[token] = repeated - ((float)p->counts[token] * p->frequency + p->presence);
    }
}

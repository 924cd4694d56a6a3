#include "sample/penalties.h"

#include "base/mem.h"

bool ak_penalties_wanted(const struct akunu_sampling *s)
{
    return s->repeat_last_n != 0 && (s->repeat_penalty != 1.0f || s->presence_penalty != 0.0f ||
                                     s->frequency_penalty != 0.0f);
}

ak_status ak_penalties_init(struct ak_penalties *p, const struct akunu_sampling *sampling,
                            uint32_t n_vocab, struct ak_error *error)
{
    *p = (struct ak_penalties){
        .repeat = sampling->repeat_penalty,
        .presence = sampling->presence_penalty,
        .frequency = sampling->frequency_penalty,
        .window = sampling->repeat_last_n > 0 ? (uint32_t)sampling->repeat_last_n : 0,
        .counts = ak_alloc(n_vocab, sizeof *p->counts),
        .places = ak_alloc(n_vocab, sizeof *p->places),
        .seen = ak_alloc(n_vocab, sizeof *p->seen),
    };
    return p->counts && p->places && p->seen ? AKUNU_OK : ak_fail_memory(error, "the penalties", 0);
}

void ak_penalties_release(struct ak_penalties *p)
{
    ak_free(p->counts);
    ak_free(p->places);
    ak_free(p->seen);
}

static void forget(struct ak_penalties *p, int32_t token)
{
    if (--p->counts[token] > 0)
        return;
    int32_t last = p->seen[--p->n_seen];
    p->seen[p->places[token]] = last;
    p->places[last] = p->places[token];
}

void ak_penalties_accept(struct ak_penalties *p, const struct ak_history *history, int32_t token)
{
    if (p->window > 0 && history->n >= p->window)
        forget(p, ak_history_back(history, p->window - 1));
    if (p->counts[token]++ > 0)
        return;
    p->places[token] = p->n_seen;
    p->seen[p->n_seen++] = token;
}

void ak_penalties_apply(const struct ak_penalties *p, float *logits)
{
    for (uint32_t i = 0; i < p->n_seen; i++) {
        int32_t token = p->seen[i];
        float logit = logits[token];
        float repeated = logit > 0.0f ? logit / p->repeat : logit * p->repeat;
        logits[token] = repeated - ((float)p->counts[token] * p->frequency + p->presence);
    }
}

/* Internals of a sampler, private to this folder and its tests: recent tokens, chain, penalties,
 * DRY, Mirostat and adaptive-p. sampler.c creates it, sample.c runs it. */
#ifndef AK_ENGINE_SAMPLE_SAMPLER_STATE_H
#define AK_ENGINE_SAMPLE_SAMPLER_STATE_H

#include <assert.h>
#include <stdint.h>

#include "akunu/akunu.h"
#include "base/error.h"
#include "base/random.h"
#include "engine/sample/candidates.h"
#include "engine/sample/dry_breakers.h"
#include "engine/sample/sampler.h"

/* ---- Recent tokens ------------------------------------------------------ */
/* Ring of the last tokens of a context, as many as penalties and DRY look back. */

struct ak_sample_history {
    int32_t *ring; /* [size] */
    uint32_t size;
    uint32_t n;    /* filled */
    uint32_t next; /* index of the next write */
};

static inline void ak_sample_history_push(struct ak_sample_history *h, int32_t token)
{
    if (h->size == 0)
        return;
    h->ring[h->next] = token;
    h->next = h->next + 1 < h->size ? h->next + 1 : 0;
    h->n += h->n < h->size;
}

/* The token `back` places before the last one; back < h->n. */
static inline int32_t ak_sample_history_back(const struct ak_sample_history *h, uint32_t back)
{
    assert(back < h->n);
    return h->ring[back < h->next ? h->next - 1 - back : h->next + h->size - 1 - back];
}

/* ---- Sampler chain: chain.c --------------------------------------------- */
/* Samplers of a chain. Their order is set by the parameters. */

enum ak_sample_kind {
    AK_SAMPLE_PENALTIES,
    AK_SAMPLE_DRY,
    AK_SAMPLE_TOP_N_SIGMA,
    AK_SAMPLE_TOP_K,
    AK_SAMPLE_TYPICAL,
    AK_SAMPLE_TOP_P,
    AK_SAMPLE_MIN_P,
    AK_SAMPLE_XTC,
    AK_SAMPLE_TEMPERATURE,
    AK_SAMPLE_ADAPTIVE_P
};

/* A sampler may occur several times. */
enum { AK_SAMPLE_CHAIN_MAX = 32 };

struct ak_sample_chain {
    enum ak_sample_kind kinds[AK_SAMPLE_CHAIN_MAX];
    uint32_t n;
};

/* Parses the chain from the parameters' names or letters. Names are llama.cpp's with its aliases:
 * "top-k" and "topk" for "top_k", "temp", "nucleus", "typ", capitals. AKUNU_ERROR_ARGUMENT: an
 * unknown sampler, more than AK_SAMPLE_CHAIN_MAX, or both names and letters. */
ak_status ak_sample_parse_chain(const struct akunu_sampling_params *sampling,
                                struct ak_sample_chain *out, struct ak_error *error);

/* ---- Penalties: penalties.c --------------------------------------------- */
/* Repeat, presence and frequency penalties on tokens of the context. */

struct ak_sample_penalties {
    float repeat, presence, frequency;
    uint32_t window;      /* in tokens; 0: the whole context */
    uint32_t *counts;     /* by token: occurrences in the window */
    uint32_t *seen_index; /* by token: index in `seen`; undefined if the count is 0 */
    int32_t *seen;        /* distinct tokens of the window */
    uint32_t n_seen;
};

/* Whether the parameters enable penalties. */
bool ak_sample_penalties_enabled(const struct akunu_sampling_params *sampling);

ak_status ak_sample_penalties_init(struct ak_sample_penalties *p,
                                   const struct akunu_sampling_params *sampling, uint32_t n_vocab,
                                   struct ak_error *error);
void ak_sample_penalties_release(struct ak_sample_penalties *p); /* zeroed is allowed */

/* Counts a token of the vocabulary. Call it before the token is pushed to the history, which holds
 * at least `window` tokens. */
void ak_sample_penalties_accept(struct ak_sample_penalties *p,
                                const struct ak_sample_history *history, int32_t token);

/* Applies the penalties as llama.cpp does. A logit above 0 is divided by `repeat`, any other is
 * multiplied by it. Then `frequency` per occurrence and `presence` once are subtracted. */
void ak_sample_penalties_apply(const struct ak_sample_penalties *p, float *logits);

/* ---- DRY: dry.c --------------------------------------------------------- */
/* DRY ("don't repeat yourself") penalizes a token that would extend a repetition of the context's
 * end. The penalty grows with the length of the repetition
 * (https://github.com/oobabooga/text-generation-webui/pull/5677). */

struct ak_sample_dry {
    float multiplier;
    double base;
    uint32_t allowed_length, window; /* tokens */
    /* largest exponent of `base` that stays a finite float; 0: no limit */
    int32_t longest_exponent;
    struct ak_sample_dry_breakers breakers;

    /* scratch */
    int32_t *recent_tokens; /* [window], newest first */
    uint32_t *repeats; /* by index in recent_tokens: length of the match with the newest tokens */
    /* by token: 1 + length of the longest repetition that it would extend; 0: none */
    uint32_t *longest_repeats;
};

/* Whether the parameters enable DRY. */
bool ak_sample_dry_enabled(const struct akunu_sampling_params *sampling);

ak_status ak_sample_dry_init(struct ak_sample_dry *d, const struct akunu_sampling_params *sampling,
                             const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                             struct ak_error *error);
void ak_sample_dry_release(struct ak_sample_dry *d); /* zeroed is allowed */

/* Subtracts the penalties. The history holds at least `window` tokens. */
void ak_sample_dry_apply(struct ak_sample_dry *d, const struct ak_sample_history *history,
                         float *logits);

/* ---- Mirostat: mirostat.c ----------------------------------------------- */
/* Mirostat: truncation with a threshold that follows a target surprise in bits (Basu et al.,
 * https://arxiv.org/abs/2007.14966). */

struct ak_sample_mirostat {
    int version; /* 1: top-k from an estimate of Zipf's exponent; 2: truncation by surprise */
    double tau, eta;
    double mu; /* threshold in bits; starts at 2 tau */
    uint32_t n_vocab;
};

/* Filters the candidates, samples one at `unit` in [0, 1) and updates mu. Returns its index. */
uint32_t ak_sample_with_mirostat(struct ak_sample_mirostat *m, struct ak_sample_candidates *c,
                                 double unit);

/* ---- Adaptive-p: adaptive_p.c ------------------------------------------- */
/* Adaptive-p prefers tokens of a probability near a target. The target moves so that the mean
 * probability of the sampled tokens stays at the requested one
 * (https://github.com/ggml-org/llama.cpp/pull/17927). */

struct ak_sample_adaptive_p {
    double
        target; /* requested mean probability; below 0: samples from the unchanged distribution */
    double decay;
    /* decayed sum of the sampled tokens' probabilities, and of their weights */
    double sum, weight;
    int32_t pending; /* token sampled last, not accepted yet; -1: none */
    double pending_p;
};

void ak_sample_adaptive_p_init(struct ak_sample_adaptive_p *a,
                               const struct akunu_sampling_params *sampling);

/* Samples at `unit` in [0, 1) after the temperature; returns the index. `by_token` is scratch for
 * the vocabulary. */
uint32_t ak_sample_with_adaptive_p(struct ak_sample_adaptive_p *a, struct ak_sample_candidates *c,
                                   float temperature, double unit, float *by_token);

/* Updates the mean if `token` is the one sampled last. */
void ak_sample_adaptive_p_accept(struct ak_sample_adaptive_p *a, int32_t token);

/* ---- Sampler ------------------------------------------------------------ */
struct ak_sampler {
    struct akunu_sampling_params params; /* pointers are cleared after creation */
    float log_min_p;
    uint32_t n_vocab;
    struct ak_random random;

    /* The active samplers in order. The first n_leading ones edit logits token by token, as the
     * bias before them does. They work on a copy of all logits, from which candidates are then
     * collected. */
    struct ak_sample_chain chain;
    uint32_t n_leading;
    bool greedy; /* samples the most likely token: all samplers of the chain are leading ones */
    /* adaptive-p samples; else Mirostat if its version is not 0, else the softmax */
    bool uses_adaptive_p;
    /* the caller's, then -inf for end tokens if these are forbidden */
    struct akunu_logit_bias *bias;
    size_t n_bias;

    float *logits; /* copy of all logits, then scratch by token */
    struct ak_sample_candidates candidates;

    struct ak_sample_history history; /* as long as penalties or DRY look back */
    struct ak_sample_penalties penalties;
    struct ak_sample_dry dry;
    struct ak_sample_mirostat mirostat;
    struct ak_sample_adaptive_p adaptive_p;
};

/* Whether the sampler edits each token's logit separately. */
static inline bool ak_sample_edits_logits(enum ak_sample_kind kind)
{
    return kind == AK_SAMPLE_PENALTIES || kind == AK_SAMPLE_DRY;
}

#endif

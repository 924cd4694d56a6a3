/* What a sampler holds: made by sampler.c, used by choose.c. */
#ifndef AK_SAMPLE_SAMPLER_STATE_H
#define AK_SAMPLE_SAMPLER_STATE_H

#include <assert.h>
#include <stdint.h>

#include "akunu/akunu.h"
#include "base/error.h"
#include "base/random.h"
#include "sample/candidates.h"
#include "sample/dry_breakers.h"
#include "sample/sampler.h"

/* ---- Recent tokens ------------------------------------------------------ */
/* The last tokens of a context, as far back as the samplers look: a ring. */

struct ak_sample_history {
    int32_t *ring; /* of `size` tokens; NULL where that is 0 */
    uint32_t size;
    uint32_t n;    /* filled */
    uint32_t next; /* where the next token goes */
};

static inline void ak_sample_history_push(struct ak_sample_history *h, int32_t token)
{
    if (h->size == 0)
        return;
    h->ring[h->next] = token;
    h->next = h->next + 1 < h->size ? h->next + 1 : 0;
    h->n += h->n < h->size;
}

/* The token that came `back` ones before the last one; back < h->n. */
static inline int32_t ak_sample_history_back(const struct ak_sample_history *h, uint32_t back)
{
    assert(back < h->n);
    return h->ring[back < h->next ? h->next - 1 - back : h->next + h->size - 1 - back];
}

/* ---- Sampler chain: chain.c --------------------------------------------- */
/* The samplers that may stand in an order, and how orders are written. */

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

/* A sampler may come several times. */
enum { AK_SAMPLE_CHAIN_MAX = 32 };

struct ak_sample_chain {
    enum ak_sample_kind kinds[AK_SAMPLE_CHAIN_MAX];
    uint32_t n;
};

/* The order that the parameters' names or letters ask for. Names are llama.cpp's, with its
 * other spellings: "top-k" and "topk" for "top_k", "temp", "nucleus", "typ", capitals.
 * AKUNU_ERROR_ARGUMENT: an unknown sampler, too many of them, or both forms. */
ak_status ak_sample_parse_chain(const struct akunu_sampling *sampling, struct ak_sample_chain *out,
                                struct ak_error *error);

/* ---- Penalties: penalties.c --------------------------------------------- */
/* Penalties on tokens that are in the context already. */

struct ak_sample_penalties {
    float repeat, presence, frequency;
    uint32_t window;      /* of the last tokens; 0: the whole context */
    uint32_t *counts;     /* in the window, by token */
    uint32_t *seen_index; /* in `seen`, by token, where its count is not 0 */
    int32_t *seen;        /* the tokens in the window, each once */
    uint32_t n_seen;
};

/* True where the parameters ask for penalties. */
bool ak_sample_penalties_enabled(const struct akunu_sampling *sampling);

ak_status ak_sample_penalties_init(struct ak_sample_penalties *p,
                                   const struct akunu_sampling *sampling, uint32_t n_vocab,
                                   struct ak_error *error);
void ak_sample_penalties_release(struct ak_sample_penalties *p); /* zeroed is allowed */

/* Tells of a token of the vocabulary before it is pushed to the history, whose size is
 * the window or more. */
void ak_sample_penalties_accept(struct ak_sample_penalties *p,
                                const struct ak_sample_history *history, int32_t token);

/* Changes the logits of the tokens in the window, as llama.cpp does: one that is above 0
 * is divided by `repeat`, another one multiplied with it; `frequency` for each time that
 * the token is there, and `presence` once, are taken away. */
void ak_sample_penalties_apply(const struct ak_sample_penalties *p, float *logits);

/* ---- DRY: dry.c --------------------------------------------------------- */
/* DRY, "don't repeat yourself": a token that would lengthen a repetition of the context's
 * end loses the more, the longer that is
 * (https://github.com/oobabooga/text-generation-webui/pull/5677). */

struct ak_sample_dry {
    float multiplier;
    double base;
    uint32_t allowed_length, window; /* tokens */
    int32_t longest_exponent;        /* of `base` within the floats; 0: any is */
    struct ak_sample_dry_breakers breakers;

    /* scratch */
    int32_t *recent_tokens; /* the window's tokens, the newest first */
    uint32_t *repeats; /* by place in it: how many tokens from there on are the newest ones again */
    /* by token: 1 more than the longest repetition that it would go on with; 0: none */
    uint32_t *longest_repeats;
};

/* True where the parameters ask for it. */
bool ak_sample_dry_enabled(const struct akunu_sampling *sampling);

ak_status ak_sample_dry_init(struct ak_sample_dry *d, const struct akunu_sampling *sampling,
                             const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                             struct ak_error *error);
void ak_sample_dry_release(struct ak_sample_dry *d); /* zeroed is allowed */

/* Changes the logits of tokens that would go on with a repetition. The history has the
 * window's size or more. */
void ak_sample_dry_apply(struct ak_sample_dry *d, const struct ak_sample_history *history,
                         float *logits);

/* ---- Mirostat: mirostat.c ----------------------------------------------- */
/* Mirostat: a cut that moves so that the tokens' surprise stays at a wanted number of
 * bits (Basu et al., https://arxiv.org/abs/2007.14966). */

struct ak_sample_mirostat {
    int version; /* 1: its algorithm of Zipf's exponent and top-k; 2: a cut by surprise */
    double tau, eta;
    double mu; /* begins at 2 tau */
    uint32_t n_vocab;
};

/* Narrows the candidates, chooses one by `unit` in [0, 1), and learns from it. Gives its place. */
uint32_t ak_sample_with_mirostat(struct ak_sample_mirostat *m, struct ak_sample_candidates *c,
                                 double unit);

/* ---- Adaptive-p: adaptive_p.c ------------------------------------------- */
/* Adaptive-p: tokens whose probability is near a target, which moves so that the chosen
 * ones' mean stays at the one that was asked for
 * (https://github.com/ggml-org/llama.cpp/pull/17927). */

struct ak_sample_adaptive_p {
    double target; /* below 0: it draws from the distribution as it is */
    double decay;
    /* of the probabilities chosen before, each `decay` times the one after it */
    double sum, weight;
    int32_t pending; /* the token chosen last, until it is accepted; -1: none */
    double pending_p;
};

void ak_sample_adaptive_p_init(struct ak_sample_adaptive_p *a,
                               const struct akunu_sampling *sampling);

/* Chooses by `unit` in [0, 1) after the temperature; gives the place. `by_token` is scratch
 * for the vocabulary. */
uint32_t ak_sample_with_adaptive_p(struct ak_sample_adaptive_p *a, struct ak_sample_candidates *c,
                                   float temperature, double unit, float *by_token);

/* Learns from the chosen token where it is the one that goes on. */
void ak_sample_adaptive_p_accept(struct ak_sample_adaptive_p *a, int32_t token);

/* ---- TODO --------------------------------------------------------------- */
struct ak_sampler {
    struct akunu_sampling params; /* its pointers are not kept */
    float log_min_p;
    uint32_t n_vocab;
    struct ak_random random;

    /* The samplers that have something to do. The first n_leading ones change logits
     * token by token, and so does the bias before them: on a copy of all logits, from
     * which candidates are gathered after that. */
    struct ak_sample_chain chain;
    uint32_t n_leading;
    bool greedy;          /* the likeliest token: every sampler in the order is a leading one */
    bool uses_adaptive_p; /* adaptive-p chooses, else … */
    struct akunu_logit_bias *bias; /* the caller's, and ends that are forbidden */
    size_t n_bias;

    float *logits; /* that copy; scratch by token afterwards */
    struct ak_sample_candidates candidates;

    struct ak_sample_history history; /* as long as penalties and DRY look back */
    struct ak_sample_penalties penalties;
    struct ak_sample_dry dry;
    /* … Mirostat where its version is not 0, else a plain draw */
    struct ak_sample_mirostat mirostat;
    struct ak_sample_adaptive_p adaptive_p;
};

/* True for samplers that change each token's logit for itself. */
static inline bool ak_sample_edits_logits(enum ak_sample_kind kind)
{
    return kind == AK_SAMPLE_PENALTIES || kind == AK_SAMPLE_DRY;
}

#endif

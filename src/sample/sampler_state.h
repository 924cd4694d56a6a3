/* What a sampler holds: made by sampler.c, used by choose.c. */
#ifndef AK_SAMPLE_SAMPLER_STATE_H
#define AK_SAMPLE_SAMPLER_STATE_H

#include "sample/adaptive_p.h"
#include "sample/candidates.h"
#include "sample/dry.h"
#include "sample/mirostat.h"
#include "sample/penalties.h"
#include "base/random.h"
#include "sample/sampler.h"
#include "sample/chain.h"

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

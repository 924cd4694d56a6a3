/* Speculative decoding: a draft of the next tokens runs in the same pass as the last token, and the
 * tokens that agree with what is then sampled are accepted.
 *
 * A pass of a few tokens reads the weights once, as a pass of one token does, so an accepted token
 * costs little. A token's logits are the same bits in any pass, and the sampler sees them in the
 * same order with the same random numbers. So the text is the same with and without drafts, at
 * every temperature. A draft is a token, not a distribution, so this equals rejection sampling
 * (Leviathan et al. 2023): a draft token x is accepted with the model's probability p(x), and its
 * replacement has the distribution of p without x.
 *
 * Drafts come from the text itself or from a smaller model (draft.h). Before each pass the pass
 * cost model and the acceptance estimates decide which drafter runs, and how many tokens it drafts.
 * Lookup drafts are scored against the sampled token even if they did not run, which costs nothing.
 * Drafts pause while they have lost more than one pass and 1 % of all time.
 *
 * No drafts for models with recurrent state, which would compute the whole text again to rewind a
 * rejected token; none on devices or with relaxed rounding, where logits depend on the pass. */
#ifndef AK_ENGINE_GENERATE_SPECULATE_H
#define AK_ENGINE_GENERATE_SPECULATE_H

#include "engine/generate/draft.h"
#include "engine/session/session.h"

enum { AK_GEN_DRAFT_MAX = AK_SKINNY_MAX - 1 };

/* The draft of one pass. */
struct ak_gen_draft {
    uint32_t n;
    const int32_t *tokens;
    bool from_model;                      /* by the draft model */
    uint8_t confidence[AK_GEN_DRAFT_MAX]; /* by token: bin of the draft model's probability */
};

/* Decayed counts of accepted and drafted tokens. */
struct ak_gen_acceptance {
    double accepted, drafted;
};
enum { AK_GEN_CONFIDENCE_BINS = 8 };

struct ak_gen_speculation {
    struct ak_session_cost_model *cost_model; /* of the generating session */
    bool uses_lookup;
    struct ak_draft_model *draft;  /* NULL: no draft model */
    uint32_t draft_max, draft_min; /* tokens per draft */
    float probability_min;         /* below it the draft model's draft ends */
    struct ak_draft_lookup lookup;
    uint32_t match_length, match_position; /* lookup's draft of the next token */
    struct ak_gen_acceptance lookup_acceptance[AK_DRAFT_LOOKUP_MAX + 1],
        model_acceptance[AK_GEN_CONFIDENCE_BINS], model_acceptance_all;
    double balance, seconds; /* seconds won by drafts; seconds of all passes */
    /* passes between trials of a draft model that does not pay; passes since it last drafted */
    uint32_t retry_interval, n_skipped;
};

/* Whether drafts can be verified: no recurrent state, and logits that do not depend on the pass.
 * AKUNU_ERROR_UNSUPPORTED says why not. */
ak_status ak_gen_speculation_check(const struct ak_session *s, struct ak_error *error);

/* Takes the options of struct akunu_generation_params; draft may be NULL. *out has no text yet. */
ak_status ak_gen_speculation_begin(struct ak_session *s,
                                   const struct akunu_generation_params *generation,
                                   struct ak_draft_model *draft, struct ak_gen_speculation *out,
                                   struct ak_error *error);
void ak_gen_speculation_clear(struct ak_gen_speculation *s); /* all-zero allowed */

/* Adds tokens of the text, including the prompt. `sampled`: the model sampled them, so they update
 * the acceptance of lookup drafts. */
void ak_gen_speculation_add_tokens(struct ak_gen_speculation *s, const int32_t *ids, size_t n,
                                   bool sampled);

/* Drafts at most n_max tokens after the text, valid until the next call. */
ak_status ak_gen_speculation_draft(struct ak_gen_speculation *s, uint32_t n_max,
                                   struct ak_gen_draft *out, struct ak_error *error);

/* Records a pass with that draft (n = 0: none): it took `seconds` and accepted n_accepted
 * tokens. */
void ak_gen_speculation_update(struct ak_gen_speculation *s, const struct ak_gen_draft *draft,
                               uint32_t n_accepted, double seconds);

#endif

/* Several tokens a pass: guesses of the next ones are run together with the last one, and
 * stay as far as they are what is then chosen.
 *
 * A pass of a few tokens reads the weights once, as that of one token does, so a right guess
 * costs little. A token's logits are the same bits in any pass, and the sampler chooses from
 * them as it would have without guesses, in the same order and with the same random numbers.
 * So a text is the same with and without them, at every temperature; where the guess is a
 * token and no distribution, this is also what rejection sampling comes to (Leviathan et al.
 * 2023): a guess x stays with the probability p(x) that the model gives it, and what takes its
 * place has the distribution of p without x.
 *
 * Guesses come from the text itself (lookup.h) and from a smaller model (draft.h). How many,
 * and whose, is chosen before each pass by what passes of so many tokens take here (costs.h)
 * and by how often such guesses were right before. Guesses that the text gives are checked
 * against what was chosen even where they were not run, which costs nothing; what the guesses
 * of a pass have lost is made up for before there are more.
 *
 * Models that keep a running state cannot go back to where a guess was wrong without computing
 * their whole text again; they get no guesses.
 */
#ifndef AK_GENERATE_SPECULATE_H
#define AK_GENERATE_SPECULATE_H

#include "generate/draft.h"
#include "session/session.h"

enum { AK_GEN_DRAFT_MAX = AK_SESSION_SKINNY_MAX - 1 };

/* Guesses of one step. */
struct ak_gen_draft {
    uint32_t n;
    const int32_t *tokens;
    bool from_model;                      /* by the smaller model */
    uint8_t confidence[AK_GEN_DRAFT_MAX]; /* of these: how sure it was */
};

/* How often guesses of a kind were right; what is long ago counts less. */
struct ak_gen_acceptance {
    double accepted, drafted;
};
enum { AK_GEN_CONFIDENCE_BINS = 8 };

struct ak_gen_speculation {
    struct ak_session_cost_model *cost_model; /* of passes of the generating session */
    bool uses_lookup;
    struct ak_draft_model *draft;  /* NULL: none */
    uint32_t draft_max, draft_min; /* guesses of a pass */
    float probability_min;         /* of the smaller model */
    struct ak_draft_lookup lookup;
    uint32_t match_length, match_position; /* what the text itself says of its next token */
    struct ak_gen_acceptance lookup_acceptance[AK_DRAFT_LOOKUP_MAX + 1],
        model_acceptance[AK_GEN_CONFIDENCE_BINS], model_acceptance_all;
    double balance, seconds; /* won by guesses, and of all passes */
    /* passes to let go by before the smaller model is tried again */
    uint32_t retry_interval, n_skipped;
};

/* Whether guesses can be checked: not with a running state, and not where logits depend on
 * the pass. AKUNU_ERROR_UNSUPPORTED says why not. */
ak_status ak_gen_speculation_check(const struct ak_session *s, struct ak_error *error);

/* As struct akunu_generation says; draft may be NULL. *out is empty of text. */
ak_status ak_gen_speculation_begin(struct ak_session *s, const struct akunu_generation *generation,
                                   struct ak_draft_model *draft, struct ak_gen_speculation *out,
                                   struct ak_error *error);
void ak_gen_speculation_clear(struct ak_gen_speculation *s); /* an all-zero one too */

/* Tokens of the text, prompt included; `chosen`: the model's own. */
void ak_gen_speculation_add_tokens(struct ak_gen_speculation *s, const int32_t *ids, size_t n,
                                   bool chosen);

/* Guesses, at most `n_max`, of what follows the text. They live until the next call. */
ak_status ak_gen_speculation_draft(struct ak_gen_speculation *s, uint32_t n_max,
                                   struct ak_gen_draft *out, struct ak_error *error);

/* A pass with that guess (none: n = 0) took `seconds`, and its first n_accepted tokens were right.
 */
void ak_gen_speculation_update(struct ak_gen_speculation *s, const struct ak_gen_draft *draft,
                               uint32_t n_accepted, double seconds);

#endif

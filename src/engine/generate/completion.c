/* One completion: sampler, token stream, stop sequences, grammar and log-probabilities behind one
 * interface, so that single and parallel generation behave the same. */
#include "engine/generate/completion.h"

#include <math.h>
#include <string.h>

#include "base/gumbel.h"

ak_status ak_gen_completion_begin(struct ak_gen_completion *c,
                                  const struct akunu_generation_params *generation,
                                  struct ak_error *error)
{
    struct ak_model *model = c->session->model;
    unsigned flags = AKUNU_CONTINUE | (generation->special ? 0u : AKUNU_SKIP_SPECIAL);
    c->limit = generation->max_tokens < 0 ? UINT64_MAX : (uint64_t)generation->max_tokens;
    AK_TRY(ak_sample_create(generation->sampling, model->spec.config.vocab_size, model->tokenizer,
                            &c->sampler, error));
    if (model->tokenizer)
        AK_TRY(ak_tok_stream_create(model->tokenizer, flags, &c->stream, error));
    AK_TRY(ak_gen_stops_begin(&c->stops, generation->stops, generation->n_stops, error));
    if (generation->sampling->grammar)
        AK_TRY(ak_session_constraint_begin(model, generation->sampling->grammar->inner,
                                           &c->constraint, error));
    AK_TRY(ak_gen_reasoning_begin(&c->reasoning, generation->reasoning, model->tokenizer, error));
    c->on_piece = generation->on_piece;
    c->user = generation->user;
    c->on_logprobs = generation->on_logprobs;
    if (c->on_logprobs)
        AK_TRY(ak_sample_logprobs_init(&c->logprobs, generation->n_top_logprobs,
                                       model->spec.config.vocab_size, error));
    c->on_logits = generation->on_logits;
    if (c->on_logits)
        c->edited_logits = ak_alloc(model->spec.config.vocab_size, sizeof *c->edited_logits);
    if (c->on_logits && !c->edited_logits)
        return ak_fail_memory(error, "logits", model->spec.config.vocab_size * sizeof(float));
    c->uses_gumbel = ak_sample_matches_gumbel(c->sampler) && !c->constraint.matcher;
    c->samples_on_backend = c->uses_gumbel && !c->on_logprobs && !c->on_logits && !c->has_chain;
    c->gumbel = (struct ak_gumbel_params){ .temperature = generation->sampling->temperature,
                                           .seed = ak_sample_random_bits(c->sampler) };
    return AKUNU_OK;
}

uint32_t ak_gen_completion_n_best(const struct ak_gen_completion *c)
{
    if (c->on_logprobs || c->on_logits || c->has_chain || c->constraint.matcher)
        return 0;
    if (c->uses_gumbel)
        return c->gumbel.temperature > 0.0f ? 0 : 1;
    return ak_sample_n_best_unedited(c->sampler);
}

void ak_gen_completion_clear(struct ak_gen_completion *c)
{
    ak_session_constraint_end(&c->constraint);
    ak_tok_stream_free(c->stream);
    ak_gen_stops_clear(&c->stops);
    ak_sample_free(c->sampler);
    ak_sample_logprobs_release(&c->logprobs);
    ak_free(c->edited_logits);
}

void ak_gen_completion_add_context(struct ak_gen_completion *c, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ak_sample_accept(c->sampler, ids[i]);
}

static void add_to_chain(struct ak_gen_completion *c, const float *logits, int32_t token)
{
    uint32_t id = (uint32_t)token;
    const uint8_t bytes[4] = { (uint8_t)id, (uint8_t)(id >> 8), (uint8_t)(id >> 16),
                               (uint8_t)(id >> 24) };
    struct ak_sha256 h;
    ak_sha256_begin(&h);
    ak_sha256_add(&h, c->result->chain, sizeof c->result->chain);
    ak_sha256_add(&h, bytes, sizeof bytes);
    ak_sha256_add(&h, logits, c->session->model->spec.config.vocab_size * sizeof *logits);
    ak_sha256_end(&h, c->next_chain);
}

/* What is asked for about a token that was sampled from these logits. */
static void record(struct ak_gen_completion *c, const float *logits, int32_t token)
{
    if (c->on_logprobs)
        c->logprob = ak_sample_logprobs_compute(&c->logprobs, logits,
                                                c->session->model->spec.config.vocab_size, token);
    if (c->has_chain)
        add_to_chain(c, logits, token);
}

ak_status ak_gen_completion_find_closing(struct ak_gen_completion *c, int32_t *token,
                                         struct ak_error *error)
{
    bool allowed = true;
    *token = ak_gen_reasoning_forced(&c->reasoning);
    if (*token >= 0 && c->constraint.matcher)
        AK_TRY(ak_grammar_matcher_allows(c->constraint.matcher, *token, &allowed, error));
    if (!allowed) {
        ak_gen_reasoning_stop(&c->reasoning);
        *token = -1;
    }
    return AKUNU_OK;
}

/* The logits as the host changes them. */
static const float *edit_logits(struct ak_gen_completion *c, const float *logits)
{
    size_t n_vocab = c->session->model->spec.config.vocab_size;
    if (!c->on_logits)
        return logits;
    memcpy(c->edited_logits, logits, n_vocab * sizeof *logits);
    c->on_logits(c->index, c->edited_logits, n_vocab, c->user);
    return c->edited_logits;
}

ak_status ak_gen_completion_sample(struct ak_gen_completion *c, const float *logits, int32_t *token,
                                   struct ak_error *error)
{
    AK_TRY(ak_gen_completion_find_closing(c, token, error));
    if (*token < 0)
        AK_TRY(ak_session_constraint_sample(&c->constraint, c->sampler, edit_logits(c, logits),
                                            token, error));
    record(c, logits, *token);
    return AKUNU_OK;
}

ak_status ak_gen_completion_sample_at(struct ak_gen_completion *c, const float *logits,
                                      uint32_t position, int32_t *token, struct ak_error *error)
{
    float best = -INFINITY;
    if (!c->uses_gumbel || c->gumbel.temperature <= 0.0f ||
        ak_gen_reasoning_forced(&c->reasoning) >= 0)
        return ak_gen_completion_sample(c, logits, token, error);
    *token = -1;
    const float *edited = edit_logits(c, logits);
    for (uint32_t i = 0; i < c->session->model->spec.config.vocab_size; i++) {
        float score =
            ak_gumbel_score(edited[i], c->gumbel.temperature, c->gumbel.seed, position, i);
        if (score > best) {
            best = score;
            *token = (int32_t)i;
        }
    }
    if (*token < 0)
        return ak_sample_fail_empty(error);
    record(c, logits, *token);
    return AKUNU_OK;
}

ak_status ak_gen_completion_find_forced(const struct ak_gen_completion *c, uint32_t n_max,
                                        int32_t *tokens, uint32_t *n, struct ak_error *error)
{
    size_t n_forced = 0;
    if (c->constraint.matcher)
        AK_TRY(ak_grammar_matcher_find_forced_tokens(c->constraint.matcher, tokens, n_max,
                                                     &n_forced, error));
    *n = (uint32_t)n_forced;
    return AKUNU_OK;
}

static bool ends_text(const struct ak_gen_completion *c, int32_t token)
{
    const struct ak_tokenizer *tokenizer = c->session->model->tokenizer;
    return tokenizer && ak_tok_is_end(tokenizer, token);
}

static void end_text(struct ak_gen_completion *c, enum akunu_stop why)
{
    c->ended = true;
    c->result->stop = why;
}

/* Reports the last token. The text ends if the host returns false or a stop sequence was found. */
static ak_status report_token(struct ak_gen_completion *c, struct ak_error *error)
{
    const char *text = "";
    size_t n_bytes = 0;
    bool stopped = false;
    if (c->stream)
        AK_TRY(ak_tok_stream_push(c->stream, c->token, &text, &n_bytes, error));
    AK_TRY(ak_gen_stops_push(&c->stops, &text, &n_bytes, &stopped, error));
    if (c->on_logprobs)
        c->on_logprobs(c->index, c->token, c->logprob, c->logprobs.top, c->logprobs.n_top, c->user);
    if (c->on_piece && !c->on_piece(c->index, c->token, text, n_bytes, c->user))
        end_text(c, AKUNU_STOP_CALLBACK);
    else if (stopped) {
        end_text(c, AKUNU_STOP_TEXT);
        c->result->stop_index = c->stops.found;
    }
    return AKUNU_OK;
}

/* Advances the grammar by the last token; *complete: nothing may follow. */
static ak_status advance_grammar(struct ak_gen_completion *c, bool *complete,
                                 struct ak_error *error)
{
    bool allowed = true;
    *complete = false;
    if (!c->constraint.matcher)
        return AKUNU_OK;
    AK_TRY(ak_grammar_matcher_accept_token(c->constraint.matcher, c->token, &allowed, error));
    if (!allowed)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the grammar does not allow token %d here",
                       (int)c->token);
    *complete = ak_grammar_matcher_must_end(c->constraint.matcher);
    return AKUNU_OK;
}

/* An end token or a completed grammar takes precedence over the length limit. */
ak_status ak_gen_completion_append(struct ak_gen_completion *c, int32_t token,
                                   struct ak_error *error)
{
    bool complete;
    c->token = token;
    if (ends_text(c, token)) {
        end_text(c, AKUNU_STOP_END);
        return AKUNU_OK;
    }
    c->result->n_generated++;
    if (c->has_chain)
        memcpy(c->result->chain, c->next_chain, sizeof c->result->chain);
    ak_sample_accept(c->sampler, token);
    AK_TRY(ak_gen_reasoning_add(&c->reasoning, token, error));
    AK_TRY(advance_grammar(c, &complete, error));
    AK_TRY(report_token(c, error));
    if (c->ended)
        return AKUNU_OK;
    if (complete)
        end_text(c, AKUNU_STOP_END);
    else if (c->result->n_generated == c->limit)
        end_text(c, AKUNU_STOP_LENGTH);
    return AKUNU_OK;
}

void ak_gen_completion_reserve_pages(struct ak_gen_completion *c, uint32_t *reserved)
{
    const struct ak_session_kv *kv = &c->session->kv;
    uint32_t wanted = 0;
    if (ak_session_kv_sequence(kv, c->sequence)->length < kv->context)
        wanted = ak_session_kv_count_new_pages(kv, c->sequence, 1);
    else
        end_text(c, AKUNU_STOP_CONTEXT);
    if (wanted > kv->n_free - *reserved)
        end_text(c, AKUNU_STOP_CONTEXT);
    else
        *reserved += wanted;
}

ak_status ak_gen_completion_finish(struct ak_gen_completion *c, struct ak_error *error)
{
    const char *text;
    size_t n_bytes;
    bool stopped;
    if (!c->stream || !c->on_piece || c->result->stop == AKUNU_STOP_CALLBACK ||
        c->result->stop == AKUNU_STOP_TEXT)
        return AKUNU_OK;
    ak_tok_stream_end(c->stream, &text, &n_bytes);
    AK_TRY(ak_gen_stops_push(&c->stops, &text, &n_bytes, &stopped, error));
    if (n_bytes > 0 && !c->on_piece(c->index, -1, text, n_bytes, c->user))
        return AKUNU_OK;
    ak_gen_stops_end(&c->stops, &text, &n_bytes);
    if (n_bytes > 0 && !stopped)
        c->on_piece(c->index, -1, text, n_bytes, c->user);
    return AKUNU_OK;
}

#include "generate/choices.h"

#include "base/mem.h"
#include "base/system.h"
#include "generate/choice.h"

/* To whom a choice's pieces go. */
struct listener {
    size_t choice;
    akunu_choice_fn *on_piece;
    void *user;
};

struct choices {
    const struct ak_request *request;
    struct ak_session *session;
    size_t n;
    struct ak_choice *all;
    struct listener *listeners;
    struct akunu_batch_token *pass;
    size_t *in_pass; /* which choice each of its tokens is of */
    double started;
};

static bool on_piece(akunu_token token, const char *text, size_t n_bytes, void *user)
{
    const struct listener *l = user;
    return l->on_piece(l->choice, token, text, n_bytes, l->user);
}

/* Choice i is what a text alone would be with the i-th next seed. */
static ak_status begin(struct choices *c, const struct ak_kv_sequence *sequence,
                       struct ak_error *error)
{
    for (size_t i = 0; i < c->n; i++) {
        struct akunu_generation own = *c->request->generation;
        if (own.sampling.seed != UINT64_MAX)
            own.sampling.seed += i;
        AK_TRY(ak_choice_begin(&c->all[i], &own, error));
        ak_choice_see(&c->all[i], sequence->tokens, sequence->length);
        ak_choice_see(&c->all[i], c->request->ids, c->request->n_ids);
    }
    return AKUNU_OK;
}

/* The prompt, and the first token of each. */
static ak_status prompt(struct choices *c, int32_t *sequences, struct ak_error *error)
{
    const struct ak_request *r = c->request;
    const struct ak_kv_sequence *sequence = ak_kv_sequence(&c->session->kv, sequences[0]);
    uint32_t before = sequence->length;
    double started = ak_seconds();
    size_t last;
    ak_status status = ak_session_prefill(c->session, sequences[0], r->ids, r->n_ids, r->cancel,
                                          r->user, &last, error);
    for (size_t i = 1; status == AKUNU_OK && i < c->n; i++) {
        status = ak_session_fork(c->session, sequences[0], sequence->length, &sequences[i], error);
        c->all[i].sequence = sequences[i];
    }
    for (size_t i = 0; status == AKUNU_OK && i < c->n && c->all[i].limit > 0; i++)
        status = ak_choice_choose(&c->all[i], ak_session_logits(c->session, last), &c->all[i].token,
                                  error);
    for (size_t i = 0; i < c->n; i++) {
        c->all[i].result->n_prompt = sequence->length - before;
        c->all[i].result->prompt_seconds = ak_seconds() - started;
    }
    return status;
}

static ak_status take(struct choices *c, struct ak_choice *choice, int32_t token,
                      struct ak_error *error)
{
    AK_TRY(ak_choice_take(choice, token, error));
    choice->result->generate_seconds = ak_seconds() - c->started;
    return choice->ended ? ak_choice_finish(choice, error) : AKUNU_OK;
}

/* The next pass: a token of each choice that goes on. */
static ak_status collect(struct choices *c, size_t *n, struct ak_error *error)
{
    *n = 0;
    uint32_t reserved = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct ak_choice *choice = &c->all[i];
        if (choice->ended)
            continue;
        ak_choice_check_room(choice, &reserved);
        if (choice->ended) {
            AK_TRY(ak_choice_finish(choice, error));
            continue;
        }
        c->in_pass[*n] = i;
        c->pass[(*n)++] = (struct akunu_batch_token){ .token = choice->token,
                                                      .sequence = choice->sequence,
                                                      .logits = true };
    }
    return AKUNU_OK;
}

static ak_status texts(struct choices *c, struct ak_error *error)
{
    const struct ak_request *r = c->request;
    c->started = ak_seconds();
    for (size_t i = 0; i < c->n; i++)
        AK_TRY(take(c, &c->all[i], c->all[i].token, error));
    for (size_t n;;) {
        AK_TRY(collect(c, &n, error));
        if (n == 0)
            return AKUNU_OK;
        if (r->cancel && r->cancel(r->user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled after %llu tokens",
                           (unsigned long long)c->all[0].result->n_generated);
        AK_TRY(ak_session_decode(c->session, c->pass, n, error));
        for (size_t k = 0; k < n; k++) {
            struct ak_choice *choice = &c->all[c->in_pass[k]];
            uint32_t position = ak_kv_sequence(&c->session->kv, choice->sequence)->length - 1;
            int32_t token;
            AK_TRY(
                ak_choice_draw(choice, ak_session_logits(c->session, k), position, &token, error));
            AK_TRY(take(c, choice, token, error));
        }
    }
}

static ak_status allocate(struct choices *c, const int32_t *sequences, struct ak_error *error)
{
    const struct ak_kv_sequence *sequence;
    if (c->n == 0 || c->n > c->session->batch)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%zu choices were asked for, and a pass takes 1 to %u tokens", c->n,
                       (unsigned)c->session->batch);
    AK_TRY(ak_session_find(c->session, sequences[0], &sequence, error));
    c->all = ak_alloc(c->n, sizeof *c->all);
    c->listeners = ak_alloc(c->n, sizeof *c->listeners);
    c->pass = ak_alloc(c->n, sizeof *c->pass);
    c->in_pass = ak_alloc(c->n, sizeof *c->in_pass);
    return c->all && c->listeners && c->pass && c->in_pass ?
               AKUNU_OK :
               ak_fail_memory(error, "the choices", 0);
}

static void link_up(struct choices *c, akunu_choice_fn *listen, int32_t first,
                    struct akunu_result *results)
{
    for (size_t i = 0; i < c->n; i++) {
        c->listeners[i] =
            (struct listener){ .choice = i, .on_piece = listen, .user = c->request->user };
        c->all[i] = (struct ak_choice){ .session = c->session,
                                        .sequence = i == 0 ? first : -1,
                                        .on_piece = listen ? on_piece : NULL,
                                        .user = &c->listeners[i],
                                        .logprobs_user = c->request->user,
                                        .result = &results[i] };
    }
}

static ak_status run(struct choices *c, int32_t *sequences, struct ak_error *error)
{
    AK_TRY(begin(c, ak_kv_sequence(&c->session->kv, sequences[0]), error));
    AK_TRY(prompt(c, sequences, error));
    for (size_t i = 0; c->all[0].limit == 0 && i < c->n; i++)
        c->all[i].result->stop = AKUNU_STOP_LENGTH;
    return c->all[0].limit == 0 ? AKUNU_OK : texts(c, error);
}

ak_status ak_generate_choices(const struct ak_request *request, size_t n, akunu_choice_fn *listen,
                              int32_t *sequences, struct akunu_result *results,
                              struct ak_error *error)
{
    struct choices c = { .request = request, .session = request->session, .n = n };
    for (size_t i = 0; i < n; i++)
        results[i] = (struct akunu_result){ .size = sizeof *results, .stop = AKUNU_STOP_CALLBACK };
    ak_status status = allocate(&c, sequences, error);
    if (status == AKUNU_OK) {
        link_up(&c, listen, sequences[0], results);
        status = run(&c, sequences, error);
    }
    for (size_t i = 0; c.all && i < n; i++)
        ak_choice_clear(&c.all[i]);
    for (size_t i = 1; status != AKUNU_OK && i < n; i++)
        if (sequences[i] >= 0) {
            ak_kv_free(&c.session->kv, sequences[i]);
            sequences[i] = -1;
        }
    ak_free(c.all);
    ak_free(c.listeners);
    ak_free(c.pass);
    ak_free(c.in_pass);
    return status;
}

/* How long handles live and who may use them: freed in any order, and one call per session. */
#include "tests/api/session.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "akunu/akunu.h"

static struct akunu_model *load(void)
{
    char path[4096];
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, sizeof path, "%s/model.gguf", data);
    struct akunu_model *model = akunu_model_load(path, NULL);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

/* ---- Free orders -------------------------------------------------------- */
enum { MODEL, SESSION, STREAM, SAMPLER, GRAMMAR, CONSTRAINED, N_HANDLES };

struct handles {
    struct akunu_model *model;
    struct akunu_session *session;
    struct akunu_stream *stream;
    struct akunu_sampler *sampler, *constrained;
    struct akunu_grammar *grammar;
    float logits[4096];
};

static void open_all(struct handles *h)
{
    struct akunu_model_info info;
    struct akunu_sampling_params sampling;
    h->model = load();
    ck_assert_int_eq(akunu_model_get_info(h->model, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_le(info.vocab_size, sizeof h->logits / sizeof *h->logits);
    h->session = open_session(h->model);
    h->stream = akunu_stream_new(akunu_model_tokenizer(h->model), 0);
    h->grammar = akunu_grammar_parse("root ::= [a-z]+", 15);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    h->sampler = akunu_sampler_new(h->model, &sampling);
    sampling.grammar = h->grammar;
    h->constrained = akunu_sampler_new(h->model, &sampling);
    ck_assert(h->stream && h->sampler && h->grammar && h->constrained);
}

/* Uses what is left. A grammar and a model show by those that hold them. */
static void use(struct handles *h)
{
    const char *text;
    size_t n;
    if (h->session) {
        akunu_sequence sequence = akunu_sequence_new(h->session);
        ck_assert_int_ge(sequence, 0);
        ck_assert_int_eq(
            akunu_session_decode(h->session, &(struct akunu_batch_token){ 5, sequence, true }, 1),
            AKUNU_OK);
        ck_assert_ptr_nonnull(akunu_session_logits(h->session, 0));
        akunu_sequence_free(h->session, sequence);
    }
    if (h->stream)
        ck_assert_int_eq(akunu_stream_push(h->stream, 40, &text, &n), AKUNU_OK);
    if (h->sampler)
        ck_assert_int_ge(akunu_sampler_sample(h->sampler, h->logits), 0);
    if (h->constrained)
        ck_assert_int_ge(akunu_sampler_sample(h->constrained, h->logits), 0);
}

static void free_handle(struct handles *h, int which)
{
    switch (which) {
    case MODEL: akunu_model_free(h->model); break;
    case SESSION: akunu_session_free(h->session), h->session = NULL; break;
    case STREAM: akunu_stream_free(h->stream), h->stream = NULL; break;
    case SAMPLER: akunu_sampler_free(h->sampler), h->sampler = NULL; break;
    case GRAMMAR: akunu_grammar_free(h->grammar); break;
    case CONSTRAINED: akunu_sampler_free(h->constrained), h->constrained = NULL; break;
    }
}

/* Each handle comes first once, then the others in turn; those left are used after each. */
START_TEST(any_order)
{
    struct handles h = { 0 };
    open_all(&h);
    for (int i = 0; i < N_HANDLES; i++) {
        free_handle(&h, (_i + i) % N_HANDLES);
        use(&h);
    }
}
END_TEST

START_TEST(reverse_order)
{
    struct handles h = { 0 };
    open_all(&h);
    for (int i = N_HANDLES; i > 0; i--) {
        free_handle(&h, (_i + i) % N_HANDLES);
        use(&h);
    }
}
END_TEST

/* ---- One call at a time ------------------------------------------------- */
struct listener {
    struct akunu_model *model;
    struct akunu_session *session;
    akunu_sequence sequence;
    unsigned n_calls;
    bool frees;
    akunu_token tokens[8];
};

/* Every call of a session in use is refused, with a message, and changes nothing. */
static void try_all(struct listener *l)
{
    const akunu_token id = 5;
    const struct akunu_batch_token token = { id, l->sequence, true };
    const struct akunu_ids text = { &id, 1 };
    struct akunu_session *s = l->session;
    struct akunu_memory memory;
    struct akunu_counters counters;
    struct akunu_generation_params generation;
    akunu_sequence sequences[2] = { l->sequence, -1 };
    size_t n;
    float out[1];

    ck_assert_int_eq(akunu_session_decode(s, &token, 1), AKUNU_ERROR_BUSY);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "in use"));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_BUSY);
    ck_assert_int_eq(
        akunu_session_prefill(s, l->sequence, &(struct akunu_ids){ &id, 1 }, NULL, NULL, &n),
        AKUNU_ERROR_BUSY);
    ck_assert_int_eq(
        akunu_session_generate(s, l->sequence, &(struct akunu_ids){ &id, 1 }, NULL, NULL),
        AKUNU_ERROR_BUSY);
    ck_assert_int_eq(
        akunu_session_generate_parallel(s, sequences, 2, &(struct akunu_ids){ &id, 1 }, NULL, NULL),
        AKUNU_ERROR_BUSY);
    ck_assert_int_eq(akunu_session_complete(s, l->sequence, "a", 1, NULL, NULL), AKUNU_ERROR_BUSY);
    ck_assert_int_eq(akunu_session_embed(s, &text, 1, NULL, out), AKUNU_ERROR_BUSY);
    ck_assert_ptr_null(akunu_session_logits(s, 0));
    ck_assert_int_eq(akunu_sequence_new(s), -1);
    ck_assert_int_eq(akunu_sequence_fork(s, l->sequence, 0), -1);
    ck_assert_int_eq(akunu_sequence_rewind(s, l->sequence, 0), AKUNU_ERROR_BUSY);
    ck_assert_uint_eq(akunu_sequence_length(s, l->sequence), 0);
    akunu_sequence_free(s, l->sequence);
    ck_assert_int_eq(akunu_sequence_save(s, l->sequence, "/nonexistent/x"), AKUNU_ERROR_BUSY);
    ck_assert_int_eq(akunu_sequence_load(s, l->sequence, "/nonexistent/x"), AKUNU_ERROR_BUSY);
    ck_assert_int_eq(
        akunu_sequence_restore(s, l->sequence, &(struct akunu_ids){ &id, 1 }, NULL, &n),
        AKUNU_ERROR_BUSY);
    ck_assert_int_eq(akunu_sequence_keep(s, l->sequence, 1, NULL), AKUNU_ERROR_BUSY);
    ck_assert_int_eq(akunu_model_get_memory(l->model, s, &memory, sizeof memory), AKUNU_ERROR_BUSY);
    ck_assert_int_eq(akunu_session_get_counters(s, &counters, sizeof counters), AKUNU_ERROR_BUSY);

    /* as a draft of another session's call, too, which is then free again */
    struct akunu_session *other = open_session(l->model);
    akunu_generation_params_default(&generation, sizeof generation);
    generation.draft = s;
    akunu_sequence sequence = akunu_sequence_new(other);
    ck_assert_int_eq(
        akunu_session_generate(other, sequence, &(struct akunu_ids){ &id, 1 }, &generation, NULL),
        AKUNU_ERROR_BUSY);
    ck_assert_int_eq(
        akunu_session_prefill(other, sequence, &(struct akunu_ids){ &id, 1 }, NULL, NULL, &n),
        AKUNU_OK);
    akunu_session_free(other);

    /* what never changes may be asked at any time */
    ck_assert_uint_gt(akunu_session_context(s), 0);
}

static void *in_thread(void *user)
{
    try_all(user);
    return NULL;
}

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct listener *l = user;
    pthread_t thread;
    (void)index, (void)text, (void)n_bytes;
    l->tokens[l->n_calls++] = token;
    if (l->frees) {
        if (l->n_calls == 1)
            akunu_session_free(l->session);
        return l->n_calls < 3;
    }
    try_all(l);
    ck_assert_int_eq(pthread_create(&thread, NULL, in_thread, l), 0);
    pthread_join(thread, NULL);
    return l->n_calls < 3;
}

static bool on_cancel(void *user)
{
    struct listener *l = user;
    l->n_calls++;
    try_all(l);
    return false;
}

static enum akunu_status generate(struct listener *l)
{
    const akunu_token ids[] = { 5, 6, 7 };
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling;
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    sampling.ignore_end = true;
    sampling.seed = 1;
    generation.sampling = &sampling;
    generation.max_tokens = 8;
    generation.on_piece = on_piece;
    generation.user = l;
    return akunu_session_generate(l->session, l->sequence, &(struct akunu_ids){ ids, 3 },
                                  &generation, NULL);
}

static struct listener listen_to(struct akunu_model *model)
{
    struct akunu_session *session = open_session(model);
    return (struct listener){ .model = model,
                              .session = session,
                              .sequence = akunu_sequence_new(session) };
}

START_TEST(calls_within_calls)
{
    const akunu_token ids[] = { 5, 6, 7 };
    size_t last;
    struct akunu_model *model = load();
    struct listener l = listen_to(model);
    ck_assert_msg(generate(&l) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_uint_eq(l.n_calls, 3);
    uint32_t length = akunu_sequence_length(l.session, l.sequence);
    ck_assert_uint_ge(length, 3); /* nothing was lost, and the session is free again */
    l.n_calls = 0;
    ck_assert_int_eq(akunu_session_prefill(l.session, l.sequence, &(struct akunu_ids){ ids, 3 },
                                           on_cancel, &l, &last),
                     AKUNU_OK);
    ck_assert_uint_eq(l.n_calls, 1);
    ck_assert_uint_eq(akunu_sequence_length(l.session, l.sequence), length + 3);
    akunu_session_free(l.session);
    akunu_model_free(model);
}
END_TEST

/* Freed in its own callback, after the model: the call goes on to the same tokens and ends as it
 * would, then the session does. */
START_TEST(freed_in_a_callback)
{
    struct akunu_model *model = load();
    struct listener kept = listen_to(model), freed = listen_to(model);
    ck_assert_int_eq(generate(&kept), AKUNU_OK);
    akunu_session_free(kept.session);
    freed.frees = true;
    akunu_model_free(model);
    ck_assert_int_eq(generate(&freed), AKUNU_OK);
    ck_assert_uint_eq(freed.n_calls, 3);
    ck_assert_mem_eq(freed.tokens, kept.tokens, 3 * sizeof *kept.tokens);
}
END_TEST

START_TEST(a_draft_of_its_own)
{
    struct akunu_model *model = load();
    struct listener l = listen_to(model);
    const akunu_token id = 5;
    struct akunu_generation_params generation;
    akunu_generation_params_default(&generation, sizeof generation);
    generation.draft = l.session;
    ck_assert_int_eq(akunu_session_generate(l.session, l.sequence, &(struct akunu_ids){ &id, 1 },
                                            &generation, NULL),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "draft"));
    ck_assert_uint_eq(akunu_sequence_length(l.session, l.sequence), 0);
    akunu_session_free(l.session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lifetime");
    TCase *orders = tcase_create("orders"), *calls = tcase_create("calls");
    tcase_set_timeout(orders, 120);
    tcase_set_timeout(calls, 120);
    tcase_add_loop_test(orders, any_order, 0, N_HANDLES);
    tcase_add_loop_test(orders, reverse_order, 0, N_HANDLES);
    tcase_add_test(calls, calls_within_calls);
    tcase_add_test(calls, freed_in_a_callback);
    tcase_add_test(calls, a_draft_of_its_own);
    suite_add_tcase(suite, orders);
    suite_add_tcase(suite, calls);
    return test_run(suite);
}

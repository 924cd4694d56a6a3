/* Sessions over a backend that shows which tokens a logit stands on: passes, their
 * order, errors that change nothing, the context's size and
 * generation. */
#include "generate/generate.h"

#include <math.h>
#include <stdio.h>

#include "tests/fake_backend.h"

enum { CONTEXT = 300, BATCH = 32 };

struct fixture {
    struct fake_backend backend;
    struct ak_model model;
    struct akunu_session_params params;
    struct ak_session *session;
    struct ak_error error;
    char log[512];
    int n_warnings;
};

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    struct fixture *f = user;
    snprintf(f->log, sizeof f->log, "%s", line);
    f->n_warnings += level == AKUNU_LOG_WARN;
}

static struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    ck_assert_ptr_nonnull(f);
    f->backend.base.ops = &fake_ops;
    f->model.backend = &f->backend.base;
    f->model.spec.config = (struct ak_spec_config){
        .n_layers = 1, .n_kv_heads = 1, .head_dim = 1, .vocab_size = FAKE_VOCAB, .context = 512
    };
    f->params = (struct akunu_session_params){ .size = sizeof f->params,
                                               .context = CONTEXT,
                                               .batch = BATCH,
                                               .max_sequences = 4,
                                               .n_threads = 1,
                                               .k_type = AKUNU_KV_F32,
                                               .v_type = AKUNU_KV_F32,
                                               .log = on_log,
                                               .user = f };
    return f;
}

static struct ak_session *open_session(struct fixture *f)
{
    ck_assert_msg(ak_session_create(&f->model, &f->params, &f->session, &f->error) == AKUNU_OK,
                  "%s", f->error.message);
    return f->session;
}

static void fixture_free(struct fixture *f)
{
    ak_session_free(f->session);
    ck_assert_uint_eq(f->backend.allocated, 0);
    ck_assert_int_eq(f->backend.n_prepared, 0);
    free(f);
}

static int32_t new_sequence(struct fixture *f)
{
    int32_t sequence;
    ck_assert_int_eq(ak_session_sequence_new(f->session, &sequence, &f->error), AKUNU_OK);
    return sequence;
}

/* An id for position `at` of text number `text`. */
static int32_t id(int text, uint32_t at)
{
    return (int32_t)(fake_mix((uint64_t)text + 5, at) % FAKE_VOCAB);
}

static const int32_t *text_of(int text)
{
    static int32_t ids[8][CONTEXT];
    for (uint32_t i = 0; i < CONTEXT; i++)
        ids[text][i] = id(text, i);
    return ids[text];
}

static void check_logits(const float *logits, const int32_t *ids, uint32_t n)
{
    ck_assert_ptr_nonnull(logits);
    for (uint32_t v = 0; v < FAKE_VOCAB; v++)
        ck_assert(logits[v] == fake_logit(ids, n, v));
}

/* Runs tokens [first, first + n) of a text as one pass. */
static ak_status run(struct fixture *f, int32_t sequence, int text, uint32_t first, uint32_t n)
{
    struct akunu_batch_token tokens[BATCH + 1];
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (struct akunu_batch_token){ id(text, first + i), sequence, true };
    return ak_session_decode(f->session, tokens, n, &f->error);
}

/* ---- Passes ------------------------------------------------------------- */
START_TEST(one_sequence)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f);
    uint32_t at = 0;
    static const uint32_t sizes[] = { 1, 1, 32, 30, 1, 32, 7, 32, 32, 31, 1, 32, 32, 32 };
    for (size_t i = 0; at < CONTEXT && i < sizeof sizes / sizeof *sizes; at += sizes[i++]) {
        uint32_t n = sizes[i] < CONTEXT - at ? sizes[i] : CONTEXT - at;
        ck_assert_int_eq(run(f, s, 0, at, n), AKUNU_OK);
        for (uint32_t j = 0; j < n; j++)
            check_logits(ak_session_logits(f->session, j), text_of(0), at + j + 1);
        ck_assert_ptr_null(ak_session_logits(f->session, n));
    }
    ck_assert_uint_ge(at, CONTEXT - 31);
    fixture_free(f);
}
END_TEST

/* Tokens of several sequences, mixed as one likes; logits of some. */
START_TEST(mixed_sequences)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s[3];
    uint32_t length[3] = { 0 };
    for (int i = 0; i < 3; i++)
        s[i] = new_sequence(f);
    for (int round = 0; round < 9; round++) {
        struct akunu_batch_token tokens[BATCH];
        uint32_t text[BATCH], position[BATCH];
        for (uint32_t i = 0; i < BATCH; i++) {
            text[i] = (uint32_t)fake_mix((uint64_t)round, i) % 3;
            position[i] = length[text[i]]++;
            tokens[i] = (struct akunu_batch_token){ id((int)text[i], position[i]), s[text[i]],
                                                    (round + (int)i) % 3 != 0 };
        }
        ck_assert_int_eq(ak_session_decode(f->session, tokens, BATCH, &f->error), AKUNU_OK);
        for (uint32_t i = 0; i < BATCH; i++) {
            const float *logits = ak_session_logits(f->session, i);
            if (tokens[i].logits)
                check_logits(logits, text_of((int)text[i]), position[i] + 1);
            else
                ck_assert_ptr_null(logits);
        }
    }
    ck_assert_uint_eq(f->session->n_passes, 9);
    ck_assert_uint_eq(f->session->n_tokens, 9 * BATCH);
    fixture_free(f);
}
END_TEST

START_TEST(fork_and_rewind)
{
    struct fixture *f = fixture_new();
    f->params.context = 1000; /* of all four */
    open_session(f);
    int32_t ids[CONTEXT], a = new_sequence(f), b;
    size_t last;
    ck_assert_int_eq(
        ak_session_prefill(f->session, a, text_of(0), 150, NULL, NULL, &last, &f->error), AKUNU_OK);
    ck_assert_int_eq(ak_session_fork(f->session, a, 140, &b, &f->error), AKUNU_OK);
    ck_assert_uint_eq(f->backend.copied, 1);

    memcpy(ids, text_of(0), 140 * sizeof *ids); /* b goes on differently, a as before */
    for (uint32_t i = 140; i < 172; i++)
        ids[i] = id(1, i);
    ck_assert_int_eq(run(f, b, 1, 140, 32), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 31), ids, 172);
    ck_assert_int_eq(run(f, a, 0, 150, 20), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 19), text_of(0), 170);

    /* back into a page that both have: the one who writes gets a copy */
    ck_assert_int_eq(ak_session_rewind(f->session, b, 100, &f->error), AKUNU_OK);
    for (uint32_t i = 100; i < 110; i++)
        ids[i] = id(2, i);
    ck_assert_int_eq(run(f, b, 2, 100, 10), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 9), ids, 110);
    ck_assert_uint_eq(f->backend.copied, 2);
    ck_assert_int_eq(run(f, a, 0, 170, 10), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 9), text_of(0), 180);

    ck_assert_int_eq(ak_session_rewind(f->session, a, 181, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_session_rewind(f->session, 3, 0, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_session_fork(f->session, a, 181, &b, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(b, -1);
    fixture_free(f);
}
END_TEST

/* ---- Errors change nothing ---------------------------------------------- */
static void check_refused(struct fixture *f, const struct akunu_batch_token *tokens, size_t n,
                          ak_status expected, const char *said)
{
    uint32_t n_free = f->session->kv.n_free;
    uint64_t passes = f->session->n_passes;
    f->error.message[0] = '\0';
    ck_assert_int_eq(ak_session_decode(f->session, tokens, n, &f->error), expected);
    ck_assert_msg(strstr(f->error.message, said) != NULL, "'%s' lacks '%s'", f->error.message,
                  said);
    ck_assert_uint_eq(f->session->kv.n_free, n_free);
    ck_assert_uint_eq(f->session->n_passes, passes);
    ck_assert_uint_eq(f->session->kv.sequences[0].length, 10);
    /* the last pass's are still there */
    check_logits(ak_session_logits(f->session, 9), text_of(0), 10);
}

START_TEST(bad_passes)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f);
    struct akunu_batch_token tokens[BATCH + 1], good = { 1, s, true };
    ck_assert_int_eq(run(f, s, 0, 0, 10), AKUNU_OK);
    for (int i = 0; i <= BATCH; i++)
        tokens[i] = good;
    check_refused(f, tokens, 0, AKUNU_ERROR_ARGUMENT,
                  "0 tokens were given for one pass, which takes 1 to 32");
    check_refused(f, tokens, BATCH + 1, AKUNU_ERROR_ARGUMENT, "33 tokens");
    check_refused(f, tokens, SIZE_MAX, AKUNU_ERROR_ARGUMENT, "tokens");
    tokens[3].token = FAKE_VOCAB;
    check_refused(f, tokens, 5, AKUNU_ERROR_ARGUMENT, "token 3 is 97, and the vocabulary has 97");
    tokens[3].token = -1;
    check_refused(f, tokens, 5, AKUNU_ERROR_ARGUMENT, "token 3 is -1");
    tokens[3] = good;
    static const int32_t strange[] = { -1, 1, 4, INT32_MAX, INT32_MIN };
    for (int i = 0; i < 5; i++) {
        tokens[4].sequence = strange[i];
        check_refused(f, tokens, 5, AKUNU_ERROR_ARGUMENT, "token 4 belongs to sequence");
    }
    tokens[4] = good;
    /* and nothing of it lingers */
    ck_assert_int_eq(ak_session_decode(f->session, tokens, 5, &f->error), AKUNU_OK);
    ck_assert_uint_eq(f->session->kv.sequences[s].length, 15);
    fixture_free(f);
}
END_TEST

/* A device that fails in a pass: the sequences are those of before, and the pass can be tried
 * again. */
START_TEST(lost_passes)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f);
    ck_assert_int_eq(run(f, s, 0, 0, 30), AKUNU_OK);
    uint32_t n_free = f->session->kv.n_free;
    f->backend.lose_pass = true;
    ck_assert_int_eq(run(f, s, 1, 0, 32), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(f->error.message, "the device is lost");
    ck_assert_ptr_null(ak_session_logits(f->session, 0));
    ck_assert_uint_eq(ak_session_kv_sequence(&f->session->kv, s)->length, 30);
    f->backend.lose_pass = false;
    ck_assert_int_eq(run(f, s, 0, 30, 32), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 31), text_of(0), 62);
    ck_assert_uint_eq(f->session->kv.n_free, n_free);
    fixture_free(f);
}
END_TEST

START_TEST(context_full)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f), other = new_sequence(f);
    size_t last;
    ck_assert_int_eq(
        ak_session_prefill(f->session, s, text_of(0), CONTEXT - 2, NULL, NULL, &last, &f->error),
        AKUNU_OK);
    ck_assert_int_eq(run(f, s, 0, CONTEXT - 2, 3), AKUNU_ERROR_CONTEXT);
    ck_assert_ptr_nonnull(
        strstr(f->error.message, "298 tokens, 3 more were given, and the context holds 300"));
    ck_assert_int_eq(run(f, s, 0, CONTEXT - 2, 2), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 1), text_of(0), CONTEXT);
    ck_assert_int_eq(run(f, s, 0, 0, 1), AKUNU_ERROR_CONTEXT);

    /* the others have what is left of the pool, and say so when it ends */
    uint32_t at = 0;
    ak_status status;
    while ((status = run(f, other, 1, at, 32)) == AKUNU_OK)
        at += 32;
    ck_assert_int_eq(status, AKUNU_ERROR_CONTEXT);
    ck_assert_ptr_nonnull(
        strstr(f->error.message, "32 more were given, and the context holds 300"));
    ck_assert_uint_eq(f->session->kv.sequences[other].length, at);
    ck_assert_uint_gt(at, 0);
    ak_session_kv_sequence_free(&f->session->kv, s);
    ck_assert_int_eq(run(f, other, 1, at, 32), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 31), text_of(1), at + 32);
    fixture_free(f);
}
END_TEST

/* ---- Prefill ------------------------------------------------------------ */
static bool count_down(void *user)
{
    return (*(int *)user)-- == 0;
}

START_TEST(prefill)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f), bad[] = { 1, 2, FAKE_VOCAB };
    size_t last = 99;
    ck_assert_int_eq(
        ak_session_prefill(f->session, s, text_of(0), 100, NULL, NULL, &last, &f->error), AKUNU_OK);
    ck_assert_uint_eq(f->session->n_passes, 4);
    ck_assert_uint_eq(last, 3);
    check_logits(ak_session_logits(f->session, last), text_of(0), 100);
    for (size_t i = 0; i < last; i++)
        ck_assert_ptr_null(ak_session_logits(f->session, i));

    int passes = 2;
    ck_assert_int_eq(ak_session_prefill(f->session, s, text_of(0) + 100, 150, count_down, &passes,
                                        &last, &f->error),
                     AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(f->session->kv.sequences[s].length, 164); /* what was run stays */

    /* what cannot be run whole is not begun */
    uint64_t before = f->session->n_passes;
    ck_assert_int_eq(
        ak_session_prefill(f->session, s, text_of(0), 137, NULL, NULL, &last, &f->error),
        AKUNU_ERROR_CONTEXT);
    ck_assert_ptr_nonnull(strstr(
        f->error.message, "it has 137 tokens, the sequence has 164, and the context holds 300"));
    ck_assert_int_eq(ak_session_prefill(f->session, s, bad, 3, NULL, NULL, &last, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_session_prefill(f->session, s, bad, 0, NULL, NULL, &last, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_session_prefill(f->session, 7, bad, 1, NULL, NULL, &last, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_uint_eq(f->session->n_passes, before);
    fixture_free(f);
}
END_TEST

/* ---- Sizes (the choice is reported, never silent) ----------------------- */
START_TEST(context_is_reported)
{
    struct fixture *f = fixture_new();
    f->params.max_sequences = 1;
    open_session(f);
    ck_assert_str_eq(f->log, "context: 300 tokens, as asked for; KV cache of 0.0 MiB");
    ck_assert_uint_eq(f->session->kv.context, 300);
    ck_assert_uint_eq(f->session->kv.shape.n_pages, 5);
    ck_assert_int_eq(f->n_warnings, 0);
    fixture_free(f);

    f = fixture_new();
    f->params.context = 0;
    f->params.batch = 0;
    f->params.max_sequences = 0;
    f->model.spec.config.context = 4096;
    open_session(f);
    ck_assert_str_eq(f->log,
                     "context: 4096 tokens, as the model was made for; KV cache of 0.0 MiB");
    ck_assert_uint_eq(f->session->kv.context, 4096);
    ck_assert_uint_eq(f->session->batch, 512);
    ck_assert_uint_eq(f->session->kv.n_sequences, 1);
    fixture_free(f);

    f = fixture_new();
    f->params.context = 20; /* no batch is larger than the context */
    open_session(f);
    ck_assert_uint_eq(f->session->batch, 20);
    fixture_free(f);

    f = fixture_new();
    f->params.context = 1024;
    open_session(f);
    ck_assert_int_eq(f->n_warnings, 1);
    ck_assert_str_eq(f->log,
                     "context: 1024 tokens are more than the 512 that the model was made for");
    fixture_free(f);
}
END_TEST

START_TEST(context_is_bounded_by_memory)
{
    struct fixture *f = fixture_new();
    f->backend.hollow = true;
    f->params.context = 0;
    f->params.max_sequences = 3;
    f->model.spec.config.context = 100000000; /* of 1 MiB a token */
    f->model.spec.config.n_layers = 2048;
    f->model.spec.config.n_kv_heads = 64;
    open_session(f);
    uint32_t context = f->session->kv.context, n_pages = f->session->kv.shape.n_pages;
    ck_assert_int_eq(f->n_warnings, 1);
    ck_assert_ptr_nonnull(strstr(f->log, " of the 100000000 tokens that the model was made for"));
    ck_assert_uint_lt(context, 100000000);
    ck_assert_uint_eq(ak_session_kv_count_pages(context, 3), n_pages);
    ck_assert_uint_eq(ak_session_kv_count_pages(context + 1, 3), n_pages + 1);
    fixture_free(f);

    f = fixture_new(); /* not one page fits */
    f->params.context = 0;
    f->model.spec.config.n_layers = f->model.spec.config.n_kv_heads = 65536;
    f->model.spec.config.head_dim = 1024;
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &f->session, &f->error),
                     AKUNU_ERROR_MEMORY);
    ck_assert_ptr_null(f->session);
    fixture_free(f);
}
END_TEST

START_TEST(bad_parameters)
{
    struct fixture *f = fixture_new();
    struct akunu_session_params good = f->params;
    f->params.max_sequences = 65537;
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &f->session, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    f->params = good;
    f->params.k_type = (enum akunu_kv_type)7;
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &f->session, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    f->params = good;
    f->backend.refuse_alloc = true;
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &f->session, &f->error),
                     AKUNU_ERROR_MEMORY);
    f->backend.refuse_alloc = false;
    f->backend.refuse_prepare = true;
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &f->session, &f->error),
                     AKUNU_ERROR_MEMORY);
    ck_assert_ptr_null(f->session);
    fixture_free(f);
}
END_TEST

START_TEST(threads_of_the_environment)
{
    static const char *const bad[] = { "0", "x", "-1", "2x", " 2", "99999999999999999999" };
    struct fixture *f = fixture_new();
    setenv("AKUNU_THREADS", "3", 1);
    open_session(f);
    ck_assert_uint_eq(f->session->options.n_threads, 1); /* the host's number wins */
    ak_session_free(f->session);
    f->params.n_threads = 0;
    open_session(f);
    ck_assert_uint_eq(f->session->options.n_threads, 3);
    ak_session_free(f->session);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("AKUNU_THREADS", bad[i], 1);
        ck_assert_int_eq(ak_session_create(&f->model, &f->params, &f->session, &f->error),
                         AKUNU_ERROR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(f->error.message, "AKUNU_THREADS"));
    }
    unsetenv("AKUNU_THREADS");
    open_session(f);
    ck_assert_uint_ge(f->session->options.n_threads, 1);
    fixture_free(f);
}
END_TEST

/* ---- Generation --------------------------------------------------------- */
struct listener {
    int n_reported;
    int32_t reported[CONTEXT];
    int stop_after;
    int cancel_after;
    int n_logprobs;
    float logprobs[CONTEXT];
};

static bool on_piece(akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct listener *l = user;
    (void)text;
    ck_assert_uint_eq(n_bytes, 0); /* there is no vocabulary */
    l->reported[l->n_reported++] = token;
    return l->n_reported != l->stop_after;
}

static bool on_cancel(void *user)
{
    struct listener *l = user;
    return l->cancel_after >= 0 && l->n_reported >= l->cancel_after;
}

static struct akunu_generation greedy(int64_t n, struct akunu_sampling *sampling)
{
    struct akunu_generation g = { .size = sizeof g, .max_tokens = n };
    g.sampling = sampling;
    *sampling = (struct akunu_sampling){
        .size = sizeof *sampling, .top_p = 1.0f, .repeat_penalty = 1.0f, .seed = 5
    };
    return g;
}

static int32_t best(const int32_t *ids, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t v = 1; v < FAKE_VOCAB; v++)
        if (fake_logit(ids, n, v) > fake_logit(ids, n, at))
            at = v;
    return (int32_t)at;
}

static struct akunu_result generate(struct fixture *f, int32_t s, uint32_t n_ids,
                                    const struct akunu_generation *g, struct listener *l,
                                    ak_status expected)
{
    struct akunu_result result;
    ak_status status = ak_gen_run(&(struct ak_gen_request){ .session = f->session,
                                                            .sequence = s,
                                                            .ids = text_of(0),
                                                            .n_ids = n_ids,
                                                            .generation = g,
                                                            .on_piece = on_piece,
                                                            .cancel = on_cancel,
                                                            .user = l },
                                  &result, &f->error);
    ck_assert_msg(status == expected, "%d: %s", (int)status, f->error.message);
    return result;
}

START_TEST(greedy_text)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f), ids[CONTEXT + 1];
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling sampling;
    struct akunu_generation g = greedy(50, &sampling);
    struct akunu_result r = generate(f, s, 70, &g, &l, AKUNU_OK);
    memcpy(ids, text_of(0), 70 * sizeof *ids);
    for (uint32_t i = 0; i < 50; i++) {
        ids[70 + i] = best(ids, 70 + i);
        ck_assert_int_eq(l.reported[i], ids[70 + i]);
    }
    ck_assert_int_eq(l.n_reported, 50);
    ck_assert_int_eq(r.stop, AKUNU_STOP_LENGTH);
    ck_assert_uint_eq(r.n_prompt, 70);
    ck_assert_uint_eq(r.n_generated, 50);
    ck_assert(r.prompt_seconds >= 0.0 && r.generate_seconds >= 0.0);
    /* the last token has not been run */
    ck_assert_uint_eq(f->session->kv.sequences[s].length, 119);

    ck_assert_int_eq(ak_session_rewind(f->session, s, 0, &f->error), AKUNU_OK);
    l = (struct listener){ .cancel_after = -1 };
    g.max_tokens = 0;
    r = generate(f, s, 70, &g, &l, AKUNU_OK);
    ck_assert_int_eq(r.stop, AKUNU_STOP_LENGTH);
    ck_assert_int_eq(l.n_reported, 0);

    g.max_tokens = -1; /* until the context is full: every token of it is used */
    ck_assert_int_eq(ak_session_rewind(f->session, s, 0, &f->error), AKUNU_OK);
    r = generate(f, s, 70, &g, &l, AKUNU_OK);
    ck_assert_int_eq(r.stop, AKUNU_STOP_CONTEXT);
    ck_assert_uint_eq(r.n_generated, CONTEXT - 70 + 1);
    ck_assert_uint_eq(f->session->kv.sequences[s].length, CONTEXT);
    for (uint32_t i = 70; i <= CONTEXT; i++)
        ids[i] = best(ids, i);
    ck_assert_mem_eq(l.reported, ids + 70, (CONTEXT - 70 + 1) * sizeof *ids);
    fixture_free(f);
}
END_TEST

START_TEST(host_stops)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f);
    struct akunu_sampling sampling;
    struct akunu_generation g = greedy(50, &sampling);
    struct listener l = { .cancel_after = -1, .stop_after = 7 };
    struct akunu_result r = generate(f, s, 10, &g, &l, AKUNU_OK);
    ck_assert_int_eq(r.stop, AKUNU_STOP_CALLBACK);
    ck_assert_uint_eq(r.n_generated, 7);

    ck_assert_int_eq(ak_session_rewind(f->session, s, 0, &f->error), AKUNU_OK);
    l = (struct listener){ .cancel_after = 3 };
    r = generate(f, s, 10, &g, &l, AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(r.n_generated, 3);
    ck_assert_uint_eq(r.n_prompt, 10);

    ck_assert_int_eq(ak_session_rewind(f->session, s, 0, &f->error), AKUNU_OK);
    l = (struct listener){ .cancel_after = 0 }; /* in the prompt already */
    r = generate(f, s, 70, &g, &l, AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(r.n_prompt, 0);
    ck_assert_int_eq(l.n_reported, 0);

    l = (struct listener){ .cancel_after = -1 };
    generate(f, s, 0, &g, &l, AKUNU_ERROR_ARGUMENT);
    generate(f, 9, 5, &g, &l, AKUNU_ERROR_ARGUMENT);
    sampling.repeat_penalty = 0.0f;
    generate(f, s, 5, &g, &l, AKUNU_ERROR_ARGUMENT);
    ck_assert_uint_eq(f->session->kv.sequences[s].length, 0);
    fixture_free(f);
}
END_TEST

/* Penalties see the whole sequence, not only this call's part of it. */
START_TEST(penalties_look_back)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f);
    size_t last;
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling sampling;
    struct akunu_generation g = greedy(1, &sampling);
    int32_t ids[11];
    memcpy(ids + 1, text_of(0), 10 * sizeof *ids);
    /* a first token that is the most likely one after the text, too */
    for (ids[0] = 0; ids[0] < FAKE_VOCAB && best(ids, 11) != ids[0]; ids[0]++)
        ;
    ck_assert_int_lt(ids[0], FAKE_VOCAB);
    ck_assert_int_eq(ak_session_prefill(f->session, s, ids, 1, NULL, NULL, &last, &f->error),
                     AKUNU_OK);
    sampling.presence_penalty = 1000.0f;
    sampling.repeat_last_n = -1;
    generate(f, s, 10, &g, &l, AKUNU_OK);
    for (int i = 0; i < 11; i++)
        ck_assert_int_ne(l.reported[0], ids[i]);
    fixture_free(f);
}
END_TEST

/* Without filters the backend draws, from the second token on. */
START_TEST(backend_draws)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f), ids[100];
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling sampling;
    struct akunu_generation g = greedy(20, &sampling);
    sampling.temperature = 0.75f;
    memcpy(ids, text_of(0), 40 * sizeof *ids);
    generate(f, s, 40, &g, &l, AKUNU_OK);
    memcpy(ids + 40, l.reported, 20 * sizeof *ids);
    const struct fake_prepared *sampled =
        (const struct fake_prepared *)(const void *)f->session->sampled;
    ck_assert_ptr_nonnull(sampled);
    ck_assert_ptr_eq(sampled->table, &f->model.sampled_table);
    ck_assert_uint_eq(sampled->runs, 19);
    ck_assert(sampled->draw.temperature == 0.75f);
    ck_assert_int_eq(l.reported[19], (int32_t)((sampled->draw.seed + 58) % FAKE_VOCAB));
    ck_assert_ptr_null(ak_session_logits(f->session, 0));

    /* both tables write the same cache */
    ck_assert_uint_eq(f->session->kv.sequences[s].length, 59);
    struct akunu_batch_token one = { ids[59], s, true };
    ck_assert_int_eq(ak_session_decode(f->session, &one, 1, &f->error), AKUNU_OK);
    check_logits(ak_session_logits(f->session, 0), ids, 60);

    /* the seed gives the text again; the table is prepared once */
    struct listener again = { .cancel_after = -1 };
    ck_assert_int_eq(ak_session_rewind(f->session, s, 0, &f->error), AKUNU_OK);
    generate(f, s, 40, &g, &again, AKUNU_OK);
    ck_assert_mem_eq(again.reported, l.reported, 20 * sizeof *ids);
    ck_assert_ptr_eq(f->session->sampled, (const void *)sampled);
    fixture_free(f);
}
END_TEST

static void on_logprobs(akunu_token token, float logprob, const struct akunu_logprob *top,
                        size_t n_top, void *user)
{
    struct listener *l = user;
    (void)token, (void)top, (void)n_top;
    l->logprobs[l->n_logprobs++] = logprob;
}

/* The log-probability of each token that is drawn is the log of softmax at its position. */
START_TEST(logprobs_of_draws)
{
    enum { N_PROMPT = 40, N = 20 };
    struct fixture *f = fixture_new();
    open_session(f);
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling sampling;
    struct akunu_generation g = greedy(N, &sampling);
    int32_t ids[N_PROMPT + N];
    sampling.temperature = 0.75f;
    g.on_logprobs = on_logprobs;
    generate(f, new_sequence(f), N_PROMPT, &g, &l, AKUNU_OK);
    memcpy(ids, text_of(0), N_PROMPT * sizeof *ids);
    memcpy(ids + N_PROMPT, l.reported, N * sizeof *ids);
    ck_assert_int_eq(l.n_logprobs, N);
    for (uint32_t i = 0; i < N; i++) {
        double sum = 0.0;
        for (uint32_t v = 0; v < FAKE_VOCAB; v++)
            sum += exp((double)fake_logit(ids, N_PROMPT + i, v));
        double want = (double)fake_logit(ids, N_PROMPT + i, (uint32_t)l.reported[i]) - log(sum);
        ck_assert_msg(fabs((double)l.logprobs[i] - want) < 1e-4, "token %u: %g, expected %g", i,
                      (double)l.logprobs[i], want);
    }
    fixture_free(f);
}
END_TEST

/* Where a token's logits depend on the pass that it is in, nothing is guessed. */
START_TEST(inexact_backends)
{
    struct fixture *f = fixture_new();
    f->backend.inexact = true;
    open_session(f);
    int32_t s = new_sequence(f);
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling sampling;
    struct akunu_generation g = greedy(50, &sampling);
    sampling.temperature = 1.0f; /* draws that come again */
    struct akunu_result r = generate(f, s, 120, &g, &l, AKUNU_OK);
    ck_assert_uint_eq(r.n_drafted, 0);
    ck_assert_uint_eq(
        ((const struct fake_prepared *)(const void *)f->session->sampled)->options.max_tokens, 1);
    ck_assert_int_eq(ak_session_rewind(f->session, s, 0, &f->error), AKUNU_OK);
    g.speculation = AKUNU_SPECULATION_NGRAM;
    generate(f, s, 70, &g, &l, AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(f->error.message, "logits depend on the pass"));
    fixture_free(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("session");
    TCase *tests = tcase_create("session");
    tcase_add_test(tests, one_sequence);
    tcase_add_test(tests, mixed_sequences);
    tcase_add_test(tests, fork_and_rewind);
    tcase_add_test(tests, bad_passes);
    tcase_add_test(tests, lost_passes);
    tcase_add_test(tests, context_full);
    tcase_add_test(tests, prefill);
    tcase_add_test(tests, context_is_reported);
    tcase_add_test(tests, context_is_bounded_by_memory);
    tcase_add_test(tests, bad_parameters);
    tcase_add_test(tests, threads_of_the_environment);
    tcase_add_test(tests, greedy_text);
    tcase_add_test(tests, host_stops);
    tcase_add_test(tests, penalties_look_back);
    tcase_add_test(tests, backend_draws);
    tcase_add_test(tests, logprobs_of_draws);
    tcase_add_test(tests, inexact_backends);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

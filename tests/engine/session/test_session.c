/* Sessions over a backend that shows which tokens a logit stands on: passes, their
 * order, errors that change nothing, the context's size and
 * generation. */
#include "engine/generate/generate.h"

#include <math.h>
#include <stdio.h>

#include "engine/spec/arch.h"
#include "tests/fake_backend.h"
#include "tests/out_of_memory.h"
#include "tests/process.h"

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

static const char *describe_fake(const struct ak_backend *b)
{
    (void)b;
    return "fake";
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

static const struct fake_prepared *prepared(const struct ak_backend_table *table)
{
    return (const struct fake_prepared *)(const void *)table;
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
        uint32_t n_logits = 0;
        for (uint32_t i = 0; i < BATCH; i++) {
            const float *logits = ak_session_logits(f->session, i);
            n_logits += tokens[i].logits;
            if (tokens[i].logits)
                check_logits(logits, text_of((int)text[i]), position[i] + 1);
            else
                ck_assert_ptr_null(logits);
        }
        ck_assert_uint_eq(prepared(f->session->logits)->n_logits, n_logits);
    }
    for (int i = 0; i < 3; i++) {
        const struct ak_session_kv_sequence *own = ak_session_kv_sequence(&f->session->kv, s[i]);
        ck_assert_uint_eq(own->length, length[i]);
        ck_assert_mem_eq(own->tokens, text_of(i), length[i] * sizeof *own->tokens);
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

    ck_assert_int_eq(ak_session_rewind(f->session, a, 180, &f->error), AKUNU_OK);
    ck_assert_int_eq(ak_session_rewind(f->session, a, 181, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(f->error.message, "has 180 tokens, and 181 were asked for"));
    ck_assert_int_eq(ak_session_rewind(f->session, 3, 0, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_session_fork(f->session, a, 181, &b, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(b, -1);
    b = 7;
    ck_assert_int_eq(ak_session_fork(f->session, 3, 0, &b, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(b, -1);
    for (int i = 2; i < 4; i++)
        ck_assert_int_eq(new_sequence(f), i);
    ck_assert_int_eq(ak_session_sequence_new(f->session, &b, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(f->error.message, "all 4 sequences of the session are in use"));
    f->error.message[0] = '\0';
    ck_assert_int_eq(ak_session_fork(f->session, a, 1, &b, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(f->error.message, "all 4 sequences of the session are in use (max_sequences)");

    /* a fork may be the first sequence */
    ck_assert_int_eq(a, 0);
    ak_session_kv_sequence_free(&f->session->kv, a);
    ck_assert_int_eq(ak_session_fork(f->session, 1, 110, &b, &f->error), AKUNU_OK);
    ck_assert_int_eq(b, 0);
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
    int32_t s = new_sequence(f), bad[] = { 1, 2, FAKE_VOCAB }, late[2 * BATCH];
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
    memcpy(late, text_of(0), sizeof late); /* an id of the second pass */
    late[BATCH] = -1;
    ck_assert_int_eq(
        ak_session_prefill(f->session, s, late, 2 * BATCH, NULL, NULL, &last, &f->error),
        AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(f->error.message, "token 32 is -1, and the vocabulary has 97"));
    ck_assert_int_eq(ak_session_prefill(f->session, s, bad, 0, NULL, NULL, &last, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_session_prefill(f->session, 7, bad, 1, NULL, NULL, &last, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_uint_eq(f->session->n_passes, before);

    f->backend.lose_pass = true; /* a pass that fails ends the prompt */
    ck_assert_int_eq(
        ak_session_prefill(f->session, s, text_of(0), 70, NULL, NULL, &last, &f->error),
        AKUNU_ERROR_UNSUPPORTED);
    ck_assert_uint_eq(f->session->n_passes, before + 1);
    ck_assert_uint_eq(f->session->kv.sequences[s].length, 164);
    f->backend.lose_pass = false; /* to the last token that the context holds */
    ck_assert_int_eq(
        ak_session_prefill(f->session, s, text_of(0), CONTEXT - 164, NULL, NULL, &last, &f->error),
        AKUNU_OK);
    ck_assert_uint_eq(f->session->kv.sequences[s].length, CONTEXT);
    fixture_free(f);
}
END_TEST

/* Two sequences of a context of three pages. What needs the last free page is run; what needs one
 * more is refused before the first pass, and so is the copy of a page that is not full. */
START_TEST(last_page)
{
    struct fixture *f = fixture_new();
    f->params.context = 130;
    f->params.max_sequences = 2;
    open_session(f);
    ck_assert_uint_eq(f->session->kv.shape.n_pages, 4);
    int32_t a = new_sequence(f), b = new_sequence(f), fork;
    size_t last;
    ck_assert_int_eq(
        ak_session_prefill(f->session, a, text_of(0), 65, NULL, NULL, &last, &f->error), AKUNU_OK);
    ck_assert_int_eq(
        ak_session_prefill(f->session, b, text_of(1), 129, NULL, NULL, &last, &f->error),
        AKUNU_ERROR_CONTEXT); /* three pages of two */
    ck_assert_uint_eq(f->session->n_passes, 3);
    ck_assert_int_eq(
        ak_session_prefill(f->session, b, text_of(1), 128, NULL, NULL, &last, &f->error), AKUNU_OK);
    ck_assert_uint_eq(f->session->kv.n_free, 0);
    ck_assert_int_eq(run(f, b, 1, 128, 1), AKUNU_ERROR_CONTEXT);
    ck_assert_ptr_nonnull(strstr(f->error.message, "all sequences have 193 tokens, 1 more were "
                                                   "given, and the context holds 130"));
    ck_assert_int_eq(ak_session_rewind(f->session, b, 64, &f->error), AKUNU_OK);
    ck_assert_int_eq(run(f, b, 1, 64, 1), AKUNU_OK); /* the one page that is free */
    ck_assert_int_eq(ak_session_rewind(f->session, b, 0, &f->error), AKUNU_OK);
    ak_session_kv_sequence_free(&f->session->kv, b);

    ck_assert_int_eq(ak_session_fork(f->session, a, 65, &fork, &f->error), AKUNU_OK);
    ck_assert_int_eq(ak_session_fork(f->session, a, 64, &b, &f->error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(f->error.message, "all 2 sequences of the session are in use"));
    ck_assert_int_eq(b, -1);
    ck_assert_int_eq(run(f, fork, 0, 65, 32), AKUNU_OK);
    ck_assert_int_eq(run(f, fork, 0, 97, 32), AKUNU_OK);
    ak_session_kv_sequence_free(&f->session->kv, fork);
    ck_assert_int_eq(
        ak_session_prefill(f->session, a, text_of(0) + 65, 65, NULL, NULL, &last, &f->error),
        AKUNU_OK);
    b = new_sequence(f);
    ck_assert_int_eq(run(f, b, 1, 0, 1), AKUNU_OK);
    ak_session_kv_sequence_free(&f->session->kv, a);
    ck_assert_int_eq(
        ak_session_prefill(f->session, b, text_of(1) + 1, 129, NULL, NULL, &last, &f->error),
        AKUNU_OK);
    ck_assert_uint_eq(f->session->kv.n_free, 1);
    fixture_free(f);
}
END_TEST

START_TEST(forks_without_pages)
{
    struct fixture *f = fixture_new();
    f->params.context = 3;
    f->params.max_sequences = 3;
    open_session(f);
    int32_t s[3] = { new_sequence(f), new_sequence(f) }, fork = 5;
    ck_assert_uint_eq(f->session->kv.shape.n_pages, 3);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(run(f, s[i], i, 0, 1), AKUNU_OK);
    ck_assert_int_eq(ak_session_fork(f->session, s[0], 1, &s[2], &f->error), AKUNU_OK);
    ak_session_kv_sequence_free(&f->session->kv, s[1]);
    ck_assert_int_eq(run(f, s[2], 0, 1, 2), AKUNU_OK);
    f->session->kv.n_free = 0; /* as if another sequence had it */
    ck_assert_int_eq(ak_session_fork(f->session, s[2], 3, &fork, &f->error), AKUNU_ERROR_CONTEXT);
    ck_assert_int_eq(fork, -1);
    ck_assert_str_eq(f->error.message, "the context is full: no page is free for the copy of 3 "
                                       "tokens, and the context holds 3");
    ck_assert_int_eq(ak_session_fork(f->session, s[2], 0, &fork, &f->error), AKUNU_OK);
    ck_assert_int_eq(fork, s[1]);
    f->session->kv.n_free = 1;
    fixture_free(f);
}
END_TEST

/* Encoders make no text: each way to logits is refused. */
START_TEST(encoders_have_no_logits)
{
    struct fixture *f = fixture_new();
    f->model.spec.descriptor.encoder = true;
    f->model.spec.config.architecture = (struct ak_text){ .bytes = "bert", .n = 4 };
    f->params.max_sequences = 0;
    open_session(f);
    ck_assert_uint_eq(f->session->kv.n_sequences, 64);
    struct akunu_batch_token token = { 1, new_sequence(f), true };
    int32_t ids[] = { 1 };
    size_t last;
    ck_assert_int_eq(ak_session_decode(f->session, &token, 1, &f->error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(f->error.message, "the architecture \"bert\" is an encoder"));
    f->error.message[0] = '\0';
    ck_assert_int_eq(ak_session_prefill(f->session, 0, ids, 0, NULL, NULL, &last, &f->error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_int_eq(ak_session_prepare_sampled(f->session, &f->error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_null(f->session->sampled);
    ck_assert_uint_eq(f->session->n_passes, 0);
    struct ak_backend_table *hidden; /* their table has hidden states */
    ck_assert_int_eq(ak_session_prepare_hidden(f->session, &hidden, &f->error), AKUNU_OK);
    ck_assert_ptr_eq(hidden, f->session->logits);
    ck_assert_int_eq(f->backend.n_prepared, 1);
    fixture_free(f);
}
END_TEST

/* Logits of a pass stand until another number of the largest ones is wanted. */
START_TEST(best_logits_are_wanted)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f);
    ck_assert_int_eq(run(f, s, 0, 0, 3), AKUNU_OK);
    ck_assert_uint_eq(prepared(f->session->logits)->n_best, 0);
    ak_session_want_best(f->session, 0);
    check_logits(ak_session_logits(f->session, 2), text_of(0), 3);
    ak_session_want_best(f->session, 5);
    ck_assert_ptr_null(ak_session_logits(f->session, 0));
    ck_assert_int_eq(run(f, s, 0, 3, 1), AKUNU_OK);
    ck_assert_uint_eq(prepared(f->session->logits)->n_best, 5);
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

/* ---- Contexts of a device's memory -------------------------------------- */
static uint64_t device_bytes;
static ak_status device_status;

static uint64_t kv_bytes_max(const struct ak_backend *b, const struct ak_weights *weights)
{
    (void)b, (void)weights;
    return device_bytes;
}

static ak_status check_memory(const struct ak_backend *b, const struct ak_backend_tables *tables,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options,
                              struct ak_error *error)
{
    (void)b, (void)weights, (void)spec;
    ck_assert_ptr_null(tables->encoder);
    ck_assert_uint_eq(options->max_tokens, BATCH);
    ck_assert_uint_gt(options->kv.n_pages, 0);
    return device_status == AKUNU_OK ? AKUNU_OK : ak_fail(error, device_status, "no device memory");
}

/* A page takes 512 bytes. Half of the memory is for the KV cache, and the states of all sequences
 * come first. Three sequences may leave 63 tokens of a page empty each. */
static const struct {
    uint64_t bytes;             /* of the device */
    uint32_t asked, own, n_seq; /* context: asked for, of the model; sequences */
    uint64_t state_elems;
    bool checks;
    ak_status checked, expected;
    uint32_t context, n_pages;
    const char *said;   /* in the error, or in the last line of the log */
    uint64_t bytes_max; /* of the KV cache, whatever the device has; 0: not given */
} memories[] = {
    { 10240, 0, 4096, 3, 0, false, 0, AKUNU_OK, 10 * 64 - 2 * 63, 10,
      "514 of the 4096 tokens that the model was made for", 0 },
    { 10240, 0, 500, 3, 0, false, 0, AKUNU_OK, 500, 10, "500 tokens, as the model was made for",
      0 },
    { 10240, 600, 4096, 3, 0, false, 0, AKUNU_OK, 600, 12, "600 tokens, as asked for", 0 },
    { 10240, 0, 4096, 4, 128, false, 0, AKUNU_OK, 6 * 64 - 3 * 63, 6, "195 of the 4096", 0 },
    { 10239, 0, 4096, 1, 0, false, 0, AKUNU_OK, 9 * 64, 9, "576 of the 4096 tokens", 0 },
    { 3 * 1024, 0, 4096, 3, 0, false, 0, AKUNU_OK, 3 * 64 - 2 * 63, 3, "66 of the 4096", 0 },
    { 3 * 1024 - 2, 0, 4096, 3, 0, false, 0, AKUNU_ERROR_MEMORY, 0, 0, "the KV cache wants at", 0 },
    { 4096, 0, 4096, 4, 128, false, 0, AKUNU_ERROR_MEMORY, 0, 0, "the KV cache wants at", 0 },
    { 2048, 0, 4096, 4, 128, false, 0, AKUNU_ERROR_MEMORY, 0, 0, "half of the available memory",
      0 },
    /* the device says itself how much is missing */
    { 1024, 0, 4096, 3, 0, true, AKUNU_ERROR_MEMORY, AKUNU_ERROR_MEMORY, 0, 0, "no device memory",
      0 },
    { 1024, 0, 4096, 3, 0, true, AKUNU_OK, AKUNU_OK, 3 * 64 - 2 * 63, 3, "66 of the 4096", 0 },
    { 5 * 1024, 0, 4096, 3, 0, true, AKUNU_OK, AKUNU_OK, 5 * 64 - 2 * 63, 5, "194 of the 4096", 0 },
    { 10240, 0, 4096, 3, 0, false, 0, AKUNU_OK, 4 * 64 - 2 * 63, 4, "takes what it may", 2048 },
    { 1024, 0, 4096, 3, 0, false, 0, AKUNU_OK, 4 * 64 - 2 * 63, 4, "takes what it may", 2559 },
    { 10240, 0, 4096, 3, 0, false, 0, AKUNU_ERROR_MEMORY, 0, 0, "and its limit is", 1535 },
    { 10240, 600, 4096, 3, 0, false, 0, AKUNU_OK, 600, 12, "600 tokens, as asked for", 512 },
};

START_TEST(context_is_bounded_by_a_device)
{
    struct fixture *f = fixture_new();
    struct ak_backend_ops ops = fake_ops;
    ops.kv_bytes_max = kv_bytes_max;
    ops.check_memory = memories[_i].checks ? check_memory : NULL;
    f->backend.base.ops = &ops;
    device_bytes = memories[_i].bytes;
    device_status = memories[_i].checked;
    f->params.context = memories[_i].asked;
    f->params.kv_bytes_max = memories[_i].bytes_max;
    f->params.max_sequences = memories[_i].n_seq;
    f->model.spec.config.context = memories[_i].own;
    if (memories[_i].state_elems) {
        f->model.spec.config.n_layers = 2;
        f->model.spec.descriptor.state_elems = memories[_i].state_elems;
        ak_spec_set_recurrent(&f->model.spec.config, 1);
    }
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &f->session, &f->error),
                     memories[_i].expected);
    const char *said = f->session ? f->log : f->error.message;
    ck_assert_msg(strstr(said, memories[_i].said) != NULL, "'%s' lacks '%s'", said,
                  memories[_i].said);
    if (f->session) {
        ck_assert_uint_eq(f->session->kv.context, memories[_i].context);
        ck_assert_uint_eq(f->session->kv.shape.n_pages, memories[_i].n_pages);
        ck_assert_uint_eq(prepared(f->session->logits)->options.context, memories[_i].context);
    }
    fixture_free(f);
}
END_TEST

static void refuse_session(struct fixture *f, ak_status expected, const char *said)
{
    struct ak_session *out = (struct ak_session *)f; /* it must become NULL */
    f->error.message[0] = '\0';
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &out, &f->error), expected);
    ck_assert_msg(strstr(f->error.message, said) != NULL, "'%s' lacks '%s'", f->error.message,
                  said);
    ck_assert_ptr_null(out);
}

static void accept_session(struct fixture *f)
{
    ak_session_free(open_session(f));
    f->session = NULL;
}

/* Each limit: its last good value, and the first bad one. */
START_TEST(limits)
{
    struct fixture *f = fixture_new();
    struct akunu_session_params good = f->params;
    struct ak_spec_config *config = &f->model.spec.config;
    struct ak_view positions = { .rows = 102, .cols = 1 };
    f->model.weights.positions = &positions;
    config->first_position = 2;
    f->params.context = 100;
    accept_session(f);
    f->params.context = 101;
    refuse_session(f, AKUNU_ERROR_ARGUMENT,
                   "a context of 101 tokens: the model has learned positions for 100");
    f->model.weights.positions = NULL;

    f->params.context = config->context;
    config->context_fixed = true;
    accept_session(f);
    f->params.context++;
    refuse_session(f, AKUNU_ERROR_ARGUMENT, "rotates texts of more than 512 in another way");
    config->context_fixed = false;

    f->params = good;
    f->params.max_sequences = 65536;
    f->params.context = 64;
    accept_session(f);
    f->params.max_sequences++;
    refuse_session(f, AKUNU_ERROR_ARGUMENT, "max_sequences is 65537: at most 65536");

    f->params = good;
    f->params.k_type = (enum akunu_kv_type)AK_KV_TYPE_COUNT;
    refuse_session(f, AKUNU_ERROR_ARGUMENT, "k_type is none of the types");
    f->params.k_type = good.k_type;
    f->params.v_type = (enum akunu_kv_type) - 1;
    refuse_session(f, AKUNU_ERROR_ARGUMENT, "v_type is none of the types");
    f->params.v_type = AKUNU_KV_Q4_0;
    config->head_dim = 32;
    accept_session(f);
    config->head_dim = 48;
    refuse_session(f, AKUNU_ERROR_UNSUPPORTED,
                   "needs heads of a multiple of 32 elements; this model's have 48");
    config->head_dim = 1;

    f->params = good;
    f->params.cpus = "0";
    f->session = open_session(f);
    ck_assert_ptr_eq(prepared(f->session->logits)->options.cpus, &f->session->cpus);
    ck_assert_uint_eq(prepared(f->session->logits)->options.context, CONTEXT);
    ck_assert_uint_eq(prepared(f->session->logits)->options.max_tokens, BATCH);
    ak_session_free(f->session);
    f->session = NULL;
    f->params.cpus = "0-";
    refuse_session(f, AKUNU_ERROR_ARGUMENT, "0-");

    f->params = good; /* a page whose size overflows */
    config->n_layers = config->n_kv_heads = config->head_dim = UINT32_MAX;
    refuse_session(f, AKUNU_ERROR_MEMORY, "the KV cache");
    config->n_layers = config->n_kv_heads = 1;
    config->head_dim = 2048; /* 1 MiB a page */
    f->params.context = 100;
    f->params.max_sequences = 1;
    open_session(f);
    ck_assert_str_eq(f->log, "context: 100 tokens, as asked for; KV cache of 2.0 MiB");
    ck_assert_uint_eq(f->model.refs.n_others, 1); /* the session's */
    ak_session_free(f->session);
    ck_assert_uint_eq(f->model.refs.n_others, 0);
    f->session = NULL;
    fixture_free(f);
}
END_TEST

/* An encoder runs a text in one pass, which holds at most 65536 tokens. */
START_TEST(passes_of_encoders)
{
    static const struct {
        bool encoder;
        uint32_t own, batch, context, pass, target;
    } cases[] = {
        { true, 100000, 0, 65536, 65536, 512 }, { true, 65536, 0, 65536, 65536, 512 },
        { true, 300, 0, 300, 300, 300 },        { true, 600, 0, 600, 600, 512 },
        { true, 600, 40, 600, 40, 40 },         { false, 100000, 0, 100000, 512, 512 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture *f = fixture_new();
        f->model.spec.descriptor.encoder = cases[i].encoder;
        f->model.spec.config.context = cases[i].own;
        f->params.context = 0;
        f->params.batch = cases[i].batch;
        open_session(f);
        ck_assert_uint_eq(f->session->kv.context, cases[i].context);
        ck_assert_uint_eq(f->session->batch, cases[i].pass);
        ck_assert_uint_eq(f->session->pass_target, cases[i].target);
        ck_assert_double_eq(f->session->cost_model.token_price,
                            ak_backend_profile_token_price(&f->model.profile));
        fixture_free(f);
    }
}
END_TEST

/* The table of sampled tokens takes a draft: at most AK_SKINNY_MAX tokens, and no more than a pass
 * has. A backend whose logits depend on the pass takes one. */
START_TEST(sizes_of_sampled_tables)
{
    static const struct {
        uint32_t batch;
        bool inexact, unknown;
        uint32_t expected;
    } cases[] = {
        { 5, false, false, 5 },   { 16, false, false, 16 }, { 17, false, false, 16 },
        { 32, false, false, 16 }, { 32, true, false, 1 },   { 32, false, true, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture *f = fixture_new();
        struct ak_backend_ops ops = fake_ops;
        f->backend.base.ops = &ops;
        f->backend.inexact = cases[i].inexact;
        ops.is_batch_invariant = cases[i].unknown ? NULL : ops.is_batch_invariant;
        f->params.batch = cases[i].batch;
        open_session(f);
        for (int again = 0; again < 2; again++) /* it is prepared once */
            ck_assert_int_eq(ak_session_prepare_sampled(f->session, &f->error), AKUNU_OK);
        ck_assert_int_eq(f->backend.n_prepared, 2);
        ck_assert_uint_eq(prepared(f->session->sampled)->options.max_tokens, cases[i].expected);
        ck_assert_uint_eq(prepared(f->session->sampled)->options.max_logits, cases[i].expected);
        struct akunu_batch_token token = { 3, new_sequence(f), true };
        int32_t next;
        f->backend.lose_pass = true;
        ck_assert_int_eq(ak_session_sample(f->session, &token, 1, (struct ak_gumbel_params){ 0 },
                                           &next, &f->error),
                         AKUNU_ERROR_UNSUPPORTED);
        fixture_free(f);
    }
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
    f->params.k_type = (enum akunu_kv_type)AK_KV_TYPE_COUNT;
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

/* Keys and values have the types that were asked for, each its own. */
START_TEST(types_of_the_cache)
{
    static const enum akunu_kv_type types[] = { AKUNU_KV_F16, AKUNU_KV_F32, AKUNU_KV_BF16 };
    for (int i = 0; i < 9; i++) {
        struct fixture *f = fixture_new();
        f->params.k_type = types[i / 3];
        f->params.v_type = types[i % 3];
        open_session(f);
        ck_assert_int_eq(f->session->options.kv.k_type, types[i / 3]);
        ck_assert_int_eq(f->session->options.kv.v_type, types[i % 3]);
        ck_assert_int_eq(f->session->kv.shape.k_type, types[i / 3]);
        ck_assert_int_eq(f->session->kv.shape.v_type, types[i % 3]);
        fixture_free(f);
    }
}
END_TEST

START_TEST(threads_of_the_environment)
{
    static const char *const bad[] = { "0",  "x",          "-1",
                                       "2x", " 2",         "/1",
                                       ":",  "4294967296", "99999999999999999999" };
    static const struct {
        const char *text;
        unsigned threads;
    } good[] = { { "1", 1 }, { "10", 10 }, { "09", 9 }, { "9", 9 }, { "4294967295", UINT32_MAX } };
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
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        setenv("AKUNU_THREADS", good[i].text, 1);
        open_session(f);
        ck_assert_uint_eq(f->session->options.n_threads, good[i].threads);
        ak_session_free(f->session);
    }
    unsetenv("AKUNU_THREADS");
    f->model.profile.threads = 7;
    open_session(f);
    ck_assert_uint_eq(f->session->options.n_threads, 7);
    ak_session_free(f->session);
    f->model.profile.threads = 0;
    open_session(f);
    ck_assert_uint_ge(f->session->options.n_threads, 1);
    fixture_free(f);
}
END_TEST

/* A pool that cannot be pinned leaves no threads. */
START_TEST(pools)
{
    struct ak_backend_profile profile = { 0 };
    struct ak_error error = { 0 };
    struct ak_pool *pool;
    size_t before = test_count_entries("/proc/self/task");
    ck_assert_int_eq(ak_session_create_pool(3, "1023", &profile, &pool, &error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_null(pool);
    ck_assert_uint_eq(test_count_entries("/proc/self/task"), before);
    ck_assert_int_eq(ak_session_create_pool(3, NULL, &profile, &pool, &error), AKUNU_OK);
    ck_assert_uint_eq(ak_pool_threads(pool), 3);
    ak_pool_free(pool);
    ck_assert_uint_eq(test_count_entries("/proc/self/task"), before);
}
END_TEST

/* ---- Memory ------------------------------------------------------------- */
static void make_speech(struct fixture *f)
{
    f->model.spec.config.n_encoder_layers = 1;
    f->model.spec.config.encoder_context = 40;
    f->model.spec.config.n_mels = 4;
    f->params.max_windows = 2;
}

/* Whichever allocation fails, of a session of text (0) or of speech (1), none is made, and nothing
 * of it is left. */
START_TEST(created_without_memory)
{
    struct fixture *f = fixture_new();
    if (_i == 1)
        make_speech(f);
    long n = 0;
    for (;; n++) {
        refuse_allocation(n);
        ak_status status = ak_session_create(&f->model, &f->params, &f->session, &f->error);
        if (!allow_allocations()) {
            ck_assert_int_eq(status, AKUNU_OK);
            break;
        }
        ck_assert_int_eq(status, AKUNU_ERROR_MEMORY);
        ck_assert_ptr_null(f->session);
        ck_assert_uint_eq(f->model.refs.n_others, 0);
        ck_assert_uint_eq(f->backend.allocated, 0);
    }
    ck_assert_int_ge(n, 1 + 12 + 6);
    fixture_free(f);
}
END_TEST

/* A window that cannot be encoded for want of memory takes no page, and is encoded later. */
START_TEST(encoded_without_memory)
{
    static const float frames[2 * 40 * 4];
    struct fixture *f = fixture_new();
    make_speech(f);
    open_session(f);
    int32_t window = new_sequence(f);
    uint32_t n_free = f->session->kv.n_free;
    long n = 0;
    for (;; n++) {
        refuse_allocation(n);
        ak_status status = ak_session_encode(f->session, frames, window, 0, false, &f->error);
        if (!allow_allocations()) {
            ck_assert_int_eq(status, AKUNU_OK);
            break;
        }
        ck_assert_int_eq(status, AKUNU_ERROR_MEMORY);
        ck_assert_ptr_null(f->session->encoder);
        ck_assert_uint_eq(f->session->kv.n_free, n_free);
        ck_assert_int_eq(f->backend.n_prepared, 1);
    }
    ck_assert_int_eq(n, 1 + 6);
    ck_assert_uint_eq(f->session->kv.sequences[window].length, 40);
    fixture_free(f);
}
END_TEST

/* ---- Dropped pages ------------------------------------------------------ */
enum { LONG = 700, HEADS = 2 };
static uint64_t attention[HEADS][LONG]; /* that the last tokens pay to each */
static uint32_t n_read;                 /* tokens whose queries were read */

/* The queries of the last 32 tokens are read, in passes of at most 10. */
static void run_with_importance(struct ak_backend_table *table, const struct ak_batch *b)
{
    fake_ops.run(table, b); /* the same tokens at the same positions: what is cached stays */
    if (!b->importance)
        return;
    ck_assert_uint_le(b->n, 10);
    ck_assert_uint_eq(b->importance->stride, 11 * AK_KV_PAGE_TOKENS);
    ck_assert_uint_eq(b->importance->n_kv_heads, HEADS);
    for (uint32_t i = 0; i < b->n; i++) {
        ck_assert_uint_eq(b->positions[i], LONG - 32 + n_read++);
        ck_assert_int_eq(b->tokens[i], id(0, b->positions[i]));
    }
    if (n_read == 32)
        for (size_t h = 0; h < HEADS; h++)
            memcpy(b->importance->sums + h * b->importance->stride, attention[h],
                   sizeof attention[h]);
}

/* Of 11 pages 4 stay: the first, the one of the last tokens, and two more: those to which some head
 * pays most attention, in the sum over 7 neighbors; or the last ones. */
START_TEST(dropped_pages)
{
    static const bool stays[2][11] = {
        [AKUNU_KV_IMPORTANT] = { [0] = true, [2] = true, [5] = true, [10] = true },
        [AKUNU_KV_RECENT] = { [0] = true, [8] = true, [9] = true, [10] = true },
    };
    static int32_t ids[LONG];
    enum { PAGE = AK_KV_PAGE_TOKENS };
    struct fixture *f = fixture_new();
    struct ak_backend_ops ops = fake_ops;
    size_t last;
    ops.describe = describe_fake;
    f->backend.base.ops = &ops;
    open_session(f);
    ck_assert_int_eq(ak_session_evict(f->session, new_sequence(f), 256, AKUNU_KV_RECENT, &f->error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(f->error.message,
                     "the backend fake cannot drop parts of the KV cache; the cpu can");
    ak_session_free(f->session);
    ops.skips_pages = true;
    ops.run = run_with_importance;
    f->backend.base.ops = &ops;
    f->model.spec.config.n_kv_heads = HEADS;
    f->params.context = 1000;
    f->params.batch = 10;
    open_session(f);
    for (uint32_t i = 0; i < LONG; i++)
        ids[i] = id(0, i);
    for (uint32_t i = 0; i < 7; i++)
        attention[1][2 * PAGE + 30 + i] = 10; /* 70 */
    attention[0][5 * PAGE + 9] = 69;
    attention[1][1 * PAGE] = 68;
    attention[0][3 * PAGE + 63] = attention[0][4 * PAGE] = 30; /* 60 in both pages */
    attention[0][6 * PAGE] = attention[1][6 * PAGE] = 40;      /* 40, and not 80 */
    attention[1][10 * PAGE + 50] = 1000;                       /* it stays without that */
    int32_t s = new_sequence(f);
    ck_assert_int_eq(ak_session_prefill(f->session, s, ids, LONG, NULL, NULL, &last, &f->error),
                     AKUNU_OK);
    uint32_t n_free = f->session->kv.n_free;
    n_read = 0;
    ck_assert_int_eq(ak_session_evict(f->session, s, 255, AKUNU_KV_IMPORTANT, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(f->error.message, "255 tokens of the KV cache are to stay: expected 256 or "
                                       "more");
    ck_assert_msg(ak_session_evict(f->session, s, 256, (enum akunu_kv_choice)_i, &f->error) ==
                      AKUNU_OK,
                  "%s", f->error.message);
    ck_assert_uint_eq(n_read, _i == AKUNU_KV_IMPORTANT ? 32 : 0);
    for (uint32_t page = 0; page < 11; page++)
        ck_assert_msg((f->session->kv.sequences[s].pages[page] != AK_KV_NO_PAGE) == stays[_i][page],
                      "page %u", page);
    ck_assert_uint_eq(f->session->kv.n_free, n_free + 7);
    ck_assert_str_eq(f->log, "KV cache: 4 of 11 pages of 64 tokens stay");
    check_logits(ak_session_logits(f->session, f->session->n_last - 1), ids, LONG);
    fixture_free(f);
}
END_TEST

/* ---- Input sums --------------------------------------------------------- */
static const struct ak_backend_table *summed; /* the table that adds inputs now */
static struct ak_backend_input_sums *given_sums;
static int n_summed;

static void sum_inputs(struct ak_backend_table *table, struct ak_backend_input_sums *sums)
{
    if (!sums)
        ck_assert_ptr_eq(table, summed);
    summed = table;
    n_summed += sums != NULL;
    given_sums = sums;
}

/* A text runs in the table of the logits if their inputs are wanted, else in that of the hidden
 * states; afterwards its sequence is free, and the table adds nothing more. */
START_TEST(sums_of_inputs)
{
    struct fixture *f = fixture_new();
    struct ak_backend_ops ops = fake_ops;
    struct akunu_ids text = { .ids = text_of(0), .n = 70 }, none = { .ids = text_of(0), .n = 0 };
    struct ak_backend_input_sums *sums = (struct ak_backend_input_sums *)(void *)f;
    ops.describe = describe_fake;
    f->backend.base.ops = &ops;
    open_session(f);
    uint32_t n_free = f->session->kv.n_free;
    ck_assert_int_eq(ak_session_sum_inputs(f->session, &text, true, sums, NULL, NULL, &f->error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(f->error.message,
                     "the backend fake cannot sum the inputs of products; the cpu can");
    ops.sum_inputs = sum_inputs;
    for (int wants_output = 0; wants_output < 2; wants_output++) {
        ck_assert_int_eq(
            ak_session_sum_inputs(f->session, &text, wants_output, sums, NULL, NULL, &f->error),
            AKUNU_OK);
        const struct ak_backend_table *expected =
            wants_output ? f->session->logits : f->session->hidden;
        ck_assert_ptr_eq(summed, expected);
        ck_assert_ptr_null(given_sums);
        ck_assert_int_eq(n_summed, wants_output + 1);
        ck_assert_uint_eq(prepared(expected)->runs, 3);
        ck_assert_uint_eq(prepared(expected)->n_logits, 70 - 64); /* all rows of the last pass */
        ck_assert_uint_eq(f->session->kv.n_free, n_free);
        ck_assert_ptr_null(ak_session_logits(f->session, 0));
    }
    ck_assert_ptr_eq(prepared(f->session->hidden)->table, &f->model.hidden_table);
    ck_assert_int_eq(ak_session_sum_inputs(f->session, &none, true, sums, NULL, NULL, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(f->error.message, "the text has no tokens");
    int passes = 2;
    ck_assert_int_eq(
        ak_session_sum_inputs(f->session, &text, true, sums, count_down, &passes, &f->error),
        AKUNU_ERROR_CANCELLED);
    ck_assert_str_eq(f->error.message, "cancelled after 64 of 70 tokens");
    ck_assert(f->session->kv.n_free == n_free && !given_sums);
    fixture_free(f);
}
END_TEST

/* ---- Plans -------------------------------------------------------------- */
static struct ak_backend_table_options planned[4];
static int n_planned;

static ak_status prepare_plan(struct ak_backend *b, const struct ak_table *table,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options, void *kv,
                              struct ak_backend_table **out, struct ak_error *error)
{
    ck_assert_ptr_null(kv);
    planned[n_planned++] = *options;
    return fake_prepare(b, table, weights, spec, options, kv, out, error);
}

/* What a session would take: the pages of its context, and the scratch of its two tables with a row
 * of logits each; of a device the scratch is not known. */
START_TEST(plans)
{
    static const struct {
        uint32_t context, n_seq, batch, expected, pages, tokens;
    } cases[] = {
        { 0, 3, 0, 512, 10, 512 }, { 0, 0, 32, 512, 8, 32 }, { 100, 1, 32, 100, 2, 32 },
        { 10, 4, 32, 10, 4, 10 },  { 64, 1, 5, 64, 1, 5 },
    };
    struct fixture *f = fixture_new();
    struct ak_backend_ops ops = fake_ops;
    struct ak_session_plan plan;
    ops.prepare = prepare_plan;
    f->backend.base.ops = &ops;
    f->model.table.n_commands = f->model.sampled_table.n_commands = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->params.context = cases[i].context;
        f->params.max_sequences = cases[i].n_seq;
        f->params.batch = cases[i].batch;
        n_planned = 0;
        ck_assert_int_eq(ak_session_plan(&f->model, &f->params, &plan, &f->error), AKUNU_OK);
        ck_assert_uint_eq(plan.context, cases[i].expected);
        ck_assert_uint_eq(plan.kv_bytes, cases[i].pages * UINT64_C(512));
        ck_assert_uint_eq(plan.scratch_bytes, 2 * FAKE_VOCAB * sizeof(float));
        ck_assert_int_eq(n_planned, 2);
        ck_assert_uint_eq(planned[0].max_tokens, cases[i].tokens);
        ck_assert_uint_eq(planned[1].max_tokens, cases[i].tokens < 16 ? cases[i].tokens : 16);
        for (int k = 0; k < 2; k++)
            ck_assert(planned[k].context == plan.context && planned[k].n_threads == 1 &&
                      planned[k].kv.n_pages == cases[i].pages);
    }
    ops.check_memory = check_memory;
    ck_assert_int_eq(ak_session_plan(&f->model, &f->params, &plan, &f->error), AKUNU_OK);
    ck_assert_uint_eq(plan.scratch_bytes, 0);
    f->params.max_sequences = f->params.context = UINT32_MAX; /* too many pages */
    ck_assert_int_eq(ak_session_plan(&f->model, &f->params, &plan, &f->error), AKUNU_ERROR_MEMORY);
    f->params.max_sequences = 1; /* a page whose size overflows */
    f->params.context = 64;
    f->model.spec.config.n_kv_heads = f->model.spec.config.head_dim = UINT32_MAX;
    ck_assert_int_eq(ak_session_plan(&f->model, &f->params, &plan, &f->error), AKUNU_ERROR_MEMORY);
    fixture_free(f);
}
END_TEST

/* ---- Recurrent state ---------------------------------------------------- */
/* What layers of a sequence remember: how many tokens, and a hash of them. */
struct state {
    uint32_t n;
    uint64_t hash;
};
static struct state states[4];
static int n_state_passes;

static uint64_t hash_of(const int32_t *ids, uint32_t n)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < n; i++)
        hash = fake_mix(hash, (uint64_t)ids[i] + 1);
    return hash;
}

/* Each token needs the state of all tokens before it; position 0 begins a new one. */
static void run_with_state(struct ak_backend_table *table, const struct ak_batch *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        struct state *state = &states[b->sequences[i]];
        if (b->positions[i] == 0)
            *state = (struct state){ 0 };
        ck_assert_uint_eq(state->n++, b->positions[i]);
        state->hash = fake_mix(state->hash, (uint64_t)b->tokens[i] + 1);
    }
    n_state_passes++;
    fake_ops.run(table, b);
}

static void copy_state(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape, uint32_t to,
                       uint32_t from)
{
    (void)b, (void)kv;
    ck_assert_uint_eq(shape->state_elems, 3);
    ck_assert_uint_eq(shape->n_states, 4);
    states[to] = states[from];
}

/* What was rewound is run again from the beginning, and nothing else is. */
START_TEST(states_are_restored)
{
    struct fixture *f = fixture_new();
    struct ak_backend_ops ops = fake_ops;
    ops.run = run_with_state;
    ops.copy_state = copy_state;
    f->backend.base.ops = &ops;
    f->model.spec.config.n_layers = 2;
    f->model.spec.descriptor.state_elems = 3;
    ak_spec_set_recurrent(&f->model.spec.config, 1);
    f->params.context = 400;
    open_session(f);
    int32_t a = new_sequence(f), b, c;
    size_t last;
    n_state_passes = 0;
    ck_assert_int_eq(
        ak_session_prefill(f->session, a, text_of(0), 80, NULL, NULL, &last, &f->error), AKUNU_OK);
    ck_assert_int_eq(n_state_passes, 3);
    ck_assert_int_eq(ak_session_rewind(f->session, a, 70, &f->error), AKUNU_OK);
    ck_assert(ak_session_kv_state_is_stale(&f->session->kv, a));
    ck_assert_int_eq(run(f, a, 0, 70, 5), AKUNU_OK); /* 70 tokens in passes of 32, then these */
    ck_assert_int_eq(n_state_passes, 7);
    ck_assert_uint_eq(f->session->n_passes, 7);
    ck_assert_uint_eq(f->session->n_tokens, 80 + 70 + 5);
    ck_assert(states[a].hash == hash_of(text_of(0), 75));
    check_logits(ak_session_logits(f->session, 4), text_of(0), 75);
    ck_assert_int_eq(run(f, a, 0, 75, 1), AKUNU_OK); /* it is up to date again */
    ck_assert_int_eq(n_state_passes, 8);

    /* a copy of the whole takes the state with it; a copy of a part does not */
    ck_assert_int_eq(ak_session_fork(f->session, a, 76, &b, &f->error), AKUNU_OK);
    ck_assert_int_eq(run(f, b, 0, 76, 1), AKUNU_OK);
    ck_assert_int_eq(n_state_passes, 9);
    ck_assert(states[b].hash == hash_of(text_of(0), 77));
    ck_assert_int_eq(ak_session_fork(f->session, a, 64, &c, &f->error), AKUNU_OK);
    ck_assert_int_eq(run(f, c, 0, 64, 1), AKUNU_OK);
    ck_assert_int_eq(n_state_passes, 12);
    ck_assert(states[c].hash == hash_of(text_of(0), 65));

    /* back to nothing: there is no state to restore, nor in the next sequence of its place */
    ck_assert_int_eq(ak_session_rewind(f->session, c, 0, &f->error), AKUNU_OK);
    ck_assert_int_eq(run(f, c, 1, 0, 1), AKUNU_OK);
    ck_assert_int_eq(n_state_passes, 13);
    ak_session_kv_sequence_free(&f->session->kv, c);
    ck_assert_int_eq(new_sequence(f), c);
    ck_assert_uint_eq(f->session->kv.sequences[c].length, 0);
    ck_assert_uint_eq(f->session->kv.sequences[c].state_length, 0);
    ck_assert_int_eq(run(f, c, 2, 0, 1), AKUNU_OK);
    ck_assert_int_eq(n_state_passes, 14);

    /* a device that fails while a state is restored: the sequence stays, and so does its need */
    ck_assert_int_eq(ak_session_rewind(f->session, a, 40, &f->error), AKUNU_OK);
    f->backend.lose_pass = true;
    ck_assert_int_eq(run(f, a, 0, 40, 1), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_int_eq(n_state_passes, 15);
    ck_assert_uint_eq(f->session->kv.sequences[a].length, 40);
    f->backend.lose_pass = false;
    ck_assert_int_eq(run(f, a, 0, 40, 1), AKUNU_OK);
    ck_assert_int_eq(n_state_passes, 18);
    ck_assert(states[a].hash == hash_of(text_of(0), 41));
    fixture_free(f);
}
END_TEST

/* ---- Reports ------------------------------------------------------------ */
static bool times_fail;

/* The tables have 1, 10 and 100 rows, by which their numbers are told apart. */
static bool enable_times(struct ak_backend_table *table, bool on)
{
    ((struct fake_prepared *)(void *)table)->runs = on ? 1000 : 0;
    return !times_fail;
}

static bool get_time(const struct ak_backend_table *table, size_t i, struct ak_backend_time *out)
{
    const struct fake_prepared *p = prepared(table);
    double n = p->options.max_logits;
    *out = (struct ak_backend_time){ .name = i == 0 ? "attention" : "linear",
                                     .calls = p->options.max_logits,
                                     .seconds = n * 0.5,
                                     .wait_seconds = n * 0.25,
                                     .bytes = n * 64.0,
                                     .ops = n * 128.0 };
    return i < 2;
}

static void count_products(const struct ak_backend_table *table, struct ak_backend_counts *out)
{
    uint64_t n = prepared(table)->options.max_logits;
    *out = (struct ak_backend_counts){ .gemv = n, .skinny = 2 * n, .gemm = 3 * n };
}

/* Sums over the tables that are prepared: 32 rows of logits, 16 sampled, 32 hidden. */
START_TEST(tables_are_summed)
{
    struct fixture *f = fixture_new();
    struct ak_backend_ops ops = fake_ops;
    struct ak_backend_counts counts;
    struct ak_backend_time time;
    ops.describe = describe_fake;
    ops.counts = count_products;
    f->backend.base.ops = &ops;
    open_session(f);
    ck_assert_int_eq(ak_session_set_timing(f->session, true, &f->error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(f->error.message, "the backend fake measures no times");
    ck_assert(!ak_session_get_time(f->session, 0, &time));
    ops.enable_times = enable_times;
    ops.get_time = get_time;
    for (int n_tables = 1; n_tables <= 3; n_tables++) {
        uint64_t rows = n_tables == 1 ? 32 : n_tables == 2 ? 32 + 16 : 32 + 16 + 32;
        if (n_tables == 2)
            ck_assert_int_eq(ak_session_prepare_sampled(f->session, &f->error), AKUNU_OK);
        for (int i = 0; n_tables == 3 && i < 2; i++) { /* prepared once */
            struct ak_backend_table *hidden;
            ck_assert_int_eq(ak_session_prepare_hidden(f->session, &hidden, &f->error), AKUNU_OK);
            ck_assert_ptr_eq(hidden, f->session->hidden);
            ck_assert_ptr_eq(prepared(hidden)->table, &f->model.hidden_table);
        }
        ck_assert_int_eq(f->backend.n_prepared, n_tables);
        ck_assert_uint_eq(ak_session_scratch_bytes(f->session), rows * FAKE_VOCAB * sizeof(float));
        ak_session_counts(f->session, &counts);
        ck_assert_uint_eq(counts.gemv, rows);
        ck_assert_uint_eq(counts.skinny, 2 * rows);
        ck_assert_uint_eq(counts.gemm, 3 * rows);
        ck_assert_int_eq(ak_session_set_timing(f->session, true, &f->error), AKUNU_OK);
        struct ak_backend_table *tables[] = { f->session->logits, f->session->sampled,
                                              f->session->hidden };
        for (int i = 0; i < n_tables; i++)
            ck_assert_uint_eq(prepared(tables[i])->runs, 1000);
        for (size_t i = 0; i < 2; i++) {
            ck_assert(ak_session_get_time(f->session, i, &time));
            ck_assert_str_eq(time.name, i == 0 ? "attention" : "linear");
            ck_assert_uint_eq(time.calls, rows);
            ck_assert_double_eq(time.seconds, (double)rows * 0.5);
            ck_assert_double_eq(time.wait_seconds, (double)rows * 0.25);
            ck_assert_double_eq(time.bytes, (double)rows * 64.0);
            ck_assert_double_eq(time.ops, (double)rows * 128.0);
        }
        ck_assert(!ak_session_get_time(f->session, 2, &time));
        ck_assert_uint_eq(time.calls, 0);
    }
    ck_assert_int_eq(ak_session_set_timing(f->session, false, &f->error), AKUNU_OK);
    ck_assert_uint_eq(prepared(f->session->hidden)->runs, 0);
    times_fail = true;
    ck_assert_int_eq(ak_session_set_timing(f->session, true, &f->error), AKUNU_ERROR_MEMORY);
    fixture_free(f);
}
END_TEST

/* ---- Pass costs --------------------------------------------------------- */
/* The estimate of n tokens; to a billionth, since the numbers are decimal. */
#define CHECK_COST(c, n, expected)                                                                 \
    ck_assert_double_eq_tol(ak_session_cost_estimate(c, n), expected, 1e-9)

START_TEST(costs_of_sizes)
{
    struct ak_session_cost_model c = { .token_price = 0.25 };
    for (uint32_t n = 1; n <= AK_SKINNY_MAX; n++)
        CHECK_COST(&c, n, 0.0); /* nothing is measured */
    c.seconds[4] = 3.5;
    CHECK_COST(&c, 4, 3.5);
    CHECK_COST(&c, 1, 2.0); /* by the price: 1.75 passes of one are 3.5 s */
    CHECK_COST(&c, 3, 3.0);
    CHECK_COST(&c, 8, 5.5);
    CHECK_COST(&c, 16, 9.5);
    c.seconds[8] = 4.5;
    CHECK_COST(&c, 5, 3.75); /* a line between the two */
    CHECK_COST(&c, 7, 4.25);
    CHECK_COST(&c, 8, 4.5);
    CHECK_COST(&c, 10, 4.5 * 3.25 / 2.75);
    CHECK_COST(&c, 2, 2.5);
    c.seconds[16] = 16.5;
    CHECK_COST(&c, 15, 15.0);
    CHECK_COST(&c, 16, 16.5);
}
END_TEST

START_TEST(costs_are_learned)
{
    struct ak_session_cost_model c = { .token_price = 0.5 };
    ak_session_cost_update(&c, 2, 3.0); /* the first is taken as it is */
    CHECK_COST(&c, 2, 3.0);
    ak_session_cost_update(&c, 2, 4.0); /* a twentieth of what it is more */
    CHECK_COST(&c, 2, 3.05);
    ak_session_cost_update(&c, 2, 2.05); /* a quarter of what it is less */
    CHECK_COST(&c, 2, 2.8);
    ak_session_cost_update(&c, 2, 100.0); /* as much as twice the estimate */
    CHECK_COST(&c, 2, 2.8 + 0.05 * 2.8);
    /* an estimate of 2.94 · 2 / 1.5 is corrected by two fifths of what it is more */
    ak_session_cost_update(&c, 3, 4.92);
    CHECK_COST(&c, 3, 3.92 + 0.4);
    CHECK_COST(&c, 2, 2.94);
    ak_session_cost_update(&c, 3, 4.32);
    CHECK_COST(&c, 3, 4.32);
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

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct listener *l = user;
    (void)index, (void)text;
    ck_assert_uint_eq(n_bytes, 0); /* there is no vocabulary */
    l->reported[l->n_reported++] = token;
    return l->n_reported != l->stop_after;
}

static bool on_cancel(void *user)
{
    struct listener *l = user;
    return l->cancel_after >= 0 && l->n_reported >= l->cancel_after;
}

static struct akunu_generation_params greedy(int64_t n, struct akunu_sampling_params *sampling)
{
    struct akunu_generation_params g = { .size = sizeof g, .max_tokens = n };
    g.sampling = sampling;
    *sampling = (struct akunu_sampling_params){
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
                                    const struct akunu_generation_params *g, struct listener *l,
                                    ak_status expected)
{
    struct akunu_result result;
    struct akunu_generation_params own = *g;
    own.on_piece = on_piece;
    own.cancel = on_cancel;
    own.user = l;
    ak_status status = ak_gen_run(&(struct ak_gen_request){ .session = f->session,
                                                            .sequence = s,
                                                            .ids = text_of(0),
                                                            .n_ids = n_ids,
                                                            .generation = &own },
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
    struct akunu_sampling_params sampling;
    struct akunu_generation_params g = greedy(50, &sampling);
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
    struct akunu_sampling_params sampling;
    struct akunu_generation_params g = greedy(50, &sampling);
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
    struct akunu_sampling_params sampling;
    struct akunu_generation_params g = greedy(1, &sampling);
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

/* Without filters the backend samples, from the second token on. */
START_TEST(backend_samples)
{
    struct fixture *f = fixture_new();
    open_session(f);
    int32_t s = new_sequence(f), ids[100];
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling_params sampling;
    struct akunu_generation_params g = greedy(20, &sampling);
    sampling.temperature = 0.75f;
    memcpy(ids, text_of(0), 40 * sizeof *ids);
    generate(f, s, 40, &g, &l, AKUNU_OK);
    memcpy(ids + 40, l.reported, 20 * sizeof *ids);
    const struct fake_prepared *sampled =
        (const struct fake_prepared *)(const void *)f->session->sampled;
    ck_assert_ptr_nonnull(sampled);
    ck_assert_ptr_eq(sampled->table, &f->model.sampled_table);
    ck_assert_uint_eq(sampled->runs, 19);
    ck_assert(sampled->gumbel.temperature == 0.75f);
    ck_assert_int_eq(l.reported[19], (int32_t)((sampled->gumbel.seed + 58) % FAKE_VOCAB));
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

static void on_logprobs(size_t index, akunu_token token, float logprob,
                        const struct akunu_logprob *top, size_t n_top, void *user)
{
    struct listener *l = user;
    (void)index, (void)token, (void)top, (void)n_top;
    l->logprobs[l->n_logprobs++] = logprob;
}

/* The log-probability of each token that is sampled is the log of softmax at its position. */
START_TEST(logprobs_of_samples)
{
    enum { N_PROMPT = 40, N = 20 };
    struct fixture *f = fixture_new();
    open_session(f);
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling_params sampling;
    struct akunu_generation_params g = greedy(N, &sampling);
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

/* Where a token's logits depend on the pass that it is in, nothing is drafted. */
START_TEST(inexact_backends)
{
    struct fixture *f = fixture_new();
    f->backend.inexact = true;
    open_session(f);
    int32_t s = new_sequence(f);
    struct listener l = { .cancel_after = -1 };
    struct akunu_sampling_params sampling;
    struct akunu_generation_params g = greedy(50, &sampling);
    sampling.temperature = 1.0f; /* the same samples again */
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
    tcase_add_test(tests, last_page);
    tcase_add_test(tests, forks_without_pages);
    tcase_add_test(tests, encoders_have_no_logits);
    tcase_add_test(tests, best_logits_are_wanted);
    tcase_add_test(tests, context_is_reported);
    tcase_add_test(tests, context_is_bounded_by_memory);
    tcase_add_loop_test(tests, context_is_bounded_by_a_device, 0,
                        (int)(sizeof memories / sizeof *memories));
    tcase_add_test(tests, limits);
    tcase_add_test(tests, passes_of_encoders);
    tcase_add_test(tests, sizes_of_sampled_tables);
    tcase_add_test(tests, bad_parameters);
    tcase_add_test(tests, types_of_the_cache);
    tcase_add_test(tests, threads_of_the_environment);
    tcase_add_test(tests, pools);
    tcase_add_loop_test(tests, created_without_memory, 0, 2);
    tcase_add_test(tests, encoded_without_memory);
    tcase_add_loop_test(tests, dropped_pages, 0, 2);
    tcase_add_test(tests, sums_of_inputs);
    tcase_add_test(tests, plans);
    tcase_add_test(tests, states_are_restored);
    tcase_add_test(tests, tables_are_summed);
    tcase_add_test(tests, costs_of_sizes);
    tcase_add_test(tests, costs_are_learned);
    tcase_add_test(tests, greedy_text);
    tcase_add_test(tests, host_stops);
    tcase_add_test(tests, penalties_look_back);
    tcase_add_test(tests, backend_samples);
    tcase_add_test(tests, logprobs_of_samples);
    tcase_add_test(tests, inexact_backends);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

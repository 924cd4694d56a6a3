/* Tokens dropped from the KV cache: which stay, what later tokens see, and what is refused. */
#include <unistd.h>

#include "tests/golden_model.h"
#include "api/handles.h"
#include "engine/session/session.h"

enum { PROMPT = 500, REST = 70, ALL = PROMPT + REST, KEEP = 256, CONTEXT = 1024 };

/* Ids of no text: some pages are then more important than others. */
static void make_ids(akunu_token *ids, size_t n)
{
    uint32_t state = 7;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (akunu_token)(20 + (state >> 24) % 50);
    }
}

static size_t vocab_of(const struct akunu_model *model)
{
    struct akunu_model_info info;
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    return info.vocab_size;
}

static struct akunu_session *open_session(const struct akunu_model *model, unsigned n_threads,
                                          uint32_t batch, enum akunu_kv_type type, uint32_t kv_keep)
{
    struct akunu_session_params params = golden_params(n_threads, batch, type);
    params.context = CONTEXT;
    params.kv_keep = kv_keep;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

static size_t prefill(struct akunu_session *session, akunu_sequence sequence,
                      const akunu_token *ids, size_t n)
{
    size_t last;
    ck_assert_msg(akunu_session_prefill(session, sequence, &(struct akunu_ids){ ids, n }, NULL,
                                        NULL, &last) == AKUNU_OK,
                  "%s", akunu_last_error());
    return last;
}

static void evict(struct akunu_session *session, akunu_sequence sequence,
                  enum akunu_kv_choice choice)
{
    ck_assert_msg(akunu_sequence_evict(session, sequence, KEEP, choice) == AKUNU_OK, "%s",
                  akunu_last_error());
}

/* Logits of the tokens after the prompt, one at a time. */
static void decode_rest(struct akunu_session *session, akunu_sequence sequence,
                        const akunu_token *ids, size_t n_vocab, float *out)
{
    for (size_t i = 0; i < REST; i++) {
        struct akunu_batch_token token = { ids[i], sequence, true };
        ck_assert_msg(akunu_session_decode(session, &token, 1) == AKUNU_OK, "%s",
                      akunu_last_error());
        memcpy(out + i * n_vocab, akunu_session_logits(session, 0), n_vocab * sizeof *out);
    }
}

static const struct ak_session_kv_sequence *state_of(const struct akunu_session *session,
                                                     akunu_sequence sequence)
{
    return ak_session_kv_sequence(&session->inner->kv, sequence);
}

static uint32_t count_free(const struct akunu_session *session)
{
    return session->inner->kv.n_free;
}

/* ---- What stays --------------------------------------------------------- */
static const char *const names[] = { "qwen2", "qwen3", "llama-f32", "gemma3" };
enum { N_NAMES = sizeof names / sizeof *names };

/* The same pages stay, and later tokens have the same bits, whatever the ISA, the threads and the
 * passes. The first page stays, and those of the last 32 tokens. */
START_TEST(same_bits)
{
    static const uint32_t batches[] = { 512, 7, 1 };
    akunu_token ids[ALL];
    make_ids(ids, ALL);
    for (int kv = 0; kv < 2; kv++) {
        enum akunu_kv_type type = kv ? AKUNU_KV_Q5_0 : AKUNU_KV_F16;
        float *first = NULL, *again = NULL;
        uint32_t kept[CONTEXT / 64] = { 0 };
        for (size_t isa = 0; akunu_cpu_name(isa); isa++) {
            struct akunu_model *model = golden_load(names[_i], akunu_cpu_name(isa));
            size_t n_vocab = vocab_of(model), n_runs = isa > 0 ? 3 : 1;
            struct akunu_model_info info;
            ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
            for (size_t run = 0; run < n_runs && (kv == 0 || info.head_dim % 32 == 0); run++) {
                struct akunu_session *session =
                    open_session(model, 1 + (unsigned)run, batches[run], type, KEEP);
                akunu_sequence sequence = akunu_sequence_new(session);
                prefill(session, sequence, ids, PROMPT);
                const struct ak_session_kv_sequence *state = state_of(session, sequence);
                ck_assert_uint_eq(state->length, PROMPT);
                ck_assert_uint_eq(state->n_dropped, (PROMPT + 63) / 64 - KEEP / 64);
                ck_assert_uint_ne(state->pages[0], AK_KV_NO_PAGE);
                ck_assert_uint_ne(state->pages[(PROMPT - 32) / 64], AK_KV_NO_PAGE);
                bool is_first = !first;
                if (is_first) {
                    first = malloc(REST * n_vocab * sizeof *first);
                    again = malloc(REST * n_vocab * sizeof *again);
                }
                decode_rest(session, sequence, ids + PROMPT, n_vocab, is_first ? first : again);
                for (uint32_t p = 0; p < (PROMPT + 63) / 64; p++) {
                    uint32_t is_kept = state->pages[p] != AK_KV_NO_PAGE;
                    ck_assert(is_first || kept[p] == is_kept);
                    kept[p] = is_kept;
                }
                ck_assert_msg(is_first || golden_is_same(again, first, REST * n_vocab),
                              "%s: other bits with cpu %s, batch %u, KV type %d", names[_i],
                              akunu_cpu_name(isa), (unsigned)batches[run], (int)type);
                akunu_session_free(session);
            }
            akunu_model_free(model);
        }
        free(first);
        free(again);
    }
}
END_TEST

/* If no layer sees further back than what stays, nothing changes. */
START_TEST(windows)
{
    akunu_token ids[ALL];
    make_ids(ids, ALL);
    struct akunu_model *model = golden_load("window64", NULL);
    size_t n_vocab = vocab_of(model);
    float *all = malloc(REST * n_vocab * sizeof *all),
          *some = malloc(REST * n_vocab * sizeof *some);
    for (int choice = -1; choice <= AKUNU_KV_RECENT; choice++) {
        struct akunu_session *session = open_session(model, 2, 128, AKUNU_KV_F16, 0);
        akunu_sequence sequence = akunu_sequence_new(session);
        prefill(session, sequence, ids, PROMPT);
        if (choice >= 0)
            evict(session, sequence, (enum akunu_kv_choice)choice);
        decode_rest(session, sequence, ids + PROMPT, n_vocab, choice < 0 ? all : some);
        if (choice >= 0)
            ck_assert(golden_is_same(some, all, REST * n_vocab));
        akunu_session_free(session);
    }
    free(all);
    free(some);
    akunu_model_free(model);
}
END_TEST

/* The weights of a query are 1 together. A model with attention sinks would have less. */
START_TEST(sums_of_weights)
{
    enum { N = 200, WINDOW = 20 };
    akunu_token ids[N];
    make_ids(ids, N);
    struct akunu_model *model = golden_load(names[_i], NULL);
    struct akunu_session *session = open_session(model, 2, 256, AKUNU_KV_F32, 0);
    struct ak_session *s = session->inner;
    akunu_sequence sequence = akunu_sequence_new(session);
    prefill(session, sequence, ids, N);
    const struct ak_kv_shape *shape = &s->kv.shape;
    size_t n_heads = (size_t)shape->n_layers * shape->n_kv_heads, stride = 256;
    uint32_t group = model->inner->spec.config.n_heads / shape->n_kv_heads;
    struct ak_batch_importance importance = { calloc(n_heads * stride, sizeof(uint64_t)), stride,
                                              shape->n_kv_heads };
    for (uint32_t i = 0; i < WINDOW; i++) {
        s->tokens[i] = ids[N - WINDOW + i];
        s->positions[i] = N - WINDOW + i;
        s->sequences[i] = (uint32_t)sequence;
    }
    struct ak_batch batch = { .n = WINDOW,
                              .tokens = s->tokens,
                              .positions = s->positions,
                              .sequences = s->sequences,
                              .pages = s->kv.tables,
                              .importance = &importance };
    struct ak_error error = { 0 };
    s->backend->ops->run(s->logits, &batch);
    ck_assert_int_eq(s->backend->ops->sync(s->logits, &error), AKUNU_OK);
    for (size_t h = 0; h < n_heads; h++) {
        double sum = 0.0;
        for (size_t t = 0; t < stride; t++) {
            ck_assert(t < N || importance.sums[h * stride + t] == 0);
            sum += (double)importance.sums[h * stride + t] / AK_IMPORTANCE_ONE;
        }
        ck_assert_double_eq_tol(sum, WINDOW * group, 1e-3);
    }
    free(importance.sums);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* ---- Afterwards --------------------------------------------------------- */
/* Pages are free for others; a sequence is rewound and forked to what it still has. */
START_TEST(rewind_and_fork)
{
    akunu_token ids[ALL];
    make_ids(ids, ALL);
    struct akunu_model *model = golden_load("qwen2", NULL);
    size_t n_vocab = vocab_of(model);
    float *all = malloc(REST * n_vocab * sizeof *all),
          *some = malloc(REST * n_vocab * sizeof *some);
    struct akunu_session *session = open_session(model, 2, 128, AKUNU_KV_F16, 0);
    akunu_sequence sequence = akunu_sequence_new(session);
    uint32_t n_free = count_free(session);
    prefill(session, sequence, ids, PROMPT);
    akunu_sequence before = akunu_sequence_fork(session, sequence, PROMPT - PROMPT % 64);
    evict(session, sequence, AKUNU_KV_RECENT);
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), PROMPT);
    ck_assert_uint_eq(akunu_sequence_length(session, before), PROMPT - PROMPT % 64);
    akunu_sequence_free(session, before); /* the pages that only it had */
    ck_assert_uint_eq(count_free(session), n_free - KEEP / 64);

    decode_rest(session, sequence, ids + PROMPT, n_vocab, all);
    ck_assert_uint_eq(akunu_sequence_rewindable(session, sequence, PROMPT + 3), PROMPT + 3);
    ck_assert_uint_eq(akunu_sequence_rewindable(session, sequence, UINT32_MAX), ALL);
    ck_assert_uint_eq(akunu_sequence_rewindable(session, sequence, PROMPT - 1), 64);
    ck_assert_uint_eq(akunu_sequence_rewindable(session, sequence, 63), 63);
    ck_assert_int_eq(akunu_sequence_rewind(session, sequence, PROMPT - 1), AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(akunu_last_error(),
                     "499 tokens were asked for, but parts of the KV cache were dropped: expected "
                     "at most 64, or at least 500");
    ck_assert_int_eq(akunu_sequence_fork(session, sequence, 65), -1);
    ck_assert_int_eq(akunu_sequence_rewind(session, sequence, PROMPT), AKUNU_OK);
    akunu_sequence fork = akunu_sequence_fork(session, sequence, PROMPT);
    ck_assert_int_ge(fork, 0);
    decode_rest(session, fork, ids + PROMPT, n_vocab, some);
    ck_assert(golden_is_same(some, all, REST * n_vocab));
    akunu_sequence_free(session, fork);

    /* dropped again, and then from the beginning as if nothing had been dropped */
    prefill(session, sequence, ids + PROMPT, REST);
    evict(session, sequence, AKUNU_KV_IMPORTANT);
    ck_assert_uint_eq(akunu_sequence_rewindable(session, sequence, ALL - 1), 64);
    ck_assert_uint_eq(count_free(session), n_free - KEEP / 64);
    ck_assert_int_eq(akunu_sequence_rewind(session, sequence, 64), AKUNU_OK);
    prefill(session, sequence, ids + 64, PROMPT - 64);
    ck_assert_uint_eq(akunu_sequence_rewindable(session, sequence, PROMPT - 1), PROMPT - 1);
    decode_rest(session, sequence, ids + PROMPT, n_vocab, all);
    fork = akunu_sequence_new(session);
    prefill(session, fork, ids, PROMPT);
    decode_rest(session, fork, ids + PROMPT, n_vocab, some);
    ck_assert(golden_is_same(some, all, REST * n_vocab));
    akunu_sequence_free(session, fork);
    akunu_sequence_free(session, sequence);
    ck_assert_uint_eq(count_free(session), n_free);
    free(all);
    free(some);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* kv_keep does by itself what akunu_sequence_evict does; the logits of the last token stay. */
START_TEST(after_prompts)
{
    akunu_token ids[ALL];
    make_ids(ids, ALL);
    struct akunu_model *model = golden_load("qwen3", NULL);
    size_t n_vocab = vocab_of(model);
    float *all = malloc(REST * n_vocab * sizeof *all),
          *some = malloc(REST * n_vocab * sizeof *some);
    for (uint32_t keep = 0; keep <= KEEP; keep += KEEP) {
        struct akunu_session *session = open_session(model, 2, 100, AKUNU_KV_F16, keep);
        akunu_sequence sequence = akunu_sequence_new(session);
        size_t last = prefill(session, sequence, ids, PROMPT);
        const float *logits = akunu_session_logits(session, last);
        ck_assert_ptr_nonnull(logits);
        if (keep > 0)
            ck_assert(golden_is_same(logits, all, n_vocab));
        memcpy(all, logits, n_vocab * sizeof *all);
        if (keep == 0)
            evict(session, sequence, AKUNU_KV_IMPORTANT);
        ck_assert_uint_eq(state_of(session, sequence)->n_dropped, 4);
        if (keep == 0) {
            float *kept = malloc(n_vocab * sizeof *kept);
            memcpy(kept, all, n_vocab * sizeof *kept);
            decode_rest(session, sequence, ids + PROMPT, n_vocab, all);
            memcpy(some, all, REST * n_vocab * sizeof *some);
            memcpy(all, kept, n_vocab * sizeof *kept);
            free(kept);
        } else {
            decode_rest(session, sequence, ids + PROMPT, n_vocab, all);
            ck_assert(golden_is_same(some, all, REST * n_vocab));
        }
        akunu_session_free(session);
    }
    free(all);
    free(some);
    akunu_model_free(model);
}
END_TEST

/* Nothing is dropped if the text is not longer. */
START_TEST(short_texts)
{
    akunu_token ids[ALL];
    make_ids(ids, ALL);
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = open_session(model, 1, 128, AKUNU_KV_F16, KEEP);
    akunu_sequence sequence = akunu_sequence_new(session);
    evict(session, sequence, AKUNU_KV_IMPORTANT);
    prefill(session, sequence, ids, KEEP);
    ck_assert_uint_eq(state_of(session, sequence)->n_dropped, 0);
    prefill(session, sequence, ids, 1);
    ck_assert_uint_eq(state_of(session, sequence)->n_dropped, 1);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* ---- Refusals ----------------------------------------------------------- */
START_TEST(refused)
{
    akunu_token ids[ALL];
    make_ids(ids, ALL);
    struct akunu_model *model = golden_load("qwen2", NULL), *running = golden_load("lfm2", NULL);
    struct akunu_session_params params = golden_params(1, 32, AKUNU_KV_F16);
    params.kv_choice = AKUNU_KV_RECENT;
    ck_assert_ptr_null(akunu_session_new(model, &params));
    ck_assert_str_eq(akunu_last_error(), "kv_choice has no effect without kv_keep");
    params.kv_choice = (enum akunu_kv_choice)2;
    ck_assert_ptr_null(akunu_session_new(model, &params));
    ck_assert_str_eq(akunu_last_error(),
                     "kv_choice is 2: expected a value of enum akunu_kv_choice");
    params.kv_choice = AKUNU_KV_IMPORTANT;
    params.kv_keep = 255;
    ck_assert_ptr_null(akunu_session_new(model, &params));
    ck_assert_str_eq(akunu_last_error(), "kv_keep is 255: expected 0, or 256 and more");
    params.kv_keep = 256;
    ck_assert_ptr_null(akunu_session_new(running, &params));
    ck_assert_str_eq(akunu_last_error(), "the model has recurrent state: parts of its KV cache "
                                         "cannot be dropped");

    struct akunu_session *session = open_session(model, 1, 128, AKUNU_KV_F16, KEEP);
    akunu_sequence sequence = akunu_sequence_new(session);
    prefill(session, sequence, ids, PROMPT);
    ck_assert_int_eq(akunu_sequence_evict(session, sequence, 255, AKUNU_KV_IMPORTANT),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_sequence_evict(session, sequence, 256, (enum akunu_kv_choice)2),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_sequence_evict(session, 3, 256, AKUNU_KV_RECENT), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_sequence_save(session, sequence, "/tmp/akunu-not-written"),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(akunu_last_error(),
                     "parts of the sequence's KV cache were dropped: it cannot be saved");
    ck_assert_int_ne(access("/tmp/akunu-not-written", F_OK), 0);
    akunu_session_free(session);
    akunu_model_free(model);
    akunu_model_free(running);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("evict");
    TCase *tests = tcase_create("evict");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, same_bits, 0, N_NAMES);
    tcase_add_test(tests, windows);
    tcase_add_loop_test(tests, sums_of_weights, 0, N_NAMES);
    tcase_add_test(tests, rewind_and_fork);
    tcase_add_test(tests, after_prompts);
    tcase_add_test(tests, short_texts);
    tcase_add_test(tests, refused);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

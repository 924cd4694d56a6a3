/* Whole models through the public header: logits and greedy texts against
 * transformers and numpy, determinism, load stages, memory
 * report, errors. */
#include <math.h>
#include <pthread.h>

#include "api/handles.h"
#include "base/random.h"
#include "tests/golden_model.h"

/* ---- Logits ------------------------------------------------------------- */
/* Logits of all ids, run in passes of the session's batch, copied to out. */
static void logits_of(struct akunu_session *session, akunu_sequence sequence,
                      const akunu_token *ids, size_t n, size_t n_vocab, float *out)
{
    struct akunu_batch_token tokens[512];
    size_t batch = akunu_session_batch(session), count;
    ck_assert_uint_le(batch < n ? batch : n, sizeof tokens / sizeof *tokens);
    for (size_t first = 0; first < n; first += count) {
        count = n - first < batch ? n - first : batch;
        for (size_t i = 0; i < count; i++)
            tokens[i] = (struct akunu_batch_token){ ids[first + i], sequence, true };
        ck_assert_msg(akunu_session_decode(session, tokens, count) == AKUNU_OK, "%s",
                      akunu_last_error());
        for (size_t i = 0; i < count; i++)
            memcpy(out + (first + i) * n_vocab, akunu_session_logits(session, i),
                   n_vocab * sizeof *out);
    }
}

static size_t vocab_of(const struct akunu_model *model)
{
    struct akunu_model_info info;
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_le(info.vocab_size, GOLDEN_VOCAB);
    return info.vocab_size;
}

static size_t head_dim_of(const struct akunu_model *model)
{
    struct akunu_model_info info;
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    return info.head_dim;
}

static size_t argmax(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

START_TEST(logits_and_greedy)
{
    const struct golden *golden = &goldens[_i];
    struct golden_text text;
    golden_read_text(golden->name, &text);
    struct akunu_model *model = golden_load(golden->name, NULL);
    size_t n_vocab = vocab_of(model), n = text.n_prompt + text.n_greedy;
    float *want = golden_read_logits(golden->name, text.n_prompt * n_vocab),
          *got = malloc(n * n_vocab * sizeof *got);
    ck_assert_ptr_nonnull(got);
    /* keys and values rounded to F16 cost the exact models some of their agreement */
    for (int kv = AKUNU_KV_F16; kv <= AKUNU_KV_F32; kv++) {
        double bound = kv == AKUNU_KV_F32 ?
                           golden_bound(golden->f32, golden->f32 > 1e-5 ? 4e-4 : 1e-9) :
                           golden_bound(golden->f16, golden->f16 > 1e-5 ? 4e-4 : 1e-6);
        struct akunu_session *session = golden_session(model, 2, 512, (enum akunu_kv_type)kv);
        akunu_sequence sequence = akunu_sequence_new(session);
        logits_of(session, sequence, text.ids, n, n_vocab, got);
        double error = golden_nmse(got, want, text.n_prompt * n_vocab);
        ck_assert_msg(error <= bound, "%s: NMSE %.2e, at most %.2e", golden->name, error, bound);
        for (size_t i = 0; i < text.n_greedy; i++)
            if (text.leads[i] > golden->lead)
                ck_assert_uint_eq(argmax(got + (text.n_prompt + i - 1) * n_vocab, n_vocab),
                                  (size_t)text.ids[text.n_prompt + i]);
        akunu_sequence_free(session, sequence);
        akunu_session_free(session);
    }
    free(got);
    free(want);
    akunu_model_free(model);
}
END_TEST

/* ---- Several pages, and windows of one page and more -------------------- */
static const struct {
    const char *name;
    double measured[AKUNU_KV_Q5_1 + 1]; /* NMSE of the stored rows, by KV type */
} windows[] = {
    { "window64",
      { [AKUNU_KV_F32] = 7.6e-13,
        [AKUNU_KV_F16] = 2.6e-7,
        [AKUNU_KV_BF16] = 9.1e-6,
        [AKUNU_KV_Q8_0] = 1.48e-4,
        [AKUNU_KV_Q4_0] = 4.03e-2,
        [AKUNU_KV_Q4_1] = 2.76e-2,
        [AKUNU_KV_IQ4_NL] = 6.34e-2,
        [AKUNU_KV_Q5_0] = 1.23e-2,
        [AKUNU_KV_Q5_1] = 7.42e-3 } },
    { "window100",
      { [AKUNU_KV_F32] = 8.4e-14,
        [AKUNU_KV_F16] = 2.4e-8,
        [AKUNU_KV_BF16] = 1.5e-6,
        [AKUNU_KV_Q8_0] = 1.70e-5,
        [AKUNU_KV_Q4_0] = 4.14e-3,
        [AKUNU_KV_Q4_1] = 4.26e-3,
        [AKUNU_KV_IQ4_NL] = 3.77e-3,
        [AKUNU_KV_Q5_0] = 1.44e-3,
        [AKUNU_KV_Q5_1] = 1.06e-3 } },
};
enum {
    N_WINDOWS = sizeof windows / sizeof *windows,
    N_WINDOW_TESTS = N_WINDOWS * (AKUNU_KV_Q5_1 + 1)
};

/* Each KV type, at page borders and where the window moves over them: near transformers, and
 * the same bits in one pass, in odd passes, token by token, and of every ISA. */
START_TEST(pages_and_windows)
{
    static const uint32_t batches[] = { 512, 37, 1 };
    enum akunu_kv_type kv = (enum akunu_kv_type)(_i % (AKUNU_KV_Q5_1 + 1));
    const char *name = windows[_i / (AKUNU_KV_Q5_1 + 1)].name;
    double bound = golden_bound(windows[_i / (AKUNU_KV_Q5_1 + 1)].measured[kv], 1e-6);
    struct golden_text text;
    golden_read_text(name, &text);
    size_t n = text.n_prompt + text.n_greedy, n_vocab = 0;
    float *first = NULL, *again = NULL, *want = NULL;
    for (size_t isa = 0; akunu_cpu_name(isa); isa++) {
        bool best = strcmp(akunu_cpu_name(isa), akunu_cpu_best()) == 0;
        struct akunu_model *model = golden_load(name, akunu_cpu_name(isa));
        if (!first) {
            n_vocab = vocab_of(model);
            first = malloc(n * n_vocab * sizeof *first);
            again = malloc(n * n_vocab * sizeof *again);
            want = golden_read_logits(name, text.n_rows * n_vocab);
            ck_assert(first && again);
        }
        for (size_t b = 0; b < (best ? sizeof batches / sizeof *batches : 1); b++) {
            struct akunu_session *session = golden_session(model, 1 + (unsigned)b, batches[b], kv);
            float *got = isa == 0 && b == 0 ? first : again;
            logits_of(session, akunu_sequence_new(session), text.ids, n, n_vocab, got);
            ck_assert_msg(golden_is_same(got, first, n * n_vocab),
                          "%s: other bits with cpu %s, batch %u, KV type %d", name,
                          akunu_cpu_name(isa), (unsigned)batches[b], (int)kv);
            akunu_session_free(session);
        }
        akunu_model_free(model);
    }
    for (size_t i = 0; i < text.n_rows; i++)
        memcpy(again + i * n_vocab, first + text.rows[i] * n_vocab, n_vocab * sizeof *again);
    double error = golden_nmse(again, want, text.n_rows * n_vocab);
    ck_assert_msg(error <= bound, "%s, KV type %d: NMSE %.2e, at most %.2e", name, (int)kv, error,
                  bound);
    for (size_t i = 0; kv == AKUNU_KV_F32 && i < text.n_greedy; i++)
        if (text.leads[i] > 0.01)
            ck_assert_uint_eq(argmax(first + (text.n_prompt + i - 1) * n_vocab, n_vocab),
                              (size_t)text.ids[text.n_prompt + i]);
    free(first);
    free(again);
    free(want);
}
END_TEST

/* One token of many pages, which threads share out: a window that has left the first pages. The
 * same bits as in a pass of all tokens, where a thread has all pages of its rows. */
START_TEST(shared_pages)
{
    enum { N = 400, N_DECODED = 80, N_ALL = N + N_DECODED };
    static const char *const override_kv[] = { "llama.attention.sliding_window=int:260", NULL };
    char path[4096];
    struct golden_text text;
    golden_read_text("window64", &text);
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 2;
    params.override_kv = override_kv;
    struct akunu_model *model = akunu_model_load(golden_path("window64", ".gguf", path), &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    size_t n_vocab = vocab_of(model);
    akunu_token ids[N_ALL];
    for (size_t i = 0; i < N_ALL; i++)
        ids[i] = text.ids[i % text.n_prompt];
    float *want = malloc(N_ALL * n_vocab * sizeof *want),
          *got = malloc(N_ALL * n_vocab * sizeof *got);
    ck_assert(want && got);
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct akunu_session_params wide =
            golden_params(threads, threads == 1 ? N_ALL : N, AKUNU_KV_F16);
        wide.context = N_ALL;
        wide.max_sequences = 1;
        struct akunu_session *session = akunu_session_new(model, &wide);
        ck_assert_msg(session != NULL, "%s", akunu_last_error());
        akunu_sequence sequence = akunu_sequence_new(session);
        logits_of(session, sequence, ids, threads == 1 ? N_ALL : N, n_vocab,
                  threads == 1 ? want : got);
        for (size_t i = N; threads > 1 && i < N_ALL; i++) {
            logits_of(session, sequence, ids + i, 1, n_vocab, got + i * n_vocab);
            ck_assert_msg(golden_is_same(got + i * n_vocab, want + i * n_vocab, n_vocab),
                          "token %zu has other bits with %u threads", i, threads);
        }
        akunu_session_free(session);
    }
    free(want);
    free(got);
    akunu_model_free(model);
}
END_TEST

/* ---- Determinism: the same bits whatever the threads, the passes, the ISA -- */
/* Each combination has its turn with every third model, or every second one: a model has
 * each batch, and each number of threads with two. */
START_TEST(same_bits)
{
    static const uint32_t batches[] = { 512, 7, 32, 17, 1, 16 };
    const struct golden *golden = golden_at(_i);
    struct golden_text text;
    golden_read_text(golden->name, &text);
    enum { N = 230 }; /* four pages: enough to be shared out */
    akunu_token ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = text.ids[i % (text.n_prompt + text.n_greedy)];
    float *first = calloc((size_t)N * GOLDEN_VOCAB, sizeof *first),
          *again = calloc((size_t)N * GOLDEN_VOCAB, sizeof *again);
    ck_assert(first && again);
    for (int kv = AKUNU_KV_F16; kv <= AKUNU_KV_Q5_1; kv++) {
        bool have_first = false;
        for (size_t isa = 0; akunu_cpu_name(isa); isa++) {
            struct akunu_model *model = golden_load(golden->name, akunu_cpu_name(isa));
            size_t n_vocab = vocab_of(model);
            if (kv >= AKUNU_KV_Q8_0 && head_dim_of(model) % 32 != 0) {
                struct akunu_session_params params = golden_params(1, 1, (enum akunu_kv_type)kv);
                ck_assert_ptr_null(akunu_session_new(model, &params));
                ck_assert_ptr_nonnull(strstr(akunu_last_error(), "multiple of 32"));
                akunu_model_free(model);
                continue;
            }
            /* scalar, which is slow, makes the first only */
            bool all = kv == AKUNU_KV_F16 && isa > 0;
            for (unsigned threads = 1; threads <= 3; threads += all ? 1 : 2) {
                for (size_t b = 0;
                     b < sizeof batches / sizeof *batches && (all || isa > 0 || !have_first);
                     b += all ? 1 : 3) {
                    if (have_first && !test_is_full() &&
                        ((size_t)_i + isa + threads / (all ? 1 : 2) + b / (all ? 1 : 3)) %
                                (all ? 3 : 2) !=
                            0)
                        continue;
                    struct akunu_session *session =
                        golden_session(model, threads, batches[b], (enum akunu_kv_type)kv);
                    ck_assert_uint_eq(akunu_session_threads(session), threads);
                    logits_of(session, akunu_sequence_new(session), ids, N, n_vocab,
                              have_first ? again : first);
                    ck_assert_msg(!have_first || golden_is_same(again, first, N * n_vocab),
                                  "%s: other bits with cpu %s, %u threads, batch %u, KV type %d",
                                  golden->name, akunu_cpu_name(isa), threads, (unsigned)batches[b],
                                  kv);
                    have_first = true;
                    akunu_session_free(session);
                }
            }
            akunu_model_free(model);
        }
    }
    free(first);
    free(again);
}
END_TEST

/* A token's logits do not depend on what else is in its pass, nor on where its
 * prefix came from. */
START_TEST(same_bits_in_company)
{
    enum { N = 40 };
    const struct golden *golden = golden_at(_i);
    struct golden_text text;
    golden_read_text(golden->name, &text);
    struct akunu_model *model = golden_load(golden->name, NULL);
    size_t n_vocab = vocab_of(model);
    static float alone[3][N][GOLDEN_VOCAB];
    akunu_token ids[3][N];
    struct akunu_session *session = golden_session(model, 2, 512, AKUNU_KV_F16);
    for (int s = 0; s < 3; s++) {
        akunu_sequence sequence = akunu_sequence_new(session);
        for (int i = 0; i < N; i++)
            ids[s][i] = text.ids[(i * (s + 1) + s) % (int)text.n_prompt];
        for (int i = 0; i < N; i++) {
            struct akunu_batch_token token = { ids[s][i], sequence, true };
            ck_assert_int_eq(akunu_session_decode(session, &token, 1), AKUNU_OK);
            memcpy(alone[s][i], akunu_session_logits(session, 0), n_vocab * sizeof(float));
        }
        akunu_sequence_free(session, sequence);
    }

    /* three sequences at once, their tokens mixed */
    akunu_sequence sequences[3];
    struct akunu_batch_token tokens[3 * N];
    int owner[3 * N], position[3 * N], next[3] = { 0 };
    for (int s = 0; s < 3; s++)
        sequences[s] = akunu_sequence_new(session);
    for (int i = 0, s = 0; i < 3 * N; i++) {
        for (s = (s + 1 + i % 2) % 3; next[s] == N; s = (s + 1) % 3)
            ;
        owner[i] = s;
        position[i] = next[s]++;
        tokens[i] = (struct akunu_batch_token){ ids[s][position[i]], sequences[s], true };
    }
    ck_assert_int_eq(akunu_session_decode(session, tokens, 3 * N), AKUNU_OK);
    for (int i = 0; i < 3 * N; i++)
        ck_assert_msg(golden_is_same(akunu_session_logits(session, (size_t)i),
                                     alone[owner[i]][position[i]], n_vocab),
                      "%s: other bits in company: %d %d", golden->name, owner[i], position[i]);

    /* a rewound sequence and a forked one go on as the first did; the others are undisturbed */
    ck_assert_int_eq(akunu_sequence_rewind(session, sequences[0], 23), AKUNU_OK);
    akunu_sequence fork = akunu_sequence_fork(session, sequences[1], 31);
    ck_assert_int_ge(fork, 0);
    ck_assert_uint_eq(akunu_sequence_length(session, fork), 31);
    for (int i = 0; i < 9; i++) {
        struct akunu_batch_token pair[] = { { ids[0][23 + i], sequences[0], true },
                                            { ids[1][31 + i], fork, true } };
        ck_assert_int_eq(akunu_session_decode(session, pair, 2), AKUNU_OK);
        ck_assert_msg(golden_is_same(akunu_session_logits(session, 0), alone[0][23 + i], n_vocab),
                      "%s: other bits in company", golden->name);
        ck_assert_msg(golden_is_same(akunu_session_logits(session, 1), alone[1][31 + i], n_vocab),
                      "%s: other bits in company", golden->name);
    }
    ck_assert_int_eq(akunu_sequence_rewind(session, sequences[1], N - 1), AKUNU_OK);
    struct akunu_batch_token token = { ids[1][N - 1], sequences[1], true };
    ck_assert_int_eq(akunu_session_decode(session, &token, 1), AKUNU_OK);
    ck_assert_msg(golden_is_same(akunu_session_logits(session, 0), alone[1][N - 1], n_vocab),
                  "%s: other bits in company", golden->name);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* One token, a few and many go to three kinds of kernels, and each is exercised. */
START_TEST(kernels_are_counted)
{
    enum { N = 40 };
    struct akunu_model *model = golden_load("mixed", NULL);
    struct golden_text text;
    golden_read_text("mixed", &text);
    static const uint32_t batches[] = { 1, 4, 2 * N };
    for (int i = 0; i < 3; i++) {
        struct akunu_counters counters;
        struct akunu_session *session = golden_session(model, 2, batches[i], AKUNU_KV_F16);
        struct akunu_batch_token batch[2 * N];
        for (int s = 0, n = 0; s < 2; s++) {
            akunu_sequence sequence = akunu_sequence_new(session);
            for (int k = 0; k < N; k++)
                batch[n++] = (struct akunu_batch_token){ text.ids[k], sequence, k == N - 1 };
        }
        for (uint32_t n = 0; n < 2 * N; n += batches[i])
            ck_assert_msg(akunu_session_decode(session, batch + n, batches[i]) == AKUNU_OK, "%s",
                          akunu_last_error());
        ck_assert_int_eq(akunu_session_get_counters(session, &counters, sizeof counters), AKUNU_OK);
        ck_assert_uint_eq(counters.passes, 2 * N / batches[i]);
        ck_assert_uint_eq(counters.tokens, 2 * N);
        ck_assert_int_eq(counters.gemm > 0, i == 2);
        if (i != 1) /* of many tokens a few have logits */
            ck_assert_int_eq(counters.gemv > 0, i == 0);
        if (i != 2)
            ck_assert_int_eq(counters.skinny > 0, i == 1);
        akunu_session_free(session);
    }
    akunu_model_free(model);
}
END_TEST

struct reader {
    const struct akunu_model *model;
    const struct golden_text *text;
    size_t n_vocab;
    float *logits; /* of the prompt */
};

/* Returns NULL, or why there are no logits: libcheck's assertions are for the test's own thread. */
static void *read_prompt(void *user)
{
    struct reader *r = user;
    struct akunu_session_params params = golden_params(2, 16, AKUNU_KV_F16);
    struct akunu_session *session = akunu_session_new(r->model, &params);
    if (!session)
        return (void *)(uintptr_t) "no session";
    akunu_sequence sequence = akunu_sequence_new(session);
    for (size_t i = 0; i < r->text->n_prompt; i++) {
        struct akunu_batch_token token = { r->text->ids[i], sequence, true };
        if (akunu_session_decode(session, &token, 1) != AKUNU_OK)
            return (void *)(uintptr_t) "no logits";
        memcpy(r->logits + i * r->n_vocab, akunu_session_logits(session, 0),
               r->n_vocab * sizeof *r->logits);
    }
    akunu_session_free(session);
    return NULL;
}

/* Threads of the host, each with a session of its own, share a model and get the same bits. */
START_TEST(threads_share_a_model)
{
    enum { N_READERS = 3 };
    struct golden_text text;
    const char *name = golden_kinds[_i];
    golden_read_text(name, &text);
    struct akunu_model *model = golden_load(name, NULL);
    size_t n_vocab = vocab_of(model), n = text.n_prompt * n_vocab;
    struct reader readers[N_READERS];
    pthread_t threads[N_READERS];
    for (int i = 0; i < N_READERS; i++) {
        readers[i] = (struct reader){ model, &text, n_vocab, malloc(n * sizeof(float)) };
        ck_assert_ptr_nonnull(readers[i].logits);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_prompt, &readers[i]), 0);
    }
    for (int i = 0; i < N_READERS; i++) {
        void *why;
        ck_assert_int_eq(pthread_join(threads[i], &why), 0);
        ck_assert_msg(!why, "%s, thread %d: %s", name, i, (const char *)why);
        ck_assert(golden_is_same(readers[i].logits, readers[0].logits, n));
    }
    for (int i = 0; i < N_READERS; i++)
        free(readers[i].logits);
    akunu_model_free(model);
}
END_TEST

/* ---- Generation --------------------------------------------------------- */
struct heard {
    size_t n;
    akunu_token tokens[256];
    char text[4096];
    size_t n_text;
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct heard *heard = user;
    (void)index;
    if (token >= 0)
        heard->tokens[heard->n++] = token;
    memcpy(heard->text + heard->n_text, text, n_bytes);
    heard->n_text += n_bytes;
    return true;
}

static struct heard generate(const struct akunu_model *model, const struct golden_text *text,
                             unsigned n_threads, const struct akunu_generation_params *params,
                             enum akunu_stop stop)
{
    struct heard heard = { 0 };
    struct akunu_result result = { .size = sizeof result };
    struct akunu_session *session = golden_session(model, n_threads, 16, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    struct akunu_generation_params own = *params;
    own.on_piece = on_piece;
    own.user = &heard;
    ck_assert_msg(akunu_session_generate(session, sequence,
                                         &(struct akunu_ids){ text->ids, text->n_prompt }, &own,
                                         &result) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert_int_eq(result.stop, stop);
    ck_assert_uint_eq(result.n_prompt, text->n_prompt);
    ck_assert_uint_eq(result.n_generated, heard.n);
    akunu_session_free(session);
    return heard;
}

START_TEST(greedy_text)
{
    const struct golden *golden = &goldens[_i];
    struct golden_text text;
    golden_read_text(golden->name, &text);
    struct akunu_model *model = golden_load(golden->name, NULL);
    struct akunu_generation_params params;
    struct akunu_sampling_params sampling;
    akunu_generation_params_default(&params, sizeof params);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    params.sampling = &sampling;
    params.max_tokens = (int64_t)text.n_greedy;
    sampling.temperature = 0.0f;
    sampling.ignore_end = true;
    params.special = true;
    struct heard heard = generate(model, &text, 2, &params, AKUNU_STOP_LENGTH);
    ck_assert_uint_eq(heard.n, text.n_greedy);
    for (size_t i = 0; i < heard.n && text.leads[i] > golden->lead; i++)
        ck_assert_int_eq(heard.tokens[i], text.ids[text.n_prompt + i]);

    const struct akunu_tokenizer *tokenizer = akunu_model_tokenizer(model);
    if (tokenizer) { /* the pieces make the text of the tokens */
        char whole[4096];
        int64_t n =
            akunu_tokenizer_decode(tokenizer, heard.tokens, heard.n, 0, whole, sizeof whole);
        ck_assert_int_ge(n, 1);
        struct akunu_stream *stream = akunu_stream_new(tokenizer, 0);
        const char *piece;
        size_t n_piece, at = 0;
        for (size_t i = 0; i <= heard.n; i++) {
            enum akunu_status status =
                i < heard.n ? akunu_stream_push(stream, heard.tokens[i], &piece, &n_piece) :
                              akunu_stream_end(stream, &piece, &n_piece);
            ck_assert_int_eq(status, AKUNU_OK);
            ck_assert_mem_eq(piece, heard.text + at, n_piece);
            at += n_piece;
        }
        ck_assert_uint_eq(at, heard.n_text);
        akunu_stream_free(stream);
    }
    akunu_model_free(model);
}
END_TEST

/* A seed gives the same text with any number of threads, sampled by the sampler or
 * by the backend; end tokens stop it unless they are forbidden. */
START_TEST(seeded_text)
{
    struct golden_text text;
    golden_read_text("qwen3", &text);
    struct akunu_model *model = golden_load("qwen3", NULL);
    const struct akunu_tokenizer *tokenizer = akunu_model_tokenizer(model);
    struct akunu_generation_params params;
    struct akunu_sampling_params sampling;
    akunu_generation_params_default(&params, sizeof params);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    params.sampling = &sampling;
    sampling.seed = 77;
    for (int plain = 0; plain < 2; plain++) {
        if (plain) {
            sampling.top_k = 0;
            sampling.top_p = 1.0f;
            sampling.min_p = 0.0f;
        }
        params.max_tokens = 60;
        sampling.ignore_end = !plain;
        sampling.seed = 6; /* of these, one whose text does not end early */
        struct heard a = generate(model, &text, 1, &params, AKUNU_STOP_LENGTH),
                     b = generate(model, &text, 3, &params, AKUNU_STOP_LENGTH);
        ck_assert_mem_eq(a.tokens, b.tokens, a.n * sizeof *a.tokens);
        for (size_t i = 0; i < a.n; i++)
            ck_assert(!akunu_tokenizer_is_end(tokenizer, a.tokens[i]));
    }
    /* at a temperature at which all tokens are alike, an end comes soon */
    sampling.temperature = 1e6f;
    params.max_tokens = 200;
    size_t n_ended = 0;
    for (sampling.seed = 1; sampling.seed <= 40; sampling.seed++) {
        struct heard heard = { 0 };
        struct akunu_result result = { .size = sizeof result };
        struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16);
        akunu_sequence sequence = akunu_sequence_new(session);
        params.on_piece = on_piece;
        params.user = &heard;
        ck_assert_int_eq(akunu_session_generate(session, sequence,
                                                &(struct akunu_ids){ text.ids, 1 }, &params,
                                                &result),
                         AKUNU_OK);
        n_ended += result.stop == AKUNU_STOP_END;
        for (size_t i = 0; i < heard.n; i++)
            ck_assert(!akunu_tokenizer_is_end(tokenizer, heard.tokens[i]));
        akunu_session_free(session);
    }
    ck_assert_uint_ge(n_ended, 1);
    akunu_model_free(model);
}
END_TEST

/* The sampled table samples from softmax(logits / temperature): Pearson's
 * chi-squared over the tokens that are expected ten times or more. */
START_TEST(gumbel_distribution)
{
    enum { DRAWS = 6000 };
    struct golden_text text;
    golden_read_text("qwen2", &text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    size_t n_vocab = vocab_of(model), last;
    struct akunu_session *session = golden_session(model, 1, 64, AKUNU_KV_F16);
    akunu_sequence sequence = akunu_sequence_new(session);
    struct ak_error error = { 0 };
    struct ak_random random;
    double p[GOLDEN_VOCAB], sum = 0.0, chi2 = 0.0, freedom = -1.0;
    int seen[GOLDEN_VOCAB] = { 0 };
    const float temperature = 1.4f;

    ck_assert_int_eq(akunu_session_prefill(session, sequence, &(struct akunu_ids){ text.ids, 20 },
                                           NULL, NULL, &last),
                     AKUNU_OK);
    const float *logits = akunu_session_logits(session, last);
    for (size_t i = 0; i < n_vocab; i++)
        sum += p[i] = exp((double)logits[i] / (double)temperature);
    ck_assert_int_eq(ak_session_prepare_sampled(session->inner, &error), AKUNU_OK);
    struct akunu_batch_token only = { .token = text.ids[19], .sequence = sequence, .logits = true };
    ak_random_seed(&random, 99);
    for (int i = 0; i < DRAWS; i++) {
        int32_t token;
        struct ak_gumbel_params gumbel = { .temperature = temperature,
                                           .seed = ak_random_bits(&random) };
        ck_assert_int_eq(akunu_sequence_rewind(session, sequence, 19), AKUNU_OK);
        ck_assert_int_eq(ak_session_sample(session->inner, &only, 1, gumbel, &token, &error),
                         AKUNU_OK);
        ck_assert(token >= 0 && (size_t)token < n_vocab);
        seen[token]++;
    }
    double rest = DRAWS, rest_seen = DRAWS;
    for (size_t i = 0; i < n_vocab; i++) {
        double expected = p[i] / sum * DRAWS;
        if (expected < 10.0)
            continue;
        chi2 += (seen[i] - expected) * (seen[i] - expected) / expected;
        rest -= expected;
        rest_seen -= seen[i];
        freedom += 1.0;
    }
    if (rest >= 10.0) {
        chi2 += (rest_seen - rest) * (rest_seen - rest) / rest;
        freedom += 1.0;
    }
    ck_assert_double_ge(freedom, 10.0);
    ck_assert_msg(chi2 < freedom + 5.0 * sqrt(2.0 * freedom),
                  "chi2 %.1f with %.0f degrees of freedom", chi2, freedom);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* ---- Loading ------------------------------------------------------------ */
struct stages {
    int n;
    enum akunu_load_stage last;
    enum akunu_load_stage cancel_at;
    double fraction;
};

static bool on_progress(enum akunu_load_stage stage, double fraction, void *user)
{
    struct stages *stages = user;
    if (stage == stages->last) {
        ck_assert_int_eq(stage, AKUNU_STAGE_WEIGHTS);
        ck_assert_double_ge(fraction, stages->fraction);
    } else {
        ck_assert_int_eq(stage, (int)stages->last + 1);
        stages->n++;
    }
    ck_assert(fraction >= 0.0 && fraction <= 1.0);
    stages->last = stage;
    stages->fraction = fraction;
    return stage != stages->cancel_at;
}

START_TEST(stages_in_order)
{
    char path[4096];
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.progress = on_progress;
    params.warm_up = true;
    params.strict = true;
    golden_path("qwen2", ".gguf", path);
    for (int cancel_at = 0; cancel_at <= 18; cancel_at++) {
        struct stages stages = { .cancel_at = (enum akunu_load_stage)cancel_at };
        params.user = &stages;
        struct akunu_model *model = akunu_model_load(path, &params);
        if (cancel_at == 0) {
            ck_assert_msg(model != NULL, "%s", akunu_last_error());
            ck_assert_int_eq(stages.n, 18);
        } else {
            ck_assert_ptr_null(model);
            ck_assert_int_eq(stages.n, cancel_at);
            ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_CANCELLED);
        }
        akunu_model_free(model);
        if (cancel_at > 0)
            ck_assert_str_ne(akunu_load_stage_name((enum akunu_load_stage)cancel_at), "unknown");
    }
    ck_assert_str_eq(akunu_load_stage_name((enum akunu_load_stage)0), "unknown");
    ck_assert_str_eq(akunu_load_stage_name((enum akunu_load_stage)19), "unknown");
}
END_TEST

/* The numbers of the file, counted from its tensors. */
START_TEST(info_and_memory)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_model_info info;
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_str_eq(info.name, "qwen2-bf16");
    ck_assert_str_eq(info.architecture, "qwen2");
    ck_assert_str_eq(info.format, "gguf");
    ck_assert_str_eq(info.weight_type, "BF16");
    const char *asked = getenv("AKUNU_CPU");
    ck_assert_str_eq(info.cpu, asked ? asked : akunu_cpu_best());
    ck_assert_uint_eq(info.n_layers, 3);
    ck_assert_uint_eq(info.width, 64);
    ck_assert_uint_eq(info.n_heads, 4);
    ck_assert_uint_eq(info.n_kv_heads, 2);
    ck_assert_uint_eq(info.head_dim, 16);
    ck_assert_uint_eq(info.ffn_width, 160);
    ck_assert_uint_eq(info.vocab_size, 416);
    ck_assert_uint_eq(info.context, 256);
    uint64_t layer = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 160, biases = 64 + 2 * 32;
    ck_assert_uint_eq(info.matrix_parameters, 3 * layer);
    ck_assert_uint_eq(info.n_parameters, 3 * (layer + biases + 2 * 64) + 2 * 416 * 64 + 64);
    ck_assert_uint_eq(info.token_weight_bytes, 2 * (3 * layer + 416 * 64 + 64));

    struct akunu_memory memory;
    ck_assert_int_eq(akunu_model_get_memory(model, NULL, &memory, sizeof memory), AKUNU_OK);
    ck_assert_uint_eq(memory.mapped, 379008);
    ck_assert_uint_eq(memory.kv, 0);
    ck_assert_uint_eq(memory.scratch, 0);
    ck_assert_uint_gt(memory.tokenizer, 0);
    ck_assert_uint_gt(memory.table, 0);
    struct akunu_session *session = golden_session(model, 1, 32, AKUNU_KV_F16);
    ck_assert_int_eq(akunu_model_get_memory(model, session, &memory, sizeof memory), AKUNU_OK);
    /* 256 tokens, and up to 63 empty places in each of four sequences: 7 pages */
    ck_assert_uint_eq(memory.kv, 7 * 64 * 3 * 2 * 16 * 2 * 2);
    ck_assert_uint_gt(memory.scratch, 32 * 416 * 4);

    struct akunu_file_info file;
    ck_assert_int_eq(akunu_file_get_info(akunu_model_file(model), &file, sizeof file), AKUNU_OK);
    ck_assert_uint_eq(file.n_tensors, 39);
    ck_assert_ptr_nonnull(strstr(akunu_model_dump(model, true), "gumbel"));
    ck_assert_ptr_null(strstr(akunu_model_dump(model, false), "gumbel"));
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* ---- Errors ------------------------------------------------------------- */
static void failed_with(enum akunu_status status, const char *said)
{
    ck_assert_int_eq(akunu_last_status(), status);
    ck_assert_msg(strstr(akunu_last_error(), said) != NULL, "'%s' lacks '%s'", akunu_last_error(),
                  said);
}

START_TEST(bad_arguments)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session_params params = golden_params(1, 32, AKUNU_KV_F16);
    struct akunu_session *session = akunu_session_new(model, &params);
    struct akunu_model_info info = { 0 };
    struct akunu_load_params load = { 0 };
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling = { .size = 8 };
    akunu_token id = 1;
    size_t last;

    ck_assert_ptr_null(akunu_model_load(NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "path");
    ck_assert_ptr_null(akunu_model_load("x", &load));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_load_params");
    ck_assert_ptr_null(akunu_model_load("/nowhere/to/be/found.gguf", NULL));
    failed_with(AKUNU_ERROR_FORMAT, "/nowhere/to/be/found.gguf");
    akunu_load_params_default(&load, sizeof load);
    load.cpu = "z80";
    char path[4096];
    ck_assert_ptr_null(akunu_model_load(golden_path("qwen2", ".gguf", path), &load));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "z80"));

    ck_assert_int_eq(akunu_model_get_info(model, &info, 0), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_model_get_info(model, NULL, 0), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_model_get_info(NULL, &info, sizeof info), AKUNU_ERROR_ARGUMENT);
    /* an older program: what it does not know stays untouched */
    info.cpu = path;
    ck_assert_int_eq(
        akunu_model_get_info(model, &info, offsetof(struct akunu_model_info, weight_type)),
        AKUNU_OK);
    ck_assert_str_eq(info.format, "gguf");
    ck_assert_ptr_null(info.weight_type);
    ck_assert_ptr_eq(info.cpu, path);

    params.size = 0;
    ck_assert_ptr_null(akunu_session_new(model, &params));
    ck_assert_ptr_null(akunu_session_new(NULL, NULL));
    ck_assert_int_eq(akunu_sequence_new(NULL), -1);
    ck_assert_int_eq(akunu_session_decode(session, NULL, 1), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_session_decode(NULL, NULL, 1), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_null(akunu_session_logits(session, 0));
    ck_assert_int_eq(
        akunu_session_prefill(session, 0, &(struct akunu_ids){ &id, 1 }, NULL, NULL, &last),
        AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "there is no sequence 0");
    for (akunu_sequence i = 0; i < 4; i++)
        ck_assert_int_eq(akunu_sequence_new(session), i);
    ck_assert_int_eq(akunu_sequence_new(session), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "all 4 sequences");
    ck_assert_int_eq(akunu_sequence_fork(session, 0, 0), -1);
    ck_assert_int_eq(akunu_sequence_rewind(session, 0, 1), AKUNU_ERROR_ARGUMENT);
    ck_assert_uint_eq(akunu_sequence_length(session, 17), 0);
    akunu_sequence_free(session, 17);

    akunu_generation_params_default(&generation, sizeof generation);
    generation.sampling = &sampling;
    ck_assert_int_eq(
        akunu_session_generate(session, 0, &(struct akunu_ids){ &id, 1 }, &generation, NULL),
        AKUNU_ERROR_ARGUMENT);
    akunu_generation_params_default(&generation, sizeof generation);
    generation.max_tokens = 3;
    ck_assert_int_eq(
        akunu_session_generate(session, 0, &(struct akunu_ids){ NULL, 1 }, &generation, NULL),
        AKUNU_ERROR_ARGUMENT);
    /* all that may be NULL */
    ck_assert_int_eq(
        akunu_session_generate(session, 0, &(struct akunu_ids){ &id, 1 }, &generation, NULL),
        AKUNU_OK);

    ck_assert_ptr_null(akunu_sampler_new(NULL, NULL));
    struct akunu_sampler *sampler = akunu_sampler_new(model, NULL);
    ck_assert_ptr_nonnull(sampler);
    ck_assert_int_eq(akunu_sampler_sample(sampler, NULL), -1);
    akunu_sampler_free(sampler);
    akunu_sampler_free(NULL);
    akunu_session_free(session);
    akunu_session_free(NULL);
    akunu_model_free(model);
    akunu_model_free(NULL);
}
END_TEST

/* Sanitizers ask for these: an allocation that is too large gives NULL there, too. */
AKUNU_API const char *__asan_default_options(void);
AKUNU_API const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

START_TEST(too_much)
{
    struct akunu_model *model = golden_load("llama-f32", NULL);
    struct akunu_session_params params = golden_params(1, 32, AKUNU_KV_F32);
    params.context = UINT32_MAX;
    params.max_sequences = 65536;
    ck_assert_ptr_null(akunu_session_new(model, &params));
    failed_with(AKUNU_ERROR_MEMORY, "memory");
    akunu_model_free(model);
}
END_TEST

/* LongRoPE: a session within the original context has the short factors. */
START_TEST(short_contexts_have_factors_of_their_own)
{
    enum { N = 12 };
    struct golden_text text;
    golden_read_text("phi3", &text);
    struct akunu_model *model = golden_load("phi3", NULL);
    size_t n_vocab = vocab_of(model);
    float *want = golden_read_logits("phi3-short", N * n_vocab), got[N * GOLDEN_VOCAB];
    for (uint32_t context = 16; context <= 17; context++) {
        struct akunu_session_params params = golden_params(1, 32, AKUNU_KV_F32);
        params.context = context;
        params.max_sequences = 1;
        struct akunu_session *session = akunu_session_new(model, &params);
        ck_assert_ptr_nonnull(session);
        logits_of(session, akunu_sequence_new(session), text.ids, N, n_vocab, got);
        ck_assert_int_eq(golden_nmse(got, want, N * n_vocab) <= golden_bound(9.4e-13, 1e-9),
                         context == 16);
        akunu_session_free(session);
    }
    free(want);
    akunu_model_free(model);
}
END_TEST

START_TEST(learned_positions_bound_the_context)
{
    struct akunu_model *model = golden_load("gpt2", NULL);
    struct akunu_session_params params = golden_params(1, 32, AKUNU_KV_F32);
    params.context = 257;
    ck_assert_ptr_null(akunu_session_new(model, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "257");
    params.context = 256;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_ptr_nonnull(session);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *tests = tcase_create("model");
    tcase_set_timeout(tests, 600);
    /* what another backend is asked for, too (tests/opencl/test_devices.sh) */
    TCase *any = tcase_create("any");
    tcase_set_timeout(any, 600);
    tcase_add_loop_test(any, logits_and_greedy, 0, N_GOLDENS);
    /* Every chunking and thread count of every model takes minutes under an emulator. */
    tcase_add_loop_test(tests, same_bits, 0, golden_count());
    tcase_add_loop_test(any, same_bits_in_company, 0, golden_count());
    tcase_add_test(tests, kernels_are_counted);
    tcase_add_loop_test(any, greedy_text, 0, N_GOLDENS);
    tcase_add_test(any, seeded_text);
    tcase_add_test(any, gumbel_distribution);
    tcase_add_test(tests, stages_in_order);
    tcase_add_test(tests, info_and_memory);
    tcase_add_test(tests, bad_arguments);
    tcase_add_test(tests, too_much);
    tcase_add_test(tests, short_contexts_have_factors_of_their_own);
    tcase_add_test(tests, learned_positions_bound_the_context);
    TCase *threads = tcase_create("threads");
    tcase_set_timeout(threads, 600);
    tcase_add_loop_test(threads, threads_share_a_model, 0, N_GOLDEN_KINDS);
    TCase *paged = tcase_create("pages");
    tcase_set_timeout(paged, 600);
    tcase_add_loop_test(paged, pages_and_windows, 0, N_WINDOW_TESTS);
    tcase_add_test(paged, shared_pages);
    suite_add_tcase(suite, paged);
    suite_add_tcase(suite, threads);
    suite_add_tcase(suite, any);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

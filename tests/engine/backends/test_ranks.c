/* A model that several ranks share, here threads of this process: the same bits as in one, whatever
 * the architecture, the types and the number of ranks. So are what a pass gives beside logits: sums
 * of inputs, which tokens are dropped, scores of cross-attention. */
#include <math.h>
#include <pthread.h>

#include "engine/backends/ranks.h"
#include "conversion/convert/online.h"
#include "engine/session/follow.h"
#include "engine/session/load_ranks.h"
#include "tests/engine/backends/texts.h"
#include "tests/locks.h"
#include "tests/out_of_memory.h"

enum { RANKS_MAX = 4 };

/* The ranks of a test. */
struct group {
    uint32_t n;
    enum akunu_split split;
    struct ak_comm *comms[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    struct ak_ranks *ranks; /* rank 0's */
};

static ak_status open_quantized(const char *path, const struct akunu_load_params *params,
                                struct ak_provider **out, struct ak_error *error)
{
    *out = NULL;
    return params->quantize ? ak_convert_open_online(path, params->quantize, params->importance,
                                                     NULL, params->n_threads, NULL, out, error) :
                              AKUNU_OK;
}

static void *follow(void *comm)
{
    struct ak_error error = { 0 };
    fine(ak_follow(comm, open_quantized, NULL, &error), &error);
    ak_comm_close(comm);
    return NULL;
}

static void start(struct group *g, enum akunu_split split, uint32_t n)
{
    struct ak_error error = { 0 };
    g->n = n;
    g->split = split;
    fine(ak_comm_open_local(n, 60.0, g->comms, &error), &error);
    for (uint32_t i = 1; i < n; i++)
        ck_assert_int_eq(pthread_create(&g->threads[i], NULL, follow, g->comms[i]), 0);
    fine(ak_ranks_create(g->comms[0], &g->ranks, &error), &error);
}

static void end(struct group *g)
{
    struct ak_message m = { 0 };
    struct ak_error error = { 0 };
    ak_message_put_u64(&m, AK_MESSAGE_END);
    fine(ak_ranks_send(g->ranks, &m, &error), &error);
    for (uint32_t i = 1; i < g->n; i++)
        pthread_join(g->threads[i], NULL);
    ak_ranks_free(g->ranks);
}

/* The type that models are quantized to as they are loaded, and the importance; NULL: none. */
static const char *quantize, *importance_file;

static ak_status try_load(const char *path, struct group *g, const struct akunu_adapter *adapter,
                          struct ak_model **out, struct ak_error *error)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    params.n_threads = 1;
    params.backend = "cpu";
    params.cpu = getenv("AKUNU_CPU");
    params.adapters = adapter;
    params.n_adapters = adapter ? 1 : 0;
    params.comm = g ? (struct akunu_comm *)g->ranks : NULL;
    params.split = g ? g->split : AKUNU_SPLIT_ROWS;
    params.quantize = quantize;
    params.importance = importance_file;
    return ak_model_load(&(struct ak_model_source){ .path = path,
                                                    .params = &params,
                                                    .open_quantized = open_quantized },
                         out, error);
}

static struct ak_model *load(const char *path, struct group *g, const struct akunu_adapter *adapter)
{
    struct ak_model *model = NULL;
    struct ak_error error = { 0 };
    fine(try_load(path, g, adapter, &model, &error), &error);
    return model;
}

static const char *name_of(enum akunu_split split)
{
    return split == AKUNU_SPLIT_ROWS ? "rows" : "layers";
}

/* The most ranks that can share a model, of those that are tried. */
static uint32_t max_ranks(const struct ak_model *model, enum akunu_split split)
{
    const struct ak_spec_config *c = &model->spec.config;
    uint32_t n = split == AKUNU_SPLIT_ROWS ? c->n_heads : c->n_layers;
    return n < RANKS_MAX ? n : RANKS_MAX;
}

/* The description of a model's backend; that of one process, with the ranks behind it. */
static void check_description(const struct ak_model *model, const char *own, uint32_t n,
                              enum akunu_split split)
{
    char want[512];
    snprintf(want, sizeof want, "%s, %u ranks%s", own, (unsigned)n,
             split == AKUNU_SPLIT_ROWS ? "" : " by layers");
    ck_assert_str_eq(model->backend->ops->describe(model->backend), want);
}

static void check_logits(const char *path, const char *name, enum akunu_split split,
                         const struct akunu_adapter *adapter)
{
    char own[256];
    static float want[3 * GOLDEN_VOCAB], got[3 * GOLDEN_VOCAB], pooled[2][1024], again[2][1024];
    akunu_token ids[N];
    int32_t sampled, sampled_again;
    struct ak_backend_counts counts;
    struct ak_model *model = load(path, NULL, adapter);
    uint32_t vocab = model->spec.config.vocab_size, max = max_ranks(model, split);
    ck_assert_uint_le(model->spec.config.width, 512);
    read_ids(name, ids);
    run_text(model, ids, want, &sampled, &counts);
    embed(model, ids, pooled[0]);
    snprintf(own, sizeof own, "%s", model->backend->ops->describe(model->backend));
    ak_model_free(model);
    for (uint32_t n = 2; n <= max; n++) {
        struct group g;
        start(&g, split, n);
        model = load(path, &g, adapter);
        check_description(model, own, n, split);
        run_text(model, ids, got, &sampled_again, &counts);
        embed(model, ids, again[0]);
        ak_model_free(model);
        end(&g);
        ck_assert_msg(memcmp(want, got, 3 * vocab * sizeof *want) == 0,
                      "%s on %u ranks by %s: other logits", name, (unsigned)n, name_of(split));
        ck_assert_int_eq(sampled, sampled_again);
        ck_assert_msg(memcmp(pooled, again, sizeof pooled) == 0,
                      "%s on %u ranks by %s: another embedding", name, (unsigned)n, name_of(split));
    }
}

/* Runs one token, whose logits are wanted. */
static void decode(struct ak_session *session, int32_t sequence, akunu_token id)
{
    struct ak_error error = { 0 };
    struct akunu_batch_token token = { id, sequence, true };
    fine(ak_session_decode(session, &token, 1, &error), &error);
}

/* ---- The largest logits alone ------------------------------------------- */
/* The logits of a token after a prompt, of which only the largest are wanted. */
static void read_best(const char *path, struct group *g, const akunu_token *ids, uint32_t n_best,
                      float *logits)
{
    struct ak_error error = { 0 };
    struct ak_model *model = load(path, g, NULL);
    struct ak_session *session = open_session(model);
    int32_t sequence;
    fine(ak_session_sequence_new(session, &sequence, &error), &error);
    ak_session_want_best(session, n_best);
    for (int i = 0; i < 3; i++)
        decode(session, sequence, ids[i]);
    memcpy(logits, ak_session_logits(session, 0), model->spec.config.vocab_size * sizeof *logits);
    ak_session_free(session);
    ak_model_free(model);
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The n_best largest logits are the same, and no other is larger. */
START_TEST(best)
{
    static float want[GOLDEN_VOCAB], got[GOLDEN_VOCAB], sorted[GOLDEN_VOCAB];
    char path[4096];
    akunu_token ids[N];
    uint32_t n_best = (uint32_t[]){ 1, 5, 40 }[_i % 3];
    enum akunu_split split = _i < 3 ? AKUNU_SPLIT_ROWS : AKUNU_SPLIT_LAYERS;
    golden_path("llama-f32", ".gguf", path);
    read_ids("llama-f32", ids);
    read_best(path, NULL, ids, 0, want);
    memcpy(sorted, want, sizeof sorted);
    qsort(sorted, GOLDEN_VOCAB, sizeof *sorted, descending);
    for (uint32_t n = 2; n <= (split == AKUNU_SPLIT_ROWS ? RANKS_MAX : 2); n++) {
        struct group g;
        start(&g, split, n);
        read_best(path, &g, ids, n_best, got);
        end(&g);
        for (size_t i = 0; i < GOLDEN_VOCAB; i++)
            ck_assert_msg(got[i] == want[i] ||
                              (got[i] < 0 && isinf(got[i]) && want[i] < sorted[n_best - 1]),
                          "%u ranks, %u best: logit %zu is %g, not %g", (unsigned)n,
                          (unsigned)n_best, i, (double)got[i], (double)want[i]);
    }
}
END_TEST

START_TEST(same_bits)
{
    char path[4096];
    golden_path(golden_at(_i)->name, ".gguf", path);
    check_logits(path, golden_at(_i)->name, AKUNU_SPLIT_ROWS, NULL);
    check_logits(path, golden_at(_i)->name, AKUNU_SPLIT_LAYERS, NULL);
}
END_TEST

/* ---- Two sessions -------------------------------------------------------- */
/* Texts of two sessions of one model, token by token in turn, and the logits after both. */
static void read_two(struct group *g, const akunu_token *ids, float *logits)
{
    char path[4096];
    struct ak_error error = { 0 };
    struct ak_session *sessions[2];
    int32_t sequences[2];
    golden_path("llama-f32", ".gguf", path);
    struct ak_model *model = load(path, g, NULL);
    for (int i = 0; i < 2; i++) {
        sessions[i] = open_session(model);
        fine(ak_session_sequence_new(sessions[i], &sequences[i], &error), &error);
    }
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2; i++)
            decode(sessions[i], sequences[i], ids[4 * i + k]);
    for (int i = 0; i < 2; i++) { /* the second goes on without the first */
        decode(sessions[i], sequences[i], ids[8]);
        memcpy(logits + (size_t)i * GOLDEN_VOCAB, ak_session_logits(sessions[i], 0),
               model->spec.config.vocab_size * sizeof *logits);
        ak_session_free(sessions[i]);
    }
    ak_model_free(model);
}

START_TEST(two_sessions)
{
    static float want[2 * GOLDEN_VOCAB], got[2 * GOLDEN_VOCAB];
    akunu_token ids[N];
    struct group g;
    ck_assert_int_gt(N, 8);
    read_ids("llama-f32", ids);
    read_two(NULL, ids, want);
    start(&g, _i == 0 ? AKUNU_SPLIT_ROWS : AKUNU_SPLIT_LAYERS, 2);
    read_two(&g, ids, got);
    end(&g);
    ck_assert_mem_eq(want, got, sizeof want);
}
END_TEST

/* ---- Passes in two halves ------------------------------------------------ */
enum { LONG_PROMPT = 200, LONG_PASS = 144 };

/* The logits after a prompt, whose first pass is long enough to run in halves, and after one more
 * token. */
static void read_long(struct ak_model *model, const akunu_token *ids, float *logits)
{
    struct akunu_session_params params = golden_params(1, LONG_PASS, AKUNU_KV_F16);
    struct ak_error error = { 0 };
    struct ak_session *session = NULL;
    int32_t sequence;
    size_t last, bytes = model->spec.config.vocab_size * sizeof *logits;
    fine(ak_session_create(model, &params, &session, &error), &error);
    fine(ak_session_sequence_new(session, &sequence, &error), &error);
    fine(ak_session_prefill(session, sequence, ids, LONG_PROMPT, NULL, NULL, &last, &error),
         &error);
    memcpy(logits, ak_session_logits(session, last), bytes);
    decode(session, sequence, ids[0]);
    memcpy(logits + GOLDEN_VOCAB, ak_session_logits(session, 0), bytes);
    ak_session_free(session);
}

START_TEST(halves)
{
    static float want[2 * GOLDEN_VOCAB], got[2 * GOLDEN_VOCAB];
    const char *name = golden_at(_i)->name;
    char path[4096];
    akunu_token ids[LONG_PROMPT];
    struct ak_model *model = load(golden_path(name, ".gguf", path), NULL, NULL);
    bool fits = model->spec.config.context >= GOLDEN_CONTEXT;
    uint32_t max = max_ranks(model, AKUNU_SPLIT_ROWS);
    read_ids(name, ids);
    for (size_t i = N; i < LONG_PROMPT; i++)
        ids[i] = ids[i - N];
    if (fits)
        read_long(model, ids, want);
    ak_model_free(model);
    for (uint32_t n = 2; fits && n <= max; n++) {
        struct group g;
        start(&g, AKUNU_SPLIT_ROWS, n);
        model = load(path, &g, NULL);
        read_long(model, ids, got);
        ak_model_free(model);
        end(&g);
        ck_assert_msg(memcmp(want, got, sizeof want) == 0, "%s on %u ranks: other logits", name,
                      (unsigned)n);
    }
}
END_TEST

START_TEST(adapters)
{
    char path[4096], model[4096];
    struct akunu_adapter adapter = { golden_path("../adapters/", "llama.gguf", path), 1 };
    golden_path("llama-f32", ".gguf", model);
    check_logits(model, "llama-f32", AKUNU_SPLIT_ROWS, &adapter);
    check_logits(model, "llama-f32", AKUNU_SPLIT_LAYERS, &adapter);
}
END_TEST

/* Models that are quantized as they are loaded, and whether by importance. */
static const struct online {
    const char *model, *type;
    bool has_importance;
} online[] = {
    { "llama-f32", "Q8_0", false }, { "gemma3", "Q4_K_M", false },  { "gpt-oss", "IQ4_XS", false },
    { "qwen2", "Q2_K", true },      { "qwen2moe", "IQ3_S", false }, { "mixtral", "IQ2_XXS", true },
};
enum { N_ONLINE = sizeof online / sizeof *online };

/* Each rank quantizes the rows that it has. */
START_TEST(quantized_at_load)
{
    char path[4096], importance[4096];
    golden_path(online[_i].model, ".gguf", path);
    golden_path("../imatrix/", online[_i].model, importance);
    strcat(importance, ".gguf");
    quantize = online[_i].type;
    importance_file = online[_i].has_importance ? importance : NULL;
    check_logits(path, online[_i].model, AKUNU_SPLIT_ROWS, NULL);
    check_logits(path, online[_i].model, AKUNU_SPLIT_LAYERS, NULL);
    quantize = importance_file = NULL; /* the next test may run in this process */
}
END_TEST

static const char *const encoders[] = { "bert", "jina-bert-v2", "modernbert", "nomic-bert" };
enum { N_ENCODERS = sizeof encoders / sizeof *encoders };

START_TEST(embeddings)
{
    static float want[2][1024], got[2][1024];
    char path[4096];
    akunu_token ids[32];
    for (int i = 0; i < 32; i++)
        ids[i] = i + 5;
    snprintf(path, sizeof path, "%s/encoders/%s/model.gguf", getenv("AK_TEST_DATA"),
             encoders[_i % N_ENCODERS]);
    enum akunu_split split = _i < N_ENCODERS ? AKUNU_SPLIT_ROWS : AKUNU_SPLIT_LAYERS;
    struct ak_model *model = load(path, NULL, NULL);
    uint32_t max = max_ranks(model, split);
    embed(model, ids, want[0]);
    ak_model_free(model);
    for (uint32_t n = 2; n <= max; n++) {
        struct group g;
        start(&g, split, n);
        model = load(path, &g, NULL);
        embed(model, ids, got[0]);
        ak_model_free(model);
        end(&g);
        ck_assert_msg(memcmp(want, got, sizeof want) == 0,
                      "%s on %u ranks by %s: another embedding", encoders[_i % N_ENCODERS],
                      (unsigned)n, name_of(split));
    }
}
END_TEST

/* ---- Input sums --------------------------------------------------------- */
/* Sums of a text's inputs, of all packed weights; the caller frees them. *n: of the sums, of which
 * the last ones are counts of rows. */
static double *sum_inputs(const char *path, struct group *g, const akunu_token *ids, size_t *n)
{
    struct ak_error error = { 0 };
    struct ak_model *model = load(path, g, NULL);
    struct ak_session *session = open_session(model);
    uint32_t n_packed = model->weights.n_packed;
    struct ak_backend_input_sums *sums = calloc(n_packed, sizeof *sums);
    size_t n_squares = 0, n_counts = 0;
    for (uint32_t i = 0; i < n_packed; i++) {
        const struct ak_pack_weight *w = &model->weights.packed[i];
        size_t n_matrices = w->n_experts ? w->n_experts : 1;
        sums[i].squares = calloc(n_matrices * w->cols, sizeof(double));
        sums[i].counts = calloc(n_matrices, sizeof(uint64_t));
        n_squares += n_matrices * w->cols;
        n_counts += n_matrices;
    }
    fine(ak_session_sum_inputs(session, &(struct akunu_ids){ ids, N }, true, sums, NULL, NULL,
                               &error),
         &error);
    double *out = calloc(n_squares + n_counts, sizeof *out), *next = out, *count = out + n_squares;
    for (uint32_t i = 0; i < n_packed; i++) {
        const struct ak_pack_weight *w = &model->weights.packed[i];
        size_t n_matrices = w->n_experts ? w->n_experts : 1;
        memcpy(next, sums[i].squares, n_matrices * w->cols * sizeof *next);
        next += n_matrices * w->cols;
        for (size_t m = 0; m < n_matrices; m++)
            *count++ = (double)sums[i].counts[m];
        free(sums[i].squares);
        free(sums[i].counts);
    }
    free(sums);
    ak_session_free(session);
    ak_model_free(model);
    *n = n_squares + n_counts;
    return out;
}

/* Rank 0 has the inputs of all products. */
START_TEST(input_sums)
{
    char path[4096];
    akunu_token ids[N];
    size_t n_want, n_got;
    const char *name = golden_at(_i)->name;
    golden_path(name, ".gguf", path);
    read_ids(name, ids);
    double *want = sum_inputs(path, NULL, ids, &n_want);
    for (uint32_t n = 2; n <= 3; n++) {
        struct group g;
        struct ak_model *model = load(path, NULL, NULL);
        uint32_t max = max_ranks(model, AKUNU_SPLIT_ROWS);
        ak_model_free(model);
        if (n > max)
            break;
        start(&g, AKUNU_SPLIT_ROWS, n);
        double *got = sum_inputs(path, &g, ids, &n_got);
        end(&g);
        ck_assert_uint_eq(n_got, n_want);
        ck_assert_msg(memcmp(want, got, n_want * sizeof *want) == 0, "%s on %u ranks: other sums",
                      name, (unsigned)n);
        free(got);
    }
    free(want);
}
END_TEST

/* By layers, rank 0 has its own alone. */
START_TEST(no_input_sums)
{
    char path[4096];
    akunu_token ids[N];
    struct group g;
    struct ak_error error = { 0 };
    read_ids("llama-f32", ids);
    start(&g, AKUNU_SPLIT_LAYERS, 2);
    struct ak_model *model = load(golden_path("llama-f32", ".gguf", path), &g, NULL);
    struct ak_session *session = open_session(model);
    struct ak_backend_input_sums none = { 0 };
    ck_assert_int_eq(ak_session_sum_inputs(session, &(struct akunu_ids){ ids, N }, true, &none,
                                           NULL, NULL, &error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "expected a split by rows"), "%s", error.message);
    ak_session_free(session);
    ak_model_free(model);
    end(&g);
}
END_TEST

/* ---- Dropped tokens ----------------------------------------------------- */
enum { LONG = 600, KEPT = AKUNU_KV_KEEP_MIN };

/* Which pages of a long text stay, and the logits of a token after it. */
struct dropped {
    uint32_t stay[LONG / AK_KV_PAGE_TOKENS + 1];
    float logits[GOLDEN_VOCAB];
};

static void drop(const char *path, struct group *g, struct dropped *out)
{
    struct ak_error error = { 0 };
    struct ak_model *model = load(path, g, NULL);
    struct akunu_session_params params = golden_params(2, 100, AKUNU_KV_F16);
    struct ak_session *session;
    akunu_token ids[LONG];
    uint32_t state = 7;
    int32_t sequence;
    size_t last;
    for (int i = 0; i < LONG; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (akunu_token)(20 + (state >> 24) % 50);
    }
    params.context = 1024;
    params.kv_keep = KEPT;
    fine(ak_session_create(model, &params, &session, &error), &error);
    fine(ak_session_sequence_new(session, &sequence, &error), &error);
    fine(ak_session_prefill(session, sequence, ids, LONG, NULL, NULL, &last, &error), &error);
    const struct ak_session_kv_sequence *found = ak_session_kv_sequence(&session->kv, sequence);
    memset(out, 0, sizeof *out);
    ck_assert_uint_gt(found->n_dropped, 0);
    for (uint32_t i = 0; i < ak_session_kv_pages_of(LONG); i++)
        out->stay[i] = found->pages[i] != AK_KV_NO_PAGE;
    struct akunu_batch_token token = { ids[3], sequence, true };
    fine(ak_session_decode(session, &token, 1, &error), &error);
    memcpy(out->logits, ak_session_logits(session, 0),
           model->spec.config.vocab_size * sizeof *out->logits);
    ak_session_free(session);
    ak_model_free(model);
}

static const char *const texts[] = { "llama-f32", "qwen2", "gemma3", "olmo2" };
enum { N_TEXTS = sizeof texts / sizeof *texts };

/* The same pages stay as in one process, also if ranks share a KV head. */
START_TEST(importance)
{
    static struct dropped want, got;
    char path[4096];
    const char *name = texts[_i % N_TEXTS];
    enum akunu_split split = _i < N_TEXTS ? AKUNU_SPLIT_ROWS : AKUNU_SPLIT_LAYERS;
    golden_path(name, ".gguf", path);
    struct ak_model *model = load(path, NULL, NULL);
    uint32_t max = max_ranks(model, split);
    ak_model_free(model);
    drop(path, NULL, &want);
    for (uint32_t n = 2; n <= max; n++) {
        struct group g;
        start(&g, split, n);
        drop(path, &g, &got);
        end(&g);
        ck_assert_msg(memcmp(&want, &got, sizeof want) == 0,
                      "%s on %u ranks by %s: other pages stay", name, (unsigned)n, name_of(split));
    }
}
END_TEST

/* ---- Scores of cross-attention ------------------------------------------ */
enum {
    WINDOW_POSITIONS = 40,
    SHORT_POSITIONS = 24,
    WINDOW_MELS = 4,
    SPOKEN = 5,
    SCORES_MAX = 64 * (SPOKEN + 1) * 64
};

/* A sequence that attends to a new window of so many positions. */
static int32_t hear(struct ak_session *session, uint32_t n_positions)
{
    float frames[2 * WINDOW_POSITIONS * WINDOW_MELS];
    struct ak_error error = { 0 };
    int32_t window, text;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        frames[i] = (float)(i * 37 % 101) / 101.0f;
    fine(ak_session_sequence_new(session, &window, &error), &error);
    fine(ak_session_encode(session, frames, window, n_positions, false, &error), &error);
    fine(ak_session_sequence_new(session, &text, &error), &error);
    fine(ak_session_attend(session, text, window, &error), &error);
    return text;
}

/* Scores of all heads but one, in reversed order: of a few tokens, then of one more, after another
 * sequence's tokens, whose window is shorter. Returns how many there are. */
static size_t score(const char *path, struct group *g, float *scores)
{
    struct ak_error error = { 0 };
    struct ak_model *model = load(path, g, NULL);
    struct akunu_session_params params;
    struct ak_session *session;
    int32_t matrices[64];
    struct akunu_batch_token tokens[SPOKEN], others[2];
    const struct ak_spec_config *c = &model->spec.config;
    int32_t n_heads = (int32_t)(c->n_layers * c->n_heads);
    ck_assert_int_le(n_heads, 64);
    for (int32_t i = 0; i < n_heads; i++)
        matrices[i] = n_heads - 2 - i;
    akunu_session_params_default(&params, sizeof params);
    params.n_threads = 2;
    params.max_sequences = params.max_windows = 2;
    fine(ak_session_create(model, &params, &session, &error), &error);
    int32_t text = hear(session, WINDOW_POSITIONS), other = hear(session, SHORT_POSITIONS);
    for (int i = 0; i < SPOKEN; i++)
        tokens[i] = (struct akunu_batch_token){ 3 + i, text, true };
    for (int i = 0; i < 2; i++)
        others[i] = (struct akunu_batch_token){ 9 + i, other, true };
    size_t stride = WINDOW_POSITIONS + 3, n_matrices = (size_t)n_heads - 1,
           n = n_matrices * SPOKEN * stride, n_all = n + n_matrices * stride;
    ck_assert_uint_le(n_all, SCORES_MAX);
    memset(scores, 0, n_all * sizeof *scores);
    struct ak_batch_scores into = { .data = scores,
                                    .matrices = matrices,
                                    .n_heads = c->n_heads,
                                    .matrix_stride = SPOKEN * stride,
                                    .stride = stride };
    fine(ak_session_decode_scores(session, tokens, SPOKEN, &into, &error), &error);
    fine(ak_session_decode(session, others, 2, &error), &error);
    into.data = scores + n;
    into.matrix_stride = stride;
    fine(ak_session_decode_scores(session, tokens, 1, &into, &error), &error);
    ak_session_free(session);
    ak_model_free(model);
    return n_all;
}

START_TEST(scores)
{
    static float want[SCORES_MAX], got[SCORES_MAX];
    char path[4096];
    golden_path("../speech/model", ".bin", path);
    struct ak_model *model = load(path, NULL, NULL);
    uint32_t max = max_ranks(model, AKUNU_SPLIT_ROWS);
    ak_model_free(model);
    ck_assert_uint_ge(max, 2);
    size_t n_scores = score(path, NULL, want), n_set = 0;
    for (size_t i = 0; i < n_scores; i++)
        n_set += want[i] != 0.0f;
    ck_assert_uint_gt(n_set, n_scores / 2);
    for (uint32_t n = 2; n <= max; n++) {
        struct group g;
        start(&g, AKUNU_SPLIT_ROWS, n);
        ck_assert_uint_eq(score(path, &g, got), n_scores);
        end(&g);
        ck_assert_msg(memcmp(want, got, n_scores * sizeof *want) == 0, "%u ranks: other scores",
                      (unsigned)n);
    }
}
END_TEST

/* A model that cannot be loaded is refused on all ranks, and they go on. */
START_TEST(refused)
{
    char path[4096];
    struct group g;
    struct ak_model *model = NULL;
    struct ak_error error = { 0 };
    start(&g, AKUNU_SPLIT_ROWS, 2);
    ck_assert_int_ne(try_load("/nonexistent", &g, NULL, &model, &error), AKUNU_OK);
    model = load(golden_path("llama-f32", ".gguf", path), &g, NULL);
    ak_model_free(model);
    end(&g);
}
END_TEST

/* ---- Rank 0's exchanges --------------------------------------------------- */
static const struct ak_comm_ops *local_ops;
static long exchanges_left; /* before the one that fails */

static ak_status begin_or_fail(struct ak_comm *c, enum ak_comm_lane lane,
                               const struct ak_comm_message *out, uint32_t n_out,
                               const struct ak_comm_message *in, uint32_t n_in,
                               struct ak_error *error)
{
    ck_assert_int_gt(locks_held, 0);
    return exchanges_left-- != 0 ? local_ops->begin(c, lane, out, n_out, in, n_in, error) :
                                   ak_fail(error, AKUNU_ERROR_IO, "the cable of rank 1 is gone");
}

/* Follows until rank 0 has ended. */
static void *follow_to_the_end(void *comm)
{
    struct ak_error error = { 0 };
    (void)ak_follow(comm, open_quantized, NULL, &error);
    ak_comm_close(comm);
    return NULL;
}

/* Loads, runs a prompt, forks and decodes; exchange number n of the decoding fails. Returns whether
 * there was one. */
static bool lose(const char *path, enum akunu_split split, long n)
{
    static struct ak_comm_ops ops;
    struct group g = { .n = 2, .split = split };
    struct ak_error error = { 0 }, lost = { 0 };
    int32_t sequence, fork;
    size_t last;
    fine(ak_comm_open_local(g.n, 60.0, g.comms, &error), &error);
    local_ops = g.comms[0]->ops;
    ops = *local_ops;
    ops.begin = begin_or_fail;
    exchanges_left = -1;
    ck_assert_int_eq(pthread_create(&g.threads[1], NULL, follow_to_the_end, g.comms[1]), 0);
    fine(ak_ranks_create(g.comms[0], &g.ranks, &error), &error);
    g.comms[0]->ops = &ops;
    struct ak_model *model = load(path, &g, NULL);
    struct ak_session *session = open_session(model);
    const akunu_token ids[] = { 5, 6, 7 };
    fine(ak_session_sequence_new(session, &sequence, &error), &error);
    fine(ak_session_prefill(session, sequence, ids, 3, NULL, NULL, &last, &error), &error);
    fine(ak_session_fork(session, sequence, 3, &fork, &error), &error);
    struct akunu_batch_token token = { 8, fork, true };
    exchanges_left = n;
    ak_status status = ak_session_decode(session, &token, 1, &lost);
    bool failed = exchanges_left < 0;
    ck_assert_int_eq(status, failed ? AKUNU_ERROR_IO : AKUNU_OK);
    ck_assert_str_eq(lost.message, failed ? "the cable of rank 1 is gone" : "");
    ck_assert_int_eq(ak_session_kv_sequence(&session->kv, fork)->length, failed ? 3 : 4);
    exchanges_left = -1;
    ak_session_free(session);
    ak_model_free(model);
    ak_ranks_free(g.ranks);
    ck_assert_int_eq(locks_held, 0);
    pthread_join(g.threads[1], NULL);
    return failed;
}

/* Whichever exchange of a pass fails, the pass says so and its token is not there. Rank 0 holds the
 * lock of its ranks at all of them, since another thread may use another model. */
START_TEST(lost)
{
    char path[4096];
    golden_path("llama-f32", ".gguf", path);
    long n = 0;
    while (lose(path, _i ? AKUNU_SPLIT_LAYERS : AKUNU_SPLIT_ROWS, n))
        n++;
    ck_assert_int_ge(n, 2); /* the message, and what the pass exchanges */
}
END_TEST

/* ---- A rank without memory ------------------------------------------------ */
enum { MEMORY_POOL = 1, MEMORY_TABLE };

static ak_status follow_numbers(struct ak_ranks_follower *f, enum ak_message_kind kind,
                                const struct ak_message *m, struct ak_error *error)
{
    struct ak_message_reader reader = { .next = (const uint8_t *)m->bytes.bytes,
                                        .left = m->bytes.n };
    return ak_ranks_follow(f, kind, &reader, error);
}

/* One token at position 0, of sequence 0 on page 0. */
static void put_pass(struct ak_message *m)
{
    const int32_t token = 5;
    const uint32_t zero = 0;
    ak_message_put_u64(m, MEMORY_TABLE);
    ak_message_put_u64(m, 1); /* tokens */
    ak_message_put_u64(m, 1); /* logits */
    ak_message_put(m, &zero, sizeof zero);
    ak_message_put_u64(m, 0); /* all are wanted */
    ak_message_put_u64(m, 0); /* flags */
    ak_message_put_u64(m, 1); /* sequences */
    ak_message_put_u64(m, 0);
    ak_message_put_u64(m, 1);
    ak_message_put(m, &token, sizeof token);
    ak_message_put(m, &zero, sizeof zero);
    ak_message_put_u64(m, UINT32_MAX); /* no types */
    ak_message_put(m, &zero, sizeof zero);
    ak_message_put_u64(m, 0); /* frames */
    ak_message_put_u64(m, AK_OP_NONE);
}

/* Whichever allocation fails, the rank says that memory lacks; the next pass runs. */
START_TEST(no_memory)
{
    char path[4096];
    struct ak_error error = { 0 };
    struct ak_comm *comm;
    struct ak_pool *pool;
    struct ak_ranks_follower *f;
    struct ak_message alloc = { 0 }, table = { 0 }, pass = { 0 };
    struct ak_model *model = load(golden_path("llama-f32", ".gguf", path), NULL, NULL);
    struct ak_ranks_model shared = ak_load_ranks_model(model, 1, model->backend);
    struct ak_kv_shape shape = ak_model_kv_shape(model, AKUNU_KV_F16, AKUNU_KV_F16);
    shared.spec = &model->spec;
    fine(ak_comm_open_local(1, 60.0, &comm, &error), &error);
    fine(ak_pool_create(1, &pool, &error), &error);
    fine(ak_ranks_follower_create(comm, &shared, pool, &f, &error), &error);
    shape.n_pages = shape.n_states = 1;
    ak_message_put_u64(&alloc, MEMORY_POOL);
    ak_message_put(&alloc, &shape, sizeof shape);
    fine(follow_numbers(f, AK_MESSAGE_ALLOC_KV, &alloc, &error), &error);
    /* its number, the model's first table, the pool, no lender; context, tokens, logits */
    const uint64_t numbers[] = { MEMORY_TABLE, 0, MEMORY_POOL, 0, 1, 1, 1 };
    ak_message_put(&table, numbers, sizeof numbers);
    fine(follow_numbers(f, AK_MESSAGE_PREPARE, &table, &error), &error);
    put_pass(&pass);
    long n = 0;
    for (bool was_refused = true; was_refused; n++) {
        error = (struct ak_error){ 0 };
        refuse_allocation(n);
        ak_status status = follow_numbers(f, AK_MESSAGE_RUN, &pass, &error);
        was_refused = allow_allocations();
        ck_assert_int_eq(status, was_refused ? AKUNU_ERROR_MEMORY : AKUNU_OK);
    }
    ck_assert_int_gt(n, 8); /* each array of a pass */
    ak_ranks_follower_free(f);
    ak_buffer_free(&alloc.bytes);
    ak_buffer_free(&table.bytes);
    ak_buffer_free(&pass.bytes);
    ak_pool_free(pool);
    ak_comm_close(comm);
    ak_model_free(model);
}
END_TEST

/* ---- Messages that are not understood -------------------------------------- */
static void *refuse(void *comm)
{
    struct ak_error error = { 0 };
    ck_assert_int_eq(ak_follow(comm, open_quantized, NULL, &error), AKUNU_ERROR_IO);
    ck_assert_str_eq(error.message, "rank 0 sent a message that is not understood");
    ak_comm_close(comm);
    return NULL;
}

/* A pass of a table that there is, with numbers that cannot be: the rank ends, and reads nothing
 * that is not there. */
START_TEST(wrong_passes)
{
    static const struct {
        uint64_t n, n_logits, n_sequences, sequence, n_tokens;
    } cases[] = {
        { 0, 0, 1, 0, 1 },
        { UINT64_C(1) << 40, 0, 1, 0, 1 },
        { 1, UINT64_C(1) << 40, 1, 0, 1 },
        { 1, 0, UINT64_C(1) << 40, 0, 1 },
        { 1, 0, 1, 1, 1 },
        { 1, 0, 1, 0, 0 },
        { 1, 0, 1, 0, 2 },
        { 2, 0, 1, 0, 1 }, /* the other token lacks */
    };
    char path[4096];
    golden_path("llama-f32", ".gguf", path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct group g = { .n = 2, .split = AKUNU_SPLIT_ROWS };
        struct ak_error error = { 0 };
        fine(ak_comm_open_local(g.n, 60.0, g.comms, &error), &error);
        ck_assert_int_eq(pthread_create(&g.threads[1], NULL, refuse, g.comms[1]), 0);
        fine(ak_ranks_create(g.comms[0], &g.ranks, &error), &error);
        struct ak_model *model = load(path, &g, NULL);
        struct ak_session *session = open_session(model);
        /* the model's number is the first, the table's the last */
        const uint64_t numbers[] = { AK_MESSAGE_RUN,
                                     1,
                                     ak_ranks_next_id(g.ranks) - 1,
                                     cases[i].n,
                                     cases[i].n_logits,
                                     0,
                                     0,
                                     cases[i].n_sequences,
                                     cases[i].sequence,
                                     cases[i].n_tokens };
        struct ak_message m = { 0 };
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            ak_message_put_u64(&m, numbers[k]);
        for (int k = 0; k < 6 + (i == 7 ? -5 : 0); k++)
            ak_message_put_u64(&m, k == 2 ? AK_OP_NONE : 0);
        fine(ak_ranks_send(g.ranks, &m, &error), &error);
        pthread_join(g.threads[1], NULL);
        ak_session_free(session);
        ak_model_free(model);
        ak_ranks_free(g.ranks);
    }
}
END_TEST

/* With more ranks than heads, or than layers, there is nothing for one of them to do. */
START_TEST(too_many)
{
    char path[4096];
    struct ak_model *model = load(golden_path("llama-f32", ".gguf", path), NULL, NULL);
    struct ak_spec own;
    struct ak_error error = { 0 };
    for (int i = 0; i < 2; i++) {
        enum akunu_split split = i ? AKUNU_SPLIT_LAYERS : AKUNU_SPLIT_ROWS;
        uint32_t n = i ? model->spec.config.n_layers : model->spec.config.n_heads;
        fine(ak_spec_take_shard(&model->spec, split, n, n - 1, &own, &error), &error);
        ck_assert_int_eq(ak_spec_take_shard(&model->spec, split, n + 1, 0, &own, &error),
                         AKUNU_ERROR_UNSUPPORTED);
    }
    ak_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranks");
    /* "more" is what takes long: the thread sanitizer has it in full runs alone */
    TCase *tests = tcase_create("ranks"), *more = tcase_create("more");
    tcase_set_timeout(tests, 600);
    tcase_set_timeout(more, 600);
    tcase_add_loop_test(tests, same_bits, 0, golden_count());
    tcase_add_loop_test(tests, halves, 0, golden_count());
    tcase_add_loop_test(tests, two_sessions, 0, 2);
    tcase_add_loop_test(tests, best, 0, 2 * 3);
    tcase_add_loop_test(tests, embeddings, 0, 2 * N_ENCODERS);
    tcase_add_loop_test(more, quantized_at_load, 0, N_ONLINE);
    tcase_add_test(tests, adapters);
    tcase_add_loop_test(more, input_sums, 0, golden_count());
    tcase_add_test(more, no_input_sums);
    tcase_add_loop_test(more, importance, 0, 2 * N_TEXTS);
    tcase_add_test(tests, scores);
    tcase_add_test(tests, refused);
    tcase_add_loop_test(tests, lost, 0, 2);
    tcase_add_test(tests, no_memory);
    tcase_add_test(tests, wrong_passes);
    tcase_add_test(tests, too_many);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, more);
    return test_run(suite);
}

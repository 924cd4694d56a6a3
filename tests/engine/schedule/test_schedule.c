/* The scheduler, step by step, over a backend whose logits depend on every token before them: each
 * text is the one that is generated alone, whatever else runs. With a clock that follows from what
 * ran. */
#include "engine/schedule/schedule.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/fake_backend.h"
#include "tests/out_of_memory.h"
#include "tests/process.h"
#include "base/random.h"
#include "engine/generate/generate.h"
#include "engine/schedule/prefix_tree.h"

enum { CONTEXT = 1024, BATCH = 64, REQUESTS = 24, COMPLETIONS = 3, TOKENS_MAX = 300 };

/* What a completion reported. */
struct text {
    akunu_token tokens[TOKENS_MAX];
    float logprobs[TOKENS_MAX];
    size_t n, n_prompt, stop_after; /* 0: never */
    float prompt_logprobs[CONTEXT];
    bool ended;
    enum akunu_status status;
    char message[200];
    struct akunu_result result;
    uint64_t ended_as; /* number of the end, over all requests */
};

struct fixture {
    struct fake_backend backend;
    struct ak_model model;
    struct akunu_session_params params;
    struct ak_sched_options options;
    struct ak_sched *sched;
    struct ak_error error;
    double now, pass_seconds, token_seconds;
    uint64_t n_ended;
    struct text texts[REQUESTS][COMPLETIONS];
    size_t n_threads; /* of the process, before it had a scheduler */
};

/* A request as the tests ask for it. */
struct asked {
    struct akunu_request request;
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling;
    int32_t ids[CONTEXT];
};

/* A pass takes a second, and a hundredth for each of its tokens, unless a test says otherwise. */
static double clock_of(void *user)
{
    const struct fixture *f = user;
    const struct ak_session *s = f->sched ? ak_sched_session(f->sched) : NULL;
    return f->now +
           (s ? f->pass_seconds * (double)s->n_passes + f->token_seconds * (double)s->n_tokens :
                0.0);
}

static struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    ck_assert_ptr_nonnull(f);
    f->n_threads = test_count_first_threads();
    f->pass_seconds = 1.0;
    f->token_seconds = 0.01;
    f->backend.base.ops = &fake_ops;
    f->model.backend = &f->backend.base;
    f->model.spec.config = (struct ak_spec_config){
        .n_layers = 1, .n_kv_heads = 1, .head_dim = 1, .vocab_size = FAKE_VOCAB, .context = CONTEXT
    };
    f->params = (struct akunu_session_params){ .size = sizeof f->params,
                                               .context = CONTEXT,
                                               .batch = BATCH,
                                               .max_sequences = 4,
                                               .n_threads = 1,
                                               .k_type = AKUNU_KV_F32,
                                               .v_type = AKUNU_KV_F32 };
    f->options = (struct ak_sched_options){
        .max_waiting = REQUESTS, .max_pass_ratio = 4.0, .clock = clock_of, .clock_user = f
    };
    return f;
}

static void start(struct fixture *f)
{
    ck_assert_msg(ak_sched_create(&f->model, &f->params, &f->options, &f->sched, &f->error) ==
                      AKUNU_OK,
                  "%s", f->error.message);
}

static void fixture_free(struct fixture *f)
{
    ak_sched_free(f->sched);
    test_await_threads(f->n_threads);
    ck_assert_uint_eq(f->backend.allocated, 0);
    ck_assert_int_eq(f->backend.n_prepared, 0);
    free(f);
}

/* The user of request `number` is its first text. */
static bool on_event(const struct akunu_request_event *event, void *user)
{
    struct text *text = (struct text *)user + event->index;
    ck_assert_uint_eq(event->size, sizeof *event);
    ck_assert(!text->ended);
    switch (event->kind) {
    case AKUNU_REQUEST_PROMPT:
        ck_assert_uint_eq(event->prompt_index, text->n_prompt);
        text->prompt_logprobs[text->n_prompt++] = event->logprob;
        return true;
    case AKUNU_REQUEST_TOKEN:
        ck_assert_uint_lt(text->n, TOKENS_MAX);
        text->logprobs[text->n] = event->logprob;
        text->tokens[text->n++] = event->token;
        return text->n != text->stop_after;
    case AKUNU_REQUEST_END: break;
    }
    text->ended = true;
    text->status = event->status;
    text->result = *event->result;
    snprintf(text->message, sizeof text->message, "%s", event->message);
    return true;
}

/* Text `text` from token `at` on; texts 0 to 3 begin with the same 150 tokens. */
static int32_t id(int text, uint32_t at)
{
    return (int32_t)(fake_mix((uint64_t)(text < 4 && at < 150 ? 100 : text) + 5, at) % FAKE_VOCAB);
}

static void ask(struct asked *a, struct text *texts, int text, uint32_t n_ids, int64_t max_tokens)
{
    *a = (struct asked){ 0 };
    a->sampling = (struct akunu_sampling_params){ .size = sizeof a->sampling,
                                                  .top_p = 1.0f,
                                                  .repeat_penalty = 1.0f,
                                                  .typical_p = 1.0f,
                                                  .top_n_sigma = -1.0f,
                                                  .dynatemp_exponent = 1.0f,
                                                  .dry_base = 1.75f,
                                                  .adaptive_target = -1.0f,
                                                  .mirostat_tau = 5.0f,
                                                  .mirostat_eta = 0.1f,
                                                  .xtc_threshold = 0.1f,
                                                  .seed = 7 };
    a->generation =
        (struct akunu_generation_params){ .size = sizeof a->generation, .max_tokens = max_tokens };
    for (uint32_t i = 0; i < CONTEXT; i++)
        a->ids[i] = i < n_ids ? id(text, i) : -1; /* what follows is not looked at */
    a->request = (struct akunu_request){
        .size = sizeof a->request, .n_ids = n_ids, .n = 1, .on_event = on_event, .user = texts
    };
}

static ak_status submit(struct fixture *f, struct asked *a, uint64_t *id)
{
    a->request.ids = a->ids;
    a->generation.sampling = &a->sampling;
    a->request.generation = &a->generation;
    ak_status status = ak_sched_submit(f->sched, &a->request, id, &f->error);
    memset(a->ids, 0, sizeof a->ids); /* it has copies */
    return status;
}

static void submit_ok(struct fixture *f, struct asked *a, uint64_t *id)
{
    ck_assert_msg(submit(f, a, id) == AKUNU_OK, "%s", f->error.message);
}

static void run_all(struct fixture *f)
{
    for (int i = 0; ak_sched_step(f->sched); i++)
        ck_assert_int_lt(i, 100000);
}

/* ---- As if alone -------------------------------------------------------- */
static bool record_alone(size_t index, akunu_token token, const char *text, size_t n_bytes,
                         void *user)
{
    struct text *alone = user;
    (void)index, (void)text, (void)n_bytes;
    alone->tokens[alone->n++] = token;
    return alone->n != alone->stop_after;
}

static void record_logprob(size_t index, akunu_token token, float logprob,
                           const struct akunu_logprob *top, size_t n_top, void *user)
{
    struct text *alone = user;
    (void)index, (void)token, (void)top, (void)n_top;
    alone->logprobs[alone->n] = logprob;
}

/* Generates what the completion of a request should be, in a session of its own. */
static void generate_alone(struct fixture *f, const struct asked *a, const int32_t *ids,
                           size_t completion, struct text *alone)
{
    struct ak_session *session;
    struct akunu_generation_params generation = a->generation;
    struct akunu_sampling_params sampling = a->sampling;
    struct ak_gen_request request = { .ids = ids,
                                      .n_ids = a->request.n_ids,
                                      .generation = &generation };
    sampling.seed += completion;
    generation.sampling = &sampling;
    generation.speculation = AKUNU_SPECULATION_NONE;
    generation.on_logprobs = record_logprob; /* the backend does not sample then */
    generation.on_piece = record_alone;
    generation.user = alone;
    ck_assert_int_eq(ak_session_create(&f->model, &f->params, &session, &f->error), AKUNU_OK);
    ck_assert_int_eq(ak_session_sequence_new(session, &request.sequence, &f->error), AKUNU_OK);
    request.session = session;
    ck_assert_msg(ak_gen_run(&request, &alone->result, &f->error) == AKUNU_OK, "%s",
                  f->error.message);
    ak_session_free(session);
}

static void check_alone(struct fixture *f, const struct asked *a, int text, struct text *got)
{
    int32_t ids[CONTEXT];
    double elapsed = clock_of(f);
    for (uint32_t i = 0; i < a->request.n_ids; i++)
        ids[i] = id(text, i);
    for (size_t completion = 0; completion < a->request.n; completion++, got++) {
        static struct text alone;
        alone = (struct text){ .stop_after = got->stop_after };
        generate_alone(f, a, ids, completion, &alone);
        ck_assert_msg(got->ended && got->status == AKUNU_OK, "%s", got->message);
        ck_assert_uint_eq(got->n, alone.n);
        ck_assert_mem_eq(got->tokens, alone.tokens, alone.n * sizeof *alone.tokens);
        if (a->request.logprobs)
            ck_assert_mem_eq(got->logprobs, alone.logprobs, alone.n * sizeof *alone.logprobs);
        ck_assert_int_eq(got->result.stop, alone.result.stop);
        ck_assert_uint_eq(got->result.n_generated, alone.result.n_generated);
        ck_assert_uint_eq(got->result.n_prompt + got->result.n_kept, alone.result.n_prompt);
        ck_assert_uint_lt(got->result.n_kept, a->request.n_ids); /* the last token runs */
        ck_assert(got->result.prompt_seconds >= 0.0 && got->result.generate_seconds >= 0.0);
        ck_assert_double_le(got->result.prompt_seconds + got->result.generate_seconds, elapsed);
    }
}

static void ask_at_random(struct asked *a, struct fixture *f, int number, struct ak_random *random)
{
    uint32_t bits = (uint32_t)(ak_random_bits(random) >> 32), mode = bits >> 4 & 3;
    ask(a, f->texts[number], number % 8, 1 + bits % (bits & 8 ? 400 : 160), bits >> 8 & 63);
    a->request.client = bits >> 14 & 3;
    a->request.n = 1 + (bits >> 16 & 3) % COMPLETIONS;
    a->request.logprobs = bits >> 18 & 1;
    a->sampling.temperature = mode == 0 ? 0.0f : 0.9f;
    a->sampling.top_k = mode == 1 ? 40 : 0;
    a->sampling.repeat_penalty = mode == 2 ? 1.3f : 1.0f;
    f->texts[number][a->request.n - 1].stop_after = bits >> 20 & 1 ? 9 : 0;
}

/* Random requests come at random times; rounds differ in pages, sequences and the cache. */
START_TEST(as_if_alone)
{
    static struct asked asked[REQUESTS], copies[REQUESTS];
    struct fixture *f = fixture_new();
    struct ak_random random;
    ak_random_seed(&random, (uint64_t)_i);
    f->params.max_sequences = 1 + (uint32_t)_i % 5;
    f->params.context = _i % 3 == 0 ? CONTEXT : 470;
    f->params.n_threads = 1 + (unsigned)_i % 2;
    f->options.no_prefix_cache = _i % 4 == 3;
    start(f);
    for (int i = 0; i < REQUESTS; i++) {
        ask_at_random(&asked[i], f, i, &random);
        copies[i] = asked[i];
        submit_ok(f, &asked[i], NULL);
        for (uint64_t steps = ak_random_bits(&random) % 20; steps > 0; steps--)
            ak_sched_step(f->sched);
    }
    run_all(f);
    for (int i = 0; i < REQUESTS; i++)
        check_alone(f, &copies[i], i % 8, f->texts[i]);
    struct akunu_scheduler_stats stats;
    ak_sched_get_stats(f->sched, &stats);
    ck_assert_uint_eq(stats.n_requests, REQUESTS);
    ck_assert_uint_eq(stats.n_running + stats.n_waiting, 0);
    ck_assert_uint_eq(stats.n_used_pages, 0);
    ck_assert(f->options.no_prefix_cache == (stats.n_cached_tokens == 0));
    uint64_t n_kept = 0;
    for (int i = 0; i < REQUESTS; i++)
        for (size_t j = 0; j < copies[i].request.n; j++)
            n_kept += f->texts[i][j].result.n_kept;
    ck_assert_uint_eq(stats.n_cached_tokens, n_kept);
    fixture_free(f);
}
END_TEST

/* Two long texts in a context for little more than one: the younger one makes way, and both are
 * as if alone. With log-probabilities of the prompts, which are reported once. */
START_TEST(preempted)
{
    bool prompt_logprobs = _i == 1;
    static struct asked a[2], copies[2];
    struct fixture *f = fixture_new();
    f->params.context = 320;
    f->params.max_sequences = 2;
    start(f);
    for (int i = 0; i < 2; i++) {
        ask(&a[i], f->texts[i], i + 4, 100, 200);
        a[i].request.prompt_logprobs = prompt_logprobs;
        copies[i] = a[i];
        submit_ok(f, &a[i], NULL);
    }
    run_all(f);
    struct akunu_scheduler_stats stats;
    ak_sched_get_stats(f->sched, &stats);
    ck_assert_uint_gt(stats.n_preempted, 0);
    for (int i = 0; i < 2; i++)
        check_alone(f, &copies[i], i + 4, f->texts[i]);
    for (int i = 0; i < 2; i++) { /* a text that runs again is no prefix that was found */
        ck_assert_uint_eq(f->texts[i][0].result.n_kept, 0);
        ck_assert_uint_eq(f->texts[i][0].n_prompt, prompt_logprobs ? 100 : 0);
    }
    fixture_free(f);
}
END_TEST

/* One sequence whose last page the cache holds too, in a full context. */
START_TEST(full_context)
{
    static struct asked a, copy;
    struct fixture *f = fixture_new();
    f->params.context = 256;
    f->params.max_sequences = 1;
    start(f);
    for (int i = 0; i < 2; i++) {
        ask(&a, f->texts[i], 5, 230, -1);
        copy = a;
        submit_ok(f, &a, NULL);
        run_all(f);
        check_alone(f, &copy, 5, f->texts[i]);
        ck_assert_int_eq(f->texts[i][0].result.stop, AKUNU_STOP_CONTEXT);
        for (size_t at = 0; at < f->texts[i][0].n; at++) /* nobody asked for them */
            ck_assert(f->texts[i][0].logprobs[at] == 0.0f);
    }
    ck_assert_uint_eq(f->texts[1][0].result.n_kept, 229);
    fixture_free(f);
}
END_TEST

/* ---- Prefix cache ------------------------------------------------------- */
START_TEST(prefix_is_kept)
{
    static struct asked a, copy;
    struct fixture *f = fixture_new();
    start(f);
    static const struct {
        int text;
        uint32_t n_ids, n_kept;
    } rounds[] = { { 0, 200, 0 }, { 0, 200, 199 }, { 1, 180, 150 }, { 6, 90, 0 }, { 0, 64, 63 } };
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        ask(&a, f->texts[i], rounds[i].text, rounds[i].n_ids, 5);
        copy = a;
        submit_ok(f, &a, NULL);
        run_all(f);
        ck_assert_uint_eq(f->texts[i][0].result.n_kept, rounds[i].n_kept);
        check_alone(f, &copy, rounds[i].text, f->texts[i]);
    }
    fixture_free(f);
}
END_TEST

/* Two prompts with the same beginning run in the same pass, so the first page of the cache is the
 * younger one's and the page behind it the older one's. When the younger one has ended, nothing
 * else holds the first page, and a text that grows holds the one that continues it. */
START_TEST(page_before_one_in_use)
{
    static struct asked a[3], copies[3];
    static const struct {
        int text;
        uint32_t n_ids;
        int64_t n;
    } asks[3] = { { 0, 140, 110 }, { 0, 70, 2 }, { 5, 100, 120 } };
    struct fixture *f = fixture_new();
    f->params.context = 320;
    f->params.batch = 256;
    f->params.max_sequences = 3;
    start(f);
    for (int i = 0; i < 3; i++) {
        ask(&a[i], f->texts[i], asks[i].text, asks[i].n_ids, asks[i].n);
        copies[i] = a[i];
        if (i == 2)
            while (!f->texts[1][0].ended)
                ak_sched_step(f->sched);
        submit_ok(f, &a[i], NULL);
    }
    run_all(f);
    for (int i = 0; i < 3; i++)
        check_alone(f, &copies[i], asks[i].text, f->texts[i]);
    struct akunu_scheduler_stats stats;
    ak_sched_get_stats(f->sched, &stats);
    ck_assert_uint_eq(stats.n_used_pages, 0); /* the cache holds each page once */
    fixture_free(f);
}
END_TEST

static struct ak_session_kv create_kv(struct fixture *f, uint32_t n_pages)
{
    struct ak_session_kv kv;
    struct ak_kv_shape shape = {
        .n_layers = 1, .n_kv_heads = 1, .head_dim = 1, .n_pages = n_pages
    };
    shape.k_type = shape.v_type = AKUNU_KV_F32;
    ck_assert_int_eq(ak_session_kv_create(&f->backend.base, &shape, n_pages * AK_KV_PAGE_TOKENS, 1,
                                          &kv, &f->error),
                     AKUNU_OK);
    return kv;
}

/* Computes a text of two pages, or lets it share what the tree has; then the tree has it. */
static void use_text(struct ak_sched_tree *tree, const int32_t *ids, bool shares)
{
    enum { N = 2 * AK_KV_PAGE_TOKENS };
    int32_t sequence = ak_session_kv_sequence_new(tree->kv);
    if (shares)
        ck_assert_uint_eq(ak_sched_tree_share(tree, sequence, ids, N), N);
    else
        ak_session_kv_extend(tree->kv, sequence, ids, N);
    if (!shares)
        ak_sched_tree_add(tree, sequence, true);
    ak_session_kv_sequence_free(tree->kv, sequence);
}

/* How many tokens of a text the tree has. */
static uint32_t count_cached(struct ak_sched_tree *tree, const int32_t *ids)
{
    int32_t sequence = ak_session_kv_sequence_new(tree->kv);
    uint32_t n = ak_sched_tree_share(tree, sequence, ids, 2 * AK_KV_PAGE_TOKENS);
    ak_session_kv_sequence_free(tree->kv, sequence);
    return n;
}

/* The pages that were not used for longest go first, the last one of a text before its first. A use
 * is a request that shares them, or one that computed the same text once more. */
START_TEST(least_recent_goes_first)
{
    enum { PAGE = AK_KV_PAGE_TOKENS };
    int32_t ids[3][2 * PAGE];
    struct ak_sched_tree tree;
    struct fixture *f = fixture_new();
    struct ak_session_kv kv = create_kv(f, 8);
    for (int i = 0; i < 3; i++)
        for (uint32_t at = 0; at < 2 * PAGE; at++)
            ids[i][at] = id(4 + i, at);
    ak_sched_tree_init(&tree, &kv);
    for (int i = 0; i < 3; i++)
        use_text(&tree, ids[i], false);
    ck_assert_uint_eq(ak_sched_tree_count_evictable(&tree), 6);
    use_text(&tree, ids[0], _i == 0);
    ck_assert_uint_eq(kv.n_free, 2); /* there is one page of each */
    ck_assert(ak_sched_tree_evict(&tree));
    ck_assert_uint_eq(count_cached(&tree, ids[1]), PAGE);
    use_text(&tree, ids[0], _i == 0);
    for (int i = 0; i < 2; i++)
        ck_assert(ak_sched_tree_evict(&tree));
    ck_assert_uint_eq(tree.n_nodes, 3);
    ck_assert_uint_eq(count_cached(&tree, ids[2]), 0);
    ck_assert_uint_eq(count_cached(&tree, ids[1]), PAGE);
    ck_assert_uint_eq(count_cached(&tree, ids[0]), 2 * PAGE);
    for (int i = 0; i < 3; i++)
        ck_assert(ak_sched_tree_evict(&tree));
    ck_assert(!ak_sched_tree_evict(&tree));
    ck_assert_uint_eq(kv.n_free, 8);
    /* to look for a text of which nothing is there is no use of another one */
    for (int i = 0; i < 2; i++)
        use_text(&tree, ids[i], false);
    ck_assert_uint_eq(count_cached(&tree, ids[2]), 0);
    for (int i = 0; i < 2; i++)
        ck_assert(ak_sched_tree_evict(&tree));
    ck_assert_uint_eq(count_cached(&tree, ids[0]), 0);
    ck_assert_uint_eq(count_cached(&tree, ids[1]), 2 * PAGE);
    ak_sched_tree_clear(&tree);
    ck_assert_uint_eq(kv.n_free, 8);
    ak_session_kv_clear(&kv);
    fixture_free(f);
}
END_TEST

/* A text is given once, and once more when it has grown: what was given is its beginning only. */
START_TEST(grown_text_is_given)
{
    enum { N = 30, MORE = 20 };
    int32_t ids[N + MORE];
    struct ak_sched_tree tree;
    struct fixture *f = fixture_new();
    struct ak_session_kv kv = create_kv(f, 4);
    ak_sched_tree_init(&tree, &kv);
    for (uint32_t i = 0; i < N + MORE; i++)
        ids[i] = id(4, i);
    for (uint32_t from = 0, n = N; n <= N + MORE; from = n, n += MORE) {
        int32_t sequence = ak_session_kv_sequence_new(&kv);
        if (from > 0)
            ck_assert_uint_eq(ak_sched_tree_share(&tree, sequence, ids, from), from);
        ak_session_kv_extend(&kv, sequence, ids + from, n - from);
        ak_sched_tree_add(&tree, sequence, true);
        ak_session_kv_sequence_free(&kv, sequence);
        sequence = ak_session_kv_sequence_new(&kv);
        ck_assert(ak_sched_tree_give(&tree, sequence, 1));
        ck_assert_uint_eq(ak_session_kv_sequence(&kv, sequence)->length, n);
        ck_assert_mem_eq(ak_session_kv_sequence(&kv, sequence)->tokens, ids, n * sizeof *ids);
        ck_assert(!ak_sched_tree_give(&tree, sequence, 1));
        ak_session_kv_sequence_free(&kv, sequence);
    }
    ak_sched_tree_clear(&tree);
    ak_session_kv_clear(&kv);
    fixture_free(f);
}
END_TEST

/* Completions run their prompt once, and so do requests side by side. */
START_TEST(prompt_runs_once)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    start(f);
    ask(&a, f->texts[0], 0, 200, 4);
    a.request.n = 3;
    submit_ok(f, &a, NULL);
    run_all(f);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(f->texts[0][i].result.n_prompt, i == 0 ? 200 : 1);
        ck_assert_uint_eq(f->texts[0][i].result.n_kept, i == 0 ? 0 : 199);
    }
    for (int i = 1; i < 4; i++) {
        ask(&a, f->texts[i], 7, 300, 4);
        submit_ok(f, &a, NULL);
    }
    run_all(f);
    uint64_t n = 0;
    for (int i = 1; i < 4; i++)
        n += f->texts[i][0].result.n_prompt;
    ck_assert_uint_le(n, 300 + 2 * 64);
    fixture_free(f);
}
END_TEST

/* ---- Passes ------------------------------------------------------------- */
/* While texts grow, a pass takes at most four times as long as without a prompt. */
START_TEST(passes_stay_short)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    f->params.batch = 900;
    f->params.context = 4096;
    start(f);
    const struct ak_session *s = ak_sched_session(f->sched);
    for (int i = 0; i < 3; i++) {
        ask(&a, f->texts[i], 4 + i, 20, 250);
        submit_ok(f, &a, NULL);
    }
    for (int i = 0; i < 20; i++)
        ak_sched_step(f->sched);
    ask(&a, f->texts[3], 8, 1000, 4);
    submit_ok(f, &a, NULL);
    uint64_t largest = 0, passes = 0;
    while (!f->texts[3][0].ended) {
        uint64_t before = s->n_tokens;
        ck_assert(ak_sched_step(f->sched));
        largest = s->n_tokens - before > largest ? s->n_tokens - before : largest;
        passes++;
    }
    /* a pass of 3 takes 1.03 s: 4.12 s are 312 tokens beside what a pass itself costs */
    ck_assert_uint_le(largest, 320);
    ck_assert_uint_le(passes, 12);
    ck_assert(!f->texts[0][0].ended);
    fixture_free(f);
}
END_TEST

/* A part of a prompt takes as many tokens as make the pass `ratio` times as long. The price of a
 * token is what the first pass took, in which there are 20 tokens of each text: (pass + n · token)
 * / n. */
START_TEST(parts_of_prompts)
{
    static const struct {
        uint32_t n_texts;
        double pass, token, ratio; /* seconds */
        uint64_t n;                /* tokens of the part */
    } cases[] = {
        { 3, 1.0, 0.01, 4.0, 115 }, /* 3 · 1.03 / 0.0267 */
        { 3, 1.0, 0.01, 2.0, 38 },  /* 1.03 / 0.0267 */
        { 20, 1.0, 0.1, 4.0, 87 },  /* more than a skinny pass: 3 · 3 / 0.1025 */
        /* fewer than 16: half as long again, up to 16 */
        { 1, 1.0, 2.0, 4.0, 7 },  /* 3 · 3 / 2.05 are 4; 5 · 3 / 2.05 */
        { 3, 1.0, 1.0, 4.0, 16 }, /* 3 · 4 / 1.017 are 11; 5 · 4 / 1.017 are 19 */
        { 1, 0.1, 2.0, 2.0, 4 },  /* 2 · 2.1 / 2.005 are 2, but a prompt advances by 4 */
    };
    static struct asked a;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture *f = fixture_new();
        f->pass_seconds = cases[i].pass;
        f->token_seconds = cases[i].token;
        f->options.max_pass_ratio = cases[i].ratio;
        f->params.batch = 900;
        f->params.context = 8192;
        f->params.max_sequences = 21;
        start(f);
        const struct ak_session *s = ak_sched_session(f->sched);
        for (uint32_t t = 0; t < cases[i].n_texts; t++) {
            ask(&a, f->texts[t], 4 + (int)t, 20, 100);
            submit_ok(f, &a, NULL);
        }
        for (int step = 0; step < 10; step++)
            ak_sched_step(f->sched);
        ask(&a, f->texts[20], 30, 600, 4);
        submit_ok(f, &a, NULL);
        uint64_t before = s->n_tokens;
        ck_assert(ak_sched_step(f->sched));
        ck_assert_msg(s->n_tokens - before == cases[i].n_texts + cases[i].n,
                      "case %zu: %llu tokens", i, (unsigned long long)(s->n_tokens - before));
        fixture_free(f);
    }
}
END_TEST

/* ---- Queue -------------------------------------------------------------- */
static bool on_order(const struct akunu_request_event *event, void *user)
{
    char **at = user;
    if (event->kind == AKUNU_REQUEST_END)
        *(*at)++ = (char)('0' + event->request);
    return true;
}

START_TEST(clients_take_turns)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    char order[16] = "", *at = order;
    f->params.max_sequences = 1;
    start(f);
    for (int i = 0; i < 6; i++) { /* 1 to 4 of one client, 5 of another, 6 of a third */
        ask(&a, NULL, i, 10, 2);
        a.request.client = i < 4 ? 1 : (uint64_t)i;
        a.request.on_event = on_order;
        a.request.user = &at;
        submit_ok(f, &a, NULL);
    }
    run_all(f);
    ck_assert_str_eq(order, "156234");
    fixture_free(f);
}
END_TEST

START_TEST(queue_is_bounded)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    f->params.max_sequences = 1;
    f->options.max_waiting = 2;
    start(f);
    for (int i = 0; i < 3; i++) {
        ask(&a, f->texts[i], i, 10, 50);
        submit_ok(f, &a, NULL);
        ak_sched_step(f->sched); /* the first one starts */
    }
    ask(&a, f->texts[3], 3, 10, 2);
    ck_assert_int_eq(submit(f, &a, NULL), AKUNU_ERROR_BUSY);
    ck_assert_str_eq(f->error.message, "2 requests wait already, as many as may");
    run_all(f);
    ask(&a, f->texts[3], 3, 10, 2);
    submit_ok(f, &a, NULL);
    run_all(f);
    ck_assert(f->texts[3][0].ended);
    fixture_free(f);
}
END_TEST

static void check_cancelled(const struct text *text, const char *message)
{
    ck_assert(text->ended);
    ck_assert_int_eq(text->status, AKUNU_ERROR_CANCELLED);
    ck_assert_str_eq(text->message, message);
}

/* Requests that end while they wait, cancelled or late, make room for as many others. */
START_TEST(those_that_end_do_not_wait)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    struct akunu_scheduler_stats stats;
    uint64_t ids[3];
    f->params.max_sequences = 1;
    f->options.max_waiting = 2;
    start(f);
    for (int i = 0; i < 3; i++) {
        ask(&a, f->texts[i], i, 10, 250);
        a.request.timeout = i == 2 ? 5.0 : 0.0;
        submit_ok(f, &a, &ids[i]);
        ak_sched_step(f->sched); /* the first one starts */
    }
    ak_sched_get_stats(f->sched, &stats);
    ck_assert_uint_eq(stats.n_waiting, 2);
    ck_assert_uint_eq(stats.n_running, 1);
    ak_sched_cancel(f->sched, ids[1]);
    for (int i = 0; i < 10; i++) /* the third one's time-out passes */
        ak_sched_step(f->sched);
    check_cancelled(f->texts[1], "cancelled after 0 tokens");
    check_cancelled(f->texts[2], "the time-out of 5 s passed after 0 tokens");
    ak_sched_get_stats(f->sched, &stats);
    ck_assert_uint_eq(stats.n_waiting, 0);
    ck_assert_uint_eq(stats.n_running, 1);
    for (int i = 3; i < 5; i++) {
        ask(&a, f->texts[i], i, 10, 5);
        submit_ok(f, &a, NULL);
    }
    ask(&a, f->texts[5], 5, 10, 5);
    ck_assert_int_eq(submit(f, &a, NULL), AKUNU_ERROR_BUSY);
    ak_sched_cancel(f->sched, ids[0]);
    run_all(f);
    for (int i = 3; i < 5; i++)
        ck_assert(f->texts[i][0].ended && f->texts[i][0].n == 5);
    fixture_free(f);
}
END_TEST

/* ---- Ends --------------------------------------------------------------- */
/* In the queue, in the prompt, in the text; by another completion's callback it is not. */
START_TEST(cancelled)
{
    static struct asked a, copy;
    struct fixture *f = fixture_new();
    uint64_t ids[4];
    f->params.max_sequences = 2;
    start(f);
    ask(&a, f->texts[0], 4, 20, 100);
    copy = a;
    submit_ok(f, &a, &ids[0]);
    ask(&a, f->texts[1], 5, 10, 100);
    submit_ok(f, &a, &ids[1]);
    for (int i = 0; i < 6; i++)
        ak_sched_step(f->sched);
    ask(&a, f->texts[2], 6, 400, 100);
    submit_ok(f, &a, &ids[2]);
    ak_sched_step(f->sched);
    ak_sched_cancel(f->sched, ids[2]);
    ak_sched_step(f->sched);
    check_cancelled(f->texts[2], "cancelled after 0 tokens");
    size_t n = f->texts[1][0].n;
    ck_assert_uint_gt(n, 0);
    ak_sched_cancel(f->sched, ids[1]);
    ask(&a, f->texts[3], 7, 400, 100);
    submit_ok(f, &a, &ids[3]);
    ak_sched_step(f->sched);
    ck_assert_uint_eq(f->texts[1][0].n, n);
    ck_assert_int_eq(f->texts[1][0].status, AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(f->texts[3][0].n, 0);
    ak_sched_cancel(f->sched, ids[3]);
    ak_sched_cancel(f->sched, 99);
    run_all(f);
    check_cancelled(f->texts[3], "cancelled after 0 tokens");
    check_alone(f, &copy, 4, f->texts[0]);
    struct akunu_scheduler_stats stats;
    ak_sched_get_stats(f->sched, &stats);
    ck_assert_uint_eq(stats.n_cancelled, 3);
    fixture_free(f);
}
END_TEST

START_TEST(late)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    f->params.max_sequences = 1;
    start(f);
    ask(&a, f->texts[0], 4, 20, 250);
    a.request.timeout = 30.0;
    submit_ok(f, &a, NULL);
    ask(&a, f->texts[1], 5, 20, 3);
    a.request.timeout = 20.0;
    submit_ok(f, &a, NULL);
    run_all(f);
    ck_assert_uint_gt(f->texts[0][0].n, 20);
    ck_assert_uint_lt(f->texts[0][0].n, 40);
    ck_assert(strstr(f->texts[0][0].message, "the time-out of 30 s passed after") != NULL);
    check_cancelled(f->texts[1], "the time-out of 20 s passed after 0 tokens");
    fixture_free(f);
}
END_TEST

/* A paused request makes way for others, and goes on where it was. */
START_TEST(paused)
{
    static struct asked a[2], copies[2];
    struct fixture *f = fixture_new();
    uint64_t first;
    f->params.max_sequences = 1;
    start(f);
    for (int i = 0; i < 2; i++) {
        ask(&a[i], f->texts[i], 4 + i, 100, 60);
        copies[i] = a[i];
        submit_ok(f, &a[i], i == 0 ? &first : NULL);
    }
    for (int i = 0; i < 10; i++)
        ak_sched_step(f->sched);
    size_t n = f->texts[0][0].n;
    ak_sched_pause(f->sched, first, true);
    run_all(f);
    ck_assert_uint_eq(f->texts[0][0].n, n);
    ck_assert(f->texts[1][0].ended);
    ak_sched_pause(f->sched, first, false);
    run_all(f);
    for (int i = 0; i < 2; i++)
        check_alone(f, &copies[i], 4 + i, f->texts[i]);
    fixture_free(f);
}
END_TEST

/* What runs when the scheduler is freed ends, and so does what waits. */
START_TEST(freed)
{
    static struct asked a;
    static struct text texts[3][COMPLETIONS];
    struct fixture *f = fixture_new();
    memset(texts, 0, sizeof texts);
    f->params.max_sequences = 1;
    start(f);
    for (int i = 0; i < 3; i++) {
        ask(&a, texts[i], i, 10, 50);
        a.request.n = 2;
        submit_ok(f, &a, NULL);
        if (i < 2)
            ak_sched_step(f->sched);
    }
    ak_sched_free(f->sched);
    f->sched = NULL;
    for (int i = 0; i < 3; i++)
        for (int completion = 0; completion < 2; completion++)
            check_cancelled(&texts[i][completion], "the scheduler was freed");
    fixture_free(f);
}
END_TEST

/* A device that fails ends the requests of the pass, and no others: one that waits (0), and one
 * that is paused (1). */
START_TEST(lost_pass)
{
    static struct asked a, copy;
    struct fixture *f = fixture_new();
    uint64_t ids[2];
    f->params.max_sequences = 1 + (uint32_t)_i;
    start(f);
    for (int i = 0; i < 2; i++) {
        ask(&a, f->texts[i], i, 10, 20);
        copy = a;
        submit_ok(f, &a, &ids[i]);
    }
    ak_sched_step(f->sched);
    ck_assert_uint_eq(f->texts[1][0].n, (size_t)_i);
    ak_sched_pause(f->sched, ids[1], true);
    f->backend.lose_pass = true;
    ak_sched_step(f->sched);
    f->backend.lose_pass = false;
    ck_assert_int_eq(f->texts[0][0].status, AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(f->texts[0][0].message, "the device is lost");
    ak_sched_pause(f->sched, ids[1], false);
    run_all(f);
    check_alone(f, &copy, 1, f->texts[1]);
    fixture_free(f);
}
END_TEST

/* ---- Reports ------------------------------------------------------------ */
static void check_slot(struct fixture *f, size_t i, const struct akunu_scheduler_slot *expected)
{
    struct akunu_scheduler_slot slot;
    ck_assert(ak_sched_slot_at(f->sched, i, &slot));
    ck_assert_uint_eq(slot.request, expected->request);
    ck_assert_uint_eq(slot.index, expected->index);
    ck_assert_uint_eq(slot.n_prompt, expected->n_prompt);
    ck_assert_uint_eq(slot.n_cached, expected->n_cached);
    ck_assert_uint_eq(slot.n_done, expected->n_done);
    ck_assert_uint_eq(slot.n_generated, expected->n_generated);
}

/* What grows in each slot: a prompt in parts of 64 tokens, its text, a second prompt that shares
 * its first page, a second completion. */
START_TEST(slots)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    uint64_t first;
    struct akunu_scheduler_slot slot, none = { 0 };
    f->params.max_sequences = 3;
    start(f);
    for (size_t i = 0; i < 3; i++)
        check_slot(f, i, &none);
    ck_assert(!ak_sched_slot_at(f->sched, 3, &slot));
    ask(&a, f->texts[0], 4, 100, 50);
    submit_ok(f, &a, &first);
    ak_sched_step(f->sched);
    check_slot(f, 0, &(struct akunu_scheduler_slot){ first, 0, 100, 0, 64, 0 });
    ak_sched_step(f->sched);
    check_slot(f, 0, &(struct akunu_scheduler_slot){ first, 0, 100, 0, 100, 1 });
    for (int i = 0; i < 3; i++)
        ak_sched_step(f->sched);
    ask(&a, f->texts[1], 4, 90, 50);
    a.request.n = 2;
    submit_ok(f, &a, NULL);
    for (int i = 0; i < 2; i++)
        ak_sched_step(f->sched);
    check_slot(f, 0, &(struct akunu_scheduler_slot){ first, 0, 100, 0, 100, 6 });
    check_slot(f, 1, &(struct akunu_scheduler_slot){ first + 1, 0, 90, 64, 90, 2 });
    check_slot(f, 2, &(struct akunu_scheduler_slot){ first + 1, 1, 90, 89, 90, 1 });
    ak_sched_cancel(f->sched, first);
    ak_sched_step(f->sched);
    check_slot(f, 0, &none);
    check_slot(f, 1, &(struct akunu_scheduler_slot){ first + 1, 0, 90, 64, 90, 3 });
    fixture_free(f);
}
END_TEST

/* ---- The thread --------------------------------------------------------- */
static atomic_uint n_looks; /* at the clock */

static double count_looks(void *user)
{
    (void)user;
    atomic_fetch_add(&n_looks, 1);
    return 0.0;
}

static pthread_t handler_thread;
static atomic_bool was_handled;

static void on_signal(int number)
{
    (void)number;
    handler_thread = pthread_self();
    atomic_store(&was_handled, true);
}

/* While all requests are paused the thread sleeps until the first of them is late, instead of
 * looking at the clock again and again. Signals are for the host's threads: one that the host
 * blocks waits for it. */
START_TEST(thread_sleeps)
{
    static struct asked a, copy;
    struct fixture *f = fixture_new();
    struct akunu_scheduler_stats stats;
    struct sigaction action = { .sa_handler = on_signal };
    sigset_t blocked;
    uint64_t request;
    f->options.clock = count_looks;
    start(f);
    ask(&a, f->texts[0], 4, 20, 30);
    a.request.timeout = 1000.0;
    copy = a;
    submit_ok(f, &a, &request);
    ak_sched_pause(f->sched, request, true);
    ck_assert_int_eq(ak_sched_start(f->sched, &f->error), AKUNU_OK);
    usleep(500000); /* as much as it wants to look */
    ck_assert_uint_lt(atomic_load(&n_looks), 100);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
    ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
    ak_sched_pause(f->sched, request, false);
    do {
        usleep(1000);
        ak_sched_get_stats(f->sched, &stats);
    } while (stats.n_running + stats.n_waiting > 0);
    ck_assert_int_eq(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL), 0);
    ck_assert(atomic_load(&was_handled) && pthread_equal(handler_thread, pthread_self()));
    check_alone(f, &copy, 4, f->texts[0]);
    fixture_free(f);
}
END_TEST

/* While all requests are paused the thread wakes when the first of them is late, whichever came
 * first. */
START_TEST(thread_wakes_for_the_first_late)
{
    static struct asked a[2];
    struct fixture *f = fixture_new();
    struct akunu_scheduler_stats stats;
    uint64_t request;
    f->options.clock = NULL;
    start(f);
    for (int i = 0; i < 2; i++) {
        ask(&a[i], f->texts[i], 4 + i, 20, 30);
        a[i].request.timeout = i == _i ? 0.2 : 1000.0;
        submit_ok(f, &a[i], &request);
        ak_sched_pause(f->sched, request, true);
    }
    ck_assert_int_eq(ak_sched_start(f->sched, &f->error), AKUNU_OK);
    do {
        usleep(1000);
        ak_sched_get_stats(f->sched, &stats);
    } while (stats.n_running + stats.n_waiting > 1);
    ck_assert_uint_eq(stats.n_cancelled, 1);
    fixture_free(f);
}
END_TEST

/* ---- Memory ------------------------------------------------------------- */
/* Whichever allocation fails, no scheduler is made, and nothing of it is left. */
START_TEST(created_without_memory)
{
    struct fixture *f = fixture_new();
    long n = 0;
    for (;; n++) {
        f->sched = NULL;
        refuse_allocation(n);
        ak_status status =
            ak_sched_create(&f->model, &f->params, &f->options, &f->sched, &f->error);
        if (!allow_allocations()) {
            ck_assert_int_eq(status, AKUNU_OK);
            break;
        }
        ck_assert_int_eq(status, AKUNU_ERROR_MEMORY);
        ck_assert_ptr_null(f->sched);
        ck_assert_uint_eq(f->backend.allocated, 0);
    }
    ck_assert_int_gt(n, 20);
    fixture_free(f);
}
END_TEST

/* A request with all that is copied. */
static void ask_much(struct asked *a, struct text *texts)
{
    static const char *const stops[] = { "one", "two" };
    static const char *const breakers[] = { "a", "b", NULL };
    static const struct akunu_logit_bias biases[] = { { 3, 1.0f }, { 4, -1.0f } };
    ask(a, texts, 4, 100, 90);
    a->request.n = 2;
    a->request.logprobs = a->request.prompt_logprobs = true;
    a->generation.stops = stops;
    a->generation.n_stops = 2;
    a->generation.n_top_logprobs = 2;
    a->sampling.temperature = 0.9f;
    a->sampling.dry_sequence_breakers = breakers;
    a->sampling.logit_bias = biases;
    a->sampling.n_logit_bias = 2;
}

/* Whichever allocation of a request fails, on its way in or while it runs, it ends with that error,
 * or its text is the right one; and the request after it is not disturbed. */
START_TEST(requests_without_memory)
{
    static struct asked a, copy, other, other_copy;
    long n_failed = 0, n_refused = 0;
    for (long n = 0, done = 0; !done; n++) {
        struct fixture *f = fixture_new();
        f->params.context = 480;
        start(f);
        ask_much(&a, f->texts[0]);
        copy = a;
        refuse_allocation(n);
        ak_status status = submit(f, &a, NULL);
        run_all(f);
        done = !allow_allocations();
        if (status != AKUNU_OK) {
            ck_assert_int_eq(status, AKUNU_ERROR_MEMORY);
            ck_assert(!f->texts[0][0].ended && !f->texts[0][1].ended);
            n_refused++;
        }
        for (size_t i = 0; status == AKUNU_OK && i < 2; i++) {
            struct text *text = &f->texts[0][i];
            ck_assert(text->ended);
            if (text->status == AKUNU_OK) {
                ck_assert_uint_eq(text->n, 90);
                ck_assert_uint_eq(text->n_prompt, i == 0 ? 100 : 0);
            }
            ck_assert(text->status == AKUNU_OK || text->status == AKUNU_ERROR_MEMORY);
            n_failed += text->status != AKUNU_OK;
        }
        if (done)
            check_alone(f, &copy, 4, f->texts[0]);
        ask(&other, f->texts[1], 5, 70, 3);
        other_copy = other;
        submit_ok(f, &other, NULL);
        run_all(f);
        check_alone(f, &other_copy, 5, f->texts[1]);
        fixture_free(f);
    }
    ck_assert_int_gt(n_refused, 10);
    ck_assert_int_gt(n_failed, 10);
}
END_TEST

/* ---- Prompts ------------------------------------------------------------ */
static float logprob_of(const int32_t *ids, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t v = 0; v < FAKE_VOCAB; v++)
        sum += exp((double)fake_logit(ids, n, v));
    return (float)((double)fake_logit(ids, n, (uint32_t)ids[n]) - log(sum));
}

/* Also of a prompt that the cache has, and if the request is preempted in it. */
START_TEST(prompt_logprobs)
{
    static struct asked a;
    struct fixture *f = fixture_new();
    f->params.context = 420;
    f->params.max_sequences = 2;
    start(f);
    for (int i = 0; i < 3; i++) {
        if (i == 2) {
            ask(&a, f->texts[3], 4, 130, 160);
            submit_ok(f, &a, NULL);
            for (int k = 0; k < 100; k++)
                ak_sched_step(f->sched);
        }
        ask(&a, f->texts[i], 5, 200, i == 0 ? 0 : 3);
        a.request.prompt_logprobs = true;
        submit_ok(f, &a, NULL);
        run_all(f);
        ck_assert_int_eq(f->texts[i][0].status, AKUNU_OK);
        ck_assert_uint_eq(f->texts[i][0].n_prompt, 200);
        ck_assert_uint_eq(f->texts[i][0].result.n_generated, i == 0 ? 0 : 3);
        ck_assert(isnan(f->texts[i][0].prompt_logprobs[0]));
        int32_t ids[200];
        for (uint32_t at = 0; at < 200; at++)
            ids[at] = id(5, at);
        for (uint32_t at = 1; at < 200; at++)
            ck_assert_float_eq_tol(f->texts[i][0].prompt_logprobs[at], logprob_of(ids, at), 1e-5f);
    }
    ck_assert_int_eq(f->texts[0][0].result.stop, AKUNU_STOP_LENGTH);
    fixture_free(f);
}
END_TEST

/* ---- Refusals ----------------------------------------------------------- */
static void refuses(struct fixture *f, struct asked *a, enum akunu_status status,
                    const char *message)
{
    f->error = (struct ak_error){ 0 };
    a->request.ids = a->request.ids ? a->ids : NULL;
    a->generation.sampling = &a->sampling;
    a->request.generation = &a->generation;
    ck_assert_int_eq(ak_sched_submit(f->sched, &a->request, NULL, &f->error), status);
    ck_assert_str_eq(f->error.message, message);
    ask(a, f->texts[0], 0, 10, 5);
    a->request.ids = a->ids;
}

START_TEST(refusals)
{
    static struct asked a;
    static const char *const stops[] = { "" };
    struct fixture *f = fixture_new();
    start(f);
    ask(&a, f->texts[0], 0, 10, 5);
    refuses(f, &a, AKUNU_ERROR_ARGUMENT, "the prompt has no tokens");
    a.request.n_ids = CONTEXT + 1;
    refuses(f, &a, AKUNU_ERROR_CONTEXT,
            "the prompt is too long: it has 1025 tokens, and the context holds 1024");
    a.ids[3] = FAKE_VOCAB;
    refuses(f, &a, AKUNU_ERROR_ARGUMENT, "token 3 is 97, and the vocabulary has 97");
    a.request.n = 0;
    refuses(f, &a, AKUNU_ERROR_ARGUMENT, "0 completions: 1 to 1024 are possible");
    a.request.timeout = -1.0;
    refuses(f, &a, AKUNU_ERROR_ARGUMENT, "the time-out is -1 seconds: 0 or more are expected");
    a.request.on_event = NULL;
    refuses(f, &a, AKUNU_ERROR_ARGUMENT, "the request has no callback for its events");
    a.generation.speculation = AKUNU_SPECULATION_NGRAM;
    refuses(f, &a, AKUNU_ERROR_UNSUPPORTED,
            "a scheduler runs no speculation, and a kind of it was asked for");
    a.generation.on_logprobs = record_logprob;
    refuses(
        f, &a, AKUNU_ERROR_UNSUPPORTED,
        "a scheduler calls no callback of akunu_generation_params: its events have the tokens and "
        "log-probabilities");
    a.generation.on_piece = record_alone;
    refuses(
        f, &a, AKUNU_ERROR_UNSUPPORTED,
        "a scheduler calls no callback of akunu_generation_params: its events have the tokens and "
        "log-probabilities");
    a.generation.n_stops = 1;
    refuses(f, &a, AKUNU_ERROR_ARGUMENT, "1 stop sequences: at most 64 are expected");
    a.generation.n_stops = 1;
    a.generation.stops = stops;
    refuses(f, &a, AKUNU_ERROR_ARGUMENT, "stop sequence 1 has 0 bytes: 1 to 1024 are expected");
    ck_assert(!ak_sched_step(f->sched));
    fixture_free(f);
    f = fixture_new();
    f->params.batch = 8;
    f->params.max_sequences = 9;
    ck_assert_int_eq(ak_sched_create(&f->model, &f->params, &f->options, &f->sched, &f->error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(f->error.message, "max_sequences is 9, and a pass has at most 8 tokens");
    fixture_free(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tcase = tcase_create("schedule");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, as_if_alone, 0, 24);
    tcase_add_loop_test(tcase, preempted, 0, 2);
    tcase_add_test(tcase, full_context);
    tcase_add_test(tcase, prefix_is_kept);
    tcase_add_test(tcase, page_before_one_in_use);
    tcase_add_loop_test(tcase, least_recent_goes_first, 0, 2);
    tcase_add_test(tcase, grown_text_is_given);
    tcase_add_test(tcase, prompt_runs_once);
    tcase_add_test(tcase, passes_stay_short);
    tcase_add_test(tcase, parts_of_prompts);
    tcase_add_test(tcase, clients_take_turns);
    tcase_add_test(tcase, queue_is_bounded);
    tcase_add_test(tcase, those_that_end_do_not_wait);
    tcase_add_test(tcase, cancelled);
    tcase_add_test(tcase, late);
    tcase_add_test(tcase, paused);
    tcase_add_test(tcase, freed);
    tcase_add_loop_test(tcase, lost_pass, 0, 2);
    tcase_add_test(tcase, slots);
    tcase_add_test(tcase, thread_sleeps);
    tcase_add_loop_test(tcase, thread_wakes_for_the_first_late, 0, 2);
    tcase_add_test(tcase, created_without_memory);
    tcase_add_test(tcase, requests_without_memory);
    tcase_add_test(tcase, prompt_logprobs);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}

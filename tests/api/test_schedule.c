/* Schedulers: requests of several threads on one model, each with the text that it has alone. */
#include "tests/api/failure.h"
#include "tests/golden_model.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum { THREADS = 3, PER_THREAD = 4, BYTES_MAX = 4096 };

struct text {
    char bytes[BYTES_MAX];
    size_t n_bytes, n;
    akunu_token tokens[GOLDEN_CONTEXT];
    float logprobs[GOLDEN_CONTEXT];
    float logits[GOLDEN_VOCAB]; /* [n_vocab], of the token that comes */
    size_t n_vocab;
    uint8_t chain[32];
    enum akunu_stop stop;
    enum akunu_status status;
    char message[200];
    bool ended;
};

/* What is asked for, in a variant for each number. */
struct asked {
    struct akunu_sampling_params sampling;
    struct akunu_generation_params generation;
    struct akunu_reasoning reasoning;
    const akunu_token *ids;
    size_t n_ids;
};

static const char *const stops[] = { "a", "ee" };

static void ask(struct asked *a, const struct golden_text *text, int number,
                const struct akunu_grammar *grammar)
{
    akunu_sampling_params_default(&a->sampling, sizeof a->sampling);
    akunu_generation_params_default(&a->generation, sizeof a->generation);
    a->sampling.seed = (uint64_t)number;
    a->sampling.temperature = number % 3 == 0 ? 0.0f : 0.9f;
    a->sampling.repeat_penalty = number % 4 == 1 ? 1.2f : 1.0f;
    a->sampling.grammar = number % 5 == 2 ? grammar : NULL;
    a->generation.sampling = &a->sampling;
    a->generation.max_tokens = 20;
    a->generation.stops = stops;
    a->generation.n_stops = number % 7 == 3 ? 2 : 0;
    a->generation.speculation = AKUNU_SPECULATION_NONE;
    akunu_reasoning_default(&a->reasoning, sizeof a->reasoning);
    a->reasoning.begin = "<think>";
    a->reasoning.end = a->reasoning.closing = "</think>";
    a->reasoning.is_open = true;
    a->reasoning.budget = 4;
    a->ids = text->ids;
    a->n_ids = 10 + (size_t)(number * 7) % (text->n_prompt - 10);
}

static void add_token(struct text *t, akunu_token token, const char *bytes, size_t n_bytes)
{
    ck_assert_uint_le(t->n_bytes + n_bytes, BYTES_MAX);
    memcpy(t->bytes + t->n_bytes, bytes, n_bytes);
    t->n_bytes += n_bytes;
    if (token >= 0)
        t->tokens[t->n++] = token;
}

static void add_to_chain(struct text *t, akunu_token token)
{
    struct ak_sha256 h;
    ak_sha256_begin(&h);
    ak_sha256_add(&h, t->chain, sizeof t->chain);
    ak_sha256_add(&h, &token, sizeof token);
    ak_sha256_add(&h, t->logits, t->n_vocab * sizeof *t->logits);
    ak_sha256_end(&h, t->chain);
}

static bool on_piece(size_t index, akunu_token token, const char *bytes, size_t n_bytes, void *user)
{
    (void)index;
    add_token(user, token, bytes, n_bytes);
    if (token >= 0)
        add_to_chain(user, token);
    return true;
}

static void on_logits(size_t index, float *logits, size_t n, void *user)
{
    struct text *t = user;
    (void)index;
    ck_assert_uint_le(n, GOLDEN_VOCAB);
    t->n_vocab = n;
    memcpy(t->logits, logits, n * sizeof *logits);
}

static void on_logprobs(size_t index, akunu_token token, float logprob,
                        const struct akunu_logprob *top, size_t n_top, void *user)
{
    struct text *t = user;
    (void)index, (void)token, (void)top, (void)n_top;
    t->logprobs[t->n] = logprob;
}

static void generate_alone(struct akunu_session *session, struct asked *a, struct text *t)
{
    struct akunu_result result = { .size = sizeof result };
    akunu_sequence sequence = akunu_sequence_new(session);
    a->generation.on_logprobs = on_logprobs;
    a->generation.on_logits = on_logits;
    a->generation.on_piece = on_piece;
    a->generation.user = t;
    ck_assert_msg(akunu_session_generate(session, sequence, &(struct akunu_ids){ a->ids, a->n_ids },
                                         &a->generation, &result) == AKUNU_OK,
                  "%s", akunu_last_error());
    a->generation.on_logprobs = NULL;
    a->generation.on_logits = NULL;
    a->generation.on_piece = NULL;
    akunu_sequence_free(session, sequence);
    t->stop = result.stop;
}

/* ---- Threads ------------------------------------------------------------ */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static bool on_event(const struct akunu_request_event *event, void *user)
{
    struct text *t = user;
    if (event->kind == AKUNU_REQUEST_TOKEN) {
        t->logprobs[t->n] = event->logprob;
        add_token(t, event->token, event->text, event->n_bytes);
        return true;
    }
    ck_assert_int_eq(event->kind, AKUNU_REQUEST_END);
    ck_assert_uint_eq(event->n_open, 0);
    pthread_mutex_lock(&lock);
    t->ended = true;
    t->status = event->status;
    t->stop = event->result->stop;
    memcpy(t->chain, event->result->chain, sizeof t->chain);
    snprintf(t->message, sizeof t->message, "%s", event->message);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return true;
}

static void wait_for(const struct text *t)
{
    pthread_mutex_lock(&lock);
    while (!t->ended)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static enum akunu_status submit(struct akunu_scheduler *scheduler, const struct asked *a,
                                struct text *t, uint64_t *id)
{
    struct akunu_request request;
    akunu_request_default(&request, sizeof request);
    request.ids = a->ids;
    request.n_ids = a->n_ids;
    request.generation = &a->generation;
    request.logprobs = true;
    request.chain = true;
    request.on_event = on_event;
    request.user = t;
    return akunu_scheduler_submit(scheduler, &request, id);
}

struct client {
    struct akunu_scheduler *scheduler;
    struct asked *asked;
    struct text *texts;
};

static void *run_client(void *user)
{
    struct client *c = user;
    for (int i = 0; i < PER_THREAD; i++) {
        ck_assert_msg(submit(c->scheduler, &c->asked[i], &c->texts[i], NULL) == AKUNU_OK, "%s",
                      akunu_last_error());
        if (i % 2)
            wait_for(&c->texts[i]);
    }
    for (int i = 0; i < PER_THREAD; i++)
        wait_for(&c->texts[i]);
    return NULL;
}

START_TEST(as_if_alone)
{
    static struct asked asked[THREADS * PER_THREAD];
    static struct text alone[THREADS * PER_THREAD], texts[THREADS * PER_THREAD];
    static const char gbnf[] = "root ::= [a-z ]+";
    const char *name = golden_kinds[_i];
    memset(alone, 0, sizeof alone); /* of another model, if tests run in one process */
    memset(texts, 0, sizeof texts);
    struct golden_text text;
    golden_read_text(name, &text);
    struct akunu_model *model = golden_load(name, NULL);
    struct akunu_session_params params = golden_params(2, 48, AKUNU_KV_F16);
    struct akunu_session *session = akunu_session_new(model, &params);
    struct akunu_grammar *grammar = akunu_grammar_parse(gbnf, strlen(gbnf));
    ck_assert_msg(session && grammar, "%s", akunu_last_error());
    for (int i = 0; i < THREADS * PER_THREAD; i++) {
        ask(&asked[i], &text, i, akunu_model_tokenizer(model) ? grammar : NULL);
        if (i % 6 == 5 && akunu_model_tokenizer(model))
            asked[i].generation.reasoning = &asked[i].reasoning;
        generate_alone(session, &asked[i], &alone[i]);
    }
    params.max_sequences = 3;
    struct akunu_scheduler *scheduler = akunu_scheduler_new(model, &params, NULL);
    ck_assert_msg(scheduler != NULL, "%s", akunu_last_error());
    akunu_model_free(model); /* the scheduler keeps it, and requests their grammars */
    struct client clients[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        clients[i] = (struct client){ scheduler, &asked[i * PER_THREAD], &texts[i * PER_THREAD] };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_client, &clients[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS * PER_THREAD; i++) {
        ck_assert_msg(texts[i].status == AKUNU_OK, "%s: %s", name, texts[i].message);
        ck_assert_msg(texts[i].n == alone[i].n && memcmp(texts[i].tokens, alone[i].tokens,
                                                         alone[i].n * sizeof *alone[i].tokens) == 0,
                      "%s: request %d is another text", name, i);
        ck_assert_mem_eq(texts[i].logprobs, alone[i].logprobs,
                         alone[i].n * sizeof *alone[i].logprobs);
        ck_assert_uint_eq(texts[i].n_bytes, alone[i].n_bytes);
        ck_assert_mem_eq(texts[i].bytes, alone[i].bytes, alone[i].n_bytes);
        ck_assert_int_eq(texts[i].stop, alone[i].stop);
        if (!asked[i].generation.reasoning) /* a host does not see the logits of closing tokens */
            ck_assert_mem_eq(texts[i].chain, alone[i].chain, sizeof alone[i].chain);
    }
    struct akunu_scheduler_stats stats;
    ck_assert_int_eq(akunu_scheduler_get_stats(scheduler, &stats, sizeof stats), AKUNU_OK);
    ck_assert_uint_gt(stats.n_generated, 0);
    ck_assert_uint_gt(stats.page_bytes, 0);
    ck_assert_uint_eq(akunu_scheduler_context(scheduler), GOLDEN_CONTEXT);
    akunu_grammar_free(grammar);
    akunu_scheduler_free(scheduler);
    akunu_session_free(session);
}
END_TEST

/* With kv_keep, too: whatever runs beside a request, and however often it is preempted, the tokens
 * are dropped where its prompt ends. */
START_TEST(dropped_tokens)
{
    enum { N = 5, PROMPT = 400 };
    static struct text alone[N], texts[N];
    static akunu_token ids[N][PROMPT];
    struct asked asked[N];
    struct golden_text text;
    memset(alone, 0, sizeof alone);
    memset(texts, 0, sizeof texts);
    golden_read_text("qwen3", &text);
    struct akunu_model *model = golden_load("qwen3", NULL);
    struct akunu_session_params params = golden_params(2, 128, AKUNU_KV_F16);
    params.context = 704;
    params.kv_keep = 256;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < PROMPT; j++) /* the first ones share a beginning */
            ids[i][j] = 20 + (j * 7 + (j > 130 || i > 2 ? i : 0) * 3) % 200;
        ask(&asked[i], &text, 3 * i, NULL);
        asked[i].ids = ids[i];
        asked[i].n_ids = i == 4 ? 150 : PROMPT; /* the last one is not long enough */
        asked[i].sampling.ignore_end = true;
        asked[i].generation.max_tokens = 90;
        asked[i].generation.n_stops = 0;
        generate_alone(session, &asked[i], &alone[i]);
    }
    params.max_sequences = 3;
    struct akunu_scheduler *scheduler = akunu_scheduler_new(model, &params, NULL);
    ck_assert_msg(scheduler != NULL, "%s", akunu_last_error());
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(submit(scheduler, &asked[i], &texts[i], NULL), AKUNU_OK);
    for (int i = 0; i < N; i++) {
        wait_for(&texts[i]);
        ck_assert_msg(texts[i].status == AKUNU_OK, "%s", texts[i].message);
        ck_assert_uint_eq(texts[i].n, alone[i].n);
        ck_assert_mem_eq(texts[i].tokens, alone[i].tokens, alone[i].n * sizeof *alone[i].tokens);
        ck_assert_mem_eq(texts[i].logprobs, alone[i].logprobs,
                         alone[i].n * sizeof *alone[i].logprobs);
    }
    akunu_scheduler_free(scheduler);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Freed while texts grow and others wait: each has its end, and none comes later. */
START_TEST(freed_at_work)
{
    static struct text texts[6];
    struct golden_text text;
    struct asked a;
    golden_read_text("qwen2", &text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session_params params = golden_params(1, 48, AKUNU_KV_F16);
    params.max_sequences = 2;
    struct akunu_scheduler *scheduler = akunu_scheduler_new(model, &params, NULL);
    ck_assert_msg(scheduler != NULL, "%s", akunu_last_error());
    uint64_t ids[6];
    for (int i = 0; i < 6; i++) {
        ask(&a, &text, 0, NULL);
        a.sampling.ignore_end = true;
        a.generation.max_tokens = -1;
        ck_assert_int_eq(submit(scheduler, &a, &texts[i], &ids[i]), AKUNU_OK);
    }
    akunu_scheduler_cancel(scheduler, ids[3]);
    akunu_scheduler_pause(scheduler, ids[0], true);
    wait_for(&texts[3]);
    ck_assert_int_eq(texts[3].status, AKUNU_ERROR_CANCELLED);
    akunu_scheduler_free(scheduler);
    for (int i = 0; i < 6; i++)
        ck_assert(texts[i].ended);
    akunu_model_free(model);
}
END_TEST

/* ---- Kept texts --------------------------------------------------------- */
static void remove_all(const char *dir)
{
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
}

static uint64_t run_kept(const struct akunu_model *model, const char *dir, const struct asked *a,
                         bool no_prefix_cache, struct text *t)
{
    struct akunu_session_params session = golden_params(1, 64, AKUNU_KV_F16);
    struct akunu_scheduler_params params;
    struct akunu_prompt_cache prompts;
    akunu_scheduler_params_default(&params, sizeof params);
    akunu_prompt_cache_default(&prompts, sizeof prompts);
    prompts.dir = dir;
    prompts.min_tokens = 64;
    params.prompts = &prompts;
    params.no_prefix_cache = no_prefix_cache;
    struct akunu_scheduler *scheduler = akunu_scheduler_new(model, &session, &params);
    ck_assert_msg(scheduler != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(submit(scheduler, a, t, NULL), AKUNU_OK);
    wait_for(t);
    ck_assert_msg(t->status == AKUNU_OK, "%s", t->message);
    struct akunu_scheduler_stats stats;
    do
        ck_assert_int_eq(akunu_scheduler_get_stats(scheduler, &stats, sizeof stats), AKUNU_OK);
    while (stats.n_requests == 0);
    akunu_scheduler_free(scheduler);
    return stats.n_cached_tokens;
}

/* What a scheduler leaves on disk, the next one finds, with the same text, unless it has no prefix
 * cache; a damaged file is skipped, and made again. */
START_TEST(kept_on_disk)
{
    static struct text texts[5];
    akunu_token ids[200];
    struct asked a;
    struct golden_text text;
    char dir[] = "/tmp/akunu-schedule-XXXXXX", command[4200];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    golden_read_text("qwen2", &text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    for (int i = 0; i < 200; i++)
        ids[i] = 20 + i;
    ask(&a, &text, 0, NULL);
    a.ids = ids;
    a.n_ids = 200;
    ck_assert_uint_eq(run_kept(model, dir, &a, false, &texts[0]), 0);
    ck_assert_uint_eq(run_kept(model, dir, &a, false, &texts[1]), 199);
    ck_assert_uint_eq(run_kept(model, dir, &a, true, &texts[4]), 0);
    snprintf(
        command, sizeof command,
        "for f in '%s'/*; do printf x | dd of=$f bs=1 seek=50000 conv=notrunc 2>/dev/null; done",
        dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert_uint_eq(run_kept(model, dir, &a, false, &texts[2]), 0);
    ck_assert_uint_eq(run_kept(model, dir, &a, false, &texts[3]), 199);
    for (int i = 1; i < 5; i++) {
        ck_assert_uint_eq(texts[i].n, texts[0].n);
        ck_assert_mem_eq(texts[i].tokens, texts[0].tokens, texts[0].n * sizeof *texts[0].tokens);
        ck_assert_mem_eq(texts[i].logprobs, texts[0].logprobs,
                         texts[0].n * sizeof *texts[0].logprobs);
    }
    akunu_model_free(model);
    remove_all(dir);
}
END_TEST

/* A scheduler, and a request for max_tokens whatever they are. `text` has the prompt. */
static struct akunu_scheduler *start_one(struct golden_text *text, struct asked *a,
                                         int64_t max_tokens)
{
    golden_read_text("qwen2", text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session_params params = golden_params(1, 48, AKUNU_KV_F16);
    struct akunu_scheduler *scheduler = akunu_scheduler_new(model, &params, NULL);
    ck_assert_msg(scheduler != NULL, "%s", akunu_last_error());
    akunu_model_free(model); /* the scheduler keeps it */
    ask(a, text, 0, NULL);
    a->sampling.ignore_end = true;
    a->generation.max_tokens = max_tokens;
    return scheduler;
}

/* A time-out ends a paused request, which no pass wakes. */
START_TEST(late)
{
    static struct text t;
    struct golden_text text;
    struct asked a;
    struct akunu_request request;
    struct akunu_scheduler *scheduler = start_one(&text, &a, -1);
    akunu_request_default(&request, sizeof request);
    request.ids = a.ids;
    request.n_ids = a.n_ids;
    request.generation = &a.generation;
    request.timeout = 0.2;
    request.on_event = on_event;
    request.user = &t;
    uint64_t id;
    ck_assert_int_eq(akunu_scheduler_submit(scheduler, &request, &id), AKUNU_OK);
    akunu_scheduler_pause(scheduler, id, true);
    wait_for(&t);
    ck_assert(t.status == AKUNU_ERROR_CANCELLED || t.stop == AKUNU_STOP_CONTEXT);
    akunu_scheduler_free(scheduler);
}
END_TEST

/* The thread sleeps while all requests are paused; a request that may go on wakes it. */
START_TEST(woken)
{
    enum { TOKENS = 30, IDLE_LOOKS = 5, LIMIT = 60 };
    static struct text t;
    struct golden_text text;
    struct asked a;
    struct akunu_scheduler_stats stats;
    struct timespec limit;
    uint64_t id, n_passes = 0;
    struct akunu_scheduler *scheduler = start_one(&text, &a, TOKENS);
    memset(&t, 0, sizeof t);
    ck_assert_int_eq(submit(scheduler, &a, &t, &id), AKUNU_OK);
    akunu_scheduler_pause(scheduler, id, true);
    for (int same = 0; same < IDLE_LOOKS; usleep(20000)) {
        ck_assert_int_eq(akunu_scheduler_get_stats(scheduler, &stats, sizeof stats), AKUNU_OK);
        same = stats.n_passes == n_passes ? same + 1 : 0;
        n_passes = stats.n_passes;
    }
    akunu_scheduler_pause(scheduler, id, false);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += LIMIT;
    pthread_mutex_lock(&lock);
    for (int code = 0; !t.ended; code = pthread_cond_timedwait(&changed, &lock, &limit))
        ck_assert_msg(code == 0, "the request sleeps on: %s", strerror(code));
    pthread_mutex_unlock(&lock);
    ck_assert_int_eq(t.status, AKUNU_OK);
    ck_assert_uint_eq(t.n, TOKENS);
    akunu_scheduler_free(scheduler);
}
END_TEST

START_TEST(refusals)
{
    struct akunu_scheduler_params params;
    struct akunu_scheduler_stats stats;
    struct akunu_request request;
    akunu_scheduler_params_default(&params, sizeof params);
    akunu_request_default(&request, sizeof request);
    ck_assert_uint_eq(request.n, 1);
    ck_assert_uint_eq(params.max_waiting, 256);
    ck_assert(params.max_pass_ratio == 4.0);
    ck_assert_ptr_null(akunu_scheduler_new(NULL, NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "the model is NULL");
    struct akunu_model *model = golden_load("qwen2", NULL);
    params.max_pass_ratio = 0.5;
    ck_assert_ptr_null(akunu_scheduler_new(model, NULL, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "max_pass_ratio is 0.5: 1 or more is expected");
    ck_assert_int_ne(akunu_scheduler_submit(NULL, &request, NULL), AKUNU_OK);
    failed_with(AKUNU_ERROR_ARGUMENT, "the scheduler, or the request, is NULL");
    ck_assert_int_ne(akunu_scheduler_get_stats(NULL, &stats, sizeof stats), AKUNU_OK);
    failed_with(AKUNU_ERROR_ARGUMENT, "the scheduler is NULL");
    akunu_scheduler_cancel(NULL, 1);
    akunu_scheduler_pause(NULL, 1, true);
    ck_assert_uint_eq(akunu_scheduler_context(NULL), 0);
    akunu_scheduler_free(NULL);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tests = tcase_create("schedule");
    tcase_set_timeout(tests, 240);
    /* with AKUNU_TEST_FEW=1 a plain model, and one with windows */
    tcase_add_loop_test(tests, as_if_alone, 0, golden_is_few() ? 2 : N_GOLDEN_KINDS);
    tcase_add_test(tests, dropped_tokens);
    tcase_add_test(tests, freed_at_work);
    tcase_add_test(tests, kept_on_disk);
    tcase_add_test(tests, late);
    tcase_add_test(tests, woken);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

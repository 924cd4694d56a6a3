/* Continues several prompts, each as soon as it can: schedule MODEL.gguf "Once upon" "The sea"
 *
 * A scheduler has a thread of its own, which runs all requests in the same passes. A server would
 * submit a request per client, from any thread. */
#include <akunu/akunu.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 64, BYTES_MAX = TOKENS_MAX * 64 };

struct all {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_open;
    bool failed;
};

struct text {
    struct all *all;
    const char *prompt;
    char bytes[BYTES_MAX];
    size_t n_bytes;
};

/* Called by the scheduler's thread. */
static bool on_event(const struct akunu_request_event *event, void *user)
{
    struct text *t = user;
    if (event->kind == AKUNU_REQUEST_TOKEN) {
        size_t left = BYTES_MAX - t->n_bytes, n = event->n_bytes < left ? event->n_bytes : left;
        memcpy(t->bytes + t->n_bytes, event->text, n);
        t->n_bytes += n;
        return true;
    }
    pthread_mutex_lock(&t->all->lock);
    if (event->status == AKUNU_OK)
        printf("%s%.*s\n", t->prompt, (int)t->n_bytes, t->bytes);
    else
        fprintf(stderr, "schedule: %s\n", event->message);
    t->all->failed |= event->status != AKUNU_OK;
    t->all->n_open--;
    pthread_cond_signal(&t->all->changed);
    pthread_mutex_unlock(&t->all->lock);
    return true;
}

static bool submit(struct akunu_scheduler *scheduler, const struct akunu_model *model,
                   struct text *text)
{
    const struct akunu_tokenizer *tokenizer = akunu_model_tokenizer(model);
    struct akunu_request request;
    struct akunu_generation_params generation;
    akunu_request_default(&request, sizeof request);
    akunu_generation_params_default(&generation, sizeof generation);
    generation.max_tokens = TOKENS_MAX;
    size_t n_bytes = strlen(text->prompt);
    int64_t n =
        akunu_tokenizer_encode(tokenizer, text->prompt, n_bytes, AKUNU_ADD_SPECIAL, NULL, 0);
    akunu_token *ids = n >= 0 ? calloc((size_t)n + 1, sizeof *ids) : NULL;
    if (ids)
        akunu_tokenizer_encode(tokenizer, text->prompt, n_bytes, AKUNU_ADD_SPECIAL, ids, (size_t)n);
    request.ids = ids;
    request.n_ids = (size_t)n;
    request.generation = &generation;
    request.on_event = on_event;
    request.user = text;
    bool good = ids && akunu_scheduler_submit(scheduler, &request, NULL) == AKUNU_OK;
    free(ids); /* the request has copies of all */
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: schedule MODEL.gguf PROMPT...\n");
        return 2;
    }
    size_t n = (size_t)argc - 2;
    struct all all = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false };
    struct text *texts = calloc(n, sizeof *texts);
    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    struct akunu_scheduler *scheduler = model ? akunu_scheduler_new(model, NULL, NULL) : NULL;
    bool good = texts && scheduler;
    for (size_t i = 0; good && i < n; i++) {
        texts[i] = (struct text){ .all = &all, .prompt = argv[i + 2] };
        pthread_mutex_lock(&all.lock);
        all.n_open++;
        pthread_mutex_unlock(&all.lock);
        good = submit(scheduler, model, &texts[i]);
    }
    if (!good)
        fprintf(stderr, "schedule: %s\n", akunu_last_error());
    pthread_mutex_lock(&all.lock);
    while (good && all.n_open > 0)
        pthread_cond_wait(&all.changed, &all.lock);
    pthread_mutex_unlock(&all.lock);
    akunu_scheduler_free(scheduler); /* ends what still runs */
    akunu_model_free(model);
    free(texts);
    return good && !all.failed ? 0 : 1;
}

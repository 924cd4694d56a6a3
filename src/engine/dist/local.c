/* Ranks as threads of one process: each message is copied into a queue of its pair of ranks. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "engine/dist/comm.h"

struct letter {
    struct letter *next;
    size_t bytes;
    uint8_t data[];
};

struct queue {
    struct letter *first, **last;
};

/* Shared by the ranks. */
struct post {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    uint32_t n_ranks, n_open;
    double timeout;
    struct queue *queues; /* [from][to] */
    bool *closed;         /* by rank */
};

/* What an exchange still has to receive. */
struct lane {
    struct ak_comm_message *in; /* [n_ranks] */
    uint32_t n;
};

struct local {
    struct ak_comm base;
    struct post *post;
    struct lane lanes[AK_COMM_LANES];
};

static struct queue *queue_of(struct post *p, uint32_t from, uint32_t to)
{
    return &p->queues[(size_t)from * p->n_ranks + to];
}

static struct timespec after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double end = (double)t.tv_nsec * 1e-9 + seconds, whole = (double)(long)end;
    t.tv_sec += (time_t)whole;
    t.tv_nsec = (long)((end - whole) * 1e9);
    return t;
}

/* Waits for the first letter of a queue. NULL: it never comes. The lock is held. timeout 0: waits
 * as long as the sender is there. */
static struct letter *wait_letter(struct post *p, uint32_t from, uint32_t to, double timeout)
{
    struct queue *queue = queue_of(p, from, to);
    struct timespec end = after(timeout);
    int rc = 0;
    while (!queue->first && !p->closed[from] && rc != ETIMEDOUT)
        rc = timeout > 0 ? pthread_cond_timedwait(&p->arrived, &p->lock, &end) :
                           pthread_cond_wait(&p->arrived, &p->lock);
    return queue->first;
}

static ak_status fail_absent(const struct post *p, uint32_t rank, struct ak_error *error)
{
    if (p->closed[rank])
        return ak_fail(error, AKUNU_ERROR_IO, "rank %u has ended", (unsigned)rank);
    return ak_fail(error, AKUNU_ERROR_IO, "rank %u has not answered for %g s", (unsigned)rank,
                   p->timeout);
}

static ak_status send_letter(struct post *p, uint32_t from, const struct ak_comm_message *message,
                             struct ak_error *error)
{
    struct queue *queue = queue_of(p, from, message->rank);
    size_t bytes = ak_comm_message_bytes(message);
    struct letter *letter = ak_alloc(1, sizeof *letter + bytes);
    if (!letter)
        return ak_fail_memory(error, "a message", bytes);
    letter->bytes = bytes;
    for (size_t i = 0; i <= message->more_rows; i++)
        memcpy(letter->data + i * message->bytes,
               (const uint8_t *)message->data + i * message->stride, message->bytes);
    *queue->last = letter;
    queue->last = &letter->next;
    return AKUNU_OK;
}

static ak_status receive_letter(struct post *p, uint32_t to, const struct ak_comm_message *message,
                                struct ak_error *error)
{
    struct queue *queue = queue_of(p, message->rank, to);
    struct letter *letter = wait_letter(p, message->rank, to, p->timeout);
    if (!letter)
        return fail_absent(p, message->rank, error);
    size_t bytes = ak_comm_message_bytes(message);
    if (letter->bytes != bytes)
        return ak_fail(error, AKUNU_ERROR_IO, "rank %u sent %zu bytes; expected %zu",
                       (unsigned)message->rank, letter->bytes, bytes);
    for (size_t i = 0; i <= message->more_rows; i++)
        memcpy((uint8_t *)message->data + i * message->stride, letter->data + i * message->bytes,
               message->bytes);
    queue->first = letter->next;
    if (!queue->first)
        queue->last = &queue->first;
    ak_free(letter);
    return AKUNU_OK;
}

static ak_status local_begin(struct ak_comm *c, enum ak_comm_lane which,
                             const struct ak_comm_message *out, uint32_t n_out,
                             const struct ak_comm_message *in, uint32_t n_in,
                             struct ak_error *error)
{
    struct local *l = (struct local *)c;
    struct lane *lane = &l->lanes[which];
    ak_status status = AKUNU_OK;
    lane->n = n_in;
    for (uint32_t i = 0; i < n_in; i++)
        lane->in[i] = in[i];
    pthread_mutex_lock(&l->post->lock);
    for (uint32_t i = 0; i < n_out && status == AKUNU_OK; i++)
        status = send_letter(l->post, c->rank, &out[i], error);
    pthread_cond_broadcast(&l->post->arrived);
    pthread_mutex_unlock(&l->post->lock);
    return status;
}

static ak_status local_finish(struct ak_comm *c, enum ak_comm_lane which, struct ak_error *error)
{
    struct local *l = (struct local *)c;
    const struct lane *lane = &l->lanes[which];
    ak_status status = AKUNU_OK;
    pthread_mutex_lock(&l->post->lock);
    for (uint32_t i = 0; i < lane->n && status == AKUNU_OK; i++)
        status = receive_letter(l->post, c->rank, &lane->in[i], error);
    pthread_mutex_unlock(&l->post->lock);
    return status;
}

static ak_status await(struct ak_comm *c, size_t *bytes, struct ak_error *error)
{
    struct post *p = ((struct local *)c)->post;
    pthread_mutex_lock(&p->lock);
    const struct letter *letter = wait_letter(p, 0, c->rank, 0);
    ak_status status = letter ? AKUNU_OK : fail_absent(p, 0, error);
    *bytes = letter ? letter->bytes : 0;
    pthread_mutex_unlock(&p->lock);
    return status;
}

static void free_post(struct post *p)
{
    for (size_t i = 0; p->queues && i < (size_t)p->n_ranks * p->n_ranks; i++)
        for (struct letter *letter = p->queues[i].first, *next; letter; letter = next) {
            next = letter->next;
            ak_free(letter);
        }
    pthread_cond_destroy(&p->arrived);
    pthread_mutex_destroy(&p->lock);
    ak_free(p->queues);
    ak_free(p->closed);
    ak_free(p);
}

static void free_local(struct local *l)
{
    for (enum ak_comm_lane i = 0; i < AK_COMM_LANES; i++)
        ak_free(l->lanes[i].in);
    ak_comm_clear(&l->base);
    ak_free(l);
}

static void close_local(struct ak_comm *c)
{
    struct post *p = ((struct local *)c)->post;
    pthread_mutex_lock(&p->lock);
    p->closed[c->rank] = true;
    bool is_last = --p->n_open == 0;
    pthread_cond_broadcast(&p->arrived);
    pthread_mutex_unlock(&p->lock);
    if (is_last)
        free_post(p);
    free_local((struct local *)c);
}

static const struct ak_comm_ops local_ops = {
    .begin = local_begin, .finish = local_finish, .await = await, .close = close_local
};

static struct post *create_post(uint32_t n_ranks, double timeout)
{
    pthread_condattr_t monotonic;
    struct post *p = ak_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->n_ranks = n_ranks;
    p->timeout = timeout;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->arrived, &monotonic);
    pthread_condattr_destroy(&monotonic);
    p->queues = ak_alloc((size_t)n_ranks * n_ranks, sizeof *p->queues);
    p->closed = ak_alloc(n_ranks, sizeof *p->closed);
    if (!p->queues || !p->closed) {
        free_post(p);
        return NULL;
    }
    for (size_t i = 0; i < (size_t)n_ranks * n_ranks; i++)
        p->queues[i].last = &p->queues[i].first;
    return p;
}

static struct local *create_local(uint32_t rank, uint32_t n_ranks, struct ak_error *error)
{
    struct local *l = ak_alloc(1, sizeof *l);
    if (!l || ak_comm_init(&l->base, &local_ops, rank, n_ranks, error) != AKUNU_OK) {
        ak_free(l);
        return NULL;
    }
    for (enum ak_comm_lane i = 0; i < AK_COMM_LANES; i++)
        if (!(l->lanes[i].in = ak_alloc(n_ranks, sizeof *l->lanes[i].in))) {
            free_local(l);
            return NULL;
        }
    return l;
}

ak_status ak_comm_open_local(uint32_t n_ranks, double timeout, struct ak_comm *out[],
                             struct ak_error *error)
{
    struct post *p = create_post(n_ranks, timeout);
    uint32_t n = 0;
    for (struct local *l; p && n < n_ranks; n++) {
        if (!(l = create_local(n, n_ranks, error)))
            break;
        l->post = p;
        out[n] = &l->base;
        p->n_open++;
    }
    if (p && n == n_ranks)
        return AKUNU_OK;
    if (p && n == 0)
        free_post(p);
    while (n > 0)
        ak_comm_close(out[--n]);
    return ak_fail_memory(error, "communicators", n_ranks * sizeof(struct local));
}

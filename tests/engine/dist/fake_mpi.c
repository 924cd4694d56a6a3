/* The functions of Open MPI that mpi.c looks up, for ranks that are threads of one process
 * (AKUNU_MPI names this module). Nothing happens between two calls: a message leaves when its
 * sender calls MPI_Test, and rows are read and written only then, as MPI allows. Messages between
 * two ranks match receives in the order of both. Wrong arguments end the process. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/dist/fake_mpi.h"

enum { SERIALIZED = 2, TAG = 1, RANKS_MAX = 8 };

struct type {
    size_t n, length; /* rows, and bytes of each */
    ptrdiff_t stride;
    bool is_committed;
    struct type *next;
};

struct request {
    bool is_sent, is_done;
    int from, to;
    unsigned char *data;
    struct type type; /* its own: a type may be freed before its requests are done */
    struct request *next;
};

struct letter {
    int from, to;
    size_t n;
    struct letter *next;
    unsigned char bytes[];
};

/* As in Open MPI's mpi.h, versions 3 to 5. */
struct status {
    int source, tag, error, cancelled;
    size_t n_bytes;
};

FAKE_MPI_API struct type ompi_mpi_byte = { 1, 1, 1, true, NULL };
FAKE_MPI_API int ompi_mpi_comm_world, ompi_mpi_errors_return;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct type *types;
static struct request *requests; /* in the order in which they were made, as are the letters */
static struct letter *letters;
static _Thread_local int own_rank, n_ranks;
static _Thread_local const char *failing;

static void check(bool is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "fake_mpi: %s\n", what);
    abort();
}

static bool fails(const char *name)
{
    return failing && strcmp(failing, name) == 0;
}

/* ---- For the test ------------------------------------------------------- */
static void join(int rank, int size)
{
    own_rank = rank;
    n_ranks = size;
}

static void refuse(const char *name)
{
    failing = name;
}

static int reset(void)
{
    int n = 0;
    for (struct type *next; types; types = next, n++) {
        next = types->next;
        free(types);
    }
    for (struct request *next; requests; requests = next, n++) {
        next = requests->next;
        free(requests);
    }
    for (struct letter *next; letters; letters = next, n++) {
        next = letters->next;
        free(letters);
    }
    return n;
}

FAKE_MPI_API void fake_mpi_get(struct fake_mpi *out)
{
    *out = (struct fake_mpi){ join, refuse, reset };
}

/* ---- Starting and ending ------------------------------------------------ */
FAKE_MPI_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    check(!argc && !argv && required == SERIALIZED, "arguments of MPI_Init_thread");
    *provided = fails("provided") ? 0 : SERIALIZED;
    return fails("MPI_Init_thread");
}

FAKE_MPI_API int MPI_Finalize(void)
{
    return 0;
}

FAKE_MPI_API int MPI_Comm_rank(void *comm, int *rank)
{
    check(comm == &ompi_mpi_comm_world, "a communicator");
    *rank = own_rank;
    return 0;
}

FAKE_MPI_API int MPI_Comm_size(void *comm, int *size)
{
    check(comm == &ompi_mpi_comm_world, "a communicator");
    *size = n_ranks;
    return 0;
}

FAKE_MPI_API int MPI_Comm_set_errhandler(void *comm, void *handler)
{
    check(comm == &ompi_mpi_comm_world && handler == &ompi_mpi_errors_return, "an error handler");
    return 0;
}

/* ---- Types -------------------------------------------------------------- */
FAKE_MPI_API int MPI_Type_create_hvector(int n, int length, ptrdiff_t stride, struct type *of,
                                         struct type **out)
{
    check(of == &ompi_mpi_byte && n > 0 && length > 0, "rows of a type");
    if (fails("MPI_Type_create_hvector"))
        return 1;
    struct type *t = malloc(sizeof *t);
    check(t != NULL, "memory");
    pthread_mutex_lock(&lock);
    *t = (struct type){ (size_t)n, (size_t)length, stride, false, types };
    types = *out = t;
    pthread_mutex_unlock(&lock);
    return 0;
}

FAKE_MPI_API int MPI_Type_commit(struct type **type)
{
    (*type)->is_committed = true;
    return fails("MPI_Type_commit");
}

FAKE_MPI_API int MPI_Type_free(struct type **type)
{
    pthread_mutex_lock(&lock);
    struct type **at = &types;
    while (*at && *at != *type)
        at = &(*at)->next;
    check(*at != NULL, "a type that is freed");
    *at = (*at)->next;
    pthread_mutex_unlock(&lock);
    free(*type);
    *type = NULL;
    return 0;
}

/* ---- Messages ----------------------------------------------------------- */
static int start(struct request r, const struct type *type, int n, struct request **out)
{
    int other = r.is_sent ? r.to : r.from;
    check(other >= 0 && other < n_ranks && other != own_rank, "another rank");
    check(type->is_committed && n >= 0 && (n == 1 || type == &ompi_mpi_byte), "a type");
    r.type = *type;
    if (type == &ompi_mpi_byte)
        r.type.length = (size_t)n;
    struct request *made = malloc(sizeof *made), **at = &requests;
    check(made != NULL, "memory");
    *made = r;
    pthread_mutex_lock(&lock);
    while (*at)
        at = &(*at)->next;
    *at = *out = made;
    pthread_mutex_unlock(&lock);
    return 0;
}

FAKE_MPI_API int MPI_Isend(const void *data, int n, struct type *type, int to, int tag, void *comm,
                           struct request **out)
{
    check(tag == TAG && comm == &ompi_mpi_comm_world, "arguments of MPI_Isend");
    struct request r = { .is_sent = true, .from = own_rank, .to = to };
    r.data = (unsigned char *)(uintptr_t)data;
    return fails("MPI_Isend") ? 1 : start(r, type, n, out);
}

FAKE_MPI_API int MPI_Irecv(void *data, int n, struct type *type, int from, int tag, void *comm,
                           struct request **out)
{
    check(tag == TAG && comm == &ompi_mpi_comm_world, "arguments of MPI_Irecv");
    struct request r = { .from = from, .to = own_rank, .data = data };
    return fails("MPI_Irecv") ? 1 : start(r, type, n, out);
}

static void send_rows(struct request *r)
{
    const struct type *t = &r->type;
    struct letter *letter = malloc(sizeof *letter + t->n * t->length), **at = &letters;
    check(letter != NULL, "memory");
    letter->from = r->from;
    letter->to = r->to;
    letter->n = t->n * t->length;
    letter->next = NULL;
    for (size_t i = 0; i < t->n && t->length > 0; i++)
        memcpy(letter->bytes + i * t->length, r->data + (ptrdiff_t)i * t->stride, t->length);
    while (*at)
        at = &(*at)->next;
    *at = letter;
    r->is_done = true;
}

/* The first message from one rank to another. */
static struct letter **find(int from, int to)
{
    struct letter **at = &letters;
    while (*at && ((*at)->from != from || (*at)->to != to))
        at = &(*at)->next;
    return at;
}

static void receive_rows(struct request *r)
{
    const struct type *t = &r->type;
    struct letter **at = find(r->from, r->to), *letter = *at;
    if (!letter)
        return;
    check(letter->n == t->n * t->length, "a message of another size");
    for (size_t i = 0; i < t->n && t->length > 0; i++)
        memcpy(r->data + (ptrdiff_t)i * t->stride, letter->bytes + i * t->length, t->length);
    *at = letter->next;
    free(letter);
    r->is_done = true;
}

/* Goes on with all requests of this rank, as each call of Open MPI does. The lock is held. */
static void go_on(void)
{
    for (struct request *r = requests; r; r = r->next)
        if (!r->is_done && r->is_sent && r->from == own_rank)
            send_rows(r);
        else if (!r->is_done && !r->is_sent && r->to == own_rank)
            receive_rows(r);
}

FAKE_MPI_API int MPI_Test(struct request **request, int *done, struct status *status)
{
    check(*request && !status, "arguments of MPI_Test");
    if (fails("MPI_Test"))
        return 1;
    pthread_mutex_lock(&lock);
    go_on();
    *done = (*request)->is_done;
    struct request **at = &requests;
    while (*done && *at != *request)
        at = &(*at)->next;
    if (*done) {
        *at = (*at)->next;
        free(*request);
        *request = NULL;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

FAKE_MPI_API int MPI_Iprobe(int from, int tag, void *comm, int *found, struct status *status)
{
    check(from == 0 && tag == TAG && comm == &ompi_mpi_comm_world, "arguments of MPI_Iprobe");
    if (fails("MPI_Iprobe"))
        return 1;
    pthread_mutex_lock(&lock);
    go_on();
    const struct letter *letter = *find(from, own_rank);
    *found = letter != NULL;
    status->n_bytes = letter ? letter->n : 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

FAKE_MPI_API int MPI_Get_count(const struct status *status, const struct type *type, int *n)
{
    check(type == &ompi_mpi_byte, "a type of MPI_Get_count");
    *n = (int)status->n_bytes;
    return fails("MPI_Get_count");
}

/* Loads Open MPI at run time and exchanges messages through it. Nothing links against it, so the
 * library runs without it, and a process that mpirun has not started never loads it.
 *
 * Waiting is polling, so that a rank that no longer answers is noticed. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system.h"
#include "base/utf8.h"
#include "engine/dist/watch.h"

/* Declared here as in Open MPI's mpi.h, versions 3 to 5, so that the build needs no header. */
enum { SERIALIZED = 2, SUCCESS = 0, TAG = 1, MESSAGE_BYTES_MAX = 1 << 30 };
typedef struct ompi_communicator_t *mpi_comm;
typedef struct ompi_datatype_t *mpi_type;
typedef struct ompi_request_t *mpi_request;
typedef struct ompi_errhandler_t *mpi_errhandler;
struct mpi_status {
    int source, tag, error, cancelled;
    size_t n_bytes;
};

struct functions {
    int (*init_thread)(int *argc, char ***argv, int required, int *provided);
    int (*finalize)(void);
    int (*comm_rank)(mpi_comm comm, int *rank);
    int (*comm_size)(mpi_comm comm, int *size);
    int (*comm_set_errhandler)(mpi_comm comm, mpi_errhandler handler);
    int (*isend)(const void *data, int n, mpi_type type, int to, int tag, mpi_comm comm,
                 mpi_request *request);
    int (*irecv)(void *data, int n, mpi_type type, int from, int tag, mpi_comm comm,
                 mpi_request *request);
    int (*test)(mpi_request *request, int *done, struct mpi_status *status);
    int (*iprobe)(int from, int tag, mpi_comm comm, int *found, struct mpi_status *status);
    int (*get_count)(const struct mpi_status *status, mpi_type type, int *n);
    int (*type_create_hvector)(int n, int length, ptrdiff_t stride, mpi_type type, mpi_type *out);
    int (*type_commit)(mpi_type *type);
    int (*type_free)(mpi_type *type);
    mpi_comm world;
    mpi_type byte;
    mpi_errhandler errors_return;
};

/* Requests of an exchange, of which the first n_done are done. */
struct lane {
    mpi_request *requests; /* [2 · n_ranks] */
    uint32_t *peers;       /* [2 · n_ranks]: whom each request waits for */
    uint32_t n, n_done;
};

struct mpi {
    struct ak_comm base;
    struct functions f;
    double timeout;
    struct ak_watch *watch; /* NULL: a rank that is silent in an exchange counts as failed */
    struct lane lanes[AK_COMM_LANES];
};

/* ---- Loading ------------------------------------------------------------ */
/* Finds all functions and handles; returns the name of the first missing one, or NULL. */
static const char *find_all(void *library, struct functions *f)
{
    const struct {
        const char *name;
        void *to;
    } symbols[] = {
        { "MPI_Init_thread", &f->init_thread },
        { "MPI_Finalize", &f->finalize },
        { "MPI_Comm_rank", &f->comm_rank },
        { "MPI_Comm_size", &f->comm_size },
        { "MPI_Comm_set_errhandler", &f->comm_set_errhandler },
        { "MPI_Isend", &f->isend },
        { "MPI_Irecv", &f->irecv },
        { "MPI_Test", &f->test },
        { "MPI_Iprobe", &f->iprobe },
        { "MPI_Get_count", &f->get_count },
        { "MPI_Type_create_hvector", &f->type_create_hvector },
        { "MPI_Type_commit", &f->type_commit },
        { "MPI_Type_free", &f->type_free },
        { "ompi_mpi_comm_world", &f->world },
        { "ompi_mpi_byte", &f->byte },
        { "ompi_mpi_errors_return", &f->errors_return },
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return symbols[i].name;
        *(void **)symbols[i].to = found; /* POSIX allows it for functions too */
    }
    return NULL;
}

static ak_status load_functions(struct functions *f, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const char *name = ak_env("AKUNU_MPI");
    name = name ? name : "libmpi.so.40";
    void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL); /* its plugins look for it */
    if (!library)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "mpirun has started %u ranks, and %s cannot be loaded (apt-get install "
                       "openmpi-bin)",
                       (unsigned)ak_comm_count_mpi_ranks(NULL), ak_show_path(name, shown));
    const char *missing = find_all(library, f);
    if (missing)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s is not Open MPI: it lacks %s",
                       ak_show_path(name, shown), missing);
    return AKUNU_OK;
}

/* A number that mpirun has set; `fallback` without mpirun. */
static uint32_t read_variable(const char *name, uint32_t fallback)
{
    const char *text = ak_env(name);
    unsigned long n = text ? strtoul(text, NULL, 10) : fallback;
    return n < UINT32_MAX ? (uint32_t)n : fallback;
}

uint32_t ak_comm_count_mpi_ranks(uint32_t *rank)
{
    if (rank)
        *rank = read_variable("OMPI_COMM_WORLD_RANK", 0);
    uint32_t n = read_variable("OMPI_COMM_WORLD_SIZE", 1);
    return n > 0 ? n : 1;
}

uint32_t ak_comm_count_mpi_neighbors(uint32_t *index)
{
    uint32_t n = read_variable("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
    *index = read_variable("OMPI_COMM_WORLD_LOCAL_RANK", 0);
    return n > 0 ? n : 1;
}

/* ---- Messages ----------------------------------------------------------- */
static ak_status fail_call(const struct mpi *m, uint32_t rank, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_IO, "rank %u (%s): the connection is broken", (unsigned)rank,
                   ak_comm_host(&m->base, rank));
}

static ak_status fail_silent(const struct mpi *m, uint32_t rank, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_IO, "rank %u (%s) has not answered for %g s", (unsigned)rank,
                   ak_comm_host(&m->base, rank), m->timeout);
}

/* Whether it makes sense to wait for a rank, after `waited` seconds. */
static ak_status check_others(struct mpi *m, uint32_t rank, double waited, struct ak_error *error)
{
    if (m->watch)
        return ak_watch_has_failed(m->watch, error) ? AKUNU_ERROR_IO : AKUNU_OK;
    return waited > m->timeout ? fail_silent(m, rank, error) : AKUNU_OK;
}

static const double BUSY_SECONDS = 0.002;

/* Polls often at first, since what is waited for mostly comes soon, then less and less often. */
static void rest(double waited)
{
    const double longest = 0.005;
    double seconds = waited * 0.01 < longest ? waited * 0.01 : longest;
    struct timespec t = { .tv_nsec = (long)(seconds * 1e9) };
    if (waited < BUSY_SECONDS)
        sched_yield();
    else
        nanosleep(&t, NULL);
}

enum { SPINS = 256 };

/* Whether the next request is done. Any test lets Open MPI go on with all requests. */
static ak_status test_next(const struct mpi *m, struct lane *lane, bool *done,
                           struct ak_error *error)
{
    int is_done = 0;
    if (m->f.test(&lane->requests[lane->n_done], &is_done, NULL) != SUCCESS)
        return fail_call(m, lane->peers[lane->n_done], error);
    lane->n_done += is_done ? 1 : 0;
    *done = is_done;
    return AKUNU_OK;
}

static ak_status mpi_finish(struct ak_comm *c, enum ak_comm_lane which, struct ak_error *error)
{
    struct mpi *m = (struct mpi *)c;
    struct lane *lane = &m->lanes[which];
    double started = 0.0, waited = 0.0;
    uint32_t spins = 0;
    bool done = false;
    while (lane->n_done < lane->n) {
        AK_TRY(test_next(m, lane, &done, error));
        if (done || (++spins % SPINS != 0 && waited < BUSY_SECONDS))
            continue;
        started = started > 0.0 ? started : ak_seconds();
        waited = ak_seconds() - started;
        AK_TRY(check_others(m, lane->peers[lane->n_done], waited, error));
        rest(waited);
    }
    return AKUNU_OK;
}

static ak_status progress(struct ak_comm *c, struct ak_error *error)
{
    struct mpi *m = (struct mpi *)c;
    for (enum ak_comm_lane i = 0; i < AK_COMM_LANES; i++) {
        bool done = true;
        while (done && m->lanes[i].n_done < m->lanes[i].n)
            AK_TRY(test_next(m, &m->lanes[i], &done, error));
    }
    return AKUNU_OK;
}

static ak_status check_size(const struct ak_comm_message *message, struct ak_error *error)
{
    size_t bytes = ak_comm_message_bytes(message);
    if (bytes <= MESSAGE_BYTES_MAX)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "a message of %zu bytes to or from rank %u; at most %d are supported", bytes,
                   (unsigned)message->rank, (int)MESSAGE_BYTES_MAX);
}

typedef int start_fn(const struct functions *f, const struct ak_comm_message *message, int n,
                     mpi_type type, mpi_request *request);

static int start_receiving(const struct functions *f, const struct ak_comm_message *message, int n,
                           mpi_type type, mpi_request *request)
{
    return f->irecv(message->data, n, type, (int)message->rank, TAG, f->world, request);
}

static int start_sending(const struct functions *f, const struct ak_comm_message *message, int n,
                         mpi_type type, mpi_request *request)
{
    return f->isend(message->data, n, type, (int)message->rank, TAG, f->world, request);
}

/* Open MPI gathers and scatters rows itself, piece by piece as it sends and receives. A type may be
 * freed while a request still uses it. */
static bool start_rows(const struct functions *f, const struct ak_comm_message *message,
                       start_fn *start, mpi_request *request)
{
    mpi_type rows;
    if (message->more_rows == 0 || message->stride == message->bytes)
        return start(f, message, (int)ak_comm_message_bytes(message), f->byte, request) == SUCCESS;
    if (f->type_create_hvector((int)message->more_rows + 1, (int)message->bytes,
                               (ptrdiff_t)message->stride, f->byte, &rows) != SUCCESS)
        return false;
    bool ok = f->type_commit(&rows) == SUCCESS && start(f, message, 1, rows, request) == SUCCESS;
    f->type_free(&rows);
    return ok;
}

static ak_status start_all(const struct mpi *m, struct lane *lane,
                           const struct ak_comm_message *messages, uint32_t n, start_fn *start,
                           struct ak_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        AK_TRY(check_size(&messages[i], error));
        lane->peers[lane->n] = messages[i].rank;
        if (!start_rows(&m->f, &messages[i], start, &lane->requests[lane->n++]))
            return fail_call(m, messages[i].rank, error);
    }
    return AKUNU_OK;
}

static ak_status mpi_begin(struct ak_comm *c, enum ak_comm_lane which,
                           const struct ak_comm_message *out, uint32_t n_out,
                           const struct ak_comm_message *in, uint32_t n_in, struct ak_error *error)
{
    struct mpi *m = (struct mpi *)c;
    struct lane *lane = &m->lanes[which];
    lane->n = lane->n_done = 0;
    AK_TRY(start_all(m, lane, in, n_in, start_receiving, error));
    return start_all(m, lane, out, n_out, start_sending, error);
}

static ak_status await(struct ak_comm *c, size_t *bytes, struct ak_error *error)
{
    struct mpi *m = (struct mpi *)c;
    struct mpi_status status;
    double started = ak_seconds();
    int found = 0, n = 0;
    for (;;) {
        if (m->f.iprobe(0, TAG, m->f.world, &found, &status) != SUCCESS)
            return fail_call(m, 0, error);
        if (found)
            break;
        if (m->watch && ak_watch_has_failed(m->watch, error))
            return AKUNU_ERROR_IO;
        rest(ak_seconds() - started);
    }
    if (m->f.get_count(&status, m->f.byte, &n) != SUCCESS || n < 0)
        return fail_call(m, 0, error);
    *bytes = (size_t)n;
    return AKUNU_OK;
}

/* ---- Opening ------------------------------------------------------------ */
static void free_mpi(struct mpi *m)
{
    for (enum ak_comm_lane i = 0; i < AK_COMM_LANES; i++) {
        ak_free(m->lanes[i].requests);
        ak_free(m->lanes[i].peers);
    }
    ak_comm_clear(&m->base);
    ak_free(m);
}

/* After a failure the others may be gone, and would be waited for. */
static void close_mpi(struct ak_comm *c)
{
    struct mpi *m = (struct mpi *)c;
    for (enum ak_comm_lane i = 0; i < AK_COMM_LANES; i++)
        (void)ak_comm_finish(c, i, NULL);
    ak_watch_free(m->watch);
    if (c->failure.status == AKUNU_OK)
        m->f.finalize();
    free_mpi(m);
}

static bool has_failed(struct ak_comm *c, struct ak_error *error)
{
    struct mpi *m = (struct mpi *)c;
    return m->watch && ak_watch_has_failed(m->watch, error);
}

static const struct ak_comm_ops mpi_ops = { .begin = mpi_begin,
                                            .finish = mpi_finish,
                                            .progress = progress,
                                            .await = await,
                                            .has_failed = has_failed,
                                            .close = close_mpi };

/* Connects the watch. It is an extra: if one rank cannot, all go without. */
static ak_status open_watch(struct mpi *m, struct ak_error *error)
{
    struct ak_comm *c = &m->base;
    struct ak_watch_address address = { 0 };
    uint32_t index;
    bool is_local = ak_comm_count_mpi_neighbors(&index) == c->n_ranks;
    if (c->rank == 0)
        (void)ak_watch_listen(is_local, &m->watch, &address, NULL);
    AK_TRY(ak_comm_broadcast(c, &address, sizeof address, error));
    if (c->rank > 0 && address.n > 0)
        (void)ak_watch_connect(c, &address, &m->watch, NULL);
    bool runs = m->watch && ak_watch_start(m->watch, c, m->timeout, NULL) == AKUNU_OK;
    uint8_t *all = ak_alloc(c->n_ranks, 1);
    if (!all)
        return ak_fail_memory(error, "a communicator", c->n_ranks);
    all[c->rank] = runs;
    ak_status status = ak_comm_all_gather_items(c, all, 1, error);
    for (uint32_t i = 0; i < c->n_ranks; i++)
        runs = runs && all[i];
    ak_free(all);
    if (runs)
        return status;
    ak_watch_free(m->watch);
    m->watch = NULL;
    return status;
}

/* Tells everyone the name of this host, for messages. */
static ak_status exchange_hosts(struct ak_comm *c, struct ak_error *error)
{
    if (gethostname(c->hosts[c->rank], AK_COMM_HOST_BYTES - 1) != 0)
        c->hosts[c->rank][0] = '\0';
    ak_status status = ak_comm_all_gather_items(c, c->hosts, sizeof *c->hosts, error);
    for (uint32_t i = 0; i < c->n_ranks; i++)
        c->hosts[i][AK_COMM_HOST_BYTES - 1] = '\0';
    return status;
}

/* Open MPI's threads get no signals: these are for the host. */
static ak_status init(struct mpi *m, struct ak_error *error)
{
    int provided = 0;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = m->f.init_thread(NULL, NULL, SERIALIZED, &provided);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == SUCCESS && provided >= SERIALIZED)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_SYSTEM, "Open MPI cannot be started");
}

static ak_status open_mpi(struct mpi *m, struct ak_error *error)
{
    int rank = 0, size = 0;
    AK_TRY(load_functions(&m->f, error));
    AK_TRY(init(m, error));
    m->f.comm_set_errhandler(m->f.world, m->f.errors_return);
    m->f.comm_rank(m->f.world, &rank);
    m->f.comm_size(m->f.world, &size);
    if (size < 1 || size > AK_COMM_RANKS_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%d ranks; expected at most %d", size,
                       (int)AK_COMM_RANKS_MAX);
    AK_TRY(ak_comm_init(&m->base, &mpi_ops, (uint32_t)rank, (uint32_t)size, error));
    for (enum ak_comm_lane i = 0; i < AK_COMM_LANES; i++) {
        struct lane *lane = &m->lanes[i];
        lane->requests = ak_alloc(2 * (size_t)size, sizeof *lane->requests);
        lane->peers = ak_alloc(2 * (size_t)size, sizeof *lane->peers);
        if (!lane->requests || !lane->peers)
            return ak_fail_memory(error, "a communicator", 0);
    }
    AK_TRY(exchange_hosts(&m->base, error));
    return open_watch(m, error);
}

ak_status ak_comm_open_mpi(double timeout, struct ak_comm **out, struct ak_error *error)
{
    struct mpi *m = ak_alloc(1, sizeof *m);
    if (!m)
        return ak_fail_memory(error, "a communicator", sizeof *m);
    m->timeout = timeout;
    ak_status status = open_mpi(m, error);
    if (status != AKUNU_OK) {
        ak_watch_free(m->watch);
        free_mpi(m);
        return status;
    }
    *out = &m->base;
    return AKUNU_OK;
}

/* Messages between ranks, by both communicators: threads of this process, and Open MPI, here a fake
 * one whose ranks are threads too. The same rows arrive by both. The watch is tested alone. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/system.h"
#include "engine/dist/watch.h"
#include "tests/engine/dist/fake_mpi.h"
#include "tests/locks.h"
#include "tests/out_of_memory.h"
#include "tests/process.h"
#include "tests/test.h"

enum { RANKS = 3 };
enum transport { LOCAL, MPI };

static struct fake_mpi fake(void)
{
    static struct fake_mpi fake;
    if (!fake.join) {
        void (*get)(struct fake_mpi *);
        void *module = dlopen(AK_FAKE_MPI, RTLD_NOW | RTLD_LOCAL);
        ck_assert_msg(module != NULL, "%s", dlerror());
        *(void **)&get = dlsym(module, "fake_mpi_get");
        ck_assert_ptr_nonnull(get);
        get(&fake);
    }
    return fake;
}

static void nap(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&t, NULL);
}

static void fine(ak_status status, const struct ak_error *error)
{
    ck_assert_msg(status == AKUNU_OK, "%s", error->message);
}

static void failed(ak_status status, const struct ak_error *error, ak_status expected,
                   const char *message)
{
    ck_assert_msg(status == expected && error->status == expected &&
                      strcmp(error->message, message) == 0,
                  "status %d: '%s', expected '%s'", (int)status, error->message, message);
}

/* ---- Addresses that nobody answers at ----------------------------------- */
static atomic_bool are_silent;      /* no connection to an address comes about */
static atomic_long milliseconds[2]; /* that were waited for one: the longest time, and the sum */

int __real_connect(int fd, const struct sockaddr *to, socklen_t n);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t n);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t n)
{
    if (!are_silent)
        return __real_connect(fd, to, n);
    errno = EINPROGRESS;
    return -1;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    if (!are_silent || fds->events != POLLOUT)
        return __real_poll(fds, n, timeout);
    milliseconds[0] = timeout > milliseconds[0] ? timeout : milliseconds[0];
    milliseconds[1] += timeout;
    return 0;
}

/* ---- Ranks as threads --------------------------------------------------- */
struct rank {
    enum transport transport;
    uint32_t rank, n;
    double timeout;
    void (*run)(struct ak_comm *c);
    struct ak_comm *comm;
    pthread_t thread;
};

static void *run_rank(void *context)
{
    struct rank *r = context;
    struct ak_error error = { 0 };
    if (r->transport == MPI) {
        fake().join((int)r->rank, (int)r->n);
        fine(ak_comm_open_mpi(r->timeout, &r->comm, &error), &error);
    }
    ck_assert_uint_eq(r->comm->rank, r->rank);
    ck_assert_uint_eq(r->comm->n_ranks, r->n);
    r->run(r->comm);
    ak_comm_close(r->comm);
    return NULL;
}

/* Runs a function on all ranks, and looks for what they left open. */
static void on_ranks(enum transport transport, uint32_t n, double timeout,
                     void (*run)(struct ak_comm *c))
{
    struct rank ranks[RANKS];
    struct ak_comm *comms[RANKS] = { NULL };
    struct ak_error error = { 0 };
    (void)fake();
    size_t n_files = test_count_open();
    if (transport == LOCAL)
        fine(ak_comm_open_local(n, timeout, comms, &error), &error);
    for (uint32_t i = 0; i < n; i++) {
        ranks[i] = (struct rank){ transport, i, n, timeout, run, comms[i], 0 };
        ck_assert_int_eq(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    ck_assert_uint_eq(test_count_open(), n_files);
}

/* ---- Messages ----------------------------------------------------------- */
/* Rows of STRIDE bytes, of which each rank has a part; the last bytes of a row are nobody's. */
enum { ROWS = 4, STRIDE = 12 };
static const size_t begins[RANKS + 1] = { 0, 3, 3, 10 }; /* rank 1 has no part */

/* What is at byte `at` of a row, in the `salt`th exchange. */
static uint8_t byte_of(uint32_t salt, size_t row, size_t at)
{
    return (uint8_t)(1 + 37 * salt + 16 * row + at);
}

static void fill_part(uint8_t *data, uint32_t salt, uint32_t rank)
{
    memset(data, 0, ROWS * STRIDE);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = begins[rank]; i < begins[rank + 1]; i++)
            data[row * STRIDE + i] = byte_of(salt, row, i);
}

static void check_rows(const uint8_t *data, uint32_t salt, size_t n_rows)
{
    for (size_t row = 0; row < n_rows; row++)
        for (size_t i = 0; i < STRIDE; i++)
            ck_assert_uint_eq(data[row * STRIDE + i],
                              i < begins[RANKS] ? byte_of(salt, row, i) : 0);
}

static unsigned long long n_sent(const struct ak_comm *c)
{
    return atomic_load(&c->counts.bytes_sent);
}

/* Two lanes at the same time: the first is waited for and used again, then the second is used again
 * before its end was waited for. */
static void gather_in_lanes(struct ak_comm *c)
{
    static const enum ak_comm_lane lanes[] = { AK_COMM_LATER, AK_COMM_LATER_TOO, AK_COMM_LATER,
                                               AK_COMM_LATER_TOO, AK_COMM_NOW };
    enum { N = sizeof lanes / sizeof *lanes };
    uint8_t data[N][ROWS * STRIDE];
    struct ak_error error = { 0 };
    unsigned long long before = n_sent(c);
    for (uint32_t i = 0; i < N; i++) {
        struct ak_comm_rows rows = { data[i], ROWS, STRIDE, begins };
        fill_part(data[i], i, c->rank);
        fine(ak_comm_all_gather(c, lanes[i], &rows, &error), &error);
        ck_assert(c->is_under_way[lanes[i]] == (lanes[i] != AK_COMM_NOW));
        ak_comm_progress(c);
        if (i == 1 || i == 3) {
            fine(ak_comm_finish(c, AK_COMM_LATER, &error), &error);
            check_rows(data[i - 1], i - 1, ROWS);
        }
        if (i == 3)
            fine(ak_comm_finish(c, AK_COMM_LATER_TOO, &error), &error);
    }
    for (uint32_t i = 0; i < N; i++)
        check_rows(data[i], i, ROWS);
    size_t own = begins[c->rank + 1] - begins[c->rank];
    ck_assert_uint_eq(n_sent(c) - before, N * ROWS * own * (RANKS - 1));
}

/* Rows that follow each other without a gap, of one rank alone, and no rows. */
static void gather_few(struct ak_comm *c)
{
    static const size_t last_has_all[RANKS + 1] = { 0, 0, 0, STRIDE };
    uint8_t data[ROWS * STRIDE] = { 0 };
    struct ak_error error = { 0 };
    struct ak_comm_rows rows = { data, ROWS, STRIDE, last_has_all };
    for (size_t i = 0; c->rank == RANKS - 1 && i < sizeof data; i++)
        data[i] = byte_of(5, 0, i);
    fine(ak_comm_all_gather(c, AK_COMM_NOW, &rows, &error), &error);
    for (size_t i = 0; i < sizeof data; i++)
        ck_assert_uint_eq(data[i], byte_of(5, 0, i));
    unsigned long long before = n_sent(c);
    rows = (struct ak_comm_rows){ data, 0, STRIDE, begins };
    fine(ak_comm_all_gather(c, AK_COMM_NOW, &rows, &error), &error);
    ck_assert_uint_eq(n_sent(c), before);
}

static void gather_items(struct ak_comm *c)
{
    uint32_t items[RANKS] = { 0 };
    struct ak_error error = { 0 };
    items[c->rank] = 100 + c->rank;
    fine(ak_comm_all_gather_items(c, items, sizeof *items, &error), &error);
    for (uint32_t i = 0; i < RANKS; i++)
        ck_assert_uint_eq(items[i], 100 + i);
}

/* Rank 0 gets all parts; the data of the others is their own part. */
static void collect(struct ak_comm *c)
{
    uint8_t whole[ROWS * STRIDE], before[ROWS * STRIDE];
    struct ak_error error = { 0 };
    fill_part(whole, 6, c->rank);
    memcpy(before, whole, sizeof whole);
    struct ak_comm_rows rows = { c->rank == 0 ? whole : whole + begins[c->rank], ROWS, STRIDE,
                                 begins };
    fine(ak_comm_collect(c, &rows, &error), &error);
    if (c->rank == 0)
        check_rows(whole, 6, ROWS);
    else
        ck_assert_mem_eq(whole, before, sizeof whole);
}

/* Rank 0 sends two messages of any size, of which the others learn the sizes. */
static void await_messages(struct ak_comm *c)
{
    uint8_t data[STRIDE] = { 0 };
    struct ak_error error = { 0 };
    for (size_t bytes = 5; bytes <= STRIDE; bytes += 7) {
        size_t n = bytes;
        if (c->rank > 0)
            fine(ak_comm_await(c, &n, &error), &error);
        ck_assert_uint_eq(n, bytes);
        for (size_t i = 0; i < n; i++)
            data[i] = c->rank > 0 ? 0 : byte_of(7, bytes, i);
        fine(ak_comm_broadcast(c, data, n, &error), &error);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(data[i], byte_of(7, bytes, i));
    }
}

static void exchange_all(struct ak_comm *c)
{
    double started = ak_seconds(), before = (double)atomic_load(&c->counts.nanoseconds);
    gather_items(c);
    gather_in_lanes(c);
    gather_few(c);
    collect(c);
    await_messages(c);
    gather_items(c);
    double waited = ((double)atomic_load(&c->counts.nanoseconds) - before) * 1e-9;
    ck_assert(waited > 0.0 && waited <= ak_seconds() - started);
    ck_assert_int_eq(c->failure.status, AKUNU_OK);
    ck_assert(!c->ops->has_failed || !c->ops->has_failed(c, NULL));
}

START_TEST(all_messages)
{
    on_ranks((enum transport)_i, RANKS, 60.0, exchange_all);
    ck_assert_int_eq(fake().reset(), 0);
}
END_TEST

/* ---- What goes wrong between threads ------------------------------------ */
static ak_status receive(struct ak_comm *c, uint32_t from, void *data, size_t bytes,
                         struct ak_error *error)
{
    struct ak_comm_message in = { from, data, bytes, 0, 0 };
    return ak_comm_exchange(c, NULL, 0, &in, 1, error);
}

/* The first failure stays, and what nobody received is freed. */
START_TEST(local_failures)
{
    struct ak_comm *c[RANKS];
    struct ak_error error = { 0 };
    uint64_t data = 7;
    for (int i = 0; i < 3; i++) {
        static const char *const messages[] = { "rank 1 sent 4 bytes; expected 8",
                                                "rank 1 has ended",
                                                "rank 1 has not answered for 0.05 s" };
        fine(ak_comm_open_local(RANKS, i == 2 ? 0.05 : 60.0, c, &error), &error);
        struct ak_comm_message out = { 0, &data, 4, 0, 0 };
        if (i == 0)
            fine(ak_comm_exchange(c[1], &out, 1, NULL, 0, &error), &error);
        out.rank = 1;
        fine(ak_comm_exchange(c[2], &out, 1, NULL, 0, &error), &error);
        if (i == 1)
            ak_comm_close(c[1]);
        failed(receive(c[0], 1, &data, sizeof data, &error), &error, AKUNU_ERROR_IO, messages[i]);
        error = (struct ak_error){ 0 };
        failed(receive(c[0], 2, &data, sizeof data, &error), &error, AKUNU_ERROR_IO, messages[i]);
        ck_assert_str_eq(ak_comm_host(c[0], 1), "this process");
        ak_comm_close(c[0]);
        if (i != 1)
            ak_comm_close(c[1]);
        ak_comm_close(c[2]);
    }
}
END_TEST

/* ---- What goes wrong with Open MPI -------------------------------------- */
START_TEST(mpi_is_missing)
{
    struct ak_comm *c;
    struct ak_error error = { 0 };
    ck_assert_int_eq(setenv("AKUNU_MPI", "/nowhere", 1), 0);
    failed(ak_comm_open_mpi(1.0, &c, &error), &error, AKUNU_ERROR_UNSUPPORTED,
           "mpirun has started 2 ranks, and /nowhere cannot be loaded (apt-get install "
           "openmpi-bin)");
    ck_assert_int_eq(setenv("AKUNU_MPI", "libm.so.6", 1), 0);
    failed(ak_comm_open_mpi(1.0, &c, &error), &error, AKUNU_ERROR_UNSUPPORTED,
           "libm.so.6 is not Open MPI: it lacks MPI_Init_thread");
    ck_assert_int_eq(setenv("AKUNU_MPI", AK_FAKE_MPI, 1), 0);
    static const struct {
        const char *fails;
        int size;
        ak_status status;
        const char *message;
    } cases[] = {
        { "MPI_Init_thread", 1, AKUNU_ERROR_SYSTEM, "Open MPI cannot be started" },
        { "provided", 1, AKUNU_ERROR_SYSTEM, "Open MPI cannot be started" },
        { NULL, 0, AKUNU_ERROR_UNSUPPORTED, "0 ranks; expected at most 1024" },
        { NULL, 1025, AKUNU_ERROR_UNSUPPORTED, "1025 ranks; expected at most 1024" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake().refuse(cases[i].fails);
        fake().join(0, cases[i].size);
        failed(ak_comm_open_mpi(1.0, &c, &error), &error, cases[i].status, cases[i].message);
        ck_assert_int_eq(fake().reset(), 0);
    }
    fake().refuse(NULL);
}
END_TEST

/* Rank 0 fails in one function, and says which rank it no longer reaches. */
static const char *failing_function;

static void fail_to_gather(struct ak_comm *c)
{
    uint8_t data[ROWS * STRIDE] = { 0 };
    struct ak_comm_rows rows = { data, ROWS, STRIDE, begins };
    struct ak_error error = { 0 };
    char expected[256];
    uint32_t other = strcmp(failing_function, "MPI_Isend") == 0 ? 1 : 2; /* it receives first */
    if (c->rank > 0)
        return;
    snprintf(expected, sizeof expected, "rank %u (%s): the connection is broken", (unsigned)other,
             ak_comm_host(c, other));
    fake().refuse(failing_function);
    failed(ak_comm_all_gather(c, AK_COMM_NOW, &rows, &error), &error, AKUNU_ERROR_IO, expected);
}

/* The other ranks fail as they wait for rank 0. */
static void fail_to_await(struct ak_comm *c)
{
    struct ak_error error = { 0 };
    char expected[256];
    size_t n;
    uint8_t data[5] = { 0 };
    snprintf(expected, sizeof expected, "rank 0 (%s): the connection is broken",
             ak_comm_host(c, 0));
    if (c->rank == 0) {
        fine(ak_comm_broadcast(c, data, sizeof data, &error), &error);
        return;
    }
    fake().refuse(failing_function);
    failed(ak_comm_await(c, &n, &error), &error, AKUNU_ERROR_IO, expected);
}

START_TEST(mpi_fails)
{
    static const char *const functions[] = { "MPI_Isend",
                                             "MPI_Irecv",
                                             "MPI_Test",
                                             "MPI_Type_commit",
                                             "MPI_Get_count",
                                             "MPI_Iprobe",
                                             "MPI_Type_create_hvector" };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        failing_function = functions[i];
        bool awaits = i == 4 || i == 5;
        on_ranks(MPI, RANKS, 60.0, awaits ? fail_to_await : fail_to_gather);
        (void)fake().reset();
    }
}
END_TEST

/* Rank 1 fails, which rank 0 notices as it waits for rank 1, and tells rank 2, which waits for rank
 * 0. */
static void fail_alone(struct ak_comm *c)
{
    struct ak_error error = { 0 };
    char expected[256];
    uint8_t data[5] = { 0 };
    size_t n;
    struct ak_comm_message out = { 0, data, ((size_t)1 << 30) + 1, 0, 0 };
    snprintf(expected, sizeof expected, "rank 1 (%s) has ended", ak_comm_host(c, 1));
    if (c->rank == 1)
        failed(ak_comm_exchange(c, &out, 1, NULL, 0, &error), &error, AKUNU_ERROR_UNSUPPORTED,
               "a message of 1073741825 bytes to or from rank 0; at most 1073741824 are supported");
    else
        failed(c->rank == 0 ? receive(c, 1, data, sizeof data, &error) :
                              ak_comm_await(c, &n, &error),
               &error, AKUNU_ERROR_IO, expected);
    ck_assert(c->rank == 1 || c->ops->has_failed(c, NULL));
}

/* A rank that works for longer than the time-out is still there. */
static void work_long(struct ak_comm *c)
{
    if (c->rank == 1)
        nap(1.3);
    gather_items(c);
}

/* Rank 1 does not answer. */
static void wait_in_vain(struct ak_comm *c)
{
    struct ak_error error = { 0 };
    char expected[256];
    uint8_t data[5];
    snprintf(expected, sizeof expected, "rank 1 (%s) has not answered for 0.1 s",
             ak_comm_host(c, 1));
    ck_assert(!c->ops->has_failed(c, NULL));
    if (c->rank == 0)
        failed(receive(c, 1, data, sizeof data, &error), &error, AKUNU_ERROR_IO, expected);
}

START_TEST(mpi_waits)
{
    on_ranks(MPI, RANKS, 60.0, fail_alone);
    (void)fake().reset();
    on_ranks(MPI, RANKS, 1.0, work_long);
    ck_assert_int_eq(fake().reset(), 0);
}
END_TEST

/* With a single file that can still be opened there is no watch, which needs two: a rank that is
 * silent counts as failed. */
START_TEST(mpi_without_watch)
{
    struct rlimit limit;
    (void)fake();
    int last = dup(2);
    ck_assert_int_ge(last, 0);
    close(last);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit small = { (rlim_t)last + 1, limit.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &small), 0);
    on_ranks(MPI, RANKS, 60.0, exchange_all);
    ck_assert_int_eq(fake().reset(), 0);
    on_ranks(MPI, 2, 0.1, wait_in_vain);
    (void)fake().reset();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}
END_TEST

/* ---- The watch ---------------------------------------------------------- */
/* Communicators of ranks on three hosts, in one thread. */
static void open_comms(struct ak_comm *c[RANKS])
{
    static const char *const hosts[RANKS] = { "alpha", "beta", "gamma" };
    struct ak_error error = { 0 };
    fine(ak_comm_open_local(RANKS, 60.0, c, &error), &error);
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < RANKS; k++)
            strcpy(c[i]->hosts[k], hosts[k]);
}

static void close_comms(struct ak_comm *c[RANKS])
{
    for (int i = 0; i < RANKS; i++)
        ak_comm_close(c[i]);
}

/* Waits until a rank has failed, and checks what is said then. */
static void wait_failed(struct ak_watch *w, const char *expected)
{
    struct ak_error error = { 0 };
    while (!ak_watch_has_failed(w, &error))
        nap(0.001);
    failed(error.status, &error, AKUNU_ERROR_IO, expected);
}

/* Rank 1 leaves, which is no failure; rank 2 ends without a word. With `stays`, rank 1 is there
 * still, and told. */
START_TEST(watch_notices_ends)
{
    struct ak_comm *c[RANKS];
    for (int stays = 0; stays < 2; stays++) {
        struct ak_watch *w[RANKS];
        struct ak_watch_address address;
        struct ak_error error = { 0 };
        size_t n_files = test_count_open();
        open_comms(c);
        fine(ak_watch_listen(true, &w[0], &address, &error), &error);
        ck_assert_uint_eq(address.n, 1);
        ck_assert_uint_eq(address.ip[0], htonl(INADDR_LOOPBACK));
        for (int i = 1; i < RANKS; i++)
            fine(ak_watch_connect(c[i], &address, &w[i], &error), &error);
        for (int i = 1; i < RANKS; i++)
            fine(ak_watch_start(w[i], c[i], 60.0, &error), &error);
        fine(ak_watch_start(w[0], c[0], 60.0, &error), &error);
        if (!stays)
            ak_watch_free(w[1]);
        c[2]->failure.status = AKUNU_ERROR_IO; /* it says nothing as it goes */
        ak_watch_free(w[2]);
        wait_failed(w[0], "rank 2 (gamma) has ended");
        if (stays) {
            wait_failed(w[1], "rank 2 (gamma) has ended");
            ak_watch_free(w[1]);
        }
        ak_watch_free(w[0]);
        close_comms(c);
        ck_assert_uint_eq(test_count_open(), n_files);
    }
}
END_TEST

static int connect_to(const struct ak_watch_address *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = address->port,
                              .sin_addr.s_addr = address->ip[0] };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Rank 0 takes a greeting with its secret, of a rank that has not greeted, and no other. Rank 1
 * says nothing after it, which rank 0 notices, and tells rank 2. */
START_TEST(watch_notices_silence)
{
    struct ak_comm *c[RANKS];
    struct ak_watch *w[RANKS];
    struct ak_watch_address address;
    struct ak_error error = { 0 };
    size_t n_files = test_count_open();
    open_comms(c);
    fine(ak_watch_listen(true, &w[0], &address, &error), &error);
    const uint64_t s = address.secret, greetings[][2] = { { s + 1, 1 }, { s, 0 }, { s, RANKS },
                                                          { 0, 0 },     { s, 1 }, { s, 1 } };
    enum { N = sizeof greetings / sizeof *greetings, CUT = 3 };
    int fds[N];
    for (int i = 0; i < N; i++) {
        size_t n = i == CUT ? 5 : sizeof greetings[i];
        fds[i] = connect_to(&address);
        ck_assert_int_eq(send(fds[i], greetings[i], n, 0), (ssize_t)n);
        if (i == CUT)
            shutdown(fds[i], SHUT_WR);
    }
    fine(ak_watch_connect(c[2], &address, &w[2], &error), &error);
    fine(ak_watch_start(w[2], c[2], 60.0, &error), &error);
    fine(ak_watch_start(w[0], c[0], 0.3, &error), &error);
    for (int i = 0; i < N; i++) { /* all but one are hung up on */
        char said;
        ck_assert_int_eq(recv(fds[i], &said, 1, 0) > 0, i == 4);
    }
    wait_failed(w[0], "rank 1 (beta) has not answered for 0.3 s");
    wait_failed(w[2], "rank 1 (beta) has not answered for 0.3 s");
    ak_watch_free(w[0]);
    ak_watch_free(w[2]);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    close_comms(c);
    ck_assert_uint_eq(test_count_open(), n_files);
}
END_TEST

/* A rank connects once, greets, and notices that rank 0 is silent or cannot be reached. */
START_TEST(watch_greets)
{
    struct ak_comm *c[RANKS];
    struct ak_watch *w;
    struct ak_error error = { 0 };
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof own;
    size_t n_files = test_count_open();
    uint64_t greeting[2];
    open_comms(c);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&own, sizeof own), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&own, &length), 0);
    struct ak_watch_address address = { .secret = 0x123456789abcdef,
                                        .n = 2,
                                        .ip = { own.sin_addr.s_addr, own.sin_addr.s_addr },
                                        .port = own.sin_port };
    fine(ak_watch_connect(c[2], &address, &w, &error), &error);
    int fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_lt(accept(listener, NULL, NULL), 0);
    ck_assert_int_eq(recv(fd, greeting, sizeof greeting, MSG_WAITALL), sizeof greeting);
    ck_assert_uint_eq(greeting[0], address.secret);
    ck_assert_uint_eq(greeting[1], 2);
    fine(ak_watch_start(w, c[2], 0.2, &error), &error);
    wait_failed(w, "rank 0 (alpha) has not answered for 0.2 s");
    ak_watch_free(w);
    close(fd);
    address.n = 1; /* the second one is not one of them */
    address.ip[0] = htonl(INADDR_LOOPBACK + 1);
    failed(ak_watch_connect(c[2], &address, &w, &error), &error, AKUNU_ERROR_IO,
           "rank 0 (alpha) cannot be reached");
    address.n = 2;
    close(listener);
    failed(ak_watch_connect(c[2], &address, &w, &error), &error, AKUNU_ERROR_IO,
           "rank 0 (alpha) cannot be reached");
    close_comms(c);
    ck_assert_uint_eq(test_count_open(), n_files);
}
END_TEST

/* The addresses share the seconds for which rank 0 waits, however many there are: the last one is
 * tried while rank 0 still listens. */
START_TEST(watch_tries_all_addresses)
{
    struct ak_comm *c[RANKS];
    struct ak_watch *w;
    size_t n_files = test_count_open();
    open_comms(c);
    are_silent = true;
    for (uint32_t n = 1; n <= AK_WATCH_ADDRESSES_MAX; n++) {
        struct ak_watch_address address = { .n = n };
        struct ak_error error = { 0 };
        milliseconds[0] = milliseconds[1] = 0;
        failed(ak_watch_connect(c[1], &address, &w, &error), &error, AKUNU_ERROR_IO,
               "rank 0 (alpha) cannot be reached");
        ck_assert_int_gt(milliseconds[0], 0);
        ck_assert_int_lt(milliseconds[1], 10000); /* time is left for the greeting */
        ck_assert_int_le(milliseconds[0] * (n + 1), 10000 + 2 * (n + 1)); /* rounded up */
    }
    are_silent = false;
    close_comms(c);
    ck_assert_uint_eq(test_count_open(), n_files);
}
END_TEST

/* The other hosts get the addresses of all interfaces that are up, each once: those of networks
 * before those of this host alone. */
START_TEST(watch_lists_addresses)
{
    struct ak_watch *w;
    struct ak_watch_address address, expected = { 0 };
    struct ak_error error = { 0 };
    struct ifaddrs *all;
    ck_assert_int_eq(getifaddrs(&all), 0);
    for (unsigned loopback = 0; loopback <= IFF_LOOPBACK; loopback += IFF_LOOPBACK)
        for (const struct ifaddrs *a = all; a && expected.n < AK_WATCH_ADDRESSES_MAX;
             a = a->ifa_next)
            if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
                (a->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == (IFF_UP | loopback)) {
                struct sockaddr_in ip;
                memcpy(&ip, a->ifa_addr, sizeof ip);
                expected.ip[expected.n++] = ip.sin_addr.s_addr;
            }
    freeifaddrs(all);
    fine(ak_watch_listen(false, &w, &address, &error), &error);
    ck_assert_uint_eq(address.n, expected.n);
    ck_assert_mem_eq(address.ip, expected.ip, sizeof address.ip);
    ak_watch_free(w);
}
END_TEST

/* ---- Without memory ----------------------------------------------------- */
/* Whether this allocation was refused, which the call must have reported. */
static bool was_refused(ak_status status, const struct ak_error *error)
{
    bool refused = allow_allocations();
    ck_assert_msg(status == (refused ? AKUNU_ERROR_MEMORY : AKUNU_OK), "status %d: '%s'",
                  (int)status, error->message);
    return refused;
}

START_TEST(local_without_memory)
{
    struct ak_comm *c[RANKS];
    bool refused = true;
    for (long n = 0; refused; n++) {
        struct ak_error error = { 0 };
        refuse_allocation(n);
        refused = was_refused(ak_comm_open_local(RANKS, 60.0, c, &error), &error);
    }
    close_comms(c);
}
END_TEST

/* The watch alone may lack then: it is an extra. */
START_TEST(mpi_without_memory)
{
    bool refused = true;
    int n_without_watch = 0;
    (void)fake();
    size_t n_files = test_count_open();
    for (long n = 0; refused; n++) {
        struct ak_comm *c;
        struct ak_error error = { 0 };
        fake().join(0, 1);
        refuse_allocation(n);
        ak_status status = ak_comm_open_mpi(60.0, &c, &error);
        refused = allow_allocations();
        if (status == AKUNU_OK) {
            uint64_t item = 7;
            n_without_watch += refused;
            fine(ak_comm_all_gather_items(c, &item, sizeof item, &error), &error);
            ck_assert_uint_eq(item, 7);
            ak_comm_close(c);
        } else {
            ck_assert_msg(refused && status == AKUNU_ERROR_MEMORY, "status %d: '%s'", (int)status,
                          error.message);
        }
        (void)fake().reset();
        ck_assert_uint_eq(test_count_open(), n_files);
    }
    ck_assert_int_le(n_without_watch, 5); /* it, and its lists as it is made and as it starts */
}
END_TEST

START_TEST(watch_without_memory)
{
    struct ak_comm *c[RANKS];
    struct ak_watch *w[RANKS];
    struct ak_watch_address address;
    size_t n_files = test_count_open();
    open_comms(c);
    bool refused = true;
    for (long n = 0; refused; n++) {
        struct ak_error error = { 0 };
        refuse_allocation(n);
        refused = was_refused(ak_watch_listen(true, &w[0], &address, &error), &error);
    }
    for (int i = 1; i < RANKS; i++) {
        refused = true;
        for (long n = 0; refused; n++) {
            struct ak_error error = { 0 };
            refuse_allocation(n);
            refused = was_refused(ak_watch_connect(c[i], &address, &w[i], &error), &error);
        }
    }
    for (int i = RANKS - 1; i >= 0; i--) {
        refused = true;
        for (long n = 0; refused; n++) {
            struct ak_error error = { 0 };
            refuse_allocation(n);
            refused = was_refused(ak_watch_start(w[i], c[i], 60.0, &error), &error);
        }
    }
    for (int i = 0; i < RANKS; i++)
        ak_watch_free(w[i]);
    close_comms(c);
    ck_assert_uint_eq(test_count_open(), n_files);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dist");
    TCase *tests = tcase_create("dist");
    setenv("AKUNU_MPI", AK_FAKE_MPI, 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, all_messages, LOCAL, MPI + 1);
    tcase_add_test(tests, local_failures);
    tcase_add_test(tests, mpi_is_missing);
    tcase_add_test(tests, mpi_fails);
    tcase_add_test(tests, mpi_waits);
    tcase_add_test(tests, mpi_without_watch);
    tcase_add_test(tests, watch_notices_ends);
    tcase_add_test(tests, watch_notices_silence);
    tcase_add_test(tests, watch_greets);
    tcase_add_test(tests, watch_tries_all_addresses);
    tcase_add_test(tests, watch_lists_addresses);
    tcase_add_test(tests, local_without_memory);
    tcase_add_test(tests, mpi_without_memory);
    tcase_add_test(tests, watch_without_memory);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

/* The connections between rank 0 and the others: accepting, greeting, one byte a second. */
#include "engine/dist/watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system.h"

enum { GREETING_SECONDS = 10, TEXT_BYTES = 200 };
/* What a byte of a connection says; FAILED is followed by a text of TEXT_BYTES. */
enum { HERE = 'h', LEAVES = 'l', FAILED = 'f' };

/* What a rank says first. */
struct greeting {
    uint64_t secret;
    uint64_t rank; /* as wide as the other, so that nothing unset is sent between or after them */
};

struct peer {
    int fd; /* -1: it has left */
    uint32_t rank;
    double heard; /* when it was heard last */
};

struct ak_watch {
    const struct ak_comm *comm;
    double timeout;
    uint64_t secret;
    int listener; /* rank 0's; -1: none */
    int wake[2];  /* a pipe that ends the thread */
    struct peer *peers;
    struct pollfd *polled;
    uint32_t n_peers;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock;
    bool has_failed;
    char why[TEXT_BYTES];
};

static ak_status fail_system(const char *what, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_SYSTEM, "%s: %s", what, strerror(errno));
}

static ak_status create_watch(uint32_t n_peers, struct ak_watch **out, struct ak_error *error)
{
    struct ak_watch *w = ak_alloc(1, sizeof *w);
    if (!w)
        return ak_fail_memory(error, "a watch", sizeof *w);
    w->listener = w->wake[0] = w->wake[1] = -1;
    pthread_mutex_init(&w->lock, NULL);
    w->n_peers = n_peers;
    w->peers = ak_alloc(n_peers, sizeof *w->peers);
    w->polled = ak_alloc(n_peers + 1u, sizeof *w->polled);
    for (uint32_t i = 0; w->peers && i < n_peers; i++)
        w->peers[i].fd = -1;
    ak_status status = AKUNU_OK;
    if (!w->peers || !w->polled)
        status = ak_fail_memory(error, "a watch", n_peers * sizeof *w->peers);
    else if (pipe2(w->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        status = fail_system("a pipe", error);
    if (status != AKUNU_OK) {
        ak_watch_free(w);
        return status;
    }
    *out = w;
    return AKUNU_OK;
}

/* ---- Connecting --------------------------------------------------------- */
/* The addresses of this host: those of networks before those that only it can reach. */
static void list_addresses(struct ak_watch_address *address)
{
    struct ifaddrs *all, *a;
    if (getifaddrs(&all) != 0)
        return;
    for (int loopback = 0; loopback < 2; loopback++)
        for (a = all; a && address->n < AK_WATCH_ADDRESSES_MAX; a = a->ifa_next) {
            struct sockaddr_in ip;
            if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP) ||
                !(a->ifa_flags & IFF_LOOPBACK) != !loopback)
                continue;
            memcpy(&ip, a->ifa_addr, sizeof ip);
            address->ip[address->n++] = ip.sin_addr.s_addr;
        }
    freeifaddrs(all);
}

static ak_status open_listener(struct ak_watch *w, bool is_local, struct ak_watch_address *address,
                               struct ak_error *error)
{
    struct sockaddr_in own = { .sin_family = AF_INET };
    socklen_t n = sizeof own;
    own.sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY);
    w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (w->listener < 0 || bind(w->listener, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(w->listener, SOMAXCONN) != 0 ||
        getsockname(w->listener, (struct sockaddr *)&own, &n) != 0)
        return fail_system("a socket for the other ranks", error);
    address->port = own.sin_port;
    if (is_local)
        address->ip[address->n++] = htonl(INADDR_LOOPBACK);
    else
        list_addresses(address);
    return AKUNU_OK;
}

ak_status ak_watch_listen(bool is_local, struct ak_watch **out, struct ak_watch_address *address,
                          struct ak_error *error)
{
    *address = (struct ak_watch_address){ 0 };
    AK_TRY(create_watch(0, out, error));
    ak_status status = open_listener(*out, is_local, address, error);
    if (status == AKUNU_OK &&
        getrandom(&address->secret, sizeof address->secret, 0) != sizeof address->secret)
        status = fail_system("a random number", error);
    (*out)->secret = address->secret;
    if (status != AKUNU_OK) {
        ak_watch_free(*out);
        *out = NULL;
    }
    return status;
}

/* Waits until `fd` can be read or written; false: not in time. */
static bool wait_for(int fd, short events, double end)
{
    struct pollfd p = { .fd = fd, .events = events };
    double left = end - ak_seconds();
    return left > 0.0 && poll(&p, 1, (int)(left * 1000.0) + 1) == 1;
}

/* A connection to one address; -1: none in time. */
static int connect_to(uint32_t ip, uint16_t port, double end)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = ip };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    socklen_t n = sizeof error;
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, end) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0)
        return fd;
    close(fd);
    return -1;
}

ak_status ak_watch_connect(const struct ak_comm *comm, const struct ak_watch_address *address,
                           struct ak_watch **out, struct ak_error *error)
{
    struct greeting greeting = { .secret = address->secret, .rank = comm->rank };
    double each = (double)GREETING_SECONDS / (address->n + 1.0);
    int fd = -1;
    AK_TRY(create_watch(1, out, error));
    for (uint32_t i = 0; i < address->n && i < AK_WATCH_ADDRESSES_MAX && fd < 0; i++)
        fd = connect_to(address->ip[i], address->port, ak_seconds() + each);
    (*out)->peers[0] = (struct peer){ .fd = fd };
    if (fd >= 0 && send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting)
        return AKUNU_OK;
    ak_watch_free(*out);
    *out = NULL;
    return ak_fail(error, AKUNU_ERROR_IO, "rank 0 (%s) cannot be reached", ak_comm_host(comm, 0));
}

/* Receives a greeting. 0: it is not one of a rank that has not greeted yet. */
static uint32_t read_greeting(const struct ak_watch *w, int fd, double end)
{
    struct greeting greeting;
    size_t n = 0;
    while (n < sizeof greeting && wait_for(fd, POLLIN, end)) {
        ssize_t got = recv(fd, (char *)&greeting + n, sizeof greeting - n, 0);
        if (got <= 0)
            return 0;
        n += (size_t)got;
    }
    bool is_ours = n == sizeof greeting && greeting.secret == w->secret && greeting.rank > 0 &&
                   greeting.rank <= w->n_peers && w->peers[greeting.rank - 1].fd < 0;
    return is_ours ? (uint32_t)greeting.rank : 0;
}

/* Waits for all other ranks. */
static ak_status accept_all(struct ak_watch *w, struct ak_error *error)
{
    double end = ak_seconds() + GREETING_SECONDS;
    for (uint32_t n = 0; n < w->n_peers;) {
        int fd = wait_for(w->listener, POLLIN, end) ?
                     accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) :
                     -1;
        if (fd < 0 && ak_seconds() >= end)
            return ak_fail(error, AKUNU_ERROR_IO, "%u of %u ranks have not connected to rank 0",
                           (unsigned)(w->n_peers - n), (unsigned)w->n_peers);
        uint32_t rank = fd < 0 ? 0 : read_greeting(w, fd, end);
        if (rank == 0 && fd >= 0)
            close(fd);
        if (rank == 0)
            continue;
        w->peers[rank - 1] = (struct peer){ .fd = fd, .rank = rank };
        n++;
    }
    close(w->listener);
    w->listener = -1;
    return AKUNU_OK;
}

/* ---- Watching ----------------------------------------------------------- */
static void say(const struct peer *peer, const void *what, size_t n)
{
    if (peer->fd >= 0) /* a full buffer means that nobody reads: the timeout will tell */
        (void)!send(peer->fd, what, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Keeps the first failure and, on rank 0, tells the others. */
static void set_failed(struct ak_watch *w, const char *why)
{
    char message[1 + TEXT_BYTES] = { FAILED };
    pthread_mutex_lock(&w->lock);
    bool is_first = !w->has_failed;
    if (is_first) {
        snprintf(w->why, sizeof w->why, "%s", why);
        memcpy(message + 1, w->why, sizeof w->why);
        w->has_failed = true;
    }
    pthread_mutex_unlock(&w->lock);
    for (uint32_t i = 0; is_first && w->comm->rank == 0 && i < w->n_peers; i++)
        say(&w->peers[i], message, sizeof message);
}

static void fail_peer(struct ak_watch *w, struct peer *peer, const char *what)
{
    char why[TEXT_BYTES];
    snprintf(why, sizeof why, "rank %u (%s) %s", (unsigned)peer->rank,
             ak_comm_host(w->comm, peer->rank), what);
    close(peer->fd);
    peer->fd = -1;
    set_failed(w, why);
}

/* Reads what a peer says. */
static void hear(struct ak_watch *w, struct peer *peer)
{
    char said[1 + TEXT_BYTES];
    ssize_t n = recv(peer->fd, said, sizeof said, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        fail_peer(w, peer, "has ended");
        return;
    }
    peer->heard = ak_seconds();
    const char *failed = memchr(said, FAILED, (size_t)n);
    if (failed) {
        said[n - 1] = '\0';
        set_failed(w, failed + 1);
    } else if (memchr(said, LEAVES, (size_t)n)) {
        close(peer->fd);
        peer->fd = -1;
    }
}

static void check_silence(struct ak_watch *w)
{
    char what[64];
    snprintf(what, sizeof what, "has not answered for %g s", w->timeout);
    for (uint32_t i = 0; i < w->n_peers; i++)
        if (w->peers[i].fd >= 0 && ak_seconds() - w->peers[i].heard > w->timeout)
            fail_peer(w, &w->peers[i], what);
}

static void *watch(void *context)
{
    struct ak_watch *w = context;
    const char here = HERE;
    double step = w->timeout / 4.0 < 1.0 ? w->timeout / 4.0 : 1.0, next = 0.0;
    for (;;) {
        w->polled[w->n_peers] = (struct pollfd){ .fd = w->wake[0], .events = POLLIN };
        for (uint32_t i = 0; i < w->n_peers; i++)
            w->polled[i] = (struct pollfd){ .fd = w->peers[i].fd, .events = POLLIN };
        (void)poll(w->polled, w->n_peers + 1u, (int)(step * 1000.0));
        if (w->polled[w->n_peers].revents)
            return NULL;
        for (uint32_t i = 0; i < w->n_peers; i++)
            if (w->polled[i].revents && w->peers[i].fd >= 0)
                hear(w, &w->peers[i]);
        check_silence(w);
        if (ak_seconds() < next)
            continue;
        for (uint32_t i = 0; i < w->n_peers; i++)
            say(&w->peers[i], &here, 1);
        next = ak_seconds() + step;
    }
}

ak_status ak_watch_start(struct ak_watch *w, const struct ak_comm *comm, double timeout,
                         struct ak_error *error)
{
    sigset_t all, old;
    w->comm = comm;
    w->timeout = timeout;
    if (comm->rank == 0) {
        uint32_t n = comm->n_ranks - 1;
        ak_free(w->peers);
        ak_free(w->polled);
        w->peers = ak_alloc(n, sizeof *w->peers);
        w->polled = ak_alloc(n + 1u, sizeof *w->polled);
        if (!w->peers || !w->polled)
            return ak_fail_memory(error, "a watch", n * sizeof *w->peers);
        w->n_peers = n;
        for (uint32_t i = 0; i < n; i++)
            w->peers[i].fd = -1;
        AK_TRY(accept_all(w, error));
    }
    for (uint32_t i = 0; i < w->n_peers; i++)
        w->peers[i].heard = ak_seconds();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    w->runs = pthread_create(&w->thread, NULL, watch, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return w->runs ? AKUNU_OK : ak_fail_memory(error, "a thread", 0);
}

bool ak_watch_has_failed(struct ak_watch *w, struct ak_error *error)
{
    pthread_mutex_lock(&w->lock);
    bool has_failed = w->has_failed;
    if (has_failed)
        ak_fail(error, AKUNU_ERROR_IO, "%s", w->why);
    pthread_mutex_unlock(&w->lock);
    return has_failed;
}

void ak_watch_free(struct ak_watch *w)
{
    const char leaves = LEAVES;
    if (!w)
        return;
    if (w->runs) {
        (void)!write(w->wake[1], "", 1);
        pthread_join(w->thread, NULL);
    }
    for (uint32_t i = 0; w->peers && i < w->n_peers; i++)
        if (w->peers[i].fd >= 0) {
            if (w->comm && w->comm->failure.status == AKUNU_OK)
                say(&w->peers[i], &leaves, 1);
            close(w->peers[i].fd);
        }
    if (w->listener >= 0)
        close(w->listener);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] >= 0)
            close(w->wake[i]);
    pthread_mutex_destroy(&w->lock);
    ak_free(w->peers);
    ak_free(w->polled);
    ak_free(w);
}

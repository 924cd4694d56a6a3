/* The processes that mpirun starts: all run the same command line. */
#include "apps/common/ranks.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "akunu/comm.h"
#include "apps/common/message.h"

/* Standard error of a rank that is hushed; -1: none is. */
static int kept_error = -1;

void app_ranks_hush(void)
{
    unsigned rank;
    if (akunu_comm_count(&rank) == 1 || rank == 0)
        return;
    kept_error = dup(STDERR_FILENO);
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        return;
}

/* Prints the message of the calling thread's last failed call, hushed or not. */
static int print_failure(void)
{
    if (kept_error >= 0)
        dprintf(kept_error, "%s: %s\n", app_program(), akunu_last_error());
    else
        app_fail("%s", akunu_last_error());
    return app_exit_code(akunu_last_status());
}

/* ---- Failures of other ranks -------------------------------------------- */
/* A thread that ends this process if another rank has failed and the command does not notice:
 * nothing may run that needs the others. mpirun ends the ranks by SIGTERM when one has died, a
 * moment before the death is known here, and kills them a second later; so the thread takes the
 * signal, and waits for the reason. The server takes the signal itself. */
static struct watcher {
    struct akunu_comm *comm;
    pthread_t thread;
    bool takes_sigterm, runs;
    atomic_bool ends;
} watcher;

enum { STEP_MS = 50, PATIENCE_MS = 500 };

/* Waits a moment. True: SIGTERM has come. */
static bool pause_until_sigterm(void)
{
    const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    if (watcher.takes_sigterm)
        return sigtimedwait(&term, NULL, &step) == SIGTERM;
    nanosleep(&step, NULL);
    return false;
}

static void *watch(void *unused)
{
    int patience = PATIENCE_MS / STEP_MS;
    bool is_told = false;
    (void)unused;
    while (!atomic_load(&watcher.ends)) {
        is_told = pause_until_sigterm() || is_told;
        bool has_failed = akunu_comm_has_failed(watcher.comm);
        if ((!is_told && !has_failed) || patience-- > 0)
            continue;
        if (has_failed && !atomic_load(&watcher.ends))
            print_failure();
        _exit(has_failed ? APP_EXIT_FAILURE : 128 + SIGTERM);
    }
    return NULL;
}

static void begin_watching(struct akunu_comm *comm, bool takes_sigterm)
{
    sigset_t term, all, old;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigfillset(&all);
    watcher.comm = comm;
    watcher.takes_sigterm = takes_sigterm && pthread_sigmask(SIG_BLOCK, &term, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &all, &old); /* other signals, and the server's, are not its */
    watcher.runs = pthread_create(&watcher.thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void end_watching(void)
{
    atomic_store(&watcher.ends, true);
    if (watcher.runs)
        pthread_join(watcher.thread, NULL);
    watcher.runs = false;
}

/* ---- Joining ------------------------------------------------------------ */
/* A thread that ends this process if the ranks have not met in time: Open MPI waits for a process
 * that cannot be reached, however long that takes. */
static struct limit {
    pthread_t thread;
    double seconds;
    unsigned rank;
    atomic_bool has_joined;
} limit;

enum {
    HOST_BYTES = 65,
    LIMIT_STEP_MS = 20,
    LIMIT_MORE_S = 2 /* the library's own message comes first */
};

static void *limit_join(void *unused)
{
    const struct timespec step = { .tv_nsec = LIMIT_STEP_MS * 1000000L };
    double end = app_seconds() + limit.seconds + LIMIT_MORE_S;
    char host[HOST_BYTES] = "";
    (void)unused;
    while (!atomic_load(&limit.has_joined)) {
        nanosleep(&step, NULL);
        if (app_seconds() < end)
            continue;
        (void)gethostname(host, sizeof host - 1);
        dprintf(kept_error >= 0 ? kept_error : STDERR_FILENO,
                "%s: rank %u (%s) has not reached the other ranks for %g s\n", app_program(),
                limit.rank, host, limit.seconds);
        _exit(APP_EXIT_FAILURE);
    }
    return NULL;
}

static struct akunu_comm *join_in_time(const struct akunu_comm_params *params, unsigned rank)
{
    sigset_t all, old;
    limit.seconds = params->timeout;
    limit.rank = rank;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    bool is_limited = pthread_create(&limit.thread, NULL, limit_join, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    struct akunu_comm *comm = akunu_comm_join(params);
    atomic_store(&limit.has_joined, true);
    if (is_limited)
        pthread_join(limit.thread, NULL);
    return comm;
}

/* *comm stays NULL if mpirun has not started this process. */
static int join(struct app_options *o, struct akunu_comm **comm, bool *follows)
{
    unsigned rank;
    struct akunu_comm_params params;
    if (akunu_comm_count(&rank) == 1 || o->help || o->version)
        return APP_EXIT_OK;
    akunu_comm_params_default(&params, sizeof params);
    if (o->model.rank_timeout > 0)
        params.timeout = o->model.rank_timeout;
    *comm = join_in_time(&params, rank);
    if (!*comm)
        return print_failure();
    *follows = rank > 0;
    o->load.comm = *comm;
    begin_watching(*comm, !(o->command & APP_SERVER) || *follows);
    return APP_EXIT_OK;
}

static int follow(struct akunu_comm *comm)
{
    enum akunu_status status = akunu_comm_follow(comm, NULL, NULL);
    end_watching();
    return status == AKUNU_OK ? APP_EXIT_OK : print_failure();
}

int app_ranks_run(struct app_options *options, app_run_fn *run, void *user)
{
    struct akunu_comm *comm = NULL;
    bool follows = false;
    int code = join(options, &comm, &follows);
    if (code == APP_EXIT_OK)
        code = follows ? follow(comm) : run(options, user);
    end_watching();
    akunu_comm_free(comm);
    return code;
}

/* What an exchange between ranks costs: a program of its own for MPI, which bench/scale.py compiles
 * with mpicc and starts with mpirun.
 *
 *   mpicc -O2 bench/exchange.c -o exchange && mpirun -n 2 ./exchange [MESSAGES BYTES ROWS]
 *
 * Each rank sends its part to each other rank and receives theirs; it waits as
 * src/engine/dist/mpi.c does. Before, it reads 4 MB of memory, as a pass does between exchanges,
 * and waits until all have done so. ROWS: the part is one of a matrix of so many rows. MESSAGES: so
 * many to each rank, for what more ranks would send. Prints a line of JSON per size: the bytes of a
 * message, and the median seconds of an exchange, the mean of all ranks. And how evenly the ranks
 * compute: of a loop that takes milliseconds, the time of the slowest one as a multiple of the
 * mean, on average. */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 4 << 20,   /* read before each exchange */
    MEMORY = 256 << 20, /* more than caches hold */
    SPINS = 256,        /* polls between two calls of sched_yield() */
    TIMES = 500,        /* of each size, or as many as SECONDS_MAX allows, */
    TIMES_MIN = 15,     /* but at least so many */
    SECONDS_MAX = 1,
    MESSAGES_MAX = 128,
    LOOPS = 200,       /* that ranks do side by side, */
    LOOP_WORDS = 2048, /* each of so many words of a cache */
};

static const double loop_seconds = 4e-3; /* about that of a prompt between two exchanges */

struct size {
    int messages, bytes, rows; /* bytes: of a message */
};

struct bench {
    int rank, n_ranks, n_requests;
    uint64_t *memory;
    size_t at; /* the next window, in words */
    char *out, *in;
    MPI_Request requests[2 * MESSAGES_MAX];
};

static const struct size meet = { 1, 1, 1 }; /* an exchange for which ranks wait */

static volatile uint64_t sink;

static void read_window(struct bench *b)
{
    const size_t n = WINDOW / sizeof *b->memory;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += b->memory[b->at + i];
    sink = sum;
    b->at = (b->at + n) % (MEMORY / sizeof *b->memory);
}

static void wait_all(struct bench *b)
{
    unsigned spins = 0;
    for (int i = 0; i < b->n_requests;) {
        int done = 0;
        MPI_Test(&b->requests[i], &done, MPI_STATUS_IGNORE);
        i += done;
        if (!done && ++spins % SPINS == 0)
            sched_yield();
    }
}

/* Rows of a message lie as many row widths apart as there are messages. */
static void exchange(struct bench *b, const struct size *s)
{
    int per_row = s->bytes / s->rows, n_others = b->n_ranks - 1;
    MPI_Datatype rows;
    MPI_Type_create_hvector(s->rows, per_row, (MPI_Aint)per_row * (s->messages * n_others + 1),
                            MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    b->n_requests = 0;
    for (int i = 0; i < s->messages * n_others; i++)
        MPI_Irecv(b->in + i * per_row, 1, rows,
                  (b->rank + b->n_ranks - 1 - i % n_others) % b->n_ranks, 1, MPI_COMM_WORLD,
                  &b->requests[b->n_requests++]);
    for (int i = 0; i < s->messages * n_others; i++)
        MPI_Isend(b->out, 1, rows, (b->rank + 1 + i % n_others) % b->n_ranks, 1, MPI_COMM_WORLD,
                  &b->requests[b->n_requests++]);
    MPI_Type_free(&rows);
    wait_all(b);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one exchange on this rank. Ranks meet before; one that is later by x then waits x less
 * and its peer x more, so their mean does not depend on it. */
static double time_one(struct bench *b, const struct size *s)
{
    read_window(b);
    exchange(b, &meet);
    double start = MPI_Wtime();
    exchange(b, s);
    return MPI_Wtime() - start;
}

static void measure(struct bench *b, const struct size *s)
{
    double seconds[TIMES], sums[TIMES], began = MPI_Wtime();
    int n = 0, more = 1;
    for (; n < TIMES && more; n++) {
        seconds[n] = time_one(b, s);
        more = n + 1 < TIMES_MIN || MPI_Wtime() - began < SECONDS_MAX;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Reduce(seconds, sums, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (b->rank > 0)
        return;
    qsort(sums, (size_t)n, sizeof *sums, compare);
    printf("{\"ranks\": %d, \"messages\": %d, \"rows\": %d, \"bytes\": %d, \"seconds\": %.9f}\n",
           b->n_ranks, s->messages * (b->n_ranks - 1), s->rows, s->bytes, sums[n / 2] / b->n_ranks);
    fflush(stdout);
}

static void compute(const struct bench *b, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        for (size_t j = 0; j < LOOP_WORDS; j++)
            sum = sum * 3 + b->memory[j];
    sink = sum;
}

static void measure_evenness(struct bench *b)
{
    double seconds[LOOPS], sums[LOOPS], most[LOOPS], start = MPI_Wtime(), all = 0, slowest = 0;
    int n = 0;
    for (; MPI_Wtime() - start < loop_seconds; n++)
        compute(b, 1);
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < LOOPS; i++) {
        exchange(b, &meet);
        start = MPI_Wtime();
        compute(b, n);
        seconds[i] = MPI_Wtime() - start;
    }
    MPI_Reduce(seconds, sums, LOOPS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(seconds, most, LOOPS, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (b->rank > 0)
        return;
    for (int i = 0; i < LOOPS; i++) {
        all += sums[i] / b->n_ranks;
        slowest += most[i];
    }
    printf("{\"ranks\": %d, \"slowest\": %.4f}\n", b->n_ranks, slowest / all);
}

/* Sizes of decode and of a prompt; more messages than one stand for more ranks than two. */
static const struct size sizes[] = {
    { 1, 64, 1 },        { 1, 4096, 1 },     { 1, 16384, 1 },     { 1, 65536, 1 },
    { 1, 262144, 1 },    { 1, 1048576, 1 },  { 7, 64, 1 },        { 7, 4096, 1 },
    { 7, 16384, 1 },     { 7, 262144, 1 },   { 1, 524288, 512 },  { 1, 2097152, 512 },
    { 1, 8388608, 512 }, { 7, 262144, 512 }, { 7, 1048576, 512 },
};

static size_t capacity(const struct size *s, int n_ranks)
{
    return (size_t)s->bytes * ((size_t)s->messages * (size_t)(n_ranks - 1) + 1);
}

int main(int argc, char **argv)
{
    struct bench b = { 0 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.n_ranks);
    struct size own = { argc > 3 ? atoi(argv[1]) : 1, argc > 3 ? atoi(argv[2]) : 0,
                        argc > 3 ? atoi(argv[3]) : 1 };
    const struct size *list = argc > 3 ? &own : sizes;
    size_t n_sizes = argc > 3 ? 1 : sizeof sizes / sizeof *sizes, bytes = 1;
    if (b.n_ranks < 2 || own.rows < 1 || own.bytes < 0 || own.messages < 1) {
        fprintf(stderr,
                "usage: mpirun -n RANKS exchange [MESSAGES BYTES ROWS], of two ranks or more\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (size_t i = 0; i < n_sizes; i++)
        bytes = capacity(&list[i], b.n_ranks) > bytes ? capacity(&list[i], b.n_ranks) : bytes;
    b.memory = malloc(MEMORY);
    b.out = malloc(bytes);
    b.in = malloc(bytes);
    if (!b.memory || !b.out || !b.in)
        MPI_Abort(MPI_COMM_WORLD, 4);
    memset(b.memory, 1, MEMORY);
    memset(b.out, 1, bytes);
    memset(b.in, 1, bytes);
    for (size_t i = 0; i < n_sizes; i++)
        if (list[i].messages * (b.n_ranks - 1) <= MESSAGES_MAX)
            measure(&b, &list[i]);
    if (argc <= 3)
        measure_evenness(&b);
    free(b.memory);
    free(b.out);
    free(b.in);
    MPI_Finalize();
    return 0;
}

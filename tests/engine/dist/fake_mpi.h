/* What a test says to the fake Open MPI (fake_mpi.c), whose ranks are threads. test_dist.c gets
 * these functions by dlsym from the module that mpi.c opens too. */
#ifndef AK_TESTS_ENGINE_DIST_FAKE_MPI_H
#define AK_TESTS_ENGINE_DIST_FAKE_MPI_H

#include <stdint.h>

#define FAKE_MPI_API __attribute__((visibility("default")))

struct fake_mpi {
    /* The rank of the calling thread, and how many there are. */
    void (*join)(int rank, int size);
    /* The function that fails from now on in this thread: "MPI_Isend"; NULL: none. */
    void (*refuse)(const char *name);
    /* Frees what is left, and returns how much of it there was: types that were not freed, requests
     * that are not done, messages that were not received. */
    int (*reset)(void);
};

/* Fills the members above. */
void fake_mpi_get(struct fake_mpi *out);

#endif

/* Counts of the fake OpenCL (fake_opencl.c): live objects, bytes of buffers, replays and failed
 * calls. test_opencl_host.c reads them to check that nothing leaks after a failure; it gets them by
 * dlsym from the module that the library opens too. */
#ifndef AK_TESTS_OPENCL_FAKE_OPENCL_H
#define AK_TESTS_OPENCL_FAKE_OPENCL_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_OPENCL_API __attribute__((visibility("default")))

struct fake_opencl_state {
    int64_t objects;         /* made and not yet released */
    uint64_t bytes;          /* of buffers now */
    uint64_t borrowed_bytes; /* of buffers that are memory of the host */
    uint64_t replays;        /* recorded lists that were enqueued */
    uint64_t failures;       /* calls that failed as AKUNU_FAKE_OPENCL says, since it was set */
};

struct fake_opencl_state fake_opencl_state(void);

#endif

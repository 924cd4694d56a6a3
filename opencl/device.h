/* OpenCL devices of this machine. */
#ifndef AK_OPENCL_DEVICE_H
#define AK_OPENCL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "opencl/cl.h"

enum { AK_OCL_DEVICES_MAX = 64 };

struct ak_ocl_device {
    cl_platform_id platform;
    cl_device_id id;
    char name[128], vendor[128], version[128], driver[128], platform_name[128];
    bool gpu, cpu;
    bool unified; /* its memory is the host's */
    /* cl_khr_fp16, cl_khr_integer_dot_product, cl_khr_command_buffer */
    bool half_floats, integer_dot, command_buffers;
    uint64_t memory, max_allocation, local_memory; /* bytes */
    size_t group;                                  /* most lanes of a group */
    uint32_t units, mhz;
    bool usable; /* compiler there, groups of 256 lanes, little-endian */
};

/* All devices of all platforms, GPUs first, CPUs last: *n of them. */
ak_status ak_ocl_list_devices(struct ak_ocl_device out[AK_OCL_DEVICES_MAX], uint32_t *n,
                              struct ak_error *error);

/* `wanted` is a number in that list or part of a name, in any case; NULL: the first usable. */
ak_status ak_ocl_find_device(const char *wanted, struct ak_ocl_device *out, struct ak_error *error);

#endif

/* OpenCL's functions, loaded at run time, and its devices. The loader library (libOpenCL.so.1) is
 * opened at the first use, so akunu also runs on machines without it. */
#ifndef AK_OPENCL_DEVICE_H
#define AK_OPENCL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "base/error.h"

/* ---- Functions (cl.c) --------------------------------------------------- */
#define AK_OCL_FUNCTIONS(X)                                                                        \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clCreateBuffer)                                                                              \
    X(clReleaseMemObject)                                                                          \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueReadBufferRect)                                                                     \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueCopyBuffer)                                                                         \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateProgramWithBinary)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clGetProgramBuildInfo)                                                                       \
    X(clGetProgramInfo)                                                                            \
    X(clReleaseProgram)                                                                            \
    X(clCreateKernel)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clSetKernelArg)                                                                              \
    X(clEnqueueNDRangeKernel) X(clFlush) X(clFinish) X(clGetExtensionFunctionAddressForPlatform)

struct ak_ocl_api {
#define AK_OCL_POINTER(name) __typeof__(name) *name;
    AK_OCL_FUNCTIONS(AK_OCL_POINTER)
#undef AK_OCL_POINTER
};

/* Loads the functions at the first call. NULL: not available; the error says what is missing. */
const struct ak_ocl_api *ak_ocl_load(struct ak_error *error);

/* "CL_OUT_OF_RESOURCES". */
const char *ak_ocl_error_name(cl_int code);

/* ---- Devices (device.c) ------------------------------------------------- */
enum { AK_OCL_DEVICES_MAX = 64 };

struct ak_ocl_device {
    cl_platform_id platform;
    cl_device_id id;
    char name[128], vendor[128], version[128], driver[128], platform_name[128];
    bool gpu, cpu;
    bool unified; /* its memory is the host's: weights can be zero-copy */
    /* cl_khr_fp16, cl_khr_integer_dot_product, cl_khr_command_buffer */
    bool half_floats, integer_dot, command_buffers;
    uint64_t memory, max_allocation, local_memory; /* bytes */
    size_t group;                                  /* largest work-group */
    uint32_t units, mhz;
    bool usable; /* has a compiler and groups of 256 lanes, and is little-endian */
};

/* Lists the devices of all platforms: GPUs first, CPUs last. */
ak_status ak_ocl_list_devices(struct ak_ocl_device out[AK_OCL_DEVICES_MAX], uint32_t *n,
                              struct ak_error *error);

/* Finds a device; `wanted` is a number in that list or part of a name, in any case; NULL: the first
 * usable one. */
ak_status ak_ocl_find_device(const char *wanted, struct ak_ocl_device *out, struct ak_error *error);

#endif

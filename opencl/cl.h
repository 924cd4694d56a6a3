/* OpenCL's functions, from the loader library (libOpenCL.so.1) that the machine may have:
 * it is looked for when first asked for, so akunu runs without one. */
#ifndef AK_OPENCL_CL_H
#define AK_OPENCL_CL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "base/error.h"

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
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueCopyBuffer)                                                                         \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateProgramWithBinary)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clGetProgramBuildInfo)                                                                       \
    X(clGetProgramInfo) X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) \
        X(clEnqueueNDRangeKernel) X(clFlush) X(clFinish)                                           \
            X(clGetExtensionFunctionAddressForPlatform)

struct ak_ocl_api {
#define AK_OCL_POINTER(name) __typeof__(name) *name;
    AK_OCL_FUNCTIONS(AK_OCL_POINTER)
#undef AK_OCL_POINTER
};

/* The functions; NULL where there are none, and then the error says what was looked for. */
const struct ak_ocl_api *ak_ocl_load(struct ak_error *error);

/* "CL_OUT_OF_RESOURCES". */
const char *ak_ocl_error_name(cl_int code);

#endif

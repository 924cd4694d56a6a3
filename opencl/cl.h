/* OpenCL's functions, from the loader library (libOpenCL.so.1) that the machine may have:
 * it is looked for when first asked for, so akunu runs without one. */
#ifndef AK_OPENCL_CL_H
#define AK_OPENCL_CL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "base/error.h"

#define AK_CL_FUNCTIONS(X)                                                                         \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clReleaseCommandQueue) X(clCreateBuffer) X(clReleaseMemObject) X(clEnqueueReadBuffer)        \
        X(clEnqueueWriteBuffer) X(clEnqueueFillBuffer) X(clEnqueueCopyBuffer)                      \
            X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clBuildProgram)            \
                X(clGetProgramBuildInfo) X(clGetProgramInfo) X(clReleaseProgram) X(clCreateKernel) \
                    X(clReleaseKernel) X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clFlush)      \
                        X(clFinish) X(clGetExtensionFunctionAddressForPlatform)

struct ak_cl {
#define AK_CL_POINTER(name) __typeof__(name) *name;
    AK_CL_FUNCTIONS(AK_CL_POINTER)
#undef AK_CL_POINTER
};

/* The functions; NULL where there are none, and then the error says what was looked for. */
const struct ak_cl *ak_cl_get(struct ak_error *error);

/* "CL_OUT_OF_RESOURCES". */
const char *ak_cl_error_name(cl_int code);

#endif

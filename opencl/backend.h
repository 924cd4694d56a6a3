/* Vtable of the OpenCL backend, for backends/list.c. It is apart from opencl.h, because list.c does
 * not include OpenCL's own headers. */
#ifndef AK_OPENCL_BACKEND_H
#define AK_OPENCL_BACKEND_H

#include "backend/backend.h"

extern const struct ak_backend_ops ak_ocl_backend;

#endif

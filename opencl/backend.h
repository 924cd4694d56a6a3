/* The OpenCL backend, for backends/list.c, which does not see OpenCL's headers. */
#ifndef AK_OPENCL_BACKEND_H
#define AK_OPENCL_BACKEND_H

#include "backend/backend.h"

extern const struct ak_backend_ops ak_ocl_backend;

#endif

/* OpenCL devices as a backend. */
#ifndef AK_OPENCL_BACKEND_H
#define AK_OPENCL_BACKEND_H

#include "backend/backend.h"

extern const struct ak_backend_ops ak_ocl_backend;

#endif

/* Vtable of the OpenCL backend, for engine/backends/list.c. It is not in opencl.h, so that list.c
 * compiles without OpenCL's headers. */
#ifndef AK_OPENCL_BACKEND_H
#define AK_OPENCL_BACKEND_H

#include "engine/backend/backend.h"

extern const struct ak_backend_ops ak_ocl_backend;

#endif

/* The CPU as a backend. */
#ifndef AK_CPU_BACKEND_H
#define AK_CPU_BACKEND_H

#include "backend/backend.h"

extern const struct ak_backend_ops ak_cpu_backend;

#endif

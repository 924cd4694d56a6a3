/* Launches recorded once and enqueued as one, on devices with cl_khr_command_buffer. The extension
 * is provisional: newer headers declare it on request only, older ones never, and its functions are
 * looked up by name. */
#include <string.h>

#define CL_ENABLE_BETA_EXTENSIONS
#include "opencl/opencl.h"

#include <CL/cl_ext.h>

#ifdef cl_khr_command_buffer

#define FUNCTIONS(X)                                                                               \
    X(clCreateCommandBufferKHR)                                                                    \
    X(clCommandNDRangeKernelKHR)                                                                   \
    X(clFinalizeCommandBufferKHR) X(clEnqueueCommandBufferKHR) X(clReleaseCommandBufferKHR)

struct ak_ocl_recorder {
#define POINTER(name) name##_fn name;
    FUNCTIONS(POINTER)
#undef POINTER
};

void ak_ocl_find_recorder(struct ak_ocl *o)
{
    struct ak_ocl_recorder r;
    memset(&r, 0, sizeof r);
    if (!o->device.command_buffers)
        return;
#define LOAD(function)                                                                             \
    *(void **)&r.function =                                                                        \
        o->cl->clGetExtensionFunctionAddressForPlatform(o->device.platform, #function);            \
    if (!r.function) {                                                                             \
        ak_log_line(&o->log, AKUNU_LOG_WARN,                                                       \
                    "opencl: %s has command buffers, but no " #function ": it does without",       \
                    o->device.name);                                                               \
        return;                                                                                    \
    }
    FUNCTIONS(LOAD)
#undef LOAD
    if ((o->recorder = ak_alloc(1, sizeof *o->recorder)))
        *o->recorder = r;
}

cl_int ak_ocl_begin_recording(struct ak_ocl_table *p)
{
    cl_int code;
    ak_ocl_drop_recording(p);
    p->recording.list = p->o->recorder->clCreateCommandBufferKHR(1, &p->queue, NULL, &code);
    return code;
}

cl_int ak_ocl_record(struct ak_ocl_table *p, cl_kernel kernel, uint32_t dims, const size_t *global,
                     const size_t *local)
{
    return p->o->recorder->clCommandNDRangeKernelKHR(p->recording.list, NULL, NULL, kernel, dims,
                                                     NULL, global, local, 0, NULL, NULL, NULL);
}

cl_int ak_ocl_end_recording(struct ak_ocl_table *p)
{
    return p->o->recorder->clFinalizeCommandBufferKHR(p->recording.list);
}

cl_int ak_ocl_replay(struct ak_ocl_table *p)
{
    return p->o->recorder->clEnqueueCommandBufferKHR(0, NULL, p->recording.list, 0, NULL, NULL);
}

void ak_ocl_drop_recording(struct ak_ocl_table *p)
{
    if (p->recording.list)
        p->o->recorder->clReleaseCommandBufferKHR(p->recording.list);
    p->recording.list = NULL;
}

#else

void ak_ocl_find_recorder(struct ak_ocl *o)
{
    (void)o;
}

/* Never called without a recorder. */

cl_int ak_ocl_begin_recording(struct ak_ocl_table *p)
{
    (void)p;
    return CL_INVALID_OPERATION;
}

cl_int ak_ocl_record(struct ak_ocl_table *p, cl_kernel kernel, uint32_t dims, const size_t *global,
                     const size_t *local)
{
    (void)p, (void)kernel, (void)dims, (void)global, (void)local;
    return CL_INVALID_OPERATION;
}

cl_int ak_ocl_end_recording(struct ak_ocl_table *p)
{
    (void)p;
    return CL_INVALID_OPERATION;
}

cl_int ak_ocl_replay(struct ak_ocl_table *p)
{
    (void)p;
    return CL_INVALID_OPERATION;
}

void ak_ocl_drop_recording(struct ak_ocl_table *p)
{
    (void)p;
}

#endif

/* Loads OpenCL's functions from the loader library, and names its error codes. */
#include "opencl/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "base/system.h"

static struct ak_ocl_api functions;
static const struct ak_ocl_api *loaded_api;
static struct ak_error load_error;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* Never closed: drivers leave threads behind. */
static void load_loader(void)
{
    const char *path = ak_env("AKUNU_OPENCL");
    void *library = dlopen(path ? path : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        ak_fail(
            &load_error, AKUNU_ERROR_UNSUPPORTED,
            "no OpenCL: %s (Debian has it as ocl-icd-libopencl1, beside the driver of your device)",
            dlerror());
        return;
    }
#define AK_OCL_LOAD(name)                                                                          \
    *(void **)&functions.name = dlsym(library, #name);                                             \
    if (!functions.name) {                                                                         \
        ak_fail(&load_error, AKUNU_ERROR_UNSUPPORTED,                                              \
                "no OpenCL: the library found has no " #name ", which OpenCL 1.2 has");            \
        return;                                                                                    \
    }
    AK_OCL_FUNCTIONS(AK_OCL_LOAD)
#undef AK_OCL_LOAD
    loaded_api = &functions;
}

const struct ak_ocl_api *ak_ocl_load(struct ak_error *error)
{
    pthread_once(&load_once, load_loader);
    if (!loaded_api && error)
        *error = load_error;
    return loaded_api;
}

const char *ak_ocl_error_name(cl_int code)
{
    switch (code) {
/* clang-format off */
#define NAME(code) case code: return #code;
    NAME(CL_SUCCESS) NAME(CL_DEVICE_NOT_FOUND) NAME(CL_DEVICE_NOT_AVAILABLE)
    NAME(CL_COMPILER_NOT_AVAILABLE) NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    NAME(CL_OUT_OF_RESOURCES) NAME(CL_OUT_OF_HOST_MEMORY) NAME(CL_BUILD_PROGRAM_FAILURE)
    NAME(CL_MAP_FAILURE) NAME(CL_INVALID_VALUE) NAME(CL_INVALID_DEVICE) NAME(CL_INVALID_CONTEXT)
    NAME(CL_INVALID_COMMAND_QUEUE) NAME(CL_INVALID_MEM_OBJECT) NAME(CL_INVALID_BINARY)
    NAME(CL_INVALID_BUILD_OPTIONS) NAME(CL_INVALID_PROGRAM) NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    NAME(CL_INVALID_KERNEL_NAME) NAME(CL_INVALID_KERNEL) NAME(CL_INVALID_ARG_INDEX)
    NAME(CL_INVALID_ARG_VALUE) NAME(CL_INVALID_ARG_SIZE) NAME(CL_INVALID_KERNEL_ARGS)
    NAME(CL_INVALID_WORK_GROUP_SIZE) NAME(CL_INVALID_WORK_ITEM_SIZE)
    NAME(CL_INVALID_GLOBAL_WORK_SIZE) NAME(CL_INVALID_BUFFER_SIZE) NAME(CL_INVALID_OPERATION)
#undef NAME
            /* clang-format on */
            case -9999 : return "an illegal access"; /* NVIDIA's */
    case -1138: return "CL_INVALID_COMMAND_BUFFER_KHR";
    case -1140: return "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR";
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "an error without a name";
    }
}

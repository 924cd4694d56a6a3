/* An OpenCL loader with devices that are memory of this process and compute nothing, for
 * tests of what the host does when something fails (AKUNU_OPENCL names it). Kernels are
 * taken and not run: buffers hold what was written to them, zeros at first.
 *
 * AKUNU_FAKE_OPENCL says what the devices are and what fails; it may change between calls,
 * and then calls are counted anew:
 *
 *     clFinish=3     the third call fails; clFinish=3+ the third and all after it
 *     memory=BYTES   of each device, 1 GiB where not given; what is beyond it cannot be had
 *     unified        it is the host's memory
 *     devices=N      1 where not given
 *     kinds          device 0 is a CPU, device 1 an accelerator, the others GPUs, as all are else
 *     narrow=I       device I runs groups of 64 lanes, which is too few
 *     recording      they have cl_khr_command_buffer, and take it exactly
 *
 * with semicolons between them. What the caller owns is counted (fake_opencl.h). */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "tests/opencl/fake_opencl.h"

enum { DEVICES_MAX = 4 };

struct _cl_platform_id {
    int unused;
};
struct _cl_device_id {
    int number;
};
struct _cl_context {
    int unused;
};
struct _cl_command_queue {
    int unused;
};
struct _cl_program {
    int unused;
};
struct _cl_kernel {
    int unused;
};
struct _cl_mem {
    uint8_t *bytes;
    size_t size;
    bool borrowed;
};

static struct _cl_platform_id platform;
static struct _cl_device_id devices[DEVICES_MAX] = { { 0 }, { 1 }, { 2 }, { 3 } };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_opencl_state state;

static struct {
    char text[256]; /* of the environment, as last seen */
    char function[48];
    uint64_t at, calls;
    bool for_good, unified, recording, kinds;
    uint64_t memory;
    unsigned n_devices, narrow;
} plan;

/* ---- What the environment says ------------------------------------------ */
static void read_word(const char *word)
{
    char name[48];
    unsigned long long number = 0;
    char more = 0;
    int n = sscanf(word, "%47[a-zA-Z]=%llu%c", name, &number, &more);
    if (n >= 1 && strcmp(name, "unified") == 0) {
        plan.unified = true;
    } else if (n >= 1 && strcmp(name, "kinds") == 0) {
        plan.kinds = true;
    } else if (n >= 2 && strcmp(name, "narrow") == 0) {
        plan.narrow = (unsigned)number;
    } else if (n >= 1 && strcmp(name, "recording") == 0) {
        plan.recording = true;
    } else if (n >= 2 && strcmp(name, "memory") == 0) {
        plan.memory = number;
    } else if (n >= 2 && strcmp(name, "devices") == 0) {
        plan.n_devices = number < DEVICES_MAX ? (unsigned)number : DEVICES_MAX;
    } else if (n >= 2) {
        memcpy(plan.function, name, sizeof name);
        plan.at = number;
        plan.for_good = n == 3 && more == '+';
    }
}

static void read_plan(void)
{
    const char *text = getenv("AKUNU_FAKE_OPENCL");
    text = text ? text : "";
    if (plan.text[0] && strcmp(plan.text + 1, text) == 0)
        return;
    memset(&plan, 0, sizeof plan);
    snprintf(plan.text, sizeof plan.text, "=%s", text);
    plan.memory = 1 << 30;
    plan.n_devices = 1;
    plan.narrow = DEVICES_MAX;
    state.failures = 0;
    for (const char *word = text; *word; word += strspn(word, ";")) {
        read_word(word);
        word += strcspn(word, ";");
    }
}

/* Whether this call of `function` is one that fails. */
static bool fails(const char *function)
{
    pthread_mutex_lock(&lock);
    read_plan();
    bool named = strcmp(plan.function, function) == 0;
    plan.calls += named;
    bool failed = named && (plan.calls == plan.at || (plan.for_good && plan.calls > plan.at));
    state.failures += failed;
    pthread_mutex_unlock(&lock);
    return failed;
}

FAKE_OPENCL_API struct fake_opencl_state fake_opencl_state(void)
{
    pthread_mutex_lock(&lock);
    struct fake_opencl_state copy = state;
    pthread_mutex_unlock(&lock);
    return copy;
}

/* ---- Objects ------------------------------------------------------------ */
static void *make(size_t bytes, cl_int error, bool failed, cl_int *code)
{
    void *object = failed ? NULL : calloc(1, bytes);
    if (code)
        *code = object ? CL_SUCCESS : failed ? error : CL_OUT_OF_HOST_MEMORY;
    pthread_mutex_lock(&lock);
    state.objects += object != NULL;
    pthread_mutex_unlock(&lock);
    return object;
}

static cl_int drop(void *object)
{
    pthread_mutex_lock(&lock);
    state.objects--;
    pthread_mutex_unlock(&lock);
    free(object);
    return CL_SUCCESS;
}

static cl_int give(const void *value, size_t bytes, size_t capacity, void *out, size_t *n)
{
    if (n)
        *n = bytes;
    if (out && capacity < bytes)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, bytes);
    return CL_SUCCESS;
}

static cl_int give_text(const char *text, size_t capacity, void *out, size_t *n)
{
    return give(text, strlen(text) + 1, capacity, out, n);
}

#define GIVE(type, value) give(&(type){ value }, sizeof(type), capacity, out, n)

/* ---- Platforms and devices ---------------------------------------------- */
FAKE_OPENCL_API cl_int CL_API_CALL clGetPlatformIDs(cl_uint capacity, cl_platform_id *out,
                                                    cl_uint *n)
{
    if (fails("clGetPlatformIDs"))
        return -1001;
    if (out && capacity > 0)
        out[0] = &platform;
    if (n)
        *n = 1;
    return CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what,
                                                     size_t capacity, void *out, size_t *n)
{
    (void)id, (void)what;
    return fails("clGetPlatformInfo") ? CL_INVALID_VALUE : give_text("Fake", capacity, out, n);
}

FAKE_OPENCL_API cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id id, cl_device_type type,
                                                  cl_uint capacity, cl_device_id *out, cl_uint *n)
{
    (void)id, (void)type;
    if (fails("clGetDeviceIDs"))
        return CL_DEVICE_NOT_FOUND;
    for (cl_uint i = 0; out && i < plan.n_devices && i < capacity; i++)
        out[i] = &devices[i];
    if (n)
        *n = plan.n_devices;
    return CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clGetDeviceInfo(cl_device_id id, cl_device_info what,
                                                   size_t capacity, void *out, size_t *n)
{
    static const cl_device_type kinds[DEVICES_MAX] = { CL_DEVICE_TYPE_CPU,
                                                       CL_DEVICE_TYPE_ACCELERATOR,
                                                       CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_GPU };
    char name[] = "Fake device 0";
    name[sizeof name - 2] = (char)('0' + id->number);
    if (fails("clGetDeviceInfo"))
        return CL_INVALID_DEVICE;
    switch (what) {
    case CL_DEVICE_NAME: return give_text(name, capacity, out, n);
    case CL_DEVICE_VENDOR: return give_text("Nobody", capacity, out, n);
    case CL_DEVICE_VERSION: return give_text("OpenCL 1.2 fake", capacity, out, n);
    case CL_DRIVER_VERSION: return give_text("1", capacity, out, n);
    case CL_DEVICE_EXTENSIONS:
        return give_text(plan.recording ? "cl_khr_fp16 cl_khr_command_buffer" : "cl_khr_fp16",
                         capacity, out, n);
    case CL_DEVICE_TYPE:
        return GIVE(cl_device_type, plan.kinds ? kinds[id->number] : CL_DEVICE_TYPE_GPU);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return GIVE(cl_bool, plan.unified);
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
    case CL_DEVICE_AVAILABLE: return GIVE(cl_bool, CL_TRUE);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return GIVE(cl_ulong, plan.memory);
    case CL_DEVICE_LOCAL_MEM_SIZE: return GIVE(cl_ulong, 65536);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return GIVE(cl_uint, 1024);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return GIVE(cl_uint, 8);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY: return GIVE(cl_uint, 1000);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return GIVE(size_t, (unsigned)id->number == plan.narrow ? 64 : 1024);
    default: return CL_INVALID_VALUE;
    }
}

/* ---- Contexts, queues, programs, kernels -------------------------------- */
FAKE_OPENCL_API cl_context CL_API_CALL
clCreateContext(const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
                void(CL_CALLBACK *on_error)(const char *, const void *, size_t, void *), void *user,
                cl_int *code)
{
    (void)properties, (void)n, (void)ids, (void)on_error, (void)user;
    return make(sizeof(struct _cl_context), CL_DEVICE_NOT_AVAILABLE, fails("clCreateContext"),
                code);
}

FAKE_OPENCL_API cl_int CL_API_CALL clReleaseContext(cl_context context)
{
    return drop(context);
}

FAKE_OPENCL_API cl_command_queue CL_API_CALL clCreateCommandQueue(
    cl_context context, cl_device_id id, cl_command_queue_properties properties, cl_int *code)
{
    (void)context, (void)id, (void)properties;
    return make(sizeof(struct _cl_command_queue), CL_OUT_OF_RESOURCES,
                fails("clCreateCommandQueue"), code);
}

FAKE_OPENCL_API cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue queue)
{
    return drop(queue);
}

FAKE_OPENCL_API cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint n,
                                                                 const char **sources,
                                                                 const size_t *lengths,
                                                                 cl_int *code)
{
    (void)context, (void)n, (void)sources, (void)lengths;
    return make(sizeof(struct _cl_program), CL_OUT_OF_HOST_MEMORY,
                fails("clCreateProgramWithSource"), code);
}

FAKE_OPENCL_API cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context, cl_uint n,
                                                                 const cl_device_id *ids,
                                                                 const size_t *lengths,
                                                                 const unsigned char **binaries,
                                                                 cl_int *of_each, cl_int *code)
{
    (void)context, (void)n, (void)ids;
    bool fine = !fails("clCreateProgramWithBinary") && lengths[0] == 4 &&
                memcmp(binaries[0], "fake", 4) == 0;
    *of_each = fine ? CL_SUCCESS : CL_INVALID_BINARY;
    return make(sizeof(struct _cl_program), CL_INVALID_BINARY, !fine, code);
}

FAKE_OPENCL_API cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint n,
                                                  const cl_device_id *ids, const char *options,
                                                  void(CL_CALLBACK *done)(cl_program, void *),
                                                  void *user)
{
    (void)program, (void)n, (void)ids, (void)options, (void)done, (void)user;
    return fails("clBuildProgram") ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id id,
                                                         cl_program_build_info what,
                                                         size_t capacity, void *out, size_t *n)
{
    (void)program, (void)id, (void)what;
    static const char log[] = "\n  kernels.cl:7:3: error: this compiler\thas no '\x1b[1mfloat4'\n";
    return fails("clGetProgramBuildInfo") ? CL_INVALID_VALUE : give_text(log, capacity, out, n);
}

FAKE_OPENCL_API cl_int CL_API_CALL clGetProgramInfo(cl_program program, cl_program_info what,
                                                    size_t capacity, void *out, size_t *n)
{
    (void)program;
    if (fails("clGetProgramInfo"))
        return CL_INVALID_PROGRAM;
    if (what == CL_PROGRAM_BINARY_SIZES)
        return GIVE(size_t, 4);
    if (what != CL_PROGRAM_BINARIES)
        return CL_INVALID_VALUE;
    memcpy(*(unsigned char **)out, "fake", 4);
    return CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clReleaseProgram(cl_program program)
{
    return drop(program);
}

FAKE_OPENCL_API cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char *name,
                                                     cl_int *code)
{
    (void)program, (void)name;
    return make(sizeof(struct _cl_kernel), CL_INVALID_KERNEL_NAME, fails("clCreateKernel"), code);
}

FAKE_OPENCL_API cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel)
{
    return drop(kernel);
}

FAKE_OPENCL_API cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint i, size_t bytes,
                                                  const void *value)
{
    (void)kernel, (void)i;
    return fails("clSetKernelArg") || bytes == 0 || !value ? CL_INVALID_ARG_VALUE : CL_SUCCESS;
}

/* ---- Buffers ------------------------------------------------------------ */
FAKE_OPENCL_API cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags,
                                                  size_t bytes, void *host, cl_int *code)
{
    (void)context;
    bool borrowed = flags & CL_MEM_USE_HOST_PTR, failed = fails("clCreateBuffer");
    pthread_mutex_lock(&lock);
    bool fits = borrowed || state.bytes + bytes <= plan.memory;
    pthread_mutex_unlock(&lock);
    cl_mem memory = make(sizeof *memory, CL_MEM_OBJECT_ALLOCATION_FAILURE,
                         failed || !fits || bytes == 0 || borrowed != (host != NULL), code);
    if (!memory)
        return NULL;
    *memory = (struct _cl_mem){ borrowed ? host : calloc(1, bytes), bytes, borrowed };
    pthread_mutex_lock(&lock);
    *(borrowed ? &state.borrowed_bytes : &state.bytes) += bytes;
    pthread_mutex_unlock(&lock);
    return memory;
}

FAKE_OPENCL_API cl_int CL_API_CALL clReleaseMemObject(cl_mem memory)
{
    pthread_mutex_lock(&lock);
    *(memory->borrowed ? &state.borrowed_bytes : &state.bytes) -= memory->size;
    pthread_mutex_unlock(&lock);
    if (!memory->borrowed)
        free(memory->bytes);
    return drop(memory);
}

static bool lies_in(cl_mem memory, size_t at, size_t bytes)
{
    return memory->bytes && at <= memory->size && bytes <= memory->size - at && bytes > 0;
}

FAKE_OPENCL_API cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue queue, cl_mem from,
                                                       cl_bool waits, size_t at, size_t bytes,
                                                       void *to, cl_uint n, const cl_event *after,
                                                       cl_event *event)
{
    (void)queue, (void)waits, (void)n, (void)after, (void)event;
    if (fails("clEnqueueReadBuffer"))
        return CL_OUT_OF_RESOURCES;
    if (!lies_in(from, at, bytes))
        return CL_INVALID_VALUE;
    memcpy(to, from->bytes + at, bytes);
    return CL_SUCCESS;
}

/* Of two dimensions, into whole rows of the host. */
FAKE_OPENCL_API cl_int CL_API_CALL clEnqueueReadBufferRect(
    cl_command_queue queue, cl_mem from, cl_bool waits, const size_t *at, const size_t *to_at,
    const size_t *region, size_t row, size_t slice, size_t to_row, size_t to_slice, void *to,
    cl_uint n, const cl_event *after, cl_event *event)
{
    (void)queue, (void)waits, (void)slice, (void)to_slice, (void)n, (void)after, (void)event;
    if (fails("clEnqueueReadBufferRect"))
        return CL_OUT_OF_RESOURCES;
    if (region[2] != 1 || at[2] || to_at[0] || to_at[1] || to_at[2] || row < region[0] ||
        to_row < region[0] || region[1] == 0 ||
        !lies_in(from, at[1] * row + at[0], (region[1] - 1) * row + region[0]))
        return CL_INVALID_VALUE;
    for (size_t i = 0; i < region[1]; i++)
        memcpy((char *)to + i * to_row, from->bytes + (at[1] + i) * row + at[0], region[0]);
    return CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem to,
                                                        cl_bool waits, size_t at, size_t bytes,
                                                        const void *from, cl_uint n,
                                                        const cl_event *after, cl_event *event)
{
    (void)queue, (void)waits, (void)n, (void)after, (void)event;
    if (fails("clEnqueueWriteBuffer"))
        return CL_OUT_OF_RESOURCES;
    if (!lies_in(to, at, bytes) || to->borrowed)
        return CL_INVALID_VALUE;
    memcpy(to->bytes + at, from, bytes);
    return CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue queue, cl_mem to,
                                                       const void *pattern, size_t pattern_bytes,
                                                       size_t at, size_t bytes, cl_uint n,
                                                       const cl_event *after, cl_event *event)
{
    (void)queue, (void)n, (void)after, (void)event;
    if (fails("clEnqueueFillBuffer"))
        return CL_OUT_OF_RESOURCES;
    if (!lies_in(to, at, bytes) || to->borrowed || bytes % pattern_bytes != 0)
        return CL_INVALID_VALUE;
    for (size_t i = 0; i < bytes; i += pattern_bytes)
        memcpy(to->bytes + at + i, pattern, pattern_bytes);
    return CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from,
                                                       cl_mem to, size_t from_at, size_t to_at,
                                                       size_t bytes, cl_uint n,
                                                       const cl_event *after, cl_event *event)
{
    (void)queue, (void)n, (void)after, (void)event;
    if (fails("clEnqueueCopyBuffer"))
        return CL_OUT_OF_RESOURCES;
    if (!lies_in(from, from_at, bytes) || !lies_in(to, to_at, bytes))
        return CL_INVALID_VALUE;
    memmove(to->bytes + to_at, from->bytes + from_at, bytes);
    return CL_SUCCESS;
}

/* ---- Work --------------------------------------------------------------- */
static cl_int check_grid(cl_uint dims, const size_t *global, const size_t *local)
{
    for (cl_uint i = 0; i < dims; i++)
        if (global[i] == 0 || (local && (local[i] == 0 || global[i] % local[i] != 0)))
            return CL_INVALID_WORK_GROUP_SIZE;
    return CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                          cl_uint dims, const size_t *offset,
                                                          const size_t *global, const size_t *local,
                                                          cl_uint n, const cl_event *after,
                                                          cl_event *event)
{
    (void)queue, (void)kernel, (void)offset, (void)n, (void)after, (void)event;
    return fails("clEnqueueNDRangeKernel") ? CL_OUT_OF_RESOURCES : check_grid(dims, global, local);
}

FAKE_OPENCL_API cl_int CL_API_CALL clFlush(cl_command_queue queue)
{
    (void)queue;
    return fails("clFlush") ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

FAKE_OPENCL_API cl_int CL_API_CALL clFinish(cl_command_queue queue)
{
    (void)queue;
    return fails("clFinish") ? CL_INVALID_COMMAND_QUEUE : CL_SUCCESS;
}

/* ---- Recorded lists ----------------------------------------------------- */
#ifdef cl_khr_command_buffer

struct _cl_command_buffer_khr {
    unsigned n;
    bool whole;
};

static cl_command_buffer_khr CL_API_CALL
create_list(cl_uint n, const cl_command_queue *queues,
            const cl_command_buffer_properties_khr *properties, cl_int *code)
{
    (void)properties;
    return make(sizeof(struct _cl_command_buffer_khr), CL_INCOMPATIBLE_COMMAND_QUEUE_KHR,
                fails("clCreateCommandBufferKHR") || n != 1 || !queues[0], code);
}

static cl_int CL_API_CALL record_kernel(cl_command_buffer_khr list, cl_command_queue queue,
                                        const cl_ndrange_kernel_command_properties_khr *properties,
                                        cl_kernel kernel, cl_uint dims, const size_t *offset,
                                        const size_t *global, const size_t *local, cl_uint n,
                                        const cl_sync_point_khr *after, cl_sync_point_khr *point,
                                        cl_mutable_command_khr *handle)
{
    (void)queue, (void)properties, (void)kernel, (void)offset, (void)n, (void)after, (void)point,
        (void)handle;
    if (fails("clCommandNDRangeKernelKHR"))
        return CL_OUT_OF_RESOURCES;
    if (list->whole)
        return CL_INVALID_OPERATION;
    list->n++;
    return check_grid(dims, global, local);
}

static cl_int CL_API_CALL end_list(cl_command_buffer_khr list)
{
    if (fails("clFinalizeCommandBufferKHR") || list->whole || list->n == 0)
        return CL_INVALID_OPERATION;
    list->whole = true;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL enqueue_list(cl_uint n_queues, cl_command_queue *queues,
                                       cl_command_buffer_khr list, cl_uint n, const cl_event *after,
                                       cl_event *event)
{
    (void)n_queues, (void)queues, (void)n, (void)after, (void)event;
    if (fails("clEnqueueCommandBufferKHR"))
        return CL_OUT_OF_RESOURCES;
    if (!list->whole)
        return CL_INVALID_OPERATION;
    pthread_mutex_lock(&lock);
    state.replays++;
    pthread_mutex_unlock(&lock);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_list(cl_command_buffer_khr list)
{
    return drop(list);
}

static const struct {
    const char *name;
    void (*function)(void);
} extensions[] = {
    { "clCreateCommandBufferKHR", (void (*)(void))create_list },
    { "clCommandNDRangeKernelKHR", (void (*)(void))record_kernel },
    { "clFinalizeCommandBufferKHR", (void (*)(void))end_list },
    { "clEnqueueCommandBufferKHR", (void (*)(void))enqueue_list },
    { "clReleaseCommandBufferKHR", (void (*)(void))release_list },
};

FAKE_OPENCL_API void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id id,
                                                                           const char *name)
{
    (void)id;
    if (fails("clGetExtensionFunctionAddressForPlatform"))
        return NULL;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (strcmp(extensions[i].name, name) == 0)
            return *(void *const *)(const void *)&extensions[i].function;
    return NULL;
}

#else

FAKE_OPENCL_API void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id id,
                                                                           const char *name)
{
    (void)id, (void)name;
    return NULL;
}

#endif

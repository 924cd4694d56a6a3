/* Measures how fast the device reads its memory: the limit of decoding. */
#include "base/system.h"
#include "opencl/opencl.h"

enum { LANES = 64, GROUPS_PER_UNIT = 16, RUNS_MIN = 3, BATCH_MAX = 1 << 12 };
static const uint64_t bytes_min = (uint64_t)192 << 20, bytes_max = (uint64_t)1 << 30;

struct probe {
    const struct ak_ocl *o;
    cl_kernel kernel;
    cl_mem memory, sink;
    uint64_t bytes;
};

/* Seconds of n reads in sequence; < 0: the device failed. */
static double time_reads(const struct probe *p, uint32_t n)
{
    const struct ak_ocl_api *cl = p->o->cl;
    /* a CPU runs a group's lanes one after another: with one lane it reads contiguous memory */
    size_t local = p->o->device.cpu ? 1 : LANES,
           global = (size_t)p->o->device.units * GROUPS_PER_UNIT * local;
    double start = ak_seconds();
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; i < n && code == CL_SUCCESS; i++)
        code = cl->clEnqueueNDRangeKernel(p->o->queue, p->kernel, 1, NULL, &global, &local, 0, NULL,
                                          NULL);
    if (code != CL_SUCCESS || cl->clFinish(p->o->queue) != CL_SUCCESS)
        return -1.0;
    double seconds = ak_seconds() - start;
    return seconds > 1e-9 ? seconds : 1e-9;
}

/* Enough reads in one go that the time of a launch is small. */
static ak_status measure_reads(const struct probe *p, double *out, struct ak_error *error)
{
    uint32_t batch = 1;
    double best = 1e9, seconds = time_reads(p, 1), begin = ak_seconds();
    while (seconds > 0.0 && seconds < 0.01 && batch < BATCH_MAX)
        seconds = time_reads(p, batch *= 2);
    for (int i = 0; seconds > 0.0 && (i < RUNS_MIN || ak_seconds() - begin < 0.1); i++) {
        seconds = time_reads(p, batch);
        best = seconds < best ? seconds : best;
    }
    if (seconds <= 0.0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s failed while its bandwidth was measured",
                       p->o->device.name);
    *out = (double)p->bytes * batch / best;
    return AKUNU_OK;
}

static ak_status set_up(struct probe *p, cl_program program, struct ak_error *error)
{
    const struct ak_ocl_api *cl = p->o->cl;
    const cl_uint zero = 0;
    cl_ulong n = p->bytes / 16;
    cl_int code;
    AK_TRY(ak_ocl_create_buffer(p->o, p->bytes, "a measurement", &p->memory, error));
    AK_TRY(ak_ocl_create_buffer(p->o, sizeof zero, "a measurement", &p->sink, error));
    p->kernel = cl->clCreateKernel(program, "probe_read", &code);
    if (code == CL_SUCCESS)
        code = cl->clSetKernelArg(p->kernel, 0, sizeof p->memory, &p->memory);
    if (code == CL_SUCCESS)
        code = cl->clSetKernelArg(p->kernel, 1, sizeof n, &n);
    if (code == CL_SUCCESS)
        code = cl->clSetKernelArg(p->kernel, 2, sizeof p->sink, &p->sink);
    if (code == CL_SUCCESS)
        code = cl->clEnqueueFillBuffer(p->o->queue, p->memory, &zero, sizeof zero, 0,
                                       (size_t)p->bytes, 0, NULL, NULL);
    return code == CL_SUCCESS ? AKUNU_OK :
                                ak_ocl_fail(p->o, code, "a measurement", p->bytes, error);
}

/* Larger than caches, as far as memory allows. */
static uint64_t bytes_to_read(const struct ak_ocl_device *device)
{
    uint64_t bytes = device->memory / 32;
    bytes = bytes > bytes_min ? bytes : bytes_min;
    bytes = bytes < bytes_max ? bytes : bytes_max;
    bytes = bytes < device->memory / 4 ? bytes : device->memory / 4;
    return (bytes < device->max_allocation ? bytes : device->max_allocation) / 4096 * 4096;
}

ak_status ak_ocl_measure_bandwidth(struct ak_backend *b, const struct ak_weights *weights,
                                   unsigned n_threads, double *out, struct ak_error *error)
{
    struct ak_ocl *o = (struct ak_ocl *)b;
    struct probe p = { .o = o, .bytes = bytes_to_read(&o->device) };
    cl_program program;
    (void)weights, (void)n_threads;
    AK_TRY(ak_ocl_build_probe(o, &program, error));
    ak_status status = set_up(&p, program, error);
    if (status == AKUNU_OK)
        status = measure_reads(&p, out, error);
    if (p.kernel)
        o->cl->clReleaseKernel(p.kernel);
    if (p.memory)
        o->cl->clReleaseMemObject(p.memory);
    if (p.sink)
        o->cl->clReleaseMemObject(p.sink);
    o->cl->clReleaseProgram(program);
    return status;
}

/* Finds and describes OpenCL devices. */
#include "opencl/device.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { PLATFORMS_MAX = 16, LANES = 256 };

/* Leaves printable ASCII: names come from drivers. */
static void clean_text(char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
            text[i] = '?';
    while (n > 0 && text[n - 1] == ' ')
        text[--n] = 0;
}

static void read_text(const struct ak_ocl_api *cl, cl_device_id id, cl_device_info what, char *out,
                      size_t capacity)
{
    size_t n = 0;
    out[0] = 0;
    if (cl->clGetDeviceInfo(id, what, capacity - 1, out, &n) == CL_SUCCESS)
        out[n < capacity ? n : capacity - 1] = 0;
    clean_text(out);
}

#define GET(cl, id, what, variable)                                                                \
    ((cl)->clGetDeviceInfo(id, what, sizeof(variable), &(variable), NULL) == CL_SUCCESS)

static bool has_extension(const char *all, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = all; (at = strstr(at, name)); at += n)
        if ((at == all || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

static void read_extensions(const struct ak_ocl_api *cl, struct ak_ocl_device *device)
{
    size_t n = 0;
    if (cl->clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, 0, NULL, &n) != CL_SUCCESS ||
        n == 0 || n > 1 << 20)
        return;
    char *all = ak_alloc(n + 1, 1);
    if (all && cl->clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, n, all, NULL) == CL_SUCCESS) {
        device->half_floats = has_extension(all, "cl_khr_fp16");
        device->integer_dot = has_extension(all, "cl_khr_integer_dot_product");
        device->command_buffers = has_extension(all, "cl_khr_command_buffer");
    }
    ak_free(all);
}

static void describe_device(const struct ak_ocl_api *cl, cl_platform_id platform, cl_device_id id,
                            struct ak_ocl_device *out)
{
    cl_device_type type = 0;
    cl_bool unified = CL_FALSE, compiler = CL_FALSE, little = CL_FALSE, available = CL_FALSE;
    cl_ulong memory = 0, max_allocation = 0, local = 0;
    cl_uint units = 0, mhz = 0;
    size_t group = 0, n = 0;
    *out = (struct ak_ocl_device){ .platform = platform, .id = id };
    read_text(cl, id, CL_DEVICE_NAME, out->name, sizeof out->name);
    read_text(cl, id, CL_DEVICE_VENDOR, out->vendor, sizeof out->vendor);
    read_text(cl, id, CL_DEVICE_VERSION, out->version, sizeof out->version);
    read_text(cl, id, CL_DRIVER_VERSION, out->driver, sizeof out->driver);
    if (cl->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof out->platform_name - 1,
                              out->platform_name, &n) == CL_SUCCESS)
        clean_text(out->platform_name);
    bool known = GET(cl, id, CL_DEVICE_TYPE, type) &&
                 GET(cl, id, CL_DEVICE_HOST_UNIFIED_MEMORY, unified) &&
                 GET(cl, id, CL_DEVICE_COMPILER_AVAILABLE, compiler) &&
                 GET(cl, id, CL_DEVICE_ENDIAN_LITTLE, little) &&
                 GET(cl, id, CL_DEVICE_AVAILABLE, available) &&
                 GET(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE, memory) &&
                 GET(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, max_allocation) &&
                 GET(cl, id, CL_DEVICE_LOCAL_MEM_SIZE, local) &&
                 GET(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS, units) &&
                 GET(cl, id, CL_DEVICE_MAX_CLOCK_FREQUENCY, mhz) &&
                 GET(cl, id, CL_DEVICE_MAX_WORK_GROUP_SIZE, group);
    out->gpu = type & CL_DEVICE_TYPE_GPU;
    out->cpu = type & CL_DEVICE_TYPE_CPU;
    out->unified = unified;
    out->memory = memory;
    out->max_allocation = max_allocation;
    out->local_memory = local;
    out->units = units;
    out->mhz = mhz;
    out->group = group;
    out->usable = known && compiler && little && available && group >= LANES;
    read_extensions(cl, out);
}

static int device_rank(const struct ak_ocl_device *device)
{
    return device->gpu ? 0 : device->cpu ? 2 : 1;
}

static ak_status list_devices(struct ak_ocl_device out[AK_OCL_DEVICES_MAX], uint32_t *n,
                              struct ak_error *error)
{
    const struct ak_ocl_api *cl = ak_ocl_load(error);
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_device_id ids[AK_OCL_DEVICES_MAX];
    cl_uint n_platforms = 0, n_ids;
    *n = 0;
    if (!cl)
        return AKUNU_ERROR_UNSUPPORTED;
    cl_int code = cl->clGetPlatformIDs(PLATFORMS_MAX, platforms, &n_platforms);
    if (code != CL_SUCCESS || n_platforms == 0)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "OpenCL has no driver here (%s): install your device's, or pocl-opencl-icd for the CPU",
            ak_ocl_error_name(code));
    n_platforms = n_platforms < PLATFORMS_MAX ? n_platforms : PLATFORMS_MAX;
    for (int wanted = 0; wanted <= 2; wanted++)
        for (cl_uint p = 0; p < n_platforms; p++) {
            if (cl->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, AK_OCL_DEVICES_MAX, ids,
                                   &n_ids) != CL_SUCCESS)
                continue;
            for (cl_uint i = 0; i < n_ids && i < AK_OCL_DEVICES_MAX && *n < AK_OCL_DEVICES_MAX;
                 i++) {
                describe_device(cl, platforms[p], ids[i], &out[*n]);
                *n += device_rank(&out[*n]) == wanted;
            }
        }
    if (*n == 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "OpenCL has a driver here, but no device");
    return AKUNU_OK;
}

/* One thread at a time: drivers look for their devices at the first call, and PoCL reports none to
 * a second thread that calls meanwhile. */
ak_status ak_ocl_list_devices(struct ak_ocl_device out[AK_OCL_DEVICES_MAX], uint32_t *n,
                              struct ak_error *error)
{
    static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&list_lock);
    ak_status status = list_devices(out, n, error);
    pthread_mutex_unlock(&list_lock);
    return status;
}

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == n)
            return true;
    }
    return n == 0;
}

static bool is_number(const char *text, uint32_t n, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *out = (uint32_t)value;
    return isdigit((unsigned char)*text) && *end == 0 && value < n;
}

ak_status ak_ocl_find_device(const char *wanted, struct ak_ocl_device *out, struct ak_error *error)
{
    uint32_t n, chosen;
    struct ak_ocl_device *all = ak_alloc(AK_OCL_DEVICES_MAX, sizeof *all);
    if (!all)
        return ak_fail_memory(error, "a list of OpenCL devices", 0);
    ak_status status = ak_ocl_list_devices(all, &n, error);
    if (status == AKUNU_OK && (!wanted || !is_number(wanted, n, &chosen))) {
        for (chosen = 0;
             chosen < n && !(wanted ? contains(all[chosen].name, wanted) : all[chosen].usable);)
            chosen++;
        if (chosen == n)
            status = ak_fail(error, AKUNU_ERROR_ARGUMENT,
                             "none of the %u OpenCL devices is %s%s%s; --list-devices names them",
                             (unsigned)n, wanted ? "called \"" : "usable", wanted ? wanted : "",
                             wanted ? "\"" : "");
    }
    if (status == AKUNU_OK && !all[chosen].usable)
        status = ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                         "the OpenCL device %s cannot be used: it needs a compiler and groups of "
                         "%d lanes, and has groups of %zu",
                         all[chosen].name, LANES, all[chosen].group);
    if (status == AKUNU_OK)
        *out = all[chosen];
    ak_free(all);
    return status;
}

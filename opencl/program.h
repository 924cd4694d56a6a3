/* Programs of the kernels in opencl/kernels, built for a device or taken from where an
 * earlier process has kept what the device's compiler made:
 *
 *     CACHE/opencl/KEY.bin, KEY a hash over device, driver, options and sources:
 *     "akunuOCL", 16 bytes of a hash over the rest, the rest: the device's binary */
#ifndef AK_OPENCL_PROGRAM_H
#define AK_OPENCL_PROGRAM_H

#include "base/error.h"
#include "opencl/device.h"

struct ak_ocl_builder {
    const struct ak_ocl_api *cl;
    const struct ak_ocl_device *device;
    cl_context context;
    const char *cache_dir; /* NULL: nothing is kept */
    const struct ak_log *log;
};

/* The texts of opencl/kernels. */
extern const char ak_ocl_source_shared[], ak_ocl_source_types[], ak_ocl_source_gemv[],
    ak_ocl_source_gemm[], ak_ocl_source_group[], ak_ocl_source_rows[], ak_ocl_source_recurrent[],
    ak_ocl_source_kv[], ak_ocl_source_attention[], ak_ocl_source_online_softmax[],
    ak_ocl_source_probe[];

enum { AK_OCL_SOURCES_MAX = 24 };

/* `sources` are put together as they follow each other. */
ak_status ak_ocl_build_program(const struct ak_ocl_builder *b, const char *const *sources,
                               uint32_t n, const char *options, cl_program *out,
                               struct ak_error *error);

#endif

/* The version, how the library was built, and the instruction sets that this machine can run. */
#include "akunu/akunu.h"
#include "engine/backends/list.h"
#include "config.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *akunu_version(void)
{
    return TEXT(AKUNU_VERSION_MAJOR) "." TEXT(AKUNU_VERSION_MINOR) "." TEXT(AKUNU_VERSION_PATCH);
}

const char *akunu_build_info(void)
{
    return "akunu " TEXT(AKUNU_VERSION_MAJOR) "." TEXT(AKUNU_VERSION_MINOR) "." TEXT(
        AKUNU_VERSION_PATCH)
#if defined(__clang__)
        ", clang " TEXT(__clang_major__) "." TEXT(__clang_minor__)
#else
        ", gcc " TEXT(__GNUC__) "." TEXT(__GNUC_MINOR__)
#endif
#if defined(__x86_64__)
            ", x86-64"
#elif defined(__aarch64__)
            ", arm64"
#endif
            ", kernels: " AK_ISA_BUILT;
}

const char *akunu_cpu_best(void)
{
    const char *best = NULL;
    for (size_t i = 0; akunu_cpu_name(i); i++)
        best = akunu_cpu_name(i);
    return best;
}

const char *akunu_cpu_name(size_t i)
{
    return ak_backend_list()[0]->isa_name(i);
}

const char *akunu_cpu_problem(const char *name)
{
    return name ? ak_backend_list()[0]->isa_problem(name) : NULL;
}

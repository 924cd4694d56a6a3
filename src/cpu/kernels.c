/* Which ISA bundles this build contains, which of them this machine can run, and how a bundle's
 * table is filled: parents first, then overrides. */
#include "cpu/kernels.h"

#include <string.h>

#include "config.h"

#ifdef HAVE_AK_AVX2
#include <cpuid.h>
#endif

#ifdef HAVE_AK_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

static const char *const names[AK_CPU_ISA_COUNT] = { "scalar", "avx2", "avxvnni",  "avx512",
                                                     "amx",    "neon", "neon_i8mm" };

const char *ak_cpu_isa_name(enum ak_cpu_isa isa)
{
    return names[isa];
}

#ifdef HAVE_AK_AVX2
/* clang 14 has no name for F16C in __builtin_cpu_supports; its operating-system support is
 * AVX's. */
static bool machine_has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 29)) != 0;
}

static bool machine_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && machine_has_f16c();
}
#endif

#ifdef HAVE_AK_AVXVNNI
/* Neither gcc 12 nor clang 14 has a name for AVX-VNNI. */
static bool machine_has_avxvnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 4)) != 0;
}
#endif

#ifdef HAVE_AK_AVX512
static bool machine_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

static bool machine_has_avx512bf16(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 5)) != 0;
}
#endif

#ifdef HAVE_AK_AMX
/* Requests the tile registers: they are large, so Linux saves them only for processes that ask. */
static bool kernel_grants_tiles(void)
{
    /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static bool machine_has_amx(void)
{
    unsigned a, b, c, d;
    const unsigned tile = 1u << 24, int8 = 1u << 25;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & tile) && (d & int8) &&
           kernel_grants_tiles();
}

/* BF16 products of AMX: optional within the bundle. Activations are rounded by AVX512-BF16. */
static bool machine_has_amx_bf16(void)
{
    unsigned a, b, c, d;
    return machine_has_avx512bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (d & (1u << 22)) != 0;
}
#endif

#ifdef HAVE_AK_NEON
static bool machine_has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & (1ul << 20)) != 0; /* HWCAP_ASIMDDP */
}
#endif

#ifdef HAVE_AK_NEON_I8MM
static bool machine_has_i8mm(void)
{
    return (getauxval(AT_HWCAP2) & (1ul << 13)) != 0; /* HWCAP2_I8MM */
}
#endif

bool ak_cpu_isa_is_usable(enum ak_cpu_isa isa)
{
    switch (isa) {
    case AK_CPU_ISA_SCALAR: return true;
#ifdef HAVE_AK_AVX2
    case AK_CPU_ISA_AVX2: return machine_has_avx2();
#endif
#ifdef HAVE_AK_AVXVNNI
    case AK_CPU_ISA_AVXVNNI: return machine_has_avx2() && machine_has_avxvnni();
#endif
#ifdef HAVE_AK_AVX512
    case AK_CPU_ISA_AVX512: return machine_has_avx2() && machine_has_avx512();
#endif
#ifdef HAVE_AK_AMX
    case AK_CPU_ISA_AMX: return ak_cpu_isa_is_usable(AK_CPU_ISA_AVX512) && machine_has_amx();
#endif
#ifdef HAVE_AK_NEON
    case AK_CPU_ISA_NEON: return machine_has_dotprod();
#endif
#ifdef HAVE_AK_NEON_I8MM
    case AK_CPU_ISA_NEON_I8MM: return machine_has_dotprod() && machine_has_i8mm();
#endif
    default: return false;
    }
}

enum ak_cpu_isa ak_cpu_best_isa(void)
{
    enum ak_cpu_isa best = AK_CPU_ISA_SCALAR;
    for (int i = 0; i < AK_CPU_ISA_COUNT; i++)
        if (ak_cpu_isa_is_usable((enum ak_cpu_isa)i))
            best = (enum ak_cpu_isa)i;
    return best;
}

bool ak_cpu_parse_isa(const char *name, enum ak_cpu_isa *out)
{
    for (int i = 0; i < AK_CPU_ISA_COUNT; i++) {
        if (strcmp(name, names[i]) == 0 && ak_cpu_isa_is_usable((enum ak_cpu_isa)i)) {
            *out = (enum ak_cpu_isa)i;
            return true;
        }
    }
    return false;
}

void ak_cpu_fill_kernels(enum ak_cpu_isa isa, struct ak_cpu_kernels *out)
{
    memset(out, 0, sizeof *out);
    ak_scalar_set_kernels(out);
#ifdef HAVE_AK_AVX2
    if (isa >= AK_CPU_ISA_AVX2 && isa <= AK_CPU_ISA_AMX)
        ak_avx2_set_kernels(out);
#endif
#ifdef HAVE_AK_AVXVNNI
    if (isa == AK_CPU_ISA_AVXVNNI)
        ak_avxvnni_set_kernels(out);
#endif
#ifdef HAVE_AK_AVX512
    if (isa == AK_CPU_ISA_AVX512 || isa == AK_CPU_ISA_AMX) {
        ak_avx512_set_kernels(out);
        if (!machine_has_avx512bf16())
            out->probe_bf16 = NULL;
#ifdef HAVE_AK_AVX512BF16
        else
            ak_avx512bf16_set_kernels(out);
#endif
    }
#endif
#ifdef HAVE_AK_AMX
    if (isa == AK_CPU_ISA_AMX) {
        ak_amx_set_kernels(out);
        if (machine_has_amx_bf16())
            ak_amx_set_bf16_kernels(out);
    }
#endif
#ifdef HAVE_AK_NEON
    if (isa == AK_CPU_ISA_NEON || isa == AK_CPU_ISA_NEON_I8MM)
        ak_neon_set_kernels(out);
#endif
#ifdef HAVE_AK_NEON_I8MM
    if (isa == AK_CPU_ISA_NEON_I8MM)
        ak_neon_i8mm_set_kernels(out);
#endif
    (void)isa;
}

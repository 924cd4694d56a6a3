/* Detects the ISAs. configure compiles this file into a program of its own, with
 * HAVE_AK_<NAME> defined and without a config.h, to find what --enable-isa=native builds. */
#include "engine/cpu/isa.h"

#include <stddef.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#define HAVE_AK_SCALAR 1

/* ---- Detection ---------------------------------------------------------- */
#ifdef __x86_64__
enum { EAX, EBX, ECX, EDX };

/* Not every build has an ISA that asks these. */
__attribute__((unused)) static bool has_cpuid_bit(unsigned leaf, unsigned subleaf, unsigned reg,
                                                  unsigned bit)
{
    unsigned r[4];
    return __get_cpuid_count(leaf, subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) &&
           (r[reg] >> bit & 1) != 0;
}

/* Requests the tile registers: they are large, so Linux saves them only for processes that ask. */
__attribute__((unused)) static bool system_grants_tiles(void)
{
    /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#endif

/* What is not built is left out, since its detection may be another machine's. */
#define DETECT_0(name, expression)
#define DETECT_1(name, expression)                                                                 \
    static bool has_##name(void)                                                                   \
    {                                                                                              \
        return expression;                                                                         \
    }
#define DETECT_(built, name, expression) DETECT_##built(name, expression)
#define DETECT(built, name, expression) DETECT_(built, name, expression)
#define ISA(NAME, name, PARENT, detect) DETECT(HAVE_AK_##NAME, name, detect)
#define ISA_OPTION(NAME, name, PARENT, detect) DETECT(HAVE_AK_##NAME, name, detect)
#include "engine/cpu/isa.def"

/* ---- Tables ------------------------------------------------------------- */
#define IF_BUILT_0(x) NULL
#define IF_BUILT_1(x) x
#define IF_BUILT_(built, x) IF_BUILT_##built(x)
#define IF_BUILT(built, x) IF_BUILT_(built, x)

struct row {
    const char *name;
    enum ak_cpu_isa isa;  /* an ISA's parent, an option's ISA */
    bool (*detect)(void); /* NULL: not built */
};

static const struct row isas[AK_CPU_ISA_COUNT] = {
#define ISA(NAME, name, PARENT, detect)                                                            \
    [AK_CPU_ISA_##NAME] = { #name, AK_CPU_ISA_##PARENT, IF_BUILT(HAVE_AK_##NAME, has_##name) },
#include "engine/cpu/isa.def"
};

static const struct row options[AK_CPU_ISA_OPTION_COUNT] = {
#define ISA_OPTION(NAME, name, PARENT, detect)                                                     \
    [AK_CPU_ISA_OPTION_##                                                                          \
        NAME] = { #name, AK_CPU_ISA_##PARENT, IF_BUILT(HAVE_AK_##NAME, has_##name) },
#include "engine/cpu/isa.def"
};

/* ---- ISAs --------------------------------------------------------------- */
const char *ak_cpu_isa_name(enum ak_cpu_isa isa)
{
    return isas[isa].name;
}

enum ak_cpu_isa ak_cpu_isa_parent(enum ak_cpu_isa isa)
{
    return isas[isa].isa;
}

bool ak_cpu_isa_is_usable(enum ak_cpu_isa isa)
{
    if (isa != AK_CPU_ISA_SCALAR && !ak_cpu_isa_is_usable(isas[isa].isa))
        return false;
    return isas[isa].detect && isas[isa].detect();
}

enum ak_cpu_isa ak_cpu_best_isa(void)
{
    enum ak_cpu_isa best = AK_CPU_ISA_SCALAR;
    for (int i = 0; i < AK_CPU_ISA_COUNT; i++)
        if (ak_cpu_isa_is_usable((enum ak_cpu_isa)i))
            best = (enum ak_cpu_isa)i;
    return best;
}

/* AK_CPU_ISA_COUNT: there is no such name. */
static int find_isa(const char *name)
{
    int i = 0;
    while (i < AK_CPU_ISA_COUNT && strcmp(name, isas[i].name) != 0)
        i++;
    return i;
}

bool ak_cpu_parse_isa(const char *name, enum ak_cpu_isa *out)
{
    int i = find_isa(name);
    if (i == AK_CPU_ISA_COUNT || !ak_cpu_isa_is_usable((enum ak_cpu_isa)i))
        return false;
    *out = (enum ak_cpu_isa)i;
    return true;
}

const char *ak_cpu_isa_problem(const char *name)
{
    int i = find_isa(name);
    if (i == AK_CPU_ISA_COUNT)
        return "there is no such instruction set";
    if (!isas[i].detect)
        return "this build does not contain its kernels";
    return ak_cpu_isa_is_usable((enum ak_cpu_isa)i) ? NULL : "this machine cannot run its kernels";
}

/* ---- Options ------------------------------------------------------------ */
const char *ak_cpu_isa_option_name(enum ak_cpu_isa_option option)
{
    return options[option].name;
}

enum ak_cpu_isa ak_cpu_isa_of_option(enum ak_cpu_isa_option option)
{
    return options[option].isa;
}

bool ak_cpu_isa_option_is_usable(enum ak_cpu_isa_option option)
{
    return options[option].detect && ak_cpu_isa_is_usable(options[option].isa) &&
           options[option].detect();
}

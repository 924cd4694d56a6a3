/* Which ISA bundles this build contains, which of them this machine can run, and how a bundle's
 * table is filled: parents first, then overrides. */
#include "cpu/kernels.h"

#include <string.h>

#include "config.h"

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

static inline bool has_cpuid_bit(unsigned leaf, unsigned subleaf, unsigned reg, unsigned bit)
{
    unsigned r[4];
    return __get_cpuid_count(leaf, subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) &&
           (r[reg] >> bit & 1) != 0;
}

/* Requests the tile registers: they are large, so Linux saves them only for processes that ask. */
static inline bool system_grants_tiles(void)
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
#define ISA_OPTION(NAME, name, BUNDLE, detect) DETECT(HAVE_AK_##NAME, name, detect)
#include "cpu/isa.def"

/* ---- Bundles ------------------------------------------------------------ */
typedef void set_fn(struct ak_cpu_kernels *k);

#define IF_BUILT_0(x) NULL
#define IF_BUILT_1(x) x
#define IF_BUILT_(built, x) IF_BUILT_##built(x)
#define IF_BUILT(built, x) IF_BUILT_(built, x)

static const struct {
    const char *name;
    enum ak_cpu_isa parent;
    bool (*detect)(void); /* NULL: not built */
    set_fn *set;
} bundles[AK_CPU_ISA_COUNT] = {
#define ISA(NAME, name, PARENT, detect)                                                            \
    [AK_CPU_ISA_##NAME] = { #name, AK_CPU_ISA_##PARENT, IF_BUILT(HAVE_AK_##NAME, has_##name),      \
                            IF_BUILT(HAVE_AK_##NAME, ak_##name##_set_kernels) },
#include "cpu/isa.def"
};

static const struct {
    enum ak_cpu_isa isa;
    bool (*detect)(void); /* NULL: not built */
    set_fn *set;
} options[] = {
#define ISA_OPTION(NAME, name, BUNDLE, detect)                                                     \
    { AK_CPU_ISA_##BUNDLE, IF_BUILT(HAVE_AK_##NAME, has_##name),                                   \
      IF_BUILT(HAVE_AK_##NAME, ak_##name##_set_kernels) },
#include "cpu/isa.def"
};

const char *ak_cpu_isa_name(enum ak_cpu_isa isa)
{
    return bundles[isa].name;
}

bool ak_cpu_isa_is_usable(enum ak_cpu_isa isa)
{
    if (isa != AK_CPU_ISA_SCALAR && !ak_cpu_isa_is_usable(bundles[isa].parent))
        return false;
    return bundles[isa].detect && bundles[isa].detect();
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
        if (strcmp(name, bundles[i].name) == 0 && ak_cpu_isa_is_usable((enum ak_cpu_isa)i)) {
            *out = (enum ak_cpu_isa)i;
            return true;
        }
    }
    return false;
}

static void override_kernels(enum ak_cpu_isa isa, struct ak_cpu_kernels *out)
{
    if (isa != AK_CPU_ISA_SCALAR)
        override_kernels(bundles[isa].parent, out);
    bundles[isa].set(out);
    out->name = bundles[isa].name;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].isa == isa && options[i].detect && options[i].detect())
            options[i].set(out);
}

void ak_cpu_fill_kernels(enum ak_cpu_isa isa, struct ak_cpu_kernels *out)
{
    memset(out, 0, sizeof *out);
    override_kernels(isa, out);
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        out->tile[type] = out->tile[ak_cpu_tile_type((enum ak_quant_type)type)];
}

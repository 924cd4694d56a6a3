/* How the table of an ISA is filled: its parents first, then what it overrides. */
#include "engine/cpu/kernels.h"

#include <string.h>

#include "config.h"

#define HAVE_AK_SCALAR 1

/* ---- Setters ------------------------------------------------------------ */
typedef void set_fn(struct ak_cpu_kernels *k);

#define IF_BUILT_0(x) NULL
#define IF_BUILT_1(x) x
#define IF_BUILT_(built, x) IF_BUILT_##built(x)
#define IF_BUILT(built, x) IF_BUILT_(built, x)

/* NULL: not built. */
static set_fn *const isa_setters[AK_CPU_ISA_COUNT] = {
#define ISA(NAME, name, PARENT, detect)                                                            \
    [AK_CPU_ISA_##NAME] = IF_BUILT(HAVE_AK_##NAME, ak_##name##_set_kernels),
#include "engine/cpu/isa.def"
};

static set_fn *const option_setters[AK_CPU_ISA_OPTION_COUNT] = {
#define ISA_OPTION(NAME, name, PARENT, detect)                                                     \
    [AK_CPU_ISA_OPTION_##NAME] = IF_BUILT(HAVE_AK_##NAME, ak_##name##_set_kernels),
#include "engine/cpu/isa.def"
};

static void override_kernels(enum ak_cpu_isa isa, struct ak_cpu_kernels *out)
{
    if (isa != AK_CPU_ISA_SCALAR)
        override_kernels(ak_cpu_isa_parent(isa), out);
    isa_setters[isa](out);
    out->name = ak_cpu_isa_name(isa);
    for (int i = 0; i < AK_CPU_ISA_OPTION_COUNT; i++)
        if (ak_cpu_isa_of_option((enum ak_cpu_isa_option)i) == isa &&
            ak_cpu_isa_option_is_usable((enum ak_cpu_isa_option)i))
            option_setters[i](out);
}

void ak_cpu_fill_kernels(enum ak_cpu_isa isa, struct ak_cpu_kernels *out)
{
    memset(out, 0, sizeof *out);
    override_kernels(isa, out);
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        out->tile[type] = out->tile[ak_cpu_tile_type((enum ak_quant_type)type)];
}

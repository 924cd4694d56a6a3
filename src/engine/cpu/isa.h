/* The ISAs of engine/cpu/isa.def: their names, which of them this build contains, and which
 * of them this machine can run. The CPU backend chooses by it; kernels.c fills the tables. */
#ifndef AK_ENGINE_CPU_ISA_H
#define AK_ENGINE_CPU_ISA_H

#include <stdbool.h>

enum ak_cpu_isa {
#define ISA(NAME, name, PARENT, detect) AK_CPU_ISA_##NAME,
#include "engine/cpu/isa.def"
    AK_CPU_ISA_COUNT
};

/* Optional instructions within an ISA. */
enum ak_cpu_isa_option {
#define ISA_OPTION(NAME, name, PARENT, detect) AK_CPU_ISA_OPTION_##NAME,
#include "engine/cpu/isa.def"
    AK_CPU_ISA_OPTION_COUNT
};

const char *ak_cpu_isa_name(enum ak_cpu_isa isa);
/* The ISA whose kernels this one overrides. The scalar ISA is its own parent. */
enum ak_cpu_isa ak_cpu_isa_parent(enum ak_cpu_isa isa);
/* Whether this build contains the ISA and this machine can run it. */
bool ak_cpu_isa_is_usable(enum ak_cpu_isa isa);
enum ak_cpu_isa ak_cpu_best_isa(void);

/* Returns false if no ISA has this name, or if it is not usable here. */
bool ak_cpu_parse_isa(const char *name, enum ak_cpu_isa *out);
/* Why ak_cpu_parse_isa refuses the name, as a clause without a period; NULL: it does not. */
const char *ak_cpu_isa_problem(const char *name);

/* For configure --enable-isa=native (m4/ak_isa.m4), which asks this file what the machine has. */
const char *ak_cpu_isa_option_name(enum ak_cpu_isa_option option);
/* The ISA that has these instructions if the machine does. */
enum ak_cpu_isa ak_cpu_isa_of_option(enum ak_cpu_isa_option option);
bool ak_cpu_isa_option_is_usable(enum ak_cpu_isa_option option);

#endif

libak_la_SOURCES += \
	src/cpu/attention.c \
	src/cpu/backend.c \
	src/cpu/backend.h \
	src/cpu/blas.c \
	src/cpu/blas.h \
	src/cpu/breakdown.c \
	src/cpu/calibrate.c \
	src/cpu/cpu.h \
	src/cpu/delta.c \
	src/cpu/sample.c \
	src/cpu/experts.c \
	src/cpu/generic.h \
	src/cpu/isa.def \
	src/cpu/kernels.c \
	src/cpu/kernels.h \
	src/cpu/kv.c \
	src/cpu/layout.c \
	src/cpu/layout.h \
	src/cpu/panel.h \
	src/cpu/probe.h \
	src/cpu/linear.c \
	src/cpu/plan_steps.c \
	src/cpu/prepare.c \
	src/cpu/recurrent.c \
	src/cpu/roofline.c \
	src/cpu/rowwise.c \
	src/cpu/run.c \
	src/cpu/scalar/attn.c \
	src/cpu/scalar/dot_rows.c \
	src/cpu/scalar/dot_tiles.c \
	src/cpu/scalar/probe.c \
	src/cpu/scalar/quantize.c \
	src/cpu/scalar/fill.c \
	src/cpu/setter.h \
	src/cpu/tile256.h \
	src/cpu/tune.c \
	src/cpu/types.def

# One folder per ISA bundle.
include src/cpu/avx2/local.mk
include src/cpu/avxvnni/local.mk
include src/cpu/avx512/local.mk
include src/cpu/amx/local.mk
include src/cpu/avx512bf16/local.mk
include src/cpu/neon/local.mk
include src/cpu/neon_i8mm/local.mk

libak_la_SOURCES += \
	src/cpu/attention.c \
	src/cpu/backend.c \
	src/cpu/backend.h \
	src/cpu/cpu.h \
	src/cpu/draw.c \
	src/cpu/generic.h \
	src/cpu/kernels.c \
	src/cpu/kernels.h \
	src/cpu/kv.c \
	src/cpu/layout.c \
	src/cpu/layout.h \
	src/cpu/linear.c \
	src/cpu/plan_steps.c \
	src/cpu/prepare.c \
	src/cpu/roofline.c \
	src/cpu/roofline.h \
	src/cpu/rowwise.c \
	src/cpu/run.c \
	src/cpu/scalar/attend.c \
	src/cpu/scalar/dot_rows.c \
	src/cpu/scalar/dot_tiles.c \
	src/cpu/scalar/elementwise.c \
	src/cpu/scalar/probe.c \
	src/cpu/scalar/quantise.c \
	src/cpu/scalar/scalar.h \
	src/cpu/scalar/table.c

EXTRA_LTLIBRARIES += libak_avx2.la
libak_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=avx2 -DAK_VEC_H='"engine/cpu/avx2/vec.h"' -DAK_STEP_H='"engine/cpu/avx2/step.h"'
libak_avx2_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVX2_CFLAGS)
libak_avx2_la_SOURCES = \
	src/engine/cpu/avx2/attn.c \
	src/engine/cpu/avx2/dot_rows.c \
	src/engine/cpu/avx2/dot_stored.c \
	src/engine/cpu/avx2/lanes.h \
	src/engine/cpu/avx2/panel_f32.c \
	src/engine/cpu/avx2/probe.c \
	src/engine/cpu/avx2/quantize.c \
	src/engine/cpu/avx2/step.h \
	src/engine/cpu/avx2/stored.h \
	src/engine/cpu/avx2/fill.c \
	src/engine/cpu/avx2/vec.h \
	src/engine/cpu/tmpl/delta.c \
	src/engine/cpu/tmpl/elementwise.c \
	src/engine/cpu/tmpl/probe.c \
	src/engine/cpu/tmpl/dot256_v256.c \
	src/engine/cpu/tmpl/dot32_v256.c \
	src/engine/cpu/tmpl/tiles_v256.h

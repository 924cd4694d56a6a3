EXTRA_LTLIBRARIES += libak_avx2.la
libak_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=avx2 -DAK_VEC_H='"cpu/avx2/vec.h"' -DAK_STEP_H='"cpu/avx2/step.h"'
libak_avx2_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVX2_CFLAGS)
libak_avx2_la_SOURCES = \
	src/cpu/avx2/attn.c \
	src/cpu/avx2/dot_rows.c \
	src/cpu/avx2/dot_stored.c \
	src/cpu/avx2/lanes.h \
	src/cpu/avx2/panel_f32.c \
	src/cpu/avx2/probe.c \
	src/cpu/avx2/quantize.c \
	src/cpu/avx2/step.h \
	src/cpu/avx2/stored.h \
	src/cpu/avx2/fill.c \
	src/cpu/avx2/vec.h \
	src/cpu/tmpl/delta.c \
	src/cpu/tmpl/elementwise.c \
	src/cpu/tmpl/probe.c \
	src/cpu/tmpl/dot256_v256.c \
	src/cpu/tmpl/dot32_v256.c \
	src/cpu/tmpl/tiles_v256.h

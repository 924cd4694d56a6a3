EXTRA_LTLIBRARIES += libak_avx512.la
libak_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=avx512 -DAK_VEC_H='"engine/cpu/avx512/vec.h"'
libak_avx512_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVX512_CFLAGS)
libak_avx512_la_SOURCES = \
	src/engine/cpu/avx512/attn.c \
	src/engine/cpu/avx512/avx512.h \
	src/engine/cpu/avx512/dot256.c \
	src/engine/cpu/avx512/dot32.c \
	src/engine/cpu/avx512/dot_rows.c \
	src/engine/cpu/avx512/dot_stored.c \
	src/engine/cpu/avx512/lanes.h \
	src/engine/cpu/avx512/interleaved.h \
	src/engine/cpu/avx512/panel_f32.c \
	src/engine/cpu/avx512/probe.c \
	src/engine/cpu/avx512/panel_i8.h \
	src/engine/cpu/avx512/panel_i8_256.c \
	src/engine/cpu/avx512/panel_i8_32.c \
	src/engine/cpu/avx512/rope.c \
	src/engine/cpu/avx512/stored.h \
	src/engine/cpu/avx512/fill.c \
	src/engine/cpu/avx512/vec.h \
	src/engine/cpu/tmpl/delta.c \
	src/engine/cpu/tmpl/elementwise.c \
	src/engine/cpu/tmpl/probe.c

EXTRA_LTLIBRARIES += libak_neon.la
libak_neon_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=neon -DAK_VEC_H='"engine/cpu/neon/vec.h"'
libak_neon_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_NEON_CFLAGS)
libak_neon_la_SOURCES = \
	src/engine/cpu/neon/attn.c \
	src/engine/cpu/neon/dot256.c \
	src/engine/cpu/neon/dot32.c \
	src/engine/cpu/neon/dot_rows.c \
	src/engine/cpu/neon/floats.h \
	src/engine/cpu/neon/lanes.h \
	src/engine/cpu/neon/unpack256.c \
	src/engine/cpu/neon/unpack256.h \
	src/engine/cpu/neon/unpack32.c \
	src/engine/cpu/neon/unpack32.h \
	src/engine/cpu/neon/micropanel.h \
	src/engine/cpu/neon/micropanel256.c \
	src/engine/cpu/neon/micropanel32.c \
	src/engine/cpu/neon/panel_f32.c \
	src/engine/cpu/neon/probe.c \
	src/engine/cpu/neon/quantize.c \
	src/engine/cpu/neon/fill.c \
	src/engine/cpu/neon/tile256.h \
	src/engine/cpu/neon/tile32.h \
	src/engine/cpu/neon/vec.h \
	src/engine/cpu/tmpl/delta.c \
	src/engine/cpu/tmpl/elementwise.c \
	src/engine/cpu/tmpl/probe.c

EXTRA_LTLIBRARIES += libak_neon.la
libak_neon_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=neon -DAK_VEC_H='"cpu/neon/vec.h"'
libak_neon_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_NEON_CFLAGS)
libak_neon_la_SOURCES = \
	src/cpu/neon/attn.c \
	src/cpu/neon/dot256.c \
	src/cpu/neon/dot32.c \
	src/cpu/neon/dot_rows.c \
	src/cpu/neon/floats.h \
	src/cpu/neon/lanes.h \
	src/cpu/neon/unpack256.c \
	src/cpu/neon/unpack256.h \
	src/cpu/neon/unpack32.c \
	src/cpu/neon/unpack32.h \
	src/cpu/neon/micropanel.h \
	src/cpu/neon/micropanel256.c \
	src/cpu/neon/micropanel32.c \
	src/cpu/neon/panel_f32.c \
	src/cpu/neon/probe.c \
	src/cpu/neon/quantize.c \
	src/cpu/neon/fill.c \
	src/cpu/neon/tile256.h \
	src/cpu/neon/tile32.h \
	src/cpu/neon/vec.h \
	src/cpu/tmpl/delta.c \
	src/cpu/tmpl/elementwise.c \
	src/cpu/tmpl/probe.c

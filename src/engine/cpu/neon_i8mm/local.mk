EXTRA_LTLIBRARIES += libak_neon_i8mm.la
libak_neon_i8mm_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=neon_i8mm
libak_neon_i8mm_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_NEON_I8MM_CFLAGS)
libak_neon_i8mm_la_SOURCES = \
	src/engine/cpu/neon_i8mm/pairs.h \
	src/engine/cpu/neon_i8mm/probe.c \
	src/engine/cpu/neon_i8mm/panel_i8_256.c \
	src/engine/cpu/neon_i8mm/panel_i8_32.c \
	src/engine/cpu/neon_i8mm/fill.c

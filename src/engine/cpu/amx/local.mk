EXTRA_LTLIBRARIES += libak_amx.la
libak_amx_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AMX_CFLAGS)
libak_amx_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/src/engine/cpu/amx -DAK_ISA=amx
libak_amx_la_SOURCES = \
	src/engine/cpu/amx/unpack.c \
	src/engine/cpu/amx/panel_bf16.c \
	src/engine/cpu/amx/probe.c \
	src/engine/cpu/amx/panel_i8.h \
	src/engine/cpu/amx/panel_i8_256.c \
	src/engine/cpu/amx/panel_i8_32.c \
	src/engine/cpu/amx/fill.c \
	src/engine/cpu/amx/tile_unit.h

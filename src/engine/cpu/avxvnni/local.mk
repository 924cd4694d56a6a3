EXTRA_LTLIBRARIES += libak_avxvnni.la
libak_avxvnni_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=avxvnni -DAK_STEP_H='"engine/cpu/avxvnni/step.h"'
libak_avxvnni_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVXVNNI_CFLAGS)
libak_avxvnni_la_SOURCES = \
	src/engine/cpu/avxvnni/probe.c \
	src/engine/cpu/avxvnni/step.h \
	src/engine/cpu/avxvnni/fill.c \
	src/engine/cpu/tmpl/dot256_v256.c \
	src/engine/cpu/tmpl/dot32_v256.c \
	src/engine/cpu/tmpl/tiles_v256.h

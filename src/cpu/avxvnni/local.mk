EXTRA_LTLIBRARIES += libak_avxvnni.la
libak_avxvnni_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=avxvnni -DAK_STEP_H='"cpu/avxvnni/step.h"'
libak_avxvnni_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVXVNNI_CFLAGS)
libak_avxvnni_la_SOURCES = \
	src/cpu/avxvnni/probe.c \
	src/cpu/avxvnni/step.h \
	src/cpu/avxvnni/fill.c \
	src/cpu/tmpl/dot256_v256.c \
	src/cpu/tmpl/dot32_v256.c \
	src/cpu/tmpl/tiles_v256.h

EXTRA_LTLIBRARIES += libak_avx512bf16.la
libak_avx512bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=avx512bf16
libak_avx512bf16_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVX512BF16_CFLAGS)
libak_avx512bf16_la_SOURCES = \
	src/engine/cpu/avx512bf16/panel_bf16.c \
	src/engine/cpu/avx512bf16/round.h \
	src/engine/cpu/avx512bf16/fill.c

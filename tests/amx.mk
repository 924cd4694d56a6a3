if HAVE_AMX
noinst_LTLIBRARIES += libak_amx_model.la
libak_amx_model_la_SOURCES = src/cpu/amx/unpack.c src/cpu/amx/panel_bf16.c src/cpu/amx/probe.c src/cpu/amx/panel_i8_256.c src/cpu/amx/panel_i8_32.c tests/amx/tile_unit.h
libak_amx_model_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVX512_CFLAGS) -mavx512bf16
libak_amx_model_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/amx

check_PROGRAMS += tests/test_amx
tests_test_amx_SOURCES = tests/test_amx.c
tests_test_amx_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_amx_LDADD = libak_amx_model.la $(AK_TEST_LIBS)
endif
EXTRA_DIST += tests/test_amx.c tests/amx/tile_unit.h

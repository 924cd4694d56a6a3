libloops_la_SOURCES += \
	src/quantize/fit.h \
	src/quantize/grid.h \
	src/quantize/grid_rows.h \
	src/quantize/grid_table.h \
	src/quantize/groups.h \
	src/quantize/lanes.h \
	src/quantize/near.c \
	src/quantize/near.h \
	src/quantize/quantize.c \
	src/quantize/quantize.h \
	src/quantize/row_table.h \
	src/quantize/rows.h \
	src/quantize/sets.h \
	src/quantize/small_rows.h \
	src/quantize/super.h

# The rows have a flag of their own (configure.ac).
noinst_LTLIBRARIES += librows.la
librows_la_CFLAGS = $(AM_CFLAGS) $(AK_QUANTIZE_CFLAGS)
librows_la_SOURCES = \
	src/quantize/rows_avx2.c \
	src/quantize/rows_avx512.c \
	src/quantize/rows_plain.c

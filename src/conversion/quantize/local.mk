libloops_la_SOURCES += \
	src/conversion/quantize/fit.h \
	src/conversion/quantize/grid.h \
	src/conversion/quantize/grid_rows.h \
	src/conversion/quantize/grid_table.h \
	src/conversion/quantize/groups.h \
	src/conversion/quantize/lanes.h \
	src/conversion/quantize/near.c \
	src/conversion/quantize/near.h \
	src/conversion/quantize/quantize.c \
	src/conversion/quantize/quantize.h \
	src/conversion/quantize/row_table.h \
	src/conversion/quantize/rows.h \
	src/conversion/quantize/sets.h \
	src/conversion/quantize/small_rows.h \
	src/conversion/quantize/super.h

# The rows have a flag of their own (configure.ac).
noinst_LTLIBRARIES += librows.la
librows_la_CFLAGS = $(AM_CFLAGS) $(AK_QUANTIZE_CFLAGS)
librows_la_SOURCES = \
	src/conversion/quantize/rows_avx2.c \
	src/conversion/quantize/rows_avx512.c \
	src/conversion/quantize/rows_plain.c

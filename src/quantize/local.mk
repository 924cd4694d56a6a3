libak_la_SOURCES += \
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
	src/quantize/rows_avx2.c \
	src/quantize/rows_avx512.c \
	src/quantize/rows_plain.c \
	src/quantize/sets.h \
	src/quantize/small_rows.h \
	src/quantize/super.h

libak_la_SOURCES += \
	src/quantize/fit.h \
	src/quantize/grid.h \
	src/quantize/grid_rows.h \
	src/quantize/lanes.h \
	src/quantize/quantize.h \
	src/quantize/rows.c \
	src/quantize/rows.h \
	src/quantize/small_rows.h \
	src/quantize/super.h

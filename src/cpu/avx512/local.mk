libak_avx512_la_SOURCES = \
	src/cpu/avx512/attend.c \
	src/cpu/avx512/avx512.h \
	src/cpu/avx512/delta.c \
	src/cpu/avx512/dot256.c \
	src/cpu/avx512/dot32.c \
	src/cpu/avx512/dot_rows.c \
	src/cpu/avx512/dot_stored.c \
	src/cpu/avx512/elementwise.c \
	src/cpu/avx512/lanes.h \
	src/cpu/avx512/lines.h \
	src/cpu/avx512/panel.c \
	src/cpu/avx512/probe.c \
	src/cpu/avx512/slab.h \
	src/cpu/avx512/slab256.c \
	src/cpu/avx512/slab32.c \
	src/cpu/avx512/stored.h \
	src/cpu/avx512/table.c

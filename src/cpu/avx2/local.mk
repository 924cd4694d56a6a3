libak_avx2_la_SOURCES = \
	src/cpu/avx2/attn.c \
	src/cpu/avx2/avx2.h \
	src/cpu/avx2/delta.c \
	src/cpu/avx2/dot_rows.c \
	src/cpu/avx2/dot_stored.c \
	src/cpu/avx2/dot256.c \
	src/cpu/avx2/dot256.h \
	src/cpu/avx2/dot32.c \
	src/cpu/avx2/dot32.h \
	src/cpu/avx2/elementwise.c \
	src/cpu/avx2/lanes.h \
	src/cpu/avx2/panel_f32.c \
	src/cpu/avx2/probe.c \
	src/cpu/avx2/quantize.c \
	src/cpu/avx2/step.h \
	src/cpu/avx2/stored.h \
	src/cpu/avx2/table.c \
	src/cpu/avx2/tiles.h

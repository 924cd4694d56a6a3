libak_avx512_la_SOURCES = \
	src/cpu/avx512/attn.c \
	src/cpu/avx512/avx512.h \
	src/cpu/avx512/delta.c \
	src/cpu/avx512/dot256.c \
	src/cpu/avx512/dot32.c \
	src/cpu/avx512/dot_rows.c \
	src/cpu/avx512/dot_stored.c \
	src/cpu/avx512/elementwise.c \
	src/cpu/avx512/lanes.h \
	src/cpu/avx512/interleaved.h \
	src/cpu/avx512/panel_f32.c \
	src/cpu/avx512/probe.c \
	src/cpu/avx512/panel_i8.h \
	src/cpu/avx512/panel_i8_256.c \
	src/cpu/avx512/panel_i8_32.c \
	src/cpu/avx512/stored.h \
	src/cpu/avx512/table.c

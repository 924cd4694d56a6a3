libak_neon_i8mm_la_SOURCES = \
	src/cpu/neon_i8mm/neon_i8mm.h \
	src/cpu/neon_i8mm/pairs.h \
	src/cpu/neon_i8mm/probe.c \
	src/cpu/neon_i8mm/panel_i8_256.c \
	src/cpu/neon_i8mm/panel_i8_32.c \
	src/cpu/neon_i8mm/table.c

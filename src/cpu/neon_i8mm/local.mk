libak_neon_i8mm_la_SOURCES = \
	src/cpu/neon_i8mm/neon_i8mm.h \
	src/cpu/neon_i8mm/pairs.h \
	src/cpu/neon_i8mm/probe.c \
	src/cpu/neon_i8mm/slab256.c \
	src/cpu/neon_i8mm/slab32.c \
	src/cpu/neon_i8mm/table.c

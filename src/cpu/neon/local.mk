libak_neon_la_SOURCES = \
	src/cpu/neon/attn.c \
	src/cpu/neon/delta.c \
	src/cpu/neon/dot256.c \
	src/cpu/neon/dot32.c \
	src/cpu/neon/dot_rows.c \
	src/cpu/neon/elementwise.c \
	src/cpu/neon/floats.h \
	src/cpu/neon/lanes.h \
	src/cpu/neon/neon.h \
	src/cpu/neon/unpack256.c \
	src/cpu/neon/unpack256.h \
	src/cpu/neon/unpack32.c \
	src/cpu/neon/unpack32.h \
	src/cpu/neon/micropanel.h \
	src/cpu/neon/micropanel256.c \
	src/cpu/neon/micropanel32.c \
	src/cpu/neon/panel_f32.c \
	src/cpu/neon/probe.c \
	src/cpu/neon/quantize.c \
	src/cpu/neon/table.c \
	src/cpu/neon/tile256.h \
	src/cpu/neon/tile32.h

libak_neon_la_SOURCES = \
	src/cpu/neon/attend.c \
	src/cpu/neon/delta.c \
	src/cpu/neon/dot256.c \
	src/cpu/neon/dot32.c \
	src/cpu/neon/dot_rows.c \
	src/cpu/neon/elementwise.c \
	src/cpu/neon/floats.h \
	src/cpu/neon/lanes.h \
	src/cpu/neon/neon.h \
	src/cpu/neon/open256.c \
	src/cpu/neon/open256.h \
	src/cpu/neon/open32.c \
	src/cpu/neon/open32.h \
	src/cpu/neon/panel.h \
	src/cpu/neon/panel256.c \
	src/cpu/neon/panel32.c \
	src/cpu/neon/panel_rows.c \
	src/cpu/neon/probe.c \
	src/cpu/neon/quantise.c \
	src/cpu/neon/table.c \
	src/cpu/neon/tile256.h \
	src/cpu/neon/tile32.h

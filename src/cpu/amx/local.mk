libak_amx_la_SOURCES = \
	src/cpu/amx/amx.h \
	src/cpu/amx/open.c \
	src/cpu/amx/panel.c \
	src/cpu/amx/probe.c \
	src/cpu/amx/slab.h \
	src/cpu/amx/slab256.c \
	src/cpu/amx/slab32.c \
	src/cpu/amx/table.c \
	src/cpu/amx/tile_unit.h

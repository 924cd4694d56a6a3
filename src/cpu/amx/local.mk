libak_amx_la_SOURCES = \
	src/cpu/amx/amx.h \
	src/cpu/amx/unpack.c \
	src/cpu/amx/panel_bf16.c \
	src/cpu/amx/probe.c \
	src/cpu/amx/panel_i8.h \
	src/cpu/amx/panel_i8_256.c \
	src/cpu/amx/panel_i8_32.c \
	src/cpu/amx/table.c \
	src/cpu/amx/tile_unit.h

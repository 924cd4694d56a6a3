libak_amx_la_SOURCES = \
	src/cpu/amx/amx.h \
	src/cpu/amx/panel.c \
	src/cpu/amx/slab.c \
	src/cpu/amx/sums.h \
	src/cpu/amx/table.c \
	src/cpu/amx/tile_unit.h

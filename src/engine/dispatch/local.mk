libak_la_SOURCES += \
	src/engine/dispatch/dump.c \
	src/engine/dispatch/split.c \
	src/engine/dispatch/table.c \
	src/engine/dispatch/table.h \
	src/engine/dispatch/tokens.c

libak_la_SOURCES += \
	src/dispatch/dump.c \
	src/dispatch/split.c \
	src/dispatch/table.c \
	src/dispatch/table.h \
	src/dispatch/tokens.c

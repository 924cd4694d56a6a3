libak_la_SOURCES += \
	src/dispatch/arena.c \
	src/dispatch/build.c \
	src/dispatch/builder.h \
	src/dispatch/cut.c \
	src/dispatch/dump.c \
	src/dispatch/table.h \
	src/dispatch/tokens.c \
	src/dispatch/tokens.h

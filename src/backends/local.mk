libak_la_SOURCES += \
	src/backends/list.c \
	src/backends/list.h \
	src/backends/split.c

libak_la_SOURCES += \
	src/backends/follow.c \
	src/backends/list.c \
	src/backends/list.h \
	src/backends/ranks.c \
	src/backends/ranks.h \
	src/backends/ranks_parts.c \
	src/backends/split.c

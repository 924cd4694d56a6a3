libak_la_SOURCES += \
	src/engine/backends/follow.c \
	src/engine/backends/list.c \
	src/engine/backends/list.h \
	src/engine/backends/ranks.c \
	src/engine/backends/ranks.h \
	src/engine/backends/ranks_parts.c \
	src/engine/backends/split.c

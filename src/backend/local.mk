libak_la_SOURCES += \
	src/backend/backend.c \
	src/backend/backend.h \
	src/backend/list.c \
	src/backend/list.h \
	src/backend/split.c \
	src/backend/split.h

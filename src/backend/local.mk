libak_la_SOURCES += \
	src/backend/backend.c \
	src/backend/backend.h

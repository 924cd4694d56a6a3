libak_la_SOURCES += \
	src/backend/backend.c \
	src/backend/backend.h \
	src/backend/profile.c \
	src/backend/profile.h \
	src/backend/shapes.h

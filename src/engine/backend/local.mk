libak_la_SOURCES += \
	src/engine/backend/backend.c \
	src/engine/backend/backend.h \
	src/engine/backend/profile.c \
	src/engine/backend/profile.h \
	src/engine/backend/shapes.h

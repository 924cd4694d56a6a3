libak_la_SOURCES += \
	src/audio/audio.c \
	src/audio/audio.h \
	src/audio/clip.c \
	src/audio/clip.h \
	src/audio/length.c \
	src/audio/length.h \
	src/audio/mel.c \
	src/audio/mel.h \
	src/audio/ranges.c \
	src/audio/ranges.h

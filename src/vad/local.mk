libloops_la_SOURCES += \
	src/vad/detect.c \
	src/vad/detect.h \
	src/vad/file.c \
	src/vad/segments.c \
	src/vad/segments.h \
	src/vad/silero.c \
	src/vad/silero.h

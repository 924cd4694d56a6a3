libloops_la_SOURCES += \
	src/speech/vad/detect.c \
	src/speech/vad/detect.h \
	src/speech/vad/file.c \
	src/speech/vad/segments.c \
	src/speech/vad/segments.h \
	src/speech/vad/silero.c \
	src/speech/vad/silero.h

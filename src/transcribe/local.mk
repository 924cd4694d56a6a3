libak_la_SOURCES += \
	src/transcribe/cut.c \
	src/transcribe/cut.h \
	src/transcribe/mel.c \
	src/transcribe/score.c \
	src/transcribe/score.h \
	src/transcribe/stream.c \
	src/transcribe/stream.h \
	src/transcribe/suppress.c \
	src/transcribe/suppress.h \
	src/transcribe/transcribe.c \
	src/transcribe/transcribe.h

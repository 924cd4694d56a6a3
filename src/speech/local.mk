libloops_la_SOURCES += \
	src/speech/align.c \
	src/speech/align.h \
	src/speech/decode.c \
	src/speech/decode.h \
	src/speech/hallucination.c \
	src/speech/hallucination.h \
	src/speech/languages.c \
	src/speech/languages.def \
	src/speech/rules.c \
	src/speech/rules.h \
	src/speech/text.c \
	src/speech/text.h \
	src/speech/timing.c \
	src/speech/timing.h \
	src/speech/transcribe.c \
	src/speech/transcribe.h \
	src/speech/window.c \
	src/speech/window.h \
	src/speech/words.c \
	src/speech/words.h

libloops_la_SOURCES += \
	src/speech/search/align.c \
	src/speech/search/align.h \
	src/speech/search/decode.c \
	src/speech/search/decode.h \
	src/speech/search/hallucination.c \
	src/speech/search/hallucination.h \
	src/speech/search/languages.c \
	src/speech/search/languages.def \
	src/speech/search/rules.c \
	src/speech/search/rules.h \
	src/speech/search/text.c \
	src/speech/search/text.h \
	src/speech/search/timing.c \
	src/speech/search/timing.h \
	src/speech/search/transcribe.c \
	src/speech/search/transcribe.h \
	src/speech/search/window.c \
	src/speech/search/window.h \
	src/speech/search/words.c \
	src/speech/search/words.h

libak_la_SOURCES += \
	src/speech/decode.c \
	src/speech/decode.h \
	src/speech/languages.c \
	src/speech/languages.def \
	src/speech/rules.c \
	src/speech/rules.h \
	src/speech/transcribe.c \
	src/speech/transcribe.h

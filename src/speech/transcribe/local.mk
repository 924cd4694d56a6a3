libak_la_SOURCES += \
	src/speech/transcribe/chunks.c \
	src/speech/transcribe/chunks.h \
	src/speech/transcribe/grammar.c \
	src/speech/transcribe/grammar.h \
	src/speech/transcribe/lane.c \
	src/speech/transcribe/lane.h \
	src/speech/transcribe/meeting.c \
	src/speech/transcribe/meeting.h \
	src/speech/transcribe/mel.c \
	src/speech/transcribe/order.c \
	src/speech/transcribe/order.h \
	src/speech/transcribe/plan.c \
	src/speech/transcribe/plan.h \
	src/speech/transcribe/score.c \
	src/speech/transcribe/score.h \
	src/speech/transcribe/stream.c \
	src/speech/transcribe/stream.h \
	src/speech/transcribe/suppress.c \
	src/speech/transcribe/suppress.h \
	src/speech/transcribe/transcribe.c \
	src/speech/transcribe/transcribe.h \
	src/speech/transcribe/work.c \
	src/speech/transcribe/work.h

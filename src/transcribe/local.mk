libak_la_SOURCES += \
	src/transcribe/chunks.c \
	src/transcribe/chunks.h \
	src/transcribe/grammar.c \
	src/transcribe/grammar.h \
	src/transcribe/lane.c \
	src/transcribe/lane.h \
	src/transcribe/meeting.c \
	src/transcribe/meeting.h \
	src/transcribe/mel.c \
	src/transcribe/order.c \
	src/transcribe/order.h \
	src/transcribe/plan.c \
	src/transcribe/plan.h \
	src/transcribe/score.c \
	src/transcribe/score.h \
	src/transcribe/stream.c \
	src/transcribe/stream.h \
	src/transcribe/suppress.c \
	src/transcribe/suppress.h \
	src/transcribe/transcribe.c \
	src/transcribe/transcribe.h \
	src/transcribe/work.c \
	src/transcribe/work.h

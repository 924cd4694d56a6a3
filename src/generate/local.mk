libak_la_SOURCES += \
	src/generate/choice.c \
	src/generate/choice.h \
	src/generate/choices.c \
	src/generate/choices.h \
	src/generate/draft.c \
	src/generate/draft.h \
	src/generate/generate.c \
	src/generate/generate.h \
	src/generate/lookup.c \
	src/generate/lookup.h \
	src/generate/speculate.c \
	src/generate/speculate.h \
	src/generate/stops.c \
	src/generate/stops.h

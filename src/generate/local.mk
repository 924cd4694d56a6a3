libak_la_SOURCES += \
	src/generate/completion.c \
	src/generate/completion.h \
	src/generate/draft.h \
	src/generate/draft_model.c \
	src/generate/generate.c \
	src/generate/generate.h \
	src/generate/parallel.c \
	src/generate/prompt_lookup.c \
	src/generate/reasoning.c \
	src/generate/reasoning.h \
	src/generate/speculate.c \
	src/generate/speculate.h \
	src/generate/stops.c

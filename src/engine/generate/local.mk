libak_la_SOURCES += \
	src/engine/generate/completion.c \
	src/engine/generate/completion.h \
	src/engine/generate/draft.h \
	src/engine/generate/draft_model.c \
	src/engine/generate/generate.c \
	src/engine/generate/generate.h \
	src/engine/generate/parallel.c \
	src/engine/generate/prompt_lookup.c \
	src/engine/generate/reasoning.c \
	src/engine/generate/reasoning.h \
	src/engine/generate/speculate.c \
	src/engine/generate/speculate.h \
	src/engine/generate/stops.c

libak_la_SOURCES += \
	src/api/advise.c \
	src/api/cache.c \
	src/api/calls.c \
	src/api/chat.c \
	src/api/compress.c \
	src/api/digest.c \
	src/api/error.c \
	src/api/file.c \
	src/api/generate.c \
	src/api/grammar.c \
	src/api/handles.h \
	src/api/importance.c \
	src/api/model.c \
	src/api/plan.c \
	src/api/pool.c \
	src/api/profile.c \
	src/api/prompt.c \
	src/api/prompt_cache.c \
	src/api/rank.c \
	src/api/registry.c \
	src/api/roofline.c \
	src/api/sampling.c \
	src/api/schedule.c \
	src/api/session.c \
	src/api/speech.c \
	src/api/text.c \
	src/api/version.c

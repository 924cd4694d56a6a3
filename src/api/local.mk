libak_la_SOURCES += \
	src/api/cache.c \
	src/api/calls.c \
	src/api/chat.c \
	src/api/convert.c \
	src/api/device.c \
	src/api/embed.c \
	src/api/error.c \
	src/api/error.h \
	src/api/file.c \
	src/api/file.h \
	src/api/generate.c \
	src/api/grammar.c \
	src/api/handles.h \
	src/api/model.c \
	src/api/profile.c \
	src/api/prompt_cache.c \
	src/api/registry.c \
	src/api/roofline.c \
	src/api/sampling.c \
	src/api/session.c \
	src/api/session.h \
	src/api/text.c \
	src/api/text.h \
	src/api/version.c \
	src/api/versioned.c \
	src/api/versioned.h

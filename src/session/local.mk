libak_la_SOURCES += \
	src/session/available.c \
	src/session/available.h \
	src/session/candidates.c \
	src/session/candidates.h \
	src/session/embed.c \
	src/session/embed.h \
	src/session/generate.c \
	src/session/generate.h \
	src/session/kv.c \
	src/session/kv.h \
	src/session/model.c \
	src/session/model.h \
	src/session/pass.c \
	src/session/random.h \
	src/session/sampler.c \
	src/session/sampler.h \
	src/session/session.c \
	src/session/session.h

libak_la_SOURCES += \
	src/session/available.c \
	src/session/available.h \
	src/session/candidates.c \
	src/session/candidates.h \
	src/session/draw.c \
	src/session/embed.c \
	src/session/embed.h \
	src/session/generate.c \
	src/session/generate.h \
	src/session/history.h \
	src/session/kv.c \
	src/session/kv.h \
	src/session/model.c \
	src/session/model.h \
	src/session/pass.c \
	src/session/penalties.c \
	src/session/penalties.h \
	src/session/random.h \
	src/session/sampler.c \
	src/session/sampler.h \
	src/session/sampling_order.c \
	src/session/sampling_order.h \
	src/session/session.c \
	src/session/session.h \
	src/session/truncation.c \
	src/session/weight.h

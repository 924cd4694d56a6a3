libak_la_SOURCES += \
	src/engine/session/calibration.c \
	src/engine/session/calibration.h \
	src/engine/session/constraint.c \
	src/engine/session/constraint.h \
	src/engine/session/embed.c \
	src/engine/session/encode.c \
	src/engine/session/evict.c \
	src/engine/session/follow.c \
	src/engine/session/follow.h \
	src/engine/session/input_sums.c \
	src/engine/session/kv.c \
	src/engine/session/kv.h \
	src/engine/session/load.c \
	src/engine/session/load_ranks.c \
	src/engine/session/load_ranks.h \
	src/engine/session/model.c \
	src/engine/session/model.h \
	src/engine/session/pass.c \
	src/engine/session/plan.c \
	src/engine/session/score.c \
	src/engine/session/session.c \
	src/engine/session/session.h

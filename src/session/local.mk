libak_la_SOURCES += \
	src/session/calibration.c \
	src/session/calibration.h \
	src/session/constraint.c \
	src/session/constraint.h \
	src/session/embed.c \
	src/session/encode.c \
	src/session/evict.c \
	src/session/follow.c \
	src/session/follow.h \
	src/session/input_sums.c \
	src/session/kv.c \
	src/session/kv.h \
	src/session/model.c \
	src/session/model.h \
	src/session/pass.c \
	src/session/plan.c \
	src/session/rank.c \
	src/session/session.c \
	src/session/session.h

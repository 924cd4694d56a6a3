libak_la_SOURCES += \
	src/pack/bind.c \
	src/pack/pack.c \
	src/pack/plan.c \
	src/pack/weights.h

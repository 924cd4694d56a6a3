libak_la_SOURCES += \
	src/allocate/allocate.c \
	src/allocate/allocate.h \
	src/allocate/divergence.c \
	src/allocate/layers.c \
	src/allocate/loss.c \
	src/allocate/solve.c

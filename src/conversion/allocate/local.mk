libak_la_SOURCES += \
	src/conversion/allocate/allocate.c \
	src/conversion/allocate/allocate.h \
	src/conversion/allocate/divergence.c \
	src/conversion/allocate/layers.c \
	src/conversion/allocate/loss.c \
	src/conversion/allocate/solve.c

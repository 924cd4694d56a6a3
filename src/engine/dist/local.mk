libak_la_SOURCES += \
	src/engine/dist/comm.c \
	src/engine/dist/comm.h \
	src/engine/dist/local.c \
	src/engine/dist/message.h \
	src/engine/dist/mpi.c \
	src/engine/dist/watch.c \
	src/engine/dist/watch.h

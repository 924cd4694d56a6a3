libak_la_SOURCES += \
	src/dist/comm.c \
	src/dist/comm.h \
	src/dist/local.c \
	src/dist/message.h \
	src/dist/mpi.c \
	src/dist/watch.c \
	src/dist/watch.h

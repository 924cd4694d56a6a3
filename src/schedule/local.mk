libak_la_SOURCES += \
	src/schedule/internal.h \
	src/schedule/kept.c \
	src/schedule/pages.c \
	src/schedule/pass.c \
	src/schedule/prefix_tree.c \
	src/schedule/prefix_tree.h \
	src/schedule/queue.c \
	src/schedule/request.c \
	src/schedule/run.c \
	src/schedule/schedule.h \
	src/schedule/scheduler.c

libak_la_SOURCES += \
	src/engine/schedule/internal.h \
	src/engine/schedule/kept.c \
	src/engine/schedule/pages.c \
	src/engine/schedule/pass.c \
	src/engine/schedule/prefix_tree.c \
	src/engine/schedule/prefix_tree.h \
	src/engine/schedule/queue.c \
	src/engine/schedule/request.c \
	src/engine/schedule/run.c \
	src/engine/schedule/schedule.h \
	src/engine/schedule/scheduler.c

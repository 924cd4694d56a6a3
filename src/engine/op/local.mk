libak_la_SOURCES += \
	src/engine/op/linear.def \
	src/engine/op/op.c \
	src/engine/op/op.def \
	src/engine/op/op.h \
	src/engine/op/shard.c \
	src/engine/op/shard.h

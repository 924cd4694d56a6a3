libak_la_SOURCES += \
	src/op/linear.def \
	src/op/op.c \
	src/op/op.def \
	src/op/op.h \
	src/op/role.c \
	src/op/role.def \
	src/op/role.h \
	src/op/shard.c \
	src/op/shard.h

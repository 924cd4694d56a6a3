libak_la_SOURCES += \
	src/op/builder.h \
	src/op/command.c \
	src/op/command.h \
	src/op/linear.def \
	src/op/op.def \
	src/op/role.c \
	src/op/role.def \
	src/op/role.h

libak_la_SOURCES += \
	src/compress/array.c \
	src/compress/awq.c \
	src/compress/compress.c \
	src/compress/compress.h \
	src/compress/config.c \
	src/compress/encode.c \
	src/compress/folder.c \
	src/compress/gate.c \
	src/compress/plan.c \
	src/compress/rows.c

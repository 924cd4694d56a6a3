libak_la_SOURCES += \
	src/conversion/compress/array.c \
	src/conversion/compress/awq.c \
	src/conversion/compress/compress.c \
	src/conversion/compress/compress.h \
	src/conversion/compress/config.c \
	src/conversion/compress/encode.c \
	src/conversion/compress/folder.c \
	src/conversion/compress/gate.c \
	src/conversion/compress/plan.c \
	src/conversion/compress/rows.c

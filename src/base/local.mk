libloops_la_SOURCES += \
	src/base/array.c \
	src/base/array.h \
	src/base/available.c \
	src/base/available.h \
	src/base/buffer.h \
	src/base/chip.c \
	src/base/chip.h \
	src/base/cores.c \
	src/base/error.c \
	src/base/error.h \
	src/base/file.c \
	src/base/file.h \
	src/base/gumbel.h \
	src/base/half.h \
	src/base/hash.c \
	src/base/hash.h \
	src/base/json.c \
	src/base/json.h \
	src/base/math.c \
	src/base/math.h \
	src/base/mem.c \
	src/base/mem.h \
	src/base/name_index.c \
	src/base/name_index.h \
	src/base/random.h \
	src/base/refs.h \
	src/base/system.c \
	src/base/system.h \
	src/base/thread.c \
	src/base/thread.h \
	src/base/unicode.c \
	src/base/unicode.h \
	src/base/utf8.c \
	src/base/utf8.h

libak_la_SOURCES += src/base/json/wide.c src/base/json/wide.h

libak_la_SOURCES += \
	src/convert/collect.c \
	src/convert/collect.h \
	src/convert/convert.c \
	src/convert/convert.h \
	src/convert/gguf_write.c \
	src/convert/gguf_write.h \
	src/convert/importance.c \
	src/convert/importance.h \
	src/convert/importance_write.c \
	src/convert/metadata.c \
	src/convert/mix.c \
	src/convert/mix.h \
	src/convert/online.c \
	src/convert/online.h \
	src/convert/plan.c \
	src/convert/rows.c \
	src/convert/speech.c \
	src/convert/templates.c \
	src/convert/types.c \
	src/convert/vocab.c

libak_la_SOURCES += \
	src/conversion/convert/collect.c \
	src/conversion/convert/collect.h \
	src/conversion/convert/convert.c \
	src/conversion/convert/convert.h \
	src/conversion/convert/gguf_write.c \
	src/conversion/convert/gguf_write.h \
	src/conversion/convert/importance.c \
	src/conversion/convert/importance.h \
	src/conversion/convert/importance_write.c \
	src/conversion/convert/metadata.c \
	src/conversion/convert/mix.c \
	src/conversion/convert/mix.h \
	src/conversion/convert/online.c \
	src/conversion/convert/online.h \
	src/conversion/convert/plan.c \
	src/conversion/convert/rows.c \
	src/conversion/convert/speech.c \
	src/conversion/convert/templates.c \
	src/conversion/convert/types.c \
	src/conversion/convert/vocab.c

libak_la_SOURCES += \
	src/convert/convert.c \
	src/convert/convert.h \
	src/convert/gguf_write.c \
	src/convert/gguf_write.h \
	src/convert/metadata.c \
	src/convert/plan.c \
	src/convert/rows.c \
	src/convert/speech.c \
	src/convert/templates.c \
	src/convert/vocab.c

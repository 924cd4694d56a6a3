libak_la_SOURCES += src/convert/convert.c src/convert/convert.h
libak_la_SOURCES += src/convert/gguf_write.c src/convert/gguf_write.h
libak_la_SOURCES += src/convert/metadata.c
libak_la_SOURCES += src/convert/plan.c
libak_la_SOURCES += src/convert/rows.c
libak_la_SOURCES += src/convert/templates.c
libak_la_SOURCES += src/convert/vocab.c

libak_la_SOURCES += src/json/wide.c src/json/wide.h

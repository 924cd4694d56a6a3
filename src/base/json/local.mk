libak_la_SOURCES += src/base/json/wide.c src/base/json/wide.h

libak_la_SOURCES += \
	src/store/dir.c \
	src/store/evict.c \
	src/store/file.c \
	src/store/store.h \
	src/store/write.c

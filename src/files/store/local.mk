libak_la_SOURCES += \
	src/files/store/dir.c \
	src/files/store/evict.c \
	src/files/store/file.c \
	src/files/store/store.h \
	src/files/store/write.c

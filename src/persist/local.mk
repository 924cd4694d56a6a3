libak_la_SOURCES += \
	src/persist/prompt_cache.c \
	src/persist/save.c \
	src/persist/save.h

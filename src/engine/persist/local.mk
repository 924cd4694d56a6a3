libak_la_SOURCES += \
	src/engine/persist/prompt_cache.c \
	src/engine/persist/save.c \
	src/engine/persist/save.h

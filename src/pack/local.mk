libloops_la_SOURCES += \
	src/pack/adapter.c \
	src/pack/bind.c \
	src/pack/bind.h \
	src/pack/bind_convolution.c \
	src/pack/bind_copies.c \
	src/pack/bind_experts.c \
	src/pack/bind_missing.c \
	src/pack/bind_output.c \
	src/pack/cache.c \
	src/pack/cache.h \
	src/pack/cache_build.c \
	src/pack/cache_key.c \
	src/pack/cache_plan.c \
	src/pack/pack.c \
	src/pack/pack.h \
	src/pack/plan.c \
	src/pack/shard.c \
	src/pack/tiles.c

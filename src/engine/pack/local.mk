libloops_la_SOURCES += \
	src/engine/pack/adapter.c \
	src/engine/pack/bind.c \
	src/engine/pack/bind.h \
	src/engine/pack/bind_convolution.c \
	src/engine/pack/bind_copies.c \
	src/engine/pack/bind_experts.c \
	src/engine/pack/bind_missing.c \
	src/engine/pack/bind_output.c \
	src/engine/pack/cache.c \
	src/engine/pack/cache.h \
	src/engine/pack/cache_build.c \
	src/engine/pack/cache_key.c \
	src/engine/pack/cache_plan.c \
	src/engine/pack/pack.c \
	src/engine/pack/pack.h \
	src/engine/pack/plan.c \
	src/engine/pack/shard.c \
	src/engine/pack/tiles.c

libloops_la_SOURCES += \
	src/engine/sample/adaptive_p.c \
	src/engine/sample/candidates.c \
	src/engine/sample/candidates.h \
	src/engine/sample/chain.c \
	src/engine/sample/clone.c \
	src/engine/sample/distribution.c \
	src/engine/sample/dry.c \
	src/engine/sample/dry_breakers.c \
	src/engine/sample/dry_breakers.h \
	src/engine/sample/logprobs.c \
	src/engine/sample/mirostat.c \
	src/engine/sample/params.c \
	src/engine/sample/penalties.c \
	src/engine/sample/sample.c \
	src/engine/sample/sampler.c \
	src/engine/sample/sampler.h \
	src/engine/sample/sampler_state.h \
	src/engine/sample/truncation.c

libloops_la_SOURCES += \
	src/sample/adaptive_p.c \
	src/sample/candidates.c \
	src/sample/candidates.h \
	src/sample/chain.c \
	src/sample/clone.c \
	src/sample/distribution.c \
	src/sample/dry.c \
	src/sample/dry_breakers.c \
	src/sample/dry_breakers.h \
	src/sample/logprobs.c \
	src/sample/mirostat.c \
	src/sample/params.c \
	src/sample/penalties.c \
	src/sample/sample.c \
	src/sample/sampler.c \
	src/sample/sampler.h \
	src/sample/sampler_state.h \
	src/sample/truncation.c
